#!/usr/bin/env python3
"""Which tool needs how many trials: one table per set of spaces, as CSV and as Markdown. Standard library only.

usage: summarise.py OUT [PEERS.csv...] [--csv SUMMARY.csv] [--spaces SPACES.csv] [--into README.md]
       summarise.py OUT --told     one table of krigtune's strategies: what they are told, and what that is worth
OUT is what run.sh wrote, PEERS.csv what experiments/peers/peers.py wrote. A tool is in
the table of a set if it ran on all of its spaces on which anything ran. --into: the
tables replace the text between the lines "<!-- tables -->" and "<!-- /tables -->".
Everything is computed in the same way for all tools, from the values of the trials and
from the tables:

  trials to 5 % (1 %): the number of the first trial within 5 % (1 %) of the table's
                       best; 41 if there is none within 40
  failed: trials among the first 20 that gave no value
  best/optimum after n trials: 0 before the first value
"""
import argparse
import collections
import csv
import pathlib
import statistics
import sys

TRIALS = 40
AFTER = (5, 10, 20, 40)
METRICS = ["to_5pct", "to_1pct", "failed_of_20", *(f"best_{n}" for n in AFTER)]
OURS = "krigtune "
BAYES = OURS + "bayes"
RIGHT = {"physics": "", "no_workload": ", no workload"}  # all other variants have wrong beliefs


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Table:
    """Values of one space; None if a configuration fails."""

    def __init__(self, path, metric, checksum):
        self.checksum = checksum  # of the part that the tools are told
        self.values = [float(row[metric]) if row["status"] == "ok" else None for row in rows_of(path)]
        self.minimised = metric == "latency"
        known = [value for value in self.values if value is not None]
        self.best = min(known) if self.minimised else max(known)

    def quotient(self, value):
        """The value over the optimum: 1 for the best, 0 for a failure."""
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
        by_path = {}  # a variant may have a table of its own
        for row in rows_of(out / "spaces.csv"):
            key = row["set"], row["space"]
            self.spaces[row["set"]][row["space"]] = None
            if row["table"] not in by_path:
                by_path[row["table"]] = Table(out / row["table"], row["metric"], row["checksum"])
            if key not in self.tables:
                self.tables[key] = by_path[row["table"]]
                self.found[key] = collections.defaultdict(list)
                if row["few"] == "1":
                    self.few.add(key)
            runs = out / "runs" / (pathlib.Path(row["session"]).stem + ".csv")
            if runs.exists():
                self.add_ours(key, row["variant"], runs, by_path[row["table"]])

    def add_ours(self, key, variant, path, table):
        trials = collections.defaultdict(list)
        for row in rows_of(path):
            trials[row["strategy"], row["seed"]].append((int(row["trial"]), row["status"], row["value"]))
        for (strategy, _), run in trials.items():
            values = [float(value) if status == "ok" else None for _, status, value in sorted(run)]
            self.add(key, OURS + strategy + RIGHT.get(variant, f", {variant}"), table, values)

    def add_peers(self, path):
        for row in rows_of(path):
            key = row["set"], row["space"]
            table = self.tables[key]
            if row["table"] != table.checksum:
                sys.exit(f"{path}: {row['tool']} ran on another table of {row['space']}; "
                         "run experiments/peers/run.sh again")
            self.add(key, row["tool"], table, [table.values[int(number)] for number in row["trials"].split()])

    def add(self, key, tool, table, values):
        self.found[key][tool].append(figures(table, values))

    def sets(self):
        """Its name, and its spaces on which anything ran; for vTrain also the ten on which all tools ran."""
        for name, spaces in self.spaces.items():
            keys = [(name, space) for space in spaces if self.found[name, space]]
            yield name, keys
            if any(key not in self.few for key in keys):
                yield f"{name}, ten of them", [key for key in keys if key in self.few]

    def tools(self, keys):
        counts = collections.Counter(tool for key in keys for tool in self.found[key])
        return [tool for tool, count in counts.items() if count == len(keys)]


def aggregate(runs, keys, tool):
    """Median over all runs; mean over the spaces of the mean over the seeds, so that each space has the same weight."""
    row = {"tool": tool, "spaces": len(keys), "runs": sum(len(runs.found[key][tool]) for key in keys)}
    for i, metric in enumerate(METRICS):
        per_space = [[run[i] for run in runs.found[key][tool]] for key in keys]
        row[metric + "_median"] = statistics.median(x for space in per_space for x in space)
        row[metric + "_mean"] = statistics.mean(statistics.mean(space) for space in per_space)
    return row


def trials_text(number):
    return "> 40" if number > TRIALS else f"{number:.3g}"


def is_wrong(tool):
    return tool.startswith(OURS) and ", " in tool and not tool.endswith(RIGHT["no_workload"])


def cells_of(row):
    who = f"**{row['tool']}**" if row["tool"].startswith(BAYES) else row["tool"]
    trials = [f"{trials_text(row[m + '_median'])} ({row[m + '_mean']:.1f})" for m in METRICS[:2]]
    return [who, str(row["runs"]), *trials, f"{row['failed_of_20_mean']:.1f}",
            *(f"{row[f'best_{n}_mean']:.3f}" for n in AFTER)]


