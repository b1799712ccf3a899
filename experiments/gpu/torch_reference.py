#!/usr/bin/env python3
"""Trains with PyTorch what krigtune-bench trains: the same model, initial weights, text, batch and AdamW.

  torch_reference.py --config C.json [--compile]                          one rank
  torchrun --nproc-per-node 2 torch_reference.py --config C.json          as many ranks as the cluster has

C.json is a file for krigtune-bench --config. Rank 0 prints one JSON line with the
fields of krigtune-bench's result, and the losses of the first 20 steps. ZeRO stage 0
is DistributedDataParallel; stages 1 to 3 are FSDP2 (fully_shard) with the collectives
of that stage; a single rank uses neither. Exit codes are those of krigtune-bench: 2 the
job is invalid or cannot be trained here, 11 out of memory, 14 the loss is not a number,
77 no GPU.
"""
import argparse
import copy
import ctypes
import gc
import json
import math
import os
import resource
import socket
import statistics
import sys
import time
from contextlib import nullcontext
from functools import partial

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

BAD_INPUT, OUT_OF_MEMORY, NOT_FINITE, NO_DEVICE = 2, 11, 14, 77


def refuse(what, fix):
    print(f"torch_reference: {what}; {fix}", file=sys.stderr)
    sys.exit(BAD_INPUT)


# --- The inputs of krigtune-bench: Philox4x32-10, initial values, text.


