#!/usr/bin/env python3
"""What optimizers keep of a model: bytes of their states for each parameter, after two steps, and the FLOPs of the
matrix products of a step (torch.utils.flop_counter).

Needs PyTorch, transformers, bitsandbytes and lion-pytorch (PyPI). Writes CSV:
states.py > ../results/kept/states.csv
"""
import csv
import importlib.metadata
import sys

import bitsandbytes
import lion_pytorch
import torch
import torch.utils.flop_counter
import transformers

HIDDEN, FFN, HEADS, KV_HEADS, VOCAB, LENGTH = 256, 688, 8, 4, 2048, 32


class Muon:
    """Muon for the matrices of the blocks, AdamW for the table, the head and the norms."""

    def __init__(self, named):
        named = list(named)
        is_matrix = [p.ndim == 2 and ".layers." in name for name, p in named]
        self.parts = (torch.optim.Muon([p for (_, p), it in zip(named, is_matrix) if it], lr=1e-4),
                      torch.optim.AdamW([p for (_, p), it in zip(named, is_matrix) if not it], lr=1e-4))

    def step(self):
        for part in self.parts:
            part.step()

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    @property
    def state(self):
        return {p: state for part in self.parts for p, state in part.state.items()}


def of_values(make):
    return lambda named: make([p for _, p in named])


OPTIMIZERS = {
    "AdamW": ("torch", of_values(lambda p: torch.optim.AdamW(p, lr=1e-4))),
    "SGD with momentum": ("torch", of_values(lambda p: torch.optim.SGD(p, lr=1e-4, momentum=0.9))),
    "SGD": ("torch", of_values(lambda p: torch.optim.SGD(p, lr=1e-4))),
    "Muon": ("torch", Muon),
    "AdamW8bit": ("bitsandbytes", of_values(lambda p: bitsandbytes.optim.AdamW8bit(p, lr=1e-4))),
    "Lion8bit": ("bitsandbytes", of_values(lambda p: bitsandbytes.optim.Lion8bit(p, lr=1e-4))),
    "Lion": ("lion-pytorch", of_values(lambda p: lion_pytorch.Lion(p, lr=1e-4))),
    "Adafactor": ("transformers", of_values(lambda p: transformers.Adafactor(p))),
}


def llama(dtype):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=2, num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS, vocab_size=VOCAB, max_position_embeddings=LENGTH, tie_word_embeddings=False)
    return transformers.LlamaForCausalLM(config).to(dtype)


def bytes_of(value):
    if not torch.is_tensor(value):
        return 0
    parts = getattr(value, "__tensor_flatten__", None)  # quantised tensors consist of several
    if parts is not None and type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
        return sum(bytes_of(getattr(value, name)) for name in parts()[0])
    return value.numel() * value.element_size() if value.numel() > 1 else 0


def measured(make, dtype):
    model = llama(dtype)
    optimizer = make(model.named_parameters())
    tokens = torch.randint(0, VOCAB, (2, LENGTH))
    for _ in range(2):
        model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
        with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
            optimizer.step()
        optimizer.zero_grad()
    kept = sum(bytes_of(v) for state in optimizer.state.values() for v in state.values())
    return kept / sum(p.numel() for p in model.parameters()), counter.get_total_flops()


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["optimizer", "of", "version", "weights", "state_bytes_per_parameter", "product_flops"])
    for name, (package, make) in OPTIMIZERS.items():
        for dtype in (torch.float32, torch.bfloat16):
            try:
                kept, flops = measured(make, dtype)
                kept = f"{kept:.4f}"
            except Exception as error:  # some have no kernels for the processor
                kept, flops = f"fails: {type(error).__name__}", ""
                print(name, dtype, error, file=sys.stderr)
            out.writerow([name, package, importlib.metadata.version(package), str(dtype).split(".")[-1], kept, flops])


if __name__ == "__main__":
    main()
