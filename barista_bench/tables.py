"""Tables as one record, and a renderer for each format: Markdown, HTML, LaTeX, CSV, JSON and the terminal.

Reports, counterparts of papers' tables, leaderboards, statistics and judges make tables of texts as they are: what a
text could do in a format (markup, a formula, control characters) is escaped by the renderers alone. A leaderboard Space
imports this, so that pandas is imported where it is needed.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from barista_bench.files.text_out import decimal, for_machines, markdown, no_formula, one_line

if TYPE_CHECKING:
    import pandas as pd

NOTHING = "–"
"""Printed for None, and for what is not a finite number."""


class Ranged(NamedTuple):
    """A figure with its 95% interval."""

    value: float
    low: float
    high: float


Value: TypeAlias = str | int | float | Ranged | None
"""None: an empty cell."""
Query: TypeAlias = tuple[tuple[str, str], ...]
Drawing: TypeAlias = Literal["line", "bar", "forest", "heat", "radar", "stack", "scatter"]
"""How a table is drawn: see `barista_bench.plots`."""
X = TypeVar("X", bound=str | float)


@dataclass(frozen=True, slots=True)
class Column:
    """`group` is the heading that neighbouring columns share; empty for none."""

    name: str
    group: str = ""
    numeric: bool = True

    @property
    def head(self) -> str:
        """The whole heading, for formats whose head is one row."""
        return f"{self.group}: {self.name}" if self.group else self.name


@dataclass(frozen=True, slots=True)
class Bar:
    """A fraction from 0 to 1 as a bar, with the ends of its 95% interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class GapToNext:
    """How far a model is before the next one of its task, and how sure that is: `p` after Holm's correction.

    `certainty` is that of `stats.Comparison`.
    """

    below: str
    difference: float
    p: float
    certainty: str
    better: int
    worse: int


