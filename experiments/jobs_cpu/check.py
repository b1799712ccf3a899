"""Tunes real training jobs on two CPU ranks from the commands that their users type;
kills krigtune meanwhile; trains on with the result, and compares it with the best
of a grid of up to 16 configurations. Run by scripts/jobs-check.

  check.py [--short] [--only JOB] KRIGTUNE FOLDER

setup.sh makes the environment of each job. A job whose environment cannot be made (PyPI
is out of reach) is skipped with one line.

If something fails, prints one line with what was expected and what was seen, and exits with 1.

How the grid and the tuned command are compared: each configuration of the grid is
launched once. The best of 16 noisy values is too good by chance, and the machine
may be busier later, so both are launched again alternately, `rounds` times each
(twice as often if launches of the same command differ by more than MOST_ALLOWED:
half the range over the median). Because of that noise, the median of the ratios
of the rounds may be below 1, by at least ALLOWED and at most MOST_ALLOWED.

--short measures no grid: the tuned command is compared in the same way with the
user's own, and must be faster.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
from check_session import Children, Missed, Session, expect, make_folder, wait_for  # noqa: E402
from jobs import all_jobs  # noqa: E402

ALLOWED = 0.10
MOST_ALLOWED = 0.25
SHORT_GAIN = 1.3  # of the tuned command of the FSDP2 job over its user's; 4 to 6 times were observed
NOT_HERE = 77  # exit code of setup.sh
GLOO_ABORTS = "terminate called without an active exception"  # in one of fifteen runs, at the very end


class Check:
    """One job: its folder and what it starts."""

    def __init__(self, krigtune, folder, job, short, python):
        self.krigtune, self.folder, self.job, self.short = krigtune, folder, job, short
        self.grid = [] if short else job.grid
        self.trials = 5 if short else job.trials
        self.rounds = 1 if short else 3
        self.session = Session(folder / "run")
        self.children = Children(
            OMP_NUM_THREADS="1", TORCHDYNAMO_DISABLE="1", HF_HUB_OFFLINE="1", PYTHONUNBUFFERED="1",
            TOKENIZERS_PARALLELISM="false", PYTHONDONTWRITEBYTECODE="1", WANDB_MODE="disabled", AXOLOTL_DO_NOT_TRACK="1",
            PATH=f"{python.parent}:{os.environ['PATH']}")
        self.best_point = None

    def launch(self, words, name):
        """What the job prints. It must end with exit code 0, at the second attempt if gloo aborts the first."""
        for _ in range(2):
            done = subprocess.run(words, cwd=self.folder, env=self.children.environment, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            (self.folder / name).write_text(done.stdout)
            if done.returncode == 0 or GLOO_ABORTS not in done.stdout:
                break
        expect(done.returncode == 0, f"exit code 0 of {' '.join(map(str, words))}",
               f"{done.returncode}, see {self.folder / name}")
        return done.stdout

    def measure(self, words, name):
        value = self.job.throughput(self.launch(words, name))
        expect(value is not None, f"a throughput in {self.folder / name}", "none")
        return value

    def tune(self, log):
        """The command that the user types, the same both times."""
        words = [self.krigtune, "tune", *self.job.options, "--out", str(self.session.run), "--trials", str(self.trials),
                 "--full-budget", "--", *self.job.typed()]
        return subprocess.Popen(words, cwd=self.folder, env=self.children.environment, stdin=subprocess.DEVNULL,
                                stdout=log, stderr=subprocess.STDOUT)


def measure_grid(check):
    values = [(check.measure(check.job.typed(point), f"grid_{i:02}.log"), i)
              for i, point in enumerate(check.grid)]
    best, i = max(values)
    check.best_point = check.grid[i]
    return f"{len(values)} configurations, {min(values)[0]:.4g} to {best:.4g} {check.job.unit}; best {check.best_point}"


def kill_in_the_middle(check):
    """Kills krigtune with SIGKILL while the third trial trains: its first step has been printed."""
    def third_trains():
        logs = list(check.session.run.glob("trials/0002*/std*.log"))
        return any(check.job.throughput(log.read_text(errors="replace")) for log in logs)
    with open(check.folder / "killed.log", "w", encoding="utf-8") as log:
        session = check.tune(log)
        wait_for("a third trial that trains", lambda: session.poll() is not None or third_trains())
    expect(session.poll() is None, "krigtune at its third trial", f"its end, see {check.folder}/killed.log")
    return check.session.kill(session, check.children)


def resume(check):
    with open(check.folder / "resumed.log", "w", encoding="utf-8") as log:
        code = check.tune(log).wait()
    expect(code == 0, "krigtune to end with exit code 0", f"{code}, see {check.folder}/resumed.log")
    rows = check.session.expect_resumed(2)
    expect(len(rows) == check.trials + 1, f"{check.trials} trials beside the interrupted one", len(rows) - 1)
    bad = [row["trial"] for row in rows if row["status"] not in ("ok", "bounded") and row["reason"] != "interrupted"]
    expect(not bad, "all trials to have run", f"trials {', '.join(bad)} did not, see {check.session.run}/trials")
    return f"trial 2 was asked again, then {len(rows) - 4} more; none twice"


def train_on(check):
    """Runs the command of cmd_optimal.txt alternately with the best of the grid, or with the user's own."""
    command = ["sh", str(check.session.run / "cmd_optimal.txt")]
    other = "the user's command" if check.short else "the best of the grid"
    words = check.job.typed(check.best_point)
    tuned, theirs, noise = [], [], 1.0
    while len(tuned) < check.rounds or (noise > MOST_ALLOWED and len(tuned) < 2 * check.rounds):
        tuned.append(check.measure(command, f"tuned_{len(tuned)}.log"))
        theirs.append(check.measure(words, f"compared_{len(theirs)}.log"))
        noise = max((max(values) - min(values)) / 2 / statistics.median(values) for values in (tuned, theirs))
    ratio = statistics.median(ours / its for ours, its in zip(tuned, theirs))
    least = SHORT_GAIN if check.short else 1 - min(max(ALLOWED, noise), MOST_ALLOWED)
    expect(ratio >= least, f"cmd_optimal.txt to be {least:.2f} times as fast as {other}", f"{ratio:.2f} times, noise {noise:.0%}")
    return (f"exit code 0; {statistics.median(tuned):.4g} {check.job.unit}, {ratio:.2f} times {other} (noise {noise:.0%}, "
            f"{len(tuned)} rounds)")


