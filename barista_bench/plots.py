"""Draw tables as figures for papers: vector pictures (SVG and PDF) with the width of a column. Needs the extra `viz`.

The cells of a table are drawn in the way that `Table.drawn` names. No values are computed here. Colours come from Okabe
and Ito's palette and from cividis, which suit all kinds of colour vision. Series also differ in markers or hatches.
Fonts are embedded, and equal tables give equal bytes. Names are shown unchanged and never read as formulas.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barista_bench.errors import require_extra
from barista_bench.files.text_out import MINUS, decimal, machine_numbers, one_line
from barista_bench.tables import NOTHING, Cell, Drawing, RangedScore, Table, to_csv, to_latex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.35, 6.9
"""Widths in inches of a column and of a two-column page."""
PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#000000")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES: Final = ("", "////", "..", "xxxx", "\\\\\\\\", "----", "||||", "++++")
GREY: Final = "#777777"
"""Colour of rows without a rank."""
MAX_ROWS = 40
"""Maximum rows of a heat map and bars of a series. The table has all rows."""
MAX_LINES = 6
"""Maximum number of models in a radar."""
_ROW = 0.16
"""Height in inches of a row of names."""
_LETTER = 0.055
"""Maximum width in inches of a letter."""
_NAME, _LONGEST = 30, 60
"""Maximum letters of a name beside an axis, and of a name that would equal another name if cut."""
_STYLE: Final[dict[str, Any]] = {
    **{f"{part}.labelsize": 6.5 for part in ("xtick", "ytick", "axes")},
    **{f"{part}.linewidth": 0.5 for part in ("axes", "grid", "hatch", "patch")},
    **{f"{axis}.major.width": 0.5 for axis in ("xtick", "ytick")},
    **{f"axes.spines.{side}": False for side in ("top", "right")},
    "axes.titlelocation": "left",
    "axes.titlesize": 7,
    "font.family": "DejaVu Sans",  # comes with Matplotlib, so letters are the same on every machine
    "font.size": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "lines.linewidth": 1,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # TrueType, since publishers accept it
    "svg.hashsalt": "barista_bench",
    "text.usetex": False,
}


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw and save figures in the block with a fixed style, regardless of the user's own style.

    Raises:
        ModelError: Matplotlib is not installed. The message names the extra.
    """
    require_extra("drawing figures", "matplotlib", extra="viz")
    from matplotlib import style

    with style.context(["default", _STYLE]):
        yield


def draw(table: Table) -> Figure:
    """Draw a table. `Table.drawn` names the kind of figure.

    Raises:
        ModelError: Matplotlib is not installed. The message names the extra.
    """
    assert table.drawn is not None
    with paper_style():
        return _DRAWINGS[table.drawn](table)


