#!/usr/bin/env python3
"""How long `bayes` takes to propose the trial after 100 others: 10^4 configurations of 8 parameters, no workload.

usage: suggestion_latency.py KRIGTUNE OUT_DIR [--runs N]

Replays a smooth synthetic table with `krigtune tune --json`. Prints the minimum and the
median, over the runs, of the seconds of the last ten suggestions (wall time, as in
`suggest_s`, so the machine should be idle), and the processor time of a whole session.
Needs only the standard library.
"""
import argparse
import itertools
import json
import math
import pathlib
import resource
import statistics
import subprocess

LEVELS = (5, 5, 5, 5, 2, 2, 2, 2)  # 10^4 configurations
NAMES = "abcdefgh"
TRIALS = 100


def speed(point):
    falls = sum((0.0125 * (i + 1)) * (x - 2 - i % 3) ** 2 for i, x in enumerate(point[:4]))
    crossed = 0.02 * point[0] * point[4] + 0.05 * abs(point[5] - point[6]) - 0.03 * point[7] * math.sin(point[1])
    return 100.0 * math.exp(-falls - crossed)


def session(out):
    with open(out / "table.csv", "w") as table:
        table.write(",".join(NAMES) + ",speed\n")
        for point in itertools.product(*(range(1, levels + 1) for levels in LEVELS)):
            table.write(",".join(map(str, point)) + f",{speed(point)!r}\n")
    path = out / "session.json"
    path.write_text(json.dumps({
        "space": {name: list(range(1, levels + 1)) for name, levels in zip(NAMES, LEVELS)}, "baseline": None,
        "objective": {"metric": "speed", "direction": "maximize"},
        "runner": {"kind": "replay", "table": "table.csv", "value": "speed"}, "budget": {"trials": TRIALS + 1}}))
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krigtune")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path, last = session(options.out), []
    for run in range(1, options.runs + 1):
        words = [options.krigtune, "tune", path, "--out", options.out / f"run{run}", "--seed", str(run), "--full-budget", "--json",
                 "--quiet", "--fresh"]
        said = subprocess.run(words, check=True, stdout=subprocess.PIPE)
        last += json.loads(said.stdout)["suggest_s"][-10:]
    processor_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime / options.runs
    print(f"a suggestion: least {min(last):.4f} s, median {statistics.median(last):.4f} s of {len(last)}; "
          f"a session of {TRIALS + 1} trials: {processor_s:.2f} s of processor time")


if __name__ == "__main__":
    main()
