"""Trains the same 16 steps of 16 sequences in configurations that should train alike,
and records every loss.

usage: $(./setup.sh) record_losses.py FILE.csv        (2 ranks, 14 configurations of 10 to 20 s each)

Seven configurations (stages 0 to 3, splits of the batch, small buckets with
overlap) in fp32 and in bf16, with the same data, weights and AdamW. Each step
is a row. They show how rounding alone changes a loss, and how a wrong stage does.
"""
import csv
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.dirname(os.path.abspath(sys.executable))
STEPS = 16
COLUMNS = ["precision", "zero_stage", "micro_batch", "gradient_accumulation_steps", "reduce_bucket_size", "overlap_comm"]
CONFIGURATIONS = [(0, 2, 4, 500_000_000, False), (0, 8, 1, 500_000_000, False), (1, 2, 4, 500_000_000, False),
                  (1, 2, 4, 10_000, True), (2, 4, 2, 100_000, True), (3, 2, 4, 100_000, True),
                  (3, 8, 1, 500_000_000, False)]


def ds_config(precision, stage, micro_batch, accumulation, bucket, overlap):
    config = {"train_micro_batch_size_per_gpu": micro_batch, "gradient_accumulation_steps": accumulation,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}, "gradient_clipping": 1.0,
              "zero_optimization": {"stage": stage, "reduce_bucket_size": bucket, "overlap_comm": overlap}}
    return config if precision == "fp32" else {**config, precision: {"enabled": True}}


def free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return str(one.getsockname()[1])


def losses_of(config):
    environment = {**os.environ, "PATH": BIN + ":" + os.environ["PATH"], "DS_ACCELERATOR": "cpu", "LOCAL_SIZE": "2",
                   "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        run = subprocess.run(
            [os.path.join(BIN, "torchrun"), "--nproc_per_node", "2", "--master_port", free_port(),
             os.path.join(HERE, "train.py"), "--deepspeed", file.name, "--steps", str(STEPS)],
            env=environment, capture_output=True, text=True, timeout=300, check=False)
    losses = re.findall(r"^step \d+ loss ([\d.]+)", run.stdout, re.MULTILINE)
    if len(losses) != STEPS:
        sys.exit(f"record_losses.py: {len(losses)} of {STEPS} losses:\n{run.stderr[-2000:]}")
    return losses


def main():
    with open(sys.argv[1], "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*COLUMNS, "step", "loss"])
        for precision in ("fp32", "bf16"):
            for configuration in CONFIGURATIONS:
                for step, loss in enumerate(losses_of(ds_config(precision, *configuration)), 1):
                    rows.writerow([precision, *map(str, configuration[:4]), str(configuration[4]).lower(), step, loss])


if __name__ == "__main__":
    main()
