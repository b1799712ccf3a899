"""The searcher inside the real Ray Tune; skipped where that is not installed (scripts/python-check ray has it)."""
import copy
import math
import os
import pathlib
import tempfile
import unittest

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AIR_NEW_OUTPUT="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
try:
    import ray
    from ray import tune
except ImportError:
    raise unittest.SkipTest("Ray Tune is not installed: scripts/python-check ray") from None
try:
    from ray.tune import RunConfig
except ImportError:  # up to Ray 2.42
    from ray.train import RunConfig

import krigtune
from krigtune.ray import KrigtuneSearch, _column, _columns

SPACE = {"x": tune.uniform(-5, 5), "optimizer": {"lr": tune.loguniform(1e-5, 1e-1), "kind": tune.choice(["adam", "sgd"])}, "batch": 32}


def bowl(configuration):
    optimizer = configuration["optimizer"]
    return 1 + (configuration["x"] - 2) ** 2 + (math.log10(optimizer["lr"]) + 3) ** 2 + (optimizer["kind"] == "sgd")


def search_of(space=None, **options):
    return KrigtuneSearch(space or SPACE, "loss", options.pop("mode", "min"), **{"seed": 1, **options})


def run(search, function, trials, first=0):
    """What a Tuner does, without its processes. Returns the values."""
    values = []
    for number in range(first, first + trials):
        configuration = search.suggest(f"t{number}")
        try:
            values.append(function(configuration))
            search.on_trial_complete(f"t{number}", {"loss": values[-1], "training_iteration": 1})
        except ValueError:
            search.on_trial_complete(f"t{number}", error=True)
    return values


