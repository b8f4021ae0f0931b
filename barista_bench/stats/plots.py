"""A picture of the lines of `stats.tables.figure_table`, as a Matplotlib figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from barista_bench.errors import require_extra
from barista_bench.files.text_out import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW, _AROUND = 0.3, 0.9
"""Inches of a row, and of what is above and below the rows of a panel."""


def plot_figures(table: pd.DataFrame) -> Figure:
    """The primary figures: a panel a task, a row a model, a dot for the mean and a bar for its interval if it has one.

    Raises:
        ModelError: matplotlib is not installed; names the extra.
    """
    require_extra("plots", "matplotlib", extra="viz")
    from matplotlib.figure import Figure

    panels = list(table[table["primary"]].groupby(["task", "figure"], sort=False))
    heights = [_AROUND + _ROW * len(rows) for _, rows in panels]
    figure = Figure(figsize=(7, sum(heights)), layout="constrained")
    all_axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for axes, ((task, name), rows) in zip(all_axes, panels, strict=True):
        means, places = rows["mean"].to_numpy(float), range(len(rows))
        interval = [np.abs(rows[end].to_numpy(float) - means) for end in ("low", "high")]
        axes.errorbar(means, places, xerr=interval, fmt="o", color="#0072b2", capsize=3)
        axes.set_yticks(places, [_label(_marked(row)) for _, row in rows.iterrows()])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_title(f"{_label(task)}: {_label(name)}", loc="left", fontsize="medium")
        axes.grid(axis="x", linewidth=0.4)
    return figure


def _marked(row: pd.Series) -> str:
    """The model, and what keeps its figure from a rank."""
    incomplete = f" ({row['scored']} of {row['expected']} scored)" if row["scored"] < row["expected"] else ""
    return f"{row['model']}{incomplete}{' (trained on these videos)' if row['trained_on'] else ''}"


def _label(text: str) -> str:
    """Without what Matplotlib takes for a formula."""
    return one_line(text).replace("$", r"\$")
