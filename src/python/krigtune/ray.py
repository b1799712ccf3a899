"""krigtune's search inside Ray Tune.

    from ray import tune
    from krigtune.ray import KrigtuneSearch

    tuner = tune.Tuner(trainable, param_space={"lr": tune.loguniform(1e-5, 1e-1)},
                       tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=40, max_concurrent_trials=4,
                                                   search_alg=KrigtuneSearch(seed=1)))
    tuner.fit()

It needs Ray 2.40 or newer, which this package does not install (`pip install krigtune[ray]` does).
"""
from __future__ import annotations

import math
import os
import pathlib
import pickle
import random
import shutil
import tempfile
import threading
import weakref
from typing import Any, Dict, List, Mapping, Optional, Set, Union

from ray.tune.search import Searcher
from ray.tune.search.sample import Categorical, Float, Integer, LogUniform, Quantized, Uniform
from ray.tune.search.variant_generator import parse_spec_vars
from ray.tune.utils.util import flatten_dict, unflatten_dict  # type: ignore[attr-defined,unused-ignore]

from ._columns import Column, ColumnStudy, choice_column, number_column
from ._server import InputError
from ._study import Study, Trial

_SEPARATOR = "/"
_KEPT_FILES = ("session.json", "journal.log")  # of a run directory; the others follow from them


def _number_choices(choices: List[Any]) -> bool:
    return len(choices) > 1 and all(type(choice) in (int, float) for choice in choices) and sorted(set(choices)) == choices


def _column(name: str, domain: Any) -> Column:
    sampler = domain.get_sampler()
    step = None
    if isinstance(sampler, Quantized):
        step, sampler = sampler.q, sampler.sampler
    if isinstance(domain, Categorical) and isinstance(sampler, Uniform):
        choices = list(domain.categories)
        if _number_choices(choices):  # in ascending order: their order means something
            return Column(choices, lambda value: value, lambda value: choices[choices.index(value)])
        return choice_column(choices)
    if isinstance(domain, (Float, Integer)) and isinstance(sampler, (Uniform, LogUniform)):
        return _range_column(name, domain, isinstance(sampler, LogUniform), step)
    what = "sample_from" if domain.is_function() else type(sampler).__name__.strip("_").lower()
    raise InputError(f"the parameter '{name}' is {domain.domain_str} ({what}), which krigtune cannot search",
                     "use uniform, loguniform, randint, lograndint, their quantized forms, or choice")


def _range_column(name: str, domain: Union[Float, Integer], is_log: bool, step: Optional[float]) -> Column:
    low, high = domain.lower, domain.upper
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"the parameter '{name}' has no bounds", "give the lower and the upper bound")
    number: Any = int if isinstance(domain, Integer) else float
    if number is int:  # the upper bound is excluded, except from quantized ones
        high, step = (high - 1, 1) if step in (None, 1) else (high, step)
    if step is not None:  # the multiples of the step between the bounds
        tiny = 1e-9
        low, high = math.ceil(low / step - tiny) * step, math.floor(high / step + tiny) * step
        if high < low:
            raise InputError(f"the parameter '{name}' has no multiple of {step} between {domain.lower} and {domain.upper}", "widen it")
    return number_column(number(low), number(high), step, is_log, number)


def _columns(space: Mapping[str, Any]) -> Dict[str, Column]:
    """Turns Ray's search space, which may be nested, into columns; values that are no domains stay with Ray."""
    _, _, grids = parse_spec_vars(dict(space))
    _, domains, _ = parse_spec_vars(flatten_dict(dict(space), prevent_delimiter=True, delimiter=_SEPARATOR))
    if grids:
        raise InputError(f"the parameter '{_SEPARATOR.join(map(str, grids[0][0]))}' is a grid_search, which krigtune cannot search",
                         "write tune.choice(...) in its place")
    if not domains:
        raise InputError("the search space has nothing to search", "use tune.uniform(...) and others in param_space")
    return {name: _column(name, domain) for name, domain in ((_SEPARATOR.join(map(str, path)), one) for path, one in domains)}


