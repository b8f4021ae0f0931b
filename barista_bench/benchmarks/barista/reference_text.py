"""Writes the graph's facts about one object on one frame, as the release's structured reference or as one sentence.

The structured reference has these lines (docs/upstream/barista.md; paper, section A.2.3):

    Object: coffee cup
    Attributes: color=white, state=empty
    Relations: coffee cup under coffee machine, right hand holds coffee cup
    Related objects:
      coffee machine: type=capsule; coffee machine contains 2x capsule
      right hand: color=skin

If an object has several relations of one kind with objects of one category, they are stated once with their count, as
in `coffee machine contains 2x capsule`. A relation that the file states twice counts twice. Relations `part of` and
`attached to` are left out if the described object is their target. Related objects that are counted have no line of
context. The context of a related object leaves out its relations to the described object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from barista_bench.benchmarks.kinds.frames import FrameArrays, Frames, in_parts
from barista_bench.benchmarks.lexical import stem
from barista_bench.scene_graph import SceneObject
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.video_graph import UNNAMED

CONVERSE = {"inside": "contains", "contains": "inside", "on": "under", "under": "on"}
LEFT_OUT_FOR_TARGETS = frozenset({"part of", "attached to"})


class Property(NamedTuple):
    """An attribute on a frame. `row` is the attribute's row in the file."""

    type: str
    value: str
    row: int


class Link(NamedTuple):
    """A relation of an object on a frame. `end` is the index of the related object in `VideoGraph.objects`."""

    end: int
    is_source: bool
    type: str
    value: str
    row: int


@dataclass(slots=True)
class FrameFacts:
    """Attributes and relations of one frame, by object index, in the order of the file."""

    objects: tuple[SceneObject, ...]
    properties: dict[int, list[Property]] = field(default_factory=dict)
    links: dict[int, list[Link]] = field(default_factory=dict)

    def category(self, index: int) -> str:
        return self.objects[index].category


@dataclass(slots=True)
class RelationClause:
    """One entry of the `Relations` line.

    It joins all links of one kind between the `subject` and the `ends`, which have one category.
    """

    subject: str
    value: str
    end_category: str
    is_source: bool
    ends: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        other = self.end_category if len(self.rows) == 1 else f"{len(self.rows)}x {self.end_category}"
        return f"{self.subject} {self.value} {other}" if self.is_source else f"{other} {self.value} {self.subject}"


def frame_facts(arrays: FrameArrays, frames: Frames) -> Iterator[FrameFacts]:
    """Yield the facts of each of the `frames`.

    Ranges are half-open. A relation holds on a frame only if both its objects have a box there. An attribute record
    counts once even if several of its ranges hold. A relation counts once for every range.
    """
    attributes, relations = arrays.video.attributes_table, arrays.video.relations_table
    for part in in_parts(frames, len(attributes.start) + len(relations.start)):
        stated = arrays.active_attributes(range(len(attributes.start)), part)
        related = arrays.active_relations(range(len(relations.start)), part)
        for column in range(len(part)):
            facts = FrameFacts(arrays.video.objects)
            for position in np.flatnonzero(stated[:, column]).tolist():
                kind, value, _, _, row = attributes.entry(position)
                properties = facts.properties.setdefault(int(attributes.source[position]), [])
                if not properties or properties[-1].row != row:
                    properties.append(Property(kind, value, row))
            for position in np.flatnonzero(related[:, column]).tolist():
                kind, value, _, _, row = relations.entry(position)
                source, target = int(relations.source[position]), int(relations.target[position])
                facts.links.setdefault(source, []).append(Link(target, True, kind, value, row))
                if target != source:
                    facts.links.setdefault(target, []).append(Link(source, False, kind, value, row))
            yield facts


def relation_clauses(facts: FrameFacts, index: int) -> list[RelationClause]:
    """Return the entries of the object's `Relations` line, in the order in which the file first mentions them."""
    direct = (
        link
        for link in facts.links.get(index, ())
        if link.is_source or link.value.lower().strip() not in LEFT_OUT_FOR_TARGETS
    )
    return _group_links(facts, index, direct)


def readable_clauses(facts: FrameFacts, index: int) -> list[RelationClause]:
    """Return `relation_clauses` in a form for people: without unnamed objects, repetitions and inverse statements.

    An inverse statement repeats an earlier entry in the other direction. For example, `coffee cup contains milk`
    repeats `milk inside coffee cup`.
    """
    clauses: list[RelationClause] = []
    for clause in relation_clauses(facts, index):
        clause.rows = clause.rows[: len(clause.ends)]
        converse = CONVERSE.get(clause.value)
        if clause.end_category != UNNAMED and not any(
            (e.value, e.is_source, set(e.ends)) == (converse, not clause.is_source, set(clause.ends)) for e in clauses
        ):
            clauses.append(clause)
    return clauses


