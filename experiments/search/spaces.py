#!/usr/bin/env python3
"""Writes a session and a table for every space on which searches are compared. Standard library only.

usage: spaces.py OUT_DIR              sessions/*.json, tables/*.csv and spaces.csv (set, space, variant, session, table)
       spaces.py --clusters OUT_DIR   the sessions that measure the simulated clusters (read by measure_table)
       spaces.py --worlds N MEASURE_TABLE OUT_DIR
                                      like the first, but the simulated clusters in N other worlds each, measured now

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

MEMORY_GIB = {"a100-40gb": 39.4, "a100-80gb": 79.2, "h100-80gb": 79.1, "l40s-48gb": 44.45}  # data/gpus.csv
# Latency (us) and rate (bytes/s) of each link in krigtune's table: data/interconnects.csv.
LINKS = {"nvlink3": (10, 300e9), "nvlink4": (10, 450e9), "pcie4": (10, 31.5e9), "ib-hdr-200": (5, 25e9),
         "ib-ndr-400": (5, 50e9), "eth-100": (12, 12.5e9)}
INTERCONNECT = {"a100-80gb": "nvlink3", "h100-80gb": "nvlink4"}

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


def simulated():
    """Six clusters on the virtual clock, as they were measured once."""
    for name in clusters.CLUSTERS:
        with open(HERE / "simulated" / f"{name}.csv", newline="") as file:
            yield name, clusters.told(name), answers(file)


def worlds(count, measure_table, out):
    """The same in other worlds, so that the luck of one world does not decide."""
    for world in range(1, count + 1):
        for name in clusters.CLUSTERS:
            file = out / "worlds" / f"{name}_{world}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(clusters.measured(name, world)) + "\n")
            lines = subprocess.run([measure_table, file], check=True, capture_output=True, text=True).stdout
            yield f"{name}_{world}", clusters.told(name), answers(lines.splitlines())


def ultrascale_dev():
    return ultrascale("ultrascale_dev.csv")


def ultrascale_3b():
    return ultrascale("ultrascale_3b.csv")


def vtrain_single():
    return vtrain("vtrain_single_node.csv")


def vtrain_multi():
    return vtrain("vtrain_multi_node.csv")


SETS = {"ultrascale_dev": ultrascale_dev, "ultrascale_3b": ultrascale_3b, "vtrain": vtrain_single, "vtrain_multi": vtrain_multi, "simulated": simulated}


def copy(session):
    return json.loads(json.dumps(session))


def no_workload(session):
    """A stranger's table: only names and values."""
    return {key: value for key, value in copy(session).items() if key not in ("workload", "cluster", "fixed")}


OWN_NAMES = {"tensor_parallel": "alpha", "pipeline_parallel": "beta", "zero_stage": "gamma", "micro_batch": "delta"}


def own_names(session):
    """A stranger's table whose parameters have meaningless names."""
    session = no_workload(session)
    names = {name: OWN_NAMES.get(name, f"p{i}") for i, name in enumerate(session["space"])}
    session["space"] = {names[name]: values for name, values in session["space"].items()}
    session["runner"]["columns"] = {own: name for name, own in names.items()}
    return session


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


VARIANTS = {"physics": copy, "no_workload": no_workload, "own_names": own_names, "not_told": not_told,
            "told_none": told_none, "as_deepspeed": framework("deepspeed"), "as_fsdp": framework("fsdp"),
            "as_megatron": framework("megatron"), "as_nanotron": framework("nanotron"),
            "links_slow": other_links(4), "links_fast": other_links(1 / 4),
            "flat_products": flat_products, "memory_too_much": other_memory(1.5),
            "memory_too_little": other_memory(1 / 1.5), "limit_too_low": other_limit(1 / 1.5),
            "limit_too_high": other_limit(1.5)}


OF_TOKENS = ("not_told", "told_none")  # for tables whose framework splits tokens


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
    table = f"tables/{stem}.csv"
    metric = session["objective"]["metric"]
    checksum = write_table(out / table, list(session["space"]), metric, rows)
    session["runner"] = {"kind": "replay", "table": f"../{table}", "value": metric, "status": "status"}
    if any(row.get("peak") for row in rows):
        session["runner"]["metrics"] = {"peak_memory_bytes": "peak_memory_bytes"}
    session["budget"] = {"trials": TRIALS}
    splits_tokens = "sequence_parallel" in session.get("fixed", {})
    for variant, change in VARIANTS.items():
        if variant in OF_TOKENS and not splits_tokens:
            continue
        path = f"sessions/{stem}_{variant}.json"
        (out / path).write_text(json.dumps(change(session), indent=1) + "\n")
        few = set_name != "vtrain" or space in FEW_VTRAIN
        yield [set_name, space, variant, path, table, metric, int(few), checksum]


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
        write_spaces(out, {"worlds": lambda: worlds(int(arguments[1]), arguments[2], out)})
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        write_spaces(pathlib.Path(arguments[0]), SETS)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
