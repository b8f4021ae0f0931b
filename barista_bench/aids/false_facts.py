"""Exchange boxes or names in the needed facts, and find the answer that follows from these false facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from barista_bench.aids.facts import Fact, QuestionScene, facts_of, instance_labels, mark_text
from barista_bench.aids.graph_rows import Box
from barista_bench.aids.levels import Level
from barista_bench.benchmarks.barista.activity_choices import ActivityInputs
from barista_bench.benchmarks.barista.change_detection import Category, Change
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.benchmarks.kinds.box_answers import reference_scale
from barista_bench.core.boxes import GRID, to_grid
from barista_bench.core.example import Example, Fields, content_seed, evidence_objects
from barista_bench.scene_graph.video_graph import HANDS, UNNAMED


class FalseFacts(NamedTuple):
    """False facts, the names to exchange in their text, and the target that follows from these facts."""

    facts: Sequence[Fact]
    renamed: Mapping[str, str]
    target: Fields


def false_facts(level: Level, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Return the false facts of a level, or None if no other answer would follow."""
    if level in ("moment", "zoom"):
        return None  # a look elsewhere implies no answer
    match scene.example.task:
        case "grounding":
            return _exchanged_instances(scene, needed)
        case "hand_object":
            return _moved_marks(scene, needed)
        case "relations":
            return _moved_boxes(scene, needed)
        case "temporal_vqa":
            return _exchanged_names(level, scene, needed)
        case "referring":
            return _other_ends(scene, needed)
        case "activity" if level == "objects":
            return _another_segment(level, scene, needed)
    return None


def _exchanged_instances(scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Give each object of the phrase's category the facts of the next such object."""
    labels = instance_labels(scene)
    ids = [row.object_id for row in scene.video.boxes[scene.frames[0]] if row.object_id in labels]
    following = dict(zip(ids, [*ids[1:], *ids[:1]], strict=True))
    meant = {following[name] for name in evidence_objects(scene.example) if name in following}
    renamed = {labels[name]: labels[other] for name, other in following.items()}
    if len(ids) < 2 or meant == set(evidence_objects(scene.example)):
        return None
    if {fact.words(renamed) for fact in needed} == {fact.words() for fact in needed}:
        return None
    target = scene.example.target
    boxes = [row.box for row in scene.video.boxes[scene.frames[0]] if row.object_id in meant]
    grid = [_grid(box, scene) for box in boxes]
    return FalseFacts(needed, renamed, {**target, "boxes": list(map(list, boxes)), "ground_truth_boxes": grid})


def _grid(box: Box, scene: QuestionScene) -> list[int]:
    scale = reference_scale(scene.example.target)
    return [round(value * scale / GRID) for value in to_grid(box, *scene.video.size)]


def _moved_marks(scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
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
        others.append({**item, "object_box": _grid(box, scene), "object_pixels": list(box)})
    facts = [fact._replace(box=box_of.get(fact.about[0], fact.box)) for fact in needed]
    return FalseFacts(facts, {}, {**target, "interactions": others})  # type: ignore[dict-item]


def _moved_boxes(scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Give each mark with a relation the box of the next such mark. Relations move with the boxes."""
    relations: list[dict[str, object]] = scene.example.target["relations"]  # type: ignore[assignment]
    marks = sorted({int(str(item[end])) for item in relations for end in ("source_id", "target_id")})
    fact_of = {fact.parts[0]: fact for fact in needed}
    following = {mark_text(mark): mark_text(there) for mark, there in zip(marks, [*marks[1:], *marks[:1]], strict=True)}
    if len(marks) < 2 or not following.keys() <= fact_of.keys():
        return None
    facts = [
        fact._replace(box=fact_of[following[str(fact.parts[0])]].box) if fact.parts[0] in following else fact
        for fact in needed
    ]
    called = dict(zip([*marks[1:], *marks[:1]], marks, strict=True))
    others = [{**item, **{end: called[item[end]] for end in ("source_id", "target_id")}} for item in relations]  # type: ignore[index]
    if Counter(map(str, others)) == Counter(map(str, relations)):
        return None
    return FalseFacts(facts, {}, {"relations": others})  # type: ignore[dict-item]


def _exchanged_names(level: Level, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Exchange names in the answer with other names of the video. Only answers from a template can be rewritten."""
    example = scene.example
    if example.metadata.get("writer") != "template":
        return None
    changes = [msgspec.convert(change, Change) for change in example.evidence["changes"]]  # type: ignore[union-attr]
    said = {name for change in changes for name in (change.subject, *change.objects)}
    said = {name for name in said if name.lower() not in HANDS and name != UNNAMED}
    renamed = _exchange(example, said, _names(level, scene))
    if not renamed or not any(name in renamed for fact in needed for name in fact.names):
        return None
    others = [
        msgspec.structs.replace(
            change,
            subject=renamed.get(change.subject, change.subject),
            objects=sorted(renamed.get(name, name) for name in change.objects),
        )
        for change in changes
    ]
    category: Category = example.target["category"]  # type: ignore[assignment]
    answer = write_pair(category, others)["answer"]
    is_other = answer != example.target["answer"]
    return FalseFacts(needed, renamed, {**example.target, "answer": answer}) if is_other else None


def _names(level: Level, scene: QuestionScene) -> set[str]:
    if level == "activities":
        return {row.name for row in scene.video.activities if row.name}
    names = {row.category for rows in scene.video.boxes.values() for row in rows}
    return {name for name in names if name.lower() not in HANDS and name != UNNAMED}


def _exchange(example: Example, said: Iterable[str], names: set[str]) -> dict[str, str]:
    """Pair names of `said` with other names, as long as names remain. Map each pair in both directions."""
    said = sorted(said)
    free = sorted(names - set(said), key=lambda name: content_seed("false", example.example_id, name))
    renamed: dict[str, str] = {}
    for name, other in zip(said, free, strict=False):
        renamed.update({name: other, other: name})
    return renamed


def _other_ends(scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
    said = {name for fact in needed for name in fact.names if name.lower() not in HANDS}
    free = _names("relations", scene) - {scene.example.label}
    renamed = _exchange(scene.example, said, free)
    sentence = before = str(scene.example.target["sentence"])
    for name in sorted(said & renamed.keys(), key=len, reverse=True):
        sentence = sentence.replace(name, renamed[name])
    if sentence == before:
        return None
    return FalseFacts(needed, renamed, {**scene.example.target, "sentence": sentence})


def _another_segment(level: Level, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Return the facts of another activity of the video, shifted in time to the question's frames."""
    example = scene.example
    choices = {choice.text: choice for choice in ActivityInputs.of(example).choices}
    segments = [row for row in scene.video.activities if row.name in choices and row.name != example.label]
    for row in sorted(segments, key=lambda row: content_seed("false", example.example_id, row.name, row.span[0])):
        last = min(row.span[1], scene.video.frame_count - 1)
        frames = tuple(
            row.span[0] + round(index * (last - row.span[0]) / max(1, len(scene.frames) - 1))
            for index in range(len(scene.frames))
        )
        facts = facts_of(level, scene._replace(frames=frames))
        shift = scene.frames[0] - frames[0]
        moved = [fact._replace(span=(fact.span[0] + shift, fact.span[1] + shift)) for fact in facts]
        if moved and {fact.words() for fact in moved} != {fact.words() for fact in needed}:
            choice = choices[row.name]
            return FalseFacts(moved, {}, {"choice_id": choice.choice_id, "class_id": choice.class_id})
    return None