class KrigtuneSearch(Searcher):  # type: ignore[misc,unused-ignore]
    """Searches with krigtune's Gaussian process. Trials that fail or end with NaN are learned from; so is the last result of those
    that a scheduler stopped, and what still runs is taken into account.

    space: Ray's search space, if it is not the Tuner's param_space.
    metric and mode: if TuneConfig does not say them; mode is "min" or "max".
    seed: the same seed and results lead to the same suggestions; None: another one each time. strategy: "bayes" or "random".
    points_to_evaluate: configurations to be tried first.
    directory: a run directory for the trials, which krigtune's commands read; None: a temporary one, which is saved with the
        experiment.

    Raises InputError for a space that it cannot search (grid_search, sample_from, randn). For one metric.
    """

    def __init__(self, space: Optional[Dict[str, Any]] = None, metric: Optional[str] = None, mode: Optional[str] = None, *,
                 seed: Optional[int] = None, strategy: Optional[str] = None, points_to_evaluate: Optional[List[Dict[str, Any]]] = None,
                 directory: Union[str, "os.PathLike[str]", None] = None) -> None:
        if isinstance(metric, (list, tuple)) or isinstance(mode, (list, tuple)):
            raise InputError("KrigtuneSearch has one metric", "use another searcher for several")
        super().__init__(metric=metric, mode=mode)
        self._space = dict(space) if space else None
        self._seed = random.randrange(2**31) if seed is None else seed
        self._strategy = strategy
        self._points = [flatten_dict(point, delimiter=_SEPARATOR) for point in points_to_evaluate or []]
        self._directory = None if directory is None else os.path.abspath(os.fspath(directory))
        self._lock = threading.RLock()
        self._search: Optional[ColumnStudy] = None
        self._saved: Dict[str, bytes] = {}  # files of the run directory with which the search goes on
        # Ray's id of a trial that runs: krigtune's trial, or the values that somebody else chose.
        self._asked: Dict[str, Union[Trial, Dict[str, Any]]] = {}
        self._told: Set[str] = set()  # Ray's ids of trials with a value

    def set_search_properties(self, metric: Optional[str], mode: Optional[str], config: Dict[str, Any], **spec: Any) -> bool:
        if self._space is not None:
            return False
        _columns(config)  # refuses what cannot be searched before anything runs
        self._space = config
        self._metric, self._mode = metric or self._metric, mode or self._mode
        return True

    def suggest(self, trial_id: str) -> Any:
        with self._lock:
            search = self._opened()
            if self._points:
                values = self._points.pop(0)
                unknown = set(search.columns) ^ set(values)
                if unknown:
                    raise InputError(f"points_to_evaluate: '{sorted(unknown)[0]}' is missing or not in the space", "give all parameters")
                self._asked[trial_id] = values
                return unflatten_dict(values, delimiter=_SEPARATOR)
            asked = search.ask()
            if asked is None:
                return Searcher.FINISHED
            self._asked[trial_id], values = asked
            return unflatten_dict(values, delimiter=_SEPARATOR)

    def on_trial_complete(self, trial_id: str, result: Optional[Dict[str, Any]] = None, error: bool = False) -> None:
        with self._lock:
            if trial_id in self._told:
                return
            outcome = _outcome(None if error or not self._metric else (result or {}).get(self._metric), error)
            asked = self._asked.pop(trial_id, None) or self._configuration(result)
            if "value" in outcome:
                self._told.add(trial_id)
            if isinstance(asked, Trial):
                self._opened().study.tell(asked, **outcome)
            elif asked:
                self._opened().add(asked, **outcome)

    def _configuration(self, result: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        """What a trial tried that this search did not suggest, or that Ray ran again; empty if that is not known."""
        flat = flatten_dict((result or {}).get("config") or {}, delimiter=_SEPARATOR)
        names = self._opened().columns
        return {name: flat[name] for name in names} if all(name in flat for name in names) else {}

    def add_evaluated_point(self, parameters: Dict[str, Any], value: float, error: bool = False, pruned: bool = False,
                            intermediate_values: Optional[List[float]] = None) -> None:
        with self._lock:
            search = self._opened()
            flat = flatten_dict(parameters, delimiter=_SEPARATOR)
            search.add({name: flat[name] for name in search.columns}, **_outcome(None if error else value, error))

    def _opened(self) -> ColumnStudy:
        if self._search is None:
            if self._space is None:
                raise InputError("KrigtuneSearch has no search space", "give the Tuner a param_space, or KrigtuneSearch a space")
            if not self._metric or not self._mode:
                raise InputError("KrigtuneSearch has no metric or no mode", "give TuneConfig a metric and a mode")
            options: Dict[str, Any] = dict(direction="maximize" if self._mode == "max" else "minimize", seed=self._seed,
                                           strategy=self._strategy)
            self._search = ColumnStudy(_columns(self._space), directory=self._restored_directory(), **options)
            if self._directory is None and self._saved:
                weakref.finalize(self, _discard, self._search.study, os.getpid())
        return self._search

    def _restored_directory(self) -> Optional[str]:
        """The given directory, or a new one with what was saved. What is there already is newer than what was saved."""
        if self._directory is None and not self._saved:
            return None
        folder = pathlib.Path(self._directory or tempfile.mkdtemp(prefix="krigtune-"))
        if self._saved and not (folder / "journal.log").exists():
            folder.mkdir(parents=True, exist_ok=True)
            for name, data in self._saved.items():
                (folder / name).write_bytes(data)
        return str(folder)

    def _files(self) -> Dict[str, bytes]:
        if self._search is None:
            return self._saved
        files = {name: self._search.study.directory / name for name in _KEPT_FILES}
        return {name: file.read_bytes() for name, file in files.items() if file.exists()}

    def __getstate__(self) -> Dict[str, Any]:  # a copy has a program of its own, and goes on from here
        with self._lock:
            return {**self.__dict__, "_lock": None, "_search": None, "_saved": self._files()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def save(self, checkpoint_path: str) -> None:
        with open(checkpoint_path, "wb") as file:
            pickle.dump(self.__getstate__(), file)

    def restore(self, checkpoint_path: str) -> None:
        with open(checkpoint_path, "rb") as file:
            self.__setstate__(pickle.load(file))


def _discard(study: Study, process_id: int) -> None:
    """Removes the directory that only a restored search had."""
    if os.getpid() == process_id:
        study.close()
        shutil.rmtree(study.directory, ignore_errors=True)


def _outcome(value: Optional[float], error: bool) -> Dict[str, Any]:
    if value is not None:
        return {"value": value}
    return {"status": "failed", "reason": "crash" if error else "interrupted"}
