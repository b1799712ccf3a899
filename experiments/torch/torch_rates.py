#!/usr/bin/env python3
"""Measures the rates of PyTorch and gloo on all of this machine's CPU ranks at once, as a "hardware" file for krigtune.

  torchrun --standalone --nproc-per-node 2 torch_rates.py OUT.json

In that file the GPU "torch-rank" is a CPU rank as PyTorch uses it: its products, its
elementwise kernels, its attention, and the call of an operation from Python with its
part of the backward pass. The link "gloo" is the rate of gloo's all-reduces over the
loopback device. The link "fsdp2" is the rate of FSDP2's exchanges of a block in a
training step: gathering, copying in and out, reducing, and the hooks that do it; it was
measured on blocks of other widths than those that are compared. OUT.measured.json has
the measurements.
"""
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gpu"))
import torch_reference as reference  # noqa: E402

# Factors of krigtune's model for "fsdp" (src/cost/framework.cpp), which are removed from the measured rates here.
ELEMENTWISE_FACTOR, ATTENTION_FACTOR = 2.8, 0.55
PLAN_OPERATIONS_OF_BLOCK = 22  # krigtune-bench's kernels of a GPT block, forward and backward


def seconds(act, least_s=0.15):
    """Median of the ranks' means, after one warm-up call."""
    act()
    dist.barrier()
    begin = time.perf_counter()
    calls = 0
    while time.perf_counter() - begin < least_s:
        act()
        calls += 1
    mine = torch.tensor([(time.perf_counter() - begin) / calls])
    everyone = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    return torch.cat(everyone).median().item()


def collective_seconds(act, calls):
    act()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        act()
    mine = torch.tensor([(time.perf_counter() - begin) / calls])
    dist.all_reduce(mine)
    return mine.item() / dist.get_world_size()


def with_backward(act, *inputs):
    inputs = [x.detach().requires_grad_() for x in inputs]

    def run():
        y = act(*inputs)
        y.backward(torch.ones_like(y))
        for x in inputs:
            x.grad = None
    return run


def products():
    found = {}
    for rows, depth, columns in [(64, 64, 64), (256, 192, 768), (256, 512, 512), (1024, 512, 2048)]:
        layer, x = nn.Linear(depth, columns), torch.randn(rows, depth)
        with torch.no_grad():
            found[f"{rows}x{columns}x{depth}"] = 2 * rows * depth * columns / seconds(lambda: layer(x))
    return found


def attention_rate(batch=4, heads=8, length=128, width=64):
    q, k, v = (torch.randn(batch, heads, length, width) for _ in range(3))
    flops = 7 * batch * heads * width * length * (length + 1)
    return flops / seconds(with_backward(lambda *x: functional.scaled_dot_product_attention(*x, is_causal=True), q, k, v))


def elementwise_rate(rows=512, hidden=512):
    """Bytes in krigtune's plan (norm 2 + 4, GELU 2 + 3, residual 3 times the elements) over PyTorch's time."""
    x, up = torch.randn(rows, hidden), torch.randn(rows, 4 * hidden)
    norm = nn.LayerNorm(hidden)
    total_s = (seconds(with_backward(norm, x)) + seconds(lambda: x + x)
               + seconds(with_backward(lambda y: functional.gelu(y, approximate="tanh"), up)))
    return 4 * (9 * x.numel() + 5 * up.numel()) / total_s


def call_seconds():
    """Time of one operation of krigtune's plan without work, called from Python with its part of the backward pass."""
    return seconds(with_backward(block_of(16), torch.randn(1, 4, 16))) / PLAN_OPERATIONS_OF_BLOCK


