"""Define a record for tables, and render tables as Markdown, HTML, LaTeX, CSV, JSON and text for the terminal.

Tables hold plain text. Only the renderers escape text with a meaning in their format (markup, formulas, control
characters). A leaderboard Space imports this module, so pandas is imported only on demand.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from barista_bench.files.text_out import decimal, machine_numbers, markdown, no_formula, one_line

if TYPE_CHECKING:
    import pandas as pd

NOTHING = "–"
"""Text for None and for numbers that are not finite."""


class RangedScore(NamedTuple):
    """A score with its 95% interval."""

    value: float
    low: float
    high: float


Value: TypeAlias = str | int | float | RangedScore | None
"""Value of a cell. None is an empty cell."""
Query: TypeAlias = tuple[tuple[str, str], ...]
Drawing: TypeAlias = Literal["line", "bar", "forest", "heat", "radar", "stack", "scatter"]
"""How a table is drawn (see `barista_bench.plots`)."""
X = TypeVar("X", bound=str | float)


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `group` is the heading that neighbouring columns share, or empty."""

    name: str
    group: str = ""
    numeric: bool = True

    @property
    def head(self) -> str:
        """Return the heading including the group, for formats with a single header row."""
        return f"{self.group}: {self.name}" if self.group else self.name


@dataclass(frozen=True, slots=True)
class Bar:
    """A fraction from 0 to 1 as a bar, with the ends of its 95% interval if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class GapToNext:
    """The difference between a model and the next model of its task. `p` is corrected by Holm's procedure.

    `certainty` comes from `stats.Comparison`.
    """

    below: str
    difference: float
    p: float
    certainty: str
    better: int
    worse: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell. `extra` is printed smaller after the value, and `notes` below the value. `warn` highlights the cell.

    On a report's page, `bar` is drawn and `gap` is written beside the text. `query` links to the samples behind the
    score. It holds names and values of the gallery's filters.
    """

    value: Value
    extra: str = ""
    warn: bool = False
    notes: tuple[str, ...] = ()
    bar: Bar | None = None
    gap: GapToNext | None = None
    query: Query = ()

    @property
    def text(self) -> str:
        """Return the value as text."""
        return number(self.value)


Row: TypeAlias = Sequence[Cell | Value]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Rows have one cell per column. The last `unranked` rows have no rank.

    A `drawn` table also has a figure. A page draws lines and bars of each column against the first column.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    drawn: Drawing | None = None
    unranked: int = 0

    @classmethod
    def of(cls, title: str, columns: Iterable[Column | str], rows: Iterable[Row], note: str = "") -> Table:
        """Return a table of values or cells. A column given by name is numeric if it holds no text."""
        cell_rows = tuple(cells(*row) for row in rows)
        heads = tuple(
            column
            if isinstance(column, Column)
            else Column(column, numeric=all(not isinstance(row[index].value, str) for row in cell_rows))
            for index, column in enumerate(columns)
        )
        return cls(title, heads, cell_rows, note)

    @classmethod
    def of_frame(cls, title: str, frame: pd.DataFrame) -> Table:
        """Convert a frame to a table.

        Missing values become empty cells. Values other than texts and numbers become texts.
        """
        values = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
        rows = ([v if v is None or isinstance(v, str | int | float) else str(v) for v in row] for row in values)
        return cls.of(title, map(str, frame.columns), rows)

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(column.head for column in self.columns)

    @property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """Return the rows with plain values only."""
        return tuple(tuple(cell.value for cell in row) for row in self.rows)

    @property
    def series(self) -> dict[str, dict[float | str, Value]]:
        """Return the series to draw. Each column after the first maps the first column's values to its own values."""
        xs = [float(row[0].text) if self.drawn == "line" else row[0].text for row in self.rows]
        return {
            column.name: {
                x: row[index].value for x, row in zip(xs, self.rows, strict=True) if row[index].value is not None
            }
            for index, column in enumerate(self.columns[1:], 1)
        }


