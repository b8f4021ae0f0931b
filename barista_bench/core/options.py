"""Options of a task: declared by the task, checked here, recorded with every run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from barista_bench.errors import ConfigError

OptionValue: TypeAlias = "bool | int | float | str | None"
MAX_TEXT = 1000
"""Characters of a textual value."""
MAX_NUMBER = 2**63
"""Numbers are smaller than this on both sides of 0: what `run.json` can hold."""


@dataclass(frozen=True, slots=True)
class Option:
    """One choice.

    Args:
        default: the value where none is given; its type is the option's type. None: off, and `kind` is the type.
        help: one line for users.
        changes: what depends on it: the examples of a set, which then say so; the whole run on any set; the prompt; or
            scores. Those that change scores alone may be changed whenever a run is scored; the others belong to the
            run, and a run folder keeps them.
        choices: the values allowed; empty for any.
        low: least number.
        high: greatest number.
        kind: type of the value, where the default is None.
    """

    default: OptionValue
    help: str
    changes: Literal["examples", "run", "prompt", "scores"]
    choices: tuple[OptionValue, ...] = ()
    low: float | None = None
    high: float | None = None
    kind: type[bool | int | float | str] | None = None

    def checked(self, name: str, value: object) -> OptionValue:
        """The value, if the option takes it.

        Raises:
            ConfigError: it does not; names the option.
        """
        if value is None and self.default is None:
            return None
        kind = self.kind or type(self.default)
        if kind is float and type(value) is int and abs(value) < MAX_NUMBER:
            value = float(value)
        remedy = f"Remedy: give {self._wanted(kind)}: {self.help}"
        if type(value) is not kind or not isinstance(value, bool | int | float | str):
            raise ConfigError(f"option {name} is {shown(value)}. {remedy}")
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise ConfigError(f"option {name} has more than {MAX_TEXT} characters. {remedy}")
        is_a_choice = not self.choices or value in self.choices
        if not is_a_choice or (isinstance(value, int | float) and not self._is_in_range(value)):
            raise ConfigError(f"option {name} is {shown(value)}. {remedy}")
        return value

    def _is_in_range(self, value: float) -> bool:
        """Whether a number can be recorded, and lies in the option's range."""
        if not math.isfinite(value) if isinstance(value, float) else abs(value) >= MAX_NUMBER:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def _wanted(self, kind: type) -> str:
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
        limits = [f"{word} {value:g}" for word, value in (("from", self.low), ("to", self.high)) if value is not None]
        return " ".join([names[kind], *limits])


def shown(value: object) -> str:
    """A value as messages show it."""
    if type(value) is int and abs(value) >= MAX_NUMBER:  # Python writes out no integer of more than 4300 digits
        return "a number that is too large"
    return f"{value!r}"[:100] if isinstance(value, bool | int | float | str) else f"a {type(value).__name__}"
