"""The peers behind one interface: `ask` names a row of the table that was not tried, `tell` reports its result.

Every tool knows which rows exist, unless its name says otherwise. BoTorch scores all
unseen rows. Optuna and SMAC accept no list: their proposals are moved to the nearest
unseen row, and they are told about that row.
"""
import importlib.metadata
import math
import random
import tempfile

STARTUP = 10  # random trials before Optuna's and SMAC's models begin: their own default


class Rows:
    """The rows in the form that each tool needs: indices of values, points of the unit cube (texts, booleans: one axis each)."""

    def __init__(self, names, rows):
        self.names, self.count = names, len(rows)
        self.values, self.ordered = [], []
        for column in range(len(names)):
            occurring = {row[column] for row in rows}
            try:
                self.values.append(sorted(occurring, key=float))
                self.ordered.append(True)
            except ValueError:
                self.values.append(sorted(occurring))
                self.ordered.append(False)
        self.indices = [tuple(v.index(x) for v, x in zip(self.values, row)) for row in rows]
        self.points = [self.point(index) for index in self.indices]
        self.free = [i for i, values in enumerate(self.values) if len(values) > 1]

    def point(self, index):
        point = []
        for values, ordered, i in zip(self.values, self.ordered, index):
            if not ordered:
                point += [float(i == k) / math.sqrt(2) for k in range(len(values))] if len(values) > 1 else []
            elif len(values) > 1:
                axis = [float(value) for value in values]
                if axis[0] > 0:
                    axis = [math.log2(value) for value in axis]
                point.append((axis[i] - axis[0]) / (axis[-1] - axis[0]))
        return tuple(point)


class Tool:
    package = ""

    def __init__(self, rows, seed):
        self.rows, self.seed, self.random = rows, seed, random.Random(seed)
        self.left = dict.fromkeys(range(rows.count))
        self.seen = []  # (row, log of the gain or None)

    def nearest(self, index):
        point = self.rows.point(index)
        return min(self.left, key=lambda row: math.dist(self.rows.points[row], point))

    def ask(self):
        raise NotImplementedError

    def tell(self, row, gain):
        """gain: positive, to be maximised; None if the configuration failed."""
        del self.left[row]
        self.seen.append((row, None if gain is None else math.log(gain)))

    def worst(self):
        return min((y for _, y in self.seen if y is not None), default=None)

    @classmethod
    def version(cls):
        return f"{cls.package} {importlib.metadata.version(cls.package)}"


class Optuna(Tool):
    """Default settings. Failures are reported as such (TPE ignores them), or as the worst value so far (`imputes`)."""

    package = "optuna"
    imputes = False

    def __init__(self, rows, seed):
        super().__init__(rows, seed)
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna = optuna
        self.study = optuna.create_study(direction="maximize", sampler=self.sampler())
        integer, category = optuna.distributions.IntDistribution, optuna.distributions.CategoricalDistribution
        self.axes = {
            rows.names[i]: integer(0, len(rows.values[i]) - 1) if rows.ordered[i]
            else category(range(len(rows.values[i])))
            for i in rows.free
        }
        self.first = self.random.sample(range(rows.count), min(STARTUP, rows.count))

    def sampler(self):
        return self.optuna.samplers.TPESampler(seed=self.seed)

    def ask(self):
        if len(self.seen) < len(self.first):
            return self.first[len(self.seen)]
        trial = self.study.ask(self.axes)
        self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)  # the row tried instead is added below
        return self.nearest(tuple(trial.params.get(name, 0) for name in self.rows.names))

    def tell(self, row, gain):
        super().tell(row, gain)
        index = self.rows.indices[row]
        value = self.seen[-1][1]
        if value is None and self.imputes:
            value = self.worst()
        if value is not None:
            params = {self.rows.names[i]: index[i] for i in self.rows.free}
            create = self.optuna.trial.create_trial
            self.study.add_trial(create(params=params, distributions=self.axes, value=value))


class OptunaImputed(Optuna):
    """TPE; failures are reported as the worst value so far."""

    imputes = True


class OptunaUntold(Optuna):
    """TPE on the values of each parameter separately. A combination that is not in the table costs nothing: it is
    reported as failed. One that was tried is reported again. After 20 of these, an unseen row is drawn."""

    asks = 20

    def __init__(self, rows, seed):
        super().__init__(rows, seed)
        self.first = []
        self.known = {index: row for row, index in enumerate(rows.indices)}
        self.told = {}

    def ask(self):
        for _ in range(self.asks):
            trial = self.study.ask(self.axes)
            row = self.known.get(tuple(trial.params.get(name, 0) for name in self.rows.names))
            if row in self.left:
                self.trial = trial
                return row
            self.answer(trial, self.told.get(row))
        self.trial = None
        return self.random.choice(list(self.left))

    def answer(self, trial, value):
        if value is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, value)

    def tell(self, row, gain):
        Tool.tell(self, row, gain)
        self.told[row] = self.seen[-1][1]
        if self.trial is not None:
            self.answer(self.trial, self.told[row])


class OptunaGp(Optuna):
    """GPSampler, which cannot be told about a failure, so failures get the worst value so far."""

    imputes = True

    def sampler(self):
        return self.optuna.samplers.GPSampler(seed=self.seed)


