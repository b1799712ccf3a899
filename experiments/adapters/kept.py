#!/usr/bin/env python3
"""What autograd keeps for the backward pass of Llama's blocks: in full training, and with PEFT's adapters.

Needs PyTorch, transformers and peft (PyPI). Writes bytes per layer and token, the difference between a model of four
layers and one of two, as CSV: kept.py > ../results/adapters/kept.csv
"""
import csv
import sys

import peft
import torch
import transformers

HIDDEN, FFN, HEADS, KV_HEADS, VOCAB, LENGTH, BATCH = 256, 688, 8, 4, 512, 128, 2
TARGETS = {
    "all-linear": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    "q_proj v_proj": ["q_proj", "v_proj"],
}


def llama(layers):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=layers, num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS, vocab_size=VOCAB, max_position_embeddings=LENGTH, attn_implementation="sdpa",
        tie_word_embeddings=False)
    return transformers.LlamaForCausalLM(config).to(torch.bfloat16)


def with_adapters(layers, targets, fp32):
    config = peft.LoraConfig(r=8, lora_alpha=16, target_modules=TARGETS[targets], lora_dropout=0.0,
                             task_type="CAUSAL_LM")
    return peft.get_peft_model(llama(layers), config, autocast_adapter_dtype=fp32)


def kept_bytes(model, autocast):
    """Bytes of the distinct storages that are kept, without the parameters."""
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    tokens = torch.randint(0, VOCAB, (BATCH, LENGTH))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    return sum(size for size, _ in kept.values())


def of_a_layer(make, autocast):
    return (kept_bytes(make(4), autocast) - kept_bytes(make(2), autocast)) / 2 / (BATCH * LENGTH)


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["trained", "adapters", "bytes_per_layer_and_token", "torch", "transformers", "peft"])
    versions = [torch.__version__, transformers.__version__, peft.__version__]
    out.writerow(["all", "", of_a_layer(llama, False), *versions])
    for targets in TARGETS:
        for fp32 in (True, False):
            kept = of_a_layer(lambda layers: with_adapters(layers, targets, fp32), fp32)
            out.writerow([targets, "fp32, autocast" if fp32 else "bf16", kept, *versions])


if __name__ == "__main__":
    main()
