#!/usr/bin/env python3
"""Builds the default model of each family of ../data/hf_configs.jsonl with the program that `krigtune model --python` runs,
and compares its parameters with the number in that file. Needs transformers and torch; takes ten minutes.

usage: built.py [FAMILY...]   prints family,parameters,built,trouble as CSV, and a count on stderr
"""
import csv
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "src" / "jobs" / "installed" / "build_model.py"


def program():
    spec = importlib.util.spec_from_file_location("build_model", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    build_model, wanted = program(), set(sys.argv[1:])
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["family", "parameters", "built", "trouble"])
    equal = count = 0
    with open(HERE.parent / "data" / "hf_configs.jsonl", encoding="utf-8") as lines, tempfile.TemporaryDirectory() as scratch:
        config = Path(scratch) / "config.json"
        for line in lines:
            family = json.loads(line)
            if wanted and family["model_type"] not in wanted:
                continue
            config.write_text(json.dumps(family["config"]), encoding="utf-8")
            answer = build_model.answer_to({"config": str(config), "adapter": ""})
            listed = sum(one["count"] * product(one["shape"]) for one in answer.get("weights", []) if not one["tied_to"])
            built = answer.get("parameters", "")
            rows.writerow([family["model_type"], family["parameters"], built, answer.get("trouble", "")])
            sys.stdout.flush()
            count += 1
            equal += built == family["parameters"] == listed
    print(f"{equal} of {count} families are built with the parameters of the file", file=sys.stderr)


def product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


main()
