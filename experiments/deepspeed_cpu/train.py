"""Trains a small GPT with DeepSpeed on any accelerator that DeepSpeed supports, including the CPU.

  deepspeed --num_gpus 2 train.py --deepspeed --deepspeed_config ds_config.json
  torchrun --nproc_per_node 2 train.py --deepspeed ds_config.json

Prints one line per step with the loss of its global batch.  Under autotuning the
engine itself ends the run after end_profile_step, inside step(), with exit code
0. This script does not know about it, like any other training script.
"""
import argparse
import base64
import json
import os
import signal
import sys
import time
from contextlib import nullcontext

import deepspeed
import torch
from deepspeed.accelerator import get_accelerator

from gpt import Gpt, sample


def add_model_flags(parser):
    parser.add_argument("--hidden", type=int, default=128, help="width of the model (%(default)s)")
    parser.add_argument("--layers", type=int, default=4, help="blocks (%(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="attention heads, must divide --hidden (%(default)s)")
    parser.add_argument("--vocabulary", type=int, default=512, help="tokens of the synthetic text (%(default)s)")
    parser.add_argument("--sequence", type=int, default=64, help="tokens a sequence (%(default)s)")
    parser.add_argument("--checkpoint_activations", action="store_true", help="recompute each block in its backward")
    parser.add_argument("--no_zero_init", action="store_true",
                        help="build the whole model on each rank even at ZeRO stage 3")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and of the text (%(default)s)")
    parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", "0")),
                        help="given by the launcher")


def add_trouble_flags(parser):
    trouble = parser.add_argument_group("trouble on purpose, at the last rank unless said otherwise")
    trouble.add_argument("--load_ms", type=float, default=0, help="each rank waits so long for a micro-batch")
    trouble.add_argument("--hang_at", type=int, default=0, metavar="STEP", help="goes to sleep before this step")
    trouble.add_argument("--kill_at", type=int, default=0, metavar="STEP", help="is killed (SIGKILL) before this step")
    trouble.add_argument("--say", default="", metavar="TEXT", help="every rank prints it on stderr before it trains")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepspeed", nargs="?", const=True, metavar="FILE",
                        help="use DeepSpeed; its configuration, unless --deepspeed_config gives it: a path or base64")
    parser.add_argument("--deepspeed_config", metavar="FILE", help="the configuration of DeepSpeed: a path or base64")
    parser.add_argument("--steps", type=int, default=20, help="of the optimizer, at most (%(default)s)")
    parser.add_argument("--learning_rate", type=float, default=1e-3,
                        help="of torch's AdamW where the configuration has no optimizer (%(default)s)")
    add_model_flags(parser)
    add_trouble_flags(parser)
    args = parser.parse_args()
    config = args.deepspeed_config or args.deepspeed
    if not isinstance(config, str):
        parser.error("give DeepSpeed's configuration: --deepspeed FILE, or --deepspeed --deepspeed_config FILE")
    return args, config


def read_config(config):
    """Returns the configuration as a dictionary, from a path or from the base64 that DeepSpeed's autotuner passes."""
    if os.path.exists(config):
        with open(config, encoding="utf-8") as file:
            return json.load(file)
    try:
        return json.loads(base64.urlsafe_b64decode(config))
    except ValueError:
        sys.exit(f"train.py: {config}: there is no such file, and it is no base64 of a configuration either")


def build_model(args, config):
    """At stage 3 each parameter is sharded as soon as it is made, so that no rank ever has the whole model."""
    shard = config.get("zero_optimization", {}).get("stage", 0) == 3 and not args.no_zero_init
    torch.manual_seed(args.seed)
    with deepspeed.zero.Init(config_dict_or_path=config) if shard else nullcontext():
        return Gpt(args.vocabulary, args.sequence, args.hidden, args.layers, args.heads, args.checkpoint_activations)


def own_optimizer(model, config, learning_rate):
    return None if "optimizer" in config else torch.optim.AdamW(model.parameters(), lr=learning_rate)


def micro_batch(args, engine, step, micro_step):
    """This rank's part of the micro-batch: a global batch has the same text however it is split."""
    size, ranks = engine.train_micro_batch_size_per_gpu(), engine.dp_world_size
    first = step * engine.train_batch_size() + (micro_step * ranks + deepspeed.comm.get_rank()) * size
    time.sleep(args.load_ms / 1000)
    rows = [sample(first + i, args.vocabulary, args.sequence, args.seed) for i in range(size)]
    return torch.stack(rows).to(engine.device)


def make_trouble(args, step):
    if deepspeed.comm.get_rank() != deepspeed.comm.get_world_size() - 1:
        return
    if args.hang_at == step + 1:
        time.sleep(86400)
    if args.kill_at == step + 1:
        os.kill(os.getpid(), signal.SIGKILL)


def train_step(args, engine, step):
    """Runs one optimizer step; prints the loss before the engine may end the run."""
    micro_steps = engine.gradient_accumulation_steps()
    total = torch.zeros((), device=engine.device)
    for micro_step in range(micro_steps):
        loss = engine(micro_batch(args, engine, step, micro_step))
        engine.backward(loss)
        total += loss.detach().float() / micro_steps
        if micro_step + 1 == micro_steps:
            deepspeed.comm.all_reduce(total)
            if deepspeed.comm.get_rank() == 0:
                print(f"step {step + 1} loss {total.item() / deepspeed.comm.get_world_size():.6f}", flush=True)
        engine.step()


def start(args, config):
    """Makes the model after the ranks have found one another."""
    deepspeed.init_distributed()
    if get_accelerator().device_name() != "cpu":
        get_accelerator().set_device(args.local_rank)
    if args.say:
        print(args.say, file=sys.stderr, flush=True)
    return build_model(args, config)


def train(args, config, model):
    engine, *_ = deepspeed.initialize(model=model, optimizer=own_optimizer(model, config, args.learning_rate),
                                      model_parameters=model.parameters(), config=config)
    for step in range(args.steps):
        make_trouble(args, step)
        train_step(args, engine, step)
    if deepspeed.comm.get_rank() == 0:
        print(f"trained {args.steps} steps", flush=True)


def main():
    args, config = parse()
    config = read_config(config)
    train(args, config, start(args, config))


if __name__ == "__main__":
    main()