def chart(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Mapping[X, Value]],
    kind: Literal["line", "bar"] = "line",
    note: str = "",
) -> Table:
    """Return a drawn table with one row per x and one column per series. `x` and `y` are axis labels with units.

    Args:
        series: maps the name of each line, or of the bars of one colour, to its heights over x. A line's x is a number.
    """
    xs = list(dict.fromkeys(index for points in series.values() for index in points))
    if not any(isinstance(index, str) for index in xs):
        xs.sort(key=float)
    rows = (
        (index if isinstance(index, str) else f"{index:g}", *(points.get(index) for points in series.values()))
        for index in xs
    )
    columns = (*text_columns(x), *number_columns(y, *series))
    return replace(Table.of(f"{title}: the numbers", columns, rows, note), drawn=kind)


_WRITTEN = {"f1": "F1", "map": "mAP", "iou": "IoU", "miou": "mIoU", "viou": "vIoU", "vqa": "VQA", "scr": "SCR"}


def words(name: str) -> str:
    """Return a key as readable words.

    >>> words("per_relation_type"), words("temporal_vqa"), words("micro_f1")
    ('per relation type', 'temporal VQA', 'micro F1')
    """
    return " ".join(_WRITTEN.get(word, word) for word in name.split("_"))


def number(value: object) -> str:
    """Format a count with separators and a fraction with three digits. Other values become text.

    >>> number(12345), number(0.12345), number(RangedScore(-0.04, -0.1, 0.2)), number(None)
    ('12,345', '0.123', '−0.040', '–')
    """
    value = float(value.value) if isinstance(value, RangedScore) else value
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NOTHING
    if isinstance(value, float):
        return decimal(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def interval(low: float, high: float) -> str:
    """
    >>> interval(0.1, 0.25)
    '[0.100, 0.250]'
    """
    return f"[{number(float(low))}, {number(float(high))}]"


def cells(*values: Cell | Value) -> tuple[Cell, ...]:
    """Return a row of cells. Plain values become cells, with an interval as a note."""
    return tuple(value if isinstance(value, Cell) else _cell(value) for value in values)


def _cell(value: Value) -> Cell:
    return Cell(value, notes=(interval(value.low, value.high),) if isinstance(value, RangedScore) else ())


def text_columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, numeric=False) for name in names)


def number_columns(group: str, *names: str) -> tuple[Column, ...]:
    """Return columns of numbers with the common heading `group`. It may be empty."""
    return tuple(Column(name, group) for name in names)


def to_markdown(table: Table, max_rows: int | None = None) -> list[str]:
    """Return the lines of a pipe table with at most `max_rows` rows. Group headings stand before column names."""
    rows = [
        [markdown(head) or " " for head in table.heads],
        ["---:" if column.numeric else "---" for column in table.columns],
        *([_markdown_cell(cell) for cell in row] for row in table.rows[:max_rows]),
    ]
    left_out = 0 if max_rows is None else len(table.rows) - max_rows
    return [*(f"| {' | '.join(row)} |" for row in rows), *([f"| … {left_out} more |"] if left_out > 0 else [])]


def markdown_page(title: str, tables: Iterable[Table]) -> str:
    """Return tables with notes, one below the other. A table without a title belongs to the previous heading."""
    lines = [f"# {markdown(title)}"]
    for table in tables:
        lines += ["", f"## {markdown(table.title)}"] if table.title else []
        lines += ["", *to_markdown(table)]
        lines += ["", markdown(table.note)] if table.note else []
    return "\n".join(lines) + "\n"


def _markdown_cell(cell: Cell) -> str:
    text = markdown(_join_words(cell.text, cell.extra, *cell.notes))
    return f"**{text}**" if cell.warn else text


