#!/usr/bin/env python3
"""Trains a small transformer with DDP or FSDP2 on CPU ranks, as its user wrote it, without knowing krigtune.

  torchrun --standalone --nproc-per-node 2 train_fsdp.py --mbs 2 --ga 4 --stage 3
"""
import argparse
import resource
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Block(nn.TransformerEncoderLayer):
    def __init__(self, hidden, heads, recompute):
        super().__init__(hidden, heads, 4 * hidden, dropout=0, batch_first=True, norm_first=True)
        self.recompute = recompute

    def forward(self, x, mask):
        inner = super().forward
        if self.recompute == "full":
            return checkpoint(lambda y: inner(y, src_mask=mask, is_causal=True), x, use_reentrant=False)
        return inner(x, src_mask=mask, is_causal=True)


class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embedding = nn.Embedding(args.vocab, args.hidden)
        self.blocks = nn.ModuleList(Block(args.hidden, 4, args.recompute) for _ in range(args.layers))
        self.head = nn.Linear(args.hidden, args.vocab, bias=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return nn.functional.cross_entropy(self.head(x)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mbs", type=int, default=1, help="sequences of a micro-batch and rank")
    parser.add_argument("--ga", type=int, default=1, help="micro-batches of a step")
    parser.add_argument("--stage", type=int, choices=[0, 2, 3], default=0,
                        help="0: DDP; 2: FSDP2 that keeps parameters until the backward; 3: FSDP2")
    parser.add_argument("--recompute", choices=["none", "full"], default="none", help="activations in the backward")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--vocab", type=int, default=1024)
    parser.add_argument("--seq", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args()


def distribute(model, stage):
    if stage == 0:
        return DistributedDataParallel(model)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=stage == 3)
    return fully_shard(model, mesh=mesh, reshard_after_forward=stage == 3)


def train_step(args, model, step):
    """The gradients of a step, and its mean loss. The sequences are the same however a step is split."""
    total = torch.zeros(())
    for micro_step in range(args.ga):
        first = ((step * args.ga + micro_step) * dist.get_world_size() + dist.get_rank()) * args.mbs
        rows = [torch.randint(args.vocab, (args.seq,), generator=torch.Generator().manual_seed(first + i))
                for i in range(args.mbs)]
        last = micro_step + 1 == args.ga
        with nullcontext() if last or args.stage else model.no_sync():
            loss = model(torch.stack(rows)) / args.ga
            loss.backward()
        total += loss.detach()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def main():
    args = parse()
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = distribute(Model(args), args.stage)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    tokens = args.mbs * args.ga * dist.get_world_size() * args.seq
    for step in range(args.steps):
        begin = time.perf_counter()
        loss = train_step(args, model, step)
        optimizer.step()
        optimizer.zero_grad()
        elapsed = time.perf_counter() - begin
        if dist.get_rank() == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"step {step + 1}/{args.steps} | loss {loss:.4f} | step_time {1e3 * elapsed:.1f} ms | "
                  f"tokens/s {tokens / elapsed:.1f} | max_memory {peak:.3f} GiB", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
