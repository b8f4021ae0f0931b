"""Hold the facts of a question's video, and find their controls: other facts of the same form, and exchanged names."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from barista_bench.aids.graph_rows import Box, BoxRow, GraphRows, RelationRow, Span
from barista_bench.core.example import Example, Fields, content_seed
from barista_bench.metrics.interaction_f1.scoring import box_iou
from barista_bench.scene_graph.video_graph import HANDS, UNNAMED, WINDOW

Frames = tuple[int, ...]
_SAME_PLACE = 0.5
"""Minimum IoU of two boxes of an object that count as the same fact."""
_OVERLAP = 0.1
"""Maximum fraction of an area elsewhere that may be evidence."""
_STEPS = 16
TOLERANCE = 0.1
"""Maximum difference in words between an inert aid and the true aid, as a fraction of the true aid."""


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
    video: GraphRows
    frames: Frames

    @property
    def span(self) -> Span:
        """Return the frames from first to last. A clip also includes the windows of its keyframes at both ends."""
        around = WINDOW if len(self.frames) > 1 else 0
        return max(0, self.frames[0] - around), min(self.video.frame_count, self.frames[-1] + around + 1)

    @property
    def ends(self) -> Frames:
        """Return the first and the last frame, or the only frame."""
        return tuple(dict.fromkeys((self.frames[0], self.frames[-1])))

    @property
    def is_shown(self) -> bool:
        """Return whether this is the moment that the question shows, and not another moment of the video."""
        return self.frames[0] == self.example.frames[0].frame_index

    def boxes(self, frame: int, object_ids: Collection[str] | None = None) -> list[BoxRow]:
        """Return the boxes on a frame: those of the given objects, or all."""
        rows = self.video.boxes.get(frame, ())
        return [row for row in rows if object_ids is None or row.object_id in object_ids]

    def common(self, span: Span) -> Span | None:
        """Return the part of a span of frames that lies in the scene."""
        low, high = max(span[0], self.span[0]), min(span[1], self.span[1])
        return (low, high) if low < high else None

    def spans_in_view(self, row: RelationRow) -> list[Span]:
        """Return the parts of the scene where a relation holds and both its objects have a box."""
        part = self.common(row.span)
        return self.video.seen(part, row.source_id, row.target_id) if part else []


Finder = Callable[[QuestionScene], Iterable[Fact]]
"""Finds the facts of one level at the frames of a scene."""


def asked_frames(example: Example) -> Frames:
    """Return the frames of a question. For a clip, return all keyframes, including keyframes that are not shown.

    For a generated question, these are frames of the graph's video. The question may show only a clip of this video.
    """
    graph = example.evidence.get("graph")
    frames = graph["frames"] if isinstance(graph, dict) else example.metadata.get("original_frame_indices")
    return tuple(frames if isinstance(frames, list) else [frame.frame_index for frame in example.frames])


def sort_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Sort facts by names and time, without duplicates, so that the order of lines in an aid reveals nothing."""
    return sorted(dict.fromkeys(facts), key=lambda fact: (fact.names, fact.span))


def alike_facts(scene: QuestionScene, needed: Sequence[Fact], find: Finder) -> list[Fact]:
    """Return as many unneeded facts as needed facts, of about the same length, or none if the video lacks them."""
    return _choose_alike(needed, _unneeded_facts(scene, needed, find))


def _unneeded_facts(scene: QuestionScene, needed: Sequence[Fact], find: Finder) -> list[Fact]:
    """Return true facts of the same video and form that do not repeat a needed fact. The content fixes their order."""
    known = {fact.about for fact in needed}
    pool: dict[Fact, None] = {}
    for frames in other_moments(scene):
        found = find(scene._replace(frames=frames))
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
    same = [other.box for other in needed if other.about == fact.about]
    return all(other is None or box_iou(box, other) < _SAME_PLACE for other in same)


def _choose_alike(needed: Sequence[Fact], pool: Sequence[Fact]) -> list[Fact]:
    """Pick a fact of the pool for each needed fact, of about the same length and preferably with the same names.

    Return an empty list if the pool is too small or the total length differs by more than `TOLERANCE`.
    """
    left, chosen = list(pool), []
    lengths = {fact: len(fact.words().split()) + 2 * (fact.span[1] - fact.span[0] > 1) for fact in (*needed, *pool)}
    surplus = 0
    for fact in needed:
        if not left:
            return []
        wanted = lengths[fact] - surplus
        best = min(
            range(len(left)),
            key=lambda index: (abs(lengths[left[index]] - wanted), left[index].names != fact.names, index),
        )
        surplus += lengths[left[best]] - lengths[fact]
        chosen.append(left.pop(best))
    return sort_facts(chosen) if abs(surplus) <= TOLERANCE * sum(lengths[fact] for fact in needed) else []


def elsewhere(box: Box, evidence: Sequence[Box], size: tuple[int, int], key: str) -> Box | None:
    """Return an area of the box's size of which at most a tenth is evidence, or None if the frame has no such area.

    Args:
        size: (width, height) of the frame in pixels.
        key: determines the choice among possible areas.
    """
    width, height = box[2] - box[0], box[3] - box[1]
    places = [(x, y, x + width, y + height) for x in _steps(size[0] - width) for y in _steps(size[1] - height)]
    most = _OVERLAP * width * height
    free = [place for place in places if all(common_area(place, other) <= most for other in evidence)]
    return min(free, key=lambda place: content_digest(key, place), default=None)


def _steps(room: float) -> list[float]:
    return [float(int(room * step / _STEPS)) for step in range(_STEPS + 1)] if room >= 0 else []


def common_area(a: Box, b: Box) -> float:
    """Return the area that two boxes have in common."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def widened(box: Box, margin: float, size: tuple[float, float]) -> Box:
    """Return the box with a margin on each side, inside the frame. `margin` is a fraction of the box's own sides."""
    across, down = margin * (box[2] - box[0]), margin * (box[3] - box[1])
    x0, y0, x1, y1 = box[0] - across, box[1] - down, box[2] + across, box[3] + down
    return max(0.0, x0), max(0.0, y0), min(size[0], x1), min(size[1], y1)


class FalseFacts(NamedTuple):
    """False facts, the names to exchange in their text, and the target that follows from these facts."""

    facts: Sequence[Fact]
    renamed: Mapping[str, str]
    target: Fields


def object_names(scene: QuestionScene) -> set[str]:
    """Return the names of all objects of the video, without hands."""
    names = {row.category for rows in scene.video.boxes.values() for row in rows}
    return {name for name in names if name.lower() not in HANDS and name != UNNAMED}


def exchange_names(example: Example, said: Iterable[str], names: set[str]) -> dict[str, str]:
    """Pair names of `said` with other names, as long as names remain. Map each pair in both directions."""
    said = sorted(said)
    free = sorted(names - set(said), key=lambda name: content_seed("false", example.example_id, name))
    renamed: dict[str, str] = {}
    for name, other in zip(said, free, strict=False):
        renamed.update({name: other, other: name})
    return renamed
