"""Say what the tasks about single frames allow as aids: grounding, hand_object, relations and referring."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from barista_bench.aids.facts import Fact, FalseFacts, QuestionScene, exchange_names, object_names
from barista_bench.aids.graph_rows import BoxRow
from barista_bench.aids.levels import LevelName, relation_fact, state_fact, zoom_into
from barista_bench.aids.task_aids import FactRules, TaskAids
from barista_bench.benchmarks.barista.relation_answers import RelationInputs
from barista_bench.benchmarks.kinds.box_answers import reference_box
from barista_bench.core.boxes import as_xyxy, xywh_to_xyxy
from barista_bench.core.example import Example, evidence_objects
from barista_bench.scene_graph.video_graph import HANDS, UNNAMED

THE_OBJECT: Final = "the object in the box"
ANOTHER_OBJECT: Final = "an object outside the box"


def _states_of_instances(scene: QuestionScene) -> Iterator[Fact]:
    (frame,), labels = scene.frames, instance_labels(scene)
    for state in scene.video.states:
        if state.object_id in labels and state.span[0] <= frame < state.span[1]:
            yield state_fact(state, (frame, frame + 1), labels[state.object_id])


def _relations_of_instances(scene: QuestionScene) -> Iterator[Fact]:
    (frame,), labels = scene.frames, instance_labels(scene)
    for row in scene.video.relations:
        if {row.source_id, row.target_id} & labels.keys() and scene.spans_in_view(row):
            names = (labels.get(row.source_id, row.source), labels.get(row.target_id, row.target))
            yield relation_fact(row, (frame, frame + 1))._replace(names=names)


class GroundingAids(TaskAids):
    """States or relations of all objects with the name in the phrase, which are numbered from left to right."""

    own_facts: ClassVar[FactRules] = {"states": _states_of_instances, "relations": _relations_of_instances}

    def needed_levels(self, example: Example) -> tuple[LevelName, ...]:
        named = {"states": example.metadata.get("colors"), "relations": example.metadata.get("relation")}
        return tuple(level for level in self.admitted if named.get(level, True))

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


class HandObjectAids(TaskAids):
    """Numbered and named marks. No text, since a program that copies boxes from a text into its answer would gain."""

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Give each mark except hands the box of the next such mark. Interactions move with the marks."""
        target, things = scene.example.target, [fact for fact in needed if fact.names[0].lower() not in HANDS]
        box_of = {fact.about[0]: other.box for fact, other in zip(things, [*things[1:], *things[:1]], strict=True)}
        interactions: list[dict[str, object]] = target["interactions"]  # type: ignore[assignment]
        named = {str(item["object_id"]) for item in interactions}
        if level != "marks" or len(things) < 2 or not named <= box_of.keys():
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


def _marked_objects(scene: QuestionScene) -> Iterator[Fact]:
    (frame,) = scene.frames
    span = (frame, frame + 1)
    if scene.is_shown:
        for item in RelationInputs.of(scene.example).objects:
            box = xywh_to_xyxy(item.bbox)
            yield Fact((item.category,), (_mark_text(item.mark), 0), span, (item.object_id,), box)
    else:
        for number, row in enumerate(scene.boxes(frame), start=1):
            yield Fact((row.category,), (f"item {number}: ", 0), span, (row.object_id,), row.box)


class RelationsAids(TaskAids):
    """The name and box of every mark. Other frames have no marks, so their objects are numbered items."""

    own_facts: ClassVar[FactRules] = {"objects": _marked_objects}

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Give each mark with a relation the box of the next such mark. Relations move with the boxes."""
        relations: list[dict[str, object]] = scene.example.target["relations"]  # type: ignore[assignment]
        marks = sorted({int(str(item[end])) for item in relations for end in ("source_id", "target_id")})
        next_marks = [*marks[1:], *marks[:1]]
        fact_of = {fact.parts[0]: fact for fact in needed}
        following = {_mark_text(mark): _mark_text(there) for mark, there in zip(marks, next_marks, strict=True)}
        if len(marks) < 2 or not following.keys() <= fact_of.keys():
            return None
        facts = [
            fact._replace(box=fact_of[following[str(fact.parts[0])]].box) if fact.parts[0] in following else fact
            for fact in needed
        ]
        called = dict(zip(next_marks, marks, strict=True))
        others = [{**item, **{end: called[item[end]] for end in ("source_id", "target_id")}} for item in relations]  # type: ignore[index]
        if Counter(map(str, others)) == Counter(map(str, relations)):
            return None
        return FalseFacts(facts, {}, {"relations": others})  # type: ignore[dict-item]

    def copied_answer(self, example: Example, item: str, boxes: Mapping[str, list[float]]) -> str:
        inputs = RelationInputs.of(example)
        marks = [each.mark for each in inputs.objects if each.category == item] or [inputs.objects[0].mark]
        others = [each.mark for each in inputs.objects if each.mark not in marks] or [0]
        entry = inputs.vocabulary[0]
        kinds = {"relation_type": entry.relation_type, "value": entry.values[0]}
        return json.dumps([{"source_id": marks[0], "target_id": others[0], **kinds}])


def _mark_text(mark: int) -> str:
    """Return the text before the name of a marked object."""
    return f"mark {mark}: "


def _look_into_box(scene: QuestionScene) -> list[Fact]:
    return zoom_into(scene, lambda _: [as_xyxy(scene.example.inputs["box"])])  # type: ignore[arg-type]


def _relations_of_object(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the described object's relations without its name. At another moment, yield those of other objects."""
    (frame,) = scene.frames
    described, is_shown = evidence_objects(scene.example)[0], scene.is_shown
    for row in scene.video.relations:
        if not row.span[0] <= frame < row.span[1] or not scene.spans_in_view(row):
            continue
        if is_shown == (described in (row.source_id, row.target_id)):
            of_source = row.source_id == described or not is_shown
            name, fact = THE_OBJECT if is_shown else ANOTHER_OBJECT, relation_fact(row, (frame, frame + 1))
            parts = (name, fact.parts[1], 0) if of_source else (0, fact.parts[1], name)
            yield fact._replace(names=(row.target if of_source else row.source,), parts=parts)


class ReferringAids(TaskAids):
    """A look into the box, and relations of the object without its name."""

    own_facts: ClassVar[FactRules] = {"zoom": _look_into_box, "relations": _relations_of_object}

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
