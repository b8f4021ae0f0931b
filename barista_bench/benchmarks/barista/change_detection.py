"""What changes within a clip, read from the graph: four detectors (BARISTA release and paper, sections 4.2.2, A.3.3).

A clip is a few keyframes; around each lies a window of the frames within 2 of it that the video has. An object is
persistent if the first and the last window hold 2 annotations of it or more. An object that no keyframe shows counts
as `unknown` in that clip, but for where it is the target of a relation. `unknown` objects have no changes of their own;
what is `unknown` can be touched, and things can be put on it. Detectors are pure: one clip in, its changes out.

Ranges are half-open but for activities, whose end frame counts here. Changes that read the same are one. The release
leaves the order of changes to hashing; here objects come in the order of the file's object table, relations sorted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.barista.common import domain_of
from barista_bench.core.deriving import Sampling
from barista_bench.core.example import Int64, TypedFields
from barista_bench.errors import DataError
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS, UNNAMED, Ranges

Category = Literal["state_change", "action_transition", "relation_change", "activity_progression"]
CATEGORIES: tuple[Category, ...] = ("state_change", "action_transition", "relation_change", "activity_progression")
Keyframes = tuple[int, ...]
"""Frame indices of a clip; the first of them is the clip's index."""
WINDOW = 2
"""Frames before and after a keyframe."""
PERSISTENT = 2
"""Annotations of a persistent object in a window, at the least."""
POSITION, PART_OF = "position", "part of"
_RUNNING = ("extracting", "rinsing")
_IDENTIFIER = re.compile(r"\s*\(#[0-9a-f][^)]*\)", re.IGNORECASE)
"""An id that a display name carries, such as ` (#9492f2cd)`."""


class Change(TypedFields):
    """One change, or one part of it, as evidence.

    category: the question's category, one of `CATEGORIES`.
    number: which of the clip's changes of the category this is part of, from 0: a hand's timeline, all relations that
        an object gains and loses, and the activities of two keyframes are one change each.
    kind: `opened`, `closed`, `started extracting` ...; `contact`; `new` or `lost`; `ended`, `started` or `continuing`.
    subject: category of the object, the hand, the relation's source, or the activity's name.
    value: the relation's value, else empty.
    objects: categories touched, or the relation's target.
    object_ids: all objects meant; for an activity, those that a hand acts on around the keyframes of `start` to `end`.
    rows: places in the file's `attributes`, `relations` or `activities`, by category.
    start, end: the keyframes between which it happens, or at which it holds; both included.
    """

    category: str
    kind: str
    subject: str
    value: str
    number: int
    objects: list[str]
    object_ids: list[str]
    rows: list[Int64]
    start: Int64
    end: Int64


def clips(video: VideoGraph, sampling: Sampling) -> Iterator[Keyframes]:
    """Clips one after the other without overlap; the last one may be shorter, but not below 2 keyframes.

    With a sampled frame range, those that lie entirely in it.
    """
    low, high = sampling.frame_range or (0, video.frame_count)
    spacing = _spacing(video, sampling)
    length = sampling.frames * spacing
    for start in range(0, video.frame_count, length):
        keyframes = tuple(range(start, min(start + length, video.frame_count), spacing))
        if len(keyframes) > 1 and start >= low and keyframes[-1] < high:
            yield keyframes


def _spacing(video: VideoGraph, sampling: Sampling) -> int:
    """Frames between two keyframes: as released, or so many that a clip lasts `sampling.seconds` at any frame rate."""
    if sampling.seconds is None:
        return sampling.spacing
    if not video.video.fps:
        raise DataError(f"{video.video_id}: has no fps. Remedy: give it in video_metadata, or leave seconds out")
    return max(1, round(sampling.seconds * video.video.fps / max(1, sampling.frames - 1)))


class _Held(NamedTuple):
    """A relation range and the frames of the clip on which it holds; ends are indices of `VideoGraph.objects`."""

    source: int
    target: int
    type: str
    value: str
    row: int
    frames: NDArray[np.bool_]


