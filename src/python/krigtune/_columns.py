"""Parameters of another program (Optuna, Ray Tune) as those of a study, and their values there and back."""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from ._server import InputError
from ._study import Study, Trial

_MOST_LISTED = 1000
_MOST_IN_RANGE = 1_000_000
_MOST_LOG_STEPS = 128


class Column:
    """A parameter of another program as one of krigtune's."""

    def __init__(self, values: Any, there: Callable[[Any], Any], back: Callable[[Any], Any]) -> None:
        self.values = values
        self.there = there  #: turns its value into krigtune's
        self.back = back


def number_column(low: float, high: float, step: Optional[float], is_log: bool, number: Callable[[float], Any]) -> Column:
    """Numbers from `low` to `high`, with a step those at low, low + step, ...; `number` is float or int."""
    if step is None:  # any number
        values = {"type": "real", "min": low, "max": high, **({"scale": "log"} if is_log else {})}
        return Column(values, float, lambda value: min(max(float(value), low), high))
    count = int(round((high - low) / step)) + 1

    def nearest(value: float) -> Any:
        return number(low + step * min(max(round((value - low) / step), 0), count - 1))

    if is_log or count > _MOST_IN_RANGE:
        values = {"type": "real", "min": low, "max": high, **({"scale": "log"} if is_log else {})}
        if is_log and number is int:
            values = {"min": low, "max": high, "scale": "log", "steps": min(count, _MOST_LOG_STEPS)}
        return Column(values, number, nearest)
    if step == 1 and number is int:
        return Column({"min": low, "max": high}, int, nearest)
    if count <= _MOST_LISTED:
        return Column([number(low + step * i) for i in range(count)], nearest, nearest)
    return Column({"type": "real", "min": low, "max": high}, number, nearest)


def choice_column(choices: Sequence[Any]) -> Column:
    """Values without an order: krigtune sees texts, because numbers would have one."""
    names = [choice if isinstance(choice, str) else repr(choice) for choice in choices]
    if len(set(names)) < len(names) or "" in names:
        names = [f"{i}: {name}" for i, name in enumerate(names)]
    return Column(names, lambda value: names[_index_of(choices, value)], lambda name: choices[names.index(name)])


def _index_of(choices: Sequence[Any], value: Any) -> int:
    return next(i for i, choice in enumerate(choices) if choice is value or (type(choice) is type(value) and choice == value))


class ColumnStudy:
    """A study over columns. `options` are those of Study.

    Names that mean something else to krigtune, or that its expressions could not have, are replaced.
    """

    def __init__(self, columns: Mapping[str, Column], **options: Any) -> None:
        self.columns = columns
        self.names = {name: name for name in columns}
        refusal: Optional[InputError] = None
        if all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in columns):
            try:
                self.study = self._made(options)
                return
            except InputError as error:
                refusal = error
        self.names = {name: f"x{i}" for i, name in enumerate(columns)}
        try:
            self.study = self._made(options)
        except InputError as error:
            raise refusal or error from None

    def _made(self, options: Mapping[str, Any]) -> Study:
        return Study({self.names[name]: column.values for name, column in self.columns.items()}, **options)

    def ask(self) -> Optional[Tuple[Trial, Dict[str, Any]]]:
        """Returns a trial and its values for the other program, or None if nothing is left to propose."""
        trial = self.study.ask()
        return None if trial is None else (trial, self.values_of(trial))

    def values_of(self, trial: Trial) -> Dict[str, Any]:
        return {name: column.back(trial[self.names[name]]) for name, column in self.columns.items()}

    def add(self, values: Mapping[str, Any], **outcome: Any) -> None:
        """Records what the other program chose itself; as Study.add."""
        self.study.add({self.names[name]: self.columns[name].there(value) for name, value in values.items()}, **outcome)
