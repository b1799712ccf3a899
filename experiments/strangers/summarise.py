"""Writes FOLDER/tables.csv and FOLDER/functions_summary.csv from what run.sh measured.

usage: summarise.py FOLDER
"""
import csv
import pathlib
import statistics
import sys

BUDGET = 60
NOT_REACHED = BUDGET + 1


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def trials_to_5_percent(rows):
    first = {row["seed"]: NOT_REACHED for row in rows}
    for row in rows:
        if row["regret"] and float(row["regret"]) <= 0.05:
            first[row["seed"]] = min(first[row["seed"]], int(row["trial"]) + 1)
    return list(first.values())


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def summarise(folder):
    tables = []
    for name in ("gemm", "conv"):
        trials = trials_to_5_percent(rows_of(folder / name / "comparison.csv"))
        reached = sum(count <= BUDGET for count in trials)
        tables.append([name, len(trials), statistics.mean(trials), statistics.median(trials), reached])
    write(folder / "tables.csv", ["table", "seeds", "mean", "median", "reached"], tables)
    last = {}
    for row in rows_of(folder / "functions.csv"):
        last.setdefault(row["problem"], {})[row["seed"]] = float(row["best_regret"])
    functions = [[name, len(of), statistics.mean(of.values()), statistics.median(of.values()), max(of.values())]
                 for name, of in last.items()]
    write(folder / "functions_summary.csv", ["problem", "seeds", "mean", "median", "worst"], functions)


if __name__ == "__main__":
    summarise(pathlib.Path(sys.argv[1]))
