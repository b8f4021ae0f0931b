"""Say what referring allows as aids: a look into the box, and relations of the object without its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.false_facts import FalseFacts, exchange_names, object_names
from barista_bench.aids.levels import LevelName
from barista_bench.aids.levels.relations import relation_key, verb
from barista_bench.aids.levels.zoom import zoom_into
from barista_bench.aids.task_aids import TaskAids
from barista_bench.core.boxes import as_xyxy
from barista_bench.core.example import evidence_objects
from barista_bench.scene_graph.video_graph import HANDS

THE_OBJECT: Final = "the object in the box"
ANOTHER_OBJECT: Final = "an object outside the box"


class ReferringAids(TaskAids):
    """The question gives the place and asks for the name, so facts give no name of the object."""

    def facts(self, level: LevelName, scene: QuestionScene) -> Iterable[Fact]:
        if level == "zoom":
            return zoom_into(scene, lambda _: [as_xyxy(scene.example.inputs["box"])])  # type: ignore[arg-type]
        return _relations_of_object(scene)

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Exchange the objects at the other ends of relations, in the facts and in the sentence."""
        said = {name for fact in needed for name in fact.names if name.lower() not in HANDS}
        renamed = exchange_names(scene.example, said, object_names(scene) - {scene.example.label})
        sentence = before = str(scene.example.target["sentence"])
        for name in sorted(said & renamed.keys(), key=len, reverse=True):
            sentence = sentence.replace(name, renamed[name])
        if sentence == before:
            return None
        return FalseFacts(needed, renamed, {**scene.example.target, "sentence": sentence})


def _relations_of_object(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the described object's relations without its name.

    At another moment, yield the relations of other objects.
    """
    (frame,) = scene.frames
    described, is_shown = evidence_objects(scene.example)[0], scene.is_shown
    for row in scene.video.relations:
        if not row.span[0] <= frame < row.span[1] or not scene.spans_in_view(row):
            continue
        if is_shown == (described in (row.source_id, row.target_id)):
            of_source = row.source_id == described or not is_shown
            name, link = THE_OBJECT if is_shown else ANOTHER_OBJECT, f" {verb(row.value)} "
            parts = (name, link, 0) if of_source else (0, link, name)
            yield Fact((row.target if of_source else row.source,), parts, (frame, frame + 1), relation_key(row))
