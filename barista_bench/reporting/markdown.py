"""The report as Markdown, for repositories and papers: all tables, and a few samples with pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from barista_bench.core.task import ExplanationRow
from barista_bench.files.text_out import markdown, printable
from barista_bench.reporting.samples import ModelAnswers, Sample
from barista_bench.reporting.tables import Cell, Table, number, words
from barista_bench.reporting.view import Report

MAX_ANSWER = 1500
VERDICTS = {"hit": "✓ correct", "miss": "○ missed", "wrong": "✗ wrong"}


def render_markdown(
    report: Report, samples: Sequence[Sample], files: Mapping[int, Sequence[str]], problems: Mapping[int, str]
) -> str:
    """The file. `files`: places of the samples shown, and their pictures; `problems`: why there are none."""
    # Markdown has no autoescape of its own: `md` and `fenced` take that part for every text from outside.
    environment = Environment(  # noqa: S701
        loader=PackageLoader("barista_bench.reporting"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "md": markdown,
        "table": table_text,
        "fenced": fenced,
        "named": _named,
        "outcome": _outcome,
        "verdict": _verdict,
    }
    text = environment.get_template("report.md.j2").render(
        report=report, shown=[(place, samples[place]) for place in files], files=files, problems=problems
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def fenced(text: str) -> str:
    """A code block that `text` cannot close: its fence is longer than any in the text."""
    shown = printable(text if len(text) <= MAX_ANSWER else f"{text[:MAX_ANSWER]}\n[… cut]", keep="\n\t")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}"


def table_text(table: Table) -> str:
    """A pipe table; the heading over columns goes in front of their names."""
    heads = [f"{column.group}: {column.name}" if column.group else column.name for column in table.columns]
    lines = [
        [markdown(head) or " " for head in heads],
        ["---:" if column.numeric else "---" for column in table.columns],
        *([_cell(cell) for cell in row] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    text = markdown(" ".join(part for part in (cell.text, cell.extra, *cell.notes) if part))
    return f"**{text}**" if cell.warn else text


def _named(sample: Sample, report: Report) -> list[tuple[str, ModelAnswers]]:
    return list(zip(report.sections[sample.section].labels, sample.models, strict=True))


def _outcome(model: ModelAnswers) -> str:
    if not model.answers:
        return "not run"
    first = model.answers[0]
    parts = [f"run {first.run}", words(first.status), first.error]
    parts += [f"score {number(score)}" for score in first.scores[:1]]
    return ", ".join(part for part in parts if part)


def _verdict(row: ExplanationRow) -> str:
    return f"{VERDICTS[row.verdict]}: {row.text}"
