"""Write reports on scored runs: one self-contained HTML page, a Markdown file, and on request all tables as files.

>>> html, markdown = write_report([score("runs/a"), score("runs/b")], "report")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from barista_bench.errors import ConfigError, require_extra
from barista_bench.files.owned_folders import REPORT, replacing_folder
from barista_bench.files.text_out import markdown
from barista_bench.judging.chosen import ranked_by_judge
from barista_bench.judging.scoring import read_judges
from barista_bench.plots import write_figure
from barista_bench.reporting.aided import DiagnosisFolders, find_diagnoses
from barista_bench.reporting.analyses import analyse
from barista_bench.reporting.figures import report_figures
from barista_bench.reporting.html import render_html
from barista_bench.reporting.pages import Details
from barista_bench.reporting.pictures import Album, make_album
from barista_bench.reporting.report import Report, build_report, distinct_names, report_samples
from barista_bench.reporting.tables import STOPPED, stopped_table
from barista_bench.reporting.why import placed_diagnoses, why_it_fails, why_table
from barista_bench.runs.score.scoring import ScoredRun, split_stopped
from barista_bench.tables import Table, latex_index, to_csv, to_latex, to_markdown

__all__ = ["MAX_BYTES", "write_report"]

MAX_BYTES = 18_000_000
"""Maximum size of the page. Browsers and mail accept it. Pictures and answers are omitted to stay below it."""
SAMPLES = 1000
"""Maximum number of examples of a task that can be browsed. It covers all published sets."""
PAGE, TEXT, TABLE_FOLDER, FIGURE_FOLDER = "report.html", "report.md", "report_tables", "report_figures"
MAX_LINES = 200
"""Maximum number of lines of the Markdown file."""
MAX_ROWS = 40
"""Maximum number of models per leaderboard in the Markdown file."""
# Fractions of the samples, and characters of an answer, that are tried in turn. Otherwise many models with endless
# answers would fill the page.
_SIZES = ((1.0, 20_000), (1.0, 4_000), (1.0, 1_000), (0.5, 1_000), (0.25, 500), (0.1, 200), (0.02, 100))


def write_report(
    runs: Sequence[ScoredRun],
    out: str | Path,
    *,
    samples: int = SAMPLES,
    title: str | None = None,
    compare: bool = True,
    max_bytes: int = MAX_BYTES,
    tables: bool = False,
    figures: bool = False,
    studio: bool = False,
    judge: str | None = None,
) -> tuple[Path, Path]:
    """Write `<out>/report.html`, and `<out>/report.md` as a short version with links into the page.

    The diagnoses to which plain runs belong are in the section "Why it fails".

    Equal runs give equal bytes. A report has no paths, and no dates except the dates of its runs. If a task's method
    raises an error, the method's part of the report is missing, and the task's `faults` name the error.

    Args:
        runs: results of `score`. Runs over the same examples are compared side by side.
        samples: maximum number of examples per task to browse, evenly spread over its set.
        title: heading of the report.
        compare: whether to make the paired comparisons, which take longest.
        max_bytes: the page leaves out pictures, then answers, then samples to stay below this size.
        judge: whose scores rank the models of text tasks; by default the only language model that judged them.
        studio: whether samples link to their moment in the video, in the studio that serves the page.
        tables: whether to write every table also as CSV and as LaTeX into `<out>/report_tables`, where `index.tex` is
            a document of all of them.
        figures: whether to draw the figures of papers as SVG and PDF, each with its numbers, into
            `<out>/report_figures`; needs the extra `viz`.

    Returns:
        The paths of the page and of the Markdown file.

    Raises:
        ConfigError: there is no run, `samples` is negative, or `out` may not be replaced (`replacing_folder`).
        ModelError: figures are requested and Matplotlib is not installed.
    """
    if figures:
        require_extra("drawing figures", "matplotlib", extra="viz")
    all_runs, diagnosed = find_diagnoses(list({run.folder: run for run in runs}.values()))
    runs, _ = split_stopped(all_runs)
    if all_runs and not runs:
        raise ConfigError("all runs stopped early: no score to report. Fix: name the run that they were compared with")
    judges = {run.folder: read_judges(run) for run in runs}
    stopped = stopped_table(all_runs, list(chain.from_iterable(judges.values())))
    judged_runs = {folder: [each for each in of_run if not each.results.stopped] for folder, of_run in judges.items()}
    runs = ranked_by_judge(runs, judged_runs, judge)
    analyses = analyse(runs, compare=compare)
    report = build_report(runs, title=title, judged_runs=judged_runs, analyses=analyses, stopped=stopped)
    details = _fitting_details(report, samples, max_bytes, diagnosed)
    diagnoses = placed_diagnoses(report.sections, diagnosed)
    why = why_it_fails(diagnoses)
    bare_size = len(_bytes(render_html(report, details, Album(), why=why)))
    sources = [(section.runs[0].examples, section.runs[0].task) for section in report.sections]
    page = render_html(
        report, details, make_album(details.samples, sources, max_bytes - bare_size), studio=studio, why=why
    )
    with replacing_folder(Path(out), REPORT) as folder:
        (folder / PAGE).write_bytes(_bytes(page))
        (folder / TEXT).write_bytes(_bytes(_markdown_page(report, PAGE)))
        if tables:
            (folder / TABLE_FOLDER).mkdir()
            names = distinct_names(f"{heading} {table.title}" for heading, table in report.tables)
            for name, (heading, table) in zip(names, report.tables, strict=True):
                (folder / TABLE_FOLDER / f"{name}.csv").write_bytes(to_csv(table).encode())
                (folder / TABLE_FOLDER / f"{name}.tex").write_bytes(
                    _bytes(to_latex(table, table_caption(heading, table)))
                )
            (folder / TABLE_FOLDER / "index.tex").write_bytes(latex_index(names).encode())
        if figures:
            (folder / FIGURE_FOLDER).mkdir()
            drawn = {"why_it_fails": why_table([each.diagnosis for each in diagnoses])} if diagnoses else {}
            for name, table in {**drawn, **report_figures(report)}.items():
                write_figure(table, folder / FIGURE_FOLDER, name)
    return Path(out) / PAGE, Path(out) / TEXT


def table_caption(heading: str, table: Table) -> str:
    """Return a table's caption: its section, title and note."""
    title = f"{heading}: {table.title}" if heading else table.title
    return f"{title}. {table.note}".strip()


