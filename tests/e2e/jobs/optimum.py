"""The best configuration of a session's space according to simulated_step.py, found by trying all of them.

usage: optimum.py JOB RUN          JOB: megatron or torchtitan; RUN: a directory that `krigtune tune` wrote

Prints the milliseconds of the best step, those of RUN's best trial, the number of configurations, and how many run.
"""
import csv
import itertools
import json
import sys
from pathlib import Path

import simulated_step as simulated
from torchtitan.train import FLAVOURS

JOBS = {"megatron": (simulated.Model(32, 4096, 32, 32000, 4096), 8, 128, 1.03),  # model, ranks, sequences, reserved / allocated
        "torchtitan": (FLAVOURS["llama3", "llama3_8b"], 8, 64, 1.0)}
# The job's values if the session does not set them.
ALWAYS = {"megatron": {}, "torchtitan": {"overlap_comm": True, "overlap_param_gather": True, "sequence_parallel": True,
                                         "zero_stage": 3}}


def values_of(parameter):
    """The values of a list, or of a range in steps or in powers of two."""
    if isinstance(parameter, list):
        return parameter
    if "values" in parameter:
        return parameter["values"]
    low, high = parameter["min"], parameter["max"]
    if parameter.get("scale") == "log2":
        return [low * 2**i for i in range(64) if low * 2**i <= high]
    if "steps" in parameter:
        return [low * (high / low) ** (i / (parameter["steps"] - 1)) for i in range(parameter["steps"])]
    return list(range(low, high + 1, parameter.get("step", 1)))


def allowed(job, configuration):
    """Why the stand-in itself refuses, in addition to simulated.trouble()."""
    c = simulated.with_defaults(configuration)
    if c["overlap_param_gather"] and not (c["overlap_comm"] and c["zero_stage"] >= 1) and job == "megatron":
        return False
    return c["virtual_pipeline"] == 1 or c["pipeline_parallel"] > 1


def main():
    job, run = sys.argv[1], Path(sys.argv[2])
    model, world, batch, reserved = JOBS[job]
    space = json.loads((run / "session.json").read_text())["space"]
    names = [name for name in space if name != "gradient_accumulation_steps"]
    unknown = [name for name in names if name not in simulated.DEFAULTS]
    if unknown:
        sys.exit(f"the formula has no {', '.join(unknown)}")
    times = []
    count = 0
    for point in itertools.product(*(values_of(space[name]) for name in names)):
        configuration = dict(ALWAYS[job], **dict(zip(names, point)))
        if not allowed(job, configuration) or simulated.trouble(model, world, batch, configuration):
            continue
        count += 1
        if reserved * simulated.peak_gib(model, world, batch, configuration) <= simulated.LIMIT_GIB:
            times.append((simulated.step_s(model, world, batch, configuration), json.dumps(dict(zip(names, point)))))
    with open(run / "trials.csv", encoding="utf-8", newline="") as file:
        measured = [float(row["step_time_s"]) for row in csv.DictReader(file) if row["status"] == "ok"]
    best, where = min(times)
    print(f"{1e3 * best:.1f} {1e3 * min(measured):.1f} {count} {len(times)} {where}")


if __name__ == "__main__":
    main()
