#!/usr/bin/env python3
"""usage: python_cost.py [TRIALS=1000] [SPACE...]

What a pair of ask() and tell() costs from Python, by the number of trials: the median and the longest of each hundred, in milliseconds.
SPACE: real (two real ranges), lists (six lists of ten values) or square (two lists of 100 values); all, if none is named. Needs
PYTHONPATH=src/python and the program on the PATH or in KRIGTUNE_EXECUTABLE.
"""
import statistics
import sys
import time

import krigtune

SPACES = {
    "real": {"x": krigtune.real(-5.0, 5.0), "y": krigtune.log(1e-5, 1e-1)},
    "lists": {name: list(range(10)) for name in "abcdef"},
    "square": {"a": list(range(100)), "b": list(range(100))},
}


def value(configuration):
    numbers = list(configuration.values())
    return 1.0 + sum((number - 2.0) ** 2 for number in numbers) / len(numbers)


def measure(name, trials):
    asks, tells = [], []
    with krigtune.Study(SPACES[name], seed=1) as study:
        for _ in range(trials):
            begun = time.perf_counter()
            trial = study.ask()
            asked = time.perf_counter()
            study.tell(trial, value(trial.configuration))
            asks.append(asked - begun)
            tells.append(time.perf_counter() - asked)
        begun = time.perf_counter()
        best = study.best
    print(f"{name}: {trials} pairs in {sum(asks) + sum(tells):.1f} s; best {best.value:.4g}, found in {1e3 * (time.perf_counter() - begun):.0f} ms")
    for begin in range(0, trials, 100):
        for what, times in (("ask", asks[begin:begin + 100]), ("tell", tells[begin:begin + 100])):
            print(f"  {begin + len(times):5} {what:4}  median {1e3 * statistics.median(times):7.2f} ms  longest {1e3 * max(times):7.1f} ms")


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name in sys.argv[2:] or SPACES:
        measure(name, trials)


if __name__ == "__main__":
    main()
