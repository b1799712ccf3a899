"""A stand-in for Megatron-LM's pretrain_gpt.py: it has the same flags, refusals and output. Nothing is trained, and it does
not wait: the times come from simulated_step.py."""
import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import simulated_step as simulated  # noqa: E402

INTEGERS = {"num-layers": None, "hidden-size": None, "num-attention-heads": None, "ffn-hidden-size": None, "seq-length": None,
            "max-position-embeddings": None, "vocab-size": 32000, "micro-batch-size": None, "global-batch-size": None,
            "tensor-model-parallel-size": 1, "pipeline-model-parallel-size": 1, "context-parallel-size": 1,
            "num-virtual-stages-per-pipeline-rank": 1, "num-query-groups": 1, "recompute-num-layers": None, "ddp-bucket-size": None,
            "train-iters": 100, "exit-interval": None, "log-interval": 100, "log-memory-interval": None, "eval-iters": 100,
            "eval-interval": 1000, "save-interval": None, "lr-warmup-iters": 0, "lr-decay-iters": None}
TEXTS = ["lr", "min-lr", "lr-decay-style", "weight-decay", "clip-grad", "init-method-std", "adam-beta1", "adam-beta2", "save", "load",
         "tokenizer-type", "tokenizer-model", "data-path", "split", "recompute-granularity", "recompute-method", "tensorboard-dir",
         "wandb-project", "distributed-backend", "normalization", "position-embedding-type", "attention-backend", "ckpt-format",
         "data-parallel-sharding-strategy", "optimizer-offload-fraction", "exit-duration-in-mins", "transformer-impl"]
