"""Changes of clips, for the tests of written questions."""

from typing import cast

from barista_bench.benchmarks.barista.change_detection import Category, Change
from barista_bench.benchmarks.barista.temporal_vqa import TemporalEvidence
from barista_bench.core.example import Example


def changes_of(example: Example) -> list[Change]:
    return TemporalEvidence.of(example).changes


def change(category: str, kind: str, subject: str, *objects: str, value: str = "", number: int = 0) -> Change:
    return Change(
        category=cast("Category", category),
        number=number,
        kind=kind,
        subject=subject,
        value=value,
        objects=list(objects),
        object_ids=[],
        rows=[],
        start=0,
        end=1,
    )


LID = change("state_change", "opened", "lid")
