"""The space of a search in Python's own terms."""
from __future__ import annotations

import math
import os
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Union

from ._server import InputError


class Parameter(NamedTuple):
    """A range of numbers. Make one with `real`, `log` or `integer`."""

    low: float
    high: float
    is_real: bool
    scale: Optional[str] = None
    steps: Optional[int] = None
    when: Optional[str] = None

    def to_json(self) -> Dict[str, Any]:
        """Returns the parameter as a session writes it."""
        json: Dict[str, Any] = {"type": "real"} if self.is_real else {}
        json.update(min=plain(self.low), max=plain(self.high))
        json.update({key: value for key, value in (("scale", self.scale), ("steps", self.steps), ("when", self.when)) if value})
        return json


def real(low: float, high: float, *, steps: Optional[int] = None, when: Optional[str] = None) -> Parameter:
    """Any number from `low` to `high`, both included; with `steps` one of so many, evenly spaced.

    `when`: the parameter exists only where this expression over other parameters is true, such as "optimizer == 'sgd'".
    """
    return Parameter(low, high, True, None, steps, when)


def log(low: float, high: float, *, steps: Optional[int] = None, when: Optional[str] = None) -> Parameter:
    """A positive number whose logarithm is searched evenly, such as a learning rate; `steps` and `when` as for `real`."""
    return Parameter(low, high, True, "log", steps, when)


def integer(low: int, high: int, *, scale: Optional[str] = None, steps: Optional[int] = None,
            when: Optional[str] = None) -> Parameter:
    """A whole number from `low` to `high`, both included.

    `scale`: "log2" for the powers of two among them, or "log" with `steps` for so many values that are spaced evenly by their
    logarithms. `when` as for `real`.
    """
    return Parameter(low, high, False, scale, steps, when)


# The values of one parameter: a range, a list of numbers, texts or truth values, or what a session file would say.
Values = Union[Parameter, Sequence[Any], Mapping[str, Any]]
Space = Mapping[str, Values]
# A session file, its contents, or a space.
Session = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def plain(value: Any) -> Any:
    """Returns a value as JSON has it; NumPy's scalars become Python's."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{value!r} is not a finite number", "leave it out, or name a finite one")
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    raise InputError(f"{value!r} is neither a number, a text nor a truth value", "use names, and look them up in your function")


def plain_configuration(configuration: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns a configuration as JSON has it."""
    return {name: plain(value) for name, value in configuration.items()}


def _values_json(name: str, values: Values) -> Any:
    if isinstance(values, Parameter):
        return values.to_json()
    if isinstance(values, Mapping):
        return dict(values)
    if isinstance(values, (set, frozenset)):
        raise InputError(f"the parameter '{name}' has a set, whose values have no order", "write a list")
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InputError(f"the parameter '{name}' has the values {values!r}",
                         "write a list, or krigtune.real, krigtune.log or krigtune.integer")
    return [plain(value) for value in values]


def is_session(given: Union[Space, Session]) -> bool:
    """Whether it is a session, or its file, and not a space. Raises InputError if it is neither."""
    if isinstance(given, (str, os.PathLike)):
        return True
    if not isinstance(given, Mapping):
        raise InputError(f"{given!r} is neither a space nor a session", 'write a dict such as {"x": krigtune.real(0, 1)}, or name a file')
    space = given.get("space")
    return isinstance(space, Mapping) and not {"min", "max", "values"} & set(space)


def _objective_json(objective: Any) -> Dict[str, Any]:
    if not isinstance(objective, Mapping):
        raise InputError(f"the objective {objective!r} is not a dict", 'write {"metric": "throughput", "direction": "maximize"}')
    return {key: plain(value) for key, value in objective.items()}


def session_json(given: Union[Space, Session], *, direction: Optional[str] = None, metric: Optional[str] = None,
                 baseline: Optional[Mapping[str, Any]] = None, constraints: Sequence[str] = (),
                 objectives: Optional[Sequence[Mapping[str, Any]]] = None, prefer: Optional[str] = None) -> Any:
    """Returns what the program takes for a session: the path of its file, or its contents.

    The other arguments complete a space, and may not be given with a session, which says them itself.
    """
    if is_session(given):
        if direction or metric or baseline or constraints or objectives is not None or prefer:
            raise InputError("a session has its own objectives, baseline and constraints", "leave direction, metric, objectives, "
                             "prefer, baseline and constraints out, or give a space instead of a session")
        if not isinstance(given, Mapping):
            return os.path.abspath(os.fspath(given))
        contents: Mapping[str, Any] = given
        return {**contents, "space": {name: _values_json(name, values) for name, values in contents["space"].items()}}
    assert isinstance(given, Mapping)
    if objectives is None and prefer:
        raise InputError("prefer chooses among the configurations of several objectives", "give objectives, or leave it out")
    if objectives is not None and (direction or metric):
        raise InputError("direction and metric belong to one objective", "write them into objectives")
    goals: Dict[str, Any] = {"objective": {"metric": metric or "value", "direction": direction or "minimize"}}
    if objectives is not None:
        goals = {"objectives": [_objective_json(one) for one in objectives], **({"prefer": prefer} if prefer else {})}
    return {
        "space": {name: _values_json(name, values) for name, values in given.items()},
        "constraints": [constraints] if isinstance(constraints, str) else list(constraints),
        "baseline": None if baseline is None else plain_configuration(baseline),
        **goals,
        "runner": {"kind": "none"},
    }
