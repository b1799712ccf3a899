#!/usr/bin/env python3
"""What autograd keeps for the backward pass of blocks with latent attention, tensor by tensor, beside ordinary attention.

Needs PyTorch and transformers (PyPI). Writes bytes per layer and token, the difference between a model of three layers
and one of two, as CSV: latents_kept.py > ../results/models/latents_kept.csv
"""
import collections
import csv
import sys

import torch
import transformers

LENGTH = 256
SIZES = dict(hidden_size=256, num_attention_heads=8, num_key_value_heads=8, intermediate_size=512, vocab_size=64,
             max_position_embeddings=LENGTH, attn_implementation="sdpa")


def latent(layers, q_rank):
    # Values as wide as queries, so that the processor's fused attention takes them.
    config = transformers.DeepseekV3Config(
        num_hidden_layers=layers, first_k_dense_replace=layers, q_lora_rank=q_rank, kv_lora_rank=64,
        qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=96, **SIZES)
    return transformers.DeepseekV3ForCausalLM(config).to(torch.bfloat16)


def ordinary(layers, _):
    config = transformers.LlamaConfig(num_hidden_layers=layers, head_dim=96, **SIZES)
    return transformers.LlamaForCausalLM(config).to(torch.bfloat16)


def kept(model):
    """Bytes of the distinct storages that are kept, without the parameters, by the shape of what was kept first."""
    known = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    held, sizes = [], collections.Counter()

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            held.append(tensor)  # so that no other storage gets its address
            sizes[("x".join(map(str, tensor.shape)), str(tensor.dtype), storage.nbytes())] += 1
        return tensor

    tokens = torch.randint(0, SIZES["vocab_size"], (1, LENGTH))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.train()(input_ids=tokens, use_cache=False)
    return sizes


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["attention", "q_rank", "tensor", "type", "tensors", "bytes_per_layer_and_token"])
    for name, make, q_rank in (("ordinary", ordinary, 0), ("latent", latent, None), ("latent", latent, 96)):
        of_a_layer = kept(make(3, q_rank)) - kept(make(2, q_rank))
        for (shape, dtype, size), count in of_a_layer.items():
            out.writerow([name, q_rank or 0, shape, dtype, count, count * size // LENGTH])
        total = sum(count * size for (_, _, size), count in of_a_layer.items()) // LENGTH
        out.writerow([name, q_rank or 0, "all", "", sum(of_a_layer.values()), total])


if __name__ == "__main__":
    main()
