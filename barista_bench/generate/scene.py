"""One video's graph in terms of people's questions: named objects, uses by hands, states and actions.

Gaps in an annotation are not events. A use continues over a gap if the hand or the object is not visible in the gap, or
if the gap is shorter than the domain's `gap`. The facts in a gap are unknown, so questions avoid it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby, pairwise
from operator import attrgetter, itemgetter

from barista_bench.generate.spans import (
    ActionSpan,
    HandUse,
    LabelledSpan,
    NamedObject,
    PlaceSpan,
    ValueSpan,
    find_overlapping,
    noun_of,
)
from barista_bench.generate.visibility import VisibleObjects, cached_by_scene
from barista_bench.scene_graph import SceneObject
from barista_bench.scene_graph.domain import Side
from barista_bench.scene_graph.graph_words import base_form, verb_and_noun
from barista_bench.scene_graph.video_graph import Segment


class Scene(VisibleObjects):
    """One video's graph with its events. Its parts are computed when they are first needed."""

    @cached_property
    def contacts(self) -> dict[tuple[Side, str], list[LabelledSpan]]:
        """Return the contacts as they are recorded, with their gaps, by hand and named object."""
        rows: dict[tuple[Side, str], list[LabelledSpan]] = {}
        for source, target, row in self._relations(self.domain.contact_type):
            side = self.domain.side(source.category)
            if side is not None and target.id in self.things:
                rows.setdefault((side, target.id), []).append(row)
        return rows

    @cached_property
    def uses(self) -> tuple[HandUse, ...]:
        """Return the uses of named objects by hands, by time."""
        uses = [use for (side, name), rows in self.contacts.items() for use in self._hand_uses(side, name, rows)]
        return tuple(sorted(uses, key=attrgetter("start", "end", "side", "thing.id")))

    @cached_property
    def hand_relations(self) -> tuple[tuple[str, int, int], ...]:
        """Return the object's id, the start and the end of every relation from a hand, except places.

        A relation that the domain does not define may still be a touch.
        """
        return tuple((item, start, end) for _, item, start, end in self._hand_rows())

    @cached_property
    def nouns_by_contact(self) -> dict[str, list[LabelledSpan]]:
        """Return the nouns of the objects to which a hand has a relation, by the verb of the relation's value."""
        nouns: dict[str, list[LabelledSpan]] = {}
        for value, item, start, end in self._hand_rows():
            if item in self.things:
                nouns.setdefault(base_form(value.lower()), []).append((self.things[item].noun, start, end))
        return nouns

    @cached_property
    def contact_verbs(self) -> frozenset[str]:
        """Return the verbs of contacts: those of the domain, and those of other relations that a hand has."""
        return frozenset({*(words.do for words in self.domain.contacts.values()), *self.nouns_by_contact})

    def _hand_rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield the value, the object's id, the start and the end of every relation from a hand, except places."""
        table, objects = self.video.relations_table, self.video.objects
        for row in range(len(table.start)):
            kind, value, start, end, _ = table.entry(row)
            if kind != self.domain.place_type and self.domain.side(objects[table.source[row]].category) is not None:
                yield value, objects[table.target[row]].id, start, end

    def _relations(self, kind: str) -> Iterator[tuple[SceneObject, SceneObject, LabelledSpan]]:
        table, objects = self.video.relations_table, self.video.objects
        for index in range(len(table.start)):
            type_, value, start, end, _ = table.entry(index)
            if type_ == kind:
                yield (
                    objects[table.source[index]],
                    objects[table.target[index]],
                    (value, start, min(end, self.frame_count)),
                )

    def _hand_uses(self, side: Side, object_id: str, contacts: Sequence[LabelledSpan]) -> Iterator[HandUse]:
        hand = self.hand_id(side)
        object_ids = [object_id] if hand is None else [hand, object_id]
        for run, start, end in self._join_bridged(self._without_gaps(contacts), object_ids):
            before = start - self.margin
            begins = before >= 0 and all(self.is_annotated(item, before) for item in object_ids)
            begins = begins and self.coverage.covers_hand(hand, before, start)
            yield HandUse(side, self.things[object_id], start, end, tuple(run), begins)

    def _without_gaps(self, contacts: Sequence[LabelledSpan]) -> list[LabelledSpan]:
        """Return contacts by time. Equal contacts with only a short gap between them are one contact."""
        joined: dict[str, list[LabelledSpan]] = {}
        for value, start, end in sorted(contacts, key=_by_time):
            rows = joined.setdefault(value, [])
            if rows and start - rows[-1][2] <= self.frames_in(self.domain.lengths.gap):
                rows[-1] = value, rows[-1][1], max(rows[-1][2], end)
            else:
                rows.append((value, start, end))
        return sorted(chain.from_iterable(joined.values()), key=_by_time)

    def _join_bridged(
        self, rows: Iterable[LabelledSpan], object_ids: Sequence[str]
    ) -> list[tuple[list[LabelledSpan], int, int]]:
        """Join rows, sorted by start, across bridged gaps.

        Return each run of rows with its first start and its last end.
        """
        joined: list[tuple[list[LabelledSpan], int, int]] = []
        for row in rows:
            if joined and self._is_bridged(joined[-1][2], row[1], object_ids):
                run, start, end = joined[-1]
                joined[-1] = [*run, row], start, max(end, row[2])
            else:
                joined.append(([row], row[1], row[2]))
        return joined

    def _is_bridged(self, start: int, end: int, object_ids: Sequence[str]) -> bool:
        """Return whether a gap [start, end) is short, or one of the objects is not visible in it."""
        if end - start <= self.frames_in(self.domain.lengths.gap):
            return True
        if self.coverage.is_partial:  # unannotated objects may be visible in the gap
            return False
        return any(self._annotated_within(object_id, start, end) == 0 for object_id in object_ids)

    @cached_property
    def values(self) -> tuple[ValueSpan, ...]:
        """Return the values of attributes of named objects, by object, type and time.

        Equal values around a gap are one span.
        """
        rows: dict[tuple[str, str], list[LabelledSpan]] = {}
        for item in self.video.attributes():
            if item.object.id in self.things:
                row = item.value, item.start, min(item.end, self.frame_count)
                rows.setdefault((item.object.id, item.type), []).append(row)
        return tuple(
            ValueSpan(self.things[object_id], kind, value, start, end)
            for (object_id, kind), ranges in sorted(rows.items())
            for value, same in groupby(sorted(ranges, key=_by_time), key=itemgetter(0))
            for _, start, end in self._join_bridged(same, [object_id])
        )

    def values_of(self, object_id: str, attribute_type: str) -> list[ValueSpan]:
        """Return the values of one attribute of one object, by time."""
        return [span for span in self.values if (span.thing.id, span.type) == (object_id, attribute_type)]

    @cached_property
    def changes(self) -> tuple[tuple[ValueSpan, ValueSpan], ...]:
        """Return pairs of successive values of an object's attribute that exclude each other, by time.

        Only a gap may lie between the two values.
        """
        pairs = [
            (before, after)
            for before, after in pairwise(self.values)
            if (before.thing, before.type) == (after.thing, after.type)
            and self.domain.relation_of(before.type, before.value, after.value) == "exclusive"
            and 0 <= after.start - before.end <= self.frames_in(self.domain.lengths.gap)
        ]
        return tuple(sorted(pairs, key=lambda pair: (pair[1].start, pair[1].thing.id)))

    def is_settled(self, object_id: str, attribute_type: str, frame: int) -> bool:
        """Return whether an attribute does not change gradually within the domain's length `gradual` of a frame."""
        gradual = self.domain.gradual.get(attribute_type, ())
        values = [after for _, after in self.changes if (after.thing.id, after.type) == (object_id, attribute_type)]
        starts = [after.start for after in values if after.value in gradual]
        return all(abs(frame - start) > self.frames_in(self.domain.lengths.gradual) for start in starts)

    @cached_property
    def places(self) -> tuple[PlaceSpan, ...]:
        """Return the places of named objects, by time."""
        rows: dict[tuple[str, str, str], list[LabelledSpan]] = {}
        for source, target, row in self._relations(self.domain.place_type):
            if source.id in self.things and target.id in self.things:
                rows.setdefault((source.id, row[0], target.id), []).append(row)
        spans = [
            PlaceSpan(self.things[source], predicate, self.things[target], start, end)
            for (source, predicate, target), ranges in rows.items()
            for _, start, end in self._join_bridged(sorted(ranges, key=_by_time), [source, target])
        ]
        order = attrgetter("start", "end", "thing.id", "predicate", "other.id")
        return tuple(sorted(spans, key=order))

    @cached_property
    def actions(self) -> tuple[ActionSpan, ...]:
        """Return the activities, by time."""
        return self._action_spans(self.video.activities())

    @cached_property
    def steps(self) -> tuple[ActionSpan, ...]:
        """Return the process steps, by time."""
        return self._action_spans(self.video.steps())

    def _action_spans(self, segments: Iterable[Segment]) -> tuple[ActionSpan, ...]:
        rows = [ActionSpan(row.name.strip(), row.start, min(row.end, self.frame_count)) for row in segments]
        return tuple(sorted(rows, key=_by_time))

    @cached_by_scene
    def action_in_words(self, action: str) -> str:
        """Return the name of an activity or step, "Verb noun", with a specific noun if possible.

        The specific noun is the name of the only object of the noun's category, or of the only such object that hands
        touch during the action.
        """
        recorded, action = action, self.domain.activities.get(action.lower(), action)
        verb, noun = verb_and_noun(action)
        if not self.coverage.covers_category(noun):
            return action
        things = [thing for thing in self.things.values() if thing.category.casefold() == noun.casefold()]
        if len(things) > 1:
            things = [thing for thing in things if self.things_done_to(recorded) == {thing}]
        return f"{verb} {things[0].noun}" if len(things) == 1 else action

    @cached_by_scene
    def things_done_to(self, action: str) -> frozenset[NamedObject]:
        """Return the objects that the noun of an activity can name.

        If every touch is recorded and hands touch some of these objects during the activity, return only the touched
        objects.
        """
        noun = noun_of(action)
        nameable = frozenset(thing for thing in self.things.values() if self.domain.same_noun(noun, thing.noun))
        spans = [span for span in self.actions if span.name == action and self.coverage.covers_layer("relations")]
        touched_each_time = ({use.thing for use in find_overlapping(self.uses, span.start, span.end)} for span in spans)
        return frozenset().union(*(nameable & touched or nameable for touched in touched_each_time)) or nameable


def _by_time(row: LabelledSpan) -> tuple[int, int, str]:
    return row[1], row[2], row[0]
