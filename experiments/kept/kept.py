#!/usr/bin/env python3
"""What autograd keeps for the backward pass of a block: in full training of some models, and with PEFT's adapters.

Needs PyTorch, transformers and peft (PyPI). Writes bytes per layer and token, the difference between a model of four
layers and one of two, as CSV: kept.py > ../results/kept/kept.csv
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


SIZES = {
    "hidden_size": HIDDEN, "intermediate_size": FFN, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
    "vocab_size": VOCAB, "max_position_embeddings": LENGTH, "attn_implementation": "sdpa", "tie_word_embeddings": False}
CONFIGS = {
    "Llama": lambda layers: transformers.LlamaConfig(num_hidden_layers=layers, **SIZES),
    "Qwen3": lambda layers: transformers.Qwen3Config(num_hidden_layers=layers, head_dim=HIDDEN // HEADS, **SIZES),
    "Mixtral": lambda layers: transformers.MixtralConfig(
        num_hidden_layers=layers, num_local_experts=4, num_experts_per_tok=2, **SIZES),
    "GPT-2": lambda layers: transformers.GPT2Config(
        n_embd=HIDDEN, n_layer=layers, n_head=HEADS, n_positions=LENGTH, vocab_size=VOCAB, attn_implementation="sdpa",
        activation_function="gelu_pytorch_tanh", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
}


def model_of(name, layers, dtype=torch.bfloat16):
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(CONFIGS[name](layers)).to(dtype)


def llama(layers):
    return model_of("Llama", layers)


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
    out.writerow(["model", "weights", "trained", "adapters", "bytes_per_layer_and_token", "torch", "transformers",
                  "peft"])
    versions = [torch.__version__, transformers.__version__, peft.__version__]
    for name in CONFIGS:
        for dtype in (torch.bfloat16, torch.float32):
            kept = of_a_layer(lambda layers: model_of(name, layers, dtype), False)
            out.writerow([name, str(dtype).split(".")[-1], "all", "", kept, *versions])
    for targets in TARGETS:
        for fp32 in (True, False):
            kept = of_a_layer(lambda layers: with_adapters(layers, targets, fp32), fp32)
            out.writerow(["Llama", "bfloat16", targets, "fp32, autocast" if fp32 else "bf16", kept, *versions])


if __name__ == "__main__":
    main()