def collectives():
    """Microseconds by kind and by bytes as nccl-tests counts them."""
    ranks = dist.get_world_size()
    found = {}
    for size in (4096, 65536, 1 << 20, 1 << 22, 1 << 24):
        whole, part = torch.ones(size // 4), torch.ones(size // 4 // ranks)
        calls = 4 if size >= 1 << 20 else 20
        found[size] = {
            "all_reduce": 1e6 * collective_seconds(lambda: dist.all_reduce(whole), calls),
            "all_gather": 1e6 * collective_seconds(lambda: dist.all_gather_into_tensor(whole, part), calls),
            "reduce_scatter": 1e6 * collective_seconds(lambda: dist.reduce_scatter_tensor(part, whole), calls),
        }
    return found


def block_of(hidden):
    m = {"hidden": hidden, "heads": 1, "kv_heads": 1, "ffn_hidden": 4 * hidden, "gated_mlp": False, "attention": "flash",
         "positions": "learned", "recompute": None, "norm_class": nn.LayerNorm, "biases": True, "seq_len": 4}
    return reference.Block(m)


def sharded_seconds(hidden, units=4):
    """The time that FSDP2 adds to forward and backward of a block: two all-gathers and a reduce-scatter."""
    plain = nn.Sequential(*(block_of(hidden) for _ in range(units)))
    sharded = nn.Sequential(*(block_of(hidden) for _ in range(units)))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in sharded:
        fully_shard(block, mesh=mesh, reshard_after_forward=True)
    fully_shard(sharded, mesh=mesh)
    x = torch.randn(1, 4, hidden)

    def train(model):
        model(x).sum().backward()
        for parameter in model.parameters():
            parameter.grad = None

    apart = collective_seconds(lambda: train(sharded), 8) - collective_seconds(lambda: train(plain), 8)
    return apart / units


def fsdp2_link(found):
    """Latency and bandwidth of three collectives that explain the measured times, by least squares over the widths."""
    ranks = dist.get_world_size()
    sent = [3 * (ranks - 1) / ranks * 4 * (12 * hidden**2 + 13 * hidden) for hidden in found]
    seconds_of = list(found.values())
    x, y = sum(sent) / len(sent), sum(seconds_of) / len(sent)
    slope = sum((a - x) * (b - y) for a, b in zip(sent, seconds_of)) / sum((a - x) ** 2 for a in sent)
    hops = 3 * (ranks - 1)
    return {"kind": "network", "latency_us": max(0.0, 1e6 * (y - slope * x) / hops - 15.0), "bytes_per_s": 1 / slope}


def link_of(found):
    """Bandwidth of the largest all-reduce, latency of the smallest one; the model adds about 15 us per hop."""
    ranks = dist.get_world_size()
    largest, smallest = max(found), min(found)
    rate = 2 * (ranks - 1) / ranks * largest / found[largest]["all_reduce"] * 1e6
    per_hop = found[smallest]["all_reduce"] / (2 * (ranks - 1))
    return {"kind": "network", "latency_us": max(0.0, per_hop - 15.0), "bytes_per_s": rate}


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(1)
    rates = products()
    peak = max(rates.values())
    attention, elementwise, call_s, sent = attention_rate(), elementwise_rate(), call_seconds(), collectives()
    sharded = {hidden: sharded_seconds(hidden) for hidden in (64, 256, 384, 640)}
    if dist.get_rank() == 0:
        rank = {"memory_gib": 8, "fp32_flops_per_s": peak, "gemm_fraction": 1, "gemm_half_flops": 0,
                "attention_fraction": min(1.0, attention / peak / ATTENTION_FACTOR),
                "memory_bytes_per_s": elementwise * ELEMENTWISE_FACTOR, "memory_fraction": 1, "launch_us": 1e6 * call_s,
                "host_bytes_per_s": 1e10, "interconnect": "gloo"}
        measured = {"ranks": dist.get_world_size(), "torch": torch.__version__, "products_flops_per_s": rates,
                    "attention_flops_per_s": attention, "elementwise_plan_bytes_per_s": elementwise,
                    "call_us": 1e6 * call_s, "collectives_us": sent,
                    "fsdp2_block_us": {hidden: 1e6 * each for hidden, each in sharded.items()}}
        document = {"gpus": {"torch-rank": rank}, "links": {"gloo": link_of(sent), "fsdp2": fsdp2_link(sharded)}}
        out = pathlib.Path(sys.argv[1])
        out.write_text(json.dumps(document, indent=1) + "\n")
        out.with_suffix(".measured.json").write_text(json.dumps(measured, indent=1) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
