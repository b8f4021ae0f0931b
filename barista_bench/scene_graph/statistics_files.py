"""Write the statistics of a release as files: JSON, Markdown tables and figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from barista_bench.errors import ModelError
from barista_bench.files.owned_folders import STATISTICS, replacing_folder
from barista_bench.plots import COLUMN, HATCHES, PAGE, PALETTE, label, new_figure, paper_style, save
from barista_bench.scene_graph.statistics import PUBLISHED, ReleaseStatistics
from barista_bench.tables import Row, Table, markdown_page, number_columns, text_columns, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write_statistics(stats: ReleaseStatistics, out: str | Path, *, plots: bool = True) -> list[Path]:
    """Write `statistics.json`, `statistics.md` and, with `plots`, SVG and PDF files into `out`. Return the paths.

    Raises:
        ConfigError: `out` is not a folder that may be replaced (see `replacing_folder`).
        ModelError: `plots` is set and Matplotlib is absent. The other two files are written nevertheless.
    """
    no_matplotlib = None
    with replacing_folder(Path(out), STATISTICS) as folder:
        paths = [folder / "statistics.json", folder / "statistics.md"]
        paths[0].write_text(json.dumps(asdict(stats), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        paths[1].write_text(markdown_page("What this release holds", _tables(stats)), encoding="utf-8")
        try:
            paths += write_plots(stats, folder) if plots else []
        except ModelError as error:
            no_matplotlib = error
    if no_matplotlib:
        raise no_matplotlib
    return [Path(out) / path.name for path in paths]


def _tables(stats: ReleaseStatistics) -> Iterator[Table]:
    """Yield tables under headings. A table without a title belongs to the previous heading."""
    yield _counts_table(stats)
    yield _distribution_table("preparation", "videos", stats.preparation_counts, "Videos")
    yield _distribution_table("device", "videos", stats.device_counts)
    yield _distribution_table("resolution", "videos", stats.resolution_counts)
    yield _durations_table(stats)
    categories = (
        (name, c.instances, _fraction(c.instances, stats.instances), c.objects, c.videos)
        for name, c in stats.category_counts.items()
    )
    yield _table("Objects", ("category",), ("instances", "share", "objects", "videos"), categories)
    yield _table_by_type("Attributes", stats.attribute_counts)
    yield _table_by_type("Relations", stats.predicate_counts)
    yield _distribution_table("class", "segments", stats.activity_counts, "Activities")
    yield _distribution_table("class", "steps", stats.step_counts, "Process steps")


def _counts_table(stats: ReleaseStatistics) -> Table:
    counts: dict[str, float] = {
        item.name: value for item in fields(stats) if isinstance(value := getattr(stats, item.name), int | float)
    }
    for name, per_frame in (("objects", stats.objects_per_frame), ("relations", stats.relations_per_frame)):
        counts[f"{name} a frame, mean"] = per_frame.mean
        counts[f"{name} a frame with any, mean"] = per_frame.mean_where_any
        counts[f"{name} a frame, median"] = per_frame.median
        counts[f"{name} a frame, most"] = per_frame.most
    rows = (
        (words(name), _number(value), _number(PUBLISHED[name]) if name in PUBLISHED else "")
        for name, value in counts.items()
    )
    return _table("", ("",), ("here", "BARISTA as published"), rows)


def _durations_table(stats: ReleaseStatistics) -> Table:
    durations = stats.video_durations, stats.activity_durations, stats.step_durations
    rows: list[Row] = [
        (name, len(d.values), *(f"{v:.2f}" for v in (d.mean, d.median, d.shortest, d.longest)))
        for name, d in zip(("videos", "activities", "process steps"), durations, strict=True)
    ]
    return _table("Durations, seconds", ("",), ("count", "mean", "median", "shortest", "longest"), rows)


def _distribution_table(name: str, unit: str, counts: Mapping[str, int], title: str = "") -> Table:
    total = sum(counts.values())
    rows = ((value, count, _fraction(count, total)) for value, count in counts.items())
    return _table(title, (name,), (unit, "share"), rows)


def _table_by_type(title: str, counts: Mapping[str, Mapping[str, int]]) -> Table:
    total = sum(sum(values.values()) for values in counts.values())
    rows = (
        (kind, value, count, _fraction(count, total))
        for kind, values in counts.items()
        for value, count in values.items()
    )
    return _table(title, ("type", "value"), ("frame-rows", "share"), rows)


def _table(title: str, names: Sequence[str], numbers: Sequence[str], rows: Iterable[Row]) -> Table:
    return Table.of(title, (*text_columns(*names), *number_columns("", *numbers)), rows)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".removesuffix(".00")


def _fraction(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else ""


TOP_CATEGORIES, TOP_ACTIVITIES = 30, 40
_HATCHED: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.3}


def write_plots(stats: ReleaseStatistics, folder: Path) -> list[Path]:
    """Write the SVG and PDF files, and return the paths.

    Raises:
        ModelError: Matplotlib is absent.
    """
    instances = {name: counts.instances for name, counts in stats.category_counts.items()}
    unit = "instances (boxed objects on frames)"
    with paper_style():
        figures = {
            "overview": _overview(stats),
            "categories": _bars(instances, "object category", unit, TOP_CATEGORIES),
            "activities": _bars(stats.activity_counts, "activity class", "segments", TOP_ACTIVITIES),
            "steps": _bars(stats.step_counts, "process step class", "steps", TOP_ACTIVITIES),
            "predicates": _grouped_bars(stats.predicate_counts, "relation value", "frame-rows (both ends boxed)"),
            "attributes": _grouped_bars(stats.attribute_counts, "attribute value", "frame-rows (object boxed)"),
        }
    return [path for name, figure in figures.items() for path in save(figure, folder, f"statistics_{name}")]


def _overview(stats: ReleaseStatistics) -> Figure:
    figure = new_figure(PAGE, 4.2)
    first, second, third, fourth = figure.subplots(2, 2).ravel()
    _draw_bars(first, stats.preparation_counts)
    _name_axes(first, "a  Preparation types", "videos", "")
    histogram = stats.objects_per_frame.histogram
    second.bar(range(len(histogram)), histogram, width=0.85, color=PALETTE[0])
    second.axvline(stats.objects_per_frame.mean, color="black", linestyle="--", linewidth=1)
    _add_note(second, f"dashed: mean {stats.objects_per_frame.mean:.2f}")
    _use_whole_numbers(second, "x")
    _use_whole_numbers(second, "y")
    _name_axes(second, "b  Objects on a frame", "objects", "frames")
    _histogram(third, stats.video_durations.values)
    _name_axes(third, "c  Duration of videos", "seconds", "videos")
    _histogram(fourth, stats.activity_durations.values)
    _name_axes(fourth, "d  Duration of activity segments", "seconds", "segments")
    return figure


def _histogram(axes: Axes, values: Sequence[float]) -> None:
    """Draw at most 30 bins. Values beyond the 99th percentile are in the last bin, whose label says so."""
    if not values:
        return
    top = max(float(np.percentile(values, 99)), 1e-9)
    edges = np.linspace(0, top, min(30, max(5, len(values) // 4)) + 1)
    counts = np.histogram(np.minimum(values, top), edges)[0]
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=PALETTE[0])
    axes.set_xlim(0, top)
    if max(values) > 1.05 * top:
        _add_note(axes, f"last bar: up to {max(values):.1f} s")
    _use_whole_numbers(axes, "y")


def _add_note(axes: Axes, text: str) -> None:
    axes.annotate(text, (1, 1.02), xycoords="axes fraction", ha="right", va="bottom")


def _bars(counts: Mapping[str, int], noun: str, unit: str, top: int) -> Figure:
    bars = dict(list(counts.items())[:top])
    figure = new_figure(COLUMN, 0.7 + 0.14 * max(3, len(bars)))
    axes = figure.subplots()
    _draw_bars(axes, bars)
    suffix = f", {len(bars)} most frequent of {len(counts)}" if len(counts) > len(bars) else f", {len(counts)} in all"
    _name_axes(axes, f"{noun.capitalize()}{suffix}", unit, "")
    return figure


def _grouped_bars(groups: Mapping[str, Mapping[str, int]], noun: str, unit: str) -> Figure:
    """Draw bars in groups of at most 20, on a logarithmic scale (figure 4c)."""
    top_groups = {kind: dict(list(values.items())[:20]) for kind, values in groups.items()}
    figure = new_figure(COLUMN, 0.8 + 0.14 * max(3, sum(map(len, top_groups.values())) + len(top_groups)))
    axes = figure.subplots()
    offset, ticks, names = 0, list[int](), list[str]()
    for (kind, values), (colour, hatch) in zip(top_groups.items(), zip(cycle(PALETTE), cycle(HATCHES)), strict=False):
        rows = range(offset, offset + len(values))
        axes.barh(rows, list(values.values()), color=colour, hatch=hatch, label=label(kind), **_HATCHED)
        ticks += rows
        names += map(label, values)
        offset += len(values) + 1
    axes.set_yticks(ticks, names)
    axes.invert_yaxis()
    if ticks:
        axes.set_xscale("log")
        axes.set_xlim(left=0.7)
        axes.legend(title="type", loc="lower right")
        axes.margins(y=0.01)
    _name_axes(axes, f"{noun.capitalize()} by type", f"{unit}, logarithmic", "")
    return figure


def _draw_bars(axes: Axes, counts: Mapping[str, int]) -> None:
    axes.barh(range(len(counts)), list(counts.values()), color=PALETTE[0])
    axes.set_yticks(range(len(counts)), list(map(label, counts)))
    axes.invert_yaxis()
    axes.margins(y=0.01)
    _use_whole_numbers(axes, "x")
    for row, count in enumerate(counts.values()):
        axes.annotate(f"{count:,}", (count, row), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6)
    axes.margins(x=0.12)


def _name_axes(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, fontweight="bold")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


def _use_whole_numbers(axes: Axes, axis_name: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis: Any = axes.xaxis if axis_name == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
