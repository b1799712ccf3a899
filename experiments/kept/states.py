#!/usr/bin/env python3
"""What optimizers keep of a model: bytes of their states for each parameter, after two steps.

Needs PyTorch, transformers, bitsandbytes and lion-pytorch (PyPI). Writes CSV:
states.py > ../results/kept/states.csv
"""
import csv
import importlib.metadata
import sys

import bitsandbytes
import lion_pytorch
import torch
import transformers

HIDDEN, FFN, HEADS, KV_HEADS, VOCAB, LENGTH = 256, 688, 8, 4, 2048, 32

OPTIMIZERS = {
    "AdamW": ("torch", lambda p: torch.optim.AdamW(p, lr=1e-4)),
    "SGD with momentum": ("torch", lambda p: torch.optim.SGD(p, lr=1e-4, momentum=0.9)),
    "AdamW8bit": ("bitsandbytes", lambda p: bitsandbytes.optim.AdamW8bit(p, lr=1e-4)),
    "Lion8bit": ("bitsandbytes", lambda p: bitsandbytes.optim.Lion8bit(p, lr=1e-4)),
    "Lion": ("lion-pytorch", lambda p: lion_pytorch.Lion(p, lr=1e-4)),
    "Adafactor": ("transformers", lambda p: transformers.Adafactor(p)),
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


def bytes_per_parameter(make, dtype):
    model = llama(dtype)
    optimizer = make(model.parameters())
    tokens = torch.randint(0, VOCAB, (2, LENGTH))
    for _ in range(2):
        model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    kept = sum(bytes_of(v) for state in optimizer.state.values() for v in state.values())
    return kept / sum(p.numel() for p in model.parameters())


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["optimizer", "of", "version", "weights", "state_bytes_per_parameter"])
    for name, (package, make) in OPTIMIZERS.items():
        for dtype in (torch.float32, torch.bfloat16):
            try:
                kept = f"{bytes_per_parameter(make, dtype):.4f}"
            except Exception as error:  # some have no kernels for the processor
                kept = f"fails: {type(error).__name__}"
                print(name, dtype, error, file=sys.stderr)
            out.writerow([name, package, importlib.metadata.version(package), str(dtype).split(".")[-1], kept])


if __name__ == "__main__":
    main()
