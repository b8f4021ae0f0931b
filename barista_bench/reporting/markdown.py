"""The report as Markdown, short enough to read in a repository: leaderboards and findings, with links into the page."""

from __future__ import annotations

from urllib.parse import quote

from barista_bench.files.text_out import markdown
from barista_bench.reporting.view import Report
from barista_bench.tables import to_markdown

MAX_LINES = 200
MAX_ROWS = 40
"""Models of one leaderboard."""


def render_markdown(report: Report, page: str) -> str:
    """The file; `page` is the name of the HTML page beside it. What does not fit is counted, and stands in the page."""
    lines = [f"# {markdown(report.title)}", "", f"All figures, and samples with their pictures: [{page}]({page}).", ""]
    for board in report.boards:
        table = board.table
        lines += [f"## {markdown(board.title)}", "", *to_markdown(table, MAX_ROWS), "", markdown(table.note), ""]
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
