#!/usr/bin/env python3
"""usage: optuna_samplers.py [--seeds 5] [--trials 40] [--samplers krigtune,minimize,TPE,GP,random]
       [--functions branin,hartmann6,network]

Samplers inside Optuna, and krigtune.minimize without it, on three generic functions: the median, over the seeds, of what the best trial lacks to the minimum, and the
seconds that a trial takes beside the function, as medians of the last ten trials of each study. scripts/optuna-sampler-check
--measure runs it where Optuna, PyTorch (for GPSampler) and krigtune are.
"""
import argparse
import math
import statistics
import time
import warnings

import optuna

import krigtune
from krigtune.optuna import KrigtuneSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")

SAMPLERS = {
    "krigtune": lambda seed: KrigtuneSampler(seed=seed),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True),
    "GP": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}

# Hartmann's function in six dimensions: the constants of https://www.sfu.ca/~ssurjano/hart6.html.
ALPHA = (1.0, 1.2, 3.0, 3.2)
A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
P = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991), (2348, 1451, 3522, 2883, 3047, 6650),
     (4047, 8828, 8732, 5743, 1091, 381))


def branin(trial):
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    return ((y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


def hartmann6(trial):
    x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(6)]
    return -sum(alpha * math.exp(-sum(a * (xi - 1e-4 * p) ** 2 for a, p, xi in zip(row, places, x)))
                for alpha, row, places in zip(ALPHA, A, P))


def network(trial):
    """A made-up loss of a small network: a rate, a whole number and two choices, with interactions."""
    lr, layers = trial.suggest_float("lr", 1e-5, 1e-1, log=True), trial.suggest_int("layers", 1, 12)
    optimizer, norm = trial.suggest_categorical("optimizer", ["sgd", "adam", "lion"]), trial.suggest_categorical("norm", ["none", "layer"])
    best = {"sgd": -1.5, "adam": -3.0, "lion": -4.0}[optimizer] - 0.05 * layers * (norm == "none")
    return (0.1 * (math.log10(lr) - best) ** 2 + 0.02 * (layers - (9 if norm == "layer" else 4)) ** 2
            + {"sgd": 0.15, "adam": 0.0, "lion": 0.05}[optimizer] + (0.2 if norm == "none" else 0.0))


FUNCTIONS = {"branin": (branin, 0.397887), "hartmann6": (hartmann6, -3.32237), "network": (network, 0.0)}


class Ranges:
    """Takes the place of a trial, and keeps what a function may ask for as a space of krigtune."""

    def __init__(self):
        self.space = {}

    def suggest_float(self, name, low, high, log=False):
        self.space[name] = krigtune.log(low, high) if log else krigtune.real(low, high)
        return low

    def suggest_int(self, name, low, high):
        self.space[name] = krigtune.integer(low, high)
        return low

    def suggest_categorical(self, name, choices):
        self.space[name] = choices
        return choices[0]


def run_alone(function, seed, trials):
    """krigtune.minimize, which searches as `krigtune tune` does."""
    ranges, marks = Ranges(), []
    function(ranges)

    def timed(configuration):
        begun = time.perf_counter()
        value = function(optuna.trial.FixedTrial(configuration))
        marks.append((begun, time.perf_counter()))
        return value

    with krigtune.minimize(timed, ranges.space, trials, seed=seed, catch=()) as study:
        best = min(trial["value"] for trial in study.trials)
    return best, statistics.median(begun - ended for (_, ended), (begun, _) in zip(marks[-11:], marks[-10:]))


def run(function, sampler, trials):
    marks = []
    study = optuna.create_study(sampler=sampler)
    begun = time.perf_counter()
    for _ in range(trials):
        study.optimize(function, n_trials=1)
        marks.append(time.perf_counter() - begun)
        begun = time.perf_counter()
    return study.best_value, statistics.median(marks[-10:])


def say(function, searcher, minimum, runs):
    """Prints the line of one searcher on one function. runs: the best value and the seconds of a trial, for each seed."""
    regrets = sorted(best - minimum for best, _ in runs)
    print(f"{function:10} {searcher:9} regret {statistics.median(regrets):9.2e} ({regrets[0]:.1e} to {regrets[-1]:.1e})   "
          f"{1e3 * statistics.median(seconds for _, seconds in runs):7.1f} ms a trial", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--samplers", default="krigtune,minimize,TPE,GP,random")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    options = parser.parse_args()
    print(f"Optuna {optuna.__version__}, {options.trials} trials, {options.seeds} seeds")
    for name in options.functions.split(","):
        function, minimum = FUNCTIONS[name]
        for sampler in options.samplers.split(","):
            runs = [run_alone(function, seed, options.trials) if sampler == "minimize" else
                    run(function, SAMPLERS[sampler](seed), options.trials) for seed in range(1, options.seeds + 1)]
            say(name, sampler, minimum, runs)


if __name__ == "__main__":
    main()
