"""Detects changes within a clip from the graph (BARISTA release and paper, sections 4.2.2, A.3.3).

There is one detector for each of the four categories of changes. `unknown` objects (see `clips`) have no changes
themselves, but hands can touch them, and things can be put on them. Detectors are pure: each takes one clip and returns
its changes.

Ranges are half-open, except that an activity includes its end frame. Changes with the same text count as one change. In
the release the order of changes depends on hashing. Here objects follow the order of the file's object table, and
relations are sorted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import groupby, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.barista.clips import ActiveRelation, ClipArrays
from barista_bench.benchmarks.barista.common import load_named_domain
from barista_bench.core.example import Int64, TypedFields
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.video_graph import HANDS

Category = Literal["state_change", "action_transition", "relation_change", "activity_progression"]
CATEGORIES: tuple[Category, ...] = ("state_change", "action_transition", "relation_change", "activity_progression")
POSITION, PART_OF = "position", "part of"
_RUNNING = ("extracting", "rinsing")


class Change(TypedFields):
    """One change, or one part of a change, as evidence.

    category: the question's category, one of `CATEGORIES`.

    number: index, from 0, of the change among the clip's changes of this category. All parts of a change share it. A
    hand's timeline is one change. All relations that one object gains and loses are one change. So are all activities
    that differ between two keyframes.

    kind: `opened`, `closed`, `started extracting` ...; `contact`; `new` or `lost`; `ended`, `started` or `continuing`.

    subject: category of the object, name of the hand, category of the relation's source, or name of the activity.

    value: value of the relation, else empty.

    objects: categories of the touched objects, or of the relation's target.

    object_ids: all objects involved. For an activity, these are the objects that hands act on around the keyframes from
    `start` to `end`.

    rows: positions in the file's `attributes`, `relations` or `activities`, by category.

    start, end: the keyframes between which the change happens, or at which the contact holds; both included.
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


def changes_domain(name: str | None) -> Domain | None:
    """Return the domain whose changes of value are asked about; None stands for the changes that the release names.

    Raises ConfigError for an invalid file.
    """
    return None if name is None else load_named_domain(name)


def detect_changes(clip: ClipArrays, domain: Domain | None = None) -> dict[Category, list[Change]]:
    """Return the clip's changes by category, in the order of `CATEGORIES`. Categories without changes are left out.

    For `domain`, see `state_changes`.
    """
    changes = (
        state_changes(clip, domain),
        action_transitions(clip),
        relation_changes(clip),
        activity_progression(clip),
    )
    return {category: detected for category, detected in zip(CATEGORIES, changes, strict=True) if detected}


def state_changes(clip: ClipArrays, domain: Domain | None = None) -> list[Change]:
    """Return the changes between the usual attribute values of persistent objects in the first and the last window.

    A change counts only if it has a name. The release names changes of four states. With a domain, every change between
    two values that exclude each other has a name.
    """
    table = clip.video.attributes_table
    positions = table.positions_in(clip.span)
    positions = positions[clip.persistent[table.source[positions]]]
    ranges: dict[tuple[int, str], list[int]] = {}
    for position in positions.tolist():
        kind, _ = table.labels[table.label[position]]
        ranges.setdefault((int(table.source[position]), kind), []).append(position)
    events: list[tuple[Hashable, list[Change]]] = []
    for (index, kind), group in sorted(ranges.items(), key=lambda item: item[0][0]):
        # An entry counts once on a frame, even if several of its ranges hold there.
        entries: dict[int, tuple[str, NDArray[np.bool_]]] = {}
        for position, frames in zip(group, clip.active_frames(table, np.array(group)), strict=True):
            _, value, _, _, row = table.entry(position)
            entries[row] = (value, entries[row][1] | frames if row in entries else frames)
        before, after = (_usual_value(entries, clip.annotations[index], part) for part in clip.end_windows)
        description = _description(before, after, kind, domain)
        if description:
            category, ids = clip.categories[index], clip.ids([index])
            rows = [
                row
                for row, (value, frames) in entries.items()
                if value in (before, after) and any(frames[part].any() for part in clip.end_windows)
            ]
            change = _new_change(clip, "state_change", description, category, ids, rows)
            events.append(((category, description), [change]))
    return _number_changes(events)


def _usual_value(
    entries: dict[int, tuple[str, NDArray[np.bool_]]], annotations: NDArray[np.int32], window: slice
) -> str | None:
    """Return the most frequent value in a window, or None without values. At a tie, the value stated first wins."""
    counts: Counter[str] = Counter()
    for column in range(window.start, window.stop):
        for row in sorted(entries):
            value, frames = entries[row]
            if frames[column] and annotations[column]:
                counts[value] += int(annotations[column])
    return max(counts, key=counts.__getitem__, default=None)


def _description(before: str | None, after: str | None, attribute_type: str, domain: Domain | None) -> str:
    """Return the name of a change of value; empty if the change has no name.

    The release names few changes. With a domain, every change between two values that exclude each other has a name.
    """
    if before is None or after is None or before == after:
        return ""
    if domain is not None and domain.relation_of(attribute_type, before, after) != "exclusive":
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
    return "" if domain is None else f"went from {before} to {after}"


