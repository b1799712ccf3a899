#!/usr/bin/env python3
"""Draws models, machines and spaces at random, and computes them with other groups' models of a training step.

usage: drawn_worlds.py calculon CHECKOUT OUT FIRST LAST
       drawn_worlds.py simumax CHECKOUT OUT FIRST LAST
  CHECKOUT  of https://github.com/calculon-ai/calculon (Apache-2.0; needs numpy, pandas and psutil), or of
            https://github.com/MooreThreads/SimuMax (Apache-2.0; its requirements.txt, commit 4dcaae5)
  OUT       gets NAME.csv and NAME.json for each world that is worth searching, as in ../data/worlds
  FIRST to LAST are seeds; each draws one world. Calculon takes a second for each, SimuMax half a minute.
Then: experiments/search/run.sh --computed OUT. A dozen worlds cannot show a difference of a trial, a hundred can.
"""
import collections
import contextlib
import io
import itertools
import json
import math
import os
import pathlib
import random
import sys

import calculon_worlds

World = collections.namedtuple("World", "model system network gpus batch axes options parameters")
MICRO_BATCHES = (1, 2, 4, 8, 16)
STATES_BYTES = 18  # of a parameter and all that the optimizer keeps for it
FEWEST_POINTS, FEWEST_THAT_RUN = 60, 20


def power_of_two(number):
    return 2 ** round(math.log2(number))


def gpus_for(rng, parameters, gib, shares, most):
    """So many that the states of the model take a share of their memory within `shares`."""
    share = math.exp(rng.uniform(*map(math.log, shares)))
    return power_of_two(min(max(parameters * STATES_BYTES / (share * gib * 2**30), 8), most))


