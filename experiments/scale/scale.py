#!/usr/bin/env python3
"""The costs of a question, a look and a trial after 10, 100, 1000 and 10^4 trials.

usage: scale.py BIN_DIR OUT [--trials N,N,...] [--failed SHARE] [--only WORDS]

Writes run directories whose journals have so many closed trials (random configurations,
with values of a smooth function and noise of 2 per cent), and runs the programs in
BIN_DIR on copies of them:

  ask          one proposal of bayes in a space of 10^6 configurations (six parameters of
               ten values), without a workload
  ask 10x10^4  the same with 10^4 configurations (two parameters of 100 values), no failures
  count        ask --count 11: the time of each further proposal while the others are pending
  results      results --top 1
  watch        watch --once, with best.json as tune leaves it
  random       tune by random draws, replayed from a table: seconds per trial, including
               everything that tune does
  bayes        the same with bayes

Prints a row for each: the smallest of three processor times in seconds (for random and
bayes: per trial), wall time, peak memory in MB, and for ask the program's own time of the
suggestion. Needs only the standard library.
"""
import argparse
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

SPACES = {
    "million": {name: list(range(1, 11)) for name in "abcdef"},
    "square": {name: list(range(1, 101)) for name in "ab"},
}
METRIC = "speed"


def value(point, space, rng):
    total = 0.0
    for i, (x, values) in enumerate(zip(point, space.values())):
        total += (0.4 + 0.2 * i) * ((x - 1) / (len(values) - 1) - 0.3 - 0.07 * i) ** 2
    total -= 0.05 * math.sin(7.0 * point[0] / len(next(iter(space.values())))) * math.cos(3.0 * point[1] / 10.0)
    return 100.0 * math.exp(-2.0 * total + (0.02 * rng.gauss(0.0, 1.0) if rng else 0.0))


def session_of(name, runner, trials):
    return {"space": SPACES[name], "baseline": None, "objective": {"metric": METRIC, "direction": "maximize"},
            "runner": runner, "budget": {"trials": trials, "regret": 0, "least_gain": 0}}


def dump(line):
    return json.dumps(line, separators=(",", ":")) + "\n"


def journal_lines(name, trials, failed, seed):
    """In the form in which krigtune writes them."""
    rng, space = random.Random(seed), SPACES[name]
    worker = {"worker_id": "krigtune-1"}
    yield dump({"op_code": 0, **worker, "study_name": "krigtune", "directions": [2]})
    yield dump({"op_code": 3, **worker, "study_id": 0, "system_attr": {"study:metric_names": [METRIC]}})
    asked = set()
    for trial in range(trials):
        while True:
            point = tuple(rng.choice(values) for values in space.values())
            if point not in asked:
                break
        asked.add(point)
        configuration = dict(zip(space, point))
        attributes = {"configuration": json.dumps(configuration, separators=(",", ":")), "strategy": "random",
                      "asker": "tune", "suggest_s": 0.001, "trials_without_gain": 3}
        yield dump({"op_code": 4, **worker, "study_id": 0, "datetime_start": "2026-11-25T12:00:00.000000",
                    "user_attrs": attributes})
        for key, x in configuration.items():
            distribution = json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": space[key]}})
            yield dump({"op_code": 5, **worker, "trial_id": trial, "param_name": key,
                        "param_value_internal": space[key].index(x), "distribution": distribution})
        fails = rng.random() < failed * 2.0 * point[-1] / max(space[list(space)[-1]])
        measured = value(point, space, rng)
        told = {"wall_s": 0.01, "status": "failed" if fails else "ok"}
        told.update({"exit_code": 1, "last_lines": "", "reason": "crash"} if fails else
                    {"value_sem": 0.01 * measured, f"metric_{METRIC}": measured})
        for key, attribute in told.items():
            yield dump({"op_code": 8, **worker, "trial_id": trial, "user_attr": {key: attribute}})
        yield dump({"op_code": 6, **worker, "trial_id": trial, "state": 3 if fails else 1,
                    "values": None if fails else [measured], "datetime_start": "2026-11-25T12:00:00.000000",
                    "datetime_complete": "2026-11-25T12:00:01.000000"})


def run_directory(krigtune, out, name, trials, failed, strategy="bayes", runner=None):
    """A directory with that many trials, made once."""
    directory = out / f"{name}_{trials}{'_failed' if failed else ''}{'_' + strategy if runner else ''}"
    if directory.exists():
        return directory
    session = out / "session.json"
    session.write_text(json.dumps(session_of(name, runner or {"kind": "none"}, 10 ** 6)))
    called([krigtune, "ask", directory, "--session", session, "--strategy", strategy])
    with open(directory / "journal.log", "w") as journal:
        journal.writelines(journal_lines(name, trials, failed, trials))
    return directory


