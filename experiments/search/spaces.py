#!/usr/bin/env python3
"""Writes a session and a table for every space on which searches are compared. Standard library only.

usage: spaces.py OUT_DIR              sessions/*.json, tables/*.csv and spaces.csv (set, space, variant, session, table)
       spaces.py --clusters OUT_DIR   the sessions that measure the simulated clusters (read by measure_table)
       spaces.py --worlds N MEASURE_TABLE OUT_DIR
                                      like the first, but the simulated clusters in N other worlds each, measured now
       spaces.py --computed FOLDER OUT_DIR
                                      like the first, but the worlds of FOLDER (calculon_worlds.py)

A table has the rows of one space: the parameters, status, and the objective. Every tool reads these tables.
"""
import collections
import csv
import json
import pathlib
import subprocess
import sys
import zlib

import clusters

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
TRIALS = 40
FEWEST_ROWS = 12

MEMORY_GIB = {"a100-40gb": 39.4, "a100-80gb": 79.2, "h100-80gb": 79.1, "l40s-48gb": 44.45,
              "b200-180gb": 178.4}  # data/gpus.csv
# Latency (us) and rate (bytes/s) of each link in krigtune's table: data/interconnects.csv.
LINKS = {"nvlink3": (10, 300e9), "nvlink4": (10, 450e9), "nvlink5": (10, 900e9), "pcie4": (10, 31.5e9),
         "ib-hdr-200": (5, 25e9), "ib-ndr-400": (5, 50e9), "eth-100": (12, 12.5e9)}
PRESET_LAYERS = {"gpt2-1.5b": 48, "llama-2-7b": 32, "llama-2-13b": 40, "llama-2-70b": 80, "llama-3-8b": 32}

# Slow tools run on ten of vTrain's spaces, which have each hidden size, number of layers and batch at least twice.
FEW_VTRAIN = ["1024-12-4-16", "1024-16-8-8", "1024-20-8-16", "1024-24-4-8", "1024-24-8-32", "2048-12-8-16",
              "2048-16-4-16", "2048-16-8-32", "2048-20-8-8", "2048-24-8-16"]


def number(text):
    value = float(text)
    return int(value) if value == int(value) else value


def rows_of(table):
    with open(DATA / table, newline="") as file:
        return list(csv.DictReader(file))


def best_of_repeats(rows, parameters, better):
    """One row per configuration: ok if any of its rows is, and then the best one."""
    kept = {}
    for row in rows:
        point = tuple(row[name] for name in parameters)
        old = kept.get(point)
        if old is None or (row["value"] is not None and (old["value"] is None or better(row["value"], old["value"]))):
            kept[point] = row
    return list(kept.values())


def values_that_occur(rows, parameters):
    return {name: sorted({row[name] for row in rows}) for name in parameters}


