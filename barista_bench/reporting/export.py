"""The tables of a report as CSV and as LaTeX, for spreadsheets and papers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from barista_bench.files import text_out
from barista_bench.reporting.tables import Cell, Table

if TYPE_CHECKING:
    import pandas as pd


def csv(table: Table) -> str:
    """One column a column; what stands smaller in the page gets columns of its own, `… spread` and `… notes`."""
    return text_out.for_machines(text_out.csv(_frame(table, spread=True)))


def latex(table: Table) -> str:
    r"""A `tabular` with booktabs' rules; spreads and intervals stand behind the numbers.

    Needs `\usepackage{booktabs}`.
    """
    return text_out.for_machines(text_out.latex(_frame(table, spread=False), "".join(_alignments(table))), "$-$")


def file_names(tables: Sequence[tuple[str, Table]]) -> list[str]:
    """A file name without ending for each (heading, table): readable, safe on every system, and each once."""
    return distinct(f"{heading} {table.title}" for heading, table in tables)


def distinct(texts: Iterable[str]) -> list[str]:
    """`plain_name` of each, numbered where it has come before."""
    names: dict[str, None] = {}
    for text in texts:
        names[next(name for name in _numbered(plain_name(text)) if name not in names)] = None
    return list(names)


def plain_name(text: str) -> str:
    """A file name without ending, made of lower-case letters, digits and underscores.

    >>> plain_name("Pets / grounding: Per class")
    'pets_grounding_per_class'
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:80] or "table"


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _frame(table: Table, *, spread: bool) -> pd.DataFrame:
    import pandas as pd

    heads, columns = [], []
    for position, column in enumerate(table.columns):
        head = f"{column.group}: {column.name}" if column.group else column.name
        cells = [row[position] for row in table.rows]
        heads.append(head)
        columns.append([cell.text if spread else _whole(cell) for cell in cells])
        for name, texts in (
            ("spread", [cell.extra for cell in cells]),
            ("notes", ["; ".join(cell.notes) for cell in cells]),
        ):
            if spread and any(texts):
                heads.append(f"{head} {name}")
                columns.append(texts)
    frame = pd.DataFrame(list(zip(*columns, strict=True)), columns=range(len(heads)), dtype="object")
    return frame.set_axis(pd.Index(heads, dtype="object"), axis="columns")  # names may repeat


def _whole(cell: Cell) -> str:
    intervals = (note for note in cell.notes if note.startswith("["))
    return " ".join(part for part in (cell.text, cell.extra, *intervals) if part)


def _alignments(table: Table) -> Iterator[str]:
    for column in table.columns:
        yield "r" if column.numeric else "l"
