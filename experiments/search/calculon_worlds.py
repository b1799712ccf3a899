#!/usr/bin/env python3
"""Computes whole spaces of other jobs with Calculon, so that searches can be tried on worlds that nobody developed on.

usage: calculon_worlds.py CALCULON OUT [WORLD...]
  CALCULON  a checkout of https://github.com/calculon-ai/calculon (Apache-2.0; needs numpy, pandas and psutil)
  OUT       gets WORLD.csv and WORLD.json for each world (all: 15 minutes of one core), as in ../data/worlds
Then: experiments/search/run.sh --computed OUT. As a check, --again computes 200 rows of the three worlds of
../data/worlds that are Calculon's: usage: calculon_worlds.py --again CALCULON
"""
import collections
import csv
import itertools
import json
import logging
import pathlib
import random
import sys

WORLDS_OF_OTHERS = pathlib.Path(__file__).resolve().parent.parent / "data" / "worlds"
COLUMNS = ["tensor_parallel", "pipeline_parallel", "virtual_pipeline", "micro_batch", "activation_checkpointing",
           "zero_stage", "sequence_parallel"]
RECOMPUTE = {"none": "none", "selective": "attn_only", "full": "full"}
MICRO_BATCHES = (1, 2, 4, 8, 16)
GPUS_OF_A_NODE = 8

World = collections.namedtuple("World", "model system gpus batch tensor pipeline virtual")
WORLDS = {
    "gpt13b_16xh100": World("gpt3-13B", "h100_80g_nvl8", 16, 256, (1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4)),
    "gpt40b_64xh100": World("megatron-40B", "h100_80g_nvl8", 64, 512, (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 3)),
    "gpt52b_128xa100": World("anthropic-52B", "a100_80g", 128, 1024, (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 4)),
    "gpt70b_128xh100": World("chinchilla", "h100_80g_nvl8", 128, 1024, (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 5)),
    "gpt175b_512xh100": World("gpt3-175B", "h100_80g_nvl8", 512, 2048, (1, 2, 4, 8), (1, 2, 4, 8, 16, 32), (1, 2, 3)),
    "gpt280b_512xa100": World("gopher-280B", "a100_80g", 512, 2048, (2, 4, 8), (1, 2, 4, 8, 16), (1, 5)),
    "gpt530b_1120xa100": World("turing-530B", "a100_80g", 1120, 2240, (4, 8), (1, 5, 7, 35), (1, 3)),
}


class Calculon:
    """One model on one of Calculon's systems."""

    def __init__(self, checkout, model, system):
        sys.path.insert(0, str(checkout))
        from calculon.llm.llm import Llm
        from calculon.system import System
        self._llm, self._system = Llm, System
        self._model = model
        self._machine = json.loads((checkout / "systems" / f"{system}.json").read_text())

    def set_network(self, gigabytes_per_s):
        """Of a GPU, between nodes."""
        self._machine["networks"][1]["bandwidth"] = gigabytes_per_s

    def step(self, gpus, batch, point, overlaps=None):
        """Returns (seconds of a step, bytes of a rank); None if it does not fit."""
        model = self._llm(self._llm.Application(self._model), logging.getLogger("calculon"))
        machine = self._system(self._machine)
        settings = {**execution(gpus, batch, point), **(overlaps or {})}
        model.compile(machine, self._llm.Execution.from_json(settings))
        try:
            model.run(machine)
        except self._llm.Error as error:
            if str(error).startswith("Mem tier"):
                return None
            raise
        return model.get_total_time(), model.get_mem_tier1_cap_req()


def execution(gpus, batch, point):
    """As Megatron runs it: gradients and the optimizer overlap, stages send over the network between nodes."""
    tensor, pipeline = point["tensor_parallel"], point["pipeline_parallel"]
    data = gpus // (tensor * pipeline)
    return {"num_procs": gpus, "tensor_par": tensor, "pipeline_par": pipeline, "data_par": data,
            "tensor_par_net": int(tensor > GPUS_OF_A_NODE), "pipeline_par_net": int(pipeline > 1),
            "data_par_net": int(gpus > GPUS_OF_A_NODE), "batch_size": batch, "microbatch_size": point["micro_batch"],
            "datatype": "float16", "fused_activation": True, "attention_type": "multihead",
            "activation_recompute": RECOMPUTE[point["activation_checkpointing"]],
            "pipeline_interleaving": point["virtual_pipeline"], "optimizer_sharding": point["zero_stage"] > 0,
            "tensor_par_comm_type": "rs_ag" if point["sequence_parallel"] else "ar", "tensor_par_overlap": "none",
            "seq_par_ag_redo": False, "data_par_overlap": data > 1, "weight_offload": False,
            "activations_offload": False, "optimizer_offload": False, "training": True}


