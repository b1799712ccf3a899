#!/usr/bin/env python3
"""Trains each configuration with krigtune-bench and with PyTorch in turns, round by round. Each run is a row of OUT/runs.csv.

  measure.py OUT --bench build/release/bin/krigtune-bench --python PYTHON_WITH_TORCH [--rounds 3] [--device cuda]

Runs that are in the file already are not repeated, so an interrupted measurement continues where it stopped.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import sys
import time

import configurations
import ranks

COLUMNS = ["round", "configuration", "program", "step_time_s", "step_time_p10_s", "measured_steps", "peak_bytes",
           "process_peak_bytes", "forward_s", "backward_s", "optimizer_s", "loss_first", "loss_fifth", "load"]
HERE = pathlib.Path(__file__).resolve().parent


def bench(options, row, job):
    beats = options.out / "beats.jsonl"
    beats.unlink(missing_ok=True)
    command = [options.bench, "--config", job, "--json", "--device", options.device, "--warmup-s", str(options.warmup_s),
               "--measure-s", str(options.measure_s), "--heartbeat", beats]
    result = json.loads(ranks.run(row.ranks, command, first=options.first))
    losses = [beat["loss"] for beat in map(json.loads, beats.read_text().splitlines()) if "loss" in beat]
    return result, result["planned_peak_bytes"], losses


def pytorch(options, row, job, *more):
    command = [options.python, HERE.parent / "gpu" / "torch_reference.py", "--config", job, "--device", options.device,
               "--warmup-s", str(options.warmup_s), "--measure-s", str(options.measure_s), *more]
    result = json.loads(ranks.run(row.ranks, command, first=options.first))
    return result, result["arena_peak_bytes"], result["losses"]


# glibc's allocator keeps freed memory, for each thread separately. With these settings it returns every tensor at once.
RETURN_MEMORY = {"MALLOC_ARENA_MAX": 1, "MALLOC_MMAP_THRESHOLD_": 65536, "MALLOC_TRIM_THRESHOLD_": 0}


def memory(options, row, job):
    """Three steps, which may be slow: only their memory counts."""
    command = [options.python, HERE.parent / "gpu" / "torch_reference.py", "--config", job, "--device", options.device,
               "--steps", "3"]
    result = json.loads(ranks.run(row.ranks, command, first=options.first, more_variables=RETURN_MEMORY))
    return result, result["arena_peak_bytes"], result["losses"]


def compiled(options, row, job):
    return pytorch(options, row, job, "--compile", "--fused")


def measured(options, row, program, train, number):
    job = options.out / "job.json"
    job.write_text(row.job())
    load = os.getloadavg()[0]
    begin = time.monotonic()
    result, peak, losses = train(options, row, job)
    if options.first and train is not memory:
        time.sleep((time.monotonic() - begin) / 2)
    found = {**result, **result["breakdown"], "round": number, "configuration": row.name, "program": program,
             "peak_bytes": peak, "loss_fifth": losses[4] if len(losses) > 4 else None, "load": f"{load:.1f}"}
    return {key: found.get(key) for key in COLUMNS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup-s", type=float, default=0.5)
    parser.add_argument("--measure-s", type=float, default=2.0)
    parser.add_argument("--first", action="store_true",
                        help="before all other programs of this machine (needs root), with half as long a pause behind each run")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="which configurations, and where")
    parser.add_argument("--compiled", action="store_true", help="also PyTorch with torch.compile and fused AdamW")
    parser.add_argument("--program", help="only this one: krigtune-bench, pytorch, pytorch-compiled, pytorch-memory")
    parser.add_argument("--only", default="", help="configurations whose name has this")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "runs.csv"
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {(row["round"], row["configuration"], row["program"]) for row in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for number in range(1, options.rounds + 1):
            rows = [row for row in configurations.rows(options.device) if options.only in row.name]
            random.Random(number).shuffle(rows)
            for row in rows:
                turns = [("krigtune-bench", bench), ("pytorch", pytorch)]
                turns += [("pytorch-compiled", compiled)] if options.compiled else []
                turns += [("pytorch-memory", memory)] if number == 1 and options.device == "cpu" else []
                turns = [turn for turn in turns if not options.program or turn[0] == options.program]
                for program, train in turns if number % 2 else reversed(turns):
                    if (str(number), row.name, program) in done:
                        continue
                    found = measured(options, row, program, train, number)
                    writer.writerow(found)
                    file.flush()
                    print(f"round {number}  {row.name:28} {program:15} {1e3 * found['step_time_s']:8.1f} ms  "
                          f"load {found['load']}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
