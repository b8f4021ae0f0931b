"""Names of objects in HanDyVQA's questions about a clip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barista_bench.generate.descriptions import TOUCHES, WHOLE_VIDEO, Basis, is_told_apart, name_object
from barista_bench.generate.handyvqa_statements import ClearlyNamed, ClipWindow
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import Statement

IN_TOUCH: tuple[Basis, ...] = (*sorted(TOUCHES), *sorted(WHOLE_VIDEO))
"""Properties that must not identify objects in a clip whose question is about touches."""


class ClipNames:
    """Names of a scene's objects in clips.

    Methods take an object's id, a clip, the properties that must not identify objects (`barred`), and the frame that
    the question is explicitly about (`moment`), if any. A description must be unique on that frame only, a name in the
    complete clip.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def name(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> str:
        return self._name_for_clip(object_id, clip, barred, moment)[0].name

    def is_clear(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> bool:
        """Whether the name of an object fits no other object."""
        return is_told_apart(self.scene, *self._name_for_clip(object_id, clip, barred, moment))

    def conditions(
        self, ids: Iterable[str], clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> tuple[Statement, ...]:
        """Return the statements that the names of the objects fit no others."""
        rows = [(object_id, *self._name_for_clip(object_id, clip, barred, moment)) for object_id in ids]
        return tuple(ClearlyNamed(object_id, frames, called.description) for object_id, called, frames in rows)

    def _name_for_clip(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis], moment: int | None
    ) -> tuple[NamedObject, tuple[int, ...]]:
        """Return an object under its name, and the frames on which the name must be unique."""
        thing = self.scene.things[object_id]
        is_clear = moment is None or self.scene.is_unique(thing, clip.shown)
        frames = clip.shown if is_clear or moment is None else (moment,)
        called = name_object(self.scene, thing, frames, barred)
        return called, frames if called.description else clip.shown
