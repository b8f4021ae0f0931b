"""What changes within a clip, read from the graph: four detectors (paper, sections 4.2.2 and A.3.3; upstream.md 1.10).

A clip is a few keyframes; its first and last windows are the frames within 2 of the first and of the last keyframe. An
object is persistent if it has a box on 2 or more frames of both. Detectors are pure: one clip in, its changes out, in
canonical order. Objects of category `unknown` are passed over everywhere.

Ranges are half-open but for activities, whose end frame counts here as in the release.

Where the sources are silent:
* a window is cut at the ends of the video, and shares of it are of the frames that are left;
* an attribute without a value on a frame counts as `no value` there; of values that are equally frequent, one that is
  stated goes before none, and what the file states first goes before the rest;
* `opened` and `closed` need another stated value before; starting and stopping do not need a stated value on the other
  side;
* a hand touches a category at a keyframe if it does so on more than half of the frames within 2 of it. Touching nothing
  is an entry of its hand's timeline;
* both ends of a relation must be persistent, and the frames of its stability are those on which its source is seen;
* activities without a class do not count; those that go on at all keyframes are listed as `continuing`, and a category
  with nothing but those has no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS, UNNAMED, Ranges
from barista_bench.task import Sampling

Category = Literal["state_change", "action_transition", "relation_change", "activity_progression"]
CATEGORIES: tuple[Category, ...] = ("state_change", "action_transition", "relation_change", "activity_progression")
WINDOW = 2
"""Frames before and after a keyframe."""
PERSISTENT = 2
"""Frames of a window on which a persistent object has a box, at the least."""
POSITION, PART_OF = "position", "part of"
SWITCHED = {"open": "opened", "close": "closed"}
RUNNING = ("extracting", "rinsing")
_NAMED = {*SWITCHED, *RUNNING}


class Change(TypedDict):
    """One change, or one entry of a timeline, as evidence.

    category: the question's category, one of `CATEGORIES`.
    kind: `opened`, `closed`, `started extracting` ...; `contact`; `new` or `lost`; `started`, `ended` or `continuing`.
    subject: category of the object, the hand, the relation's source, or the activity's display name.
    value: the relation's value, else empty.
    objects: categories touched, or the relation's target.
    object_ids: all objects meant; for an activity, those that a hand acts on from `start` to `end`.
    rows: places in the file's `attributes`, `relations` or `activities`, by category.
    start, end: the keyframes between which it happens, or at which it holds; both included.
    """

    category: Category
    kind: str
    subject: str
    value: str
    objects: list[str]
    object_ids: list[str]
    rows: list[int]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Clip:
    """`index` counts the clips of a video; `keyframes` are frame indices."""

    index: int
    keyframes: tuple[int, ...]


def clips(video: VideoGraph, sampling: Sampling) -> Iterator[Clip]:
    """Clips that lie within the video and the sampled frame range whole, one after the other without overlap."""
    low, high = sampling.frame_range or (0, video.frame_count)
    length = sampling.frames * sampling.spacing
    for index, start in enumerate(range(0, min(high, video.frame_count), length)):
        keyframes = tuple(range(start, start + length, sampling.spacing))
        if start >= low and keyframes[-1] < min(high, video.frame_count):
            yield Clip(index, keyframes)


class _Held(NamedTuple):
    """A relation range and the frames of the clip on which it holds; ends are indices of `VideoGraph.objects`."""

    source: int
    target: int
    type: str
    value: str
    row: int
    frames: NDArray[np.bool_]


class ClipView:
    """One clip's part of the graph as boolean arrays (object or range, frame), for the detectors.

    `ends` are the columns of the first and of the last window.
    """

    def __init__(self, video: VideoGraph, clip: Clip) -> None:
        self.video, self.clip = video, clip
        self.low = max(0, clip.keyframes[0] - WINDOW)
        self.high = min(video.frame_count, clip.keyframes[-1] + WINDOW + 1)
        self.frames = np.arange(self.low, self.high)
        table = video.instances_table
        part = table.slice((self.low, self.high))
        self.seen = np.zeros((len(video.objects), len(self.frames)), dtype=bool)
        self.seen[table.object[part], table.frame[part] - self.low] = True
        self.ends = (self.window(clip.keyframes[0]), self.window(clip.keyframes[-1]))
        self.known = np.array([item.category != UNNAMED for item in video.objects], dtype=bool)
        first, last = (self.seen[:, part].sum(axis=1) >= PERSISTENT for part in self.ends)
        self.persistent: NDArray[np.bool_] = self.known & first & last

    def window(self, keyframe: int) -> slice:
        """The columns within `WINDOW` frames of a keyframe."""
        return slice(max(self.low, keyframe - WINDOW) - self.low, min(self.high, keyframe + WINDOW + 1) - self.low)

    def stated(self, table: Ranges, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(positions, frames): which ranges of an attribute or relation table cover which frames."""
        start, end = table.start[positions, None], table.end[positions, None]
        return (start <= self.frames) & (self.frames < end)

    @cached_property
    def relations(self) -> list[_Held]:
        """Relation ranges that hold somewhere in the clip, between objects that are not `unknown`."""
        table = self.video.relations_table
        positions = table.active((self.low, self.high))
        source, target = table.source[positions], table.target[positions]
        holds = self.stated(table, positions) & self.seen[source] & self.seen[target]
        kept = np.flatnonzero(holds.any(axis=1) & self.known[source] & self.known[target])
        held = []
        for i, position in zip(kept.tolist(), positions[kept].tolist(), strict=True):
            kind, value, _, _, row = table.entry(position)
            held.append(_Held(int(source[i]), int(target[i]), kind, value, row, holds[i]))
        return held

    def category(self, index: int) -> str:
        return self.video.objects[index].category

    def is_contact(self, relation: _Held) -> bool:
        return relation.type == HAND_RELATION and self.category(relation.source).lower() in HANDS


