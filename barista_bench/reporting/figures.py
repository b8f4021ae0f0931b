"""Figures for the page and for papers, drawn by matplotlib (extra `viz`).

Colours are Okabe and Ito's, which people with the usual colour blindnesses tell apart; series differ in their markers
or hatches too, so that figures survive a black-and-white printer. Equal data give equal bytes.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barista_bench.reporting.tables import words
from barista_bench.runs.score.results import Figure as RunFigure
from barista_bench.runs.score.results import Results
from barista_bench.stats import FailureRow, RankAgreement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "--", "++", "oo")
MAX_NAME = 34
MAX_MODELS = 16
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "text.parse_math": False,
    "svg.hashsalt": "barista_bench",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "figure.constrained_layout.use": True,
}

Scores = Sequence[tuple[str, Mapping[str, Results]]]
"""Tasks by their headings, and results by model label."""


@dataclass(frozen=True, slots=True)
class DrawnFigure:
    """A figure as SVG and as PDF. `name` is that of its files."""

    name: str
    title: str
    svg: bytes
    pdf: bytes


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def scores(tasks: Scores) -> DrawnFigure:
    """Primary figures with their intervals over videos, else standard deviations over runs, one panel a task."""
    models = _models(tasks)
    columns = min(3, len(tasks))
    lines = -(-len(tasks) // columns)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
        for panel, (heading, results) in zip(panels, tasks, strict=False):
            _dots(panel, [results[m].figures.get(results[m].primary) if m in results else None for m in models])
            primary = next(iter(results.values())).primary
            panel.set_title(f"{short(heading)}: {words(primary)}", fontsize=9, loc="left")
            panel.set_yticks(range(len(models)), [short(model) for model in models])
        for panel in panels[len(tasks) :]:
            panel.set_axis_off()
        panels[0].invert_yaxis()

    title = "Primary figures with 95% intervals over videos (where there are none: standard deviation over runs)"
    return drawn("scores", title, (3.1 * columns + 1, 0.32 * len(models) * lines + 0.75 * lines + 0.2), draw)


def by_value(tasks: Scores, key: str, benchmark: str = "") -> DrawnFigure | None:
    """The primary figure by the values of one breakdown, one panel a task; None where there is one value alone."""
    models = _models(tasks)
    values = sorted({v for _, results in tasks for result in results.values() for v in result.breakdowns.get(key, {})})
    if len(values) < 2:
        return None
    columns = min(3, len(tasks))
    lines = -(-len(tasks) // columns)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(lines, columns, sharex=True, squeeze=False).ravel()
        for panel, (heading, results) in zip(panels, tasks, strict=False):
            for number, model in enumerate(models):
                rows = results[model].breakdowns.get(key, {}) if model in results else {}
                places = [position for position, value in enumerate(values) if value in rows]
                means = [rows[values[position]].figure.mean for position in places]
                shift = 0.5 * ((number + 0.5) / len(models) - 0.5)
                for position in places:
                    low, high = _bounds(rows[values[position]].figure)
                    panel.plot([position + shift] * 2, [low, high], color=color(number), linewidth=0.9)
                style = {"color": color(number), "marker": MARKERS[number % len(MARKERS)], "markersize": 4.5}
                panel.plot([p + shift for p in places], means, linestyle="", label=short(model), **style)
            panel.set_title(short(heading), fontsize=9, loc="left")
            panel.set_xticks(range(len(values)), [short(value) for value in values])
            panel.set_xlim(-0.5, len(values) - 0.5)
            panel.set_ylim(-0.04, 1.04)
            panel.grid(axis="y", linewidth=0.4, color="#bbbbbb")
        for panel in panels[len(tasks) :]:
            panel.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(models)), frameon=False)

    legend = 0.25 * -(-len(models) // 4) + 0.2
    title = f"Primary figures{f' of {benchmark}' if benchmark else ''} by {words(key)}"
    return drawn(f"{benchmark} by_{key}".strip(), title, (3.3 * columns, 2.1 * lines + legend), draw)


def agreement(found: RankAgreement, benchmark: str = "") -> DrawnFigure:
    """Kendall's tau-b between tasks, as a coloured matrix with the numbers written in."""
    names = [short(words(task)) for task in found.tasks]
    cells = [[float("nan") if tau is None else tau for tau in row] for row in found.tau]

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        # Blue to orange over white: both ends are told apart by everybody, and by their lightness in no other way
        # than by the written numbers.
        image = panel.imshow(cells, cmap="PuOr_r", vmin=-1, vmax=1)
        panel.set_xticks(range(len(names)), names, rotation=35, ha="right")
        panel.set_yticks(range(len(names)), names)
        for s, row in enumerate(found.tau):
            for t, tau in enumerate(row):
                text = "–" if tau is None or s == t else f"{tau:+.2f}"
                dark = tau is not None and abs(tau) > 0.7
                panel.text(t, s, text, ha="center", va="center", color="white" if dark else "black", fontsize=8)
        figure.colorbar(image, ax=panel, shrink=0.8, label="Kendall's tau-b")

    side = 0.62 * len(names) + 2.2
    of = f" of {benchmark}" if benchmark else ""
    title = f"Rank agreement between tasks{of}, over {len(found.models)} models"
    return drawn(f"rank_agreement {benchmark}".strip(), title, (side + 0.8, side - 0.6), draw)


