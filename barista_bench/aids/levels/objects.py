"""Tell the objects in view, with boxes."""

from __future__ import annotations

from collections.abc import Iterator

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.level import Level
from barista_bench.scene_graph.video_graph import UNNAMED


def _objects(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the named objects on the first and the last frame."""
    for frame in scene.ends:
        for row in scene.boxes(frame):
            if row.category != UNNAMED:
                yield Fact((row.category,), (0,), (frame, frame + 1), (row.object_id,), row.box)


OBJECTS = Level(
    heading="Objects, with boxes as {format}:", given="true object boxes", fill="#0f766e", facts=_objects, has_own=True
)
