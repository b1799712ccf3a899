#!/usr/bin/env python3
"""BoTorch and SMAC with their defaults on the functions of surrogate_sanity, with one
thread. The rows have the form of sanity.cpp.

usage: functions.py OUTPUT.csv [--seeds 10] [--problems NAME...] [--tools botorch smac]
BoTorch: SingleTaskGP (MixedSingleTaskGP if there are categories) on standardised
values; log expected improvement, maximised by its own optimizers, after 2 (d + 1)
Sobol points. SMAC: the black-box facade (Gaussian process) with its Sobol design.
Runs that are in OUTPUT.csv are not repeated.
"""
import argparse
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import csv
import itertools
import pathlib
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "surrogate_sanity"))
from problems import HEADER, PLAIN, PROBLEMS, check_expected_values


def snapped(problem, u):
    return [round(x * (n - 1)) / (n - 1) if n else x for n, x in zip(problem.levels, u)]


class Botorch:
    def __init__(self, problem, seed):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.torch, self.problem = torch, problem
        self.ordered, self.dims = len(problem.levels), len(problem.levels) + len(problem.categories)
        self.first = torch.quasirandom.SobolEngine(self.dims, scramble=True, seed=seed).draw(2 * (self.dims + 1)).tolist()
        self.x, self.y = [], []

    def split(self, x):
        categories = [int(round(c)) for c in x[self.ordered:]]
        return snapped(self.problem, x[:self.ordered]), categories

    def ask(self):
        if len(self.x) < len(self.first):
            point = self.first[len(self.x)]
            counts = self.problem.categories
            return self.split(point[:self.ordered] + [min(int(u * n), n - 1) for u, n in zip(point[self.ordered:], counts)])
        return self.split(self.best_of_score())

    def best_of_score(self):
        from botorch.acquisition import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.optim import optimize_acqf, optimize_acqf_mixed
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch, problem = self.torch, self.problem
        x = torch.tensor(self.x, dtype=torch.double)
        y = -torch.tensor(self.y, dtype=torch.double).unsqueeze(-1)
        columns = list(range(self.ordered, self.dims))
        options = {"outcome_transform": Standardize(m=1)}
        model = MixedSingleTaskGP(x, y, cat_dims=columns, **options) if columns else SingleTaskGP(x, y, **options)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        score = LogExpectedImprovement(model, best_f=y.max())
        tops = [1.0] * self.ordered + [n - 1.0 for n in problem.categories]
        bounds = torch.tensor([[0.0] * self.dims, tops], dtype=torch.double)
        settings = {"bounds": bounds, "q": 1, "num_restarts": 10, "raw_samples": 256}
        if not columns:
            return optimize_acqf(score, **settings)[0][0].tolist()
        fixed = [dict(zip(columns, map(float, values))) for values in itertools.product(*map(range, problem.categories))]
        settings["num_restarts"], settings["raw_samples"] = 4, 64  # for each combination of categories
        return optimize_acqf_mixed(score, fixed_features_list=fixed, **settings)[0][0].tolist()

    def tell(self, point, value):
        self.x.append([*point[0], *map(float, point[1])])
        self.y.append(value)


class Smac:
    def __init__(self, problem, seed):
        import ConfigSpace as space
        import smac

        self.problem, self.history = problem, smac.runhistory
        self.space = space.ConfigurationSpace(seed=seed)
        for i, n in enumerate(problem.levels):
            self.space.add([space.Integer(f"x{i}", (0, n - 1)) if n else space.Float(f"x{i}", (0.0, 1.0))])
        for i, n in enumerate(problem.categories):
            self.space.add([space.Categorical(f"c{i}", list(range(n)))])
        self.folder = tempfile.TemporaryDirectory()
        scenario = smac.Scenario(self.space, deterministic=True, n_trials=problem.evaluations, seed=seed,
                                 output_directory=self.folder.name)
        self.optimizer = smac.BlackBoxFacade(scenario, lambda config, seed=0: 0.0, logging_level=50, overwrite=True)

    def ask(self):
        self.asked = self.optimizer.ask()
        config = self.asked.config
        u = [config[f"x{i}"] / (n - 1) if n else config[f"x{i}"] for i, n in enumerate(self.problem.levels)]
        return u, [int(config[f"c{i}"]) for i in range(len(self.problem.categories))]

    def tell(self, _, value):
        self.optimizer.tell(self.asked, self.history.TrialValue(cost=value), save=False)


TOOLS = {"botorch": Botorch, "smac": Smac}


def regrets_of(problem, tool, seed):
    """The best regret after every evaluation."""
    peer, best, regrets = TOOLS[tool](problem, seed), float("inf"), []
    for _ in range(problem.evaluations):
        point = peer.ask()
        value = problem.evaluate(*point).value
        peer.tell(point, value)
        best = min(best, value - problem.optimum)
        regrets.append(best)
    return regrets


def done_before(path):
    if not path.exists():
        path.write_text(",".join(HEADER) + "\n")
    with path.open(newline="") as file:
        return {(row["problem"], row["strategy"], int(row["seed"])) for row in csv.DictReader(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--problems", nargs="*", default=PLAIN)
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    options = parser.parse_args()
    check_expected_values()
    warnings.filterwarnings("ignore")
    known = done_before(options.output)
    chosen = [problem for problem in PROBLEMS if problem.name in options.problems]
    for seed, tool, problem in itertools.product(range(1, options.seeds + 1), options.tools, chosen):
        if (problem.name, tool, seed) in known:
            continue
        begun = time.process_time()
        regrets = regrets_of(problem, tool, seed)
        with options.output.open("a", newline="") as file:
            lines = [[problem.name, tool, seed, i + 1, f"{regret:.6g}"] for i, regret in enumerate(regrets)]
            csv.writer(file, lineterminator="\n").writerows(lines)
        print(f"{problem.name} {tool} seed {seed}: {regrets[-1]:.3g}, {time.process_time() - begun:.1f} s CPU", flush=True)


if __name__ == "__main__":
    main()
