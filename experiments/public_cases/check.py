#!/usr/bin/env python3
"""Runs krigtune on cases that others made public: measured jobs, launch commands, failures and logs.

usage: check.py [--krigtune PATH] [--only ID] [--markdown FILE]

Nothing is trained: launchers are stand-ins that print a recorded text. README.md says what is compared. Exit code 1 if a
case comes out otherwise than cases.json expects.
"""
import argparse
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INPUTS = HERE.parent / "data" / "public_cases"
LAUNCHERS = ["torchrun", "deepspeed", "accelerate", "llamafactory-cli", "trl", "axolotl", "mpirun"]
STAND_IN = '#!/bin/sh\n[ -z "$FAKE_LOG" ] || cat "$FAKE_LOG"\nexit ${FAKE_EXIT:-0}\n'
SCRIPTS = ["sft.py", "train.py", "finetune.py", "training/__init__.py", "training/trainer.py"]
LIMIT_S = 300


def prepared(folder):
    """Copies the inputs into a folder, beside empty training scripts and the stand-ins. Returns the environment."""
    shutil.copytree(INPUTS / "launch", folder, dirs_exist_ok=True)
    for name in ("ds_config", "outcomes", "logs"):
        shutil.copytree(INPUTS / name, folder / name)
    for name in SCRIPTS:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    programs = folder / "programs"
    programs.mkdir()
    for name in LAUNCHERS:
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    return {**environment, "PATH": f"{programs}:{environment['PATH']}", "HF_HOME": str(folder / "no_models")}


