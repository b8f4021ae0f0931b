"""List the levels of the scene graph about which each task asks, and the aids that each task admits.

A task never admits an aid of a level about which it asks. Write an aid as `LEVEL` or `LEVEL:VARIANT`:

    true    the facts of the level that the question depends on
    inert   as many true facts of the same video, in equal form and length, that the question does not depend on
    false   the needed facts with their names or boxes exchanged, so that another answer follows
    own     the needed facts as the model itself answered them in another run, written `LEVEL=RUN`

Three aids are pictures. `moment` shows the important frames again. `zoom` shows parts of frames in full size. `marks`
numbers the objects of a frame, and gives the same level as `objects`. `zoom` shows where to look. So a task that asks
for a place does not admit `zoom`, unless the question gives the place.

A view hides evidence or transforms the question:

    hide_evidence    the objects of the evidence are painted over
    hide_elsewhere   equal areas elsewhere are painted over: the control of `hide_evidence`
    only_evidence    all else is painted over
    mirrored         left and right are exchanged, in pictures, question and reference
    reversed         a clip runs backwards
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError

Level: TypeAlias = Literal["moment", "zoom", "marks", "objects", "states", "relations", "activities"]
Variant: TypeAlias = Literal["true", "inert", "false", "own"]
View: TypeAlias = Literal["hide_evidence", "hide_elsewhere", "only_evidence", "mirrored", "reversed"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
VIEWS: Final[tuple[View, ...]] = get_args(View)
PICTURES: Final[frozenset[Level]] = frozenset({"moment", "zoom", "marks"})
OWN: Final[tuple[Level, ...]] = ("marks", "objects")
"""Aids in which a model's own answers (boxes from a run of grounding) can replace the truth."""


class Aid(NamedTuple):
    """An aid: a level and a variant. `run` is the folder of the model's own answers."""

    level: Level
    variant: Variant = "true"
    run: str = ""

    def __str__(self) -> str:
        if self.run:
            return f"{self.level}={self.run}"
        return self.level if self.variant == "true" else f"{self.level}:{self.variant}"


@dataclass(frozen=True, slots=True)
class TaskLevels:
    """The levels about which a task asks (empty if it asks for a conclusion), and the aids that it admits.

    A diagnosis gives `aids` by default. `also` holds further forms of the same levels. `views` holds the admitted
    views.
    """

    asked: tuple[Level, ...]
    aids: tuple[Level, ...]
    also: tuple[Level, ...] = ()
    views: tuple[View, ...] = VIEWS[:4]


TASK_LEVELS: Final[dict[tuple[str, str], TaskLevels]] = {
    ("barista", "grounding"): TaskLevels(("objects",), ("states", "relations")),
    ("barista", "hand_object"): TaskLevels(("relations",), ("marks",)),  # models copy boxes in text into answers
    ("barista", "relations"): TaskLevels(("relations",), ("objects",)),
    ("barista", "referring"): TaskLevels(("objects", "states"), ("zoom", "relations")),
    ("barista", "temporal_vqa"): TaskLevels(
        (), ("moment", "zoom", "objects", "states", "relations", "activities"), ("marks",), VIEWS
    ),
    # no states, since a state such as "grinding" names the activity
    ("barista", "activity"): TaskLevels((), ("zoom", "objects"), ("marks",), VIEWS),
    # only generated questions; other tasks of these benchmarks ask about objects, places and times
    **{("handyvqa", name): TaskLevels((), ("objects",), views=()) for name in ("action", "process", "state")},
    ("egocot", "cot"): TaskLevels((), ("objects",), views=()),
    **{("vista", name): TaskLevels((), ("objects",), views=()) for name in ("all", "real_world")},
}
_CHANGED: Final[dict[str, tuple[Level, ...]]] = {
    "state_change": ("moment", "zoom", "marks", "objects", "states"),
    "action_transition": ("moment", "zoom", "marks", "objects", "relations"),
    "relation_change": ("moment", "zoom", "marks", "objects", "relations"),
    "activity_progression": ("moment", "activities"),
}
"""Maps each kind of change to the levels on which a question about this change depends."""

