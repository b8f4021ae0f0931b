"""Say what relation extraction allows as aids: the name and box of every mark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.false_facts import FalseFacts
from barista_bench.aids.levels import LevelName
from barista_bench.aids.task_aids import TaskAids
from barista_bench.benchmarks.barista.relation_answers import RelationInputs
from barista_bench.core.boxes import xywh_to_xyxy
from barista_bench.core.task import Example


class RelationsAids(TaskAids):
    """Facts name marks on the question's frame. Other frames have no marks, so their objects are numbered items."""

    def facts(self, level: LevelName, scene: QuestionScene) -> Iterator[Fact]:
        (frame,) = scene.frames
        span = (frame, frame + 1)
        if scene.is_shown:
            for item in RelationInputs.of(scene.example).objects:
                box = xywh_to_xyxy(item.bbox)
                yield Fact((item.category,), (_mark_text(item.mark), 0), span, (item.object_id,), box)
        else:
            for number, row in enumerate(scene.boxes(frame), start=1):
                yield Fact((row.category,), (f"item {number}: ", 0), span, (row.object_id,), row.box)

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
