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
    """One job. Flags set a configuration; the last of two equal flags counts."""

    def __init__(self, name, command, options, grid, throughput, flags_of, unit="tokens/s", trials=10, environment="jobs",
                 facts=None, tail=()):
        self.name, self.command, self.options, self.trials, self.unit = name, command, options, trials, unit
        self.grid = grid  # list of dictionaries
        self.throughput = throughput  # output -> samples or tokens per second; None if it did not train
        self.flags_of = flags_of  # dictionary -> words
        self.environment = environment  # the argument of setup.sh
        self.facts = facts  # output -> what the framework says of the job, by the names of check.py; None: not asked
        self.tail = list(tail)  # words that come behind the flags

    def typed(self, point=None):
        """The command that the user types, or that of a point of the grid."""
        return self.command + (self.flags_of(point) if point else []) + self.tail


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
               lambda text: median_of(r"tokens/s ([0-9.]+)", text), flags, environment="torch")


def number_in(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1).replace(",", "")) if found else None


def hf_facts(text):
    """What the Trainer and PEFT print before the first step."""
    sequences = number_in(r"Total train batch size \(w. parallel, distributed & accumulation\) = ([0-9,]+)", text)
    per_rank = number_in(r"Instantaneous batch size per device = ([0-9,]+)", text)
    steps = number_in(r"Gradient Accumulation steps = ([0-9,]+)", text)
    tokens = [float(found) for found in re.findall(r"'num_input_tokens_seen': '?([0-9.e+]+)", text)]
    trained = number_in(r"trainable params: ([0-9,]+)", text) or number_in(r"Number of trainable parameters = ([0-9,]+)", text)
    return {"ranks": sequences and sequences // (per_rank * steps), "sequences a step": sequences,
            "tokens a step": tokens[1] - tokens[0] if len(tokens) > 1 else None, "trained parameters": trained}


def tokens_and_adapters(text):
    """What Axolotl prints of it: its log level keeps the rest."""
    return {name: number for name, number in hf_facts(text).items() if name in ("tokens a step", "trained parameters")}


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


def sft_lora(folder):
    """The same with adapters by PEFT."""
    job = sft(folder)
    job.name, job.facts, job.trials = "TRL sft with LoRA", hf_facts, 8
    job.grid = [point for point in job.grid if point["unused"] == "false"]
    job.command += ["--use_peft", "--lora_r", "8", "--lora_target_modules", "all-linear", "--log_level", "info"]
    return job


def adapter_grid():
    """All that differs: the gradients fit into one bucket of any size."""
    return product(mbs=[1, 2, 4, 8], recompute=["false", "true"])


def llama_factory(name, file):
    def flags(point):
        return [f"per_device_train_batch_size={point['mbs']}", f"gradient_accumulation_steps={SEQUENCES // point['mbs']}",
                f"disable_gradient_checkpointing={'false' if point['recompute'] == 'true' else 'true'}"]
    command = ["env", "FORCE_TORCHRUN=1", f"NPROC_PER_NODE={RANKS}", "llamafactory-cli", "train", file]
    return Job(name, command, [], adapter_grid(), hf_throughput, flags, trials=8, environment="llama-factory", facts=hf_facts)


def axolotl():
    """Its options stand before the launcher's, which come behind --. The variable keeps Accelerate from looking for GPUs."""
    def flags(point):
        return ["--micro-batch-size", str(point["mbs"]), "--gradient-accumulation-steps", str(SEQUENCES // point["mbs"]),
                "--gradient-checkpointing", point["recompute"]]
    return Job("Axolotl, LoRA", ["env", "ACCELERATE_USE_CPU=true", "axolotl", "train", "axolotl_lora.yml"], [], adapter_grid(),
               hf_throughput, flags, trials=8, environment="axolotl", facts=tokens_and_adapters,
               tail=["--launcher", "torchrun", "--", f"--nproc_per_node={RANKS}"])


def litgpt():
    """Prints each micro-step, and no tokens: sequences a second."""
    def flags(point):
        return ["--train.micro_batch_size", str(point["mbs"])]

    def throughput(text):
        times, steps = [float(found) for found in re.findall(r"iter time: ([0-9.]+) ms", text)], len(re.findall(r"\(step\)", text))
        micro_steps = len(times) // steps if steps else 0
        whole = [sum(times[i * micro_steps:(i + 1) * micro_steps]) for i in range(steps)][SKIPPED_STEPS:]
        return RANKS * SEQUENCES / statistics.median(whole) * 1e3 if whole else None

    def facts(text):
        return {"trained parameters": number_in(r"Number of trainable parameters: ([0-9,]+)", text)}
    command = ["litgpt", "finetune_lora", "tiny/model", "--devices", str(RANKS), "--precision", "32-true", "--data", "JSON",
               "--data.json_path", "tiny/instructions/made_up.json", "--data.val_split_fraction", "0.1", "--train.max_seq_length", "64",
               "--train.global_batch_size", str(RANKS * SEQUENCES), "--train.micro_batch_size", "1", "--train.max_steps", "20",
               "--train.lr_warmup_steps", "2", "--out_dir", "out/litgpt"]
    return Job("LitGPT, LoRA", command, [], product(mbs=[1, 2, 4, 8]), throughput, flags, "sequences/s", 8, "litgpt", facts)


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
        jobs.update({"trainer": trainer(folder / "trainer"), "sft": sft(folder / "sft"), "lightning": lightning(),
                     "sft-lora": sft_lora(folder / "sft-lora"),
                     "llama-factory": llama_factory("LLaMA-Factory, LoRA", "llama_factory_lora.yaml"),
                     "llama-factory-full": llama_factory("LLaMA-Factory, full", "llama_factory_full.yaml"),
                     "axolotl": axolotl(), "litgpt": litgpt()})
    return jobs
