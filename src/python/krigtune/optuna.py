"""krigtune's search inside Optuna.

    import optuna
    from krigtune.optuna import KrigtuneSampler

    study = optuna.create_study(sampler=KrigtuneSampler(seed=1))
    study.optimize(objective, n_trials=50)

It needs Optuna 3.1 or newer, which this package does not install (`pip install krigtune[optuna]` does).
"""
from __future__ import annotations

import random
import re
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from ._server import InputError
from ._study import Study

_MOST_LISTED = 1000
_MOST_IN_RANGE = 1_000_000
_MOST_LOG_STEPS = 128


class _Column:
    """A parameter of Optuna's as one of krigtune's, and its values there and back."""

    def __init__(self, values: Any, there: Callable[[Any], Any], back: Callable[[Any], Any]) -> None:
        self.values = values
        self.there = there
        self.back = back


def _number_column(low: float, high: float, step: Optional[float], is_log: bool, number: Callable[[float], Any]) -> _Column:
    if step is None:  # any number
        values = {"type": "real", "min": low, "max": high, **({"scale": "log"} if is_log else {})}
        return _Column(values, float, lambda value: min(max(float(value), low), high))
    count = int(round((high - low) / step)) + 1

    def nearest(value: float) -> Any:
        return number(low + step * min(max(round((value - low) / step), 0), count - 1))

    if is_log or count > _MOST_IN_RANGE:
        values = {"type": "real", "min": low, "max": high, **({"scale": "log"} if is_log else {})}
        if is_log and number is int:
            values = {"min": low, "max": high, "scale": "log", "steps": min(count, _MOST_LOG_STEPS)}
        return _Column(values, number, nearest)
    if step == 1 and number is int:
        return _Column({"min": low, "max": high}, int, nearest)
    if count <= _MOST_LISTED:
        return _Column([number(low + step * i) for i in range(count)], nearest, nearest)
    return _Column({"type": "real", "min": low, "max": high}, number, nearest)


def _choice_column(choices: Sequence[Any]) -> _Column:
    # Texts, because Optuna's choices have no order, and numbers would have one.
    names = [choice if isinstance(choice, str) else repr(choice) for choice in choices]
    if len(set(names)) < len(names) or "" in names:
        names = [f"{i}: {name}" for i, name in enumerate(names)]
    return _Column(names, lambda value: names[_index_of(choices, value)], lambda name: choices[names.index(name)])


def _index_of(choices: Sequence[Any], value: Any) -> int:
    return next(i for i, choice in enumerate(choices) if choice is value or (type(choice) is type(value) and choice == value))


def _column(distribution: BaseDistribution) -> _Column:
    if isinstance(distribution, FloatDistribution):
        return _number_column(distribution.low, distribution.high, distribution.step, distribution.log, float)
    if isinstance(distribution, IntDistribution):
        return _number_column(distribution.low, distribution.high, distribution.step, distribution.log, int)
    assert isinstance(distribution, CategoricalDistribution)
    return _choice_column(distribution.choices)


class _Search:
    """A study of krigtune's over one search space of an Optuna study."""

    def __init__(self, space: Dict[str, BaseDistribution], direction: str, seed: int, strategy: Optional[str]) -> None:
        self.space = space
        self.columns = {name: _column(distribution) for name, distribution in space.items()}
        self.asked: Dict[int, Any] = {}  # Optuna's id of a trial: what was proposed for it
        self.known: set[int] = set()  # ids of trials whose results are told
        options: Dict[str, Any] = dict(direction=direction, seed=seed, strategy=strategy)
        # Names that mean something else to krigtune, or that its expressions could not have, are replaced.
        self.names = {name: name for name in space}
        try:
            if any(not re.fullmatch(r"[A-Za-z_]\w*", name) for name in space):
                raise InputError("a name")
            self.study = Study({name: column.values for name, column in self.columns.items()}, **options)
        except InputError:
            self.names = {name: f"x{i}" for i, name in enumerate(space)}
            self.study = Study({self.names[name]: column.values for name, column in self.columns.items()}, **options)

    def ask(self, trial_id: int) -> Dict[str, Any]:
        """Returns values for all parameters, or none if krigtune has nothing left to propose."""
        asked = self.study.ask()
        if asked is None:
            return {}
        self.asked[trial_id] = asked
        return {name: column.back(asked[self.names[name]]) for name, column in self.columns.items()}

    def tell(self, trial: FrozenTrial, state: TrialState, value: Optional[float]) -> None:
        """Records the result of a trial, whoever chose its parameters."""
        if trial._trial_id in self.known:
            return
        self.known.add(trial._trial_id)
        asked = self.asked.pop(trial._trial_id, None)
        outcome: Dict[str, Any] = dict(value=value) if value is not None else dict(status="failed")
        chosen = self._configuration(trial)
        if asked is not None and chosen == {name: self._as_told(name, asked) for name in self.columns}:
            self.study.tell(asked, **outcome)
            return
        if asked is not None:  # the objective took other values
            self.study.tell(asked, status="failed", reason="interrupted")
        if chosen is not None:
            seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
            self.study.add({self.names[name]: self.columns[name].there(value) for name, value in chosen.items()},
                           seconds=seconds, **outcome)

    def _as_told(self, name: str, asked: Any) -> Any:
        return self.columns[name].back(asked[self.names[name]])

    def _configuration(self, trial: FrozenTrial) -> Optional[Dict[str, Any]]:
        if not all(name in trial.params and distribution._contains(distribution.to_internal_repr(trial.params[name]))
                   for name, distribution in self.space.items()):
            return None
        return {name: trial.params[name] for name in self.space}


