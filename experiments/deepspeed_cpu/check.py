"""Tunes the job of this folder with krigtune and real DeepSpeed on two CPU ranks,
under a memory limit that some configurations exceed; kills krigtune meanwhile;
trains on with the result. Run by scripts/deepspeed-check.

  check.py [--short] KRIGTUNE FOLDER        with the interpreter that setup.sh prints

If something fails, prints one line with what was expected and what was seen, and exits with 1.
"""
import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
from check_session import Children, Missed, Session, expect, make_folder, wait_for  # noqa: E402

CONFIG = HERE / "ds_config_check.json"
LARGE_BUCKET = 200_000_000  # elements, the largest of CONFIG: 800 MB, allocated at once from stage 1 on
HEADROOM = 1.35  # limit / measured peak; configurations without the large bucket differ by less than 10 %

# The user's guesses: all stages, both ends of the accumulation, offload, and one that must run out of memory.
TRIES = [{"zero_stage": 2, "micro_batch": 16, "reduce_bucket_size": LARGE_BUCKET},
         {"zero_stage": 0, "micro_batch": 16},
         {"zero_stage": 1, "micro_batch": 8, "offload_optimizer": "cpu"},
         {"zero_stage": 2, "micro_batch": 4, "reduce_bucket_size": 2_000_000, "overlap_comm": True}]
