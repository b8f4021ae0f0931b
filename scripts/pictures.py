"""Pictures of README and docs, made from what `make run` leaves in build/: the kitchen, the report, the studio.

python scripts/pictures.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import typer
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from barista_bench.annotate.project import open_project
from barista_bench.api import load_results
from barista_bench.benchmarks import get_task
from barista_bench.cli import app
from barista_bench.data.dataset import open_examples
from barista_bench.studio.server import serving
from barista_bench.studio.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[1]
BUILD, OUT = ROOT / "build", ROOT / "docs" / "images"
GAP = 8
"""Pixels between two pictures."""


FIGURES = {
    "figure_forest": "leaderboard_barista",
    "figure_radar": "tasks_leaderboard_barista",
    "figure_errors": "barista_relations_what_went_wrong",
    "figure_preparation": "all_tasks_by_preparation",
}
"""Vector pictures of docs/figures.md: what each is drawn of."""
PAPERS = {
    "barista_3": "statistics_overview",
    "barista_4": "statistics_activities",
    "barista_5": "rank_agreement_between_tasks_of_barista",
    "barista_6": "all_tasks_of_barista_by_preparation",
    "vista_3a": "vista_figure_3a_single_actions_level_1",
    "vista_3b": "vista_figure_3b_longer_sequences_all_environments",
    "vista_4": "vista_figure_4_permutation_problem_sets",
    "tog_bench_5": "tog_bench_figure_5_by_duration_of_the_video",
    "tog_bench_6": "tog_bench_figure_6_categories",
    "egocot_2": "figure_2_questions",
    "egocot_3": "egocot_bench_figure_3_accuracy_by_subtask",
}
"""Counterparts of the papers' figures on the same page: files of `report --figures` and `stats`, shown as PNG."""


class Screen(NamedTuple):
    """A part of a page: `shown` is waited for, `clicks` are made, `focus`, if there is one, is scrolled to the top."""

    name: str
    address: str
    shown: str
    focus: str = ""
    size: tuple[int, int] = (1280, 860)
    dark: bool = False
    paper: bool = False
    clicks: tuple[str, ...] = ()


SCREENS = (
    Screen("report", "", "table.board"),
    Screen("report_task", "#barista_relations", ".tile"),
    Screen("report_gallery", "#barista_referring?better=kitchen&worse=kitchen_early", ".tile", "#samples"),
    Screen("report_sample", "#barista_relations/{sample}?better=prior&worse=chance", ".card mark"),
    Screen("report_dark", "", "table.board", dark=True),
    Screen("report_phone", "#barista_relations/{sample}", ".card", size=(390, 844)),
    Screen("report_paper", "#barista_relations", ".tile", paper=True),
)


STUDIO = (
    Screen("studio_explore", "#/graph/mini_capsule_01?frame=200", ".player[data-ready]"),
    Screen(
        "studio_explore_dark",
        "#/graph/mini_portafilter_01?frame=300",
        ".player[data-ready]",
        clicks=("text=Graph",),
        dark=True,
    ),
    Screen("studio_moment", "#/example/{sample}", "details[open]"),
    Screen("studio_questions", "#/questions", ".choices"),
    Screen("studio_answer", "#/answer", "form", clicks=("form button",)),
    Screen("studio_rate_dark", "#/rate", "fieldset", dark=True),
)
ANNOTATING = (
    Screen("studio_annotate", "#/project/{video}?frame=40", ".player[data-frame]", clicks=("text=Doubtful",)),
    Screen("studio_annotate_dark", "#/project/{video}?frame=40", ".player[data-frame]", dark=True),
)
"""Of the project in build/own."""
WORKING = (
    Screen("studio_home", "#/", ".poster img"),
    Screen("studio_home_dark", "#/", ".poster img", size=(2560, 1300), dark=True),
    Screen("studio_make", "#/make?step=validate", "details[open] .line:not(:empty)"),
)
"""Of all of build/, in which commands can be run."""
TRAINING = Screen("report_training", "#barista_relations", ".tile", size=(1280, 1860))
TRAINED = BUILD / "training" / "report" / "report.html"
"""Not of `make run`: docs/training.md says how it is made."""