@dataclass(frozen=True, slots=True)
class Cell:
    """`extra` is printed smaller behind the value, `notes` below it; `warn` asks for attention.

    On a report's page, `bar` is drawn and `gap` told beside the text, and `query` leads to the samples behind the
    figure: names and values of the gallery's filters.
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
        """The value as people read it."""
        return number(self.value)


Row: TypeAlias = Sequence[Cell | Value]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows have one cell a column; the last `unranked` rows have no rank.

    Of a `drawn` table there is a figure too. A page shows lines and bars: each column against the first one.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    drawn: Drawing | None = None
    unranked: int = 0

    @classmethod
    def of(cls, title: str, columns: Iterable[Column | str], rows: Iterable[Row], note: str = "") -> Table:
        """A table of values or cells; a column that is given by its name alone is numeric where it holds no text."""
        cell_rows = tuple(cells(*row) for row in rows)
        heads = tuple(
            column
            if isinstance(column, Column)
            else Column(column, numeric=all(not isinstance(row[at].value, str) for row in cell_rows))
            for at, column in enumerate(columns)
        )
        return cls(title, heads, cell_rows, note)

    @classmethod
    def of_frame(cls, title: str, frame: pd.DataFrame) -> Table:
        """Missing values of the frame are empty cells; those that are neither text nor number, their texts."""
        values = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
        rows = ([v if v is None or isinstance(v, str | int | float) else str(v) for v in row] for row in values)
        return cls.of(title, map(str, frame.columns), rows)

    @property
    def heads(self) -> tuple[str, ...]:
        return tuple(column.head for column in self.columns)

    @property
    def values(self) -> tuple[tuple[Value, ...], ...]:
        """The rows without all that stands around the values."""
        return tuple(tuple(cell.value for cell in row) for row in self.rows)

    @property
    def series(self) -> dict[str, dict[float | str, Value]]:
        """The series to draw: by the name of each column but the first, its values over those of the first."""
        xs = [float(row[0].text) if self.drawn == "line" else row[0].text for row in self.rows]
        return {
            column.name: {x: row[at].value for x, row in zip(xs, self.rows, strict=True) if row[at].value is not None}
            for at, column in enumerate(self.columns[1:], 1)
        }


def chart(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Mapping[X, Value]],
    kind: Literal["line", "bar"] = "line",
    note: str = "",
) -> Table:
    """A figure and its numbers: a row an x, a column a series; `x` and `y` are what the axes say, with their units.

    Args:
        series: the heights over x, by the name of a line or of the bars of one colour. A line's x is a number.
    """
    xs = list(dict.fromkeys(at for points in series.values() for at in points))
    if not any(isinstance(at, str) for at in xs):
        xs.sort(key=float)
    rows = ((at if isinstance(at, str) else f"{at:g}", *(points.get(at) for points in series.values())) for at in xs)
    columns = (*text_columns(x), *number_columns(y, *series))
    return replace(Table.of(f"{title}: the numbers", columns, rows, note), drawn=kind)


def words(name: str) -> str:
    """A key as people read it.

    >>> words("per_relation_type")
    'per relation type'
    """
    return name.replace("_", " ")


def number(value: object) -> str:
    """A count with separators, a fraction with three digits; anything else as text.

    >>> number(12345), number(0.12345), number(Ranged(-0.04, -0.1, 0.2)), number(None)
    ('12,345', '0.123', '−0.040', '–')
    """
    value = float(value.value) if isinstance(value, Ranged) else value
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
    """A row of cells: of those that are none yet, a figure with an interval has it as a note."""
    return tuple(value if isinstance(value, Cell) else _cell(value) for value in values)


def _cell(value: Value) -> Cell:
    return Cell(value, notes=(interval(value.low, value.high),) if isinstance(value, Ranged) else ())


def text_columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, numeric=False) for name in names)


def number_columns(group: str, *names: str) -> tuple[Column, ...]:
    """Columns of numbers below a heading; empty for none."""
    return tuple(Column(name, group) for name in names)


def to_markdown(table: Table, max_rows: int | None = None) -> list[str]:
    """The lines of a pipe table, of at most so many rows; the heading over columns goes in front of their names."""
    rows = [
        [markdown(head) or " " for head in table.heads],
        ["---:" if column.numeric else "---" for column in table.columns],
        *([_markdown_cell(cell) for cell in row] for row in table.rows[:max_rows]),
    ]
    left_out = 0 if max_rows is None else len(table.rows) - max_rows
    return [*(f"| {' | '.join(row)} |" for row in rows), *([f"| … {left_out} more |"] if left_out > 0 else [])]


def markdown_page(title: str, tables: Iterable[Table]) -> str:
    """Tables below each other, with their notes; one without a title belongs to the heading before."""
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
    """For spreadsheets: numbers as they are, nothing for None, and in front of a formula an apostrophe.

    What stands smaller in a page has columns of its own, `… spread` and `… notes`.
    """
    by_column = ((column, [row[at] for row in table.rows]) for at, column in enumerate(table.columns))
    columns = [part for column, of_column in by_column for part in _file_columns(column, of_column)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([head for head, _ in columns])
    writer.writerows(zip(*(values for _, values in columns), strict=True))
    return buffer.getvalue()


def _file_columns(column: Column, of_column: Sequence[Cell]) -> Iterator[tuple[str, list[object]]]:
    """The columns that a file has of one column, each with its head."""
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
        return no_formula(for_machines(value) if column.numeric else value)
    return _finite(value.value if isinstance(value, Ranged) else value)


def _finite(value: Value) -> object:
    """As JSON has it: a figure with its interval as a list, None for what is not a finite number."""
    if isinstance(value, Ranged):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json(table: Table) -> dict[str, object]:
    """Title, heads of the columns, rows of values (a figure with an interval is a list of the three), and note."""
    rows = [[_finite(value) for value in row] for row in table.values]
    return {"title": table.title, "columns": table.heads, "rows": rows, "note": table.note}


def to_latex(table: Table, caption: str = "") -> str:
    r"""A `tabular` with booktabs' rules, all that LaTeX has a meaning for escaped; intervals stand behind the numbers.

    With a caption, a `table` around it, which may be wider than the page. Needs `\usepackage{booktabs}`.
    """
    alignments = "".join("r" if column.numeric else "l" for column in table.columns)
    latex = for_machines(_printable_frame(table).to_latex(index=False, escape=True, column_format=alignments), "$-$")
    if not caption:
        return latex
    return f"\\begin{{table}}\n\\caption{{{latex_text(caption)}}}\n{latex}\\end{{table}}\n"


def latex_text(text: str) -> str:
    r"""One line of text, all that LaTeX has a meaning for escaped.

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
    """A document of its own that holds the tables of these files, which lie beside it, each on a page."""
    inputs = (f"\\clearpage\n\\input{{{name}.tex}}\n" for name in names)
    return f"{LATEX_INDEX}{''.join(inputs)}\\end{{document}}\n"


def to_html(table: Table) -> str:
    """A `table` element, its texts escaped."""
    return str(_printable_frame(table).to_html(index=False))


def to_text(table: Table) -> str:
    """For the terminal."""
    return str(_printable_frame(table).to_string(index=False))


def _printable_frame(table: Table) -> pd.DataFrame:
    """Each cell as one printable line; of its notes the intervals."""
    import pandas as pd

    rows = [
        [one_line(_join_words(c.text, c.extra, *(note for note in c.notes if note.startswith("[")))) for c in row]
        for row in table.rows
    ]
    frame = pd.DataFrame(rows, columns=range(len(table.columns)), dtype="object")
    return frame.set_axis(pd.Index(map(one_line, table.heads), dtype="object"), axis="columns")  # names may repeat


def _join_words(*parts: str) -> str:
    return " ".join(part for part in parts if part)