def _value_of(trial: FrozenTrial, state: TrialState, values: Optional[Sequence[float]]) -> Optional[float]:
    """The result that counts: of a pruned trial the last one that it reported; None if it failed."""
    if state == TrialState.COMPLETE:
        return values[0] if values else None
    if state == TrialState.PRUNED and trial.intermediate_values:
        last = trial.intermediate_values[max(trial.intermediate_values)]
        return last if last == last else None
    return None


class KrigtuneSampler(optuna.samplers.BaseSampler):
    """Samples with krigtune's Gaussian process, failures and pruned trials included.

    seed: the same seed and results lead to the same samples; None: another one each time. strategy: "bayes" or "random".
    independent_sampler: samples the first trial, and parameters that not every trial has (default: at random).

    Trials that the study has already, that other samplers or workers chose, or that were enqueued, are learned from. For studies
    with one objective.
    """

    def __init__(self, seed: Optional[int] = None, *, strategy: Optional[str] = None,
                 independent_sampler: Optional[optuna.samplers.BaseSampler] = None) -> None:
        self._seed = random.randrange(2**31) if seed is None else seed
        self._strategy = strategy
        self._independent = independent_sampler or optuna.samplers.RandomSampler(seed=self._seed)
        # Where it is changed with Optuna 3.2.
        self._common = getattr(optuna, "search_space", optuna.samplers).IntersectionSearchSpace()
        self._lock = threading.Lock()
        self._searches: List[_Search] = []  # the newest is the last

    def __getstate__(self) -> Dict[str, Any]:  # a copy begins with its own programs
        return {**self.__dict__, "_lock": None, "_searches": []}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Dict[str, BaseDistribution]:
        space = self._common.calculate(study)
        return {name: distribution for name, distribution in sorted(space.items()) if not distribution.single()}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial,
                        search_space: Dict[str, BaseDistribution]) -> Dict[str, Any]:
        if len(study.directions) > 1:
            raise ValueError("KrigtuneSampler has one objective; use another sampler for several")
        if not search_space:
            return {}
        with self._lock:
            search = self._search_for(study, search_space)
            for other in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)):
                search.tell(other, other.state, _value_of(other, other.state, other.values))
            return search.ask(trial._trial_id)

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str,
                           param_distribution: BaseDistribution) -> Any:
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState,
                    values: Optional[Sequence[float]]) -> None:
        with self._lock:
            for search in self._searches:
                if trial._trial_id in search.asked:
                    search.tell(trial, state, _value_of(trial, state, values))
        self._independent.after_trial(study, trial, state, values)

    def _search_for(self, study: optuna.Study, space: Dict[str, BaseDistribution]) -> _Search:
        if not self._searches or self._searches[-1].space != space:
            direction = "maximize" if study.direction == optuna.study.StudyDirection.MAXIMIZE else "minimize"
            self._searches = [search for search in self._searches if search.asked]  # those with running trials
            self._searches.append(_Search(space, direction, self._seed, self._strategy))
        return self._searches[-1]