_SAID_BY_NAMES: Final = frozenset({"SR"})
"""Subtasks whose answers follow from visible names. For example, visible coffee tells whether a cup was full."""


def has_aids(task: Task) -> bool:
    return (task.benchmark, task.name) in TASK_LEVELS


def task_levels(task: Task) -> TaskLevels:
    """Return the levels of a task. Raises ConfigError if the task has no aids."""
    levels = TASK_LEVELS.get((task.benchmark, task.name))
    if levels is None:
        known = ", ".join(f"{benchmark}/{name}" for benchmark, name in TASK_LEVELS)
        raise ConfigError(f"{task.benchmark}/{task.name} has no aids. Fix: choose a task with aids: {known}")
    return levels


def needed_levels(task: Task, example: Example) -> tuple[Level, ...]:
    """Return the admitted levels on which this question depends. Aids of other levels add no text."""
    levels = task_levels(task)
    admitted = tuple(level for level in LEVELS if level in (*levels.aids, *levels.also))
    if task.name == "grounding":
        named = {"states": example.metadata.get("colors"), "relations": example.metadata.get("relation")}
        return tuple(level for level in admitted if named[level])
    if task.name == "cot" and example.metadata.get("subtask") in _SAID_BY_NAMES:
        return ()
    if task.benchmark == "vista" and example.metadata.get("level") != 1:
        return ()  # videos joined of clips, whose times are not those of the graph
    if task.name != "temporal_vqa":
        return admitted
    return tuple(level for level in admitted if level in _CHANGED.get(str(example.target.get("category")), ()))


def parse_aids(texts: Iterable[str]) -> tuple[Aid, ...]:
    """Return the aids that a setting names, in the order of `LEVELS`.

    Raises:
        ConfigError: a level or variant is unknown, or a level is named twice.

    >>> parse_aids(["states:inert", "objects"])
    (Aid(level='objects', variant='true', run=''), Aid(level='states', variant='inert', run=''))
    """
    aids: dict[Level, Aid] = {}
    for text in (part.strip() for each in texts for part in each.split(",") if part.strip()):
        name, is_own, run = text.partition("=")
        name, _, variant = (name, "", "own") if is_own else name.partition(":")
        level = next((level for level in LEVELS if level == name), None)
        kind = next((kind for kind in VARIANTS if kind == (variant or "true")), None)
        if level is None or kind is None or bool(run) != (kind == "own"):
            raise ConfigError(
                f"unknown aid {text!r:.100}. Fix: name a level ({', '.join(LEVELS)}); you may add :inert, :false or "
                "=RUN, a run folder"
            )
        if run and level not in OWN:
            raise ConfigError(f"{text!r:.100}: own answers are boxes. Fix: write {' or '.join(OWN)} before the =")
        if level in aids:
            raise ConfigError(f"the aid {level} is named twice. Fix: name it once")
        aids[level] = Aid(level, kind, run)
    return tuple(aids[level] for level in LEVELS if level in aids)


def check_aids(task: Task, aids: Iterable[Aid]) -> None:
    """Raise ConfigError if the task does not admit an aid, for example because the task asks about its level."""
    levels = task_levels(task)
    for aid in aids:
        if aid.level not in (*levels.aids, *levels.also):
            why = "asks about that level" if fact_level(aid.level) in levels.asked else "does not admit this aid"
            raise ConfigError(f"aid {aid}: {task.name} {why}. Fix: use {', '.join((*levels.aids, *levels.also))}")


def fact_level(level: Level) -> Level:
    """Return the level of the facts that an aid gives. Numbered marks give objects."""
    return "objects" if level == "marks" else level


def parse_views(task: Task, names: Iterable[str]) -> tuple[View, ...]:
    """Return the views that a setting names, in the order of `VIEWS`. `all` means all views that the task admits.

    Raises:
        ConfigError: a view is unknown, or the task does not admit it.
    """
    admitted, wanted = task_levels(task).views, set(names)
    for name in wanted - {*admitted, "all"}:
        raise ConfigError(f"view {name!r:.100}: {task.name} has no such view. Fix: use {', '.join(admitted)} or all")
    return tuple(view for view in admitted if view in wanted or "all" in wanted)
