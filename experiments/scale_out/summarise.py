#!/usr/bin/env python3
"""Wall time and trials to within 5 % of the best with K workers, by what the session says. Standard library only.

usage: summarise.py OUT      reads OUT/found.csv and OUT/spaces.csv, prints CSV

speedup: the mean wall time of one worker over that of K, over the same spaces and
seeds. "hard": only spaces in which one worker that draws at random needs ten trials or
more on average. A run that never came within 5 % counts with all its time.
"""
import collections
import csv
import pathlib
import statistics
import sys

HARD = 10.0


def means(rows):
    return statistics.mean(float(row["wall_s"]) for row in rows), statistics.mean(int(row["trials"]) for row in rows)


def lines(told, strategy, spaces, hard):
    """`spaces`: the rows of each (set, space) by K; `hard`: the hard spaces."""
    for chosen in ("all", "hard"):
        picked = [rows for space, rows in spaces.items() if chosen == "all" or space in hard]
        if not picked:
            continue
        base_wall, base_trials = means([row for rows in picked for row in rows["1"]])
        for workers in ("1", "2", "4", "8"):
            rows = [row for of_space in picked for row in of_space[workers]]
            wall, trials = means(rows)
            within = 100.0 * sum(int(row["within"]) for row in rows) / len(rows)
            yield [told, strategy, chosen, len(picked), workers, f"{trials:.1f}", f"{wall:.0f}", f"{base_wall / wall:.2f}",
                   f"{base_wall / wall / int(workers):.2f}", f"{100.0 * (trials / base_trials - 1.0):+.0f}", f"{within:.0f}"]


def main():
    out = pathlib.Path(sys.argv[1])
    with open(out / "spaces.csv", newline="") as file:
        known = {pathlib.Path(row["session"]).stem: (row["set"], row["space"], row["variant"]) for row in csv.DictReader(file)}
    groups = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    with open(out / "found.csv", newline="") as file:
        for row in csv.DictReader(file):
            name, space, told = known[row["session"]]
            groups[told, row["strategy"]][name, space][row["workers"]].append(row)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["told", "strategy", "spaces", "count", "workers", "trials", "wall_s", "speedup", "per_worker",
                     "more_trials_percent", "within_percent"])
    for (told, strategy), spaces in sorted(groups.items()):
        hard = {space for space, rows in groups[told, "random"].items() if means(rows["1"])[1] >= HARD}
        writer.writerows(lines(told, strategy, spaces, hard))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