def write_figure(table: Table, folder: Path, name: str) -> list[Path]:
    """Write `<name>.svg` and `.pdf`, and the numbers as `.csv` and `.tex`.

    Return the paths. Errors are the same as in `draw`.
    """
    paths = save(draw(table), folder, name)
    for ending, text in (("csv", to_csv(table)), ("tex", to_latex(table))):
        paths.append(folder / f"{name}.{ending}")
        paths[-1].write_bytes(text.encode(errors="backslashreplace"))
    return paths


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `<name>.svg` and `.pdf` without dates and versions, and return the paths."""
    removed_keys = {"svg": ("Date", "Creator"), "pdf": ("CreationDate", "Creator", "Producer")}
    with paper_style():
        for ending, keys in removed_keys.items():
            figure.savefig(folder / f"{name}.{ending}", metadata=dict.fromkeys(keys))
    return [folder / f"{name}.{ending}" for ending in removed_keys]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches. Call this function within `paper_style`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def label(text: str, max_letters: int = _NAME) -> str:
    """Return a name on one line. The middle of a long name is left out, and no part is read as a formula."""
    text = one_line(text)
    if len(text) > max_letters:
        end_length = (max_letters - 1) // 2
        text = f"{text[: max_letters - 1 - end_length]}…{text[len(text) - end_length :]}"
    return text.replace("$", r"\$")


def labels(texts: Sequence[str]) -> list[str]:
    """Return the `label` of each text. Labels are longer if short labels would be equal."""
    cut = [label(text) for text in texts]
    return [label(text, _LONGEST) if cut.count(short) > 1 else short for text, short in zip(texts, cut, strict=True)]


def _wrap(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(label(text, 3 * width), width)) or " "


def _value(cell: Cell) -> RangedScore | None:
    """Return the value of a cell for drawing. Its ends are NaN without an interval."""
    value = cell.value
    if isinstance(value, RangedScore):
        return value if all(map(math.isfinite, value)) else None
    if isinstance(value, str) and cell.bar is not None:
        value = cell.bar.value
    try:
        number = math.nan if value is None else float(machine_numbers(value) if isinstance(value, str) else value)
    except ValueError:
        return None
    return RangedScore(number, math.nan, math.nan) if math.isfinite(number) else None


def _columns(table: Table) -> list[int]:
    """Return the columns of numbers. Counts of examples are left out, since they describe the rows."""
    return [index for index, column in enumerate(table.columns) if column.numeric and column.name != "examples"]


def _row_names(table: Table) -> list[str]:
    """Return a name per row: the cells of text columns, and the number of examples if a column has it."""
    texts = [index for index, column in enumerate(table.columns) if not column.numeric]
    counts = [index for index, column in enumerate(table.columns) if column.name == "examples"]
    names = labels([", ".join(row[index].text for index in texts) or "none" for row in table.rows])
    return [
        f"{name} ({', '.join(row[index].text for index in counts)})" if counts else name
        for name, row in zip(names, table.rows, strict=True)
    ]


def _add_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add a legend below the axes, in as many columns as fit. The figure grows by the height of the legend."""
    longest = max(map(len, names), default=0) + 6
    columns = max(1, min(len(names), int(figure.get_figwidth() * 17 / longest)))
    figure.set_figheight(figure.get_figheight() + _ROW * math.ceil(len(names) / columns))
    figure.legend(handles, names, loc="outside lower center", ncols=columns, handletextpad=0.5, columnspacing=1)


def _set_names_below(axes: Axes, places: Sequence[float], names: Sequence[str]) -> None:
    """Write names below the axes. If a name is wider than its place, names are slanted and the figure grows."""
    figure: Any = axes.figure
    if _LETTER * max(map(len, names)) < 0.8 * figure.get_figwidth() / len(names):
        axes.set_xticks(places, names)
        return
    axes.set_xticks(places, names, rotation=35, ha="right", rotation_mode="anchor")
    figure.set_figheight(figure.get_figheight() + _LETTER * math.sin(math.radians(35)) * max(map(len, names)))


def _forest(table: Table) -> Figure:
    """Draw a panel per column with a row per model: a dot with its interval as a line. Marked dots are hollow."""
    panels = _columns(table)
    panel_columns = min(3, len(panels))
    panel_rows = math.ceil(len(panels) / panel_columns)
    figure = new_figure(COLUMN if panel_columns == 1 else PAGE, panel_rows * (0.6 + _ROW * len(table.rows)))
    grid = figure.subplots(panel_rows, panel_columns, sharey=True, squeeze=False).ravel()
    for axes, index in zip(grid, panels, strict=False):
        for place, row in enumerate(table.rows):
            colour = GREY if place >= len(table.rows) - table.unranked else PALETTE[0]
            if (measured := _value(row[index])) is not None:
                axes.plot(measured[1:], (place, place), color=colour, marker="|", markersize=4)
                axes.plot(
                    measured.value, place, "o", color=colour, markerfacecolor="white" if row[index].warn else colour
                )
        axes.set_title(_wrap(table.columns[index].head, 38))
        axes.grid(axis="x")
        axes.set_axisbelow(True)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    grid[0].set_yticks(range(len(table.rows)), _row_names(table))
    grid[0].set_ylim(len(table.rows) - 0.5, -0.5)
    if any(row[index].warn for row in table.rows for index in panels):
        figure.supxlabel("hollow: not all samples scored, or trained on these videos", fontsize=6.5)
    return figure