def structured_reference(facts: FrameFacts, index: int, *, every_context: bool = False) -> str:
    """Return the reference that the release gives to its judge. The module's docstring describes it.

    `every_context` also adds one line of context for each counted related object, as in the paper (A.2.3).
    """
    clauses = relation_clauses(facts, index)
    lines = [f"Object: {facts.category(index)}"]
    if facts.properties.get(index):
        lines.append(f"Attributes: {_properties(facts, index)}")
    if clauses:
        lines.append(f"Relations: {', '.join(map(str, clauses))}")
    related_lists = (clause.ends for clause in clauses if every_context or len(clause.rows) == 1)
    related = dict.fromkeys(other for others in related_lists for other in others)
    context = [(facts.category(other), text) for other in related if (text := _context(facts, other, index))]
    if context:
        lines += ["Related objects:", *(f"  {name}: {text}" for name, text in context)]
    return "\n".join(lines)


def one_sentence(facts: FrameFacts, index: int, domain: Domain) -> str:
    """Return one sentence with the object, its attributes and its direct relations, in the form requested from models.

    An example is `A white coffee cup that is empty, that is under a coffee machine and that a right hand holds.`
    Uninformative colours (`skin`) are omitted, as in the release's phrases.
    """
    properties = facts.properties.get(index, [])
    noun = facts.category(index)
    for item in properties:
        if item.type == "type":
            noun = item.value if noun in item.value else f"{item.value} {noun}"
    adjectives = [item.value for item in properties if item.type not in ("type", "state", "color")]
    unsaid_colors = domain.phrases.no_color if domain.phrases else ()
    adjectives += [item.value for item in properties if item.type == "color" and item.value not in unsaid_colors]
    clauses = [f"that is {item.value}" for item in properties if item.type == "state"]
    clauses += [_clause(clause, domain.uncounted) for clause in readable_clauses(facts, index)]
    sentence = f"{with_article(' '.join([*adjectives, noun]), domain.uncounted)} {listing(clauses)}".strip()
    return f"{sentence[0].upper()}{sentence[1:]}."


def is_place(value: str) -> bool:
    """Return True if a relation's value follows `is`, like `on` and `part of` but unlike `holds` and `contains`.

    >>> is_place("attached to"), is_place("holds")
    (True, False)
    """
    return not value.split(" ")[0].endswith("s")


def with_article(noun: str, uncounted: tuple[str, ...]) -> str:
    """Return a noun with its article. Uncountable nouns have no article.

    >>> [with_article(noun, ("coffee",)) for noun in ("empty glass", "left hand", "brown coffee")]
    ['an empty glass', 'the left hand', 'brown coffee']
    """
    if noun.endswith((" hand", "hands")):
        return f"the {noun}"
    if noun.endswith(uncounted):
        return noun
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"


def plural(noun: str, count: int) -> str:
    """Return a noun with its count.

    >>> plural("puck screen", 2), plural("glass", 2), plural("lid", 1)
    ('2 puck screens', '2 glasses', '1 lid')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def listing(parts: Sequence[str]) -> str:
    """Return texts as one list in words.

    >>> listing(["a", "b", "c"]), listing(["a"]), listing([])
    ('a, b and c', 'a', '')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _group_links(facts: FrameFacts, index: int, links: Iterable[Link]) -> list[RelationClause]:
    clauses: dict[tuple[bool, str, str], RelationClause] = {}
    for link in links:
        category = facts.category(link.end)
        key = (link.is_source, link.value, category)
        clause = clauses.setdefault(key, RelationClause(facts.category(index), link.value, category, link.is_source))
        clause.rows.append(link.row)
        if link.end not in clause.ends:
            clause.ends.append(link.end)
    return list(clauses.values())


def _properties(facts: FrameFacts, index: int) -> str:
    return ", ".join(f"{item.type}={item.value}" for item in facts.properties.get(index, ()))


def _context(facts: FrameFacts, index: int, subject: int) -> str:
    clauses = _group_links(facts, index, (link for link in facts.links.get(index, ()) if link.end != subject))
    parts = (_properties(facts, index), ", ".join(map(str, clauses)))
    return "; ".join(part for part in parts if part)


def _clause(clause: RelationClause, uncounted: tuple[str, ...]) -> str:
    """Return a clause in words.

    The described object is the source in `that is under a coffee machine`, and the target in `that a right hand holds`.
    """
    many = len(clause.ends) > 1
    other = plural(clause.end_category, len(clause.ends)) if many else with_article(clause.end_category, uncounted)
    if clause.is_source:
        return f"that {'is ' if is_place(clause.value) else ''}{clause.value} {other}"
    if is_place(clause.value):
        return f"that {other} {'are' if many else 'is'} {clause.value}"
    return f"that {other} {stem(clause.value) if many else clause.value}"
