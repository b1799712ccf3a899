#!/usr/bin/env python3
"""Optuna's GPSampler with its defaults on the test problems, one thread: rows as sanity.cpp writes them.

    optuna_peer.py OUTPUT.csv [--seeds 30] [--first-seed 1] [--problems NAME...]
"""
import argparse
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import csv
import math
import pathlib
import time
import warnings

import optuna
import torch
from optuna.trial import TrialState

from problems import HEADER, PROBLEMS, check_expected_values


def ask(trial, problem):
    u = []
    for i, levels in enumerate(problem.levels):
        if levels:
            u.append(trial.suggest_int(f"x{i}", 0, levels - 1) / (levels - 1))
        else:
            u.append(trial.suggest_float(f"x{i}", 0.0, 1.0))
    return u, [trial.suggest_categorical(f"c{i}", list(range(n))) for i, n in enumerate(problem.categories)]


def tell_failure(study, trial, impute, worst):
    """A failure is reported as such, or as the worst value seen so far once there is one."""
    if impute and worst is not None:
        study.tell(trial, worst)
    else:
        study.tell(trial, state=TrialState.FAIL)


def search(problem, seed, impute):
    """The best regret after every evaluation."""
    sampler = optuna.samplers.GPSampler(
        seed=seed, constraints_func=(lambda t: t.user_attrs.get("constraints", ())) if has_constraints(problem) else None)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    best, worst, regrets = math.inf, None, []
    for _ in range(problem.evaluations):
        trial = study.ask()
        outcome = problem.evaluate(*ask(trial, problem))
        if outcome.value is None:
            tell_failure(study, trial, impute, worst)
        else:
            if has_constraints(problem):
                trial.set_user_attr("constraints", list(outcome.constraints))
            study.tell(trial, outcome.value)
            worst = outcome.value if worst is None else max(worst, outcome.value)
            if all(c <= 0.0 for c in outcome.constraints):
                best = min(best, outcome.value - problem.optimum)
        regrets.append(best)
    return regrets


def has_constraints(problem):
    return len(problem.evaluate([0.5] * len(problem.levels), [0] * len(problem.categories)).constraints) > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--problems", nargs="*", default=[p.name for p in PROBLEMS])
    options = parser.parse_args()
    check_expected_values()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with options.output.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for problem in (p for p in PROBLEMS if p.name in options.problems):
                for impute in (False, True) if problem.name.endswith("failing") else (False,):
                    start = time.process_time()
                    regrets = search(problem, seed, impute)
                    strategy = "optuna-impute" if impute else "optuna"
                    for i, regret in enumerate(regrets):
                        writer.writerow([problem.name, strategy, seed, i + 1, f"{regret:.6g}"])
                    file.flush()
                    print(f"{problem.name} {strategy} seed {seed}: {regrets[-1]:.3g}, "
                          f"{time.process_time() - start:.1f} s CPU", flush=True)


if __name__ == "__main__":
    main()
