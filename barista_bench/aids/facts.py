"""Find the facts of one level on which a question depends, and other facts of the same video in the same form."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from barista_bench.aids.graph_rows import Box, BoxRow, RelationRow, Span, VideoRows
from barista_bench.aids.levels import Level
from barista_bench.benchmarks.barista.change_detection import PART_OF, POSITION
from barista_bench.benchmarks.barista.clips import MIN_ANNOTATIONS, WINDOW
from barista_bench.benchmarks.barista.relation_answers import RelationInputs
from barista_bench.core.boxes import xywh_to_xyxy
from barista_bench.core.example import Example, GraphEvidence
from barista_bench.scene_graph.coverage import frame_ranges
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS, UNNAMED

Frames = tuple[int, ...]
_CONTACTS, _PLACES = "action_transition", "relation_change"
THE_OBJECT: Final = "the object in the box"
ANOTHER_OBJECT: Final = "an object outside the box"
_SAME_PLACE: Final = 0.5
"""Minimum IoU of two boxes of an object that count as the same fact."""


class Fact(NamedTuple):
    """One line of an aid.

    Args:
        names: the names that a false aid can exchange.
        parts: the pieces of the text. An integer is an index into `names`.
        span: the frames where the fact holds.
        about: a key of the content that does not depend on time. A fact with the key of a needed fact cannot be a
            control, unless its box is elsewhere.
        box: box in pixels.
    """

    names: tuple[str, ...]
    parts: tuple[str | int, ...]
    span: Span
    about: tuple[str, ...]
    box: Box | None = None

    def words(self, renamed: Mapping[str, str] | None = None) -> str:
        """Return the text without the box and the time."""
        names = [(renamed or {}).get(name, name) for name in self.names]
        return "".join(names[part] if isinstance(part, int) else part for part in self.parts)


class QuestionScene(NamedTuple):
    """A question, its video, and the frames that the facts describe."""

    example: Example
    video: VideoRows
    frames: Frames

    @property
    def span(self) -> Span:
        """Return the frames from first to last. A clip also includes the windows of change detection at both ends."""
        around = WINDOW if len(self.frames) > 1 else 0
        return max(0, self.frames[0] - around), min(self.video.frame_count, self.frames[-1] + around + 1)


def graph_evidence(example: Example) -> GraphEvidence | None:
    """Return the part of a graph from which an example of another benchmark was generated, or None."""
    graph = example.evidence.get("graph")
    return GraphEvidence.read(graph) if isinstance(graph, dict) else None


def is_traced(example: Example) -> bool:
    """Return whether the example comes from a known graph: a BARISTA example, or a generated example with its graph."""
    return example.benchmark == "barista" or graph_evidence(example) is not None


def graph_video(example: Example) -> str:
    """Return the id of the example's video in the graph."""
    graph = graph_evidence(example)
    return graph.video_id if graph else example.video_id


def shown_frames(example: Example) -> Frames:
    """Return the frames of a question. For a clip, return all keyframes, including keyframes that are not shown.

    For a generated question, these are frames of the graph's video. The question may show only a clip of this video.
    """
    if graph := graph_evidence(example):
        return tuple(graph.frames)
    keyframes = example.metadata.get("original_frame_indices")
    frames = keyframes if isinstance(keyframes, list) else [frame.frame_index for frame in example.frames]
    return tuple(int(frame) for frame in frames)


def facts_of(level: Level, scene: QuestionScene) -> list[Fact]:
    """Return the facts of a level at the frames of a scene, without duplicates, sorted by `sort_facts`."""
    return sort_facts(dict.fromkeys(_FACTS[level](scene)))


