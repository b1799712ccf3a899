"""The time and memory of a transformer's step on H100s by a formula. The stand-ins of training programs print it, and the
tests look for its optimum. It is invented, but every tuned parameter has a price, so that the optimum is not in a corner.

Parameters have krigtune's names. Times in seconds, memory in GiB.
"""
import math

LIMIT_GIB = 79.1
PEAK_FLOPS = 989e12
LINK_BYTES_S = 300e9  # from one GPU to the others of its node
NODE_GPUS = 8
NETWORK_BYTES_S = 40e9
LAUNCH_S = 6e-6  # per message
DEFAULTS = {"tensor_parallel": 1, "pipeline_parallel": 1, "virtual_pipeline": 1, "context_parallel": 1, "micro_batch": 1,
            "zero_stage": 0, "activation_checkpointing": "none", "sequence_parallel": False, "overlap_comm": False,
            "overlap_param_gather": False, "reduce_bucket_size": 40_000_000, "offload_optimizer": "none"}


class Model:
    def __init__(self, layers, hidden, heads, vocab, seq_len, feed_forward=None):
        self.layers, self.hidden, self.heads, self.vocab, self.seq_len = layers, hidden, heads, vocab, seq_len
        self.feed_forward = feed_forward or 4 * hidden
        self.parameters = layers * (4 * hidden**2 + 2 * hidden * self.feed_forward) + 2 * vocab * hidden


def with_defaults(configuration):
    return dict(DEFAULTS, **configuration)


def data_parallel(c, world):
    return world // (c["tensor_parallel"] * c["pipeline_parallel"] * c["context_parallel"])


def trouble(model, world, batch, configuration):
    """Why every framework refuses this configuration; empty if they accept it."""
    c = with_defaults(configuration)
    split = c["tensor_parallel"] * c["pipeline_parallel"] * c["context_parallel"]
    if world % split:
        return f"world size ({world}) is not divisible by {split}"
    if batch % (c["micro_batch"] * data_parallel(c, world)):
        return (f"global batch size ({batch}) is not divisible by micro batch size ({c['micro_batch']}) times data parallel "
                f"size ({data_parallel(c, world)})")
    if model.layers % (c["pipeline_parallel"] * c["virtual_pipeline"]):
        return f"number of layers ({model.layers}) should be divisible by the pipeline's stages"
    if model.heads % c["tensor_parallel"]:
        return f"number of heads ({model.heads}) must be divisible by the tensor parallel size ({c['tensor_parallel']})"
    return ""


def bytes_s(ranks):
    return LINK_BYTES_S if ranks <= NODE_GPUS else NETWORK_BYTES_S


def compute_s(model, c):
    """Time of one micro-batch on the layers of one stage, forward and backward. Small and split products are slow."""
    tokens = c["micro_batch"] * model.seq_len / c["context_parallel"]
    flops = 6 * model.parameters * tokens + 12 * model.layers * model.hidden * tokens * model.seq_len / 2
    flops *= {"none": 1, "selective": 1.05, "full": 4 / 3}[c["activation_checkpointing"]]
    rows = tokens * model.hidden / c["tensor_parallel"]
    efficiency = 0.62 * rows / (rows + 6e6)
    return flops / (c["tensor_parallel"] * c["pipeline_parallel"]) / (PEAK_FLOPS * efficiency)


def tensor_parallel_s(model, c):
    tp = c["tensor_parallel"]
    if tp == 1:
        return 0
    volume = 2 * c["micro_batch"] * model.seq_len / c["context_parallel"] * model.hidden * 2 * (tp - 1) / tp
    one = volume / bytes_s(tp) * (0.85 if c["sequence_parallel"] else 1) + LAUNCH_S * tp
    return 4 * model.layers / c["pipeline_parallel"] * one


