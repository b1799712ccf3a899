#!/usr/bin/env python3
"""Reads the training commands of commands.json with krigtune and compares what it understood with what a reader knows.

usage: check.py [--krigtune PATH] [--gpu NAME] [--only ID] [--out CSV]

Every command gets a directory with the files it names; `krigtune init session.json -- COMMAND` and
`krigtune plan session.json` run there, without a cache of models. README.md says what the words of the table mean.
"""
import argparse
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZE_TOLERANCE = 0.03    # of the number of parameters: plans round it to three digits
TOKENS_TOLERANCE = 0.001  # of the tokens of a step
LIMIT_S = 300
SCALE = {"": 1, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
# What krigtune may call the parts of a job that commands.json lists under "not_modelled", whether it models them or not.
WORDS = {"adapters": "adapter|lora|kind of training", "compile": "compil",
         "context": r"context parallel|share a sequence|context_parallel=([2-9]|\d\d)", "encoder": "encoder", "experts": "expert",
         "fp8": "fp8|float8", "frozen": "frozen", "hsdp": "hsdp|part of the ranks|replicas", "images": "image|vision",
         "interleaved": "interleav|virtual", "latent": "latent",
         "optimizer": "another optimizer|adapters' optimizer|states (in|of) 8 bits|states are paged|8-bit adam|1-bit adam|onebit|muon", "pairs": "pairs|second model",
         "quantised": "quanti[sz]ed|blocks in [0-9.]+ bits|weights in [48] bits", "sampled": "sampled|rewards", "state-space": "state-space|hybrid|mamba",
         "window": "window", "zero": "deepspeed|zero stage|zero 3"}
RESIZING = {"encoder", "experts", "images", "latent", "state-space"}  # these explain another number of parameters
UNSEARCHED = (None, "torchrun")  # jobs that no recipe knows: krigtune says so, and writes no session
TABLE = ["set", "id", "project", "recipe", "ranks", "tokens", "size", "unnamed", "predicted", "session", "verdict", "remark"]


def run(arguments, folder):
    """Returns the exit code, stdout, and stderr on one line."""
    environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    environment["HF_HOME"] = str(folder / "no_models")
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def number(text, pattern):
    """Returns the first number in `text` that `pattern` finds: "1.05 million" in its first group and its second."""
    found = re.search(pattern, text)
    return float(found[1]) * SCALE[(found[2] or "").strip()] if found else None


def sequences_of(session, ranks, plan):
    """The sequences of a step: as the plan says it, or from the baseline's micro-batch and accumulation."""
    stated = number(plan, r"([0-9.]+)( \w+illion)? sequences \(") or (session.get("workload") or {}).get("train_batch_size")
    rules = " ".join(session.get("constraints", []))
    kept = re.search(r"micro_batch \* gradient_accumulation_steps \* dp == (\d+)", rules)
    own = {**(session.get("baseline") or {}), **(session.get("fixed") or {})}
    multiple = re.search(r"(\d+) % \(micro_batch \* dp\) == 0", rules)
    if stated or kept or multiple:
        return stated or (float(kept[1]) if kept else float(multiple[1]))
    if not ranks or "micro_batch" not in own or "gradient_accumulation_steps" not in own:
        return None
    split = 1
    for name in ("tensor_parallel", "pipeline_parallel", "context_parallel"):
        split *= own.get(name, 1)
    return own["micro_batch"] * own["gradient_accumulation_steps"] * ranks / split


def understood(krigtune, entry, hardware, folder):
    """What krigtune makes of the command; None for what it does not state."""
    for name, content in entry["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    code, _, said = run([krigtune, "init", "session.json", "--"] + shlex.split(entry["command"]), folder)
    said = said.replace(str(krigtune), "krigtune")
    named = re.search(r"the recipe ([\w-]+)", said)
    seen = {"exit": code, "said": said, "recipe": named[1] if named else None, "ranks": None, "sequences": None, "length": None,
            "size": None, "predicted": False, "session": False}
    seen["session"] = (folder / "session.json").exists()
    if not seen["session"]:
        return seen
    lines = (folder / "session.json").read_text().splitlines()
    session = json.loads("\n".join(line for line in lines if not line.startswith("//")))
    runner, cluster = session["runner"], session["cluster"]
    seen["recipe"] = "deepspeed" if runner["kind"] == "deepspeed" else runner.get("recipe")
    if "gpus_per_node" in cluster:
        seen["ranks"] = cluster.get("nodes", 1) * cluster["gpus_per_node"]
    _, text, _ = run([krigtune, "plan", "session.json"], folder)
    job = " ".join(text.split())
    seen["said"] += " " + job
    is_open = "sequences of a step are not known" in seen["said"]
    seen["sequences"] = None if is_open else sequences_of(session, seen["ranks"], job)
    seen["length"] = number(job, r"(\d+)() tokens a sequence")
    seen["size"] = number(job, r"([0-9.]+)( \w+illion)? parameters(?:, of which [^:]*)?:")
    # Times are predicted for a GPU, which this machine may not have.
    session["cluster"] = {"gpus_per_node": 8, "network": hardware["network"], **cluster, "gpu": hardware["gpu"]}
    (folder / "gpu.json").write_text(json.dumps(session))
    code, text, said = run([krigtune, "plan", "gpu.json", "--json"], folder)
    forecast = (json.loads(text).get("baseline_forecast") or {}) if code == 0 else {}
    seen["predicted"] = (forecast.get("predicted_step_time_s") or 0) > 0
    if code != 0:
        seen["said"] += " " + said
    return seen


def compared(got, expected, tolerance, named=False):
    """right, open (krigtune states nothing), named (another value, and it says why), WRONG, or - if a reader knows none."""
    if expected is None:
        return "-"
    if got is None:
        return "open"
    if abs(got - expected) <= tolerance * expected:
        return "right"
    return "named" if named else "WRONG"


def judged_tokens(expect, seen):
    sequences = compared(seen["sequences"], expect["sequences_a_step"], TOKENS_TOLERANCE)
    length = compared(seen["length"], expect["tokens_a_sequence"], TOKENS_TOLERANCE, "tokens of a sequence:" in seen["said"])
    return next((word for word in ("WRONG", "named", "open", "right") if word in (sequences, length)), "-")


def recipes_of(expect):
    """The recipes that a reader would accept."""
    return expect["recipe"] if isinstance(expect["recipe"], list) else [expect["recipe"]]


def judged(entry, seen):
    """The row of the table."""
    expect = entry["expect"]
    # What is said to change nothing, because krigtune does not know it, is not named.
    said = re.sub(r"[^;:]* changes? neither time nor memory", "", seen["said"].lower())
    is_known = seen["recipe"] in recipes_of(expect) and (seen["session"] or seen["recipe"] in UNSEARCHED)
    missing = [word for word in expect["not_modelled"] if not re.search(WORDS[word], said)]
    is_explained = bool(RESIZING & (set(expect["not_modelled"]) - set(missing)))
    row = {"set": entry["set"], "id": entry["id"], "project": entry["project"], "recipe": "right" if is_known else "WRONG",
           "ranks": compared(seen["ranks"], expect["ranks"], 0), "tokens": judged_tokens(expect, seen),
           "size": compared(seen["size"], expect["parameters"], SIZE_TOLERANCE, is_explained),
           "unnamed": " ".join(missing) if seen["size"] else "", "predicted": "yes" if seen["predicted"] else "no",
           "session": "yes" if seen["session"] else "no"}
    wrong = [key for key in ("ranks", "tokens", "size") if row[key] == "WRONG"] + (["unnamed"] if row["unnamed"] else [])
    row["verdict"] = "WRONG: " + ", ".join(wrong) if wrong else "ok" if is_known else "not recognised"
    row["remark"] = remark_on(expect, seen, row)
    return row


def remark_on(expect, seen, row):
    right_recipe = " or ".join(str(recipe) for recipe in recipes_of(expect))
    if not seen["session"]:
        return f"expected {right_recipe}; " + seen["said"][:160] if row["recipe"] == "WRONG" else "no session"
    values = [("recipe", right_recipe, seen["recipe"], row["recipe"] != "right"),
              ("ranks", expect["ranks"], seen["ranks"], row["ranks"] == "WRONG"),
              ("sequences", expect["sequences_a_step"], seen["sequences"], row["tokens"] not in ("right", "-")),
              ("tokens a sequence", expect["tokens_a_sequence"], seen["length"], row["tokens"] not in ("right", "-")),
              ("parameters", expect["parameters"], seen["size"], row["size"] not in ("right", "-"))]
    parts = [f"{what} {as_text(right)}, got {as_text(got)}" for what, right, got, is_told in values
             if is_told and right is not None and as_text(right) != as_text(got)]
    parts += [f"not named: {row['unnamed']}"] if row["unnamed"] else []
    return "; ".join(parts + (["nothing fits, says the plan"] if "no configuration fits in memory" in seen["said"] else []))


def as_text(value):
    return "nothing" if value is None else value if isinstance(value, str) else f"{value:.4g}" if value > 1e6 else f"{value:.0f}"


def summary(rows):
    """The lines of the table: what, how many, of how many, the goal."""
    recognised = [row for row in rows if row["recipe"] == "right"]
    known = [row for row in recognised if row["tokens"] != "-"]
    sized = [row for row in rows if row["size"] != "-"]
    ranked = [row for row in recognised if row["ranks"] != "-" and row["session"] == "yes"]
    def count(some, key, *words):
        return sum(row[key] in words for row in some)
    return [("recognised", len(recognised), len(rows), "95 %"),
            ("ranks right, of the recognised with a session", count(ranked, "ranks", "right"), len(ranked), ""),
            ("tokens of a step right or said to be open, of the recognised", count(known, "tokens", "right", "open", "named"),
             len(known), "100 %"),
            ("  right", count(known, "tokens", "right"), len(known), ""),
            ("size of the model right", count(sized, "size", "right"), len(sized), "90 %"),
            ("  open", count(sized, "size", "open"), len(sized), ""),
            ("  another, and it is said why", count(sized, "size", "named"), len(sized), ""),
            ("time of a step predicted", count(rows, "predicted", "yes"), len(rows), "70 %"),
            ("session written", sum(row["session"] == "yes" for row in rows), len(rows), ""),
            ("wrong without a word", sum(row["verdict"].startswith("WRONG") for row in rows), len(rows), "0 of them")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--krigtune", default=str(HERE.parents[1] / "build/release/bin/krigtune"))
    parser.add_argument("--gpu", default="h100-80gb", help="the GPU that times are predicted for")
    parser.add_argument("--network", default="ib-ndr-400", help="the network between nodes that times are predicted for")
    parser.add_argument("--set", type=int, help="one set of the list (README.md)")
    parser.add_argument("--only", metavar="ID", help="one command; what krigtune says of it is printed too")
    parser.add_argument("--out", metavar="CSV", help="a row for each command")
    options = parser.parse_args()
    krigtune = str(Path(options.krigtune).resolve())
    entries = json.loads((HERE / "commands.json").read_text())
    rows = []
    for entry in entries:
        if options.only not in (None, entry["id"]) or options.set not in (None, entry["set"]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            seen = understood(krigtune, entry, {"gpu": options.gpu, "network": options.network}, Path(folder))
        rows.append(judged(entry, seen))
        row = rows[-1]
        print(f"{row['id']:32} {row['verdict']:24} {row['remark']}", flush=True)
        if options.only:
            print(json.dumps(seen, indent=2))
    if not rows:
        sys.exit(f"check.py: no command has the id {options.only}")
    print()
    for what, some, of, goal in summary(rows):
        print(f"{what:62} {some:4} of {of:3}  {100 * some / of if of else 0:5.1f} %   {'goal: ' + goal if goal else ''}".rstrip())
    if options.out:
        with open(options.out, "w", newline="") as file:
            writer = csv.DictWriter(file, TABLE)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