def kitchen() -> Image.Image:
    """A frame as it was filmed, and the same frame with its marks."""
    examples = open_examples(BUILD / "data" / "barista", "barista", "relations")
    frame, marked = examples[0].images(get_task("barista", "relations"))
    both = Image.new("RGB", (2 * frame.width + GAP, frame.height), "white")
    both.paste(frame, (0, 0))
    both.paste(marked, (frame.width + GAP, 0))
    return both


def figures() -> None:
    """What `report --figures` draws of BARISTA's runs, as it is."""
    results = load_results(sorted((BUILD / "runs").glob("*/barista")))
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in FIGURES.items():
            results.plot(figure, out=folder)
            shutil.copy(Path(folder) / f"{figure}.svg", OUT / f"{name}.svg")


def paper_figures(browser: Browser) -> None:
    """What `report --figures` and `stats` draw as the papers do, of all runs, as `docs/images/paper_<figure>.png`."""
    results = load_results(sorted((BUILD / "runs").iterdir()))
    program = typer.main.get_command(app)
    with tempfile.TemporaryDirectory() as folder:
        for figure in PAPERS.values():
            if figure in results.plots:
                results.plot(figure, out=folder)
        for source, benchmark in (("graphs", "barista"), ("data/egocot", "egocot")):
            arguments = ["stats", str(BUILD / source), "--benchmark", benchmark, "--out", f"{folder}/{benchmark}"]
            program([*arguments, "--no-progress"], standalone_mode=False)
        for name, figure in PAPERS.items():
            page = browser.new_page(device_scale_factor=2)
            page.goto(next(Path(folder).rglob(f"{figure}.svg")).as_uri())
            out = OUT / f"paper_{name}.png"
            page.locator("svg").screenshot(path=out)
            Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)
            page.close()


def picture(browser: Browser, page_address: str, screen: Screen, sample: str, video: str = "") -> None:
    """One screen as `docs/images/<name>.png`."""
    width, height = screen.size
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if screen.dark else "light"
    )
    page.goto(page_address)
    page.goto(page_address.partition("?")[0] + screen.address.format(sample=quote(sample, safe=""), video=quote(video)))
    page.locator(screen.shown).first.wait_for()
    for click in screen.clicks:
        page.locator(click).first.click()
    if screen.focus:
        page.locator(screen.focus).evaluate("part => part.scrollIntoView()")
    if screen.paper:
        page.emulate_media(media="print")
    page.wait_for_timeout(500)  # pictures are decoded
    out = OUT / f"{screen.name}.png"
    page.screenshot(path=out)
    Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)
    page.close()


@contextmanager
def studio(paths: list[Path], folder: Path | None = None) -> Iterator[str]:
    """The address of a studio on these paths."""
    program = typer.main.get_command(app)
    with (
        tempfile.TemporaryDirectory() as people,
        serving(open_workspace(paths, person="anna", out=Path(people), folder=folder), program=program) as server,
    ):
        thread = threading.Thread(target=server.run)
        thread.start()
        yield server.address
        server.stop()
        thread.join()


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    kitchen().quantize(128).save(OUT / "kitchen.png", optimize=True)
    figures()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        raise SystemExit("no browser. Remedy: apt-get install chromium, or name one in the variable CHROMIUM")
    sample = open_examples(BUILD / "data" / "barista", "barista", "relations").examples[0].example_id
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        paper_figures(browser)
        for screen in SCREENS:
            picture(browser, (BUILD / "report" / "report.html").as_uri(), screen, sample)
        if TRAINED.exists():
            picture(browser, TRAINED.as_uri(), TRAINING, sample)
        else:
            print(f"no {TRAINED}: {TRAINING.name}.png stays as it is")
        review = next((BUILD / "releases" / "egocot").glob("review*.jsonl"))
        with studio([BUILD / "kitchen", BUILD / "data" / "barista", BUILD / "runs" / "chance", review]) as address:
            for screen in STUDIO:
                picture(browser, address, screen, sample)
        project = BUILD / "own" / "project"
        with studio([project]) as address:
            for screen in ANNOTATING:
                picture(browser, address, screen, sample, video=next(iter(open_project(project).file.videos)))
        with studio([project, BUILD / "kitchen", BUILD / "data" / "barista", BUILD / "runs"], BUILD) as address:
            for screen in WORKING:
                picture(browser, address, screen, sample)
        browser.close()
