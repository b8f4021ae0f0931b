"""Scenes of a few things on a table, whose every frame and relation a test says itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from barista_bench.generate.scene import Scene
from tests.generate.graphs import Box, annotation_file, scene_of
from tests.releases import HEIGHT, WIDTH, relation

FPS = 10.0
Spans = Sequence[tuple[int, int]]


def table(
    root: Path,
    things: Mapping[str, str],
    *,
    frames: int = 120,
    seen: Mapping[str, Spans] = {},
    attributes: Sequence[tuple[str, str, str, int, int]] = (),
    contacts: Sequence[tuple[str, str, str, int, int]] = (),
    places: Sequence[tuple[str, str, str, int, int]] = (),
    activities: Sequence[tuple[str, int, int]] = (),
    steps: Sequence[tuple[str, int, int]] = (),
) -> Scene:
    """The scene of one video at 10 frames a second, without its pictures.

    Args:
        things: object id to category; they stand in a row, each on all frames that `seen` does not say.
        attributes: (object, type, value, start, end).
        contacts: (hand, value, object, start, end).
        places: (object, predicate, object, start, end).
        activities: (name, start, end); `steps` likewise.
    """
    boxes = {name: (2 + 8 * at, 4 + 30 * (at % 2), 6, 20) for at, name in enumerate(things)}

    def box_of(name: str, frame: int) -> Box | None:
        return boxes[name] if any(start <= frame < end for start, end in seen.get(name, ((0, frames),))) else None

    relations = [
        relation(hand, name, "human_actions", value, (start, end)) for hand, value, name, start, end in contacts
    ]
    relations += [relation(name, other, "position", value, (start, end)) for name, value, other, start, end in places]
    content = annotation_file(
        things,
        box_of,
        (WIDTH, HEIGHT),
        frames,
        FPS,
        [(name, kind, value, (start, end)) for name, kind, value, start, end in attributes],
        relations,
        *([(name, (start, end)) for name, start, end in rows] for rows in (activities, steps)),
    )
    return scene_of(root, content)
