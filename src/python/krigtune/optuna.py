"""krigtune's search inside Optuna.

    import optuna
    from krigtune.optuna import KrigtuneSampler

    study = optuna.create_study(sampler=KrigtuneSampler(seed=1))
    study.optimize(objective, n_trials=50)

It needs Optuna 3.1 or newer, which this package does not install (`pip install krigtune[optuna]` does).
"""
from __future__ import annotations

import random
import threading
from typing import Any, Dict, List, Optional, Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from ._columns import Column, ColumnStudy, choice_column, number_column

_MOST_OBJECTIVES = 4


def _column(distribution: BaseDistribution) -> Column:
    if isinstance(distribution, FloatDistribution):
        return number_column(distribution.low, distribution.high, distribution.step, distribution.log, float)
    if isinstance(distribution, IntDistribution):
        return number_column(distribution.low, distribution.high, distribution.step, distribution.log, int)
    assert isinstance(distribution, CategoricalDistribution)
    return choice_column(distribution.choices)


class _Search:
    """A study of krigtune's over one search space of an Optuna study."""

    def __init__(self, space: Dict[str, BaseDistribution], directions: List[str], seed: int, strategy: Optional[str]) -> None:
        self.space = space
        self.names = [f"value_{i}" for i in range(len(directions))]
        self.asked: Dict[int, Any] = {}  # Optuna's id of a trial: what was proposed for it
        self.known: set[int] = set()  # ids of trials whose results are told
        columns = {name: _column(distribution) for name, distribution in space.items()}
        goals: Dict[str, Any] = {"direction": directions[0]}
        if len(directions) > 1:
            goals = {"objectives": [{"metric": name, "direction": one} for name, one in zip(self.names, directions)]}
        self.columns = ColumnStudy(columns, seed=seed, strategy=strategy, **goals)
        self.study = self.columns.study

    def ask(self, trial_id: int) -> Dict[str, Any]:
        """Returns values for all parameters, or none if krigtune has nothing left to propose."""
        asked = self.columns.ask()
        if asked is None:
            return {}
        self.asked[trial_id], values = asked
        return values

    def tell(self, trial: FrozenTrial, values: Optional[Sequence[float]]) -> None:
        """Records the result of a trial, whoever chose its parameters."""
        if trial._trial_id in self.known:
            return
        self.known.add(trial._trial_id)
        asked = self.asked.pop(trial._trial_id, None)
        outcome: Dict[str, Any] = dict(status="failed")
        if values is not None:
            outcome = dict(value=values[0] if len(self.names) == 1 else dict(zip(self.names, values)))
        chosen = self._configuration(trial)
        if asked is not None and chosen == self.columns.values_of(asked):
            self.study.tell(asked, **outcome)
            return
        if asked is not None:  # the objective took other values
            self.study.tell(asked, status="failed", reason="interrupted")
        if chosen is not None:
            seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
            self.columns.add(chosen, seconds=seconds, **outcome)

    def _configuration(self, trial: FrozenTrial) -> Optional[Dict[str, Any]]:
        if not all(name in trial.params and distribution._contains(distribution.to_internal_repr(trial.params[name]))
                   for name, distribution in self.space.items()):
            return None
        return {name: trial.params[name] for name in self.space}


def _values_of(trial: FrozenTrial, state: TrialState, values: Optional[Sequence[float]]) -> Optional[Sequence[float]]:
    """The results that count, one for each objective: of a pruned trial the last one that it reported; None if it failed."""
    if state == TrialState.COMPLETE:
        return values or None
    if state == TrialState.PRUNED and trial.intermediate_values:
        last = trial.intermediate_values[max(trial.intermediate_values)]
        return [last] if last == last else None
    return None


class KrigtuneSampler(optuna.samplers.BaseSampler):
    """Samples with krigtune's Gaussian process, failures and pruned trials included.

    seed: the same seed and results lead to the same samples; None: another one each time. strategy: "bayes" or "random".
    independent_sampler: samples the first trial, and parameters that not every trial has (default: at random).

    Trials that the study has already, that other samplers or workers chose, or that were enqueued, are learned from. A study
    may have up to four directions: then the search is for the front of all of them.
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
        if len(study.directions) > _MOST_OBJECTIVES:
            raise ValueError(f"KrigtuneSampler has at most {_MOST_OBJECTIVES} objectives; use another sampler for more")
        if not search_space:
            return {}
        with self._lock:
            search = self._search_for(study, search_space)
            for other in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)):
                search.tell(other, _values_of(other, other.state, other.values))
            return search.ask(trial._trial_id)

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, param_name: str,
                           param_distribution: BaseDistribution) -> Any:
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState,
                    values: Optional[Sequence[float]]) -> None:
        with self._lock:
            for search in self._searches:
                if trial._trial_id in search.asked:
                    search.tell(trial, _values_of(trial, state, values))
        self._independent.after_trial(study, trial, state, values)

    def _search_for(self, study: optuna.Study, space: Dict[str, BaseDistribution]) -> _Search:
        if not self._searches or self._searches[-1].space != space:
            directions = ["maximize" if one == optuna.study.StudyDirection.MAXIMIZE else "minimize" for one in study.directions]
            self._searches = [search for search in self._searches if search.asked]  # those with running trials
            self._searches.append(_Search(space, directions, self._seed, self._strategy))
        return self._searches[-1]
