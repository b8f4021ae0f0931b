"""The statistics of a release as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from barista_bench.files.text_out import markdown
from barista_bench.scene_graph.statistics import PUBLISHED, Durations, Statistics

_SHARE = "share"
_NAMES = ("", "type", "value", "category", "class", "preparation", "device", "resolution")
"""Heads of columns that hold names."""


def as_markdown(stats: Statistics) -> str:
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


def _counts(stats: Statistics) -> str:
    """Scalars of the statistics, beside the published ones where the paper gives them."""
    found: dict[str, float] = {
        item.name: value for item in fields(stats) if isinstance(value := getattr(stats, item.name), int | float)
    }
    for name, per_frame in (("objects", stats.objects_per_frame), ("relations", stats.relations_per_frame)):
        found[f"{name} a frame, mean"] = per_frame.mean
        found[f"{name} a frame with any, mean"] = per_frame.mean_where_any
        found[f"{name} a frame, median"] = per_frame.median
        found[f"{name} a frame, most"] = per_frame.most
    rows = (
        (name.replace("_", " "), _number(value), _number(PUBLISHED[name]) if name in PUBLISHED else "")
        for name, value in found.items()
    )
    return _table(("", "here", "BARISTA as published"), rows)


def _durations(stats: Statistics) -> str:
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
    """Names stand left, numbers right."""
    names = sum(title in _NAMES for title in head)
    rule = [":--" if place < names else "--:" for place in range(len(head))]
    lines = [head, rule, *([markdown(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}".removesuffix(".00")


def _share(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else ""
