"""The levels that an answer depends on, which of them a task asks about, and which aids it admits.

An aid never gives the level that a task asks about. An aid is written `LEVEL` or `LEVEL:VARIANT`:

    true    the facts of the level that the question depends on
    inert   as many true facts of the same video, of equal form and length, that the question does not depend on
    false   the needed facts with their names or boxes exchanged, so that another answer follows
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from barista_bench.core.task import Example, Task
from barista_bench.errors import ConfigError

Level: TypeAlias = Literal["moment", "objects", "states", "relations", "activities"]
Variant: TypeAlias = Literal["true", "inert", "false"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)


class Aid(NamedTuple):
    """One aid. Sorts as aids stand in a prompt."""

    level: Level
    variant: Variant = "true"

    def __str__(self) -> str:
        return self.level if self.variant == "true" else f"{self.level}:{self.variant}"


@dataclass(frozen=True, slots=True)
class TaskLevels:
    """The levels that a task asks about (none: it asks a conclusion), and the aids that it admits."""

    asked: tuple[Level, ...]
    aids: tuple[Level, ...]


TASK_LEVELS: Final[dict[tuple[str, str], TaskLevels]] = {
    ("barista", "relations"): TaskLevels(("relations",), ("objects",)),
    ("barista", "referring"): TaskLevels(("objects", "states"), ("relations",)),
    ("barista", "temporal_vqa"): TaskLevels((), ("objects", "states", "relations", "activities")),
    ("barista", "activity"): TaskLevels((), ("objects",)),  # states such as "grinding" name the activity
}
_CHANGED: Final[dict[str, tuple[Level, ...]]] = {
    "state_change": ("objects", "states"),
    "action_transition": ("objects", "relations"),
    "relation_change": ("objects", "relations"),
    "activity_progression": ("activities",),
}
"""The levels that a question about each kind of change depends on."""


def task_levels(task: Task) -> TaskLevels:
    """The levels of a task. Raises ConfigError where it has no aids."""
    levels = TASK_LEVELS.get((task.benchmark, task.name))
    if levels is None:
        known = ", ".join(f"{benchmark}/{name}" for benchmark, name in TASK_LEVELS)
        raise ConfigError(f"{task.benchmark}/{task.name} has no aids. Fix: name one of {known}")
    return levels


def needed_levels(task: Task, example: Example) -> tuple[Level, ...]:
    """The levels with an aid that this question depends on; others change nothing."""
    admitted = task_levels(task).aids
    if task.name != "temporal_vqa":
        return admitted
    return tuple(level for level in admitted if level in _CHANGED.get(str(example.target.get("category")), ()))


def parse_aids(texts: Iterable[str]) -> tuple[Aid, ...]:
    """The aids of a setting, in the order of `LEVELS`.

    Raises:
        ConfigError: a level or variant is unknown, or a level is named twice.

    >>> parse_aids(["states:inert", "objects"])
    (Aid(level='objects', variant='true'), Aid(level='states', variant='inert'))
    """
    aids: dict[Level, Aid] = {}
    for text in (part.strip() for each in texts for part in each.split(",") if part.strip()):
        name, _, variant = text.partition(":")
        level = next((level for level in LEVELS if level == name), None)
        kind = next((kind for kind in VARIANTS if kind == (variant or "true")), None)
        if level is None or kind is None:
            raise ConfigError(
                f"no aid {text!r:.100}. Fix: name a level ({', '.join(LEVELS)}), alone or with :inert or :false"
            )
        if level in aids:
            raise ConfigError(f"the aid {level} is named twice. Fix: name it once")
        aids[level] = Aid(level, kind)
    return tuple(aids[level] for level in LEVELS if level in aids)


def check_aids(task: Task, aids: Iterable[Aid]) -> None:
    """Raise ConfigError where a task does not admit an aid, such as that of the level that it asks about."""
    levels = task_levels(task)
    for aid in aids:
        if aid.level not in levels.aids:
            why = "asks about that level" if aid.level in levels.asked else "admits no such aid"
            raise ConfigError(f"aid {aid}: {task.name} {why}. Fix: use {', '.join(levels.aids)}")
