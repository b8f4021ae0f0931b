"""The part of the graph that each generated question comes from, in one form for all benchmarks (`GraphEvidence`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from barista_bench.core.example import GraphEvidence, GraphRow, Visibility
from barista_bench.generate.candidates import Item, QuestionCandidate, by_video
from barista_bench.generate.difficulty import Topic, actions_of, strings_in
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import SIDES
from barista_bench.generate.statements import AllOf, Statement
from barista_bench.generate.tog_bench.statements import BroughtAbout
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain


def graph_rows(items: Mapping[str, Item], source: SceneGraph, domain: Domain) -> dict[str, GraphRow]:
    """Return the graph evidence of items, by the items' names in the release."""
    scenes = {video_id: Scene(source[video_id], domain) for video_id, _ in by_video(items.values())}
    return {name: graph_row(item.candidate, scenes[item.candidate.video_id]) for name, item in items.items()}


def graph_row(candidate: QuestionCandidate, scene: Scene) -> GraphRow:
    """Return the graph evidence of one question.

    It has the objects asked about, the objects that right answers name, and the objects of the right actions.
    """
    topic = Topic(candidate, scene)
    object_ids = dict.fromkeys((*topic.objects, *_objects_of_actions(candidate, scene)))
    topic.objects = tuple(object_ids)
    return GraphRow(
        GraphEvidence(candidate.video_id, sorted(set(_frames(candidate))), list(object_ids)),
        Visibility(topic.area(), topic.seconds(), topic.hidden()),
        sorted({fact for statement in _stated(candidate) for fact in facts_of(statement, scene)}),
    )


def _stated(candidate: QuestionCandidate) -> Iterator[Statement]:
    statements = [choice.statement for choice in candidate.right]
    statements += [each for each in candidate.given if each.is_of_touch or isinstance(each, BroughtAbout)]
    for statement in statements:
        yield from statement.parts if isinstance(statement, AllOf) else (statement,)


def facts_of(statement: Statement, scene: Scene) -> Iterator[str]:
    """Return the rows of the annotation file that make a statement true, as in `TracedEvidence.facts`."""
    content = {"start": None, "other": None, "predicate": None, **msgspec.structs.asdict(statement)}
    if (first := content["start"] if content["start"] is not None else content.get("frame")) is None:
        spans = content.get("spans", ())
    else:
        spans = [(first, content.get("end", first + 1))]
    objects = {text for text in strings_in(msgspec.to_builtins(statement)) if text in scene.things}
    values = {content.get("value"), content.get("after"), *content.get("values", ())}
    hands = {hand for side in SIDES for hand in scene.hands[side]}
    for span in spans:
        for row in scene.video.relations(span):
            is_touch = statement.is_of_touch and row.source.id in hands and row.target.id in objects
            is_place = (row.source.id, row.target.id) == (content.get("object"), content["other"])
            if is_touch or (is_place and row.value in {content["predicate"], content.get("value")}):
                yield f"relation:{row.row}"
        for attribute in scene.video.attributes(span):
            if attribute.object.id in objects and attribute.value in values:
                yield f"attribute:{attribute.row}"
        for activity in scene.video.activities(span):
            if activity.name.strip() in actions_of(statement):
                yield f"activity:{activity.row}"


def _objects_of_actions(candidate: QuestionCandidate, scene: Scene) -> Iterator[str]:
    for choice in candidate.right:
        for action in actions_of(choice.statement):
            yield from sorted(thing.id for thing in scene.things_done_to(action))


def _frames(candidate: QuestionCandidate) -> tuple[int, ...]:
    """Return the moments asked about, or else the first and last frame of each clip that is shown, or of the span."""
    if spans := candidate.extra.get("spans"):
        return tuple(frame for start, end in spans for frame in (start, end - 1))
    start, end = candidate.span
    return (*candidate.frames, *candidate.extra.get("annotated", ())) or (start, end - 1)
