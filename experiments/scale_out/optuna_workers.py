#!/usr/bin/python3
"""Optuna's TPE with a constant liar on the tables and the virtual clock of scale_out. Needs python3-optuna (Debian).

usage: optuna_workers.py OUT [SEEDS [SET,SET...]]

Reads OUT/spaces.csv (only spaces that say nothing about the model), and prints rows
like those of found.csv. Numbers are ordinals (their index among the table's values);
texts and switches are categories. A combination that is not a row of the table costs
nothing, because Optuna does not know which rows exist; after twenty of these in
succession it gets a random row. A combination that it asks again costs its time again.
"""
import csv
import heapq
import json
import pathlib
import random
import sys

import optuna

NEAR, START_S, STEPS, LONGEST_S, MOST_TRIALS, MOST_VAIN = 0.05, 20.0, 30.0, 170.0, 200, 20


class Table:
    def __init__(self, session):
        spec = json.loads(session.read_text())
        runner = spec["runner"]
        names = list(spec["space"])
        with open((session.parent / runner["table"]).resolve(), newline="") as file:
            rows = [row for row in csv.DictReader(file)
                    if all(row[column] == str(value) for column, value in runner.get("where", {}).items())]
        self.maximize = spec["objective"].get("direction", "maximize") == "maximize" and spec["objective"]["metric"] != "latency"
        self.names = [name for name in names if name in rows[0] and len({row[name] for row in rows}) > 1]
        self.values, self.is_number = {}, {}
        for name in self.names:
            texts = {row[name] for row in rows}
            try:
                self.values[name] = sorted(texts, key=float)
                self.is_number[name] = True
            except ValueError:
                self.values[name] = sorted(texts)
                self.is_number[name] = False
        self.slowness = {}
        values = {}
        for row in rows:
            ok = row.get(runner.get("status", ""), "ok") == "ok"
            values[tuple(row[name] for name in self.names)] = float(row[runner["value"]]) if ok else None
        known = [value for value in values.values() if value is not None]
        best = max(known) if self.maximize else min(known)
        for key, value in values.items():
            self.slowness[key] = None if value is None else (best / value if self.maximize else value / best)

    def ask(self, study):
        trial = study.ask()
        key = tuple(self.values[name][trial.suggest_int(name, 0, len(self.values[name]) - 1)] if self.is_number[name]
                    else trial.suggest_categorical(name, self.values[name]) for name in self.names)
        return trial, key


def index_of(table, key):
    return {name: table.values[name].index(text) if table.is_number[name] else text for name, text in zip(table.names, key)}


def find(table, workers, seed):
    rng = random.Random(seed)
    rows = sorted(table.slowness)
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    running, now, closed, vain = [], 0.0, 0, 0
    while closed < MOST_TRIALS:
        while len(running) < workers:
            if vain >= MOST_VAIN:
                study.enqueue_trial(index_of(table, rng.choice(rows)))
            trial, key = table.ask(study)
            if key not in table.slowness:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                vain += 1
                continue
            vain = 0
            seconds = min(START_S + STEPS * (table.slowness[key] or 0.0), LONGEST_S)
            heapq.heappush(running, (now + seconds, trial.number, trial, key))
        now, _, trial, key = heapq.heappop(running)
        closed += 1
        slowness = table.slowness[key]
        if slowness is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, slowness)
            if slowness - 1.0 <= NEAR:
                return 1, closed, now
    return 0, closed, now


def main():
    out, seeds = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    sets = sys.argv[3].split(",") if len(sys.argv) > 3 else []
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with open(out / "spaces.csv", newline="") as file:
        sessions = [out / row["session"] for row in csv.DictReader(file) if row["variant"] == "no_workload" and (not sets or row["set"] in sets)]
    for session in sessions:
        table = Table(session)
        for workers in (1, 2, 4, 8):
            for seed in range(1, seeds + 1):
                within, trials, wall_s = find(table, workers, seed)
                print(f"{session.stem},optuna_tpe,{workers},{seed},{within},{trials},{wall_s:.1f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