def _fitting_details(report: Report, max_samples: int, max_bytes: int, diagnosed: DiagnosisFolders) -> Details:
    """Choose the number of samples and the length of answers so that half of the page is left for pictures and
    tables.
    """
    for fraction, max_text in _SIZES:
        details = Details(report_samples(report, round(max_samples * fraction), max_text, diagnosed))
        if sum(len(text) for _, text in details.chunks_without_pictures) < max_bytes // 2:
            break
    return details


def _markdown_page(report: Report, page: str) -> str:
    """Return the report as Markdown: leaderboards and questions, with links into `page`.

    The text is short enough to read in a repository. It states how many parts are omitted. The page has these parts.
    """
    lines = [
        f"# {markdown(report.title)}",
        "",
        markdown(report.provenance.line),
        "",
        f"All metrics, and samples with their pictures: [{page}]({page}).",
        "",
    ]
    for board in report.boards:
        table = board.table
        lines += [f"## {markdown(board.title)}", "", *to_markdown(table, MAX_ROWS), "", markdown(table.note), ""]
        questions = report.questions(board)
        lines += ["### Key questions", "", *to_markdown(questions), "", markdown(questions.note), ""]
        lines += [
            f"- [{markdown(section.standing.name)}]({page}#{quote(section.address)}): {markdown(section.about)}"
            for section in report.sections
            if section.benchmark == board.benchmark
        ]
        titles = [markdown(t.title) for part in report.papers if part.benchmark == board.benchmark for t in part.tables]
        lines += (
            [f"- Counterparts of the paper's tables, on the page of each task: {'; '.join(titles)}"] if titles else []
        )
        lines.append("")
    for table in report.across:
        if table.title == STOPPED:
            lines += [f"## {STOPPED}", "", *to_markdown(table, MAX_ROWS), "", markdown(table.note), ""]
    warnings = [f"- {markdown(warning)}" for warning in report.warnings]
    lines += ["## What to know before comparing", "", *warnings] if warnings else []
    left_out = [f"- {markdown(text)}" for text in report.left_out]
    lines += ["", "## Left out", "", *left_out] if left_out else []
    if len(lines) > MAX_LINES - 5:
        lines = [*lines[: MAX_LINES - 5], "", f"[… {len(lines) - MAX_LINES + 5} more lines: see {page}]"]
    return "\n".join(lines).strip() + "\n"


def _bytes(text: str) -> bytes:
    """Encode text as UTF-8. Lone surrogates, from models and file names, become escapes."""
    return text.encode(errors="backslashreplace")