class RayTest(unittest.TestCase):
    def test_it_finds_the_minimum_and_is_the_same_for_the_same_seed(self):
        one, two = run(search_of(), bowl, 25), run(search_of(), bowl, 25)
        self.assertLess(min(one), 1.1)
        self.assertEqual(one, two)

    def test_it_maximizes(self):
        self.assertGreater(max(run(search_of(mode="max"), lambda c: -bowl(c), 25)), -1.1)

    def test_every_kind_of_domain(self):
        space = {"a": tune.randint(1, 9), "b": tune.qrandint(10, 100, 15), "c": tune.lograndint(1, 4096), "d": tune.quniform(0.25, 1.0, 0.25),
                 "e": tune.choice([None, 3, "3", True]), "f": tune.choice([8, 16, 64]), "g": tune.qloguniform(1e-3, 1e-1, 1e-3),
                 "h": tune.qlograndint(2, 1024, 2), "a b": tune.uniform(0, 1), "micro_batch": tune.uniform(0.5, 1.5)}
        search = search_of(space)
        for number in range(30):
            values = search.suggest(f"t{number}")
            self.assertEqual(set(values), set(space))
            self.assertTrue(all(type(values[name]) is int for name in "abcfh"), values)
            self.assertTrue(1 <= values["a"] <= 8 and values["b"] in range(15, 91, 15) and 1 <= values["c"] <= 4095)
            self.assertIn(round(values["d"], 12), [0.25, 0.5, 0.75, 1.0])
            self.assertTrue(any(values["e"] is one for one in (None, 3, "3", True)))
            self.assertIn(values["f"], (8, 16, 64))
            self.assertAlmostEqual(values["g"] / 1e-3, round(values["g"] / 1e-3), places=9)
            self.assertTrue(values["h"] % 2 == 0 and 2 <= values["h"] <= 1024)
            search.on_trial_complete(f"t{number}", {"loss": float(values["a"] + values["d"])})

    def test_numbers_in_order_keep_it(self):
        self.assertEqual(_column("f", tune.choice([8, 16, 64])).values, [8, 16, 64])
        self.assertEqual(_column("f", tune.choice([16, 8])).values, ["16", "8"])

    def test_what_has_no_counterpart_is_refused(self):
        for domain, said in [(tune.randn(0, 1), "the parameter 'o/x' is .*normal"), (tune.grid_search([1, 2]), "'o/x' is a grid_search"),
                             (tune.sample_from(lambda spec: 1), "sample_from"), (tune.qrandint(11, 14, 5), "no multiple of 5 between 11 and 14")]:
            with self.assertRaisesRegex(krigtune.InputError, said):
                _columns({"o": {"x": domain}})
        with self.assertRaisesRegex(krigtune.InputError, "nothing to search"):
            _columns({"x": 3})
        with self.assertRaisesRegex(krigtune.InputError, "one metric"):
            KrigtuneSearch(SPACE, ["a", "b"], ["min", "max"])
        for search, said in [(KrigtuneSearch(), "no search space"), (KrigtuneSearch(SPACE), "no metric")]:
            with self.assertRaisesRegex(krigtune.InputError, said):
                search.suggest("t")

    def test_failures_are_learned_from(self):
        tried = []

        def fails(configuration):
            tried.append(configuration["x"])
            if configuration["x"] > 1:
                raise ValueError
            return bowl(configuration)

        search = search_of()
        self.assertLess(min(run(search, fails, 30)), 2.5)
        self.assertLess(sum(x > 1 for x in tried[15:]), 8)
        self.assertEqual({one["status"] for one in search._search.study.trials}, {"ok", "failed"})
        search.on_trial_complete(search.suggest("nan") and "nan", {"loss": float("nan")})
        self.assertEqual(search._search.study.trials[-1]["reason"], "bad_result")

    def test_an_exhausted_space(self):
        search = search_of({"a": tune.randint(0, 3)})
        run(search, lambda c: float(c["a"] + 1), 3)
        self.assertEqual(search.suggest("last"), tune.search.Searcher.FINISHED)

    def test_points_to_evaluate_and_evaluated_points(self):
        point = {"x": 2.0, "optimizer": {"lr": 1e-3, "kind": "adam"}}
        search = search_of(points_to_evaluate=[point])
        search.add_evaluated_point({**point, "x": 1.5}, 1.25)
        self.assertEqual(search.suggest("t0"), point)
        search.on_trial_complete("t0", {"loss": 1.0})
        self.assertEqual([one["value"] for one in search._search.study.trials], [1.25, 1.0])
        with self.assertRaisesRegex(krigtune.InputError, "points_to_evaluate: 'optimizer/kind'"):
            search_of(points_to_evaluate=[{"x": 1.0, "optimizer": {"lr": 1e-3}}]).suggest("t")

    def test_a_trial_that_ray_runs_again(self):
        search = search_of()
        configuration = search.suggest("t0")
        search.on_trial_complete("t0", error=True)
        for _ in range(2):  # the second time changes nothing
            search.on_trial_complete("t0", {"loss": 5.0, "config": configuration})
        self.assertEqual([one["value"] for one in search._search.study.trials], [None, 5.0])

    def test_saved_and_restored_it_goes_on(self):
        whole = run(search_of(), bowl, 16)
        search = search_of()
        first = run(search, bowl, 10)
        running = search.suggest("t10")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "searcher.pkl")
            search.save(file)
            other = KrigtuneSearch()
            other.restore(file)
        for again in (other, copy.deepcopy(search)):
            again.on_trial_complete("t10", {"loss": bowl(running)})
            self.assertEqual(first + [bowl(running)] + run(again, bowl, 5, 11), whole)
        self.assertEqual(len(search._search.study.trials), 11, "a copy is another search")

    def test_a_tuner(self):
        # The searcher's program may still write its last files when the folder is removed.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False, configure_logging=False)
            self.addCleanup(ray.shutdown)
            directory = pathlib.Path(folder) / "run"

            def trainable(configuration):
                if configuration["x"] < -3:
                    raise ValueError("it does not train")
                return {"loss": bowl(configuration), "batch": configuration["batch"]}

            search = KrigtuneSearch(seed=1, directory=directory)
            config = tune.TuneConfig(metric="loss", mode="min", num_samples=12, max_concurrent_trials=2, search_alg=search)
            results = tune.Tuner(trainable, param_space=SPACE, tune_config=config,
                                 run_config=RunConfig(storage_path=folder, name="bowl", verbose=0)).fit()
            if search._search is not None:
                search._search.study.close()
            self.assertEqual(len(results), 12)
            self.assertLess(results.get_best_result().metrics["loss"], 3.0)
            self.assertEqual(results.get_best_result().metrics["batch"], 32)
            with krigtune.Study(directory=directory) as study:
                trials = study.trials
            self.assertEqual(len(trials), 12)
            self.assertEqual(sum(one["status"] == "failed" for one in trials), results.num_errors)
            self.assertAlmostEqual(min(one["value"] for one in trials if one["status"] == "ok"), results.get_best_result().metrics["loss"])


if __name__ == "__main__":
    unittest.main()