class Botorch(Tool):
    """SingleTaskGP with defaults, LogEI over all unseen rows, after five Sobol points. A failure gets the worst value so far."""

    package = "botorch"
    sobol_trials = 5

    def __init__(self, rows, seed):
        super().__init__(rows, seed)
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        torch.distributions.Distribution.set_default_validate_args(False)  # checks take a third of the fit
        self.torch = torch
        sobol = torch.quasirandom.SobolEngine(len(rows.free), scramble=True, seed=seed)
        self.first = sobol.draw(self.sobol_trials).tolist()

    def tensor(self, values):
        return self.torch.tensor(values, dtype=self.torch.double)

    def fit(self, observed):
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x = self.tensor([self.rows.points[row] for row, _ in observed])
        model = SingleTaskGP(x, self.tensor([y for _, y in observed]).unsqueeze(-1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def improvement(self, observed, choices):
        from botorch.acquisition import LogExpectedImprovement

        return LogExpectedImprovement(self.fit(observed), best_f=max(y for _, y in observed))(choices.unsqueeze(1))

    def spread(self):
        index = [0] * len(self.rows.values)
        for u, i in zip(self.first[len(self.seen)], self.rows.free):
            index[i] = min(int(u * len(self.rows.values[i])), len(self.rows.values[i]) - 1)
        return self.nearest(tuple(index))

    def score(self, choices):
        worst = self.worst() or 0.0
        return self.improvement([(row, worst if y is None else y) for row, y in self.seen], choices)

    def ask(self):
        if len(self.seen) < self.sobol_trials:
            return self.spread()
        left = list(self.left)
        with self.torch.no_grad():
            choices = self.tensor([self.rows.points[row] for row in left])
        with self.torch.enable_grad():
            score = self.score(choices)
        return left[int(score.argmax())]


class BotorchFeasible(Botorch):
    """The same on the successes, plus log P(success) of a second SingleTaskGP on 0 and 1."""

    def score(self, choices):
        likely = self.fit([(row, float(y is not None)) for row, y in self.seen]).posterior(choices)
        score = self.torch.special.log_ndtr(((likely.mean - 0.5) / likely.variance.sqrt()).squeeze(-1))
        good = [(row, y) for row, y in self.seen if y is not None]
        return score + self.improvement(good, choices) if good else score


class Smac(Tool):
    """SMAC3's facade for hyperparameters (random forest); a failure counts as crashed, with the worst cost so far."""

    package = "smac"
    retries = 1000  # successive proposals that were tried before; after that, an unseen row is drawn

    def __init__(self, rows, seed):
        super().__init__(rows, seed)
        import ConfigSpace
        import smac
        import smac.runhistory

        self.configuration, self.history = ConfigSpace.Configuration, smac.runhistory
        self.space = ConfigSpace.ConfigurationSpace(seed=seed)
        for i in rows.free:
            last = len(rows.values[i]) - 1
            axis = ConfigSpace.Integer(rows.names[i], (0, last)) if rows.ordered[i] else (
                ConfigSpace.Categorical(rows.names[i], list(range(last + 1))))
            self.space.add([axis])
        self.folder = tempfile.TemporaryDirectory()
        facade = smac.HyperparameterOptimizationFacade
        scenario = smac.Scenario(self.space, deterministic=True, n_trials=10**6, seed=seed,
                                 output_directory=self.folder.name)
        self.optimizer = facade(scenario, lambda config, seed=0: 0.0, logging_level=50, overwrite=True,
                                initial_design=facade.get_initial_design(scenario, n_configs=STARTUP),
                                config_selector=facade.get_config_selector(scenario, retries=self.retries))
        self.asked = None

    def ask(self):
        from smac.main.exceptions import ConfigurationSpaceExhaustedException

        try:
            self.asked = self.optimizer.ask()
        except (ConfigurationSpaceExhaustedException, StopIteration):
            return self.random.choice(list(self.left))
        config = self.asked.config
        return self.nearest(tuple(int(config.get(name, 0)) for name in self.rows.names))

    def tell(self, row, gain):
        super().tell(row, gain)
        index = self.rows.indices[row]
        config = self.configuration(self.space, {self.rows.names[i]: index[i] for i in self.rows.free})
        status = self.history.StatusType.SUCCESS if gain is not None else self.history.StatusType.CRASHED
        y = self.seen[-1][1] if gain is not None else self.worst()
        info = self.history.TrialInfo(config=config, seed=self.asked.seed, instance=self.asked.instance,
                                      budget=self.asked.budget)
        self.optimizer.tell(info, self.history.TrialValue(cost=-(y or 0.0), status=status), save=False)


TOOLS = {
    "Optuna TPE": Optuna,
    "Optuna TPE, failures imputed": OptunaImputed,
    "Optuna TPE, not told the rows": OptunaUntold,
    "Optuna GPSampler": OptunaGp,
    "BoTorch": Botorch,
    "BoTorch, P(success)": BotorchFeasible,
    "SMAC": Smac,
}
FAST = {"Optuna TPE", "Optuna TPE, failures imputed"}
