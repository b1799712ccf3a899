"""Measures configurations of the job of this folder alternately (A B C A B C ...),
by the times at which the lines of its steps arrive, independently of DeepSpeed's
and krigtune's own timing.

  measure_configs.py [--rounds N] [--steps N] OUT.csv NAME=FILE...

Writes round, configuration, step, and the seconds between the step's line and the one before. The first 5 steps are
left out.
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WARMUP = 5
STEP = re.compile(r"step (\d+) loss ")


def command(config, steps):
    return ["deepspeed", "--num_gpus", "2", "--master_port", os.environ.get("MASTER_PORT", "29500"), "train.py",
            "--deepspeed", "--deepspeed_config", str(config), "--steps", str(steps)]


def arrivals(config, steps):
    """Step number and the time of its line. gloo may abort after the last line, at the very end."""
    seen, output = [], []
    with subprocess.Popen(command(config, steps), cwd=HERE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as job:
        for line in job.stdout:
            found = STEP.search(line)
            if found:
                seen.append((int(found.group(1)), time.monotonic()))
            output.append(line)
    if [step for step, _ in seen] != list(range(1, steps + 1)):
        sys.exit(f"measure_configs.py: {config}: {len(seen)} steps of {steps}:\n{''.join(output[-20:])}")
    return seen


def measure(writer, round_, name, config, steps):
    seen = arrivals(config, steps)
    for (_, before), (step, now) in zip(seen[WARMUP - 1:], seen[WARMUP:]):
        writer.writerow([round_, name, step, f"{now - before:.6f}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--steps", type=int, default=30, help="of each run, the first 5 included (%(default)s)")
    parser.add_argument("out", type=Path)
    parser.add_argument("configs", nargs="+", metavar="NAME=FILE")
    args = parser.parse_args()
    configs = [(name, Path(file).resolve()) for name, file in (word.split("=", 1) for word in args.configs)]
    with open(args.out, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["round", "configuration", "step", "step_time_s"])
        for round_ in range(1, args.rounds + 1):
            for name, config in configs:
                measure(writer, round_, name, config, args.steps)
                file.flush()


if __name__ == "__main__":
    main()
