"""The part of the graph that each generated question comes from, in one form for all benchmarks (`GraphEvidence`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barista_bench.core.example import GraphEvidence, GraphRow, Visibility
from barista_bench.generate.candidates import Item, QuestionCandidate, by_video
from barista_bench.generate.difficulty import Topic, actions_of
from barista_bench.generate.scene import Scene
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
    )


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
