"""Reports over scored runs: one HTML page that needs nothing else, and a Markdown file.

>>> html, markdown = write_report([score("runs/a"), score("runs/b")], "report")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from barista_bench.judging.scoring import JudgedRun, all_judged
from barista_bench.reporting.html import NO_ROOM, render_html
from barista_bench.reporting.markdown import render_markdown
from barista_bench.reporting.pictures import Pictures, within_budget
from barista_bench.reporting.samples import spread
from barista_bench.reporting.view import Report, build_report
from barista_bench.running.scoring import ScoredRun

__all__ = ["MAX_BYTES", "write_report"]

MAX_BYTES = 18_000_000
"""Size of the page that pictures and answers are cut to: browsers and mail still take it."""
MARKDOWN_SAMPLES = 6
PICTURE_FOLDER = "report_images"
# Characters of one answer; many models with endless answers would fill the page, so it may take several tries.
_ANSWER_SIZES = (20_000, 5_000, 1_000, 200)


def write_report(
    runs: Sequence[ScoredRun],
    out: str | Path,
    *,
    samples: int = 60,
    title: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> tuple[Path, Path]:
    """Write `<out>/report.html` and `<out>/report.md` (with a few pictures in `<out>/report_images`).

    Equal runs give equal bytes: no time and no path stands in a report.

    Args:
        runs: as `score` returns them; those over the same examples are compared side by side.
        samples: examples to page through, evenly spread over each example set.
        title: heading of the report.
        max_bytes: the page leaves out pictures, and says so, to stay below this size.

    Returns:
        The paths of the page and of the Markdown file.

    Raises:
        ConfigError: there is no run, or `samples` is negative.
    """
    report = _fitting(runs, samples, title, max_bytes, {run.folder: all_judged(run) for run in runs})
    bare = len(_page(report, [None] * len(report.samples)))
    sources = [
        (report.sections[sample.section].runs[0].examples, sample.index, report.sections[sample.section].runs[0].task)
        for sample in report.samples
    ]
    pictures = within_budget(sources, max_bytes - bare)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    page, text = folder / "report.html", folder / "report.md"
    _replace(text, _bytes(_markdown(report, pictures, folder)))
    _replace(page, _page(report, pictures))
    return page, text


def _fitting(
    runs: Sequence[ScoredRun],
    samples: int,
    title: str | None,
    max_bytes: int,
    judged: Mapping[Path, Sequence[JudgedRun]],
) -> Report:
    """The report with answers as long as leave half of the page to pictures."""
    for max_text in _ANSWER_SIZES:
        report = build_report(runs, samples=samples, title=title, max_text=max_text, judged=judged)
        if len(_page(report, [None] * len(report.samples))) < max_bytes // 2:
            break
    return report


def _markdown(report: Report, pictures: Sequence[Pictures | None], folder: Path) -> str:
    places = spread(len(report.samples), MARKDOWN_SAMPLES)
    files: dict[int, list[str]] = {}
    for place in places:
        found = pictures[place]
        files[place] = [f"{PICTURE_FOLDER}/{place}-{n}.jpg" for n in range(len(found.files) if found else 0)]
        for name, content in zip(files[place], found.files if found else (), strict=True):
            (folder / PICTURE_FOLDER).mkdir(exist_ok=True)
            _replace(folder / name, content)
    problems = {place: NO_ROOM if (found := pictures[place]) is None else found.problem for place in places}
    return render_markdown(report, places, files, problems)


def _page(report: Report, pictures: Sequence[Pictures | None]) -> bytes:
    return _bytes(render_html(report, pictures))


def _bytes(text: str) -> bytes:
    """Models and file names can bring lone surrogates, which have no UTF-8 form."""
    return text.encode(errors="backslashreplace")


def _replace(path: Path, content: bytes) -> None:
    """Write atomically: a reader sees the old file or the new one."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)
