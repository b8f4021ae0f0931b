"""Hold the false facts of a level, and exchange names in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.core.example import Example, Fields, content_seed
from barista_bench.scene_graph.video_graph import HANDS, UNNAMED


class FalseFacts(NamedTuple):
    """False facts, the names to exchange in their text, and the target that follows from these facts."""

    facts: Sequence[Fact]
    renamed: Mapping[str, str]
    target: Fields


def object_names(scene: QuestionScene) -> set[str]:
    """Return the names of all objects of the video, without hands."""
    names = {row.category for rows in scene.video.boxes.values() for row in rows}
    return {name for name in names if name.lower() not in HANDS and name != UNNAMED}


def exchange_names(example: Example, said: Iterable[str], names: set[str]) -> dict[str, str]:
    """Pair names of `said` with other names, as long as names remain. Map each pair in both directions."""
    said = sorted(said)
    free = sorted(names - set(said), key=lambda name: content_seed("false", example.example_id, name))
    renamed: dict[str, str] = {}
    for name, other in zip(said, free, strict=False):
        renamed.update({name: other, other: name})
    return renamed