def ultrascale(table):
    """nanotron on 8 to 512 H100s: parallelism, ZeRO stage and micro-batch; many configurations fail."""
    parameters = ["tensor_parallel", "pipeline_parallel", "zero_stage", "micro_batch"]
    groups = collections.defaultdict(list)
    for row in rows_of(table):
        point = {name: int(row[name]) for name in parameters}
        ok = row["status"] == "ok"
        groups[row["model"], int(row["n_gpus"])].append(
            {**point, "status": row["status"], "value": float(row["tokens_per_s"]) if ok else None,
             "peak": round(float(row["peak_memory_gb"]) * 1e9) if ok and row["peak_memory_gb"] else None, "row": row})
    for (model, gpus), rows in groups.items():
        rows = best_of_repeats(rows, parameters, lambda a, b: a > b)
        sizes = {name: int(rows[0]["row"][name])
                 for name in ("layers", "hidden", "heads", "ffn_hidden", "vocab", "seq_len")}
        sizes.update(gated_mlp=True, norm="rmsnorm", positions="rotary", tied_embeddings=model != "80B")
        session = {
            "workload": {"model": sizes, "precision": "bf16", "framework": "nanotron",
                         "train_batch_size": int(rows[0]["row"]["train_batch_size"])},
            "cluster": {"nodes": max(gpus // 8, 1), "gpus_per_node": min(gpus, 8), "gpu": "h100-80gb",
                        "interconnect": "nvlink4", "network": "ib-ndr-400"},
            "space": values_that_occur(rows, parameters), "fixed": {"sequence_parallel": True}, "baseline": None,
            "objective": {"metric": "tokens_per_second"}}
        yield f"{model}-{gpus}", session, rows


def vtrain(table):
    """Megatron-DeepSpeed on A100s with full recomputation; no configuration fails."""
    columns = {"tensor_parallel": "tp", "pipeline_parallel": "pp", "micro_batch": "micro_batch"}
    groups = collections.defaultdict(list)
    for row in rows_of(table):
        point = {name: int(row[column]) for name, column in columns.items()}
        point["activation_checkpointing"] = "full"
        key = tuple(int(row[name]) for name in ("hidden", "layers", "n_gpus", "global_batch"))
        groups[key].append({**point, "status": "ok", "value": float(row["iter_ms"]) / 1e3, "row": row})
    parameters = [*columns, "activation_checkpointing"]
    for (hidden, layers, gpus, batch), rows in sorted(groups.items()):
        rows = best_of_repeats(rows, parameters, lambda a, b: a < b)
        if len(rows) < FEWEST_ROWS:
            continue
        one = rows[0]["row"]
        session = {
            "workload": {"model": {"layers": layers, "hidden": hidden, "heads": int(one["heads"]), "vocab": 51200,
                                   "seq_len": int(one["seq_len"]), "attention": "eager"},
                         "precision": "fp16", "framework": "deepspeed", "dialect": "deepspeed",
                         "train_batch_size": batch},
            "cluster": {"nodes": max(gpus // 8, 1), "gpus_per_node": min(gpus, 8), "gpu": "a100-80gb",
                        "interconnect": "nvlink3", "network": "ib-hdr-200"},
            "space": values_that_occur(rows, parameters), "baseline": None, "objective": {"metric": "latency"}}
        yield f"{hidden}-{layers}-{gpus}-{batch}", session, rows


def answers(lines):
    """The output of measure_table."""
    rows = list(csv.DictReader(lines))
    for row in rows:
        row["value"] = float(row["tokens_per_second"]) if row["status"] == "ok" else None
        row["peak"] = row["peak_memory_bytes"] or None
    return rows


def measured(path):
    with open(HERE / "simulated" / path, newline="") as file:
        return answers(file)


def simulated():
    """Six clusters on the virtual clock, as they were measured once."""
    for name in clusters.CLUSTERS:
        yield name, clusters.told(name), measured(f"{name}.csv")


def simulated_worlds(count, measure_table, out):
    """The same in other worlds, so that the luck of one world does not decide."""
    for world in range(1, count + 1):
        for name in clusters.CLUSTERS:
            file = out / "worlds" / f"{name}_{world}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(clusters.measured(name, world)) + "\n")
            lines = subprocess.run([measure_table, file], check=True, capture_output=True, text=True).stdout
            yield f"{name}_{world}", clusters.told(name), answers(lines.splitlines())


# How krigtune names the systems of the tools that computed data/worlds.
SYSTEMS = {"a100_80g": {"gpu": "a100-80gb", "interconnect": "nvlink3", "network": "ib-hdr-200"},
           "h100_80g_nvl8": {"gpu": "h100-80gb", "interconnect": "nvlink4", "network": "ib-ndr-400"},
           "a100_pcie": {"gpu": "a100-80gb", "interconnect": "pcie4", "network": "ib-hdr-200"},
           "b200": {"gpu": "b200-180gb", "interconnect": "nvlink5", "network": "ib-ndr-400"}}


def calculon_workload(model):
    """Calculon's GPTs: 40 heads do not divide the 5140 of its gpt3-13B, which the file gives as 5120."""
    sizes = {"layers": model["num_blocks"], "hidden": model["hidden"], "heads": model["attn_heads"],
             "ffn_hidden": model["feedforward"], "vocab": 51200, "seq_len": model["seq_size"], "attention": "eager"}
    return {"model": sizes, "precision": "fp16"}


def simumax_workload(model):
    """What the config.json of such a model says."""
    experts = {"mixtral_8x7b": {"model_type": "mixtral", "num_local_experts": "expert_num"},
               "deepseek_v2_lite": {"model_type": "deepseek_v2", "n_routed_experts": "expert_num",
                                    "moe_intermediate_size": "moe_ffn_hidden_size", "kv_lora_rank": "kv_lora_rank",
                                    "first_k_dense_replace": "dense_layers"},
               "qwen3-32b": {"model_type": "qwen3"}}[model["model_name"]]
    names = {"num_hidden_layers": "layer_num", "hidden_size": "hidden_size", "num_attention_heads": "head_num",
             "num_key_value_heads": "kv_head_num", "head_dim": "head_size", "intermediate_size": "intermediate_size",
             "vocab_size": "vocab_size", "max_position_embeddings": "seq_size", **experts}
    config = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
              **{key: model.get(name, name) for key, name in names.items()}}
    if "topk" in model:
        config["num_experts_per_tok"] = model["topk"]
    if "moe_shared_expert_intermediate_size" in model:
        config["n_shared_experts"] = model["moe_shared_expert_intermediate_size"] // model["moe_ffn_hidden_size"]
    workload = {"model": {"hf_config": config}, "precision": "bf16"}
    if "topk" in model:  # SimuMax has one kernel for the products of all experts
        workload["training"] = {"fused_experts": True}
    return workload


def value_of(text):
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def computed_world(path):
    """A session and rows from one pair of files of data/worlds."""
    with open(path, newline="") as file:
        table = list(csv.DictReader(file))
    world = json.loads(path.with_suffix(".json").read_text())
    parameters = list(table[0])[:list(table[0]).index("status")]
    rows = [{**{name: value_of(row[name]) for name in parameters}, "status": row["status"],
             "value": float(row["samples_per_s"]) if row["status"] == "ok" else None,
             "peak": row["peak_memory_bytes"] or None} for row in table]
    model, gpus = world["model"], world["gpus"]
    of_simumax = "model_name" in model
    workload = simumax_workload(model) if of_simumax else calculon_workload(model)
    session = {"workload": {**workload, "framework": "megatron", "train_batch_size": world["train_batch_size"]},
               "cluster": {"nodes": max(gpus // 8, 1), "gpus_per_node": min(gpus, 8), **SYSTEMS[world["system"]]},
               "space": values_that_occur(rows, parameters), "baseline": None, "objective": {"metric": "throughput"}}
    session["cluster"].update({key: world[key] for key in ("network",) if key in world})
    session["fixed"] = dict(world.get("fixed", {}))
    if of_simumax:
        session["fixed"].update({"zero_stage": 1, "sequence_parallel": True})
        if "topk" in model:  # tensor ranks have whole experts
            session["fixed"]["expert_tensor_parallel"] = 1
    return path.stem, session, rows


def worlds(folder=DATA / "worlds"):
    """Spaces that Calculon and SimuMax computed."""
    return (computed_world(path) for path in sorted(folder.glob("*.csv")))


LEFT_OUT = ("virtual_pipeline", "expert_parallel")


def worlds_known():
    """The same without these parameters: of each combination of the others the best row."""
    for name, session, rows in worlds():
        session["space"] = {key: values for key, values in session["space"].items() if key not in LEFT_OUT}
        yield name, session, best_of_repeats(rows, list(session["space"]), lambda a, b: a > b)


def ultrascale_dev():
    return ultrascale("ultrascale_dev.csv")


def ultrascale_3b():
    return ultrascale("ultrascale_3b.csv")


def vtrain_single():
    return vtrain("vtrain_single_node.csv")


def vtrain_multi():
    return vtrain("vtrain_multi_node.csv")


SETS = {"ultrascale_dev": ultrascale_dev, "ultrascale_3b": ultrascale_3b, "vtrain": vtrain_single,
        "vtrain_multi": vtrain_multi, "simulated": simulated, "worlds": worlds, "worlds_known": worlds_known}


def copy(session):
    return json.loads(json.dumps(session))


def no_workload(session):
    """A stranger's table: only names and values."""
    return {key: value for key, value in copy(session).items() if key not in ("workload", "cluster", "fixed")}


def cluster_only(session):
    """The machines are known, because a program can look at them. What they train is not."""
    return {key: value for key, value in copy(session).items() if key not in ("workload", "fixed")}


OWN_NAMES = {"tensor_parallel": "alpha", "pipeline_parallel": "beta", "zero_stage": "gamma", "micro_batch": "delta"}


# Other names of parameters that krigtune knows, as scripts use them.
SHORT_NAMES = {"tensor_parallel": "tp", "pipeline_parallel": "pp", "context_parallel": "cp", "zero_stage": "zero",
               "micro_batch": "mbs", "activation_checkpointing": "recompute_granularity",
               "overlap_comm": "overlap_grad_reduce", "reduce_bucket_size": "allreduce_bucket_size"}


def renamed(session, names):
    session["space"] = {names[name]: values for name, values in session["space"].items()}
    session["runner"]["columns"] = {other: name for name, other in names.items() if other != name}
    return session


def own_names(session):
    """A stranger's table whose parameters have meaningless names."""
    names = {name: OWN_NAMES.get(name, f"p{i}") for i, name in enumerate(session["space"])}
    return renamed(no_workload(session), names)


def short_names(session):
    """A stranger's table whose parameters have the names that scripts use."""
    return renamed(no_workload(session), {name: SHORT_NAMES.get(name, name) for name in session["space"]})


def told_short_names(session):
    """Everything is told, and the parameters have the names that scripts use."""
    return renamed(copy(session), {name: SHORT_NAMES.get(name, name) for name in session["space"]})


KNOB = "prefetch_depth"
KNOB_SPEEDS = {1: 1.0, 2: 1.01, 4: 0.97}


def unknown_knob(session):
    """Everything is told, and the table has one more parameter, which krigtune does not know and which matters little."""
    session = copy(session)
    session["space"][KNOB] = list(KNOB_SPEEDS)
    return session


def with_knob(rows, metric):
    """The rows for each value of the unknown parameter. What fails, fails with each."""
    for row in rows:
        for value, speed in KNOB_SPEEDS.items():
            factor = 1 / speed if metric == "latency" else speed
            changed = None if row["value"] is None else float(f"{row['value'] * factor:.6g}")
            yield {**row, KNOB: value, "value": changed}


def not_told(session):
    """The session does not say whether tokens are split over the tensor-parallel ranks: the framework's default counts."""
    session = copy(session)
    session.pop("fixed", None)
    return session


def told_none(session):
    """The session says that tokens are not split over the tensor-parallel ranks."""
    session = copy(session)
    session["fixed"] = {"sequence_parallel": False}
    return session


def framework(name):
    """The session names another framework, and leaves that framework's defaults to it."""

    def change(session):
        session = not_told(session)
        session["workload"]["framework"] = name
        return session

    return change


def layers_of(model):
    if "hf_config" in model:
        return model["hf_config"]["num_hidden_layers"]
    return model["layers"] if "layers" in model else PRESET_LAYERS[model["preset"]]


def other_model(times):
    """The session states a model of so many times as many layers."""

    def change(session):
        session = copy(session)
        model = session["workload"]["model"]
        model["layers"] = max(round(layers_of(model) * times), 1)
        return session

    return change


def other_links(times):
    """The session assumes that every link takes so many times as long."""

    def change(session):
        session = copy(session)
        cluster = session["cluster"]
        names = [cluster[key] for key in ("interconnect", "network") if key in cluster]
        cluster["hardware"] = {"links": {
            name: {"latency_us": LINKS[name][0] * times, "bytes_per_s": LINKS[name][1] / times} for name in names}}
        return session

    return change


def flat_products(session):
    """The session assumes that small matrix products are as efficient as large ones."""
    session = copy(session)
    session["cluster"]["hardware"] = {"gpus": {session["cluster"]["gpu"]: {"gemm_half_flops": 0}}}
    return session


def other_memory(times):
    """The session assumes that everything takes so many times as much memory."""

    def change(session):
        return {**copy(session), "memory": {"peak_factor": times}}

    return change


def other_limit(times):
    """The session states so many times as much memory as there is."""

    def change(session):
        gpu = session["cluster"]["gpu"]
        stated_gib = round(MEMORY_GIB[gpu] * times, 3)
        if times <= 1:
            return {**copy(session), "memory": {"limit_gib": stated_gib}}
        # A limit above the GPU's memory is refused, so the session states a GPU with more memory.
        hardware = {"gpus": {gpu: {"memory_gib": stated_gib}}}
        return {**copy(session), "cluster": {**session["cluster"], "hardware": hardware}}

    return change


VARIANTS = {"physics": copy, "no_workload": no_workload, "cluster_only": cluster_only, "own_names": own_names,
            "short_names": short_names, "told_short_names": told_short_names, "unknown_knob": unknown_knob, "lora_as_full": copy,
            "half_model": other_model(1 / 2), "double_model": other_model(2), "not_told": not_told, "told_none": told_none, "as_deepspeed": framework("deepspeed"), "as_fsdp": framework("fsdp"),
            "as_megatron": framework("megatron"), "as_nanotron": framework("nanotron"),
            "links_slow": other_links(4), "links_fast": other_links(1 / 4),
            "flat_products": flat_products, "memory_too_much": other_memory(1.5),
            "memory_too_little": other_memory(1 / 1.5), "limit_too_low": other_limit(1 / 1.5),
            "limit_too_high": other_limit(1.5)}


OF_TOKENS = ("not_told", "told_none")  # for tables whose framework splits tokens
OWN_TABLES = ("unknown_knob", "lora_as_full")


def exists(variant, set_name, session):
    if variant == "lora_as_full":  # simulated/adapters: only adapters are trained, and the session says nothing of it
        return set_name == "simulated"
    return variant not in OF_TOKENS or "sequence_parallel" in session.get("fixed", {})


def own_rows(variant, space, rows, metric):
    return list(with_knob(rows, metric)) if variant == "unknown_knob" else measured(f"adapters/{space}.csv")


def field(value):
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def write_table(path, parameters, metric, rows):
    """Returns the CRC-32 of the table without measured peaks, which is what every tool is told."""
    lines = [[*parameters, "status", metric, "peak_memory_bytes"]]
    lines += [[*(str(field(row[name])) for name in parameters), row["status"], str(field(row["value"])),
               str(field(row.get("peak")))] for row in rows]
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    told = "".join(",".join(line[:-1]) + "\n" for line in lines)
    return f"{zlib.crc32(told.encode()):08x}"


def write_space(out, set_name, space, session, rows):
    """Yields a line of spaces.csv for each variant."""
    stem = f"{set_name}_{space}"
    metric = session["objective"]["metric"]
    session["runner"] = {"kind": "replay", "value": metric, "status": "status"}
    if any(row.get("peak") for row in rows):
        session["runner"]["metrics"] = {"peak_memory_bytes": "peak_memory_bytes"}
    session["budget"] = {"trials": TRIALS}
    told = f"tables/{stem}.csv"
    tables = {told: write_table(out / told, list(session["space"]), metric, rows)}
    for variant, change in VARIANTS.items():
        if not exists(variant, set_name, session):
            continue
        changed, table = change(session), told
        if variant in OWN_TABLES:
            table = f"tables/{stem}_{variant}.csv"
            of_variant = own_rows(variant, space, rows, metric)
            tables[table] = write_table(out / table, list(changed["space"]), metric, of_variant)
        changed["runner"]["table"] = f"../{table}"
        path = f"sessions/{stem}_{variant}.json"
        (out / path).write_text(json.dumps(changed, indent=1) + "\n")
        few = set_name != "vtrain" or space in FEW_VTRAIN
        yield [set_name, space, variant, path, table, metric, int(few), tables[table]]


def write_spaces(out, sets):
    for folder in ("sessions", "tables"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    with open(out / "spaces.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "space", "variant", "session", "table", "metric", "few", "checksum"])
        for set_name, spaces in sets.items():
            for space, session, rows in spaces():
                writer.writerows(write_space(out, set_name, space, session, rows))


def write_clusters(out):
    out.mkdir(parents=True, exist_ok=True)
    for name in clusters.CLUSTERS:
        (out / f"{name}.json").write_text(json.dumps(clusters.measured(name), indent=1) + "\n")


def main():
    arguments = sys.argv[1:]
    if arguments and arguments[0] == "--clusters" and len(arguments) == 2:
        write_clusters(pathlib.Path(arguments[1]))
    elif arguments and arguments[0] == "--worlds" and len(arguments) == 4:
        out = pathlib.Path(arguments[3])
        write_spaces(out, {"simulated_worlds": lambda: simulated_worlds(int(arguments[1]), arguments[2], out)})
    elif arguments and arguments[0] == "--computed" and len(arguments) == 3:
        write_spaces(pathlib.Path(arguments[2]), {"computed": lambda: worlds(pathlib.Path(arguments[1]))})
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        write_spaces(pathlib.Path(arguments[0]), SETS)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
