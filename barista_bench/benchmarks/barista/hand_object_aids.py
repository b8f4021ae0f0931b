"""Say what hand-object interaction allows as aids: numbered and named marks.

No text describes the objects, since a program that copies boxes from a text into its answer would gain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.false_facts import FalseFacts
from barista_bench.aids.levels import LevelName
from barista_bench.aids.task_aids import TaskAids
from barista_bench.benchmarks.kinds.box_answers import reference_box
from barista_bench.core.task import Example
from barista_bench.scene_graph.video_graph import HANDS


class HandObjectAids(TaskAids):
    """False marks move the objects, and interactions move with them."""

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Give each mark except hands the box of the next such mark. Interactions move with the marks."""
        target, things = scene.example.target, [fact for fact in needed if fact.names[0].lower() not in HANDS]
        box_of = {fact.about[0]: other.box for fact, other in zip(things, [*things[1:], *things[:1]], strict=True)}
        interactions: list[dict[str, object]] = target["interactions"]  # type: ignore[assignment]
        if len(things) < 2 or not {str(item["object_id"]) for item in interactions} <= box_of.keys():
            return None
        others = []
        for item in interactions:
            box = box_of[str(item["object_id"])]
            assert box is not None
            on_grid = reference_box(box, scene.video.size, target)
            others.append({**item, "object_box": on_grid, "object_pixels": list(box)})
        facts = [fact._replace(box=box_of.get(fact.about[0], fact.box)) for fact in needed]
        return FalseFacts(facts, {}, {**target, "interactions": others})  # type: ignore[dict-item]

    def copied_answer(self, example: Example, item: str, boxes: Mapping[str, list[float]]) -> str:
        hand = next((box for name, box in boxes.items() if "right hand" in name), None)
        found = hand and item in boxes
        return json.dumps([{"hand_boxes": [hand], "object_box": boxes[item], "hand_type": "right"}] if found else [])