class OfCalculon:
    """GPTs of 1.2 to 300 billion parameters on Calculon's two systems, with networks and overlaps of several kinds."""

    prefix = "drawn"
    columns = calculon_worlds.COLUMNS
    most_points = 2000
    networks = {"a100_80g": (("ib-hdr-200", 25), ("eth-100", 12.5)),
                "h100_80g_nvl8": (("ib-ndr-400", 50), ("ib-hdr-200", 25), ("eth-100", 12.5))}  # GB/s of a GPU

    def __init__(self, checkout):
        self._checkout = checkout

    def draw(self, seed):
        rng = random.Random(seed)
        head = rng.choice((64, 128, 128))
        size = math.exp(rng.uniform(math.log(1.2e9), math.log(300e9)))
        heads = max(8, 8 * round((size / 12 * rng.uniform(80, 160)) ** (1 / 3) / head / 8))
        hidden = heads * head
        layers = size / 12 / hidden**2
        layers = max(8, 8 * round(layers / 8) if layers >= 32 else 4 * round(layers / 4))
        seq = rng.choice((1024, 2048, 2048, 4096, 8192))
        model = {"hidden": hidden, "feedforward": rng.choice((4, 4, 4, 3)) * hidden, "seq_size": seq,
                 "attn_heads": heads, "attn_size": head, "num_blocks": layers}
        parameters = layers * (4 * hidden**2 + 2 * hidden * model["feedforward"])
        system = rng.choice(tuple(self.networks))
        network = rng.choice(self.networks[system])
        gpus = gpus_for(rng, parameters, 80, (.04, .5), 1024)
        batch = gpus * rng.choice((2, 4, 8, 16))
        while batch * seq > 16e6 and batch > gpus:
            batch //= 2
        options = {"data_par_overlap": rng.random() < .6, "tensor_par_overlap": rng.choice(("none", "none", "ring")),
                   "seq_par_ag_redo": rng.random() < .3, "fused_activation": rng.random() < .6}
        return World(model, system, network, gpus, batch, self._axes(rng, heads, layers, gpus), options, parameters)

    @staticmethod
    def _axes(rng, heads, layers, gpus):
        pipeline = [stages for stages in (1, 2, 4, 8, 16, 32) if layers % stages == 0 and stages <= gpus]
        interleaved = [chunks for chunks in (2, 3, 4, 5)
                       if any(layers % (stages * chunks) == 0 for stages in pipeline[1:])]
        virtual = [1]
        if rng.random() < .5 and interleaved:
            virtual.append(rng.choice(interleaved))
        zero = rng.choice(((0, 1), (0, 1), (0,), (1,)))
        splits_tokens = rng.choice(((False, True), (False, True), (False,), (True,)))
        every = tuple(calculon_worlds.RECOMPUTE)
        recompute = rng.choice((every, every, ("none", "full"), ("none", "selective")))
        tensor = [ranks for ranks in (1, 2, 4, 8) if heads % ranks == 0]
        return tensor, pipeline, virtual, MICRO_BATCHES, recompute, zero, splits_tokens

    def points(self, world):
        for values in itertools.product(*world.axes):
            point = dict(zip(self.columns, values))
            tensor, pipeline, virtual = values[:3]
            if world.gpus % (tensor * pipeline) or world.model["num_blocks"] % (pipeline * virtual):
                continue
            data = world.gpus // (tensor * pipeline)
            if world.batch % (data * point["micro_batch"]):
                continue
            if virtual > 1 and (pipeline == 1 or world.batch // (data * point["micro_batch"]) % pipeline):
                continue
            if (tensor == 1 and point["sequence_parallel"]) or (data == 1 and point["zero_stage"] > 0):
                continue
            yield point

    def steps(self, world, points):
        """Yields seconds and bytes of each point, or None if it does not fit."""
        calculon = calculon_worlds.Calculon(self._checkout, world.model, world.system)
        calculon.set_network(world.network[1])
        for point in points:
            yield calculon.step(world.gpus, world.batch, point, self._overlaps(world, point))

    @staticmethod
    def _overlaps(world, point):
        overlaps = dict(world.options)
        if not point["sequence_parallel"]:
            overlaps["tensor_par_overlap"] = "none"
        if not point["sequence_parallel"] or point["activation_checkpointing"] == "full":
            overlaps["seq_par_ag_redo"] = False
        if world.gpus == point["tensor_parallel"] * point["pipeline_parallel"]:
            overlaps["data_par_overlap"] = False
        return overlaps


class OfSimuMax:
    """Dense models, and experts as Mixtral and DeepSeek-V2 have them, on SimuMax's two systems."""

    prefix = "simumax"
    columns = ["tensor_parallel", "pipeline_parallel", "virtual_pipeline", "context_parallel", "expert_parallel",
               "micro_batch", "activation_checkpointing"]
    most_points = 900
    systems = {"b200": ("b200_bf16_ceperm", 180, "ib-ndr-400"), "a100_pcie": ("a100_pcie", 80, "ib-hdr-200")}
    usable = .94

    def __init__(self, checkout):
        self._checkout = checkout
        sys.path.insert(0, str(checkout))

    def draw(self, seed):
        rng = random.Random(seed)
        kind = rng.choice(("dense", "dense", "mixtral", "mixtral", "latent"))
        hidden = rng.choice((2048, 3072, 4096, 5120, 8192) if kind == "dense" else (2048, 3072, 4096))
        heads, layers = hidden // 128, rng.choice((16, 24, 32, 48, 64))
        vocab = rng.choice((32000, 102400, 128256))
        seq = rng.choice((4096, 4096, 8192, 32768) if kind == "dense" else (2048, 4096, 8192))
        model = {"model_type": "dense" if kind == "dense" else "moe", "hidden_size": hidden, "head_num": heads,
                 "kv_head_num": max(8, heads // 8) if heads % 8 == 0 else heads, "head_size": 128,
                 "layer_num": layers, "vocab_size": vocab, "use_swiglu": True, "seq_size": seq}
        model.update(self._mlp(rng, kind, hidden, heads))
        system = rng.choice(("b200", "b200", "a100_pcie"))
        parameters = self._parameters(model)
        gpus = gpus_for(rng, parameters, self.systems[system][1], (.05, .35), 256)
        batch = gpus * rng.choice((1, 2, 4, 8))
        while batch * seq > 8e6 and batch > 8:
            batch //= 2
        while batch * seq < 2.5e5:
            batch *= 2
        pipeline = [stages for stages in (1, 2, 4, 8) if layers % stages == 0]
        virtual = [1, 2] if rng.random() < .5 and kind != "latent" else [1]
        context = [1, 2, 4, 8] if seq >= 32768 else [1, 2] if seq >= 8192 and rng.random() < .5 else [1]
        experts = (1, 2, 4, 8) if "expert_num" in model else (1,)
        axes = ((1, 2, 4, 8) if kind != "latent" else (1,), pipeline, virtual, context, experts, (1, 2, 4, 8),
                ("none", "full"))
        return World(model, system, (self.systems[system][2], None), gpus, batch, axes, {}, parameters)

    @staticmethod
    def _mlp(rng, kind, hidden, heads):
        if kind == "dense":
            return {"model_name": "qwen3-32b", "intermediate_size": int(rng.choice((3, 3.5, 4)) * hidden)}
        if kind == "mixtral":
            return {"model_name": "mixtral_8x7b", "intermediate_size": int(rng.choice((1, 2, 3.5)) * hidden),
                    "expert_num": rng.choice((8, 16, 32)), "topk": rng.choice((2, 4))}
        width = rng.choice((1024, 1408, 1536))
        return {"model_name": "deepseek_v2_lite", "attention_type": "mla", "kv_head_num": heads,
                "intermediate_size": rng.choice((3, 5)) * hidden, "moe_ffn_hidden_size": width,
                "moe_shared_expert_intermediate_size": 2 * width, "dense_layers": 1, "expert_num": rng.choice((32, 64)),
                "v_head_dim": 128, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "q_lora_rank": None,
                "kv_lora_rank": 512, "topk": rng.choice((4, 6, 8))}

    @staticmethod
    def _parameters(model):
        """About; it only decides the number of GPUs."""
        hidden, layers = model["hidden_size"], model["layer_num"]
        attention = 2 * layers * hidden * 128 * (model["head_num"] + model["kv_head_num"])
        width = model.get("moe_ffn_hidden_size", model["intermediate_size"])
        copies = model.get("expert_num", 1) + (2 if "moe_ffn_hidden_size" in model else 0)
        return attention + 2 * model["vocab_size"] * hidden + 3 * layers * hidden * width * copies

    def points(self, world):
        model = world.model
        for values in itertools.product(*world.axes):
            point = dict(zip(self.columns, values))
            tensor, pipeline, virtual, context, expert, micro_batch = values[:6]
            if model["head_num"] % tensor or model["kv_head_num"] % (tensor * context if context > 1 else tensor):
                continue
            if world.gpus % (tensor * pipeline * context) or (virtual > 1 and model["layer_num"] % (pipeline * virtual)):
                continue
            data = world.gpus // (tensor * pipeline * context)
            if world.batch % (data * micro_batch) or (tensor * context * data) % expert:
                continue
            if virtual > 1 and (pipeline < 3 or world.batch // (data * micro_batch) % pipeline):
                continue
            yield point

    def steps(self, world, points):
        from simumax.core.config import ModelConfig, StrategyConfig, SystemConfig
        from simumax.core.perf_llm import PerfLLM
        os.chdir(self._checkout)
        name, gib, _ = self.systems[world.system]
        described = {key: value for key, value in world.model.items() if key != "seq_size"}
        for point in points:
            machine = SystemConfig.init_from_config_file(f"configs/system/{name}.json")
            machine.accelerator.mem_gbs = gib
            job = PerfLLM()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                job.configure(strategy_config=StrategyConfig.init_from_dict(self._strategy(world, point)),
                              model_config=ModelConfig.init_from_dict(dict(described)), system_config=machine)
                job.run_estimate()
                memory, cost = job.analysis_mem().data, job.analysis_cost().data
            stages = [memory] if "peak_mem" in memory else [one for one in memory.values() if isinstance(one, dict)]
            peak = max(bytes_of(stage["peak_mem"]) for stage in stages if "peak_mem" in stage)
            fits = peak <= self.usable * gib * 2**30
            yield (seconds_of(cost["duration_time_per_iter"]), peak) if fits else None

    @staticmethod
    def _strategy(world, point):
        ranks = point["tensor_parallel"] * point["pipeline_parallel"] * point["context_parallel"]
        micro_steps = world.batch // (world.gpus // ranks * point["micro_batch"])
        strategy = {"seq_len": world.model["seq_size"], "dtype": "bf16", "world_size": world.gpus,
                    "micro_batch_size": point["micro_batch"], "micro_batch_num": micro_steps,
                    "tp_size": point["tensor_parallel"], "pp_size": point["pipeline_parallel"],
                    "cp_size": point["context_parallel"], "ep_size": point["expert_parallel"], "etp_size": 1,
                    "interleaving_size": point["virtual_pipeline"], "pp_comm_async": False,
                    "moe_dispatcher_policy": "all2all", "enable_sequence_parallel": True, "zero_state": 1,
                    "enable_dropout": False, "enable_recompute": False}
        if point["activation_checkpointing"] == "full":
            layers = world.model["layer_num"] // point["pipeline_parallel"]
            strategy.update(enable_recompute=True, recompute_granularity="full_block", recompute_layer_num=layers)
        return strategy


def bytes_of(text):
    value, unit = text.split()
    return float(value) * {"TB": 2**40, "GB": 2**30, "MB": 2**20, "KB": 2**10, "B": 1}[unit]


def seconds_of(text):
    value, unit = text.split()
    return float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def compute(tool, out, seed):
    """Returns a line about the world."""
    world = tool.draw(seed)
    points = list(tool.points(world))
    about = f"{tool.prefix}{seed:03d}: {world.parameters / 1e9:.1f}B on {world.gpus} of {world.system}"
    if not FEWEST_POINTS <= len(points) <= tool.most_points:
        return f"{about}: {len(points)} configurations, left out"
    steps = list(tool.steps(world, points))
    runs = [world.batch / step[0] for step in steps if step]
    if len(runs) < FEWEST_THAT_RUN:
        return f"{about}: {len(runs)} of {len(points)} run, left out"
    varied = [name for name in tool.columns if len({point[name] for point in points}) > 1]
    name = f"{tool.prefix}{seed:03d}"
    calculon_worlds.write_table(out / f"{name}.csv", varied, world.batch, points, steps)
    fixed = {each: points[0][each] for each in tool.columns if each not in varied}
    if fixed.get("expert_parallel") == 1 and "expert_num" not in world.model:
        del fixed["expert_parallel"]
    described = {"model": world.model, "system": world.system, "network": world.network[0], "gpus": world.gpus,
                 "train_batch_size": world.batch, "fixed": fixed, "options": world.options}
    (out / f"{name}.json").write_text(json.dumps(described) + "\n")
    good = sum(1 for value in runs if value >= .95 * max(runs))
    return f"{about}: {len(points)} configurations, {len(runs)} run, {good} within 5 % of the best"


def main():
    if len(sys.argv) != 6 or sys.argv[1] not in ("calculon", "simumax"):
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[3]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    checkout = pathlib.Path(sys.argv[2]).resolve()
    tool = OfCalculon(checkout) if sys.argv[1] == "calculon" else OfSimuMax(checkout)
    for seed in range(int(sys.argv[4]), int(sys.argv[5]) + 1):
        print(compute(tool, out, seed), flush=True)


if __name__ == "__main__":
    main()