def sort_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Sort facts by names and time, so that the order of lines in an aid reveals nothing."""
    return sorted(facts, key=lambda fact: (fact.names, fact.span))


def unneeded_facts(level: Level, scene: QuestionScene, needed: Sequence[Fact]) -> list[Fact]:
    """Return true facts of the same video and form that do not repeat a needed fact. The content fixes their order."""
    known = {fact.about for fact in needed}
    pool: dict[Fact, None] = {}
    for frames in other_moments(scene):
        moved = scene._replace(frames=frames)
        found = _items(moved) if scene.example.task == "relations" else _FACTS[level](moved)
        pool.update(dict.fromkeys(fact for fact in found if fact.about not in known or _is_elsewhere(fact, needed)))
        if len(pool) > 20 * len(needed):
            break
    shuffled = sorted(pool, key=lambda fact: content_digest(scene.example.example_id, fact))
    times_said: Counter[tuple[str, ...]] = Counter()
    rank = dict[Fact, int]()
    for fact in shuffled:
        rank[fact] = times_said[fact.about]
        times_said[fact.about] += 1
    return sorted(shuffled, key=lambda fact: rank[fact])  # first facts about all things come before second facts


def content_digest(*parts: object) -> bytes:
    """Return a sort key that depends only on content."""
    return hashlib.sha256(repr(parts).encode()).digest()


def other_moments(scene: QuestionScene) -> Iterator[Frames]:
    """Yield the scene's frames shifted to other times in the video, without overlap. The content fixes the order."""
    first, (low, high) = scene.frames[0], scene.span
    length = high - low
    starts = range(0, scene.video.frame_count - (scene.frames[-1] - first), max(1, min(5, length)))
    moved = [start for start in starts if abs(start - first) >= length + scene.video.fps]
    for start in sorted(moved, key=lambda start: content_digest(scene.example.example_id, start)):
        yield tuple(frame - first + start for frame in scene.frames)


def _is_elsewhere(fact: Fact, needed: Sequence[Fact]) -> bool:
    """Return whether the fact's box lies apart from every needed box of the same object."""
    box = fact.box
    if box is None:
        return False
    return all(other.box is None or _iou(box, other.box) < _SAME_PLACE for other in needed if other.about == fact.about)


def _iou(a: Box, b: Box) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(0.0, width) * max(0.0, height)
    total = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - common
    return common / total if total > 0 else 0.0


def _objects(scene: QuestionScene) -> Iterator[Fact]:
    """Yield a frame's marked objects, or the named objects at both ends of a clip, with boxes."""
    if scene.example.task == "relations":
        yield from _marks(scene)
        return
    for frame in dict.fromkeys((scene.frames[0], scene.frames[-1])):
        for row in scene.video.boxes.get(frame, ()):
            if row.category != UNNAMED:
                yield Fact((row.category,), (0,), (frame, frame + 1), (row.object_id,), row.box)


def _marks(scene: QuestionScene) -> Iterator[Fact]:
    (frame,) = scene.frames
    for item in RelationInputs.of(scene.example).objects:
        box = xywh_to_xyxy(item.bbox)
        yield Fact((item.category,), (mark_text(item.mark), 0), (frame, frame + 1), (item.object_id,), box)


def mark_text(mark: int) -> str:
    """Return the text before the name of a marked object."""
    return f"mark {mark}: "


