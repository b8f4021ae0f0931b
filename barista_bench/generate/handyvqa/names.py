"""The names that HanDyVQA's questions about a clip use for objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barista_bench.generate.descriptions import TOUCHES, WHOLE_VIDEO, Basis, is_told_apart, name_object
from barista_bench.generate.handyvqa.statements import ClearlyNamed, ClipWindow
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import Statement

IN_TOUCH: tuple[Basis, ...] = (*sorted(TOUCHES), *sorted(WHOLE_VIDEO))
"""Properties that must not identify objects if the question is about touches."""


class ClipNames:
    """Names of a scene's objects in clips.

    The methods take an object's id, a clip, and the properties that must not identify objects (`barred`). `moment` is
    the frame that the question is explicitly about, if there is one. A description must be unique only on that frame,
    but a name must be unique in the complete clip.
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
        """Return whether the name of an object fits no other object."""
        return is_told_apart(self.scene, *self._name_for_clip(object_id, clip, barred, moment))

    def conditions(
        self, ids: Iterable[str], clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> tuple[Statement, ...]:
        """Return statements that the names of the objects fit no other objects."""
        rows = [(object_id, *self._name_for_clip(object_id, clip, barred, moment)) for object_id in ids]
        return tuple(ClearlyNamed(object_id, frames, called.description) for object_id, called, frames in rows)

    def _name_for_clip(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis], moment: int | None
    ) -> tuple[NamedObject, tuple[int, ...]]:
        """Return an object with its name, and the frames on which the name must be unique."""
        thing = self.scene.things[object_id]
        is_clear = moment is None or self.scene.is_unique(thing, clip.shown)
        frames = clip.shown if is_clear or moment is None else (moment,)
        called = name_object(self.scene, thing, frames, barred)
        return called, frames if called.description else clip.shown