def action_transitions(clip: ClipArrays) -> list[Change]:
    """Return the timeline of each hand that touches different things at different keyframes.

    Equal consecutive steps are merged. The contact at a keyframe is the most frequent contact over those frames of its
    window that show the hand. A timeline begins with the first contact.
    """
    events: list[tuple[Hashable, list[Change]]] = []
    for hand in HANDS:
        contacts = [contact for contact in clip.contacts if clip.categories[contact.source] == hand]
        hands = [index for index, category in enumerate(clip.categories) if category == hand]
        is_boxed = clip.is_boxed[hands].any(axis=0)
        touched_at = {
            column: tuple(sorted({clip.target(c) for c in contacts if c.frames[column]}))
            for column in np.flatnonzero(is_boxed).tolist()
        }
        steps: list[tuple[int, tuple[str, ...]]] = []
        for keyframe in clip.keyframes:
            window = clip.window(keyframe)
            states = Counter(touched_at[column] for column in range(window.start, window.stop) if column in touched_at)
            if states:
                steps.append((keyframe, states.most_common(1)[0][0]))
        timeline = [
            (categories, [keyframe for keyframe, _ in run]) for categories, run in groupby(steps, key=lambda s: s[1])
        ]
        if timeline and not timeline[0][0]:
            del timeline[0]
        if len(timeline) > 1:
            events.append((hand, [_contact(clip, hand, contacts, *step) for step in timeline]))
    return _number_changes(events)


def _contact(
    clip: ClipArrays, hand: str, contacts: list[ActiveRelation], categories: tuple[str, ...], keyframes: list[int]
) -> Change:
    """Return a hand's contact with objects at consecutive keyframes, as a change."""
    step_contacts = [
        contact
        for contact in contacts
        if clip.target(contact) in categories
        and any(contact.frames[clip.window(keyframe)].any() for keyframe in keyframes)
    ]
    ids = clip.ids(end for contact in step_contacts for end in (contact.source, contact.target))
    rows = [contact.row for contact in step_contacts]
    span = (keyframes[0], keyframes[-1])
    return _new_change(clip, "action_transition", "contact", hand, ids, rows, objects=categories, span=span)


def relation_changes(clip: ClipArrays) -> list[Change]:
    """Return the relations of place that persistent objects have in only one of the two end windows.

    A relation holds in a window if it holds on at least half of the frames that show the object.
    """
    relations: dict[int, dict[tuple[str, str], list[ActiveRelation]]] = {}
    for relation in clip.relations:
        if relation.type == POSITION and relation.value != PART_OF and clip.persistent[relation.source]:
            pair = (relation.value, clip.target(relation))
            relations.setdefault(relation.source, {}).setdefault(pair, []).append(relation)
    events: list[tuple[Hashable, list[Change]]] = []
    for source, pairs in sorted(relations.items()):
        category, changes = clip.categories[source], []
        for pair, group in sorted(pairs.items()):
            frames = np.logical_or.reduce([relation.frames for relation in group])
            before, after = (2 * frames[part].sum() >= clip.is_boxed[source, part].sum() for part in clip.end_windows)
            if before != after:
                kind, ids = ("new" if after else "lost", clip.ids((source, *(relation.target for relation in group))))
                rows, (value, target) = [relation.row for relation in group], pair
                changes.append(
                    _new_change(clip, "relation_change", kind, category, ids, rows, value=value, objects=[target])
                )
        if changes:
            changes.sort(key=lambda change: change.kind == "lost")
            key = (category, *((change.kind, change.value, *change.objects) for change in changes))
            events.append((key, changes))
    return _number_changes(events)


def activity_progression(clip: ClipArrays) -> list[Change]:
    """Return the activities that end, start and continue between two neighbouring keyframes whose activities differ."""
    events: dict[Hashable, list[Change]] = {}
    for (start, before), (end, after) in pairwise(zip(clip.keyframes, clip.activities, strict=True)):
        ended, started = sorted(set(before) - set(after)), sorted(set(after) - set(before))
        key = (tuple(ended), tuple(started))
        if (ended or started) and key not in events:
            window = clip.window(start, end)
            ids = sorted(clip.ids(contact.target for contact in clip.contacts if contact.frames[window].any()))
            kinds = (("ended", ended), ("started", started), ("continuing", sorted(set(before) & set(after))))
            events[key] = [
                _new_change(
                    clip,
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
    return _number_changes(events.items())


def _new_change(
    clip: ClipArrays,
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
    """Return a change. Without `span`, the change lies between the first and the last keyframe."""
    start, end = span or (clip.keyframes[0], clip.keyframes[-1])
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


def _number_changes(events: Iterable[tuple[Hashable, list[Change]]]) -> list[Change]:
    """Return the parts of all changes in order. Changes with the same key are merged, and their objects are joined."""
    merged: dict[Hashable, list[Change]] = {}
    for key, changes in events:
        for change, repeated in zip(merged.setdefault(key, changes), changes, strict=True):
            change.object_ids = list(dict.fromkeys((*change.object_ids, *repeated.object_ids)))
            change.rows = sorted({*change.rows, *repeated.rows})
    for number, changes in enumerate(merged.values()):
        for change in changes:
            change.number = number
    return [change for changes in merged.values() for change in changes]
