#!/usr/bin/env python3
"""usage: ray_searchers.py [--seeds 3] [--trials 40] [--searchers krigtune,optuna,random] [--functions branin,hartmann6]

Searchers of Ray Tune on generic functions, asked and told as a Tuner does it, without its processes: the median, over the seeds, of
what the best trial lacks to the minimum, and the seconds that a trial takes beside the function, as medians of the last ten trials.
scripts/python-check ray --measure runs it where Ray, Optuna and krigtune are.
"""
import argparse
import logging
import statistics
import time

import numpy
import optuna
import ray
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from krigtune.ray import KrigtuneSearch
from optuna_samplers import FUNCTIONS as OPTUNAS, say

optuna.logging.set_verbosity(optuna.logging.ERROR)
logging.disable(logging.WARNING)

SPACES = {"branin": {"x": tune.uniform(-5, 10), "y": tune.uniform(0, 15)},
          "hartmann6": {f"x{i}": tune.uniform(0, 1) for i in range(6)}}


class Random:
    """What Ray's default, BasicVariantGenerator, draws."""

    def __init__(self, space, seed):
        self.space, self.chance = space, numpy.random.RandomState(seed)

    def suggest(self, trial_id):
        return {name: domain.sample(random_state=self.chance) for name, domain in self.space.items()}

    def on_trial_complete(self, trial_id, result):
        pass


def optuna_search(space, seed):
    search = OptunaSearch(metric="loss", mode="min", seed=seed)
    search.set_search_properties("loss", "min", space)
    return search


SEARCHERS = {"krigtune": lambda space, seed: KrigtuneSearch(space, "loss", "min", seed=seed), "optuna": optuna_search, "random": Random}


class Suggested:
    """A configuration for functions that ask Optuna's trial for its values."""

    def __init__(self, configuration):
        self.configuration = configuration

    def suggest_float(self, name, low, high):
        return self.configuration[name]


def run(function, search, trials):
    best, marks = float("inf"), []
    for number in range(trials):
        begun = time.perf_counter()
        configuration = search.suggest(str(number))
        value = function(Suggested(configuration))
        search.on_trial_complete(str(number), {"loss": value, "training_iteration": 1})
        marks.append(time.perf_counter() - begun)
        best = min(best, value)
    return best, statistics.median(marks[-10:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--searchers", default="krigtune,optuna,random")
    parser.add_argument("--functions", default=",".join(SPACES))
    options = parser.parse_args()
    print(f"Ray {ray.__version__}, Optuna {optuna.__version__}, {options.trials} trials, {options.seeds} seeds")
    for name in options.functions.split(","):
        function, minimum = OPTUNAS[name]
        for searcher in options.searchers.split(","):
            runs = [run(function, SEARCHERS[searcher](SPACES[name], seed), options.trials) for seed in range(1, options.seeds + 1)]
            say(name, searcher, minimum, runs)


if __name__ == "__main__":
    main()
