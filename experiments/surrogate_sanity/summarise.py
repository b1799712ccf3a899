#!/usr/bin/env python3
"""Writes the final regrets of every search into one file, and prints their medians and quartiles as a table.

    summarise.py FINAL_REGRETS.csv ours.csv random.csv ...    from what run.sh wrote
    summarise.py FINAL_REGRETS.csv                            only the table
"""
import collections
import csv
import math
import pathlib
import sys


def final_rows(paths):
    last = {}
    for path in paths:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                key = row["problem"], row["strategy"], int(row["seed"])
                if key not in last or int(row["evaluation"]) > int(last[key]["evaluation"]):
                    last[key] = row
    return [(*key, int(row["evaluation"]), f"{float(row['best_regret']):.4g}") for key, row in last.items()]


def quantile(sorted_values, part):
    """Interpolates linearly between order statistics."""
    place = part * (len(sorted_values) - 1)
    low = math.floor(place)
    high = math.ceil(place)
    if low == high:
        return sorted_values[low]
    return sorted_values[low] + (place - low) * (sorted_values[high] - sorted_values[low])


def main():
    output = pathlib.Path(sys.argv[1])
    header = ["problem", "strategy", "seed", "evaluations", "regret"]
    if len(sys.argv) > 2:
        rows = final_rows(sys.argv[2:])
        with output.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
    regrets = collections.defaultdict(list)
    with output.open(newline="") as file:
        for row in csv.DictReader(file):
            regrets[row["problem"], int(row["evaluations"]), row["strategy"]].append(float(row["regret"]))
    print("| problem | evaluations | search | median | quartiles | worst | seeds |")
    print("|---|---:|---|---:|---:|---:|---:|")
    order = list(dict.fromkeys(problem for problem, _, _ in regrets))
    for (problem, evaluations, strategy), values in sorted(regrets.items(), key=lambda item: order.index(item[0][0])):
        values.sort()
        low, median, high = (quantile(values, part) for part in (0.25, 0.5, 0.75))
        print(f"| {problem} | {evaluations} | {strategy} | {median:.2g} | {low:.2g} to {high:.2g} | {values[-1]:.2g} "
              f"| {len(values)} |")


if __name__ == "__main__":
    main()