def number_after(pattern, text):
    """262144 for "262K": as exact as krigtune prints it."""
    found = re.search(pattern, text)
    units = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9}
    return float(found.group(1)) * units[found.group(2)] if found else None


def read_by_krigtune(check):
    made = check.folder / "read.json"  # where the command's relative paths begin
    made.unlink(missing_ok=True)
    asked = {"env": check.children.environment, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "check": True}
    subprocess.run([check.krigtune, "init", made, "--", *check.job.typed()],
                   cwd=check.folder, **asked)
    plan = subprocess.run([check.krigtune, "plan", made], cwd=check.folder, **asked).stdout
    plan = " ".join(plan.split())
    trained = number_after(r"trained: adapters of rank .*? \(([0-9.]+) ?([KMB]?) parameters\)", plan)
    return {"ranks": number_after(r"([0-9]+) ?(K?) ranks? on this machine", plan),
            "sequences a step": number_after(r"([0-9.]+) ?([KMB]?) sequences \(", plan),
            "tokens a step": number_after(r"\(([0-9.]+) ?([KMB]?) tokens\) a step", plan), "trained parameters": trained}


def compare_facts(check):
    """What krigtune read in the command is what the framework prints of itself."""
    theirs = check.job.facts(check.launch(check.job.typed(), "facts.log"))
    ours = read_by_krigtune(check)
    same = []
    for name, number in theirs.items():
        expect(number is not None, f"{name} in facts.log", "nothing")
        expect(ours[name] and abs(ours[name] / number - 1) <= 0.01, f"{name}: {number:.10g}, as the framework says", ours[name])
        same.append(f"{name} {number:.10g}")
    return ", ".join(same)


PARTS = [("grid", measure_grid), ("kill -9 while trial 2 trains", kill_in_the_middle),
         ("the same command again", resume), ("what was read", compare_facts), ("cmd_optimal.txt trains on", train_on)]


def run(check):
    grid = f" and a grid of {len(check.grid)}" if check.grid else ""
    print(f"{check.job.name}: {check.trials} trials{grid}, each a launch of two CPU ranks", flush=True)
    for name, part in PARTS:
        if (part is measure_grid and not check.grid) or (part is compare_facts and not check.job.facts):
            continue
        begin = time.monotonic()
        what = part(check)
        print(f"{time.monotonic() - begin:6.0f} s  {name:30} {what}", flush=True)


def prepare(folder, python):
    """The files that the commands name: made once, or copied."""
    if not (folder / "tiny/instructions").exists():
        subprocess.run([python, HERE / "make_tiny_llama.py", folder / "tiny"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    for file in [*HERE.glob("*.yaml"), *HERE.glob("*.yml")]:
        shutil.copy(file, folder / file.name)


def python_of(job):
    """The interpreter of the job's environment; None if it cannot be made here."""
    made = subprocess.run([HERE / "setup.sh", job.environment], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode == NOT_HERE:
        print(f"{job.name}: skipped, as its packages are neither in the cache nor within reach", flush=True)
        return None
    if made.returncode != 0:
        sys.exit(f"jobs-check: {job.name}: no environment (see above)")
    return Path(made.stdout.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the FSDP2 job alone, 5 trials, no grid")
    parser.add_argument("--only", metavar="JOB", help="one of the names in jobs.py")
    parser.add_argument("krigtune", type=os.path.abspath)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    folder = args.folder.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    for name, job in all_jobs(folder, args.short).items():
        python = python_of(job) if args.only in (None, name) else None
        if python:
            check = Check(args.krigtune, make_folder(folder / name), job, args.short, python)
            try:
                if job.environment != "torch":
                    prepare(folder / name, python)
                run(check)
            except Missed as missed:
                sys.exit(f"jobs-check: {job.name}: {missed}")
            finally:
                check.children.end_all()


if __name__ == "__main__":
    main()
