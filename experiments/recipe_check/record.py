"""Compares recipes with their frameworks from PyPI, and records what the frameworks answered.

  record.py KRIGTUNE [RECIPE...]      (default: all recipes below)

Makes the environment of each framework (setup.sh), prints what `krigtune recipes RECIPE --check` says, and writes the
framework's names into tests/golden/jobs/frameworks, which tests and docs/jobs/README.md are made from. Exits with 1 if
a framework could not be asked.
"""
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDS = HERE.parents[1] / "tests/golden/jobs/frameworks"
FRAMEWORK_OF = {  # recipe: the name of its environment
    "accelerate": "hf-trainer", "axolotl": "axolotl", "hf-trainer": "hf-trainer", "hf-trainer-yaml": "hf-trainer",
    "litgpt": "litgpt", "llama-factory": "llama-factory", "megatron": "megatron",
    "ms-swift": "ms-swift", "olmo": "olmo", "openrlhf": "openrlhf", "torchtitan": "torchtitan", "torchtune": "torchtune",
    "verl-sft": "verl"}


def python_of(framework):
    return subprocess.run([HERE / "setup.sh", framework], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def text_of(framework):
    """JSON with a name on each line, so that a difference shows which ones changed."""
    lines = []
    for key, value in framework.items():
        if isinstance(value, list) and value:
            inner = ",\n".join("    " + json.dumps(one) for one in value)
            lines.append(f'  "{key}": [\n{inner}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def record(krigtune, recipe):
    """Returns whether all of the framework's sources could be asked."""
    words = [krigtune, "recipes", recipe, "--check", python_of(FRAMEWORK_OF[recipe])]
    print(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    document = json.loads(subprocess.run([*words, "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    framework = document["checks"][0]["framework"]
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / f"{recipe}.json").write_text(text_of(framework), encoding="utf-8")
    return not framework["troubles"]


def main():
    krigtune, recipes = sys.argv[1], sys.argv[2:] or sorted(FRAMEWORK_OF)
    done = [record(krigtune, recipe) for recipe in recipes]
    sys.exit(0 if all(done) else 1)


main()