class ClipView:
    """One clip's part of the graph as arrays (object or range, frame), for the detectors.

    `frames` are those of all windows; `end_windows` are the columns of the first and of the last window; `categories`
    are those that objects have here, by index of `VideoGraph.objects`.
    """

    def __init__(self, video: VideoGraph, keyframes: Keyframes) -> None:
        self.video, self.keyframes = video, keyframes
        around = (np.array(keyframes)[:, None] + np.arange(-WINDOW, WINDOW + 1)).ravel()
        self.frames = np.unique(around[(around >= 0) & (around < video.frame_count)])
        self.span = (int(self.frames[0]), int(self.frames[-1]) + 1)
        self.annotations = self._annotations()
        self.seen: NDArray[np.bool_] = self.annotations > 0
        shown = np.logical_or.reduce(self.seen[:, np.searchsorted(self.frames, keyframes)], axis=1).tolist()
        named = zip(video.objects, shown, strict=True)
        self.categories = tuple(item.category if on_keyframe else UNNAMED for item, on_keyframe in named)
        self.end_windows = (self.window(keyframes[0]), self.window(keyframes[-1]))
        known = np.array([category != UNNAMED for category in self.categories], dtype=bool)
        first, last = (self.annotations[:, part].sum(axis=1) >= PERSISTENT for part in self.end_windows)
        self.persistent: NDArray[np.bool_] = known & first & last

    def _annotations(self) -> NDArray[np.int32]:
        """(objects, frames): how often each object is annotated on each frame."""
        table = self.video.instances_table
        part = table.slice(self.span)
        inside = np.isin(table.frame[part], self.frames)
        counts = np.zeros((len(self.video.objects), len(self.frames)), dtype=np.int32)
        columns = np.searchsorted(self.frames, table.frame[part][inside])
        np.add.at(counts, (table.object[part][inside], columns), 1)
        return counts

    def window(self, first: int, last: int | None = None) -> slice:
        """The columns from `WINDOW` frames before one keyframe to as many after it, or after another one."""
        last = first if last is None else last
        low, high = np.searchsorted(self.frames, [first - WINDOW, last + WINDOW + 1])
        return slice(int(low), int(high))

    def stated(self, table: Ranges, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(positions, frames): which ranges of an attribute or relation table cover which frames."""
        start, end = table.start[positions, None], table.end[positions, None]
        return (start <= self.frames) & (self.frames < end)

    @cached_property
    def relations(self) -> list[_Held]:
        """Relation ranges that hold on some frame, with both ends annotated there; in the order of the file."""
        table = self.video.relations_table
        positions = table.active(self.span)
        source, target = table.source[positions], table.target[positions]
        holds = self.stated(table, positions) & self.seen[source] & self.seen[target]
        held = []
        for i in np.flatnonzero(holds.any(axis=1)).tolist():
            kind, value, _, _, row = table.entry(int(positions[i]))
            held.append(_Held(int(source[i]), int(target[i]), kind, value, row, holds[i]))
        return held

    @cached_property
    def contacts(self) -> list[_Held]:
        """What hands do to objects."""
        return [r for r in self.relations if r.type == HAND_RELATION and self.categories[r.source] in HANDS]

    @cached_property
    def activities(self) -> list[dict[str, list[int]]]:
        """For each keyframe, the names of activities with their rows in the file."""
        active: list[dict[str, list[int]]] = []
        for keyframe in self.keyframes:
            names: dict[str, list[int]] = {}
            for segment in self.video.activities(keyframe, inclusive=True):
                name = _IDENTIFIER.sub("", segment.name).strip()
                if segment.class_id is not None and name:
                    names.setdefault(name, []).append(segment.row)
            active.append(names)
        return active

    def target(self, relation: _Held) -> str:
        """The category of a relation's target, whether or not a keyframe shows it."""
        return self.video.objects[relation.target].category

    def ids(self, objects: Iterable[int]) -> list[str]:
        """Ids of objects given by index, each once."""
        return list(dict.fromkeys(self.video.objects[index].id for index in objects))


def changes_domain(sampling: Sampling) -> Domain | None:
    """Whose values' changes are asked about; None: the release's. Raises ConfigError for a file that is none."""
    return None if sampling.domain is None else domain_of(sampling)


def detect_changes(view: ClipView, domain: Domain | None = None) -> dict[Category, list[Change]]:
    """The changes of each category that has any, in the order of `CATEGORIES`; of states as `state_changes` says."""
    changes = (
        state_changes(view, domain),
        action_transitions(view),
        relation_changes(view),
        activity_progression(view),
    )
    return {category: detected for category, detected in zip(CATEGORIES, changes, strict=True) if detected}


def state_changes(view: ClipView, domain: Domain | None = None) -> list[Change]:
    """Persistent objects whose usual value of an attribute differs between the windows, where that has a name: in the
    release four states, with a domain any two values that exclude each other."""
    table = view.video.attributes_table
    positions = table.active(view.span)
    positions = positions[view.persistent[table.source[positions]]]
    ranges: dict[tuple[int, str], list[int]] = {}
    for position in positions.tolist():
        kind, _ = table.labels[table.label[position]]
        ranges.setdefault((int(table.source[position]), kind), []).append(position)
    events: list[tuple[Hashable, list[Change]]] = []
    for (index, kind), group in sorted(ranges.items(), key=lambda item: item[0][0]):
        # An entry counts once on a frame, whatever number of its ranges hold there.
        entries: dict[int, tuple[str, NDArray[np.bool_]]] = {}
        for position, frames in zip(group, view.stated(table, np.array(group)), strict=True):
            _, value, _, _, row = table.entry(position)
            entries[row] = (value, entries[row][1] | frames if row in entries else frames)
        before, after = (_usual(entries, view.annotations[index], part) for part in view.end_windows)
        description = _description(before, after) if domain is None else _turn(domain, kind, before, after)
        if description:
            category, ids = view.categories[index], view.ids([index])
            rows = [
                row
                for row, (value, frames) in entries.items()
                if value in (before, after) and any(frames[part].any() for part in view.end_windows)
            ]
            change = _change(view, "state_change", description, category, ids, rows)
            events.append(((category, description), [change]))
    return _numbered(events)


def _usual(
    entries: dict[int, tuple[str, NDArray[np.bool_]]], annotations: NDArray[np.int32], part: slice
) -> str | None:
    """The value that a window states most often, the one stated first of several; None where it states none."""
    stated: Counter[str] = Counter()
    for column in range(part.start, part.stop):
        for row in sorted(entries):
            value, frames = entries[row]
            if frames[column] and annotations[column]:
                stated[value] += int(annotations[column])
    return max(stated, key=stated.__getitem__, default=None)


def _description(before: str | None, after: str | None) -> str:
    """What a change of value is called; empty for most, which have no name."""
    if before is None or after is None or before == after:
        return ""
    old, new = before.lower().strip(), after.lower().strip()
    switched = {("open", "close"): "closed", ("close", "open"): "opened"}
    if (old, new) in switched:
        return switched[old, new]
    for state in _RUNNING:
        if new == state:
            return f"started {state}"
        if old == state:
            return f"stopped {state}"
    return ""


def _turn(domain: Domain, attribute_type: str, before: str | None, after: str | None) -> str:
    """A change of value in words; empty where both values can be said of one moment, or the domain lacks one."""
    if before is None or after is None or domain.relation_of(attribute_type, before, after) != "exclusive":
        return ""
    return _description(before, after) or f"went from {before} to {after}"


def action_transitions(view: ClipView) -> list[Change]:
    """For each hand that touches different things at different keyframes: its timeline, equal steps merged.

    What it touches at a keyframe is what most frames of the window show, of those that show the hand. A timeline begins
    with the first contact.
    """
    events: list[tuple[Hashable, list[Change]]] = []
    for hand in HANDS:
        contacts = [contact for contact in view.contacts if view.categories[contact.source] == hand]
        hands = [index for index, category in enumerate(view.categories) if category == hand]
        seen = view.seen[hands].any(axis=0)
        touched = {
            column: tuple(sorted({view.target(c) for c in contacts if c.frames[column]}))
            for column in np.flatnonzero(seen).tolist()
        }
        steps: list[tuple[int, tuple[str, ...]]] = []
        for keyframe in view.keyframes:
            part = view.window(keyframe)
            states = Counter(touched[column] for column in range(part.start, part.stop) if column in touched)
            if states:
                steps.append((keyframe, states.most_common(1)[0][0]))
        timeline = [
            (categories, [keyframe for keyframe, _ in run]) for categories, run in groupby(steps, key=lambda s: s[1])
        ]
        if timeline and not timeline[0][0]:
            del timeline[0]
        if len(timeline) > 1:
            events.append((hand, [_step(view, hand, contacts, *step) for step in timeline]))
    return _numbered(events)


def _step(
    view: ClipView, hand: str, contacts: list[_Held], categories: tuple[str, ...], keyframes: list[int]
) -> Change:
    """What a hand touches at some keyframes in a row."""
    used = [
        contact
        for contact in contacts
        if view.target(contact) in categories
        and any(contact.frames[view.window(keyframe)].any() for keyframe in keyframes)
    ]
    ids = view.ids(end for contact in used for end in (contact.source, contact.target))
    rows = [contact.row for contact in used]
    span = (keyframes[0], keyframes[-1])
    return _change(view, "action_transition", "contact", hand, ids, rows, objects=categories, span=span)


def relation_changes(view: ClipView) -> list[Change]:
    """Persistent objects that stand in a relation of place in one of the windows only.

    A relation holds in a window if it does on half of the frames or more on which the object is seen there.
    """
    relations: dict[int, dict[tuple[str, str], list[_Held]]] = {}
    for relation in view.relations:
        if relation.type == POSITION and relation.value != PART_OF and view.persistent[relation.source]:
            pair = (relation.value, view.target(relation))
            relations.setdefault(relation.source, {}).setdefault(pair, []).append(relation)
    events: list[tuple[Hashable, list[Change]]] = []
    for source, pairs in sorted(relations.items()):
        category, changes = view.categories[source], []
        for pair, held in sorted(pairs.items()):
            frames = np.logical_or.reduce([relation.frames for relation in held])
            before, after = (2 * frames[part].sum() >= view.seen[source, part].sum() for part in view.end_windows)
            if before != after:
                kind, ids = "new" if after else "lost", view.ids((source, *(relation.target for relation in held)))
                rows, (value, target) = [relation.row for relation in held], pair
                changes.append(
                    _change(view, "relation_change", kind, category, ids, rows, value=value, objects=[target])
                )
        if changes:
            changes.sort(key=lambda change: change.kind == "lost")
            key = (category, *((change.kind, change.value, *change.objects) for change in changes))
            events.append((key, changes))
    return _numbered(events)


def activity_progression(view: ClipView) -> list[Change]:
    """From one keyframe to the next, where they differ: activities that end, start and go on."""
    events: dict[Hashable, list[Change]] = {}
    for (start, before), (end, after) in pairwise(zip(view.keyframes, view.activities, strict=True)):
        ended, started = sorted(set(before) - set(after)), sorted(set(after) - set(before))
        key = (tuple(ended), tuple(started))
        if (ended or started) and key not in events:
            ids = _acted_on(view, start, end)
            kinds = (("ended", ended), ("started", started), ("continuing", sorted(set(before) & set(after))))
            events[key] = [
                _change(
                    view,
                    "activity_progression",
                    kind,
                    name,
                    ids,
                    [*before.get(name, ()), *after.get(name, ())],
                    span=(start, end),
                )
                for kind, names in kinds
                for name in names
            ]
    return _numbered(events.items())


def _acted_on(view: ClipView, start: int, end: int) -> list[str]:
    """Ids of the objects that a hand acts on around the keyframes from `start` to `end`, sorted."""
    part = view.window(start, end)
    return sorted(view.ids(contact.target for contact in view.contacts if contact.frames[part].any()))


def _change(
    view: ClipView,
    category: Category,
    kind: str,
    subject: str,
    object_ids: list[str],
    rows: Iterable[int],
    *,
    value: str = "",
    objects: Iterable[str] = (),
    span: tuple[int, int] | None = None,
) -> Change:
    """A change; without `span` it lies between the first and the last keyframe."""
    start, end = span or (view.keyframes[0], view.keyframes[-1])
    return Change(
        category=category,
        number=0,
        kind=kind,
        subject=subject,
        value=value,
        objects=list(objects),
        object_ids=object_ids,
        rows=sorted(set(rows)),
        start=start,
        end=end,
    )


def _numbered(events: Iterable[tuple[Hashable, list[Change]]]) -> list[Change]:
    """The parts of all changes in order; changes with the same key are one, of all their objects."""
    merged: dict[Hashable, list[Change]] = {}
    for key, changes in events:
        for kept, again in zip(merged.setdefault(key, changes), changes, strict=True):
            kept.object_ids = list(dict.fromkeys((*kept.object_ids, *again.object_ids)))
            kept.rows = sorted({*kept.rows, *again.rows})
    for number, changes in enumerate(merged.values()):
        for change in changes:
            change.number = number
    return [change for changes in merged.values() for change in changes]