def _heat(table: Table) -> Figure:
    """Draw a coloured cell per number.

    Colours range from -1 to 1 with negative numbers, or from 0 to the maximum or 1.
    """
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    columns = _columns(table)
    cells = [[_value(row[column]) for column in columns] for row in table.rows[:MAX_ROWS]]
    values = np.array([[math.nan if cell is None else cell.value for cell in row] for row in cells])
    has_signs = any(row[column].text.startswith(("+", MINUS)) for row in table.rows for column in columns)
    has_counts = all(type(row[column].value) is int for row in table.rows for column in columns)
    highest = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    scale = Normalize(-1, 1) if has_signs else Normalize(0, max(1.0, highest))
    colours = colormaps["RdBu" if has_signs else "cividis"]
    names = _row_names(table)[: len(cells)]
    is_wide = 0.3 + _LETTER * max(map(len, names)) + 0.34 * len(columns) > COLUMN
    figure = new_figure(PAGE if is_wide else COLUMN, 0.4 + _ROW * 1.15 * len(cells))
    axes = figure.subplots()
    axes.set_facecolor("#dddddd")
    axes.pcolormesh(values, cmap=colours, norm=scale, edgecolors="white", linewidth=0.5)
    for (y, x), value in np.ndenumerate(values):
        red, green, blue, _ = colours(scale(value))
        is_dark = math.isfinite(value) and 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
        text = decimal(value, 0 if has_counts else 2, sign=has_signs) if math.isfinite(value) else NOTHING
        axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=6, color="white" if is_dark else "black")
    heads = [table.columns[column].head for column in columns]
    start = heads[0].partition(" / ")[0] + " / "
    if all(head.startswith(start) for head in heads):
        heads = [head.removeprefix(start) for head in heads]
    _set_names_below(axes, [x + 0.5 for x in range(len(columns))], labels(heads))
    axes.set_yticks([y + 0.5 for y in range(len(cells))], names)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    counts = " (and how many examples)" if len(columns) < sum(column.numeric for column in table.columns) else ""
    left_out = f", {len(cells)} of {len(table.rows)} rows" if len(table.rows) > len(cells) else ""
    axes.set_title(_wrap(f"{table.title}{counts}{left_out}", 110 if is_wide else 52))
    return figure


def _radar(table: Table) -> Figure:
    """Draw an axis per column and a line per model, for the first ranked models. A missing task leaves a gap."""
    import numpy as np

    columns = _columns(table)
    ranked = table.rows[: len(table.rows) - table.unranked] or table.rows
    figure = new_figure(COLUMN, COLUMN - 0.5)
    axes: Any = figure.subplots(subplot_kw={"projection": "polar"})
    angles = np.linspace(0, 2 * math.pi, len(columns), endpoint=False)
    handles, names = [], labels([row[0].text for row in ranked[:MAX_LINES]])
    for row, colour, marker in zip(ranked[:MAX_LINES], PALETTE, MARKERS, strict=False):
        measured = [_value(row[column]) for column in columns]
        values = [math.nan if each is None else each.value for each in measured]
        handles += axes.plot([*angles, angles[0]], [*values, values[0]], color=colour, marker=marker)
    axes.set_xticks(angles, [_wrap(table.columns[column].head, 16) for column in columns])
    axes.set_ylim(min(0, axes.get_ylim()[0]), max(1, axes.get_ylim()[1]))
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"])
    axes.grid(linewidth=0.4)
    _add_legend(figure, handles, names)
    return figure


def _stack(table: Table) -> Figure:
    """Draw a bar per column with a part per row, in the order of the rows. Negative parts are drawn left of zero."""
    columns = _columns(table)
    figure = new_figure(COLUMN, 0.6 + _ROW * len(columns))
    axes = figure.subplots()
    ends = {True: [0.0] * len(columns), False: [0.0] * len(columns)}
    handles = []
    for place, row in enumerate(table.rows):
        colour, _, hatch = _series_look(place)
        measured = [_value(row[column]) for column in columns]
        widths = [each.value if each else 0.0 for each in measured]
        look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.3}
        starts = [ends[width >= 0][bar] for bar, width in enumerate(widths)]
        handles.append(axes.barh(range(len(columns)), widths, 0.75, starts, **look))
        for bar, width in enumerate(widths):
            ends[width >= 0][bar] += width
    axes.set_yticks(range(len(columns)), labels([table.columns[column].head for column in columns]))
    axes.invert_yaxis()
    axes.set_xlabel(table.columns[0].group or "fraction of samples,\nsummed over kinds")
    _add_legend(figure, handles, [label(row[0].text) for row in table.rows])
    return figure


