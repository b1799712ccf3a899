"""Lets real jobs fail, one trial each, and prints what krigtune says of it: class, reason and sentence.

  provoke.py KRIGTUNE FOLDER [--only JOB] [--csv FILE]

The commands are those of jobs.py with one mistake, or something is done to a rank that trains. Each failure has the
outcomes (status, reason) that are right for it; exits with 1 if another one came out.
"""
import argparse
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
from check import Check, prepare, python_of  # noqa: E402
from check_session import environment_of, make_folder  # noqa: E402
from jobs import all_jobs  # noqa: E402

LIMIT_S = 240
OOM, CRASH, INVALID = ("oom", ""), ("failed", "crash"), ("failed", "invalid")
HANG, BAD = ("failed", "hang"), ("failed", "bad_result")


def with_file(check, name, **values):
    """A copy of a job's file with other values; None removes a key."""
    text = (check.folder / name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = re.sub(rf"^{key}:.*\n", "", text, flags=re.M)
        text += f"{key}: {value}\n" if value is not None else ""
    changed = f"mistaken_{name}"
    (check.folder / changed).write_text(text, encoding="utf-8")
    return [changed if word == name else word for word in check.job.typed()]


def ranks_of(check, rank):
    """The processes of a rank, and nothing that starts them."""
    wanted = f"RANK={rank}".encode()
    return [int(one.name) for one in check.children.processes() if wanted in environment_of(one)]


def trains(check):
    return any(check.job.throughput(log.read_text(errors="replace")) for log in check.session.run.glob("trials/0000*/std*.log"))


def when_it_trains(check, process, what):
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < LIMIT_S:
        if trains(check):
            for pid in ranks_of(check, 1):
                os.kill(pid, what)
            return
        time.sleep(0.02)


def provoke(check, command, what=None, limit=None):
    """One trial of a command. `what`: the signal that rank 1 gets when it trains. `limit`: bytes of data of a process."""
    shutil.rmtree(check.session.run, ignore_errors=True)
    words = [check.krigtune, "tune", "--out", check.session.run, "--trials", "1", "--full-budget", "--", *command]
    if limit:
        words = ["prlimit", f"--data={limit}", *words]
    environment = {**check.children.environment, "MALLOC_ARENA_MAX": "1"}
    with open(check.folder / "provoked.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(words, cwd=check.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT)
        if what:
            when_it_trains(check, process, what)
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
    rows = check.session.closed()
    said = (check.folder / "provoked.log").read_text(errors="replace")
    return (rows[0]["status"], rows[0]["reason"]) if rows else ("none", ""), said


def sentence_in(said):
    """The line below the row of trial 0, or behind "said:"."""
    lines = said.splitlines()
    rows = [i for i, line in enumerate(lines) if re.match(r" +0\*? .*(failed|out of memory|oom)", line)]
    return lines[rows[0] + 1].strip() if rows and rows[0] + 1 < len(lines) else ""


def llama_factory(check):
    file = "llama_factory_lora.yaml"
    yield "a model that is not there", [CRASH], dict(command=with_file(check, file, model_name_or_path="nowhere/model"))
    yield "a data set that is not there", [CRASH], dict(command=with_file(check, file, dataset="other"))
    yield "a key that it does not know", [INVALID, CRASH], dict(command=with_file(check, file, lora_rnk=4))
    yield "a rank of 0", [INVALID, CRASH], dict(command=with_file(check, file, lora_rank=0))
    yield "bf16 that this machine has not", [INVALID, CRASH], dict(command=with_file(check, file, pure_bf16="true"))
    yield "a loss that is nan", [BAD], dict(command=with_file(check, file, learning_rate="1.0e+30"))
    yield "rank 1 killed", [CRASH], dict(command=check.job.typed(), what=signal.SIGKILL)
    yield "rank 1 stopped", [HANG], dict(command=with_file(check, file, ddp_timeout=15), what=signal.SIGSTOP)
    yield "little memory", [OOM], dict(command=check.job.typed(), limit=1_300_000_000)


def trl(check):
    typed = check.job.typed()
    yield "a model that is not there", [CRASH], dict(command=[w.replace("tiny/model", "nowhere/model") for w in typed])
    yield "a data set that is not there", [CRASH], dict(command=[w.replace("tiny/data", "nowhere/data") for w in typed])
    yield "a flag that it does not know", [INVALID, CRASH], dict(command=typed + ["--lora_rnk", "4"])
    yield "a rank of 0", [INVALID, CRASH], dict(command=typed + ["--lora_r", "0"])
    yield "a loss that is nan", [BAD], dict(command=typed + ["--learning_rate", "1e30"])
    yield "rank 1 killed", [CRASH], dict(command=typed, what=signal.SIGKILL)
    yield "rank 1 stopped", [HANG], dict(command=typed + ["--ddp_timeout", "15"], what=signal.SIGSTOP)
    yield "little memory", [OOM], dict(command=typed, limit=1_300_000_000)


def axolotl(check):
    file = "axolotl_lora.yml"
    yield "a model that is not there", [CRASH], dict(command=with_file(check, file, base_model="nowhere/model"))
    yield "two keys that exclude each other", [INVALID, CRASH], dict(command=with_file(check, file, batch_size=8))
    yield "no rank", [INVALID, CRASH], dict(command=with_file(check, file, lora_r=None))
    yield "an optimizer that it does not know", [INVALID, CRASH], dict(command=with_file(check, file, optimizer="adamv"))
    yield "a loss that is nan", [BAD], dict(command=with_file(check, file, learning_rate="1.0e+30"))
    yield "rank 1 killed", [CRASH], dict(command=check.job.typed(), what=signal.SIGKILL)
    yield "rank 1 stopped", [HANG], dict(command=with_file(check, file, ddp_timeout=15), what=signal.SIGSTOP)
    yield "little memory", [OOM], dict(command=check.job.typed(), limit=1_300_000_000)


def litgpt(check):
    typed = check.job.typed()
    yield "a model that is not there", [CRASH], dict(command=[w.replace("tiny/model", "nowhere/model") for w in typed])
    yield "a data set that is not there", [CRASH], dict(command=typed + ["--data.json_path", "nowhere.json"])
    yield "a micro-batch larger than the batch", [INVALID, CRASH], dict(command=typed + ["--train.micro_batch_size", "32"])
    yield "a flag that it does not know", [INVALID, CRASH], dict(command=typed + ["--lora_rnk", "4"])
    yield "a loss that is nan", [BAD], dict(command=typed + ["--optimizer.lr", "1e30"])
    yield "rank 1 killed", [CRASH], dict(command=typed, what=signal.SIGKILL)
    yield "little memory", [OOM], dict(command=typed, limit=1_300_000_000)


PROVOKED = {"sft-lora": trl, "llama-factory": llama_factory, "axolotl": axolotl, "litgpt": litgpt}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krigtune", type=os.path.abspath)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", metavar="JOB", choices=PROVOKED)
    parser.add_argument("--what", metavar="TEXT", default="", help="only failures whose name has this text")
    parser.add_argument("--csv", type=Path)
    args = parser.parse_args()
    folder, rows, wrong = args.folder.resolve(), [], 0
    for name, job in all_jobs(folder, False).items():
        python = python_of(job) if name in PROVOKED and args.only in (None, name) else None
        if not python:
            continue
        check = Check(args.krigtune, make_folder(folder / name), job, False, python)
        prepare(folder / name, python)
        try:
            for what, right, how in PROVOKED[name](check):
                if args.what not in what:
                    continue
                begin = time.monotonic()
                outcome, said = provoke(check, **how)
                shutil.copytree(check.session.run, folder / name / f"provoked_{what.replace(' ', '_')}", dirs_exist_ok=True)
                wrong += outcome not in right
                sentence = sentence_in(said)
                print(f"{time.monotonic() - begin:4.0f} s  {'  ' if outcome in right else 'X '}{name:14} {what:34} {'/'.join(outcome):16} {sentence}",
                      flush=True)
                rows.append([name, what, *outcome, sentence])
        finally:
            check.children.end_all()
    if args.csv:
        with open(args.csv, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["job", "provoked", "status", "reason", "sentence"], *rows])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
