#!/usr/bin/env python3
"""usage: summarise.py CSV...     Prints the mean share of the front after 10, 20, 30 and 50 trials, and what fails, of files
of fronts.py."""
import collections
import csv
import statistics
import sys

TRIALS = (10, 20, 30, 50)


def main():
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            for row in csv.DictReader(file):
                runs[row["problem"], row["tool"]][row["seed"]].append(row)
    print("| problem | tool | runs | " + " | ".join(map(str, TRIALS)) + " | failed | s a trial | ends before trial, with |")
    print("|---|---|---:|" + "---:|" * (len(TRIALS) + 3))
    for (problem, tool), seeds in runs.items():
        shares = [statistics.mean(float(rows[n - 1]["share"]) for rows in seeds.values()) for n in TRIALS]
        failed = statistics.mean(sum(int(row["failed"]) for row in rows) for rows in seeds.values())
        seconds = statistics.median(float(row["suggest_s"]) for rows in seeds.values() for row in rows[10:])
        stops = [(number, float(rows[number - 1]["share"])) for rows in seeds.values()
                 for number, row in enumerate(rows) if row["stop"] == "1"]
        ends = "" if not stops else (f"{statistics.mean(n for n, _ in stops):.0f} ({len(stops)} of {len(seeds)}), "
                                     f"{100 * statistics.mean(s for _, s in stops):.1f} %")
        print(f"| {problem} | {tool} | {len(seeds)} | " + " | ".join(f"{100 * s:.1f} %" for s in shares) +
              f" | {failed:.1f} | {seconds:.2g} | {ends} |")


if __name__ == "__main__":
    main()
