#!/usr/bin/env python3
"""Combines the runs of measure.py with the predictions of krigtune plan: OUT/table.csv, summary.md, scatter.svg.

  summarize.py OUT --krigtune build/release/bin/krigtune

OUT has runs.csv and, for N CPU ranks, ranks_N.json (krigtune doctor --measure --out on N processes) and torch_N.json
(torch_rates.py).
"""
import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

import configurations
import scatter

# FrameworkTraits of src/cost/framework.cpp. torch_reference.py reports the bytes that PyTorch has allocated, without
# the context and without what the allocator keeps.
CONTEXT_BYTES, FRAGMENTATION = 1.5e9, 1.06


def ranks_of(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    places = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for i in order[at:end]:
            places[i] = (at + end - 1) / 2
        at = end
    return places


def spearman(xs, ys):
    a, b = ranks_of(xs), ranks_of(ys)
    ma, mb = statistics.fmean(a), statistics.fmean(b)
    above = sum((x - ma) * (y - mb) for x, y in zip(a, b))
    below = math.sqrt(sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b))
    return above / below if below else float("nan")


def read_runs(out):
    runs = {}
    with (out / "runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault((row["configuration"], row["program"]), []).append(row)
    return runs


def median(runs, column):
    values = [float(run[column]) for run in runs if run[column]]
    return statistics.median(values) if values else math.nan


def predict(options, row, framework, cluster):
    """The seconds and bytes that krigtune plan predicts."""
    session, table = options.out / "session.json", options.out / "plan.csv"
    session.write_text(row.session(framework, cluster))
    subprocess.run([options.krigtune, "plan", session, "--csv", table, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    with table.open(newline="") as file:
        (planned,) = csv.DictReader(file)
    session.unlink()
    table.unlink()
    return float(planned["predicted_step_time_s"]), float(planned["predicted_memory_bytes"])


def predictions(options, row):
    if row.ranks == 1:
        bench_s, bench_bytes = predict(options, row, "krigtune", {"gpu": options.gpu})
        torch_s, torch_bytes = predict(options, row, "fsdp", {"gpu": options.gpu})
        return {"krigtune_predicted_s": bench_s, "krigtune_predicted_bytes": bench_bytes, "torch_predicted_s": torch_s,
                "torch_predicted_bytes": (torch_bytes - CONTEXT_BYTES) / FRAGMENTATION}
    ranks = options.out.resolve() / f"ranks_{row.ranks}.json"
    torch = options.out.resolve() / f"torch_{row.ranks}.json"
    loopback = json.loads(ranks.read_text())["links"]["cpu-node"]
    network = {"latency_us": loopback["latency_us"], "bytes_per_s": loopback["bytes_per_s"]}
    local = {"gpu": "local", "hardware": str(ranks), "emulate_network": network}
    doctor = {"gpu": "cpu-rank", "interconnect": "cpu-node", "hardware": str(ranks)}
    measured = {"nodes": row.ranks, "gpus_per_node": 1, "gpu": "torch-rank", "network": "fsdp2" if row.stage else "gloo",
                "hardware": str(torch)}
    bench_s, bench_bytes = predict(options, row, "krigtune", local)
    doctor_s, torch_bytes = predict(options, row, "fsdp", doctor)
    torch_s, _ = predict(options, row, "fsdp", measured)
    return {"krigtune_predicted_s": bench_s, "krigtune_predicted_bytes": bench_bytes, "torch_from_doctor_s": doctor_s,
            "torch_predicted_s": torch_s,
            "torch_predicted_bytes": (torch_bytes - CONTEXT_BYTES) / FRAGMENTATION}


def spread(runs):
    values = [float(run["step_time_s"]) for run in runs]
    return max(values) / min(values) - 1


def table_row(options, row, runs):
    bench, torch = runs[row.name, "krigtune-bench"], runs[row.name, "pytorch"]
    memory = runs.get((row.name, "pytorch-memory"), torch)
    found = {"configuration": row.name, "model": row.model, "ranks": row.ranks, **row.chosen(), "tokens": row.tokens(),
             "krigtune_s": median(bench, "step_time_s"), "torch_s": median(torch, "step_time_s"),
             "krigtune_spread": spread(bench), "torch_spread": spread(torch),
             "krigtune_bytes": median(bench, "peak_bytes"), "torch_bytes": median(memory, "peak_bytes"),
             "torch_resident_bytes": median(torch, "peak_bytes"),
             "torch_forward_s": median(torch, "forward_s"), "torch_backward_s": median(torch, "backward_s"),
             "torch_optimizer_s": median(torch, "optimizer_s"),
             "loss_first_difference": abs(median(bench, "loss_first") - median(torch, "loss_first")),
             "loss_fifth_difference": abs(median(bench, "loss_fifth") - median(torch, "loss_fifth"))}
    return {**found, **predictions(options, row)}


def groups(table):
    found = {"all": table}
    for row in table:
        found.setdefault(f"{row['model']}, {row['ranks']} ranks", []).append(row)
    return found


# (title, column, column to compare with)
PAIRS = [("PyTorch by krigtune-bench", "krigtune_s", "torch_s"),
         ("krigtune-bench by `plan`", "krigtune_predicted_s", "krigtune_s"),
         ("PyTorch by `plan`, rates of `doctor --measure`", "torch_from_doctor_s", "torch_s"),
         ("PyTorch by `plan`, PyTorch's rates", "torch_predicted_s", "torch_s")]


def correlations(table):
    lines = ["| | step time | tokens/s | tokens/s within " + " | within ".join(list(groups(table))[1:])
             + " | ratio: median (range) |", "|---|" + "---:|" * (len(groups(table)) + 2)]
    for what, one, other in (pair for pair in PAIRS if pair[1] in table[0]):
        def rates(rows, column):
            return [row["tokens"] / row[column] for row in rows]
        cells = [f"{spearman([r[one] for r in table], [r[other] for r in table]):.3f}"]
        cells += [f"{spearman(rates(rows, one), rates(rows, other)):.3f}" for rows in groups(table).values()]
        ratios = [row[other] / row[one] for row in table]
        cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    for what, one, other in [("peak memory: PyTorch by krigtune-bench", "krigtune_bytes", "torch_bytes"),
                             ("peak memory: PyTorch by `plan`", "torch_predicted_bytes", "torch_bytes"),
                             ("peak memory: kept by glibc by PyTorch's tensors", "torch_bytes", "torch_resident_bytes")]:
        ratios = [row[other] / row[one] for row in table]
        lines.append(f"| {what} | {spearman([r[one] for r in table], [r[other] for r in table]):.3f} |"
                     + " |" * len(groups(table)) + f" {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) |")
    return lines


def configuration_lines(table):
    lines = ["| configuration | krigtune-bench | PyTorch | ratio | plan: bench | plan: PyTorch | peak, MiB: bench | PyTorch | plan |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for row in table:
        times = [f"{1e3 * row[key]:.0f}" for key in ("krigtune_s", "torch_s")]
        planned = [f"{1e3 * row[key]:.0f}" for key in ("krigtune_predicted_s", "torch_predicted_s")]
        peaks = [f"{row[key] / 2**20:.0f}" for key in ("krigtune_bytes", "torch_bytes", "torch_predicted_bytes")]
        lines.append("| " + " | ".join([row["configuration"], *times, f"{row['torch_s'] / row['krigtune_s']:.2f}", *planned,
                                        *peaks]) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--krigtune", required=True)
    parser.add_argument("--gpu", help="the id that krigtune knows it by: the runs are of the configurations for one GPU")
    options = parser.parse_args()
    runs = read_runs(options.out)
    complete = [row for row in configurations.rows("cuda" if options.gpu else "cpu")
                if all((row.name, program) in runs for program in ("krigtune-bench", "pytorch"))]
    table = [table_row(options, row, runs) for row in complete]
    with (options.out / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
                         for row in table)
    losses = max(max(row["loss_first_difference"], row["loss_fifth_difference"]) for row in table
                 if math.isfinite(row["loss_fifth_difference"]))
    spreads = {who: statistics.median(row[f"{who}_spread"] for row in table) for who in ("krigtune", "torch")}
    summary = [f"{len(table)} configurations. Spearman's rank correlation; ratio: measured over what it is compared with.", "",
               *correlations(table), "",
               f"Losses of the first and the fifth step differ by {losses:.1e} at the most. Largest over smallest of the rounds: "
               f"krigtune-bench {1 + spreads['krigtune']:.2f}, PyTorch {1 + spreads['torch']:.2f} in the median.", "",
               "Milliseconds a step, medians of the rounds:", "", *configuration_lines(table)]
    (options.out / "summary.md").write_text("\n".join(summary) + "\n")
    (options.out / "scatter.svg").write_text(scatter.draw(table))
    print("\n".join(summary))


if __name__ == "__main__":
    sys.exit(main())
