"""What is trained, and how: on CPU ranks two models that 2 and 4 ranks train at about a second per step, on a GPU GPT-2."""
import json

MODELS = {
    "deep": {"layers": 8, "hidden": 192, "heads": 3, "vocab": 2048, "seq_len": 128},
    "wide": {"layers": 3, "hidden": 512, "heads": 8, "vocab": 2048, "seq_len": 128},
    "124m": {"preset": "gpt2-124m"},
    "774m": {"preset": "gpt2-774m"},
}

# Model, ranks, ZeRO stage, micro-batch, micro-steps, checkpointing.
CPU = [
    ("deep", 2, 0, 8, 1, "none"), ("deep", 2, 0, 1, 8, "none"), ("deep", 2, 0, 4, 2, "full"),
    ("deep", 2, 1, 2, 4, "none"), ("deep", 2, 2, 1, 8, "none"), ("deep", 2, 3, 8, 1, "none"),
    ("deep", 2, 3, 1, 8, "none"), ("deep", 2, 3, 2, 4, "full"), ("deep", 2, 3, 2, 1, "none"),
    ("wide", 2, 0, 8, 1, "none"), ("wide", 2, 0, 1, 8, "none"), ("wide", 2, 0, 2, 4, "full"),
    ("wide", 2, 0, 2, 1, "none"), ("wide", 2, 1, 4, 2, "none"), ("wide", 2, 2, 1, 8, "none"),
    ("wide", 2, 2, 4, 2, "selective"), ("wide", 2, 3, 8, 1, "none"), ("wide", 2, 3, 4, 2, "none"),
    ("wide", 2, 3, 1, 8, "none"), ("wide", 2, 3, 1, 8, "full"),
    ("deep", 4, 0, 4, 1, "none"), ("deep", 4, 2, 1, 4, "none"), ("deep", 4, 3, 4, 1, "full"),
    ("deep", 4, 3, 1, 4, "none"), ("wide", 4, 0, 4, 1, "none"), ("wide", 4, 1, 2, 2, "none"),
    ("wide", 4, 3, 4, 1, "none"), ("wide", 4, 3, 1, 4, "full"),
]

# For one GPU: the same, with precision and the place of the optimizer.
GPU = [
    ("124m", 1, 0, 4, 1, "none", "bf16"), ("124m", 1, 0, 16, 1, "none", "bf16"), ("124m", 1, 0, 32, 1, "none", "bf16"),
    ("124m", 1, 0, 4, 8, "none", "bf16"), ("124m", 1, 0, 16, 1, "selective", "bf16"),
    ("124m", 1, 0, 16, 1, "full", "bf16"), ("124m", 1, 0, 8, 1, "none", "fp32"), ("124m", 1, 0, 8, 2, "full", "fp32"),
    ("774m", 1, 0, 4, 1, "none", "bf16"), ("774m", 1, 0, 8, 1, "none", "bf16"), ("774m", 1, 0, 8, 4, "none", "bf16"),
    ("774m", 1, 0, 16, 1, "full", "bf16"), ("774m", 1, 0, 8, 1, "none", "bf16", "cpu"),
    ("774m", 1, 0, 8, 8, "full", "bf16", "cpu"),
]


def block_elems(model):
    return 12 * MODELS[model]["hidden"] ** 2 + 13 * MODELS[model]["hidden"]


class Row:
    def __init__(self, model, ranks, stage, micro_batch, micro_steps, recompute, precision="fp32", offload="none"):
        self.model, self.ranks, self.stage, self.precision, self.offload = model, ranks, stage, precision, offload
        self.micro_batch, self.micro_steps, self.recompute = micro_batch, micro_steps, recompute
        place = f"r{ranks}-z{stage}" if ranks > 1 else precision + ("-offload" if offload == "cpu" else "")
        self.name = f"{model}-{place}-m{micro_batch}x{micro_steps}-{recompute}"

    def workload(self, framework=None):
        named = {"framework": framework} if framework else {}
        return {"model": MODELS[self.model], "precision": self.precision, **named}

    def tokens(self):
        return self.ranks * self.micro_batch * self.micro_steps * MODELS[self.model].get("seq_len", 1024)

    def chosen(self):
        chosen = {"zero_stage": self.stage, "micro_batch": self.micro_batch,
                  "gradient_accumulation_steps": self.micro_steps, "activation_checkpointing": self.recompute}
        return {**chosen, "offload_optimizer": self.offload} if self.ranks == 1 else chosen

    def exchange_knobs(self):
        """DDP's buckets have 25 MiB. FSDP2's are whole blocks, and it shards every tensor."""
        if self.ranks == 1:
            return {}
        bucket = 25 * 2**20 // 4 if self.stage == 0 else block_elems(self.model)
        return {"overlap_comm": True, "reduce_bucket_size": bucket, "allgather_bucket_size": bucket,
                "stage3_param_persistence_threshold": 0}

    def job(self):
        """The file for krigtune-bench and torch_reference.py."""
        return json.dumps({"workload": self.workload(), "cluster": {"gpu": "local", "gpus_per_node": self.ranks},
                           "configuration": {**self.chosen(), **self.exchange_knobs()}}, indent=1)

    def session(self, framework, cluster):
        """The session for krigtune plan: a space with this one configuration."""
        named = None if framework == "krigtune" else framework
        # Ranks have no spare cores: the loopback device uses the time of the cores that compute.
        knobs = {**self.exchange_knobs(), **({"overlap_comm": False} if self.ranks > 1 else {})}
        return json.dumps({"workload": self.workload(named), "cluster": {"gpus_per_node": self.ranks, **cluster},
                           "space": {key: [value] for key, value in self.chosen().items()},
                           "fixed": knobs,
                           "runner": {"kind": "bench" if framework == "krigtune" else "none"}}, indent=1)


def rows(device):
    return [Row(*row) for row in (GPU if device == "cuda" else CPU)]
