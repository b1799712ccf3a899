#!/usr/bin/env python3
"""Checks that krigtune-bench and PyTorch compute the same losses, step by step, from the same weights, text and AdamW.

  check.py KRIGTUNE_BENCH

Run it with a Python that has torch. Prints one line for each case; exit code 1 if a loss differs by more than 8e-7 of its value.
Sums in another order make 0.3e-7 to 2.1e-7. In six steps GELU by the error function instead of tanh makes 1.2e-6, no weight
decay 1.3e-5, adapters of values that stay as they are 5.0e-5, beta2 0.999 instead of 0.95 2e-4, and an epsilon of 1e-6 in the
norms 4e-4 (measured on these cases).
"""
import json
import pathlib
import sys
import tempfile

import ranks

SIZES = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 96, "seq_len": 32}
LLAMA = {**SIZES, "kv_heads": 2, "ffn_hidden": 96, "gated_mlp": True, "tied_embeddings": False, "positions": "rotary",
         "norm": "rmsnorm"}
QWEN3 = {**LLAMA, "head_dim": 24, "qk_norm": "head"}
ADAPTERS = {"lora": {"rank": 4}}
CASES = {
    "GPT-2 style, one rank": (1, SIZES, {"micro_batch": 4}),
    "Llama style with grouped queries, two micro-steps": (1, LLAMA, {"micro_batch": 2, "gradient_accumulation_steps": 2}),
    "Qwen3 style: norms of each head, heads wider than hidden / heads": (1, QWEN3, {"micro_batch": 4}),
    "OLMo 2's norm of all queries": (1, {**LLAMA, "qk_norm": "full"}, {"micro_batch": 4}),
    "RMS norms without gains": (1, {**LLAMA, "norm_gain": False}, {"micro_batch": 4}),
    "layer norms without biases": (1, {**SIZES, "norm_bias": False}, {"micro_batch": 4}),
    "layer norms without gains": (1, {**SIZES, "norm_gain": False}, {"micro_batch": 4}),
    "adapters, two micro-steps":
        (1, QWEN3, {"micro_batch": 2, "gradient_accumulation_steps": 2}, ADAPTERS),
    "adapters of queries and values, recomputed":
        (1, SIZES, {"micro_batch": 4, "activation_checkpointing": "full"}, {"lora": {"rank": 4, "targets": ["q", "v"]}}),
    "adapters on two ranks, DDP": (2, LLAMA, {"micro_batch": 2, "gradient_accumulation_steps": 2}, ADAPTERS),
    "eager attention, two layers recomputed at once":
        (1, {**SIZES, "attention": "eager"}, {"micro_batch": 4, "activation_checkpointing": "full",
                                              "activation_checkpointing_layers": 2}),
    "selective recomputation": (1, SIZES, {"micro_batch": 4, "activation_checkpointing": "selective"}),
    "stage 0 on two ranks, DDP": (2, SIZES, {"micro_batch": 2, "gradient_accumulation_steps": 2, "zero_stage": 0}),
    "stage 1 on two ranks, FSDP2": (2, SIZES, {"micro_batch": 2, "gradient_accumulation_steps": 2, "zero_stage": 1}),
    "stage 2 on two ranks, FSDP2": (2, LLAMA, {"micro_batch": 2, "gradient_accumulation_steps": 2, "zero_stage": 2}),
    "stage 3 on two ranks, FSDP2, recomputed":
        (2, SIZES, {"micro_batch": 2, "gradient_accumulation_steps": 2, "zero_stage": 3, "activation_checkpointing": "full"}),
}
STEPS = 6
TOLERANCE = 8e-7


def losses(bench, folder, world, model, configuration, training=None):
    config, beats = folder / "job.json", folder / "beats.jsonl"
    workload = {"model": model, "precision": "fp32", **({"training": training} if training else {})}
    config.write_text(json.dumps({"workload": workload, "configuration": configuration,
                                  "cluster": {"gpu": "local", "gpus_per_node": world}}))
    beats.unlink(missing_ok=True)
    run = ["--config", config, "--json", "--device", "cpu", "--steps", str(STEPS)]
    ranks.run(world, [bench, *run, "--heartbeat", beats])
    own = [beat["loss"] for beat in map(json.loads, beats.read_text().splitlines()) if "loss" in beat]
    reference = pathlib.Path(__file__).resolve().parent.parent / "gpu" / "torch_reference.py"
    theirs = json.loads(ranks.run(world, [sys.executable, reference, *run]))["losses"]
    return own, theirs


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            own, theirs = losses(sys.argv[1], pathlib.Path(folder), *case)
            if len(own) != STEPS or len(theirs) != STEPS:
                print(f"FAILED  {name}: {len(own)} and {len(theirs)} losses instead of {STEPS}")
                failed = True
                continue
            apart = max(abs(a - b) / abs(a) for a, b in zip(own, theirs))
            word = "ok    " if apart <= TOLERANCE else "FAILED"
            print(f"{word}  {name}: losses from {own[0]:.4f} to {own[-1]:.4f}, relative difference {apart:.1e}", flush=True)
            failed = failed or apart > TOLERANCE
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
