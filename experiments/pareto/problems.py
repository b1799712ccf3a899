#!/usr/bin/env python3
"""usage: problems.py NAME CONFIG RESULT      (a trial of `krigtune tune`)

Problems with several objectives, all to be minimised, their reference points and the hypervolumes of their fronts.

ZDT1, ZDT2, ZDT3: Zitzler, Deb & Thiele 2000, "Comparison of multiobjective evolutionary algorithms", with 6 variables.
DTLZ2: Deb, Thiele, Laumanns & Zitzler 2002, "Scalable multi-objective optimization test problems", with 3 objectives
and 6 variables. mixed: a job with a time and a memory, four parameters of which two are categories; a part of it fails.
"""
import itertools
import json
import math
import sys


class Failed(Exception):
    """The trial ended without values."""


def zdt(f2):
    def evaluate(config):
        x = [config[f"x{i}"] for i in range(6)]
        g = 1 + 9 * sum(x[1:]) / 5
        return {"f1": x[0], "f2": f2(x[0], g)}
    return evaluate


def dtlz2(config):
    x = [config[f"x{i}"] for i in range(6)]
    g = 1 + sum((v - 0.5) ** 2 for v in x[2:])
    a, b = x[0] * math.pi / 2, x[1] * math.pi / 2
    return {"f1": g * math.cos(a) * math.cos(b), "f2": g * math.cos(a) * math.sin(b), "f3": g * math.sin(a)}


def mixed(config):
    """A step's time and memory. Small memory fails with an error that says nothing of memory."""
    batch, chunk = config["batch"], config["chunk"]
    keep = {"all": 1.0, "some": 0.5, "none": 0.2}[config["keep"]]
    kind = {"a": 1.0, "b": 0.8, "c": 1.3}[config["kind"]]
    memory = 4 + batch * keep * (1.5 if config["kind"] == "b" else 1.0) + 0.02 * chunk
    time = kind * (1 + 0.35 * (1 - keep)) * (1 + 6 / batch) * (1 + 0.05 * abs(math.log2(chunk) - 5.3) ** 2)
    if memory > 40 or (config["kind"] == "b" and chunk < 4):
        raise Failed()
    return {"f1": time, "f2": memory}


REALS = {f"x{i}": (0.0, 1.0) for i in range(6)}
MIXED = {"batch": list(range(1, 65)), "chunk": [2 ** i for i in range(11)], "keep": ["all", "some", "none"],
         "kind": ["a", "b", "c"]}

# name: (space, function, reference point, hypervolume of the front or None: of all configurations)
PROBLEMS = {
    "zdt1": (REALS, zdt(lambda x, g: g * (1 - math.sqrt(x / g))), (1.1, 1.1), 1.21 - 1 / 3),
    "zdt2": (REALS, zdt(lambda x, g: g * (1 - (x / g) ** 2)), (1.1, 1.1), 1.21 - 2 / 3),
    "zdt3": (REALS, zdt(lambda x, g: g * (1 - math.sqrt(x / g) - x / g * math.sin(10 * math.pi * x))), (1.1, 1.1), None),
    "dtlz2": (REALS, dtlz2, (1.1, 1.1, 1.1), 1.331 - math.pi / 6),
    "mixed": (MIXED, mixed, (4.0, 40.0), None),
}


def evaluate(name, config):
    return PROBLEMS[name][1](config)


def all_values(space, function):
    """Every value of a listed space; of ZDT3, those of x1 in 100 000 steps on its front."""
    if space is REALS:
        configs = ({"x0": i / 1e5, **{f"x{j}": 0.0 for j in range(1, 6)}} for i in range(100_001))
    else:
        configs = (dict(zip(space, values)) for values in itertools.product(*space.values()))
    for config in configs:
        try:
            yield tuple(function(config).values())
        except Failed:
            pass


def hypervolume(points, reference):
    """Of points to be minimised: by slices along the last objective."""
    points = [p for p in points if all(a < b for a, b in zip(p, reference))]
    if not points:
        return 0.0
    if len(reference) == 1:
        return reference[0] - min(p[0] for p in points)
    if len(reference) == 2:
        volume, covered = 0.0, reference[1]
        for x, y in sorted(set(points)):
            if y < covered:
                volume += (reference[0] - x) * (covered - y)
                covered = y
        return volume
    volume, levels = 0.0, sorted({p[-1] for p in points})
    for low, high in zip(levels, levels[1:] + [reference[-1]]):
        volume += (high - low) * hypervolume([p[:-1] for p in points if p[-1] <= low], reference[:-1])
    return volume


def largest(name):
    space, function, reference, known = PROBLEMS[name]
    return known if known else hypervolume(list(all_values(space, function)), reference)


if __name__ == "__main__":
    problem, config_file, result_file = sys.argv[1:]
    with open(config_file, encoding="utf-8") as file:
        configuration = json.load(file)
    try:
        result = evaluate(problem, configuration)
    except Failed:
        result = {"status": "failed"}
    with open(result_file, "w", encoding="utf-8") as file:
        json.dump(result, file)
