"""Studies: a search, its trials, and loops that run them."""
from __future__ import annotations

import dataclasses
import html
import math
import operator
import os
import pathlib
import sys
import threading
import traceback
import warnings
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union, overload

from ._server import Error, InputError, Server
from ._space import Session, Space, is_session, plain, plain_configuration, session_json

_MOST_CHARACTERS = 4000  # of the last lines of a trial that failed

Configuration = Dict[str, Any]
# A number in the objective's unit, or numbers by name: "value", and "value_sem", "peak_memory_bytes" or any others.
Result = Union[float, Mapping[str, float]]
Function = Callable[[Configuration], Result]


@dataclasses.dataclass(frozen=True)
class Trial:
    """A configuration to be measured. `trial["lr"]` is a value of it."""

    number: int
    configuration: Configuration
    predicted_value: Optional[float] = None  #: in the objective's unit; None: nothing is predicted
    predicted_memory_bytes: Optional[int] = None  #: of the rank that needs most; None: not predicted

    def __getitem__(self, name: str) -> Any:
        return self.configuration[name]


@dataclasses.dataclass(frozen=True)
class Best:
    """The configuration to use: the one with the best mean by the model of all trials, among those that were measured."""

    trial: int  #: its best trial
    configuration: Configuration
    value: float  #: mean of its measurements, in the objective's unit
    lower_95: Optional[float]  #: 95 % interval of its true value, by the model
    upper_95: Optional[float]
    gain: Optional[float]  #: how many times better than the reference, the baseline or the first trial that succeeded


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    """Whether an exception, or the one that caused it, says that memory ran out: MemoryError, and those of torch, CuPy and JAX.

    None of these packages is imported for it.
    """
    while error is not None:
        names = {kind.__name__ for kind in type(error).__mro__}
        if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
            return True
        text = str(error)
        if names & {"RuntimeError", "XlaRuntimeError"} and ("out of memory" in text or "RESOURCE_EXHAUSTED" in text):
            return True
        error = error.__cause__
    return False


def _number(value: Any) -> float:
    """Returns a number, or the only one of an array or a tensor."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except TypeError:
        if not hasattr(value, "item"):
            raise
        return float(value.item())


def _number_of(trial: Any) -> int:
    if isinstance(trial, Trial):
        return trial.number
    if isinstance(trial, bool) or not hasattr(trial, "__index__"):
        raise InputError(f"{trial!r} is no trial", "give what ask() returned, or its number")
    return operator.index(trial)


def _free_gpu_memory() -> None:
    """Gives back what torch keeps of a failed trial, so that the next one has all of the memory."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