def failures(heading: str, by_model: Sequence[tuple[str, Sequence[FailureRow]]]) -> DrawnFigure | None:
    """Failures a sample by kind, one bar a model; None where nothing failed."""
    shown = by_model[:MAX_MODELS]
    kinds = list(dict.fromkeys(row.kind for _, rows in shown for row in rows if row.count))
    if not kinds:
        return None

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        left = [0.0] * len(shown)
        for number, kind in enumerate(kinds):
            widths = [sum(row.share for row in rows if row.kind == kind) for _, rows in shown]
            hatch = HATCHES[(number // len(OKABE_ITO) + number) % len(HATCHES)]
            bars = panel.barh(range(len(shown)), widths, left=left, label=words(kind), color=color(number))
            for bar in bars:
                bar.set(hatch=hatch, edgecolor="white")
            left = [a + b for a, b in zip(left, widths, strict=True)]
        panel.set_yticks(range(len(shown)), [short(model) for model, _ in shown])
        panel.invert_yaxis()
        panel.set_xlabel("share of samples, summed over kinds")
        figure.legend(loc="outside lower center", ncols=min(5, len(kinds)), frameon=False)

    height = 0.34 * len(shown) + 0.9 + 0.22 * -(-len(kinds) // 5)
    return drawn(f"failures_{heading}", f"What went wrong: {words(heading)}", (7.2, height), draw)


def _dots(panel: Axes, figures: Sequence[RunFigure | None]) -> None:
    for row, run_figure in enumerate(figures):
        if run_figure is None:
            continue
        low, high = _bounds(run_figure)
        ink, marker = color(row), MARKERS[row % len(MARKERS)]
        panel.plot([low, high], [row, row], color=ink, linewidth=1.6, solid_capstyle="butt")
        panel.plot([run_figure.mean], [row], color=ink, marker=marker, markersize=5, linestyle="")
    panel.set_xlim(-0.02, 1.02)
    panel.set_ylim(-0.6, len(figures) - 0.4)
    panel.grid(axis="x", linewidth=0.4, color="#bbbbbb")


def _bounds(run_figure: RunFigure) -> tuple[float, float]:
    if run_figure.low is not None and run_figure.high is not None:
        return run_figure.low, run_figure.high
    return run_figure.mean - (run_figure.std or 0.0), run_figure.mean + (run_figure.std or 0.0)


def _models(tasks: Scores) -> list[str]:
    return list(dict.fromkeys(model for _, results in tasks for model in results))[:MAX_MODELS]


def color(number: int) -> str:
    """Of a series by its number."""
    return OKABE_ITO[number % len(OKABE_ITO)]


def short(text: str, most: int = MAX_NAME) -> str:
    """A name that can be drawn: printable, with a UTF-8 form, and of at most so many letters."""
    clean = "".join(letter if letter.isprintable() else " " for letter in text).encode(errors="replace").decode()
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def drawn(name: str, title: str, size: tuple[float, float], draw: Callable[[Figure], None]) -> DrawnFigure:
    """A figure of `size` inches, in the style of all."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size)
        draw(figure)
        files = {}
        for kind, metadata in (("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
            file = io.BytesIO()
            figure.savefig(file, format=kind, metadata=metadata)
            files[kind] = file.getvalue()
            figure.set_layout_engine("none")  # it stands: laying it out takes as long as drawing it
    return DrawnFigure(name, title, files["svg"], files["pdf"])