def gradients_s(model, c, world, accumulation, backward_s):
    """The part of exchanging gradients and parameters that is not hidden behind the last micro-batch's backward."""
    dp = data_parallel(c, world)
    if dp == 1:
        return 0
    parameters = model.parameters / (c["tensor_parallel"] * c["pipeline_parallel"])
    volume = parameters * (dp - 1) / dp * {0: 8, 1: 6, 2: 4 + 2 * accumulation, 3: 4 + 4 * accumulation}[c["zero_stage"]]
    buckets = max(1, math.ceil(parameters / c["reduce_bucket_size"])) if c["overlap_comm"] else 1
    whole = volume / bytes_s(c["tensor_parallel"] * dp) + buckets * LAUNCH_S * dp * 8
    if not c["overlap_comm"]:
        return whole
    hidden = 0.9 if c["overlap_param_gather"] or c["zero_stage"] == 0 else 0.65
    return max(whole - backward_s * accumulation ** 0.3, whole * (1 - hidden), whole / buckets)


def step_s(model, world, batch, configuration):
    c = with_defaults(configuration)
    accumulation = batch // (c["micro_batch"] * data_parallel(c, world))
    micro_step = compute_s(model, c) + tensor_parallel_s(model, c)
    filling = (c["pipeline_parallel"] - 1) * micro_step / c["virtual_pipeline"]
    messages = accumulation * (c["pipeline_parallel"] - 1) * c["virtual_pipeline"] * 80e-6
    exposed = gradients_s(model, c, world, accumulation, 2 / 3 * micro_step)
    offload = 0.9 * model.parameters / world / 1e9 if c["offload_optimizer"] != "none" else 0
    return accumulation * micro_step + filling + messages + exposed + offload + 0.012


def states_bytes(c, dp):
    """Bytes for training one parameter, if bfloat16 parameters have a float32 copy."""
    states = {0: 18, 1: 6 + 12 / dp, 2: 2 + 16 / dp, 3: 18 / dp}[c["zero_stage"]]
    return states if c["offload_optimizer"] == "none" else states - 12 / (dp if c["zero_stage"] else 1)


def peak_gib(model, world, batch, configuration):
    c = with_defaults(configuration)
    dp = data_parallel(c, world)
    parameters = model.parameters / (c["tensor_parallel"] * c["pipeline_parallel"])
    in_flight = min(c["pipeline_parallel"], batch // (c["micro_batch"] * dp)) * (1 + 0.2 * (c["virtual_pipeline"] > 1))
    tokens = c["micro_batch"] * model.seq_len / c["context_parallel"]
    cut = c["tensor_parallel"]
    per_token = {"full": 2 * model.hidden,
                 "selective": model.hidden * (10 / (cut if c["sequence_parallel"] else 1) + 24 / cut),
                 "none": model.hidden * (14 / (cut if c["sequence_parallel"] else 1) + 30 / cut)}
    activations = tokens * model.layers / c["pipeline_parallel"] * per_token[c["activation_checkpointing"]] * in_flight
    logits = 6 * tokens * model.vocab / cut
    gathered = 4 * parameters / model.layers if c["zero_stage"] == 3 else 0
    buckets = 4 * c["reduce_bucket_size"] if c["overlap_comm"] else 0
    return (states_bytes(c, dp) * parameters + activations + logits + gathered + buckets) / 2**30 + 1.3


def out_of_memory(peak):
    """The message of torch 2.5 and later."""
    return (f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {max(0.02, (peak - LIMIT_GIB) * 1.1):.2f} GiB. GPU 0 "
            f"has a total capacity of {LIMIT_GIB} GiB of which 0.73 GiB is free. Including non-PyTorch memory, this process has "
            f"{LIMIT_GIB - 0.73:.2f} GiB memory in use. Of the allocated memory 71.08 GiB is allocated by PyTorch, and 4.35 GiB "
            "is reserved by PyTorch but unallocated.")


def wobble(step):
    """Noise of a step that is the same in every run."""
    return 1 + 0.006 * ((step * 7919) % 7 - 3) / 3
