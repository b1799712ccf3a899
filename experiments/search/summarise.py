#!/usr/bin/env python3
"""Who needs how many trials: one table per set of spaces, as CSV and as Markdown. Standard library only.

usage: summarise.py OUT [PEERS.csv...] [--csv SUMMARY.csv] [--spaces SPACES.csv]
OUT is what run.sh wrote; PEERS.csv what experiments/peers/peers.py wrote. A tool stands in the table of a set when it ran
on all of its spaces. Everything is computed from the values of the trials and from the tables, for all tools alike:

  trials to 5 % (1 %): the number of the first trial within 5 % (1 %) of the table's best; never within 40: 41
  failed: trials among the first 20 that gave no value; best/optimum after n trials: 0 before the first value
"""
import argparse
import collections
import csv
import pathlib
import statistics

TRIALS = 40
AFTER = (5, 10, 20, 40)
METRICS = ["to_5pct", "to_1pct", "failed_of_20", *(f"best_{n}" for n in AFTER)]
OURS = "krigtune "


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Table:
    """Values of one space; None where a configuration fails."""

    def __init__(self, path, metric):
        self.values = [float(row[metric]) if row["status"] == "ok" else None for row in rows_of(path)]
        self.minimised = metric == "latency"
        known = [value for value in self.values if value is not None]
        self.best = min(known) if self.minimised else max(known)

    def quotient(self, value):
        """Of the optimum, 1 at the best; 0 for a failure."""
        if value is None:
            return 0.0
        return self.best / value if self.minimised else value / self.best


def figures(table, values):
    """METRICS of one run, from its trials in order."""
    best, so_far = 0.0, []
    for value in values[:TRIALS]:
        best = max(best, table.quotient(value))
        so_far.append(best)

    def first(level):
        return next((i + 1 for i, q in enumerate(so_far) if q >= level), TRIALS + 1)

    failed = sum(value is None for value in values[:20])
    return [first(0.95), first(0.99), failed, *(so_far[min(n, len(so_far)) - 1] for n in AFTER)]


class Runs:
    """(set, space) -> tool -> figures of its runs."""

    def __init__(self, out):
        self.spaces, self.few, self.tables, self.found = collections.defaultdict(dict), set(), {}, {}
        for row in rows_of(out / "spaces.csv"):
            key = row["set"], row["space"]
            self.spaces[row["set"]][row["space"]] = None
            if key not in self.tables:
                self.tables[key] = Table(out / row["table"], row["metric"])
                self.found[key] = collections.defaultdict(list)
                if row["few"] == "1":
                    self.few.add(key)
            runs = out / "runs" / (pathlib.Path(row["session"]).stem + ".csv")
            if runs.exists():
                self.add_ours(key, row["variant"], runs)

    def add_ours(self, key, variant, path):
        trials = collections.defaultdict(list)
        for row in rows_of(path):
            trials[row["strategy"], row["seed"]].append((int(row["trial"]), row["status"], row["value"]))
        for (strategy, _), run in trials.items():
            values = [float(value) if status == "ok" else None for _, status, value in sorted(run)]
            self.add(key, f"{OURS}{strategy}, {variant}", values)

    def add_peers(self, path):
        for row in rows_of(path):
            key = row["set"], row["space"]
            values = self.tables[key].values
            self.add(key, row["tool"], [values[int(number)] for number in row["trials"].split()])

    def add(self, key, tool, values):
        self.found[key][tool].append(figures(self.tables[key], values))

    def sets(self):
        """Name, its spaces; of vTrain the ten on which all ran as well."""
        for name, spaces in self.spaces.items():
            keys = [(name, space) for space in spaces]
            yield name, keys
            if any(key not in self.few for key in keys):
                yield f"{name}, ten of them", [key for key in keys if key in self.few]

    def tools(self, keys):
        counts = collections.Counter(tool for key in keys for tool in self.found[key])
        return [tool for tool, count in counts.items() if count == len(keys)]


def aggregate(runs, keys, tool):
    """Median over all runs; mean over the spaces of the mean over the seeds: each space counts alike."""
    row = {"tool": tool, "spaces": len(keys), "runs": sum(len(runs.found[key][tool]) for key in keys)}
    for i, metric in enumerate(METRICS):
        per_space = [[run[i] for run in runs.found[key][tool]] for key in keys]
        row[metric + "_median"] = statistics.median(x for space in per_space for x in space)
        row[metric + "_mean"] = statistics.mean(statistics.mean(space) for space in per_space)
    return row


def trials_text(number):
    return "> 40" if number > TRIALS else f"{number:.3g}"


def markdown(name, rows):
    lines = [f"### {name} ({rows[0]['spaces']} spaces)", "",
             "| who | runs | trials to 5 %: median (mean) | to 1 % | failed of 20 | " +
             " | ".join(f"best/optimum @{n}" for n in AFTER) + " |",
             "|---|---:|---:|---:|---:|" + "---:|" * len(AFTER)]
    for row in rows:
        who = f"**{row['tool']}**" if row["tool"].startswith(OURS + "bayes") else row["tool"]
        trials = [f"{trials_text(row[m + '_median'])} ({row[m + '_mean']:.1f})" for m in METRICS[:2]]
        cells = [who, str(row["runs"]), *trials, f"{row['failed_of_20_mean']:.1f}",
                 *(f"{row[f'best_{n}_mean']:.3f}" for n in AFTER)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def space_rows(runs):
    """A row per space and tool: means over its runs."""
    for (set_name, space), tools in runs.found.items():
        for tool, found in tools.items():
            means = {m: statistics.mean(run[i] for run in found) for i, m in enumerate(METRICS)}
            yield {"set": set_name, "space": space, "tool": tool, "runs": len(found), **means}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("peers", nargs="*", type=pathlib.Path)
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--spaces", type=pathlib.Path)
    arguments = parser.parse_args()
    runs = Runs(arguments.out)
    for path in arguments.peers:
        runs.add_peers(path)
    everything = []
    for name, keys in runs.sets():
        rows = sorted((aggregate(runs, keys, tool) for tool in runs.tools(keys)), key=lambda row: row["to_5pct_mean"])
        if rows:
            print(markdown(name, rows))
            everything += [{"set": name, **row} for row in rows]
    if arguments.csv and everything:
        write_csv(arguments.csv, everything)
    if arguments.spaces:
        write_csv(arguments.spaces, list(space_rows(runs)))


if __name__ == "__main__":
    main()
