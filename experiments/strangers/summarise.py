"""Writes FOLDER/tables.csv and FOLDER/functions_summary.csv from the measurements of run.sh and of
experiments/peers/strangers.sh.

usage: summarise.py FOLDER
"""
import csv
import pathlib
import statistics
import sys

BUDGET = 60
NOT_REACHED = BUDGET + 1
CLOSE = 0.05


def rows_of(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def regrets_of_ours(folder, table):
    """By seed, the regret of each trial in order; None if it failed."""
    runs = {}
    for row in rows_of(folder / table / "comparison.csv"):
        runs.setdefault(row["seed"], []).append(float(row["regret"]) if row["regret"] else None)
    return list(runs.values())


def regrets_of_peers(folder, table):
    """The same by tool."""
    speeds = [float(row["speed"]) if row["status"] == "ok" else None for row in rows_of(folder / f"{table}.csv")]
    best = max(speed for speed in speeds if speed is not None)
    tools = {}
    for row in rows_of(folder / "peers.csv"):
        if row["space"] == table:
            tried = [speeds[int(number)] for number in row["trials"].split()]
            tools.setdefault(row["tool"], []).append([None if speed is None else 1 - speed / best for speed in tried])
    return tools


def first_close(regrets):
    return next((i + 1 for i, regret in enumerate(regrets) if regret is not None and regret <= CLOSE), NOT_REACHED)


def table_rows(folder):
    for table in ("gemm", "conv"):
        for tool, runs in {"krigtune": regrets_of_ours(folder, table), **regrets_of_peers(folder, table)}.items():
            trials = [first_close(regrets) for regrets in runs]
            last = [min(regret for regret in regrets if regret is not None) for regrets in runs]
            yield [table, tool, len(runs), f"{statistics.mean(trials):.1f}", statistics.median(trials),
                   sum(count <= BUDGET for count in trials), f"{statistics.mean(last):.4f}"]


def function_rows(folder):
    last = {}
    for name in ("functions.csv", "tuned/tuned.csv", "optuna.csv", "functions_peers.csv"):
        for row in rows_of(folder / name):
            last.setdefault((row["problem"], row["strategy"]), {})[row["seed"]] = float(row["best_regret"])
    for (problem, strategy), of in sorted(last.items(), key=lambda item: item[0][0]):
        values = of.values()
        yield [problem, strategy, len(of), f"{statistics.mean(values):.3g}", f"{statistics.median(values):.3g}", f"{max(values):.3g}"]


if __name__ == "__main__":
    where = pathlib.Path(sys.argv[1])
    write(where / "tables.csv", ["table", "tool", "seeds", "mean", "median", "reached", "last_regret"], table_rows(where))
    write(where / "functions_summary.csv", ["problem", "strategy", "seeds", "mean", "median", "worst"], function_rows(where))