class Case:
    def __init__(self, krigtune, entry, folder):
        self.krigtune, self.entry, self.folder = krigtune, entry, folder
        self.environment = prepared(folder)

    def run(self, *arguments, **variables):
        """Returns the exit code, stdout, and both outputs with single blanks."""
        done = subprocess.run([self.krigtune, *arguments], cwd=self.folder, env={**self.environment, **variables},
                              capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
        return done.returncode, done.stdout, " ".join((done.stdout + " " + done.stderr).split())

    def command(self):
        words = shlex.split(self.entry["command"].replace("MODEL", "--model_name_or_path ./m8 --max_seq_length 1024"))
        return [*self.entry.get("options", []), "--", *words]

    # Each returns what it found: the exit code, a text, and a session or a table.

    def show(self):
        """tune --show-config of a command."""
        code, out, said = self.run("tune", "--show-config", "--json", *self.command())
        shown = json.loads(out)["session"] if code == 0 else {}
        _, _, text = self.run("tune", "--show-config", *self.command())
        return code, said + " " + text, shown

    def plan(self):
        """init of a command and plan of its session on the GPUs that the case names."""
        code, _, said = self.run("init", "job.json", *self.command())
        if code != 0:
            return code, said, {}
        lines = (self.folder / "job.json").read_text().splitlines()
        session = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
        session["cluster"] = {**session.get("cluster", {}), **self.entry["cluster"]}
        (self.folder / "gpus.json").write_text(json.dumps(session))
        code, _, text = self.run("plan", "gpus.json")
        return code, said + " " + text, session

    def trial(self):
        """One trial whose launcher prints a text and ends with an exit code. Returns its row of trials.csv."""
        _, _, said = self.run("tune", "--out", "run", "--trials", "1", "--keep-going", *self.command(),
                              FAKE_LOG=str(self.folder / self.entry["prints"]), FAKE_EXIT=str(self.entry["exit"]))
        table = self.folder / "run" / "trials.csv"
        rows = list(csv.DictReader(table.open())) if table.exists() else []
        configs = list(self.folder.glob("run/trials/*/ds_config.json"))
        said += " " + " ".join(" ".join(config.read_text().split()) for config in configs)
        return 0, said, rows[0] if rows else {}

    def diagnose(self):
        code, _, text = self.run("diagnose", "--log", self.entry["prints"])
        return code, text, {}


def at(values, pointer):
    for key in pointer.strip("/").split("/"):
        values = values.get(key) if isinstance(values, dict) else None
    return values


def faults_of(entry, code, text, values):
    """What comes out otherwise than expected; empty if nothing does."""
    faults = [] if code == entry.get("code", 0) else [f"exit code {code}"]
    faults += [f"does not say '{words}'" for words in entry.get("says", []) if not re.search(words, text)]
    faults += [f"says '{words}'" for words in entry.get("says_not", []) if re.search(words, text)]
    for pointer, expected in entry.get("values", {}).items():
        if at(values, pointer) != expected:
            faults.append(f"{pointer} is {json.dumps(at(values, pointer))}, expected {json.dumps(expected)}")
    return faults


def measured_rows(krigtune, entry, folder):
    """The rows of a measured job: what was published, what plan predicts, and whether it names what is left out."""
    rows = []
    for group in entry["groups"]:
        (folder / "session.json").write_text(json.dumps(group["session"]))
        done = subprocess.run([krigtune, "plan", "session.json", "--csv", "plan.csv"], cwd=folder, capture_output=True,
                              text=True, timeout=LIMIT_S)
        text = " ".join((done.stdout + done.stderr).split())
        plan = folder / "plan.csv"
        table = list(csv.DictReader(plan.open())) if plan.exists() else []
        plan.unlink(missing_ok=True)
        for published in group["rows"]:
            found = [row for row in table if all(row.get(key) == str(value) for key, value in published["where"].items())]
            rows.append(compared(entry, published, found[0] if found else None, text))
    return rows


def compared(entry, published, row, text):
    result = {"id": entry["id"], "what": published["what"], "published": published, "faults": []}
    if row is None:
        result["faults"].append("the plan has no such row")
        return result
    result["gib"] = float(row["predicted_memory_bytes"]) / 2**30 if row["predicted_memory_bytes"] else None
    result["step_s"] = float(row["predicted_step_time_s"]) if row["predicted_step_time_s"] else None
    result["fits"] = row["memory_verdict"]
    for words in entry.get("says", []):
        if not re.search(words, text):
            result["faults"].append(f"does not say '{words}'")
    if published.get("oom") and row["memory_verdict"] == "fits":
        result["faults"].append("ran out of memory, but is said to fit")
    return result


def number(value, digits=3):
    return "" if value is None else f"{value:.{digits}g}"


def measured_table(rows):
    lines = ["| case | configuration | memory, GiB: published | planned | step, s: published | planned |",
             "|---|---|---:|---:|---:|---:|"]
    for row in rows:
        published = row["published"]
        memory = "out of memory" if published.get("oom") else number(published.get("gib"))
        planned = number(row.get("gib")) + (f" ({row['fits']})" if published.get("oom") and row.get("fits") else "")
        lines.append(f"| {row['id']} | {row['what']} | {memory} | {planned} | {number(published.get('step_s'))} | "
                     f"{number(row.get('step_s'))} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--krigtune", default=str(HERE.parents[1] / "build/release/bin/krigtune"))
    parser.add_argument("--only", metavar="ID", help="one case; what krigtune says of it is printed too")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables")
    options = parser.parse_args()
    krigtune = str(Path(options.krigtune).resolve())
    entries = json.loads((HERE / "cases.json").read_text())
    measured, others = [], []
    for entry in entries:
        if options.only not in (None, entry["id"]):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if entry["do"] == "measured":
                rows = measured_rows(krigtune, entry, folder)
                measured += rows
                faults = [f"{row['what']}: {fault}" for row in rows for fault in row["faults"]]
            else:
                code, text, values = getattr(Case(krigtune, entry, folder), entry["do"])()
                faults = faults_of(entry, code, text, values)
                if options.only:
                    print(code, text, json.dumps(values, indent=1), sep="\n")
        others.append((entry, faults))
        print(f"{entry['id']:28} {entry['fault']:4} {'; '.join(faults) or 'as expected'}", flush=True)
    if not others:
        sys.exit(f"check.py: no case has the id {options.only}")
    wrong = sum(bool(faults) for _, faults in others)
    print(f"\n{len(others)} cases, {wrong} of them otherwise than expected")
    table = measured_table(measured)
    print("\n" + "\n".join(table))
    if options.markdown:
        lines = ["| fault | case | what must come out | does it |", "|---|---|---|---|"]
        lines += [f"| {entry['fault']} | {entry['id']} | {entry['expect']} | {'; '.join(faults) or 'yes'} |"
                  for entry, faults in others]
        Path(options.markdown).write_text("\n".join(table + [""] + lines) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
