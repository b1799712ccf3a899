#!/usr/bin/env python3
"""What are predictions worth if only the size of the model is known? Standard library only.

usage: guessed_shape.py KRIGTUNE OUT [SEEDS]      (10 seeds take 3 minutes of a core)

Runs `bayes` on the spaces of ultrascale_dev (spaces.py) with the exact model, with a GPT
of the usual shape and the same number of parameters (src/deepspeed/session/ds_job.cpp)
at the right and at wrong sequence lengths, and without a workload. Prints the trials to
5 % and the failures among the first 20 trials, as means over the spaces of the means
over the seeds.
"""
import csv
import math
import pathlib
import subprocess
import sys

import spaces

GPT3 = [(125e6, 768, 64), (350e6, 1024, 64), (760e6, 1536, 96), (1.3e9, 2048, 128), (2.7e9, 2560, 80),
        (6.7e9, 4096, 128), (13e9, 5120, 128), (175e9, 12288, 128)]  # Brown et al. 2020, table 2.1
VOCAB = 50257


def parameters_of(model):
    """Parameters of Llama with as many keys and values as heads."""
    hidden, embeddings = model["hidden"], 1 if model["tied_embeddings"] else 2
    return model["layers"] * (4 * hidden ** 2 + 3 * hidden * model["ffn_hidden"]) + embeddings * model["vocab"] * hidden


def usual_shape(params):
    _, hidden, head = min(GPT3, key=lambda row: abs(math.log(row[0] / params)))
    layers = round((params - VOCAB * hidden) / (12 * hidden ** 2))
    return {"layers": layers, "hidden": hidden, "heads": hidden // head, "vocab": VOCAB}


def guessed(times):
    """The usual shape, with so many times the tokens of a sequence."""

    def change(session):
        session = spaces.copy(session)
        model = session["workload"]["model"]
        session["workload"]["model"] = {**usual_shape(parameters_of(model)), "seq_len": int(model["seq_len"] * times)}
        return session

    return change


VARIANTS = {"exact": spaces.copy, "guess": guessed(1), "guess_half": guessed(0.5), "guess_quarter": guessed(0.25),
            "guess_twice": guessed(2), "guess_four_times": guessed(4), "none": spaces.no_workload}


def score(rows, best):
    """Trials to 5 % and failures of one seed."""
    near = [int(row["trial"]) for row in rows if row["status"] == "ok" and float(row["value"]) >= 0.95 * best]
    return (near[0] + 1 if near else spaces.TRIALS + 1), sum(row["status"] != "ok" for row in rows[:20])


def compared(krigtune, out, session, seeds):
    """The mean score of a session's seeds."""
    subprocess.run([krigtune, "compare", session, "--strategies", "bayes", "--seeds", str(seeds), "--quiet", "--out",
                    out / "compare"], check=True, stdout=subprocess.DEVNULL)
    stem = pathlib.Path(session).stem.split("__")[0]
    with open(out / "tables" / f"{stem}.csv", newline="") as file:
        best = max(float(row["tokens_per_second"]) for row in csv.DictReader(file) if row["status"] == "ok")
    runs = {}
    with open(out / "compare" / "comparison.csv", newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault(row["seed"], []).append(row)
    scores = [score(rows, best) for rows in runs.values()]
    return [sum(column) / len(scores) for column in zip(*scores)]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    krigtune, out = sys.argv[1], pathlib.Path(sys.argv[2])
    seeds = int(sys.argv[3]) if len(sys.argv) == 4 else 10
    spaces.VARIANTS = {f"_{name}": change for name, change in VARIANTS.items()}
    spaces.write_spaces(out, {"ultrascale_dev": spaces.ultrascale})
    for name in VARIANTS:
        means = [compared(krigtune, out, path, seeds) for path in sorted((out / "sessions").glob(f"*__{name}.json"))]
        trials, failed = (sum(column) / len(means) for column in zip(*means))
        print(f"{name:16}  trials to 5 %: {trials:.2f}  failed of 20: {failed:.2f}")


if __name__ == "__main__":
    main()