class Study:
    """A search in a run directory. Its functions may be called from several threads.

        with krigtune.Study({"lr": krigtune.log(1e-5, 1e-2)}, directory="runs/lr") as study:
            while trial := study.ask():
                study.tell(trial, train(lr=trial["lr"]))

    space: parameters by name (a list, `real`, `log` or `integer`), the path of a session file, or the contents of one. None: what
        the directory was begun with.
    directory: where the trials are recorded. If it has a study of the same space, that one goes on. None: a temporary directory,
        which is removed when the study is closed.
    direction: "minimize" (the default) or "maximize". A session says this itself, and so it does metric, baseline and constraints.
    metric: the name of what is measured ("value").
    objectives: instead of direction and metric, two to four dicts with "metric", "direction" and perhaps "limit".
    prefer: which configuration of their front is the best, such as "throughput >= 0.95 best" (default: the best by the first).
    baseline: the configuration to be tried first, to which gains are relative.
    constraints: expressions over the parameters, such as "batch * length <= 4096".
    seed: the same seed and results lead to the same configurations.
    strategy: "bayes", "random", "grid" or "stagewise".
    warm_start: directories of earlier runs to learn from.

    Raises InputError for a wrong space or a directory of another study, ProgramError if the program cannot be started.
    """

    def __init__(self, space: Union[Space, Session, None] = None, directory: Union[str, "os.PathLike[str]", None] = None, *,
                 direction: Optional[str] = None, metric: Optional[str] = None, baseline: Optional[Mapping[str, Any]] = None,
                 constraints: Sequence[str] = (), seed: Optional[int] = None, strategy: Optional[str] = None,
                 warm_start: Iterable[Union[str, "os.PathLike[str]"]] = (),
                 objectives: Optional[Sequence[Mapping[str, Any]]] = None, prefer: Optional[str] = None) -> None:
        if space is None and directory is None:
            raise InputError("a study without a space and a directory", "give one of them")
        session = None
        if space is not None:
            session = session_json(space, direction=direction, metric=metric, baseline=baseline, constraints=constraints,
                                   objectives=objectives, prefer=prefer)
        self._lock = threading.Lock()
        self._server = Server(temporary=directory is None)
        self.directory = pathlib.Path(self._server.folder or directory or "").absolute()
        runs = [warm_start] if isinstance(warm_start, (str, os.PathLike)) else warm_start
        self._open = dict(directory=str(self.directory), session=session, seed=plain(seed), strategy=strategy,
                          warm_start=[os.path.abspath(os.fspath(run)) for run in runs] or None)
        try:
            answer = self._server.call("open", **self._open)
        except BaseException:
            self.close()
            raise
        self.metric: str = answer["metric"]
        self.direction: str = answer["direction"]
        #: the metrics of all objectives, the first one first
        self.metrics: List[str] = [one["metric"] for one in answer.get("objectives", [answer])]
        self.parameters: Dict[str, Any] = answer["parameters"]
        for text in [answer["change"], *answer["warnings"]]:
            if text:
                warnings.warn(text, stacklevel=2)

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program, which brings the files of the directory up to date. Calling it again does nothing."""
        self._server.close()

    def _call(self, method: str, **params: Any) -> Any:
        with self._lock:
            if self._server.process_id != os.getpid():  # this process is a fork: it needs a program of its own
                self._server = Server()
                self._server.call("open", **{**self._open, "session": None})
            server = self._server
        return server.call(method, **params)

    @overload
    def ask(self) -> Optional[Trial]: ...

    @overload
    def ask(self, count: int) -> List[Trial]: ...

    def ask(self, count: Optional[int] = None) -> Union[Optional[Trial], List[Trial]]:
        """Returns the next trial, or None if nothing is left to propose; with `count`, a list of at most so many."""
        trials = [Trial(one["trial"], one["configuration"], one["predicted_value"], one["predicted_memory_bytes"])
                  for one in self._call("ask", count=count)["trials"]]
        if count is not None:
            return trials
        return trials[0] if trials else None

    def tell(self, trial: Union[Trial, int], value: Optional[Result] = None, *, status: Optional[str] = None,
             reason: Optional[str] = None, message: Optional[str] = None) -> Dict[str, Any]:
        """Records the result of a trial; when it returns, the result is on the disk.

        value: a number in the objective's unit, or a dict with it as "value" or under the metric's name, and any of "value_sem" (its
            standard error), "peak_memory_bytes", and further numbers, which become metrics (every objective among them). NaN and
            infinity are failures.
        status: "ok" (the default with a value), "oom" or "failed". reason: why it failed, such as "timeout"; "interrupted": its
            configuration may be proposed again. message: the last lines of what it said.

        Returns what is known of the trial then: "value", "gain", "status", ... Raises InputError if it has a result already.
        """
        told: Dict[str, Any] = self._call("tell", trial=_number_of(trial), **self._outcome(value, status, reason, message))
        return told

    def add(self, configuration: Mapping[str, Any], value: Optional[Result] = None, *, status: Optional[str] = None,
            reason: Optional[str] = None, message: Optional[str] = None, seconds: float = 0.0) -> Dict[str, Any]:
        """Records a configuration that you chose and measured yourself; `seconds` is how long that took. Else as `tell`."""
        told: Dict[str, Any] = self._call("tell", configuration=self._complete(configuration), wall_s=seconds,
                                          **self._outcome(value, status, reason, message))
        return told

    def _complete(self, configuration: Mapping[str, Any]) -> Configuration:
        """Returns a configuration as JSON has it. A parameter that exists always must be in it."""
        for name, values in self.parameters.items():
            if name not in configuration and not (isinstance(values, dict) and "when" in values):
                raise InputError(f"the configuration {dict(configuration)!r} has no '{name}'", "give all parameters")
        return plain_configuration(configuration)

    def tell_error(self, trial: Union[Trial, int], error: BaseException) -> Dict[str, Any]:
        """Records that a trial ended with an exception: out of memory, interrupted (KeyboardInterrupt, SystemExit) or failed."""
        if is_out_of_memory(error):
            return self.tell(trial, status="oom")
        reason = "crash" if isinstance(error, Exception) else "interrupted"
        lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return self.tell(trial, status="failed", reason=reason, message=lines)

    def _outcome(self, value: Optional[Result], status: Optional[str], reason: Optional[str],
                 message: Optional[str]) -> Dict[str, Any]:
        told: Dict[str, Any] = {"status": status, "reason": reason, "message": message and message[-_MOST_CHARACTERS:]}
        if value is None:
            return told
        numbers = dict(value) if isinstance(value, Mapping) else {"value": value}
        if self.metric in numbers:
            numbers["value"] = numbers.pop(self.metric)
        try:
            numbers = {name: _number(number) for name, number in numbers.items()}
        except (TypeError, ValueError):
            raise InputError(f"the result {value!r} is not a number", f"return a number, or a dict with '{self.metric}'") from None
        if "value" not in numbers and status in (None, "ok"):
            raise InputError(f"the result {value!r} has no '{self.metric}'", "return a number, or a dict with it")
        missing = [name for name in self.metrics[1:] if name not in numbers]
        if missing and status in (None, "ok"):
            raise InputError(f"the result {value!r} has no '{missing[0]}'", f"return a dict with {', '.join(self.metrics)}")
        if not all(math.isfinite(number) for number in numbers.values()):
            return {"status": "failed", "reason": "bad_result", "message": f"the result is {value!r}"}
        for name in ("value", "value_sem", "peak_memory_bytes"):
            told[name] = numbers.pop(name, None)
        return {**told, "metrics": numbers or None}

    @property
    def best(self) -> Optional[Best]:
        """The configuration to use; None while no trial has succeeded. It fits the model if a trial was told since."""
        json = self._call("best")
        if json is None:
            return None
        return Best(json["trial"], json["configuration"], json["value"], json["posterior"]["lower_95"],
                    json["posterior"]["upper_95"], json["gain"])

    @property
    def front(self) -> List[Dict[str, Any]]:
        """With several objectives those not beaten in all: a dict each with "trial", "configuration", "measurements", "values"."""
        json = self._call("best")
        front: List[Dict[str, Any]] = [] if json is None else json.get("front", [])
        return front

    @property
    def trials(self) -> List[Dict[str, Any]]:
        """All trials, a dict each: "trial", "status" ("ok", "oom", "failed", "running"), "configuration", "value", "metrics", ..."""
        trials: List[Dict[str, Any]] = self._call("trials")["trials"]
        return trials

    def to_dataframe(self) -> Any:
        """Returns the trials as a pandas.DataFrame, a row each, with a column for each parameter and metric. Needs pandas."""
        import pandas  # type: ignore[import-untyped,unused-ignore]

        rows = []
        for trial in self.trials:
            metrics = {f"metric_{name}": number for name, number in trial.pop("metrics").items() if name != self.metric}
            rows.append({**trial, **trial.pop("configuration"), **metrics})
        return pandas.DataFrame(rows).drop(columns="configuration", errors="ignore")

    @overload
    def predict(self, configurations: Mapping[str, Any]) -> Dict[str, Any]: ...

    @overload
    def predict(self, configurations: Iterable[Mapping[str, Any]]) -> List[Dict[str, Any]]: ...

    def predict(self, configurations: Any) -> Any:
        """Returns what the model expects of a configuration, or of each of several, in the objective's unit.

        A dict each: "median", "lower_95" and "upper_95" of the noise-free value, "stddev" (half the 68 % interval),
        "probability_feasible", "others" (further objectives). None: nothing is predicted, because no trial has succeeded.
        """
        single = isinstance(configurations, Mapping)
        wanted = [self._complete(one) for one in ([configurations] if single else configurations)]
        rows = self._call("predict", configurations=wanted)["predictions"]
        return rows[0] if single else rows

    def report(self, file: Union[str, "os.PathLike[str]", None] = None) -> pathlib.Path:
        """Writes the report, one HTML page, to `file` or to report.html in the directory, and returns its path."""
        return pathlib.Path(self._call("report", file=None if file is None else os.path.abspath(os.fspath(file)))["file"])

    def _repr_html_(self) -> str:
        """The report, as notebooks show it."""
        try:
            page = self.report().read_text(encoding="utf-8")
        except Error as error:
            return f"<p>{html.escape(str(error))}</p>"
        return f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: 40em; border: 0"></iframe>'

    def run(self, function: Function, trials: int = 30, *, jobs: int = 1, catch: Tuple[Type[BaseException], ...] = (Exception,),
            progress: Optional[bool] = None, shared: bool = False) -> "Study":
        """Measures `function(configuration)` until the directory has `trials` closed trials, and returns the study.

        An exception in `catch` is a failed trial, or one out of memory, from which the search learns; others end the loop.
        jobs: how many threads run trials at the same time. progress: a line for each trial on stderr (default: on a terminal).
        shared: other processes run trials in the same directory now. Otherwise trials that an earlier process left without a
            result are run first.
        """
        _Loop(self, function, trials, catch, sys.stderr.isatty() if progress is None else progress, shared).run(jobs)
        return self


class _Loop:
    """Runs the trials of one call of `Study.run`."""

    def __init__(self, study: Study, function: Function, trials: int, catch: Tuple[Type[BaseException], ...], progress: bool,
                 shared: bool) -> None:
        if not callable(function):
            raise InputError(f"{function!r} is no function", "give a function of a configuration, which is a dict")
        self._study = study
        self._function = function
        self._catch = catch
        self._progress = progress
        self._lock = threading.Lock()
        self._error: Optional[BaseException] = None
        self._failed = 0
        self._last_failure = ""
        known = study.trials
        self._waiting = [] if shared else [Trial(one["trial"], one["configuration"]) for one in known if one["status"] == "running"]
        closed = [one for one in known if one["status"] not in ("running", "waiting") and one["reason"] != "interrupted"]
        self._left = max(trials - len(closed), 0)
        values = [one["value"] for one in closed if one["value"] is not None]
        self._best = None if not values else (max if study.direction == "maximize" else min)(values)

    def run(self, jobs: int) -> None:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs - 1)]
        for thread in threads:
            thread.start()
        self._work()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:  # such as Ctrl-C: the threads end with the trials that they run now
            self._end(error)
        if self._error is not None:
            raise self._error
        if self._failed > 0 and self._best is None:
            warnings.warn(f"no trial has succeeded; the last of {self._failed} that failed: {self._last_failure}", stacklevel=3)

    def _end(self, error: BaseException) -> None:
        """Lets all threads end. The first error is raised in run()."""
        with self._lock:
            self._error = self._error or error

    def _work(self) -> None:
        try:
            while True:
                with self._lock:
                    if self._left == 0 or self._error is not None:
                        return
                    self._left -= 1
                    trial = self._waiting.pop(0) if self._waiting else None
                trial = trial or self._study.ask()
                if trial is None:
                    return
                self._measure(trial)
        except BaseException as error:
            self._end(error)

    def _measure(self, trial: Trial) -> None:
        ran_out = False
        try:
            told = self._study.tell(trial, self._function(dict(trial.configuration)))
            self._last_failure = "its result is not finite"
        except Error:
            raise
        except BaseException as error:
            told = self._study.tell_error(trial, error)
            if not isinstance(error, self._catch):
                raise
            ran_out = told["status"] == "oom"
            self._last_failure = traceback.format_exception_only(type(error), error)[-1].strip()
        if ran_out:  # here the exception, which refers to what the function had, is gone
            _free_gpu_memory()
        self._show(told)

    def _show(self, told: Mapping[str, Any]) -> None:
        with self._lock:
            value = told["value"]
            if value is not None:
                better = max if self._study.direction == "maximize" else min
                self._best = value if self._best is None else better(self._best, value)
            else:
                self._failed += 1
            if self._progress:
                what = f"{value:g}" if value is not None else told["status"]
                print(f"trial {told['trial']}: {what}" + ("" if self._best is None else f"  best {self._best:g}"), file=sys.stderr)


def minimize(function: Function, space: Union[Space, Session], trials: int = 30,
             directory: Union[str, "os.PathLike[str]", None] = None, *, jobs: int = 1, progress: Optional[bool] = None,
             catch: Tuple[Type[BaseException], ...] = (Exception,), **options: Any) -> Study:
    """Looks for the configuration with the smallest `function(configuration)`, and returns the study.

    With a directory, the same call again goes on where the last one ended: `trials` counts all of the directory. `options` are
    those of `Study`, the others those of `Study.run`.
    """
    return _optimize("minimize", function, space, trials, directory, jobs, progress, catch, options)


def maximize(function: Function, space: Union[Space, Session], trials: int = 30,
             directory: Union[str, "os.PathLike[str]", None] = None, *, jobs: int = 1, progress: Optional[bool] = None,
             catch: Tuple[Type[BaseException], ...] = (Exception,), **options: Any) -> Study:
    """Looks for the configuration with the largest `function(configuration)`; otherwise the same as `minimize`."""
    return _optimize("maximize", function, space, trials, directory, jobs, progress, catch, options)


def _optimize(direction: str, function: Function, space: Union[Space, Session], trials: int,
              directory: Union[str, "os.PathLike[str]", None], jobs: int, progress: Optional[bool],
              catch: Tuple[Type[BaseException], ...], options: Dict[str, Any]) -> Study:
    if options.get("objectives") is not None:
        raise InputError(f"krigtune.{direction} has one objective", "call krigtune.Study(space, objectives=[...]).run(function)")
    study = Study(space, directory, direction=None if space is None or is_session(space) else direction, **options)
    try:
        if len(study.metrics) > 1:
            raise InputError(f"the study has {len(study.metrics)} objectives", "call krigtune.Study(...).run(function)")
        if study.direction != direction:
            raise InputError(f"the session's objective is to {study.direction}", f"call krigtune.{study.direction}")
        return study.run(function, trials, jobs=jobs, catch=catch, progress=progress)
    except BaseException:
        study.close()
        raise


def plan(session: Session) -> List[Dict[str, Any]]:
    """Predicts every configuration of a session (a file, or its contents) without running anything.

    A dict each: the parameters, "predicted_value" (in the objective's unit), "predicted_step_time_s", "predicted_memory_bytes" (of
    one rank), "memory_verdict" ("fits", "uncertain" or "too_large"), "probability_fits", "bottleneck", ...; None is not predicted.
    Raises InputError for a wrong session, and for more than 100,000 configurations.
    """
    server = Server()
    try:
        rows = server.call("plan", session=session_json(session), rows=True)["rows"]
    finally:
        server.close()
    return [{**row.pop("configuration"), **row} for row in rows]
