"""A stand-in for `-m torchtitan.train` of torchtitan 0.3.0: it has the same command line in the same order, refuses the same
values, and prints the same lines for every rank. Nothing is trained, and it does not wait: the times come from
simulated_step.py."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import simulated_step as simulated  # noqa: E402

FLAVOURS = {("llama3", "llama3_8b"): simulated.Model(32, 4096, 32, 128256, 8192, 1.5 * 14336),
            ("llama3", "llama3_debugmodel"): simulated.Model(6, 256, 16, 2048, 2048)}
DEFAULTS = {"training.local_batch_size": 1, "training.global_batch_size": -1, "training.seq_len": 0, "training.steps": 1000,
            "training.enable_cpu_offload": False, "training.disable_cuda_graphs": False,
            "training.mixed_precision_param": "bfloat16", "parallelism.tensor_parallel_degree": 1,
            "parallelism.pipeline_parallel_degree": 1, "parallelism.pipeline_parallel_schedule": "1F1B",
            "parallelism.pipeline_parallel_microbatch_size": 1, "parallelism.pipeline_parallel_layers_per_stage": 0,
            "parallelism.context_parallel_degree": 1, "parallelism.expert_parallel_degree": 1,
            "parallelism.data_parallel_replicate_degree": 1, "parallelism.data_parallel_shard_degree": -1,
            "parallelism.fsdp_reshard_after_forward": "default", "parallelism.enable_sequence_parallel": True,
            "compile.enable": False, "compile.enable_async_tensor_parallel": False, "checkpoint.enable": True,
            "checkpoint.interval": 500, "validator.enable": False, "metrics.log_freq": 10, "metrics.enable_tensorboard": False,
            "metrics.enable_wandb": False, "metrics.disable_color_printing": False, "profiler.enable_profiling": False,
            "debug.enable_structured_logging": True, "comm.train_timeout_seconds": 100, "optimizer.lr": 8e-4,
            "hf_assets_path": "", "dump_folder": "./outputs", "dataloader.dataset": "c4_test"}
RECOMPUTE = {"none": "none", "selective": "selective", "full": "full", "memory-budget": "selective"}


def refuse(text):
    """Like tyro: the launcher sees exit code 2."""
    print(f"╭─ Parsing error ─────────────╮\n│ {text} │\n╰─────────────────────────────╯", file=sys.stderr, flush=True)
    sys.exit(2)


def as_type_of(default, text, flag):
    try:
        return type(default)(text)
    except ValueError:
        refuse(f"Argument {flag}: invalid choice '{text}'")


def parse(words):
    """The flags by section, and the recomputation, whose word is a command of its own: no flag may come after it."""
    flags, recompute, names = dict(DEFAULTS), "selective", {"module": "", "config": ""}
    words = list(words)
    while words:
        word = words.pop(0)
        if word.startswith("activation-checkpoint:") or word.startswith("activation_checkpoint:"):
            recompute = word.partition(":")[2].replace("_", "-")
            if recompute not in RECOMPUTE:
                refuse(f"invalid choice '{word}'")
            if words:
                refuse(f"Unrecognized options: {' '.join(words)}")
            break
        if not word.startswith("--"):
            refuse(f"Unrecognized options: {word}")
        name, equals, value = word[2:].replace("-", "_").partition("=")
        section, dot, key = name.rpartition(".")
        off = key.startswith("no_") and f"{section}{dot}{key[3:]}" in flags
        name = f"{section}{dot}{key[3:]}" if off else name
        if name not in flags and name not in names:
            refuse(f"Unrecognized options: {word}")
        if isinstance(flags.get(name), bool):
            flags[name] = not off
            continue
        if not equals and not words:
            refuse(f"Argument {word}: expected 1 argument")
        value = word.partition("=")[2] if equals else words.pop(0)
        if name in names:
            names[name] = value
        else:
            flags[name] = as_type_of(flags[name], value, word)
    return flags, RECOMPUTE[recompute], (names["module"], names["config"])


def degrees(flags, world):
    """Replicas and shards of the data-parallel ranks."""
    split = (flags["parallelism.tensor_parallel_degree"] * flags["parallelism.pipeline_parallel_degree"] *
             flags["parallelism.context_parallel_degree"])
    replicate, shard = flags["parallelism.data_parallel_replicate_degree"], flags["parallelism.data_parallel_shard_degree"]
    if shard < 0:
        shard = world // (split * replicate)
    if replicate * shard * split != world:
        raise ValueError(f"Invalid parallel dims: dp_replicate({replicate}) * dp_shard({shard}) * "
                         f"cp({flags['parallelism.context_parallel_degree']}) * tp({flags['parallelism.tensor_parallel_degree']}) * "
                         f"pp({flags['parallelism.pipeline_parallel_degree']}) != WORLD_SIZE({world})")
    return replicate, shard


def stage_of(flags, shard):
    if shard == 1:
        return 0
    reshard = flags["parallelism.fsdp_reshard_after_forward"]
    if reshard not in ("always", "never", "default"):
        raise ValueError(f"Invalid reshard_after_forward_policy: {reshard}.")
    kept = reshard == "never" or (reshard == "default" and flags["parallelism.pipeline_parallel_degree"] > 1)
    return 2 if kept else 3


def configuration_of(flags, recompute, world):
    _, shard = degrees(flags, world)
    return {"tensor_parallel": flags["parallelism.tensor_parallel_degree"],
            "pipeline_parallel": flags["parallelism.pipeline_parallel_degree"],
            "context_parallel": flags["parallelism.context_parallel_degree"], "micro_batch": flags["training.local_batch_size"],
            "zero_stage": stage_of(flags, shard), "activation_checkpointing": recompute, "overlap_comm": True,
            "overlap_param_gather": True, "sequence_parallel": flags["parallelism.enable_sequence_parallel"],
            "offload_optimizer": "cpu" if flags["training.enable_cpu_offload"] else "none"}


def check(flags, recompute, model, world):
    """The configuration, and the sequences per step."""
    if flags["parallelism.pipeline_parallel_degree"] > 1 and not flags["training.disable_cuda_graphs"]:
        raise ValueError("CUDA graphs do not support pipeline parallelism yet. Set --training.disable_cuda_graphs.")
    configuration = configuration_of(flags, recompute, world)
    micro_batch, dp = configuration["micro_batch"], simulated.data_parallel(configuration, world)
    batch = flags["training.global_batch_size"] if flags["training.global_batch_size"] > 0 else micro_batch * dp
    if batch % (micro_batch * dp):
        raise AssertionError(f"global batch size must be multiple of local batch size times data-parallel degree ({batch} % "
                             f"({micro_batch} * {dp}) != 0)")
    trouble = simulated.trouble(model, world, batch, configuration)
    if trouble:
        raise ValueError(trouble)
    return configuration, batch


def say(rank, text):
    prefix = f"[rank{rank}]:" if os.environ.get("STANDIN_PREFIX") else ""
    print(f"{prefix}[titan] 2026-01-01 10:00:00,338 - root - INFO - {text}", flush=True)


def train(flags, model, world, configuration, batch):
    ranks = [int(rank) for rank in os.environ.get("STANDIN_RANKS", "0").split(",")]
    peak = simulated.peak_gib(model, world, batch, configuration)
    seconds = simulated.step_s(model, world, batch, configuration)
    if peak > simulated.LIMIT_GIB:
        raise MemoryError(simulated.out_of_memory(peak))
    for step in range(1, flags["training.steps"] + 1):
        if step > 1 and step % flags["metrics.log_freq"]:
            continue
        tps = batch * model.seq_len / (seconds * (9 if step == 1 else simulated.wobble(step))) / world
        for rank in ranks:
            gib = peak * (0.93 if step == 1 else 1) * (1 - 0.01 * (rank % 4))
            colour, plain = ("", "") if flags["metrics.disable_color_printing"] else ("\x1b[31m", "\x1b[39m")
            say(rank, f"{colour}step: {step:2}  {plain}loss: {12.2 - 0.06 * step:8.5f}  grad_norm: {1.0:7.4f}  {colour}memory: {gib:5.2f}GiB"
                f"({100 * gib / simulated.LIMIT_GIB:.2f}%)  {plain}tps: {tps:,.0f}  tflops: {6e-12 * model.parameters * tps:,.2f}  "
                f"mfu: {6e2 * model.parameters * tps / simulated.PEAK_FLOPS:.2f}%")


def main():
    flags, recompute, name = parse(sys.argv[1:])
    if name not in FLAVOURS:
        raise ValueError(f"unknown --module {name[0]} --config {name[1]}")
    model, world = FLAVOURS[name], int(os.environ.get("WORLD_SIZE", "1"))
    if flags["training.seq_len"]:
        model.seq_len = flags["training.seq_len"]
    configuration, batch = check(flags, recompute, model, world)
    dp = simulated.data_parallel(configuration, world)
    say(0, f"CUDA capacity: NVIDIA H100 80GB HBM3 with {simulated.LIMIT_GIB:.2f}GiB memory")
    say(0, f"Trainer is initialized with local batch size {configuration['micro_batch']}, global batch size {batch}, gradient "
           f"accumulation steps {batch // (configuration['micro_batch'] * dp)}, sequence length {model.seq_len}, total steps "
           f"{flags['training.steps']} (warmup 2)")
    try:
        train(flags, model, world, configuration, batch)
    except MemoryError as error:
        sys.exit(f"[rank0]: Traceback (most recent call last):\n[rank0]: {error}")
    if flags["checkpoint.enable"]:
        folder = Path(flags["dump_folder"]) / "checkpoint" / f"step-{flags['training.steps']}"
        folder.mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    main()
