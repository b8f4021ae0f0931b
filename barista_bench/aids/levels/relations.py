"""Tell the relations between objects, while both are in view."""

from __future__ import annotations

from collections.abc import Iterator

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.graph_rows import RelationRow, Span
from barista_bench.aids.level import Level


def relation_fact(row: RelationRow, span: Span) -> Fact:
    """Return a relation as a fact."""
    return Fact((row.source, row.target), (0, f" {verb(row.value)} ", 1), span, relation_key(row))


def relation_key(row: RelationRow) -> tuple[str, str, str]:
    """Return what a fact about a relation is about."""
    return row.source_id, row.value, row.target_id


def verb(value: str) -> str:
    """Return a relation's value as a verb.

    >>> verb("contains"), verb("next to")
    ('contains', 'is next to')
    """
    return value if value.split(" ")[0].endswith("s") else f"is {value}"


def _relations(scene: QuestionScene) -> Iterator[Fact]:
    for row in scene.video.relations:
        yield from (relation_fact(row, span) for span in scene.spans_in_view(row))


RELATIONS = Level(heading="Relations between objects:", given="true relations", fill="#6d28d9", facts=_relations)
