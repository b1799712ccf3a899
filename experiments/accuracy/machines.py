#!/usr/bin/env python3
"""usage: machines.py EXPERIMENTS_DIR

Would krigtune plan have named the right machine? Every pair of published runs of one model, sequence length and task on different GPUs is
ranked by predicted tokens a second and GPU, and compared with what was published (published_runs.csv, and published_rows.csv, which
experiments/accuracy/published writes). The last column ranks the pairs by tokens per money instead: prices are drawn at random, so that
both GPUs are worth their price within a factor of two by what was published, which makes it as hard as it gets.
"""
import csv
import itertools
import math
import pathlib
import random
import sys

SPREAD = 2.0     # of prices around those at which both GPUs would be worth the same
DRAWS = 20       # of prices for each pair
NEAR = math.log(1.1)


def kind_of(group):
    for kind in ("experts", "hybrids", "adapters"):
        if kind in group:
            return kind
    return "dense"


def runs(experiments):
    """(model, sequence, task) -> list of (gpu, published, predicted), in tokens a second and GPU, and the kind."""
    published = {row["id"]: row for row in csv.DictReader(open(experiments / "data/published_runs.csv"))}
    found = {}
    for row in csv.DictReader(open(experiments / "results/accuracy/published_rows.csv")):
        said = published[row["id"]]
        if not row["predicted_over_published"] or not all(said[key] for key in ("gbs", "seq_len", "gpus")):
            continue
        tokens = float(said["gbs"]) * float(said["seq_len"]) / float(said["gpus"])
        key = (said["model"], said["seq_len"], said["task"], kind_of(row["group"]))
        found.setdefault(key, []).append((row["gpu"], tokens / float(row["published_s"]), tokens / float(row["predicted_s"])))
    return found


def pairs(found):
    for key, group in found.items():
        for a, b in itertools.combinations(group, 2):
            if a[0] != b[0]:
                yield key[3], a, b


def right(pairs_of_kind):
    """(pairs, share ranked rightly, pairs more than 10 % apart, share of them, median and 90 % of the ratio's error)."""
    agrees = lambda a, b: (a[1] > b[1]) == (a[2] > b[2])
    apart = [(a, b) for a, b in pairs_of_kind if abs(math.log(a[1] / b[1])) > NEAR]
    errors = sorted(abs(math.log(a[2] / b[2] * b[1] / a[1])) for a, b in pairs_of_kind)
    return (len(pairs_of_kind), sum(agrees(a, b) for a, b in pairs_of_kind) / len(pairs_of_kind), len(apart),
            sum(agrees(a, b) for a, b in apart) / max(len(apart), 1), math.exp(errors[len(errors) // 2]) - 1,
            math.exp(errors[int(0.9 * len(errors))]) - 1)


def right_per_money(pairs_of_kind, seed=1):
    """The share ranked rightly by tokens per money."""
    chance = random.Random(seed)
    agreed = all_ = 0
    for a, b in pairs_of_kind:
        for _ in range(DRAWS):
            price = b[1] / a[1] * math.exp(chance.uniform(-math.log(SPREAD), math.log(SPREAD)))  # of b, in a's
            agreed += (a[1] > b[1] / price) == (a[2] > b[2] / price)
            all_ += 1
    return agreed / all_


def main():
    experiments = pathlib.Path(sys.argv[1])
    by_kind = {}
    for kind, a, b in pairs(runs(experiments)):
        by_kind.setdefault("all", []).append((a, b))
        by_kind.setdefault(kind, []).append((a, b))
    print("kind,pairs,right,pairs_10_percent_apart,right_of_them,median_error_of_ratio,error_of_ratio_90_percent,right_per_money")
    for kind in sorted(by_kind):
        values = right(by_kind[kind])
        print(f"{kind},{values[0]},{values[1]:.3f},{values[2]},{values[3]:.3f},{values[4]:.3f},{values[5]:.3f},"
              f"{right_per_money(by_kind[kind]):.3f}")


if __name__ == "__main__":
    main()
