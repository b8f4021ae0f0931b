"""Tell the states of objects."""

from __future__ import annotations

from collections.abc import Iterator

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.graph_rows import Span, StateRow
from barista_bench.aids.level import Level


def state_fact(row: StateRow, span: Span, name: str = "") -> Fact:
    """Return a state as a fact. `name` defaults to the object's category."""
    return Fact((name or row.category,), (0, f": {row.kind} {row.value}"), span, (row.object_id, row.kind, row.value))


def _states(scene: QuestionScene) -> Iterator[Fact]:
    for row in scene.video.states:
        if span := scene.common(row.span):
            yield state_fact(row, span)


STATES = Level(heading="States of objects:", given="true states of objects", fill="#b45309", facts=_states)
