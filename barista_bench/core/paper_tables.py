"""What a benchmark makes counterparts of its paper's tables of, and figures as data, which reports draw.

Scores run from 0 to 1, whatever the paper prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal, NamedTuple

from barista_bench.core.task import Json, Scored, Task
from barista_bench.tables import Column, Ranged, Table, Value, text_columns


@dataclass(frozen=True, slots=True)
class ModelSamples:
    """One model's answers to one task, from which tables are made.

    Args:
        model: its label in the report.
        task: with the options and the protocol that it was run by.
        runs: the scored samples of each run, in the order of the set; those that do not count are absent.
        judged: by judge, then by `sample_name`, the judge's score in its own units; without those it did not score.
    """

    model: str
    task: Task
    runs: tuple[tuple[Scored, ...], ...]
    judged: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def sample_name(example_id: str, run: int) -> str:
    """How `ModelSamples.judged` names a sample; `run` counts from 0."""
    return f"{example_id}#{run}"


def run_mean(runs: Sequence[Mapping[str, Json]], *path: str) -> float | None:
    """The mean of a published figure over the runs that have it; `path` leads to it through tables. None: none has."""
    numbers = []
    for run in runs:
        value: Json = run
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int | float):
            numbers.append(float(value))
    return fmean(numbers) if numbers else None


class Point(NamedTuple):
    """`low` and `high` are the ends of a 95% interval, None for none. A bar's `x` is its name."""

    x: float | str
    y: float
    low: float | None = None
    high: float | None = None

    @property
    def ranged(self) -> Value:
        """Its height, with the interval where it has one."""
        return self.y if self.low is None or self.high is None else Ranged(self.y, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or the bars of one colour."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class PaperChart:
    """One figure: series over a common axis; `x` and `y` are what the axes say, with their units."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    kind: Literal["line", "bar"] = "line"
    note: str = ""

    @property
    def numbers(self) -> Table:
        """A row an x, a column a series."""
        xs = list(dict.fromkeys(point.x for series in self.series for point in series.points))
        if all(isinstance(x, int | float) for x in xs):
            xs.sort(key=float)
        columns = (*text_columns(self.x), *(Column(series.name, self.y) for series in self.series))
        by_series = [{point.x: point.ranged for point in series.points} for series in self.series]
        rows = ((x if isinstance(x, str) else f"{x:g}", *(ranged.get(x) for ranged in by_series)) for x in xs)
        return Table.of(f"{self.title}: the numbers", columns, rows, self.note, folded=True)
