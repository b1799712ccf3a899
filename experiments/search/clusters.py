"""Six clusters that exist only on the virtual clock.

The machine that answers differs from what the session says: its links and GPUs are
slower than their data sheets ("hidden" below), each class of operations and memory have
a hidden factor, some trials are noisy, and one part of the space crashes. Each machine
is measured once, completely (measure_table), and the results are in simulated/.
"""

# Sequences per step, and the space in the form of a session.
LOG2 = {"scale": "log2", "min": 1}
BUCKETS = {"min": 1e6, "max": 1e9, "scale": "log", "steps": 4}
CHECKPOINTING = ["none", "selective", "full"]

GPT_30B = {"layers": 48, "hidden": 7168, "heads": 56, "vocab": 50304, "seq_len": 2048}

CLUSTERS = {
    "gpt2-1.5b_8xa100-40gb": {
        "model": {"preset": "gpt2-1.5b"}, "framework": "deepspeed", "batch": 512,
        "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-40gb", "interconnect": "nvlink3"},
        "space": {"zero_stage": [0, 1, 2, 3], "micro_batch": {**LOG2, "max": 64}, "reduce_bucket_size": BUCKETS,
                  "overlap_comm": [False, True], "activation_checkpointing": ["none", "full"],
                  "offload_optimizer": ["none", "cpu"]},
        "hidden": {"gpus": {"a100-40gb": {"gemm_fraction": 0.6, "launch_us": 9}},
                   "links": {"nvlink3": {"reached": 0.6}}},
    },
    "llama-3-8b_16xh100": {
        "model": {"preset": "llama-3-8b"}, "framework": "fsdp", "batch": 128,
        "cluster": {"nodes": 2, "gpus_per_node": 8, "gpu": "h100-80gb", "interconnect": "nvlink4",
                    "network": "ib-ndr-400"},
        "space": {"zero_stage": [0, 1, 2, 3], "tensor_parallel": [1, 2, 4, 8], "micro_batch": {**LOG2, "max": 8},
                  "activation_checkpointing": CHECKPOINTING, "overlap_comm": [False, True]},
        "hidden": {"gpus": {"h100-80gb": {"gemm_half_flops": 3e10}}, "links": {"ib-ndr-400": {"reached": 0.45}}},
    },
    "llama-2-13b_32xa100": {
        "model": {"preset": "llama-2-13b"}, "framework": "megatron", "batch": 256,
        "cluster": {"nodes": 4, "gpus_per_node": 8, "gpu": "a100-80gb", "interconnect": "nvlink3",
                    "network": "ib-hdr-200"},
        "space": {"tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [1, 2, 4, 8], "zero_stage": [0, 1],
                  "micro_batch": {**LOG2, "max": 16}, "activation_checkpointing": CHECKPOINTING},
        "hidden": {"gpus": {"a100-80gb": {"gemm_fraction": 0.65}},
                   "links": {"nvlink3": {"reached": 0.5}, "ib-hdr-200": {"reached": 0.6, "latency_us": 20}}},
    },
    "llama-2-70b_256xh100": {
        "model": {"preset": "llama-2-70b"}, "framework": "megatron", "batch": 1024,
        "cluster": {"nodes": 32, "gpus_per_node": 8, "gpu": "h100-80gb", "interconnect": "nvlink4",
                    "network": "ib-ndr-400"},
        "space": {"tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [1, 2, 4, 8, 16], "zero_stage": [0, 1],
                  "micro_batch": {**LOG2, "max": 8}, "activation_checkpointing": CHECKPOINTING},
        "hidden": {"gpus": {"h100-80gb": {"launch_us": 12}},
                   "links": {"ib-ndr-400": {"reached": 0.6, "latency_us": 25}}},
    },
    "llama-2-7b_8xl40s": {
        "model": {"preset": "llama-2-7b"}, "framework": "deepspeed", "batch": 64,
        "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "l40s-48gb", "interconnect": "pcie4"},
        "space": {"zero_stage": [1, 2, 3], "micro_batch": {**LOG2, "max": 8}, "reduce_bucket_size": BUCKETS,
                  "allgather_bucket_size": BUCKETS, "overlap_comm": [False, True],
                  "activation_checkpointing": CHECKPOINTING, "offload_optimizer": ["none", "cpu"]},
        "hidden": {"gpus": {"l40s-48gb": {"gemm_fraction": 0.5, "host_bytes_per_s": 12e9}},
                   "links": {"pcie4": {"reached": 0.5}}},
    },
    "gpt-30b_64xa100-eth": {
        "model": GPT_30B, "framework": "deepspeed", "batch": 512,
        "cluster": {"nodes": 8, "gpus_per_node": 8, "gpu": "a100-80gb", "interconnect": "nvlink3",
                    "network": "eth-100"},
        "space": {"zero_stage": [1, 2, 3], "tensor_parallel": [1, 2, 4, 8], "micro_batch": {**LOG2, "max": 8},
                  "reduce_bucket_size": BUCKETS, "overlap_comm": [False, True],
                  "activation_checkpointing": CHECKPOINTING},
        "hidden": {"gpus": {"a100-80gb": {"gemm_half_flops": 2e10}}, "links": {"eth-100": {"reached": 0.5}}},
    },
}

FAILURES = {"unforeseen_fraction": 0.1, "crash_probability": 0.01}


def told(name):
    """What the session says: workload, cluster, space."""
    this = CLUSTERS[name]
    session = {"workload": {"model": this["model"], "precision": "bf16", "framework": this["framework"],
                            "train_batch_size": this["batch"]},
               "cluster": dict(this["cluster"]), "space": this["space"], "baseline": None,
               "objective": {"metric": "tokens_per_second"}}
    if this["framework"] == "megatron":
        session["fixed"] = {"sequence_parallel": False}  # as in the measurement
    return session


def measured(name, world=0):
    """The machine that answers. `world`: others of the same kind, with other random numbers."""
    session = told(name)
    session["cluster"]["hardware"] = CLUSTERS[name]["hidden"]
    session["memory"] = {"reserve_fraction": 0}
    session["runner"] = {"kind": "simulate", "noise": 0.01, "systematic_error": 0.2, "memory_error": 0.1,
                         "failures": FAILURES, "seed": 100 * world + 1 + list(CLUSTERS).index(name)}
    return session
