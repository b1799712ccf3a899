"""The sampler inside the real Optuna; skipped where that is not installed."""
import math
import pickle
import unittest
import warnings

try:
    import optuna
except ImportError:
    raise unittest.SkipTest("Optuna is not installed: apt-get install python3-optuna, or scripts/optuna-sampler-check") from None

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from krigtune.optuna import KrigtuneSampler, _column

optuna.logging.set_verbosity(optuna.logging.ERROR)


def study_of(sampler=None, **options):
    return optuna.create_study(sampler=sampler or KrigtuneSampler(seed=1), **options)


def bowl(trial):
    x = trial.suggest_float("x", -5, 5)
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    return 1 + (x - 2) ** 2 + (math.log10(lr) + 3) ** 2


class OptunaTest(unittest.TestCase):
    def test_it_finds_the_minimum_and_is_the_same_for_the_same_seed(self):
        studies = []
        for _ in range(2):
            studies.append(study_of())
            studies[-1].optimize(bowl, n_trials=20)
        self.assertLess(studies[0].best_value, 1.05)
        self.assertEqual([trial.params for trial in studies[0].trials], [trial.params for trial in studies[1].trials])

    def test_it_maximizes(self):
        study = study_of(direction="maximize")
        study.optimize(lambda trial: -bowl(trial), n_trials=20)
        self.assertGreater(study.best_value, -1.05)

    def test_all_but_the_first_trial_are_sampled_together(self):
        seen = []

        def objective(trial):
            seen.append(sorted(trial.relative_params))
            return bowl(trial)

        study_of().optimize(objective, n_trials=4)
        self.assertEqual(seen, [[], *[["lr", "x"]] * 3])

    def test_every_kind_of_distribution(self):
        def objective(trial):
            values = [trial.suggest_int("a", 1, 9), trial.suggest_int("b", 10, 100, step=15), trial.suggest_int("c", 1, 4096, log=True),
                      trial.suggest_float("d", 0.0, 1.0, step=0.25), trial.suggest_categorical("e", [None, 3, 3.5, "3", True]),
                      trial.suggest_categorical("f", ["adam", "sgd"]), trial.suggest_int("g", 0, 10**7), trial.suggest_int("h", 7, 7)]
            self.assertIn((values[1] - 10) % 15, [0])
            self.assertIn(values[3], [0.0, 0.25, 0.5, 0.75, 1.0])
            self.assertTrue(all(type(values[i]) is int for i in (0, 1, 2, 6)))
            return values[0] + values[3] + (values[4] is None)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna warns of choices that a database could not store
            study = study_of()
            study.optimize(objective, n_trials=25)
        self.assertLessEqual(study.best_value, 2.0)

    def test_values_there_and_back(self):
        for distribution, values in [
                (IntDistribution(1, 4096, log=True), [1, 7, 4096]), (IntDistribution(-6, 9, step=5), [-6, -1, 4, 9]),
                (IntDistribution(0, 10**9, step=10), [0, 10, 10**9]), (FloatDistribution(0.1, 0.7, step=0.2), [0.1, 0.1 + 0.2 * 2]),
                (FloatDistribution(1e-5, 1.0, log=True), [1e-5, 0.3, 1.0]), (CategoricalDistribution([1, True, "1", None]), [1, True, "1", None])]:
            column = _column(distribution)
            for value in values:
                again = column.back(column.there(value))
                self.assertEqual((again, type(again)), (value, type(value)), distribution)

    def test_parameters_that_depend_on_others(self):
        def objective(trial):
            if trial.suggest_categorical("kind", ["svm", "forest"]) == "svm":
                return 2 + trial.suggest_float("svm/c", 0.1, 10, log=True)
            return 1 + trial.suggest_int("trees in all", 2, 32)

        study = study_of()
        study.optimize(objective, n_trials=15)
        self.assertEqual(len(study.trials), 15)

    def test_names_that_krigtune_knows_otherwise(self):
        def objective(trial):
            return 1 + trial.suggest_float("micro_batch", 0.5, 2.5) + trial.suggest_int("zero_stage", 0, 7) + trial.suggest_float("a b", 0, 1)

        study = study_of()
        study.optimize(objective, n_trials=12)
        self.assertLess(study.best_value, 4.0)

    def test_failed_and_pruned_trials_are_learned_from(self):
        def objective(trial):
            x = trial.suggest_float("x", 0, 1)
            if x > 0.6:
                raise ValueError("too large")
            trial.report(2 - x, 1)
            if x < 0.3:
                raise optuna.TrialPruned
            return 2 - x

        study = study_of()
        study.optimize(objective, n_trials=25, catch=(ValueError,))
        search = study.sampler._searches[-1].study
        self.assertEqual({one["status"] for one in search.trials} & {"ok", "failed"}, {"ok", "failed"})
        self.assertLess(study.best_value, 1.5)
        self.assertLess(sum(trial.params["x"] > 0.6 for trial in study.trials[10:]), 8)

    def test_trials_of_others_are_learned_from(self):
        study = study_of(optuna.samplers.RandomSampler(seed=2))
        study.optimize(bowl, n_trials=10)
        study.sampler = KrigtuneSampler(seed=1)
        study.enqueue_trial({"x": 2.0, "lr": 1e-3})
        study.optimize(bowl, n_trials=6)
        self.assertEqual(study.best_value, 1.0)
        known = study.sampler._searches[-1].study.trials
        self.assertEqual(sum(one["status"] == "ok" for one in known), 16)
        self.assertIn({"lr": 1e-3, "x": 2.0}, [one["configuration"] for one in known if one["status"] == "ok"])

    def test_several_threads(self):
        study = study_of()
        study.optimize(bowl, n_trials=16, n_jobs=3)
        self.assertEqual(len({str(trial.params) for trial in study.trials}), 16)

    def test_an_exhausted_space(self):
        study = study_of()
        study.optimize(lambda trial: 1 + trial.suggest_int("a", 0, 3), n_trials=8)
        self.assertEqual(study.best_params, {"a": 0})

    def test_copies(self):
        sampler = KrigtuneSampler(seed=1)
        study_of(sampler).optimize(bowl, n_trials=3)
        study = study_of(pickle.loads(pickle.dumps(sampler)))
        study.optimize(bowl, n_trials=3)
        self.assertEqual(len(study.trials), 3)

    def test_several_objectives(self):
        # The front of x^2 and (x - 2)^2 is 0 <= x <= 2; what y adds is 0 at its best.
        def objective(trial):
            x, y = trial.suggest_float("x", -4, 6), trial.suggest_float("y", 0, 1)
            if x > 5:
                raise ValueError("too large")
            return x**2 + y, -(x - 2) ** 2 - y

        study = study_of(directions=["minimize", "maximize"])
        study.optimize(objective, n_trials=25, catch=(ValueError,))
        late = [trial for trial in study.trials[10:] if trial.values]
        self.assertGreater(sum(-0.2 <= trial.params["x"] <= 2.2 for trial in late), len(late) / 2)
        search = study.sampler._searches[-1].study
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna asks to use best_trials
            ours = {tuple(member["values"].values()) for member in search.front}
        self.assertEqual(ours, {tuple(trial.values) for trial in study.best_trials})

    def test_more_objectives_than_it_knows_are_refused(self):
        study = study_of(directions=["minimize"] * 5)
        with self.assertRaisesRegex(ValueError, "at most 4 objectives"):
            study.optimize(lambda trial: [bowl(trial)] * 5, n_trials=3)


if __name__ == "__main__":
    unittest.main()
