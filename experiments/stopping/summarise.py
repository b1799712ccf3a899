#!/usr/bin/env python3
"""Results of the sessions in OUT/ends.csv, by set of spaces, by what they were told, and by noise. Standard library only.

usage: summarise.py OUT      reads OUT/ends.csv and OUT/spaces.csv, prints CSV
"""
import collections
import csv
import pathlib
import statistics
import sys

HEADER = ["set", "told", "noise", "sessions", "trials_median", "trials_mean", "near_mean", "within_1_percent", "bound_holds",
          "bound_median", "intervals_90_hold", "values"]


def share(parts, of):
    return f"{100.0 * sum(parts) / of:.1f}" if of else ""


def line(key, rows):
    trials = [int(row["trials"]) for row in rows]
    regrets = [float(row["regret"]) for row in rows]
    bounds = [(float(row["regret"]), float(row["bound"])) for row in rows if float(row["bound"]) >= 0]
    values = sum(int(row["predicted"]) for row in rows)
    return [*key, len(rows), f"{statistics.median(trials):g}", f"{statistics.mean(trials):.1f}",
            f"{statistics.mean(int(row['first_near']) for row in rows):.1f}",
            share([regret <= 0.01 for regret in regrets], len(rows)),
            share([regret <= bound + 1e-9 for regret, bound in bounds], len(bounds)),
            f"{statistics.median(bound for _, bound in bounds):.3f}" if bounds else "",
            share([int(row["held_90"]) for row in rows], values), values]


def main():
    out = pathlib.Path(sys.argv[1])
    with open(out / "spaces.csv", newline="") as file:
        known = {pathlib.Path(row["session"]).stem: (row["set"], row["variant"]) for row in csv.DictReader(file)}
    groups = collections.defaultdict(list)
    with open(out / "ends.csv", newline="") as file:
        for row in csv.DictReader(file):
            name, told = known[row["session"]]
            for key in ((name, told, row["noise"]), (name, told, "all"), (name, "all", row["noise"]), (name, "all", "all"),
                        ("all", told, "all"), ("all", "all", row["noise"]), ("all", "all", "all")):
                groups[key].append(row)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(line(key, groups[key]) for key in sorted(groups))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
