"""Levels of the scene graph: the levels that each task asks about, and the aids that it admits.

A task never admits an aid of the level that it asks about. Write an aid as `LEVEL` or `LEVEL:VARIANT`:

    true    the facts of the level that the question depends on
    inert   as many true facts of the same video, in equal form and length, that the question does not depend on
    false   the needed facts with their names or boxes exchanged, so that another answer follows
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from barista_bench.core.task import Example, Task
from barista_bench.errors import ConfigError

Level: TypeAlias = Literal["objects", "states", "relations", "activities"]
Variant: TypeAlias = Literal["true", "inert", "false"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)


class Aid(NamedTuple):
    """A level and a variant: one aid."""

    level: Level
    variant: Variant = "true"

    def __str__(self) -> str:
        return self.level if self.variant == "true" else f"{self.level}:{self.variant}"


@dataclass(frozen=True, slots=True)
class TaskLevels:
    """The levels that a task asks about (empty if it asks for a conclusion), and the aids that it admits."""

    asked: tuple[Level, ...]
    aids: tuple[Level, ...]


TASK_LEVELS: Final[dict[tuple[str, str], TaskLevels]] = {
    ("barista", "relations"): TaskLevels(("relations",), ("objects",)),
    ("barista", "referring"): TaskLevels(("objects", "states"), ("relations",)),
    ("barista", "temporal_vqa"): TaskLevels((), ("objects", "states", "relations", "activities")),
    ("barista", "activity"): TaskLevels((), ("objects",)),  # no states: one such as "grinding" names the activity
}
_CHANGED: Final[dict[str, tuple[Level, ...]]] = {
    "state_change": ("objects", "states"),
    "action_transition": ("objects", "relations"),
    "relation_change": ("objects", "relations"),
    "activity_progression": ("activities",),
}
"""Kind of change to the levels that a question about it depends on."""


def task_levels(task: Task) -> TaskLevels:
    """Return the levels of a task. Raises ConfigError if the task has no aids."""
    levels = TASK_LEVELS.get((task.benchmark, task.name))
    if levels is None:
        known = ", ".join(f"{benchmark}/{name}" for benchmark, name in TASK_LEVELS)
        raise ConfigError(f"{task.benchmark}/{task.name} has no aids. Fix: choose a task with aids: {known}")
    return levels


def needed_levels(task: Task, example: Example) -> tuple[Level, ...]:
    """Return the admitted levels that this question depends on; aids of other levels add no text."""
    admitted = task_levels(task).aids
    if task.name != "temporal_vqa":
        return admitted
    return tuple(level for level in admitted if level in _CHANGED.get(str(example.target.get("category")), ()))


def parse_aids(texts: Iterable[str]) -> tuple[Aid, ...]:
    """Return the aids that a setting names, in the order of `LEVELS`.

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
                f"unknown aid {text!r:.100}. Fix: name a level ({', '.join(LEVELS)}); you may add :inert or :false"
            )
        if level in aids:
            raise ConfigError(f"the aid {level} is named twice. Fix: name it once")
        aids[level] = Aid(level, kind)
    return tuple(aids[level] for level in LEVELS if level in aids)


def check_aids(task: Task, aids: Iterable[Aid]) -> None:
    """Raise ConfigError if the task does not admit one of the aids, such as an aid of the level that it asks about."""
    levels = task_levels(task)
    for aid in aids:
        if aid.level not in levels.aids:
            why = "asks about that level" if aid.level in levels.asked else "does not admit this aid"
            raise ConfigError(f"aid {aid}: {task.name} {why}. Fix: use {', '.join(levels.aids)}")