def to_csv(table: Table) -> str:
    """Return the table for spreadsheets: plain numbers, empty cells for None, and an apostrophe before formulas.

    Text that a page prints smaller has separate columns, `… spread` and `… notes`.
    """
    by_column = ((column, [row[index] for row in table.rows]) for index, column in enumerate(table.columns))
    columns = [part for column, of_column in by_column for part in _file_columns(column, of_column)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([head for head, _ in columns])
    writer.writerows(zip(*(values for _, values in columns), strict=True))
    return buffer.getvalue()


def _file_columns(column: Column, of_column: Sequence[Cell]) -> Iterator[tuple[str, list[object]]]:
    """Yield the file columns for one column of the table, each with its heading."""
    parts: dict[str, list[Value]] = {
        "": [cell.value for cell in of_column],
        " spread": [cell.extra for cell in of_column],
        " notes": ["; ".join(cell.notes) for cell in of_column],
    }
    for suffix, values in parts.items():
        if not suffix or any(values):
            yield no_formula(f"{column.head}{suffix}"), [_for_file(value, column) for value in values]


def _for_file(value: Value, column: Column) -> object:
    if isinstance(value, str):
        return no_formula(machine_numbers(value) if column.numeric else value)
    return _as_finite(value.value if isinstance(value, RangedScore) else value)


def _as_finite(value: Value) -> object:
    """Convert a value for JSON. A score with its interval becomes a list, and a number that is not finite becomes
    None.
    """
    if isinstance(value, RangedScore):
        return [_as_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json(table: Table) -> dict[str, object]:
    """Return title, headings, rows of values, and note. A score with an interval is a list of three numbers."""
    rows = [[_as_finite(value) for value in row] for row in table.values]
    return {"title": table.title, "columns": table.heads, "rows": rows, "note": table.note}


def to_latex(table: Table, caption: str = "") -> str:
    r"""Return a `tabular` with booktabs rules. Special characters are escaped, and intervals follow the numbers.

    With a caption, the `tabular` is inside a `table`. It may be wider than the page. Needs `\usepackage{booktabs}`.
    """
    alignments = "".join("r" if column.numeric else "l" for column in table.columns)
    latex = machine_numbers(_printable_frame(table).to_latex(index=False, escape=True, column_format=alignments), "$-$")
    if not caption:
        return latex
    return f"\\begin{{table}}\n\\caption{{{latex_text(caption)}}}\n{latex}\\end{{table}}\n"


def latex_text(text: str) -> str:
    r"""Escape all special characters of LaTeX in a text, and return it on one line.

    >>> latex_text("50 % of a_b")
    '50 \\% of a\\_b'
    """
    import pandas as pd

    shown = pd.DataFrame([one_line(text)]).to_latex(index=False, header=False, escape=True)
    return shown.partition("\\midrule\n")[2].rpartition(" \\\\\n\\bottomrule")[0]


LATEX_INDEX = r"""% All tables of a report: lualatex index.tex (any letter of a model's name), or pdflatex.
\documentclass{article}
\usepackage[landscape,margin=1cm]{geometry}
\usepackage{booktabs}
\begin{document}
\listoftables
"""


def latex_index(names: Iterable[str]) -> str:
    """Return a LaTeX document with one table per page. The tables come from these files in its folder."""
    inputs = (f"\\clearpage\n\\input{{{name}.tex}}\n" for name in names)
    return f"{LATEX_INDEX}{''.join(inputs)}\\end{{document}}\n"


def to_html(table: Table) -> str:
    """Return a `table` element with escaped text."""
    return str(_printable_frame(table).to_html(index=False))


def to_text(table: Table) -> str:
    """Return the table as text for the terminal."""
    return str(_printable_frame(table).to_string(index=False))


def _printable_frame(table: Table) -> pd.DataFrame:
    """Return each cell as one printable line. Of its notes, only intervals are kept."""
    import pandas as pd

    rows = [
        [one_line(_join_words(c.text, c.extra, *(note for note in c.notes if note.startswith("[")))) for c in row]
        for row in table.rows
    ]
    frame = pd.DataFrame(rows, columns=range(len(table.columns)), dtype="object")
    return frame.set_axis(pd.Index(map(one_line, table.heads), dtype="object"), axis="columns")  # names may repeat


def _join_words(*parts: str) -> str:
    return " ".join(part for part in parts if part)