def _items(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the objects of another frame as numbered items, since that frame has no marks."""
    (frame,) = scene.frames
    for number, row in enumerate(scene.video.boxes.get(frame, ()), start=1):
        yield Fact((row.category,), (f"item {number}: ", 0), (frame, frame + 1), (row.object_id,), row.box)


def instance_labels(scene: QuestionScene) -> dict[str, str]:
    """Map object ids to names on one frame. Objects with the same name are numbered from left to right.

    On the question's frame these are the objects of the phrase's category. On another frame these are all other
    objects.
    """
    (frame,) = scene.frames
    groups: dict[str, list[BoxRow]] = {}
    for row in scene.video.boxes.get(frame, ()):
        if row.category != UNNAMED and (row.category == scene.example.inputs["category"]) == _is_shown(scene):
            groups.setdefault(row.category, []).append(row)
    return {
        row.object_id: name if len(rows) == 1 else f"{name} {number} from the left"
        for name, rows in groups.items()
        for number, row in enumerate(sorted(rows, key=lambda row: (row.box, row.object_id)), start=1)
    }


def _is_shown(scene: QuestionScene) -> bool:
    return scene.frames[0] == scene.example.frames[0].frame_index


def _states_of_instances(scene: QuestionScene) -> Iterator[Fact]:
    (frame,), labels = scene.frames, instance_labels(scene)
    for row in scene.video.states:
        if row.object_id in labels and row.span[0] <= frame < row.span[1]:
            parts = (0, f": {row.kind} {row.value}")
            yield Fact((labels[row.object_id],), parts, (frame, frame + 1), (row.object_id, row.kind, row.value))


def _relations_of_instances(scene: QuestionScene) -> Iterator[Fact]:
    (frame,), labels = scene.frames, instance_labels(scene)
    for row in scene.video.relations:
        if {row.source_id, row.target_id} & labels.keys() and _find_holding_spans(scene, row):
            names = (labels.get(row.source_id, row.source), labels.get(row.target_id, row.target))
            yield _relation(row, (frame, frame + 1))._replace(names=names)


def _states(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the states at both ends of a clip, for objects whose states change somewhere in the video."""
    if scene.example.task == "grounding":
        yield from _states_of_instances(scene)
        return
    values: dict[tuple[str, str], set[str]] = {}
    for row in scene.video.states:
        values.setdefault((row.object_id, row.kind), set()).add(row.value)
    span = scene.span
    for row in scene.video.states:
        part = _common(row.span, span)
        if part and len(values[row.object_id, row.kind]) > 1 and _is_persistent(scene, row.object_id):
            parts = (0, f": {row.kind} {row.value}")
            yield Fact((row.category,), parts, part, (row.object_id, row.kind, row.value))


def _is_persistent(scene: QuestionScene, object_id: str) -> bool:
    ends = [(frame - WINDOW, frame + WINDOW + 1) for frame in (scene.frames[0], scene.frames[-1])]
    counts = [sum(high - low for low, high in scene.video.seen(end, object_id)) for end in ends]
    return min(counts) >= MIN_ANNOTATIONS


def _relations(scene: QuestionScene) -> Iterator[Fact]:
    if scene.example.task == "grounding":
        yield from _relations_of_instances(scene)
    elif scene.example.task == "referring":
        yield from _relations_of_object(scene)
    elif scene.example.target.get("category") == _CONTACTS:
        yield from _contacts(scene)
    else:
        for row in scene.video.relations:
            if row.kind == POSITION and row.value != PART_OF and _is_persistent(scene, row.source_id):
                for part in _find_holding_spans(scene, row):
                    yield _relation(row, part)


def _contacts(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the objects that hands touch, and the times at which a visible hand touches nothing."""
    hands = {row.object_id: row.category for frame in range(*scene.span) for row in scene.video.boxes.get(frame, ())}
    for hand_id, hand in hands.items():
        if hand.lower() not in HANDS:
            continue
        contacts = [row for row in scene.video.relations if row.source_id == hand_id and row.kind == HAND_RELATION]
        busy: set[int] = set()
        for row in contacts:
            for part in _find_holding_spans(scene, row):
                busy.update(range(*part))
                yield _relation(row, part)
        for low, high in scene.video.seen(scene.span, hand_id):
            for part in frame_ranges(np.array([frame for frame in range(low, high) if frame not in busy])):
                yield Fact((hand,), (0, " touches nothing at all"), part, (hand_id, "nothing", str(part)))


def _relations_of_object(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the described object's relations without its name.

    At another moment, yield the relations of other objects.
    """
    (frame,) = scene.frames
    described = str(scene.example.evidence["object_ids"][0])  # type: ignore[index]
    is_shown = _is_shown(scene)
    for row in scene.video.relations:
        if not row.span[0] <= frame < row.span[1] or not _find_holding_spans(scene, row):
            continue
        if is_shown == (described in (row.source_id, row.target_id)):
            of_source = row.source_id == described or not is_shown
            name = THE_OBJECT if is_shown else ANOTHER_OBJECT
            about = (row.source_id, row.value, row.target_id)
            parts = (name, f" {_verb(row.value)} ", 0) if of_source else (0, f" {_verb(row.value)} ", name)
            yield Fact((row.target if of_source else row.source,), parts, (frame, frame + 1), about)


def _relation(row: RelationRow, part: Span) -> Fact:
    about = (row.source_id, row.value, row.target_id)
    return Fact((row.source, row.target), (0, f" {_verb(row.value)} ", 1), part, about)


def _verb(value: str) -> str:
    return value if value.split(" ")[0].endswith("s") else f"is {value}"


def _find_holding_spans(scene: QuestionScene, row: RelationRow) -> list[Span]:
    part = _common(row.span, scene.span)
    return scene.video.seen(part, row.source_id, row.target_id) if part else []


def _activities(scene: QuestionScene) -> Iterator[Fact]:
    for row in scene.video.activities:
        part = _common((row.span[0], row.span[1] + 1), scene.span)
        if part and row.name:
            yield Fact((row.name,), (0,), part, (row.name,))


def _common(a: Span, b: Span) -> Span | None:
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low < high else None


_FACTS: Mapping[Level, Callable[[QuestionScene], Iterator[Fact]]] = {
    "objects": _objects,
    "states": _states,
    "relations": _relations,
    "activities": _activities,
}