def points_of(world, model):
    """Yields the configurations that Megatron's rules allow."""
    for values in itertools.product(world.tensor, world.pipeline, world.virtual, MICRO_BATCHES, RECOMPUTE, (0, 1),
                                    (False, True)):
        point = dict(zip(COLUMNS, values))
        tensor, pipeline, virtual = values[:3]
        if world.gpus % (tensor * pipeline) or model["num_blocks"] % (pipeline * virtual):
            continue
        if model["attn_heads"] % tensor or model["hidden"] % tensor:
            continue
        data = world.gpus // (tensor * pipeline)
        if world.batch % (data * point["micro_batch"]):
            continue
        micro_steps = world.batch // (data * point["micro_batch"])
        if virtual > 1 and (pipeline == 1 or micro_steps % pipeline):
            continue
        if (point["sequence_parallel"] and tensor == 1) or (point["zero_stage"] > 0 and data == 1):
            continue
        yield point


def write_table(path, columns, batch, points, steps):
    """One row a configuration. `steps`: seconds and bytes of each point, or None if it does not fit."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*columns, "status", "step_time_s", "samples_per_s", "peak_memory_bytes"])
        for point, step in zip(points, steps):
            measured = ["oom", "", "", ""] if step is None else \
                ["ok", f"{step[0]:.6g}", f"{batch / step[0]:.6g}", int(step[1])]
            writer.writerow([*(str(point[name]).lower() for name in columns), *measured])


def compute(checkout, out, name):
    world = WORLDS[name]
    model = json.loads((checkout / "models" / f"{world.model}.json").read_text())
    calculon = Calculon(checkout, model, world.system)
    points = list(points_of(world, model))
    steps = (calculon.step(world.gpus, world.batch, point) for point in points)
    write_table(out / f"{name}.csv", COLUMNS, world.batch, points, steps)
    if model["hidden"] % model["attn_heads"]:  # gpt3-13B: 5140 with 40 heads
        model["hidden"] = model["attn_heads"] * model["attn_size"]
    described = {"model": model, "system": world.system, "gpus": world.gpus, "train_batch_size": world.batch}
    (out / f"{name}.json").write_text(json.dumps(described) + "\n")


def again(checkout):
    """Returns whether this script computes what the files of others say, for rows drawn with seed 1."""
    same = True
    for path in sorted(WORLDS_OF_OTHERS.glob("gpt*.csv")):
        world = json.loads(path.with_suffix(".json").read_text())
        model = dict(world["model"])
        if model["num_blocks"] == 40:  # the file corrects Calculon's width
            model.update(hidden=5140)
        calculon = Calculon(checkout, model, world["system"])
        with open(path, newline="") as file:
            rows = random.Random(1).sample(list(csv.DictReader(file)), 200)
        largest, differ = 0.0, 0
        for row in rows:
            point = {key: row[key] == "true" if row[key] in ("true", "false") else
                     int(row[key]) if row[key].isdigit() else row[key] for key in COLUMNS}
            step = calculon.step(world["gpus"], world["train_batch_size"], point)
            if (step is None) != (row["status"] == "oom"):
                differ += 1
            elif step is not None:
                largest = max(largest, abs(step[0] / float(row["step_time_s"]) - 1))
        print(f"{path.stem}: {len(rows)} rows, {differ} with another status, largest difference of a step {largest:.1e}")
        same = same and differ == 0 and largest < 1e-3
    return same


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "--again":
        sys.exit(0 if again(pathlib.Path(arguments[1])) else 1)
    names = arguments[2:] or list(WORLDS)
    if len(arguments) < 2 or arguments[0].startswith("-") or not set(names) <= set(WORLDS):
        sys.exit(__doc__)
    out = pathlib.Path(arguments[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        compute(pathlib.Path(arguments[0]), out, name)


if __name__ == "__main__":
    main()
