"""Say what grounding allows as aids: states or relations of all objects with the name in the phrase."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.false_facts import FalseFacts
from barista_bench.aids.graph_rows import BoxRow
from barista_bench.aids.levels import LevelName
from barista_bench.aids.levels.relations import relation_fact
from barista_bench.aids.levels.states import state_fact
from barista_bench.aids.task_aids import TaskAids
from barista_bench.benchmarks.kinds.box_answers import reference_box
from barista_bench.core.example import evidence_objects
from barista_bench.core.task import Example
from barista_bench.scene_graph.video_graph import UNNAMED


class GroundingAids(TaskAids):
    """The objects of the phrase's name are told apart by numbers from left to right."""

    def needed_levels(self, example: Example) -> tuple[LevelName, ...]:
        named = {"states": example.metadata.get("colors"), "relations": example.metadata.get("relation")}
        return tuple(level for level in self.admitted if named[level])

    def facts(self, level: LevelName, scene: QuestionScene) -> Iterator[Fact]:
        (frame,), labels = scene.frames, instance_labels(scene)
        span = (frame, frame + 1)
        if level == "states":
            for state in scene.video.states:
                if state.object_id in labels and state.span[0] <= frame < state.span[1]:
                    yield state_fact(state, span, labels[state.object_id])
            return
        for row in scene.video.relations:
            if {row.source_id, row.target_id} & labels.keys() and scene.spans_in_view(row):
                names = (labels.get(row.source_id, row.source), labels.get(row.target_id, row.target))
                yield relation_fact(row, span)._replace(names=names)

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Give each object of the phrase's category the facts of the next such object."""
        labels, rows = instance_labels(scene), scene.boxes(scene.frames[0])
        ids = [row.object_id for row in rows if row.object_id in labels]
        following = dict(zip(ids, [*ids[1:], *ids[:1]], strict=True))
        meant = {following[name] for name in evidence_objects(scene.example) if name in following}
        renamed = {labels[name]: labels[other] for name, other in following.items()}
        if len(ids) < 2 or meant == set(evidence_objects(scene.example)):
            return None
        if {fact.words(renamed) for fact in needed} == {fact.words() for fact in needed}:
            return None
        target = scene.example.target
        boxes = [row.box for row in rows if row.object_id in meant]
        grid = [reference_box(box, scene.video.size, target) for box in boxes]
        return FalseFacts(needed, renamed, {**target, "boxes": list(map(list, boxes)), "ground_truth_boxes": grid})

    def copied_answer(self, example: Example, item: str, boxes: Mapping[str, list[float]]) -> str:
        return json.dumps({"bboxes": [boxes[item]] if item in boxes else []})


def instance_labels(scene: QuestionScene) -> dict[str, str]:
    """Map object ids to names on one frame. Objects with the same name are numbered from left to right.

    On the question's frame these are the objects of the phrase's category. On another frame these are all other
    objects.
    """
    (frame,) = scene.frames
    groups: dict[str, list[BoxRow]] = {}
    for row in scene.boxes(frame):
        if row.category != UNNAMED and (row.category == scene.example.inputs["category"]) == scene.is_shown:
            groups.setdefault(row.category, []).append(row)
    return {
        row.object_id: name if len(rows) == 1 else f"{name} {number} from the left"
        for name, rows in groups.items()
        for number, row in enumerate(sorted(rows, key=lambda row: (row.box, row.object_id)), start=1)
    }
