#!/usr/bin/env python3
"""Trials that a warm start saves, and that a poisoned one costs. Standard library only.

usage: measure.py KRIGTUNE OUT_DIR [--seeds N] [--only TEXT]

Each space is searched cold, and warm-started from a neighbour (the next number of GPUs up
and down; vTrain: the next number of layers): `good` from 20 trials of bayes there,
`shuffled` and `inverse` from 40 random trials of a table whose values were permuted or
inverted first. Writes OUT_DIR/warm_start.csv (a row per run) and prints means over pairs.
Existing results are not computed again.
"""
import argparse
import collections
import csv
import json
import pathlib
import random
import statistics
import subprocess
import sys

SEARCH = pathlib.Path(__file__).resolve().parent.parent / "search"
BUDGET = 40
KINDS = ("good", "shuffled", "inverse")
VARIANTS = ("physics", "no_workload", "links_slow")


def neighbours(rows):
    """{(set, space): [space]}: spaces that differ by one step."""
    lines = collections.defaultdict(set)  # a space has a row for each variant
    for row in rows:
        parts = row["space"].split("-")
        if row["set"] == "ultrascale_dev":
            lines[row["set"], parts[0]].add((int(parts[1]), row["space"]))
        elif row["set"] == "vtrain":
            hidden, layers, gpus, batch = map(int, parts)
            lines[row["set"], hidden, gpus, batch].add((layers, row["space"]))
    found = {}
    for key, line in lines.items():
        names = [name for _, name in sorted(line)]
        for i, name in enumerate(names):
            found[key[0], name] = names[max(i - 1, 0):i] + names[i + 1:i + 2]
    return found


def poisoned(session, kind, path):
    """The same session over a table with wrong values."""
    session = json.loads(json.dumps(session))
    table = pathlib.Path(session["runner"]["table"])
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    column = session["runner"]["value"]
    ok = [row for row in rows if row[column]]
    values = [float(row[column]) for row in ok]
    scale = statistics.median(values) ** 2
    wrong = [scale / value for value in values]
    if kind == "shuffled":
        wrong = values[:]
        random.Random(table.stem).shuffle(wrong)
    for row, value in zip(ok, wrong):
        row[column] = repr(value)
    session["runner"]["table"] = str(path.with_suffix(".csv"))
    with open(path.with_suffix(".csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    path.write_text(json.dumps(session))
    return path


class Runs:
    def __init__(self, krigtune, out):
        self.krigtune, self.out = krigtune, out

    def tune(self, session, name, trials, seed, strategy="bayes", earlier=None):
        directory = self.out / "runs" / name
        if not (directory / "trials.csv").exists():
            words = [self.krigtune, "tune", str(session), "--out", str(directory), "--trials", str(trials), "--seed", str(seed),
                     "--strategy", strategy, "--full-budget", "--quiet", "--fresh"]
            if earlier:
                words += ["--warm-start", str(earlier)]
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return directory

    def trials_to(self, directory, session, share):
        spec = json.loads(pathlib.Path(session).read_text())
        smaller = spec["objective"].get("metric") == "latency" or spec["objective"].get("direction") == "minimize"
        with open(pathlib.Path(session).parent / spec["runner"]["table"], newline="") as file:
            values = [float(row[spec["runner"]["value"]]) for row in csv.DictReader(file) if row[spec["runner"]["value"]]]
        best = min(values) if smaller else max(values)
        with open(directory / "trials.csv", newline="") as file:
            for count, row in enumerate(csv.DictReader(file), 1):
                if row["status"] != "ok":
                    continue
                value = float(row["value"])
                if (best / value if smaller else value / best) >= share:
                    return count
        return BUDGET + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("krigtune")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    out = options.out.resolve()
    subprocess.run([sys.executable, SEARCH / "spaces.py", out], check=True, stdout=subprocess.DEVNULL)
    with open(out / "spaces.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    sessions = {(row["set"], row["space"], row["variant"]): out / row["session"] for row in rows}
    (out / "poisoned").mkdir(exist_ok=True)
    runs, results = Runs(options.krigtune, out), []
    for (group, space), others in neighbours(rows).items():
        for variant in VARIANTS:
            target = sessions.get((group, space, variant))
            if target is None or options.only not in f"{group}_{space}_{variant}":
                continue
            for other in others:
                source = sessions[group, other, variant]
                earlier = {"good": runs.tune(source, f"{source.stem}_earlier", 20, 7)}
                for kind in ("shuffled", "inverse"):
                    name = f"{source.stem}_{kind}"
                    path = out / "poisoned" / f"{name}.json"
                    session = json.loads(source.read_text())
                    session["runner"]["table"] = str((source.parent / session["runner"]["table"]).resolve())
                    earlier[kind] = runs.tune(poisoned(session, kind, path), name, BUDGET, 7, "random")
                for seed in range(1, options.seeds + 1):
                    kinds = {"cold": None, **earlier}
                    for kind, directory in kinds.items():
                        name = f"{target.stem}_{seed}" + (f"_{kind}_{other}" if directory else "")
                        run = runs.tune(target, name, BUDGET, seed, earlier=directory)
                        results.append((group, space, variant, other, seed, kind, runs.trials_to(run, target, 0.95),
                                        runs.trials_to(run, target, 0.99)))
    with open(out / "warm_start.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["set", "space", "variant", "from", "seed", "kind", "trials_to_5pct", "trials_to_1pct"])
        writer.writerows(results)
    summary = collections.defaultdict(list)
    for row in results:
        summary[row[0], row[2], row[5]].append(row[6:])
    print("set,variant,kind,runs,trials_to_5pct_mean,trials_to_1pct_mean")
    for key, found in summary.items():
        means = [f"{statistics.mean(row[i] for row in found):.2f}" for i in (0, 1)]
        print(",".join([*key, str(len(found)), *means]))


if __name__ == "__main__":
    main()
