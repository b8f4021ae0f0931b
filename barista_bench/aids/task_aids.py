"""Define what a task says about aids: the levels about which it asks, the aids that it admits, and its own rules.

A task never admits an aid of a level about which it asks. Write an aid as `LEVEL` or `LEVEL:VARIANT`:

    true    the facts of the level that the question depends on
    inert   as many true facts of the same video, in equal form and length, that the question does not depend on
    false   the needed facts with their names or boxes exchanged, so that another answer follows
    own     the needed facts as the model itself answered them in another run, written `LEVEL=RUN`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args, runtime_checkable

from barista_bench.aids.facts import Fact, FalseFacts, Finder, QuestionScene
from barista_bench.aids.levels import LEVELS, LevelName
from barista_bench.aids.views import FRAME_VIEWS, View, mirror_fields
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError

Variant: TypeAlias = Literal["true", "inert", "false", "own"]
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
FactRules: TypeAlias = Mapping[LevelName, Finder]
"""Maps levels to the rules that find their facts."""


class Aid(NamedTuple):
    """An aid: a level and a variant. `run` is the folder of the model's own answers."""

    level: LevelName
    variant: Variant = "true"
    run: str = ""

    def __str__(self) -> str:
        if self.run:
            return f"{self.level}={self.run}"
        return self.level if self.variant == "true" else f"{self.level}:{self.variant}"


@dataclass(frozen=True)
class TaskAids:
    """What a task says about aids. A task with its own rules derives a class.

    `own_facts` maps levels to the task's own rules. Other levels have the rules of `LEVELS`.

    Args:
        default: the levels that a diagnosis gives by default.
        asked_about: the levels about which the task asks. Empty if it asks for a conclusion.
        optional: further levels that the task admits, as other forms of the same facts.
        views: the admitted views.
        suits: whether aids may be given to an example.
    """

    own_facts: ClassVar[FactRules] = {}

    default: tuple[LevelName, ...]
    asked_about: tuple[LevelName, ...] = ()
    optional: tuple[LevelName, ...] = ()
    views: tuple[View, ...] = FRAME_VIEWS
    suits: Callable[[Example], bool] = lambda example: True

    @property
    def admitted(self) -> tuple[LevelName, ...]:
        """Return all admitted levels, in the order of a prompt."""
        return tuple(level for level in LEVELS if level in (*self.default, *self.optional))

    def asks(self, level: LevelName) -> bool:
        """Return whether the facts of a level are what the task asks."""
        return (LEVELS[level].shows or level) in self.asked_about

    def needed_levels(self, example: Example) -> tuple[LevelName, ...]:
        """Return the admitted levels on which this question depends. Aids of other levels add no text."""
        return self.admitted if self.suits(example) else ()

    def facts(self, level: LevelName, scene: QuestionScene) -> Iterable[Fact]:
        """Return the facts of a level at the frames of a scene, which may be another moment than the question's."""
        return self.own_facts.get(level, LEVELS[level].facts)(scene)

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Return the needed facts exchanged, or None if no other answer would follow."""
        return None

    def mirrored(self, example: Example, size: tuple[int, int]) -> Example | None:
        """Return the example for the mirrored clip. `size` is the (width, height) of its frames in pixels."""
        return mirror_fields(example, size)

    def reversed(self, scene: QuestionScene) -> Example | None:
        """Return the example for the reversed clip, or None if it is not about a clip or no question is left."""
        return scene.example if len(scene.example.frames) > 1 else None

    def copied_answer(self, example: Example, item: str, boxes: Mapping[str, list[float]]) -> str:
        """Return the answer of a program that copies one item of an aid. Choices and texts need no such rule."""
        raise ConfigError(f"{type(self).__name__} has no `copied_answer`. Fix: write the answer that names one item")


@runtime_checkable
class AidedTask(Protocol):
    """A task that admits aids. It declares them."""

    aids: TaskAids


def aids_of(task: Task) -> TaskAids:
    """Return what a task says about aids. Raises ConfigError if the task has no aids."""
    if isinstance(task, AidedTask):
        return task.aids
    raise ConfigError(f"{task.benchmark}/{task.name} has no aids. Fix: choose a task of the table in docs/diagnosis.md")


def parse_aids(texts: Iterable[str]) -> tuple[Aid, ...]:
    """Return the aids that a setting names, in the order of `LEVELS`.

    Raises:
        ConfigError: a level or variant is unknown, or a level is named twice.

    >>> parse_aids(["states:inert", "objects"])
    (Aid(level='objects', variant='true', run=''), Aid(level='states', variant='inert', run=''))
    """
    aids: dict[LevelName, Aid] = {}
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
        if run and not LEVELS[level].has_own:
            own = " or ".join(name for name, each in LEVELS.items() if each.has_own)
            raise ConfigError(f"{text!r:.100}: own answers are boxes. Fix: write {own} before the =")
        if level in aids:
            raise ConfigError(f"the aid {level} is named twice. Fix: name it once")
        aids[level] = Aid(level, kind, run)
    return tuple(aids[level] for level in LEVELS if level in aids)


def check_admitted(task: Task, aids: Iterable[Aid]) -> None:
    """Raise ConfigError if the task does not admit an aid, for example because the task asks about its level."""
    declared = aids_of(task)
    for aid in aids:
        if aid.level not in declared.admitted:
            why = "asks about that level" if declared.asks(aid.level) else "does not admit this aid"
            raise ConfigError(f"aid {aid}: {task.name} {why}. Fix: use {', '.join(declared.admitted)}")


def parse_views(task: Task, names: Iterable[str]) -> tuple[View, ...]:
    """Return the views that a setting names, in the order of `VIEWS`. `all` means all views that the task admits.

    Raises:
        ConfigError: a view is unknown, or the task does not admit it.
    """
    admitted, wanted = aids_of(task).views, set(names)
    for name in wanted - {*admitted, "all"}:
        raise ConfigError(f"view {name!r:.100}: {task.name} has no such view. Fix: use {', '.join(admitted)} or all")
    return tuple(view for view in admitted if view in wanted or "all" in wanted)