SWITCHES = ["use-distributed-optimizer", "overlap-grad-reduce", "overlap-param-gather", "sequence-parallel", "bf16", "fp16", "mock-data",
            "log-throughput", "use-flash-attn", "swiglu", "disable-bias-linear", "untie-embeddings-and-output-weights",
            "group-query-attention", "use-megatron-fsdp", "optimizer-cpu-offload", "use-precision-aware-optimizer",
            "no-gradient-accumulation-fusion", "log-params-norm", "log-num-zeros-in-grad", "use-mcore-models"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    for name, default in INTEGERS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in TEXTS:
        parser.add_argument(f"--{name}", nargs="+" if name == "data-path" else None)
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--recompute-modules", nargs="*")
    parser.add_argument("--recompute-activations", action="store_true")
    return parser.parse_args()


def check_recomputation(args):
    if args.recompute_activations:
        args.recompute_granularity = "selective"
    if args.recompute_granularity == "selective":
        assert args.recompute_method is None, "recompute method is not yet supported for selective recomputing granularity"
        assert args.recompute_num_layers is None, "recompute_num_layers must be None for selective recompute"
    if args.recompute_granularity == "full":
        assert args.recompute_method in ("uniform", "block"), "full recompute needs --recompute-method"
        assert args.recompute_num_layers, "full recompute needs --recompute-num-layers"


def check_communication(args):
    if args.overlap_param_gather:
        assert args.use_distributed_optimizer or args.use_megatron_fsdp, \
            "--overlap-param-gather only supported with distributed optimizer or megatron fsdp"
        assert args.overlap_grad_reduce, "Must use --overlap-param-gather with --overlap-grad-reduce"
    connections = os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS")
    if args.tensor_model_parallel_size > 1 or args.context_parallel_size > 1:
        assert connections == "1" or args.use_megatron_fsdp, \
            "Using tensor model parallelism or context parallelism require setting the environment variable " \
            "CUDA_DEVICE_MAX_CONNECTIONS to 1"
    if args.use_megatron_fsdp:
        assert connections != "1", "FSDP always requires CUDA_DEVICE_MAX_CONNECTIONS value large than one"
        assert args.ckpt_format == "fsdp_dtensor", "Megatron FSDP only supports fsdp_dtensor checkpoint format"
    if args.optimizer_cpu_offload:
        assert args.use_precision_aware_optimizer, "The optimizer cpu offload must be used in conjunction with " \
            "`--use-precision-aware-optimizer`"


def check(args, world):
    for name in ("num_layers", "hidden_size", "num_attention_heads", "seq_length", "micro_batch_size"):
        assert getattr(args, name) is not None, f"{name} argument is None"
    model_parallel = args.tensor_model_parallel_size * args.pipeline_model_parallel_size * args.context_parallel_size
    assert world % model_parallel == 0, f"world size ({world}) is not divisible by {model_parallel}"
    if args.global_batch_size is None:
        args.global_batch_size = args.micro_batch_size * (world // model_parallel)
    if args.num_virtual_stages_per_pipeline_rank > 1:
        assert args.pipeline_model_parallel_size > 1, "the interleaved schedule needs a pipeline"
    if args.tensor_model_parallel_size == 1:
        args.sequence_parallel = False
    check_recomputation(args)
    check_communication(args)
    assert not args.lr_warmup_iters or args.lr_warmup_iters < args.train_iters, "the warm-up has to be shorter than the training"


def stage_of(args):
    if args.use_megatron_fsdp:
        return {"no_shard": 0, "optim": 1, "optim_grads": 2}.get(args.data_parallel_sharding_strategy, 3)
    return 1 if args.use_distributed_optimizer else 0


def configuration_of(args, world):
    dp = world // (args.tensor_model_parallel_size * args.pipeline_model_parallel_size * args.context_parallel_size)
    return {"tensor_parallel": args.tensor_model_parallel_size, "pipeline_parallel": args.pipeline_model_parallel_size,
            "context_parallel": args.context_parallel_size, "virtual_pipeline": args.num_virtual_stages_per_pipeline_rank,
            "micro_batch": args.micro_batch_size, "zero_stage": stage_of(args), "sequence_parallel": args.sequence_parallel,
            "activation_checkpointing": args.recompute_granularity or "none", "overlap_comm": args.overlap_grad_reduce,
            "overlap_param_gather": args.overlap_param_gather,
            "reduce_bucket_size": args.ddp_bucket_size or max(40_000_000, 1_000_000 * dp),
            "offload_optimizer": "cpu" if args.optimizer_cpu_offload else "none"}


def print_iteration(args, model, iteration, seconds, world):
    flops = 6 * model.parameters * args.global_batch_size * model.seq_len / seconds / world / 1e12
    throughput = f" throughput per GPU (TFLOP/s/GPU): {flops:.1f} |" if args.log_throughput else ""
    print(f" [2026-01-01 10:{iteration // 60:02}:{iteration % 60:02}.{iteration * 977 % 1000000:06}] iteration {iteration:8}/{args.train_iters:8} |"
          f" consumed samples: {iteration * args.global_batch_size:12} | elapsed time per iteration (ms): {1e3 * seconds:.1f} |{throughput}"
          f" learning rate: 6.000000E-06 | global batch size: {args.global_batch_size:5} | lm loss: {10.9 - 0.05 * iteration:.6E} |"
          " loss scale: 1.0 | grad norm: 1.426 | number of skipped iterations:   0 | number of nan iterations:   0 |", flush=True)


def print_memory(args, iteration, peak):
    for rank in range(args.tensor_model_parallel_size * args.pipeline_model_parallel_size):
        mib = 1024 * peak * (1 - 0.02 * (rank % 3))
        print(f"[Rank {rank}] (after {iteration} iterations) memory (MB) | allocated: {0.4 * mib:.2f} | max allocated: {mib:.2f} | "
              f"reserved: {1.03 * mib:.2f} | max reserved: {1.03 * mib:.2f}", flush=True)


def train(args, model, world, configuration):
    peak = simulated.peak_gib(model, world, args.global_batch_size, configuration)
    step_s = simulated.step_s(model, world, args.global_batch_size, configuration)
    if 1.03 * peak > simulated.LIMIT_GIB:
        raise MemoryError(simulated.out_of_memory(peak))
    since_reset = []
    for iteration in range(1, args.train_iters + 1):
        since_reset.append(step_s * (6 if iteration == 1 else simulated.wobble(iteration)))
        if iteration == 1 or iteration % args.log_interval == 0:
            print_iteration(args, model, iteration, sum(since_reset) / len(since_reset), world)
            if iteration > 1:  # the first line does not reset the timer
                since_reset = []
                if iteration <= 2 * args.log_interval or args.log_memory_interval:
                    print_memory(args, iteration, peak * (0.9 if iteration == 2 else 1))
        if args.exit_interval and iteration % args.exit_interval == 0:
            print(f"exiting program at iteration {iteration}")
            return iteration
    return args.train_iters


def main():
    args = parse()
    world = int(os.environ.get("WORLD_SIZE", "1"))
    check(args, world)
    model = simulated.Model(args.num_layers, args.hidden_size, args.num_attention_heads, args.vocab_size, args.seq_length,
                            args.ffn_hidden_size)
    configuration = configuration_of(args, world)
    trouble = simulated.trouble(model, world, args.global_batch_size, configuration)
    assert not trouble, trouble
    print(f"using world size: {world}, data-parallel size: {simulated.data_parallel(configuration, world)}, context-parallel size: "
          f"{args.context_parallel_size}, hierarchical context-parallel sizes: None, tensor-model-parallel size: "
          f"{args.tensor_model_parallel_size}, pipeline-model-parallel size: {args.pipeline_model_parallel_size}", flush=True)
    try:
        done = train(args, model, world, configuration)
    except MemoryError as error:
        sys.exit(f"[rank0]: Traceback (most recent call last):\n[rank0]: {error}")
    if args.save and (done == args.train_iters or args.exit_interval):
        Path(args.save).mkdir(parents=True, exist_ok=True)
        (Path(args.save) / "latest_checkpointed_iteration.txt").write_text(str(done))
    if done == args.train_iters:
        for iteration in range(2 * args.eval_iters):
            print(f"Evaluating iter {iteration + 1}/{args.eval_iters}")


if __name__ == "__main__":
    main()