def detect_changes(video: VideoGraph, clip: Clip) -> dict[Category, list[Change]]:
    """The changes of each category that has any, in the order of `CATEGORIES`."""
    view = ClipView(video, clip)
    detectors = (state_changes, action_transitions, relation_changes, activity_progression)
    found = ((category, detect(view)) for category, detect in zip(CATEGORIES, detectors, strict=True))
    return {category: changes for category, changes in found if changes}


def state_changes(view: ClipView) -> list[Change]:
    """Persistent objects whose usual value of an attribute differs between the windows, where that has a name."""
    table = view.video.attributes_table
    positions = table.active((view.low, view.high))
    groups: dict[tuple[int, str], list[int]] = {}
    for position in positions[view.persistent[table.source[positions]]].tolist():
        kind, _ = table.labels[table.label[position]]
        groups.setdefault((int(table.source[position]), kind), []).append(position)
    found = []
    for (index, _), group in groups.items():
        values = [table.labels[table.label[position]][1] for position in group]
        if not _NAMED & set(values):
            continue
        stated = view.stated(table, np.array(group)) & view.seen[index]
        before, after = (_usual(values, stated[:, part], view.seen[index, part]) for part in view.ends)
        touched = stated[:, view.ends[0]].any(axis=1) | stated[:, view.ends[1]].any(axis=1)
        rows = {
            int(table.row[p])
            for p, value, used in zip(group, values, touched, strict=True)
            if used and value in (before, after)
        }
        item = view.video.objects[index]
        found += [
            _change(view, "state_change", kind, item.category, [item.id], rows) for kind in _names_of(before, after)
        ]
    return sorted(found, key=_order)


def action_transitions(view: ClipView) -> list[Change]:
    """For each hand that touches different things at different keyframes: its timeline, equal entries merged."""
    found = []
    for hand in HANDS:
        contacts = [r for r in view.relations if view.is_contact(r) and view.category(r.source).lower() == hand]
        by_category: dict[str, NDArray[np.bool_]] = {}
        for contact in contacts:
            category = view.category(contact.target)
            by_category[category] = by_category.get(category, False) | contact.frames
        timeline = groupby(view.clip.keyframes, key=lambda keyframe: _touched(view, keyframe, by_category))
        runs = [(categories, list(keyframes)) for categories, keyframes in timeline]
        for categories, keyframes in runs if len(runs) > 1 else ():
            used = [
                contact
                for contact in contacts
                if view.category(contact.target) in categories
                and any(contact.frames[view.window(keyframe)].any() for keyframe in keyframes)
            ]
            ids = dict.fromkeys(view.video.objects[end].id for c in used for end in (c.source, c.target))
            rows = [contact.row for contact in used]
            span = (keyframes[0], keyframes[-1])
            found.append(_change(view, "action_transition", "contact", hand, ids, rows, objects=categories, span=span))
    return found


