#!/usr/bin/env python3
"""Runs the functions of surrogate_sanity with `krigtune tune` as a user's own program. The rows have the form of
sanity.cpp.

usage: tuned_functions.py KRIGTUNE OUT_DIR [--seeds 10] [--jobs 1] [--problems NAME...]
Writes OUT_DIR/tuned.csv, and OUT_DIR/suggestions.csv: the median of the last ten suggestions' seconds of each run.
Called as `tuned_functions.py --evaluate NAME CONFIG RESULT`, it is the program.
"""
import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "surrogate_sanity"))
from problems import HEADER, PLAIN, PROBLEMS, check_expected_values

NAMED = {problem.name: problem for problem in PROBLEMS}
LETTERS = "abcdefgh"


def evaluate(name, config_path, result_path):
    problem, config = NAMED[name], json.loads(pathlib.Path(config_path).read_text())
    u = [config[f"x{i}"] for i in range(len(problem.levels))]
    categories = [LETTERS.index(config[f"c{i}"]) for i in range(len(problem.categories))]
    pathlib.Path(result_path).write_text(json.dumps({"loss": problem.evaluate(u, categories).value}))


def session(problem):
    space = {f"x{i}": [k / (n - 1) for k in range(n)] if n else {"type": "real", "min": 0, "max": 1}
             for i, n in enumerate(problem.levels)}
    space.update({f"c{i}": list(LETTERS[:n]) for i, n in enumerate(problem.categories)})
    program = ["python3", str(pathlib.Path(__file__).resolve()), "--evaluate", problem.name, "{config}", "{result}"]
    return {"space": space, "baseline": None, "objective": {"metric": "loss", "direction": "minimize"},
            "runner": {"kind": "command", "argv": program, "timeout_s": 60}, "budget": {"trials": problem.evaluations}}


def tune(krigtune, out, problem, seed):
    path = out / f"{problem.name}.json"
    words = [krigtune, "tune", path, "--out", out / f"{problem.name}_{seed}", "--seed", str(seed), "--full-budget", "--fresh",
             "--quiet", "--json"]
    said = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    best, rows = math.inf, []
    with (out / f"{problem.name}_{seed}" / "trials.csv").open(newline="") as file:
        for i, row in enumerate(csv.DictReader(file)):
            best = min(best, float(row["value"]) - problem.optimum)
            rows.append([problem.name, "tune", seed, i + 1, f"{best:.6g}"])
    return rows, [problem.name, seed, f"{statistics.median(said['suggest_s'][-10:]):.4f}"]


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krigtune")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--problems", nargs="*", default=PLAIN)
    options = parser.parse_args()
    check_expected_values()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.problems:
        (options.out / f"{name}.json").write_text(json.dumps(session(NAMED[name])))
    runs = [(NAMED[name], seed) for seed in range(1, options.seeds + 1) for name in options.problems]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda run: tune(options.krigtune, options.out, *run), runs))
    write(options.out / "tuned.csv", HEADER, [row for rows, _ in results for row in rows])
    write(options.out / "suggestions.csv", ["problem", "seed", "suggest_s"], [seconds for _, seconds in results])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--evaluate"]:
        evaluate(*sys.argv[2:])
    else:
        main()
