#!/usr/bin/env python3
"""Merges the rows of measure.py into one row per configuration, with median and spread of its repeats, and prints how
noisy they are.

usage: summarise.py RAW.csv MERGED.csv

MERGED has the parameters, status, samples_per_s (median of the ok repeats), spread ((largest - smallest) / median),
samples_per_s_min, samples_per_s_max, step_time_s and exposed_comm_s (medians), peak_memory_bytes.
"""
import csv
import statistics
import sys

BEHIND_PARAMETERS = "repeat"


def merged(rows):
    values = sorted(float(row["samples_per_s"]) for row in rows if row["status"] == "ok")
    if not values:
        return [rows[-1]["status"]] + [""] * 7
    median = statistics.median(values)
    of = lambda name: statistics.median(float(row[name]) for row in rows if row["status"] == "ok")
    return ["ok", median, (values[-1] - values[0]) / median, values[0], values[-1], of("step_time_s"),
            of("exposed_comm_s"), rows[0]["peak_memory_bytes"]]


def main():
    raw, target = sys.argv[1:]
    with open(raw, newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])[: list(rows[0]).index(BEHIND_PARAMETERS)]
    points = {}
    for row in rows:
        points.setdefault(tuple(row[name] for name in names), []).append(row)
    table = [list(point) + merged(repeats) for point, repeats in sorted(points.items())]
    with open(target, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names + ["status", "samples_per_s", "spread", "samples_per_s_min", "samples_per_s_max",
                                 "step_time_s", "exposed_comm_s", "peak_memory_bytes"])
        writer.writerows(table)

    groups = [[float(row["samples_per_s"]) for row in repeats if row["status"] == "ok"] for repeats in points.values()]
    relative = [statistics.stdev(group) / statistics.median(group) for group in groups if len(group) > 1]
    # Robust pooled deviation. The median of the sample variances of n normal values is below their mean: for n = 3, the
    # chi-square with 2 degrees of freedom has its median at 2 ln 2, which is 0.69 of its mean.
    deviation = statistics.median(relative) / 0.8326
    medians = [statistics.median(group) for group in groups if group]
    best = max(medians)
    # The median of three normal values has a standard error of 0.67 deviations, and the difference of two sqrt(2) times
    # that.
    noise = 2 * 0.67 * 2**0.5 * deviation
    within = sum(value >= best * (1 - noise) for value in medians)
    print(f"{len(medians)} configurations, {min(medians):.1f} to {best:.1f} samples/s (a factor of {best / min(medians):.2f})")
    print(f"between repeats: relative standard deviation {100 * deviation:.1f} % (robust, pooled), "
          f"largest spread {100 * max((max(g) - min(g)) / statistics.median(g) for g in groups if g):.0f} %")
    print(f"within noise of the best (two standard errors of the difference, {100 * noise:.1f} %): "
          f"{within} configurations, {100 * within / len(medians):.1f} % of the space")
    print(f"within 5 %: {sum(value >= 0.95 * best for value in medians)}, within 1 %: "
          f"{sum(value >= 0.99 * best for value in medians)}")


if __name__ == "__main__":
    main()