MORE_TRIES = [{"zero_stage": 3, "micro_batch": 4, "reduce_bucket_size": 2_000_000, "offload_optimizer": "cpu"},
              {"zero_stage": 3, "micro_batch": 16, "reduce_bucket_size": LARGE_BUCKET},
              {"zero_stage": 1, "micro_batch": 2, "reduce_bucket_size": 20_000}]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Check:
    """One run of the check: its folder and what it starts."""

    def __init__(self, krigtune, folder, short):
        self.krigtune, self.short = krigtune, short
        self.folder = folder
        self.run = folder / "run"
        self.port = free_port()
        self.limit_bytes = 0
        self.tries = TRIES if short else TRIES + MORE_TRIES
        self.trials = 7 if short else 17
        self.children = Children(
            DS_ACCELERATOR="cpu", LOCAL_SIZE="2", OMP_NUM_THREADS="1", TORCHDYNAMO_DISABLE="1",
            PYTHONDONTWRITEBYTECODE="1", MALLOC_MMAP_THRESHOLD_="131072", MALLOC_TRIM_THRESHOLD_="131072",
            MALLOC_ARENA_MAX="1", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        self.session = Session(self.run)

    def command(self, config):
        return ["torchrun", "--nproc_per_node", "2", "--master_port", str(self.port), "train.py", "--deepspeed",
                str(config)]

    def tune(self, log):
        """The command that the user types, the same both times."""
        guesses = [word for guess in self.tries for word in ("--try", json.dumps(guess))]
        words = [self.krigtune, "tune", "--deepspeed", str(CONFIG), "--out", str(self.run), "--trials",
                 str(self.trials), "--full-budget", *guesses, "--", "prlimit", f"--data={self.limit_bytes}",
                 *self.command(CONFIG)]
        return subprocess.Popen(words, cwd=HERE, env=self.children.environment, stdin=subprocess.DEVNULL,
                                stdout=log, stderr=subprocess.STDOUT)


def data_bytes(process):
    """The memory that prlimit --data limits: private writable memory."""
    try:
        for line in (process / "status").read_text().splitlines():
            if line.startswith("VmData:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def calibrate(check):
    """The limit: more than is needed without the large bucket, much less than with it."""
    config = json.loads(CONFIG.read_text())
    del config["autotuning"]
    config["train_micro_batch_size_per_gpu"] = 16
    config["zero_optimization"] = {"stage": 2, "reduce_bucket_size": 2_000_000, "overlap_comm": True}
    file = check.folder / "ds_config_peak.json"
    file.write_text(json.dumps(config, indent=2))
    peak = 0
    with open(check.folder / "peak.log", "w", encoding="utf-8") as log:
        job = subprocess.Popen(check.command(file) + ["--steps", "3"], cwd=HERE, env=check.children.environment, stdout=log,
                               stderr=subprocess.STDOUT)
        while job.poll() is None:
            peak = max([peak] + [data_bytes(process) for process in check.children.processes()])
            time.sleep(0.02)
    expect("trained 3 steps" in (check.folder / "peak.log").read_text(), "a job that trains without a limit",
           f"see {check.folder}/peak.log")
    check.limit_bytes = int(HEADROOM * peak)
    expect(check.limit_bytes < 0.8 * (peak + 4 * LARGE_BUCKET), "a bucket that matters",
           f"a peak of {peak / 1e6:.0f} MB without it")
    return f"a rank needs {peak / 1e6:.0f} MB, the limit is {check.limit_bytes / 1e6:.0f} MB"


def kill_in_the_middle(check):
    """Kills krigtune with SIGKILL while the third trial trains: its first step has been written."""
    with open(check.folder / "killed.log", "w", encoding="utf-8") as log:
        session = check.tune(log)
        wait_for("a third trial that trains",
                 lambda: session.poll() is not None or any(check.run.glob("trials/0002*/monitor/*/*_step.csv")))
    expect(session.poll() is None, "krigtune at its third trial", f"its end, see {check.folder}/killed.log")
    return check.session.kill(session, check.children)


def resume(check):
    with open(check.folder / "resumed.log", "w", encoding="utf-8") as log:
        code = check.tune(log).wait()
    expect(code == 0, "krigtune to end with exit code 0", f"{code}, see {check.folder}/resumed.log")
    rows = check.session.expect_resumed(2)
    expect(len(rows) == check.trials + 1, f"{check.trials} trials beside the interrupted one", len(rows) - 1)
    return f"trial 2 was asked again, then {len(rows) - 4} more; none twice"


def is_too_large(row):
    return row["zero_stage"] != "0" and float(row["reduce_bucket_size"]) == LARGE_BUCKET


def check_trials(check):
    """Trials that ran out of memory are recorded as such, and everything else continued."""
    rows = [row for row in check.session.closed() if row["reason"] != "interrupted"]
    for row in rows:
        wanted = ("oom",) if is_too_large(row) else ("ok", "bounded")
        expect(row["status"] in wanted, f"trial {row['trial']} to be {' or '.join(wanted)}",
               f"{row['status']} {row['reason']}, see {check.run}/trials")
    stages = {row["zero_stage"] for row in rows if row["status"] in ("ok", "bounded")}
    expect(stages == {"0", "1", "2", "3"}, "ZeRO stages 0 to 3 to have run", sorted(stages))
    for name in ("gradient_accumulation_steps", "reduce_bucket_size", "overlap_comm", "offload_optimizer"):
        seen = {row[name] for row in rows if row[name]}
        expect(len(seen) > 1, f"several values of {name}", seen)
    for row in rows:
        batch = 2 * int(row["micro_batch"]) * int(row["gradient_accumulation_steps"])
        expect(batch == 32, f"trial {row['trial']} to keep the 32 sequences of a step", batch)
    values = {row["trial"]: float(row["value"]) for row in rows if row["status"] == "ok"}
    gain = max(values.values()) / values["0"]
    # Stage 3 at micro-batch 1 communicates 16 times per step, the best once. 3 to 6 times were observed.
    expect(gain >= 1.5, "a best that is 1.5 times as fast as the baseline", f"{gain:.2f} times")
    counts = {status: sum(row["status"] == status for row in rows) for status in ("ok", "bounded", "oom")}
    return (f"{len(rows)} trials: {counts['ok']} ok, {counts['bounded']} ended early, {counts['oom']} out of memory; "
            f"best {gain:.1f} times the baseline")


def train_on(check):
    """Runs the command of cmd_optimal.txt. In one of fifteen runs gloo's threads abort at the very end."""
    config = json.loads((check.run / "ds_config_optimal.json").read_text())
    left = [key for key in ("autotuning", "csv_monitor") if key in config]
    expect(not left, "ds_config_optimal.json without what only a tuner needs", left)
    expect(config["train_batch_size"] == 32, "the user's train_batch_size", config["train_batch_size"])
    for attempt in (1, 2):
        done = subprocess.run(["sh", check.run / "cmd_optimal.txt"], cwd="/", env=check.children.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        (check.folder / "trained_on.log").write_text(done.stdout)
        if done.returncode == 0 or "terminate called without an active exception" not in done.stdout or attempt == 2:
            break
    where = f"see {check.folder}/trained_on.log"
    expect("trained 20 steps" in done.stdout, "cmd_optimal.txt to train to its last step, 20", where)
    expect(done.returncode == 0, "cmd_optimal.txt to end with exit code 0", f"{done.returncode}, {where}")
    expect("utotuning: done" not in done.stdout, "no autotuning in what it prints", where)
    return "20 steps, exit code 0" + (" (the second time: gloo aborted at the first's end)" if attempt == 2 else "")


PARTS = [("memory limit", calibrate), ("kill -9 while trial 2 trains", kill_in_the_middle),
         ("the same command again", resume), ("trials", check_trials), ("cmd_optimal.txt trains on", train_on)]


def run(check):
    print(f"Tuning {HERE / 'train.py'} in {check.trials} trials, each a launch of two CPU ranks: "
          f"{'2' if check.short else '4'} minutes on two quiet cores", flush=True)
    for name, part in PARTS:
        begin = time.monotonic()
        what = part(check)
        print(f"{time.monotonic() - begin:6.0f} s  {name:30} {what}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="7 trials instead of 17")
    parser.add_argument("krigtune", type=os.path.abspath)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    check = Check(args.krigtune, make_folder(args.folder.resolve()), args.short)
    try:
        run(check)
    except Missed as missed:
        sys.exit(f"deepspeed-check: {missed}")
    finally:
        check.children.end_all()


if __name__ == "__main__":
    main()
