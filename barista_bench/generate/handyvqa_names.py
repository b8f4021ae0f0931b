"""What things are called in HanDyVQA's questions about a clip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barista_bench.generate.descriptions import TOUCHES, WHOLE_VIDEO, Basis, is_told_apart, named
from barista_bench.generate.handyvqa_statements import ClearlyNamed, ClipWindow
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import Statement

IN_TOUCH: tuple[Basis, ...] = (*sorted(TOUCHES), *sorted(WHOLE_VIDEO))
"""What must not tell things apart in a clip whose question is about touches."""


class ClipNames:
    """Names of a scene's things in clips.

    Each method takes the id of a thing, a clip, what must not tell things apart (`barred`), and the frame that the
    question says it is about (`moment`), if it does: a description must fit there only, a name in all of the clip.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def name(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> str:
        return self._called(object_id, clip, barred, moment)[0].name

    def is_clear(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> bool:
        """Whether what a thing is called fits nothing else."""
        return is_told_apart(self.scene, *self._called(object_id, clip, barred, moment))

    def conditions(
        self, ids: Iterable[str], clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> tuple[Statement, ...]:
        """The statements that what things are called fits nothing else."""
        rows = [(object_id, *self._called(object_id, clip, barred, moment)) for object_id in ids]
        return tuple(ClearlyNamed(object_id, frames, called.description) for object_id, called, frames in rows)

    def _called(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis], moment: int | None
    ) -> tuple[NamedObject, tuple[int, ...]]:
        """A thing as it is called, and the frames on which that must be clear."""
        thing = self.scene.things[object_id]
        is_clear = moment is None or self.scene.is_unique(thing, clip.shown)
        frames = clip.shown if is_clear or moment is None else (moment,)
        called = named(self.scene, thing, frames, barred)
        return called, frames if called.description else clip.shown
