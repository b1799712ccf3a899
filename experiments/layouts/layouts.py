#!/usr/bin/env python3
"""Where does `krigtune plan` put the layouts that large models were really trained with? Standard library only.

usage: layouts.py [--krigtune PATH] [--csv FILE]

Plans each session of this directory, ranks the configurations that fit more likely than not by their predicted step
time, and prints the place of the published layout: of the fastest configuration that has what the source states.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# What the sources in the sessions' comments state.
PUBLISHED = {
    "llama3_405b": {"tensor_parallel": 8, "pipeline_parallel": 16, "context_parallel": 1},
    "deepseek_v3": {"tensor_parallel": 1, "pipeline_parallel": 16, "context_parallel": 1, "expert_parallel": 64,
                    "activation_checkpointing": "selective", "recompute_modules": "layernorm+mla_up_proj+moe_act"},
    "qwen3_235b": {"tensor_parallel": 2, "pipeline_parallel": 8, "virtual_pipeline": 4, "context_parallel": 1,
                   "expert_parallel": 32, "moe_overlap": "true", "micro_batch": 1, "activation_checkpointing": "none"},
    "mixtral_8x22b": {"tensor_parallel": 2, "pipeline_parallel": 8, "context_parallel": 1, "expert_parallel": 8,
                      "expert_tensor_parallel": 1},
}
COLUMNS = ["session", "published", "configurations", "fitting", "place", "place_within", "step_time_s", "over_fastest",
           "fits", "fastest", "plan_s"]


def plan(krigtune, session, folder):
    """Returns the predictions of all configurations, and the seconds that this took."""
    table = pathlib.Path(folder, session.stem + ".csv")
    begun = time.monotonic()
    subprocess.run([krigtune, "plan", session, "--csv", table, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    with open(table, newline="") as file:
        return list(csv.DictReader(file)), seconds


def words(row, names):
    return " ".join(f"{name}={row[name]}" for name in names)


def is_published(row, published):
    return all(row[name] == str(value) for name, value in published.items())


def result_of(session, rows, seconds):
    published = PUBLISHED[session.stem]
    varied = [name for name in rows[0] if name in parameters_of(session)]
    fitting = sorted((row for row in rows if row["probability_fits"] and float(row["probability_fits"]) >= 0.5),
                     key=lambda row: float(row["predicted_step_time_s"]))
    own = [row for row in rows if is_published(row, published) and row["predicted_step_time_s"]]
    own.sort(key=lambda row: (row not in fitting, float(row["predicted_step_time_s"])))
    if not own:
        raise SystemExit(f"{session.name}: no configuration is as published: {words(published, published)}")
    best = own[0]
    # Places among other layouts: rows that differ in what the source does not state are one layout.
    layouts = list(dict.fromkeys(words(row, published) for row in fitting))
    layout = words(best, published)
    return dict(zip(COLUMNS, [
        session.stem, words(published, published), len(rows), len(fitting),
        fitting.index(best) + 1 if best in fitting else "", layouts.index(layout) + 1 if layout in layouts else "",
        best["predicted_step_time_s"],
        f"{float(best['predicted_step_time_s']) / float(fitting[0]['predicted_step_time_s']):.3f}",
        best["probability_fits"], words(fitting[0], varied), f"{seconds:.1f}"]))


def parameters_of(session):
    """The parameters that the session varies; its comments are taken away."""
    text = re.sub(r"^\s*//.*$", "", session.read_text(), flags=re.MULTILINE)
    return json.loads(text)["space"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2])
    parser.add_argument("--krigtune", default=HERE / "../../build/release/bin/krigtune")
    parser.add_argument("--csv")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in PUBLISHED:
            session = HERE / f"{name}.json"
            results.append(result_of(session, *plan(options.krigtune, session, folder)))
            print("\n".join(f"{column:15} {value}" for column, value in results[-1].items()) + "\n")
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(results)


if __name__ == "__main__":
    main()
