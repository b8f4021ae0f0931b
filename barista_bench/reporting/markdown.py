"""The report as Markdown, short enough to read in a repository: leaderboards and findings, with links into the page."""

from __future__ import annotations

from urllib.parse import quote

from barista_bench.files.text_out import markdown
from barista_bench.reporting.tables import Cell, Table
from barista_bench.reporting.view import Report

MAX_LINES = 200
MAX_ROWS = 40
"""Models of one leaderboard."""


def render_markdown(report: Report, page: str) -> str:
    """The file; `page` is the name of the HTML page beside it. What does not fit is counted, and stands in the page."""
    lines = [f"# {markdown(report.title)}", "", f"All figures, and samples with their pictures: [{page}]({page}).", ""]
    for board in report.boards:
        lines += [f"## {markdown(board.title)}", "", *table_lines(board.table), "", markdown(board.table.note), ""]
        sections = [section for section in report.sections if section.benchmark == board.benchmark]
        lines += [
            f"- [{markdown(section.standing.name)}]({page}#{quote(section.address)}): {markdown(section.finding)}"
            for section in sections
        ]
        titles = [markdown(t.title) for part in report.papers if part.benchmark == board.benchmark for t in part.tables]
        lines += (
            [f"- Counterparts of the paper's tables, on the page of each task: {'; '.join(titles)}"] if titles else []
        )
        lines.append("")
    warnings = [f"- {markdown(warning)}" for warning in report.warnings]
    lines += ["## What to know before comparing", "", *warnings] if warnings else []
    left_out = [f"- {markdown(text)}" for text in report.left_out]
    lines += ["", "## Left out", "", *left_out] if left_out else []
    if len(lines) > MAX_LINES - 5:
        lines = [*lines[: MAX_LINES - 5], "", f"[… {len(lines) - MAX_LINES + 5} more lines: see {page}]"]
    return "\n".join(lines).strip() + "\n"


def table_lines(table: Table) -> list[str]:
    """A pipe table of at most `MAX_ROWS` rows; the heading over columns goes in front of their names."""
    heads = [f"{column.group}: {column.name}" if column.group else column.name for column in table.columns]
    rows = [
        [markdown(head) or " " for head in heads],
        ["---:" if column.numeric else "---" for column in table.columns],
        *([_cell(cell) for cell in row] for row in table.rows[:MAX_ROWS]),
    ]
    more = [f"| … {len(table.rows) - MAX_ROWS} more |"] if len(table.rows) > MAX_ROWS else []
    return [*(f"| {' | '.join(row)} |" for row in rows), *more]


def _cell(cell: Cell) -> str:
    text = markdown(" ".join(part for part in (cell.text, cell.extra, *cell.notes) if part))
    return f"**{text}**" if cell.warn else text
