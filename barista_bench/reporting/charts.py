"""Charts of `paper_tables.PaperChart`, in the style of all figures: lines or bars with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barista_bench.core.paper_tables import PaperChart, Point, Series
from barista_bench.reporting.figures import HATCHES, MARKERS, MAX_MODELS, DrawnFigure, color, drawn, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 40
"""Places of a bar chart: more cannot be read."""


def chart(name: str, paper: PaperChart) -> DrawnFigure | None:
    """None where there is no finite point. Names along the axis stand in the order in which they first come."""
    series = [Series(line.name, _finite(line.points)) for line in paper.series[:MAX_MODELS]]
    series = [line for line in series if line.points]
    if not series:
        return None
    xs = list(dict.fromkeys(point.x for line in series for point in line.points))
    named = paper.kind == "bar" or any(isinstance(x, str) for x in xs)
    xs = xs[:MOST_BARS] if named else xs

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        panel = figure.subplots()
        if paper.kind == "bar":
            _bars(panel, series, xs)
        else:
            _lines(panel, series, {x: at for at, x in enumerate(xs)} if named else None)
        if named:
            long = max(len(str(x)) for x in xs) > 60 // len(xs)
            labels = [short(str(x)) for x in xs]
            panel.set_xticks(range(len(xs)), labels, rotation=35 if long else 0, ha="right" if long else "center")
        elif all(float(x).is_integer() for x in xs):
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))  # levels and frames are whole
        panel.set_xlabel(short(paper.x, 80))
        panel.set_ylabel(short(paper.y, 60))
        panel.grid(axis="y", linewidth=0.4, color="#bbbbbb")
        panel.set_axisbelow(True)
        if len(series) > 1 or series[0].name:
            figure.legend(loc="outside lower center", ncols=min(4, len(series)), frameon=False)

    width = max(6.4, 0.22 * len(xs) * len(series) + 1.5) if paper.kind == "bar" else 6.8
    return drawn(name, paper.title, (min(width, 12.0), 3.4 + 0.25 * -(-len(series) // 4)), draw)


def _finite(points: Sequence[Point]) -> tuple[Point, ...]:
    made = (Point(*point) for point in points)
    return tuple(p for p in made if math.isfinite(p.y) and (isinstance(p.x, str) or math.isfinite(p.x)))


def _lines(panel: Axes, series: Sequence[Series], at: dict[float | str, int] | None) -> None:
    for number, line in enumerate(series):
        points = [point for point in line.points if at is None or point.x in at]
        places = [point.x if at is None else at[point.x] for point in points]
        ink, marker = color(number), MARKERS[number % len(MARKERS)]
        heights = [point.y for point in points]
        panel.plot(
            places, heights, label=short(line.name) or "_", color=ink, marker=marker, markersize=4.5, linewidth=1.3
        )
        _whiskers(panel, places, points, ink)


def _bars(panel: Axes, series: Sequence[Series], places: Sequence[float | str]) -> None:
    width = 0.8 / len(series)
    for number, group in enumerate(series):
        points = [point for point in group.points if point.x in places]
        middles = [places.index(point.x) + (number + 0.5) * width - 0.4 for point in points]
        heights = [point.y for point in points]
        bars = panel.bar(middles, heights, width * 0.92, label=short(group.name) or "_", color=color(number))
        for bar in bars:
            bar.set(hatch=HATCHES[number % len(HATCHES)], edgecolor="white", linewidth=0.4)
        _whiskers(panel, middles, points, "#222222")


def _whiskers(panel: Axes, places: Sequence[float | str | int], points: Sequence[Point], ink: str) -> None:
    for x, point in zip(places, points, strict=True):
        if point.low is not None and point.high is not None:
            panel.plot([x, x], [point.low, point.high], color=ink, linewidth=1.1, solid_capstyle="butt")
