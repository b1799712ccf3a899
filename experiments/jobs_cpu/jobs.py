"""The jobs that check.py tunes: their users' commands, what may vary, their output, and a grid of 16 configurations."""
import itertools
import re
import statistics
from pathlib import Path

HERE = Path(__file__).resolve().parent
RANKS = 2
TORCHRUN = ["torchrun", "--standalone", "--nproc-per-node", str(RANKS)]
SEQUENCES = 8  # per step and rank
SKIPPED_STEPS = 2  # the first two warm up


class Job:
    """One job. Its command has `steps` steps. Flags set a configuration; the last of two equal flags counts."""

    def __init__(self, name, command, options, grid, throughput, flags_of, unit="tokens/s", trials=10):
        self.name, self.command, self.options, self.trials, self.unit = name, command, options, trials, unit
        self.grid = grid  # list of dictionaries
        self.throughput = throughput  # output -> samples or tokens per second; None if it did not train
        self.flags_of = flags_of  # dictionary -> words


def product(**values):
    return [dict(zip(values, point)) for point in itertools.product(*values.values())]


def median_of(pattern, text):
    """The rates that the steps print, without the first ones."""
    values = [float(found) for found in re.findall(pattern, text)][SKIPPED_STEPS:]
    return statistics.median(values) if values else None


def hf_throughput(text):
    """Hugging Face prints tokens and seconds since the start: the difference of two lines is a step."""
    seen = [(float(tokens), float(seconds)) for tokens, seconds in
            re.findall(r"'num_input_tokens_seen': '?([0-9.e+]+)'?, 'train_runtime': '?([0-9.e+]+)", text)]
    steps = [(b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(seen, seen[1:]) if b[1] > a[1]][1:]
    return statistics.median(steps) if steps else None


def fsdp():
    def flags(point):
        return ["--mbs", str(point["mbs"]), "--ga", str(SEQUENCES // point["mbs"]), "--stage", str(point["stage"]),
                "--recompute", point["recompute"]]
    command = TORCHRUN + [str(HERE / "train_fsdp.py"), "--mbs", "1", "--ga", str(SEQUENCES), "--stage", "3",
                          "--recompute", "full", "--steps", "20"]
    options = ["--vary", "micro_batch=--mbs:1,2,4,8", "--vary", "gradient_accumulation_steps=--ga:1,2,4,8",
               "--vary", "zero_stage=--stage:0,2,3", "--vary", "activation_checkpointing=--recompute:none,full",
               "--metric", "tokens/s ([0-9.]+)"]
    return Job("torchrun, FSDP2", command, options, product(mbs=[1, 2, 4, 8], stage=[0, 3], recompute=["none", "full"]),
               lambda text: median_of(r"tokens/s ([0-9.]+)", text), flags)


HF_FLAGS = ["--use_cpu", "--max_steps", "20", "--logging_steps", "1", "--save_strategy", "no", "--report_to", "none",
            "--disable_tqdm", "true", "--include_num_input_tokens_seen", "true", "--per_device_train_batch_size", "1",
            "--gradient_accumulation_steps", str(SEQUENCES)]


def hf_flags(point):
    return ["--per_device_train_batch_size", str(point["mbs"]), "--gradient_accumulation_steps", str(SEQUENCES // point["mbs"]),
            "--activation_checkpointing", point["recompute"], "--ddp_find_unused_parameters", point["unused"]]


def hf_grid():
    return product(mbs=[1, 2, 4, 8], recompute=["false", "true"], unused=["false", "true"])


def trainer(folder):
    command = TORCHRUN + [str(HERE / "train_hf.py"), "--output_dir", str(folder / "output"), *HF_FLAGS]
    return Job("Hugging Face Trainer", command, [], hf_grid(), hf_throughput, hf_flags)


def sft(folder):
    """TRL's own program; recomputation is on unless it is disabled."""
    command = TORCHRUN + ["-m", "trl.scripts.sft", "--model_name_or_path", str(folder / "tiny/model"), "--dataset_name",
                          str(folder / "tiny/data"), "--packing", "true", "--max_length", "64", "--bf16", "false",
                          "--output_dir", str(folder / "output"), *HF_FLAGS]
    return Job("TRL sft", command, [], hf_grid(), hf_throughput, hf_flags)


def lightning():
    def flags(point):
        return ["--data.batch_size", str(point["batch"]), "--data.workers", str(point["workers"]),
                "--model.recompute", point["recompute"]]
    command = ["python3", str(HERE / "train_lightning.py"), "fit", "--trainer.accelerator", "cpu", "--trainer.devices",
               str(RANKS), "--trainer.strategy", "ddp", "--trainer.logger", "false", "--trainer.enable_checkpointing",
               "false", "--trainer.callbacks+=lightning.pytorch.callbacks.TQDMProgressBar",
               "--trainer.callbacks.refresh_rate", "1", "--trainer.max_steps", "20", "--data.batch_size", "1",
               "--data.workers", "0", "--model.recompute", "true"]
    options = ["--vary", "batch=--data.batch_size:1,2,4,8", "--vary", "workers=--data.workers:0,1",
               "--vary", "recompute=--model.recompute:true,false", "--metric", r"samples_per_s=([0-9.e+]+)"]
    return Job("Lightning, DDP", command, options, product(batch=[1, 2, 4, 8], workers=[0, 1], recompute=["true", "false"]),
               lambda text: median_of(r"samples_per_s=([0-9.e+]+)", text), flags, "samples/s")


def all_jobs(folder, short):
    """Folders of the jobs, by the prefix of their logs."""
    jobs = {"fsdp": fsdp()}
    if not short:
        jobs.update(trainer=trainer(folder / "trainer"), sft=sft(folder / "sft"), lightning=lightning())
    return jobs
