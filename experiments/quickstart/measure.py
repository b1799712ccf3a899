#!/usr/bin/env python3
"""Measures every configuration of a bench session that fits, several times, interleaved in random order.

usage: measure.py SESSION TABLE.csv [--repeats 3] [--seed 1] [--bin build/release/bin]

Each row is one measurement: the parameters, repeat, status, samples_per_s, value_sem,
step_time_s, exposed_comm_s, peak_memory_bytes. Rows are appended as they come, and the
same command continues an interrupted run. Each repeat visits the whole space in an
order of its own, so that a slow minute of the machine does not affect one region only.
"""
import argparse
import csv
import json
import os
import random
import re
import subprocess
import sys
import tempfile

RESULTS = ["status", "samples_per_s", "value_sem", "step_time_s", "exposed_comm_s", "peak_memory_bytes"]
BEHIND_PARAMETERS = "predicted_value"  # first column of `krigtune plan --csv` that is not a parameter


def without_comments(text):
    """Removes comments and trailing commas; the session files here have no // inside strings."""
    text = re.sub(r"//.*", "", text)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


def feasible_configurations(krigtune, session):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "plan.csv")
        subprocess.run([krigtune, "plan", session, "--csv", table], check=True, stdout=subprocess.DEVNULL)
        with open(table, newline="") as file:
            rows = list(csv.DictReader(file))
    names = list(rows[0])[: list(rows[0]).index(BEHIND_PARAMETERS)]
    return names, [tuple(row[name] for name in names) for row in rows if row["memory_verdict"] == "fits"]


def value_of(text):
    return {"true": True, "false": False}[text] if text in ("true", "false") else json.loads(text)


def measure(bench, session, names, point, folder):
    config = {key: session[key] for key in ("workload", "cluster", "memory")}
    config["configuration"] = {name: value_of(text) for name, text in zip(names, point)}
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config, file)
    runner = session["runner"]
    run = subprocess.run([bench, "--config", path, "--json", "--warmup-s", str(runner["warmup_s"]),
                          "--measure-s", str(runner["measure_s"])], capture_output=True, text=True)
    result = json.loads(run.stdout)
    if result["status"] != "ok":
        return [result["status"], "", "", "", "", ""]
    sem = result["samples_per_s"] * result["step_time_sem_s"] / result["step_time_s"]
    return ["ok", result["samples_per_s"], sem, result["step_time_s"], result["exposed_comm_s"],
            result["arena_peak_bytes"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("session")
    parser.add_argument("table")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bin", default="build/release/bin")
    arguments = parser.parse_args()
    with open(arguments.session) as file:
        session = without_comments(file.read())
    names, points = feasible_configurations(os.path.join(arguments.bin, "krigtune"), arguments.session)
    todo = []
    for repeat in range(arguments.repeats):
        order = points[:]
        random.Random(f"{arguments.seed}/{repeat}").shuffle(order)
        todo += [(repeat, point) for point in order]
    done = 0
    if os.path.exists(arguments.table):
        with open(arguments.table, newline="") as file:
            done = sum(1 for _ in csv.DictReader(file))
    with open(arguments.table, "a", newline="") as file, tempfile.TemporaryDirectory() as folder:
        writer = csv.writer(file, lineterminator="\n")
        if done == 0:
            writer.writerow(names + ["repeat"] + RESULTS)
        for index, (repeat, point) in enumerate(todo[done:], start=done):
            bench = os.path.join(arguments.bin, "krigtune-bench")
            writer.writerow(list(point) + [repeat] + measure(bench, session, names, point, folder))
            file.flush()
            print(f"\r{index + 1} of {len(todo)}", end="", file=sys.stderr)
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
