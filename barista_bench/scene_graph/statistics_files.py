"""The statistics of a release as files: JSON, Markdown tables and plots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from barista_bench.errors import ConfigError
from barista_bench.files.text_out import markdown
from barista_bench.files.writing import STATISTICS, replacing_folder
from barista_bench.scene_graph.statistics import PUBLISHED, Durations, ReleaseStatistics
from barista_bench.scene_graph.statistics_plots import write_plots

_SHARE = "share"
_NAMES = ("", "type", "value", "category", "class", "preparation", "device", "resolution")
"""Heads of columns that hold names."""


def write_statistics(stats: ReleaseStatistics, out: str | Path, *, plots: bool = True) -> list[Path]:
    """Write `statistics.json`, `statistics.md` and, with `plots`, PNG files into the folder `out`; returns the files.

    Raises:
        ConfigError: plots are wanted and matplotlib is absent (the other two files are written all the same), or `out`
            is no folder that may be replaced: see `replacing_folder`.
    """
    no_matplotlib = None
    with replacing_folder(Path(out), STATISTICS) as folder:
        paths = [folder / "statistics.json", folder / "statistics.md"]
        paths[0].write_text(json.dumps(asdict(stats), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        paths[1].write_text(_as_markdown(stats), encoding="utf-8")
        try:
            paths += write_plots(stats, folder) if plots else []
        except ConfigError as error:
            no_matplotlib = error
    if no_matplotlib:
        raise no_matplotlib
    return [Path(out) / path.name for path in paths]


def _as_markdown(stats: ReleaseStatistics) -> str:
    parts = [
        "# What this release holds",
        _counts(stats),
        "## Videos",
        *(
            _distribution(title, "videos", counts)
            for title, counts in (
                ("preparation", stats.preparation_counts),
                ("device", stats.device_counts),
                ("resolution", stats.resolution_counts),
            )
        ),
        "## Durations, seconds",
        _durations(stats),
        "## Objects",
        _table(
            ("category", "instances", _SHARE, "objects", "videos"),
            (
                (name, _number(c.instances), _share(c.instances, stats.instances), str(c.objects), str(c.videos))
                for name, c in stats.category_counts.items()
            ),
        ),
        "## Attributes",
        _typed("frame-rows", stats.attribute_counts),
        "## Relations",
        _typed("frame-rows", stats.predicate_counts),
        "## Activities",
        _distribution("class", "segments", stats.activity_counts),
        "## Process steps",
        _distribution("class", "steps", stats.step_counts),
    ]
    return "\n\n".join(parts) + "\n"


def _counts(stats: ReleaseStatistics) -> str:
    """Scalars of the statistics, beside the published ones where the paper gives them."""
    figures: dict[str, float] = {
        item.name: value for item in fields(stats) if isinstance(value := getattr(stats, item.name), int | float)
    }
    for name, per_frame in (("objects", stats.objects_per_frame), ("relations", stats.relations_per_frame)):
        figures[f"{name} a frame, mean"] = per_frame.mean
        figures[f"{name} a frame with any, mean"] = per_frame.mean_where_any
        figures[f"{name} a frame, median"] = per_frame.median
        figures[f"{name} a frame, most"] = per_frame.most
    rows = (
        (name.replace("_", " "), _number(value), _number(PUBLISHED[name]) if name in PUBLISHED else "")
        for name, value in figures.items()
    )
    return _table(("", "here", "BARISTA as published"), rows)


def _durations(stats: ReleaseStatistics) -> str:
    layers: dict[str, Durations] = {
        "videos": stats.video_durations,
        "activities": stats.activity_durations,
        "process steps": stats.step_durations,
    }
    rows = (
        (name, str(len(d.values)), *(f"{v:.2f}" for v in (d.mean, d.median, d.shortest, d.longest)))
        for name, d in layers.items()
    )
    return _table(("", "count", "mean", "median", "shortest", "longest"), rows)


def _distribution(title: str, unit: str, counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    return _table(
        (title, unit, _SHARE), ((name, _number(count), _share(count, total)) for name, count in counts.items())
    )


def _typed(unit: str, counts: Mapping[str, Mapping[str, int]]) -> str:
    total = sum(sum(values.values()) for values in counts.values())
    return _table(
        ("type", "value", unit, _SHARE),
        (
            (kind, value, _number(count), _share(count, total))
            for kind, values in counts.items()
            for value, count in values.items()
        ),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Names are left-aligned, numbers right-aligned."""
    names = sum(title in _NAMES for title in head)
    rule = [":--"] * names + ["--:"] * (len(head) - names)
    lines = [head, rule, *([markdown(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".removesuffix(".00")


def _share(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else ""
