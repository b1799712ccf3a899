#!/usr/bin/env python3
"""usage: python_cost.py [TRIALS=1000] [SPACE...]

What ask() and tell() cost from Python, by the number of trials: for each hundred of them the medians of the wall time in milliseconds,
and the mean of the program's processor time for a pair, which other programs on the machine disturb less. SPACE: real (two real
ranges), lists (six lists of ten values), square (two lists of 100 values) or random (real, with the strategy random); all, if none is
named. Needs PYTHONPATH=src/python and the program on the PATH or in KRIGTUNE_EXECUTABLE.
"""
import os
import pathlib
import statistics
import sys
import time

import krigtune

REAL = {"x": krigtune.real(-5.0, 5.0), "y": krigtune.log(1e-5, 1e-1)}
SPACES = {
    "real": (REAL, "bayes"),
    "lists": ({name: list(range(10)) for name in "abcdef"}, "bayes"),
    "square": ({"a": list(range(100)), "b": list(range(100))}, "bayes"),
    "random": (REAL, "random"),
}


def value(configuration):
    numbers = list(configuration.values())
    return 1.0 + sum((number - 2.0) ** 2 for number in numbers) / len(numbers)


def processor_s(study):
    fields = pathlib.Path(f"/proc/{study._server._process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name, trials):
    space, strategy = SPACES[name]
    with krigtune.Study(space, seed=1, strategy=strategy) as study:
        for begin in range(0, trials, 100):
            asks, tells, before = [], [], processor_s(study)
            for _ in range(begin, min(begin + 100, trials)):
                begun = time.perf_counter()
                trial = study.ask()
                asked = time.perf_counter()
                study.tell(trial, value(trial.configuration))
                asks.append(asked - begun)
                tells.append(time.perf_counter() - asked)
            print(f"{name:7} {begin + len(asks):5} trials: ask {1e3 * statistics.median(asks):6.1f} ms, tell {1e3 * statistics.median(tells):5.2f} ms; "
                  f"processor {1e3 * (processor_s(study) - before) / len(asks):6.1f} ms a pair", flush=True)


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name in sys.argv[2:] or SPACES:
        measure(name, trials)


if __name__ == "__main__":
    main()