def _scatter(table: Table) -> Figure:
    """Draw the first number against each other number, with a panel per number and a point per row."""
    from matplotlib.ticker import LogLocator, NullLocator

    score, *others = _columns(table)
    figure = new_figure(COLUMN if len(others) == 1 else PAGE, 2.0)
    grid = figure.subplots(1, len(others), sharey=True, squeeze=False)[0]
    handles: dict[int, Any] = {}
    for axes, index in zip(grid, others, strict=True):
        for place, row in enumerate(table.rows):
            colour, marker, _ = _series_look(place)
            height, cost = _value(row[score]), _value(row[index])
            if height is not None and cost is not None:
                axes.plot((cost.value, cost.value), height[1:], color=colour, linewidth=0.7)
                (handles[place],) = axes.plot(cost.value, height.value, marker, color=colour, linestyle="")
        low, high = axes.get_xlim()
        points = [line.get_xdata()[0] for line in axes.lines]
        if points and min(points) > 0 and max(points) > 10 * min(points):
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_formatter("{x:g}")
        else:
            axes.set_xlim(max(0, low), high)
            axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel(label(table.columns[index].head))
        axes.grid()
    grid[0].set_ylabel(label(table.columns[score].head))
    names = labels([row[0].text for row in table.rows])
    places = sorted(handles)
    _add_legend(figure, [handles[place] for place in places], [names[place] for place in places])
    return figure


def _series_look(place: int) -> tuple[str, str, str]:
    """Return colour, marker and hatch of a series. No two of 64 series share both colour and hatch."""
    other = (place + place // len(PALETTE)) % len(HATCHES)
    return PALETTE[place % len(PALETTE)], MARKERS[other], HATCHES[other]


def _fit_axis(axes: Axes, values: Sequence[float]) -> None:
    """Start the axis at 0. If all values are at most 1, cut off the ends of intervals above 1."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_ylim()
    least, most = min(values, default=0), max(values, default=0)
    axes.set_ylim(min(0, low) if least < 0 else 0, min(high, 1.05) if most <= 1 else high)
    if all(float(value).is_integer() for value in values) and most > 1:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def _series(table: Table) -> Figure:
    """Draw each column against the first column, as lines over numbers or as bars over names."""
    series = {name: points for name, points in table.series.items() if points}
    xs = list(dict.fromkeys(x for points in series.values() for x in points))[:MAX_ROWS]
    is_line = table.drawn == "line"
    is_wide = not is_line and len(xs) * len(series) > 16
    figure = new_figure(PAGE if is_wide else COLUMN, 2.0)
    axes = figure.subplots()
    handles: list[Any] = []
    measured = [{x: each for x in xs if (each := _value(Cell(points.get(x))))} for points in series.values()]
    has_neighbours = max((sum(x in heights for heights in measured) for x in xs), default=0) > 1
    width = 0.8 / len(series) if has_neighbours else 0.5
    for place, heights in enumerate(measured):
        colour, marker, hatch = _series_look(place)
        shift = width * (place + 0.5) - 0.4 if has_neighbours and not is_line else 0
        index = [(float(x) if is_line else xs.index(x)) + shift for x in heights]
        values = [each.value for each in heights.values()]
        if is_line:
            handles += axes.plot(index, values, color=colour, marker=marker)
        else:
            handles.append(axes.bar(index, values, width, color=colour, hatch=hatch, edgecolor="white", linewidth=0.3))
        ends = list(zip(*(each[1:] for each in heights.values()), strict=True))
        axes.vlines(index, *ends, color=colour if is_line else "black", linewidth=0.7)
    if not is_line:
        _set_names_below(axes, range(len(xs)), labels(list(map(str, xs))))
        margin = 0.5 if len(xs) > 2 else 1.0
        axes.set_xlim(-margin, len(xs) - 1 + margin)
    axes.set_xlabel(label(table.columns[0].name, _LONGEST))
    axes.set_ylabel(label(table.columns[1].group, _LONGEST))
    _fit_axis(axes, [each.value for heights in measured for each in heights.values()])
    left_out = f", {len(xs)} of {len(table.rows)}" if len(table.rows) > len(xs) else ""
    axes.set_title(_wrap(table.title.removesuffix(": the numbers") + left_out, 110 if is_wide else 52))
    if len(series) > 1:
        _add_legend(figure, handles, labels(list(series)))
    return figure


_DRAWINGS: Final[dict[Drawing, Callable[[Table], Figure]]] = {
    "forest": _forest,
    "heat": _heat,
    "radar": _radar,
    "stack": _stack,
    "scatter": _scatter,
    "line": _series,
    "bar": _series,
}