def line(cells):
    return "| " + " | ".join(cells) + " |"


def against_peers(rows):
    """The mean fraction of the best peer's trials to 5 % that krigtune needs."""
    peers = [row for row in rows if not row["tool"].startswith(OURS)]
    if not peers:
        return []
    best = min(peers, key=lambda row: row["to_5pct_mean"])
    ours = [f"{row['tool']} {row['to_5pct_mean'] / best['to_5pct_mean']:.2f}" for row in rows
            if row["tool"] in (BAYES, BAYES + RIGHT["no_workload"])]
    return ["", f"Mean trials to 5 %, relative to the best peer ({best['tool']}): {'; '.join(ours)}."]


def markdown(name, rows):
    header = ["who", "runs", "trials to 5 %: median (mean)", "to 1 %", "failed of 20",
              *(f"best/optimum @{n}" for n in AFTER)]
    right = [row for row in rows if not is_wrong(row["tool"])]
    lines = [f"### {name} ({rows[0]['spaces']} spaces)", "", line(header), "|---|" + "---:|" * (len(header) - 1),
             *(line(cells_of(row)) for row in right), *against_peers(right), ""]
    return "\n".join(lines)


def wrong_physics(sets, order):
    """The cost of wrong beliefs; tools in the given order."""
    known = {row["tool"] for rows in sets.values() for row in rows}
    tools = [tool for tool in order if tool.startswith(BAYES) and tool in known]
    lines = ["### What it costs to say little, or something wrong: mean trials to 5 % (to 1 %)", "",
             line(["bayes is told", *sets]),
             "|---|" + "---:|" * len(sets)]
    for tool in tools:
        cells = [tool.removeprefix(BAYES).removeprefix(", ").replace("_", " ") or "everything, rightly"]
        for rows in sets.values():
            row = next((row for row in rows if row["tool"] == tool), None)
            cells.append(f"{row['to_5pct_mean']:.1f} ({row['to_1pct_mean']:.1f})" if row else "")
        lines.append(line(cells))
    return "\n".join(lines) + "\n"


def told_cell(runs, keys, tool):
    """Trials to 5 % (to 1 %), failed of 20; and on how many of the spaces, if it did not run on all."""
    ran = [key for key in keys if tool in runs.found[key]]
    if not ran:
        return ""
    row = aggregate(runs, ran, tool)
    part = f" [{len(ran)} of {len(keys)}]" if len(ran) < len(keys) else ""
    return f"{row['to_5pct_mean']:.1f} ({row['to_1pct_mean']:.1f}), {row['failed_of_20_mean']:.1f}{part}"


def told_table(runs):
    """A row for each variant and strategy, a column for each set."""
    sets = {name: keys for name, keys in runs.sets() if keys}
    tools = dict.fromkeys(tool for tools in runs.found.values() for tool in tools if tool.startswith(OURS))
    lines = ["Mean trials to 5 % (to 1 %), and how many of the first 20 failed:", "",
             line(["krigtune", *(f"{name} ({len(keys)})" for name, keys in sets.items())]), "|---|" + "---:|" * len(sets)]
    for tool in sorted(tools, key=lambda tool: not tool.startswith(BAYES)):
        strategy, _, variant = tool.removeprefix(OURS).partition(", ")
        told = variant.replace("_", " ") or "everything"
        lines.append(line([f"{strategy}: {told}", *(told_cell(runs, keys, tool) for keys in sets.values())]))
    return "\n".join(lines)


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def put_into(path, tables):
    before, begin, rest = path.read_text().partition("<!-- tables -->\n")
    _, end, after = rest.partition("<!-- /tables -->\n")
    if not begin or not end:
        sys.exit(f"{path}: the lines <!-- tables --> and <!-- /tables --> are missing")
    path.write_text(f"{before}{begin}\n{tables}\n{end}{after}")


def space_rows(runs):
    """One row per space and tool: means over its runs."""
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
    parser.add_argument("--into", type=pathlib.Path)
    parser.add_argument("--told", action="store_true")
    arguments = parser.parse_args()
    runs = Runs(arguments.out)
    if arguments.told:
        print(told_table(runs))
        return
    for path in arguments.peers:
        runs.add_peers(path)
    everything, sets, tables = [], {}, []
    for name, keys in runs.sets():
        rows = sorted((aggregate(runs, keys, tool) for tool in runs.tools(keys)), key=lambda row: row["to_5pct_mean"])
        if rows:
            tables.append(markdown(name, rows))
            everything += [{"set": name, **row} for row in rows]
            sets[name] = rows
    if sets:
        tables.append(wrong_physics(sets, dict.fromkeys(tool for tools in runs.found.values() for tool in tools)))
    print("\n".join(tables))
    if arguments.into:
        put_into(arguments.into, "\n".join(tables))
    if arguments.csv and everything:
        write_csv(arguments.csv, everything)
    if arguments.spaces:
        write_csv(arguments.spaces, list(space_rows(runs)))


if __name__ == "__main__":
    main()