def philox(counter, key):
    """Four 32-bit words for each counter; include/krigtune/rng.h. `counter`: four arrays of uint64, `key`: two numbers."""
    low = numpy.uint64(0xFFFFFFFF)
    c = list(counter)
    k = [key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [p1 >> numpy.uint64(32) ^ c[1] ^ numpy.uint64(k[0]), p1 & low,
             p0 >> numpy.uint64(32) ^ c[3] ^ numpy.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def normals(seed, tensor, count):
    """src/engine/host/rank_values.cpp: Box and Muller, four numbers from each block."""
    blocks = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    zeros = numpy.zeros_like(blocks)
    words = philox([blocks & numpy.uint64(0xFFFFFFFF), blocks >> numpy.uint64(32), zeros + numpy.uint64(tensor), zeros],
                   seed)
    out = numpy.empty((len(blocks), 4))
    for pair in range(2):
        radius = numpy.sqrt(-2 * numpy.log((words[2 * pair] + 0.5) * 2.0**-32))
        angle = 2 * math.pi * words[2 * pair + 1] * 2.0**-32
        out[:, 2 * pair], out[:, 2 * pair + 1] = radius * numpy.cos(angle), radius * numpy.sin(angle)
    return out.reshape(-1)[:count]


def text(seed, first, count, vocabulary, length):
    """Sequences first ... first + count - 1 as tokens and targets; src/engine/host/kernels/memory.cpp."""
    sequences = numpy.arange(first, first + count, dtype=numpy.uint64)[:, None]
    blocks = numpy.arange(length // 4 + 1, dtype=numpy.uint64)[None, :]
    shape = numpy.zeros((count, length // 4 + 1), dtype=numpy.uint64)
    words = philox([blocks + shape, shape, (sequences & numpy.uint64(0xFFFFFFFF)) + shape,
                    (sequences >> numpy.uint64(32)) + shape], seed ^ 0x636F72707573)
    draws = numpy.stack(words, axis=2).reshape(count, -1).astype(numpy.int64)
    distinct = min(vocabulary, 64)
    all_tokens = numpy.empty((count, length + 1), dtype=numpy.int64)
    all_tokens[:, 0] = draws[:, 0] % distinct
    for t in range(length):
        draw = draws[:, t + 1]
        follows = (5 * all_tokens[:, t] + 3) % distinct
        all_tokens[:, t + 1] = numpy.where((draw & 0xFF) < 26, (draw >> 8) % distinct, follows)
    return torch.from_numpy(all_tokens[:, :-1].copy()), torch.from_numpy(all_tokens[:, 1:].copy())


# --- The model: GPT-2 style, Llama style or Qwen3 style, pre-norm, all of it trained or adapters alone.


class Linear(nn.Linear):
    """A linear layer with LoRA adapters: B A x is added to the outputs of each of its parts that has one."""

    def __init__(self, m, inputs, parts):
        super().__init__(inputs, sum(parts.values()), bias=m["biases"])
        self.begins, self.adapters, begin = [], nn.ParameterList(), 0
        for layer, outputs in parts.items():
            if m["rank"] > 0 and layer in m["targets"]:
                self.begins.append(begin)
                self.adapters.append(nn.Parameter(torch.empty(m["rank"], inputs)))
                self.adapters.append(nn.Parameter(torch.empty(outputs, m["rank"])))
            begin += outputs

    def forward(self, x):
        y = super().forward(x)
        for i, begin in enumerate(self.begins):
            a, b = self.adapters[2 * i], self.adapters[2 * i + 1]
            y = y + functional.pad(x @ a.T @ b.T, (begin, self.out_features - begin - b.shape[0]))
        return y


def norm(m, width):
    if m["norm"] == "rmsnorm":
        return nn.RMSNorm(width, eps=1e-5, elementwise_affine=m["norm_gain"])
    return nn.LayerNorm(width, eps=1e-5, elementwise_affine=m["norm_gain"], bias=m["norm_bias"])


class Rotary(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def forward(self, x):
        low, high = x.chunk(2, dim=-1)
        cosines, sines = self.cosines.to(x.dtype), self.sines.to(x.dtype)
        return torch.cat((low * cosines - high * sines, high * cosines + low * sines), dim=-1)


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        h, self.heads, self.kv_heads = m["hidden"], m["heads"], m["kv_heads"]
        self.width = m["head_dim"] or h // self.heads
        queries, keys = self.heads * self.width, self.kv_heads * self.width
        self.gated, self.eager, self.context = m["gated_mlp"], m["attention"] == "eager", m["recompute"]
        self.norm1 = norm(m, h)
        self.qkv = Linear(m, h, {"q": queries, "k": keys, "v": keys})
        self.qk_norm = m["qk_norm"]
        if self.qk_norm != "none":
            self.q_norm = nn.RMSNorm(queries if self.qk_norm == "full" else self.width, eps=1e-5)
            self.k_norm = nn.RMSNorm(keys if self.qk_norm == "full" else self.width, eps=1e-5)
        self.out = Linear(m, queries, {"o": h})
        self.norm2 = norm(m, h)
        self.up = Linear(m, h, {name: m["ffn_hidden"] for name in (("gate", "up") if self.gated else ("up",))})
        self.down = Linear(m, m["ffn_hidden"], {"down": h})
        self.rotary = Rotary(m["seq_len"], self.width) if m["positions"] == "rotary" else None

    def attention(self, x):
        batch, length, _ = x.shape
        qkv = self.qkv(x)
        if self.qk_norm == "full":
            q, k, v = qkv.split([count * self.width for count in (self.heads, self.kv_heads, self.kv_heads)], dim=-1)
            qkv = torch.cat((self.q_norm(q), self.k_norm(k), v), dim=-1)
        split = qkv.view(batch, length, -1, self.width).transpose(1, 2)
        q, k, v = split.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        if self.qk_norm == "head":
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary:
            q, k = self.rotary(q), self.rotary(k)
        if self.eager:
            k, v = (each.repeat_interleave(self.heads // self.kv_heads, dim=1) for each in (k, v))
            scores = q @ k.transpose(2, 3) / math.sqrt(self.width)
            hidden_ones = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            found = scores.masked_fill(hidden_ones, -math.inf).softmax(dim=-1) @ v
        else:
            found = functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                            enable_gqa=self.heads != self.kv_heads)
        return self.out(found.transpose(1, 2).reshape(batch, length, -1))

    def mlp(self, x):
        if not self.gated:
            return self.down(functional.gelu(self.up(x), approximate="tanh"))
        gate, up = self.up(x).chunk(2, dim=-1)
        return self.down(functional.silu(gate) * up)

    def branches(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def forward(self, x):
        if self.context is None or not torch.is_grad_enabled():
            return self.branches(x)
        return checkpoint(self.branches, x, use_reentrant=False, context_fn=self.context)


class Model(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.table = nn.Embedding(m["vocab"], m["hidden"])
        self.positions = nn.Embedding(m["seq_len"], m["hidden"]) if m["positions"] == "learned" else None
        self.blocks = nn.ModuleList(Block(m) for _ in range(m["layers"]))
        self.final_norm = norm(m, m["hidden"])
        self.head = nn.Linear(m["hidden"], m["vocab"], bias=False)
        if m["tied_embeddings"]:
            self.head.weight = self.table.weight
        if m["rank"] > 0:
            for name, parameter in self.named_parameters():
                parameter.requires_grad_("adapters" in name)
        self.group = m["recompute_layers"]

    def forward(self, tokens, targets):
        x = self.table(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        for first in range(0, len(self.blocks), self.group):
            blocks = self.blocks[first:first + self.group]
            # A block checkpoints itself, because FSDP2 requires this inside the module that it shards.
            x = blocks[0](x) if self.group == 1 else checkpoint(nn.Sequential(*blocks), x, use_reentrant=False)
        logits = self.head(self.final_norm(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def initialise(model, m, seed):
    """Parameters in krigtune's order (src/schedule/parameters.cpp), which is that of their definition here."""
    into_residual = 0.02 / math.sqrt(2 * m["layers"])
    for index, (name, parameter) in enumerate(model.named_parameters()):
        is_second = "adapters" in name and int(name.rsplit(".", 1)[1]) % 2 == 1  # B of an adapter
        if name.endswith("bias") or is_second:
            parameter.data.zero_()
        elif "norm" in name:
            parameter.data.fill_(1.0)
        else:
            stddev = into_residual if name.endswith(("out.weight", "down.weight")) else 0.02
            values = stddev * normals(seed, index, parameter.numel())
            parameter.data.copy_(torch.from_numpy(values.astype(numpy.float32)).view_as(parameter))


# --- The job: what krigtune-bench reads from its --config.

PRESETS = {
    "gpt2-124m": (12, 768, 12), "gpt2-350m": (24, 1024, 16), "gpt2-774m": (36, 1280, 20), "gpt2-1.5b": (48, 1600, 25),
}


def model_of(workload):
    m = {"tied_embeddings": True, "gated_mlp": False, "positions": "learned", "norm": "layernorm", "attention": "flash",
         "dropout": 0, "head_dim": 0, "qk_norm": "none", "norm_gain": True, "norm_bias": True}
    given = workload.get("model", {})
    if "preset" in given:
        if given["preset"] not in PRESETS:
            refuse(f"/workload/model/preset: {given['preset']} is not known here", "write its sizes, or one of "
                   + ", ".join(PRESETS))
        m.update(zip(("layers", "hidden", "heads"), PRESETS[given["preset"]]), vocab=50257, seq_len=1024)
    m.update(given)
    for key in ("layers", "hidden", "heads", "vocab", "seq_len"):
        if key not in m:
            refuse(f"/workload/model/{key} is missing", "add it")
    if m["dropout"]:
        refuse("/workload/model/dropout: masks cannot be the same here", "set it to 0")
    m.setdefault("kv_heads", m["heads"])
    m.setdefault("ffn_hidden", 4 * m["hidden"])
    m["biases"] = m["norm"] == "layernorm"
    lora = workload.get("training", {}).get("lora", {})
    if lora.get("dropout", 0) or set(workload.get("training", {})) - {"lora"}:
        refuse("/workload/training: only adapters without dropout are trained here", "take the rest out")
    m["rank"], m["targets"] = lora.get("rank", 0), lora.get("targets", "all-linear")
    if m["targets"] == "all-linear":
        m["targets"] = ["q", "k", "v", "o", "gate", "up", "down"]
    return m


def keep_products(_, op, *args, **kwargs):
    """Selective recomputation like krigtune's with flash attention: products and attention are kept, the rest is recomputed."""
    name = op.name()
    kept = any(word in name for word in ("aten::mm", "aten::addmm", "aten::bmm", "scaled_dot_product"))
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


def recomputation(configuration, m):
    kind = configuration.get("activation_checkpointing", "none")
    layers = configuration.get("activation_checkpointing_layers", 1) if kind == "full" else 1
    if kind == "selective" and m["attention"] == "eager":
        refuse("selective checkpointing of eager attention is not trained here", "use flash")
    m["recompute_layers"] = layers
    m["recompute"] = None
    if kind == "selective":
        m["recompute"] = partial(create_selective_checkpoint_contexts, keep_products)
    elif kind == "full" and layers == 1:
        m["recompute"] = lambda: (nullcontext(), nullcontext())


KNOWN = {"zero_stage", "micro_batch", "gradient_accumulation_steps", "activation_checkpointing", "offload_optimizer",
         "activation_checkpointing_layers", "reduce_bucket_size", "allgather_bucket_size", "overlap_comm",
         "stage3_param_persistence_threshold", "stage3_prefetch_bucket_size"}


class Job:
    def __init__(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except (OSError, ValueError) as error:
            refuse(f"{path}: {error}", "name a file that krigtune-bench --config takes")
        workload = document.get("workload", {})
        self.configuration = document.get("configuration", {})
        for key in set(self.configuration) - KNOWN:
            if self.configuration[key] not in (1, False, None, "none"):
                refuse(f"/configuration/{key} is not trained here", "take it out")
        if workload.get("optimizer", "adamw") != "adamw" or workload.get("gradient_clipping", 0):
            refuse("only AdamW without clipping is trained here", "change /workload")
        self.precision = workload.get("precision", "fp32")
        if self.precision not in ("fp32", "bf16"):
            refuse("/workload/precision: fp16 is not trained here", "use bf16 or fp32")
        self.model = model_of(workload)
        recomputation(self.configuration, self.model)
        cluster = document.get("cluster", {})
        self.ranks = 1
        if isinstance(cluster, dict):
            self.ranks = cluster.get("nodes", 1) * cluster.get("gpus_per_node", 2)
        self.micro_batch = self.configuration.get("micro_batch", 1)
        self.micro_steps = self.configuration.get("gradient_accumulation_steps", 1)
        self.stage = self.configuration.get("zero_stage", 0)
        self.offload = self.configuration.get("offload_optimizer", "none") == "cpu"
        if self.model["rank"] > 0 and self.ranks > 1 and self.stage > 0:
            refuse("/workload/training: adapters at stages 1 to 3 are not trained here", "use stage 0")
        if self.offload and self.ranks > 1:
            refuse("/configuration/offload_optimizer on several ranks is not trained here", "use one")

    def tiny(self):
        """A job of the same kind with hardly any work and memory."""
        job = copy.copy(self)
        job.model = {**self.model, "layers": 1, "hidden": 16 * self.model["heads"], "ffn_hidden": 16, "vocab": 16, "seq_len": 8}
        job.micro_batch = job.micro_steps = 1
        return job

    def sequences(self):
        return self.ranks * self.micro_batch * self.micro_steps

    def flops(self):
        """FLOPs of the model per rank and step: causal-exact, as krigtune-bench counts them."""
        m = self.model
        h, f, width = m["hidden"], m["ffn_hidden"], m["head_dim"] or m["hidden"] // m["heads"]
        queries = m["heads"] * width
        layer = h * (queries + 2 * m["kv_heads"] * width) + h * queries + h * f * (3 if m["gated_mlp"] else 2)
        token = 6 * (m["layers"] * layer + m["vocab"] * h) + 6 * m["layers"] * queries * (m["seq_len"] + 1)
        return token * m["seq_len"] * self.micro_batch * self.micro_steps


# --- Training.


class Masters:
    """AdamW on fp32 copies of the parameters, on the device or on the host, like krigtune-bench's masters."""

    def __init__(self, parameters, first_values, make, device):
        self.parameters = list(parameters)
        self.copies = [values.to(device).requires_grad_() for values in first_values]
        self.optimizer = make(self.copies)

    def step(self):
        for copy, parameter in zip(self.copies, self.parameters):
            copy.grad = parameter.grad.to(copy.device, torch.float32)
            parameter.grad = None
        self.optimizer.step()
        with torch.no_grad():
            for copy, parameter in zip(self.copies, self.parameters):
                copy.grad = None
                parameter.copy_(copy)

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None


class Trainer:
    def __init__(self, job, options, device):
        self.job, self.seed, self.device = job, options.seed, device
        self.rank = dist.get_rank() if job.ranks > 1 else 0
        self.sharded = job.ranks > 1 and job.stage > 0
        model = Model(job.model)
        initialise(model, job.model, options.seed)
        has_masters = (job.precision == "bf16" and not self.sharded) or job.offload
        first_values = [p.detach().clone() for p in model.parameters() if p.requires_grad] if has_masters else None
        model = model.to(device)
        if job.precision == "bf16" and not self.sharded:
            model = model.to(torch.bfloat16)
        self.model = self.distribute(model)
        self.run = torch.compile(self.model) if options.compile else self.model
        self.optimizer = self.make_optimizer(options, first_values)
        self.steps = 0

    def distribute(self, model):
        if self.job.ranks == 1:
            return model
        if not self.sharded:
            return DistributedDataParallel(model)
        mesh = init_device_mesh(self.device.type, (self.job.ranks,))
        kinds = {"mesh": mesh, "reshard_after_forward": self.job.stage == 3}
        if self.job.precision == "bf16":
            kinds["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
        for block in model.blocks:
            fully_shard(block, **kinds)
        return fully_shard(model, **kinds)

    def make_optimizer(self, options, first_values):
        def make(parameters):
            fused = {"fused": True} if options.fused else {}
            return torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01, **fused)

        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if first_values:
            return Masters(trained, first_values, make, "cpu" if self.job.offload else self.device)
        return make(trained)

    def load(self, micro_step):
        job = self.job
        first = ((self.steps * job.micro_steps + micro_step) * job.ranks + self.rank) * job.micro_batch
        return [part.to(self.device) for part in text(self.seed, first, job.micro_batch, job.model["vocab"],
                                                      job.model["seq_len"])]

    def exchanges_in(self, micro_step):
        """Sets what DDP and FSDP2 do with gradients and parameters in this micro-step."""
        last = micro_step + 1 == self.job.micro_steps
        if isinstance(self.model, FSDPModule):
            # Stage 1 reduces once per step, stages 2 and 3 in every micro-step; 1 and 2 gather once per step, 3 every
            # time.
            self.model.set_requires_gradient_sync(last or self.job.stage > 1)
            self.model.set_reshard_after_backward(last or self.job.stage == 3)
        elif isinstance(self.model, DistributedDataParallel) and not last:
            return self.model.no_sync()
        return nullcontext()

    def step(self):
        """Seconds of forward, backward and update (as the program sees them), and this rank's mean loss."""
        batches = [self.load(micro_step) for micro_step in range(self.job.micro_steps)]
        synchronise(self.device)
        if self.job.ranks > 1:
            dist.barrier()
        begin = time.perf_counter()
        forward = backward = 0.0
        total = 0.0
        for micro_step, batch in enumerate(batches):
            with self.exchanges_in(micro_step):
                at = time.perf_counter()
                loss = self.run(*batch) / self.job.micro_steps
                between = time.perf_counter()
                loss.backward()
                forward, backward = forward + between - at, backward + time.perf_counter() - between
            total = total + loss.detach()
        at = time.perf_counter()
        self.optimizer.step()
        self.optimizer.zero_grad()
        synchronise(self.device)
        end = time.perf_counter()
        self.steps += 1
        return [end - begin, forward, backward, end - at], float(total)


def synchronise(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def agreed(job, times, loss):
    """The slowest rank's times and the mean loss, the same on all ranks."""
    if job.ranks == 1:
        return times, loss
    together = torch.tensor(times, dtype=torch.float64)
    losses = torch.tensor([loss], dtype=torch.float64)
    if dist.get_backend() == "nccl":
        together, losses = together.cuda(), losses.cuda()
    dist.all_reduce(together, dist.ReduceOp.MAX)
    dist.all_reduce(losses)
    return together.tolist(), losses.item() / job.ranks


class Peak:
    """Peak memory in bytes, from before the model is made. On a GPU it is what PyTorch's allocator has given out. On a CPU,
    where the allocator does not count, it is the growth of this process's resident memory (VmHWM of
    /proc/self/status), after a step of a tiny job has loaded the parts of the libraries that such a job needs."""

    def __init__(self, job, options, device):
        self.on_gpu = device.type == "cuda"
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
            return
        Trainer(job.tiny(), options, device).step()
        self.return_memory()
        self.before = self.resident("VmRSS")

    @staticmethod
    def return_memory():
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)

    @staticmethod
    def resident(name):
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name)) * 1024

    def forget_initialisation(self):
        """The arrays from which the weights were made have been freed; they are not part of training."""
        if self.on_gpu:
            return
        self.return_memory()
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")

    def bytes(self):
        return torch.cuda.max_memory_allocated() if self.on_gpu else self.resident("VmHWM") - self.before


def measure(job, options, trainer):
    """Rows of times and losses of all steps, and how many of them were warm-up."""
    rows, losses, warm_up = [], [], None
    begin = time.perf_counter()
    warm_at = None
    while True:
        times, loss = agreed(job, *trainer.step())
        rows.append(times)
        losses.append(loss)
        if not math.isfinite(loss):
            return rows, losses, warm_up or 0
        now = time.perf_counter()
        # All ranks decide by the first one's clock.
        (elapsed,), _ = agreed(job, [now - begin], 0.0)
        if options.steps:
            warm_up = min(3, options.steps - 1)
            if len(rows) == options.steps:
                return rows, losses, warm_up
        elif warm_up is None:
            if elapsed >= options.warmup_s and len(rows) >= 3:
                warm_up, warm_at = len(rows), elapsed
        elif elapsed - warm_at >= options.measure_s:
            return rows, losses, warm_up


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True, help="what to train, as krigtune-bench --config")
    parser.add_argument("--json", action="store_true", help="ignored: the result is always one JSON line")
    parser.add_argument("--steps", type=int, help="exactly so many optimizer steps, the first three as warm-up")
    parser.add_argument("--warmup-s", type=float, default=2.0)
    parser.add_argument("--measure-s", type=float, default=10.0)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--seed", type=int, default=1, help="of the initial values and the text")
    parser.add_argument("--compile", action="store_true", help="the model by torch.compile")
    parser.add_argument("--fused", action="store_true", help="AdamW in one kernel; else PyTorch's default")
    return parser.parse_args()


def begin(job, options):
    """The device of this rank; connects it with the others."""
    cuda = options.device == "cuda" or (options.device == "auto" and torch.cuda.is_available())
    if cuda and not torch.cuda.is_available():
        print("torch_reference: no GPU can be used", file=sys.stderr)
        sys.exit(NO_DEVICE)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world != job.ranks:
        refuse(f"{world} processes, but the cluster has {job.ranks} ranks", "start as many, by torchrun")
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        torch.backends.cuda.matmul.allow_tf32 = job.precision != "fp32"
    else:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if world > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    return torch.device("cuda" if cuda else "cpu")


def result_of(job, options, device, measured, peak):
    rows, losses, warm_up = measured
    times = [row[0] for row in rows[warm_up:]]
    step_s = statistics.median(times)
    low, high = numpy.percentile(times, [10, 90])
    parts = [statistics.median(row[i] for row in rows[warm_up:]) for i in (1, 2, 3)]
    return {
        "schema_version": 1, "program": "torch_reference", "version": torch.__version__, "host": socket.gethostname(),
        "seed": options.seed, "status": "ok", "reason": "", "message": None, "device": device.type,
        "device_name": torch.cuda.get_device_name() if device.type == "cuda" else None,
        "compiled": options.compile,
        "step_time_s": step_s, "step_time_p10_s": float(low), "step_time_p90_s": float(high),
        "step_time_mean_s": statistics.fmean(times), "steps": len(rows), "measured_steps": len(times),
        "samples_per_s": job.sequences() / step_s,
        "tokens_per_s": job.sequences() * job.model["seq_len"] / step_s,
        "flops_per_s": job.flops() / step_s,
        # On GPUs the program is ahead of the device, so these times are not those of the kernels.
        "breakdown": dict(zip(("forward_s", "backward_s", "optimizer_s"), parts)),
        "loss_first": losses[0], "loss_last": losses[-1], "losses": losses[:20],
        "ranks": job.ranks, "configuration": job.configuration,
        "arena_peak_bytes": peak,
        "reserved_peak_bytes": torch.cuda.max_memory_reserved() if device.type == "cuda" else None,
        "process_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main():
    options = parse()
    job = Job(options.config)
    device = begin(job, options)
    try:
        peak = Peak(job, options, device)
        trainer = Trainer(job, options, device)
        peak.forget_initialisation()
        measured = measure(job, options, trainer)
    except torch.OutOfMemoryError as error:
        print(f"torch_reference: {error}", file=sys.stderr)
        sys.exit(OUT_OF_MEMORY)
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps(result_of(job, options, device, measured, peak.bytes())), flush=True)
    if job.ranks > 1:
        dist.barrier()
        dist.destroy_process_group()
    return 0 if math.isfinite(measured[1][-1]) else NOT_FINITE


if __name__ == "__main__":
    sys.exit(main())