def called(words):
    begun = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = process.stdout.read().decode()
    complaint = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {process.returncode}: {complaint}")
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": time.monotonic() - begun, "mb": usage.ru_maxrss / 1024, "said": said}


def on_copy(directory, words_of, repeats):
    best = None
    for _ in range(repeats):
        copy = directory.parent / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(directory, copy)
        result = called(words_of(copy))
        result["journal"] = (copy / "journal.log").read_text()
        if best is None or result["cpu"] < best["cpu"]:
            best = result
    return best


def suggestions(journal):
    found = []
    for line in journal.splitlines():
        if '"op_code":4' in line:
            found.append(json.loads(line)["user_attrs"]["suggest_s"])
    return found


def tune_overhead(binaries, out, strategy, trials, more):
    """Seconds per trial of `more` trials after `trials` others, replayed from a table."""
    folder = out / "tune"
    folder.mkdir(exist_ok=True)
    table = folder / "table.csv"
    if not table.exists():
        with open(table, "w") as file:
            file.write(f"a,b,{METRIC}\n")
            for a in SPACES["square"]["a"]:
                for b in SPACES["square"]["b"]:
                    file.write(f"{a},{b},{value((a, b), SPACES['square'], random.Random(100 * a + b))!r}\n")
    runner = {"kind": "replay", "table": str(table.resolve()), "value": METRIC}
    directory = run_directory(binaries / "krigtune", out, "square", trials, 0.0, strategy, runner)
    copy = folder / "run"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    session = folder / "session.json"
    words = [binaries / "krigtune", "tune", session, "--out", copy, "--strategy", strategy, "--full-budget", "--quiet"]
    session.write_text(json.dumps(session_of("square", runner, trials + 1)))
    idle = called(words)  # begins and ends, and writes a page each time
    session.write_text(json.dumps(session_of("square", runner, trials + 1 + more)))
    busy = called(words)
    return {"cpu": (busy["cpu"] - idle["cpu"]) / more, "wall": (busy["wall"] - idle["wall"]) / more, "mb": busy["mb"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--trials", default="10,100,1000,10000")
    parser.add_argument("--failed", type=float, default=0.1, help="share of the trials that fail in the space of 10^6")
    parser.add_argument("--only", default="ask,ask4,count,results,watch,random,bayes")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    krigtune, only = options.binaries / "krigtune", options.only.split(",")
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"{'what':10s} {'trials':>6s} {'cpu_s':>8s} {'wall_s':>8s} {'MB':>6s} suggest_s", flush=True)

    def row(what, trials, result, suggest=""):
        print(f"{what:10s} {trials:6d} {result['cpu']:8.4f} {result['wall']:8.4f} {result['mb']:6.0f} {suggest}", flush=True)

    for trials in map(int, options.trials.split(",")):
        million = run_directory(krigtune, options.out, "million", trials, options.failed)
        if "ask" in only:
            result = on_copy(million, lambda copy: [krigtune, "ask", copy], options.repeats)
            row("ask", trials, result, f"{suggestions(result['journal'])[-1]:.4f}")
        if "ask4" in only and trials < 10_000:
            square = run_directory(krigtune, options.out, "square", trials, 0.0)
            result = on_copy(square, lambda copy: [krigtune, "ask", copy], options.repeats)
            row("ask 10^4", trials, result, f"{suggestions(result['journal'])[-1]:.4f}")
        if "count" in only:
            result = on_copy(million, lambda copy: [krigtune, "ask", copy, "--count", "11"], 1)
            further = suggestions(result["journal"])[-10:]
            row("count", trials, result, f"{max(further):.4f} at most of 10 further ones")
        if "results" in only:
            row("results", trials, on_copy(million, lambda copy: [krigtune, "results", copy, "--top", "1"], options.repeats))
        if "watch" in only:
            row("watch", trials, on_copy(million, lambda copy: [krigtune, "watch", copy, "--once"], options.repeats))
        for strategy, more in (("random", 100), ("bayes", 10)):
            if strategy in only and trials < 10_000:
                row(strategy, trials, tune_overhead(options.binaries, options.out, strategy, trials, more))


if __name__ == "__main__":
    main()