def relation_changes(view: ClipView) -> list[Change]:
    """Relations of place between persistent objects that are stable in one of the windows only."""
    groups: dict[tuple[int, str, int], tuple[NDArray[np.bool_], list[int]]] = {}
    for source, target, kind, value, row, frames in view.relations:
        if kind == POSITION and value != PART_OF and view.persistent[source] and view.persistent[target]:
            holds, rows = groups.get((source, value, target), (frames, []))
            groups[source, value, target] = (holds | frames, [*rows, row])
    found = []
    for (source, value, target), (holds, rows) in groups.items():
        before, after = (2 * holds[part].sum() >= view.seen[source, part].sum() for part in view.ends)
        if before != after:
            first, second = view.video.objects[source], view.video.objects[target]
            kind, ids, objects = "new" if after else "lost", [first.id, second.id], [second.category]
            found.append(
                _change(view, "relation_change", kind, first.category, ids, rows, value=value, objects=objects)
            )
    return sorted(found, key=_order)


def activity_progression(view: ClipView) -> list[Change]:
    """Activities that end or start from one keyframe to the next; then those that go on at all of them."""
    active: list[dict[str, list[int]]] = []
    for keyframe in view.clip.keyframes:
        names: dict[str, list[int]] = {}
        for segment in view.video.activities(keyframe, inclusive=True):
            if segment.class_id is not None:
                names.setdefault(segment.name, []).append(segment.row)
        active.append(names)
    found = []
    for (start, before), (end, after) in pairwise(zip(view.clip.keyframes, active, strict=True)):
        for kind, here, there in (("ended", before, after), ("started", after, before)):
            for name in sorted(set(here) - set(there)):
                ids = _acted_on(view, start, end)
                span = (start, end)
                found.append(_change(view, "activity_progression", kind, name, ids, here[name], span=span))
    if not found:
        return []
    throughout = sorted(set.intersection(*(set(names) for names in active)))
    for name in throughout:
        rows = {row for names in active for row in names[name]}
        ids = _acted_on(view, view.clip.keyframes[0], view.clip.keyframes[-1])
        found.append(_change(view, "activity_progression", "continuing", name, ids, rows))
    return found


def _change(
    view: ClipView,
    category: Category,
    kind: str,
    subject: str,
    object_ids: Iterable[str],
    rows: Iterable[int],
    *,
    value: str = "",
    objects: Iterable[str] = (),
    span: tuple[int, int] | None = None,
) -> Change:
    """A change; without `span` it lies between the first and the last keyframe."""
    start, end = span or (view.clip.keyframes[0], view.clip.keyframes[-1])
    return Change(
        category=category,
        kind=kind,
        subject=subject,
        value=value,
        objects=list(objects),
        object_ids=list(object_ids),
        rows=sorted(set(rows)),
        start=start,
        end=end,
    )


def _acted_on(view: ClipView, start: int, end: int) -> list[str]:
    """Ids of the objects that a hand acts on at some frame from `start` to `end`, sorted."""
    part = slice(start - view.low, end + 1 - view.low)
    contacts = (item for item in view.relations if view.is_contact(item) and item.frames[part].any())
    return sorted({view.video.objects[item.target].id for item in contacts})


def _order(change: Change) -> tuple[str, ...]:
    return (change["kind"], change["subject"], change["value"], *change["objects"], *change["object_ids"])


def _usual(values: list[str], stated: NDArray[np.bool_], seen: NDArray[np.bool_]) -> str | None:
    """The most frequent value in a window; None where that is no value at all."""
    counts: dict[str, NDArray[np.bool_]] = {}
    for value, frames in zip(values, stated, strict=True):
        counts[value] = counts.get(value, np.zeros_like(frames)) | frames
    best, most = None, 0
    for value, frames in counts.items():
        if int(frames.sum()) > most:
            best, most = value, int(frames.sum())
    return best if most >= int((seen & ~stated.any(axis=0)).sum()) else None


def _names_of(before: str | None, after: str | None) -> list[str]:
    """What a change of value is called; most have no name, and then it is none for the release."""
    if before == after:
        return []
    names = [f"stopped {before}"] if before in RUNNING else []
    if after in RUNNING:
        names.append(f"started {after}")
    if after in SWITCHED and before is not None:
        names.append(SWITCHED[after])
    return names


def _touched(view: ClipView, keyframe: int, by_category: dict[str, NDArray[np.bool_]]) -> tuple[str, ...]:
    """The categories that a hand touches on most of the frames around a keyframe, sorted."""
    part = view.window(keyframe)
    frames = part.stop - part.start
    return tuple(sorted(name for name, holds in by_category.items() if 2 * np.count_nonzero(holds[part]) > frames))
