#!/usr/bin/env python3
"""Times a fit and a suggestion in BoTorch and in Optuna's GPSampler, with one thread each, on the data of
peers_krigtune.cpp.

    peers.py data FOLDER                     writes observations_<n>.csv and candidates.csv
    peers.py botorch|optuna FOLDER N [--repetitions R]
                                             measures at n observations, prints rows tool,task,n,candidates,seconds,error
    peers.py table ROWS.csv                  prints the medians and their ratios as a Markdown table

`seconds` are CPU time, which other work on the machine changes less than wall time.
`error` is the root mean square error of the noise-free posterior mean over the
candidates, if there is one: it shows whether the same function was learned.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import collections
import csv
import math
import pathlib
import random
import statistics
import time
import warnings

DIMS = 8
SIZES = (100, 1000)
CANDIDATES = (10_000, 100_000)
NOISE_STDDEV = 0.05
CHUNK = 1000  # candidates that BoTorch scores at once: the fastest of 200, 1000, 5000 at both n


def truth(x):
    return math.sin(4 * x[0]) + x[1] * x[1] + 0.5 * x[2] * x[3] - math.cos(3 * x[4] + x[5])


def write_points(path, rng, count, noise_stddev):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([f"x{i}" for i in range(DIMS)] + ["value"])
        for _ in range(count):
            x = [rng.random() for _ in range(DIMS)]
            rows.writerow(x + [truth(x) + rng.gauss(0, noise_stddev)])


def write_data(folder):
    rng = random.Random(1)
    for n in SIZES:  # one more, told after the first suggestion
        write_points(folder / f"observations_{n}.csv", rng, n + 1, NOISE_STDDEV)
    write_points(folder / "candidates.csv", rng, max(CANDIDATES), 0)


def read_points(path, count):
    with open(path, newline="") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:count + 1]]
    return [row[:-1] for row in rows], [row[-1] for row in rows]


def report(tool, task, n, candidates, seconds, error=""):
    print(f"{tool},{task},{n},{candidates},{seconds:.6f},{error}", flush=True)


class Botorch:
    def __init__(self, folder):
        import torch
        torch.set_num_threads(1)
        self.folder = folder
        self.torch = torch
        x, self.truth = read_points(folder / "candidates.csv", max(CANDIDATES))
        self.candidates = torch.tensor(x, dtype=torch.float64)

    def observations(self, count, n):
        x, y = read_points(self.folder / f"observations_{n}.csv", count)
        return self.torch.tensor(x, dtype=self.torch.float64), self.torch.tensor(y, dtype=self.torch.float64)[:, None]

    def fitted(self, x, y, start=None):
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood
        model = SingleTaskGP(x, y)
        if start is not None:
            model.load_state_dict({**model.state_dict(), **start})
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def score(self, model, y, count):
        from botorch.acquisition import LogExpectedImprovement
        acquisition = LogExpectedImprovement(model, best_f=y.max())
        with self.torch.no_grad():
            scores = [acquisition(part.unsqueeze(1)) for part in self.candidates[:count].split(CHUNK)]
        return self.torch.cat(scores).argmax()

    def error(self, model):
        count = min(CANDIDATES)
        with self.torch.no_grad():
            means = [model.posterior(part.unsqueeze(1)).mean.flatten() for part in
                     self.candidates[:count].split(CHUNK)]
        off = self.torch.cat(means) - self.torch.tensor(self.truth[:count], dtype=self.torch.float64)
        return f"{off.square().mean().sqrt().item():.4f}"

    def warm_up(self):
        """What a process does only once (imports, first calls) is not part of a suggestion."""
        x, y = self.observations(20, SIZES[0])
        self.score(self.fitted(x, y), y, CHUNK)

    def measure(self, n):
        """Fits once, and then scores each list; the times are added."""
        x, y = self.observations(n, n)
        began = time.process_time()
        model = self.fitted(x, y)
        fit = time.process_time() - began
        report("botorch", "fit", n, 0, fit, self.error(model))
        for count in CANDIDATES:
            fresh = self.without_caches(model, x, y)
            began = time.process_time()
            self.score(fresh, y, count)
            report("botorch", "fit and score", n, count, fit + time.process_time() - began)
        learned = {name: value for name, value in model.state_dict().items() if "outcome_transform" not in name}
        x, y = self.observations(n + 1, n)
        began = time.process_time()
        refitted = self.fitted(x, y, learned)
        fit = time.process_time() - began
        for count in CANDIDATES:
            fresh = self.without_caches(refitted, x, y)
            began = time.process_time()
            self.score(fresh, y, count)
            report("botorch", "refit and score", n, count, fit + time.process_time() - began)

    def without_caches(self, model, x, y):
        """The same hyperparameters in a new object, because the first prediction's work is part of a suggestion."""
        from botorch.models import SingleTaskGP
        fresh = SingleTaskGP(x, y)
        fresh.load_state_dict(model.state_dict())
        return fresh.eval()


def suggestion(study):
    began = time.process_time()
    trial = study.ask()
    x = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(DIMS)]
    return trial, x, time.process_time() - began


def told_study(folder, n):
    import optuna
    import torch
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    points, values = read_points(folder / f"observations_{max(n, SIZES[0])}.csv", n)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.GPSampler(seed=1))
    box = {f"x{i}": optuna.distributions.FloatDistribution(0.0, 1.0) for i in range(DIMS)}
    study.add_trials([optuna.trial.create_trial(params={f"x{i}": x for i, x in enumerate(point)}, distributions=box,
                                                value=value) for point, value in zip(points, values)])
    return study


def measure_optuna(folder, n):
    study = told_study(folder, n)
    trial, x, seconds = suggestion(study)
    report("optuna", "fit and suggest", n, 0, seconds)
    study.tell(trial, truth(x))
    report("optuna", "refit and suggest", n, 0, suggestion(study)[2])


NAMES = {"krigtune": "krigtune", "botorch": "BoTorch", "optuna": "Optuna"}


def print_table(path):
    times = collections.defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            times[int(row["n"]), row["task"], int(row["candidates"]), row["tool"]].append(float(row["seconds"]))
    print("| n | what | candidates | krigtune, s | peer | s | ratio |\n|---:|---|---:|---:|---|---:|---:|")
    for n, task, count, tool in sorted(times):
        ours = statistics.median(times.get((n, task, count, "krigtune"), [math.nan]))
        theirs = statistics.median(times[n, task, count, tool])
        start = f"| {n} | {task} | {count if count else '-'} | {ours:.3g} |"
        if tool != "krigtune":
            print(f"{start} {NAMES[tool]} | {theirs:.3g} | {theirs / ours:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("data", "botorch", "optuna", "table"))
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("n", type=int, nargs="?")
    parser.add_argument("--repetitions", type=int, default=1)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    if arguments.task == "data":
        write_data(arguments.path)
    elif arguments.task == "table":
        print_table(arguments.path)
    elif arguments.task == "botorch":
        botorch = Botorch(arguments.path)
        botorch.warm_up()
        for _ in range(arguments.repetitions):
            botorch.measure(arguments.n)
    else:
        suggestion(told_study(arguments.path, 20))
        for _ in range(arguments.repetitions):
            measure_optuna(arguments.path, arguments.n)


if __name__ == "__main__":
    main()
