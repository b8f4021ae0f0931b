"""Make false facts: exchange boxes or names in the needed facts, and find the answer that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from barista_bench.aids.facts import Fact, Scene, facts_of, mark_text
from barista_bench.aids.levels import Level
from barista_bench.benchmarks.barista.activity_choices import ActivityInputs
from barista_bench.benchmarks.barista.change_detection import Category, Change
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.core.example import Fields, content_seed
from barista_bench.core.task import Example
from barista_bench.scene_graph.video_graph import HANDS, UNNAMED


class FalseFacts(NamedTuple):
    """False facts, the names to exchange in their text, and the target that follows from them."""

    facts: Sequence[Fact]
    renamed: Mapping[str, str]
    target: Fields


def false_facts(level: Level, scene: Scene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Return the false facts of a level; None where no other answer would follow."""
    match scene.example.task:
        case "relations":
            return _moved_boxes(scene, needed)
        case "temporal_vqa":
            return _exchanged_names(level, scene, needed)
        case "referring":
            return _other_ends(scene, needed)
        case "activity":
            return _another_segment(level, scene, needed)
    return None


def _moved_boxes(scene: Scene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Give each mark that has a relation the box of the next such mark; the relations move with the boxes."""
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


def _exchanged_names(level: Level, scene: Scene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Exchange names in the answer with other names of the video; only answers from a template can be rewritten."""
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


def _names(level: Level, scene: Scene) -> set[str]:
    """Return the names in the video that can replace a name of this level."""
    if level == "activities":
        return {row.name for row in scene.video.activities if row.name}
    names = {row.category for rows in scene.video.boxes.values() for row in rows}
    return {name for name in names if name.lower() not in HANDS and name != UNNAMED}


def _exchange(example: Example, said: Iterable[str], names: set[str]) -> dict[str, str]:
    """Pair names of `said` with other names, as far as there are enough; map each pair in both directions."""
    said = sorted(said)
    free = sorted(names - set(said), key=lambda name: content_seed("false", example.example_id, name))
    renamed: dict[str, str] = {}
    for name, other in zip(said, free, strict=False):
        renamed.update({name: other, other: name})
    return renamed


def _other_ends(scene: Scene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Rename the objects to which the described object is related."""
    said = {name for fact in needed for name in fact.names if name.lower() not in HANDS}
    free = _names("relations", scene) - {scene.example.label}
    renamed = _exchange(scene.example, said, free)
    sentence = before = str(scene.example.target["sentence"])
    for name in sorted(said & renamed.keys(), key=len, reverse=True):
        sentence = sentence.replace(name, renamed[name])
    if sentence == before:
        return None
    return FalseFacts(needed, renamed, {**scene.example.target, "sentence": sentence})


def _another_segment(level: Level, scene: Scene, needed: Sequence[Fact]) -> FalseFacts | None:
    """Return the facts of another activity of the video, shifted to the times of the question's frames."""
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
