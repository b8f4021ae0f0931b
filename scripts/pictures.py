"""Make the pictures of README and docs from the output of `make run` in build/: kitchen, report and studio.

python scripts/pictures.py
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import chdir, contextmanager
from io import BytesIO
from itertools import cycle, product
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

import msgspec
import typer
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from barista_bench.annotate.project import open_project
from barista_bench.annotate.records import AcceptedFile, read_record, write_record
from barista_bench.api import load_results
from barista_bench.benchmarks import get_task
from barista_bench.cli.commands import app
from barista_bench.data.dataset import open_examples
from barista_bench.studio.inviting import invite
from barista_bench.studio.server import studio_server
from barista_bench.studio.sharing import study_server
from barista_bench.studio.study import Study
from barista_bench.studio.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[1]
BUILD, OUT = ROOT / "build", ROOT / "docs" / "images"
GAP = 8
"""Number of pixels between two pictures."""


FIGURES = {
    "figure_forest": "leaderboard_barista",
    "figure_radar": "tasks_leaderboard_barista",
    "figure_errors": "barista_relations_what_went_wrong",
    "figure_preparation": "all_tasks_by_preparation",
}
"""Vector pictures of docs/figures.md, each with the data that it shows."""
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
"""Counterparts of the papers' figures on the same page: files of `report --figures` and `show stats`, shown as PNG."""


class Screen(NamedTuple):
    """A part of a page. The script waits for `shown`, and scrolls `focus` to the top if it is set."""

    name: str
    address: str
    shown: str
    focus: str = ""
    size: tuple[int, int] = (1280, 860)
    dark: bool = False
    paper: bool = False


SCREENS = (
    Screen("report", "", "table.board"),
    Screen("report_task", "#barista_relations", ".tile"),
    Screen("report_gallery", "#barista_referring?better=kitchen&worse=kitchen_early", ".tile", "#samples"),
    Screen("report_sample", "#barista_relations/{sample}?better=prior&worse=chance", ".card mark"),
    Screen("report_dark", "", "table.board", dark=True),
    Screen("report_phone", "#barista_relations/{sample}", ".card", size=(390, 844)),
    Screen("report_paper", "#barista_relations", ".tile", paper=True),
)


class View(NamedTuple):
    """A page of the studio. The script waits for `shown`, makes `clicks`, presses `keys`, and waits for `then`."""

    name: str
    address: str
    shown: str
    clicks: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    then: str = "main"


EXPLORING = (
    View("explore", "#/graph/mini_capsule_01?frame=67", ".player[data-ready]"),
    View("graph", "#/graph/mini_portafilter_01?frame=100", ".player[data-ready]", ("text=Graph",)),
    View("missing", "#/graph/mini_portafilter_02?frame=69", ".player[data-ready]", ("button:text-is('Missing')",)),
    View("search", "#/search?text=left+hand+holds", ".moments li"),
    View("words", "#/words", ".draft .place img"),
    View("moment", "#/example/{sample}", "details[open]"),
    View("questions", "#/questions", ".choices"),
    View("answer", "#/answer", "form", ("form button",), then=".asked"),
    View("rate", "#/rate", "fieldset"),
)
ANNOTATING = (
    View("annotate", "#/project/{video}?frame=20", ".player[data-ready]", ("button.thing:text-is('coffee cup 1')",)),
    View("doubtful", "#/project/{video}?frame=20", ".player[data-ready]", ("button:text-is('Doubtful')",)),
    View("statements", "#/project/{video}?frame=20", ".player[data-ready]", ("button:text-is('Statements')",)),
    View("keys", "#/project/{video}?frame=20", ".player[data-ready]", keys=("?",)),
    View("agreement", "#/agreement", "main table"),
)
"""Views of the project in build/own, with the project of a second annotator."""
WORKING = (
    View("home", "#/", ".poster img"),
    View("make", "#/make?step=validate", "details[open] .command-line:not(:empty)"),
)
"""Views of the complete folder build/, in which commands can run."""
SIZES = {1280: 860, 2560: 1440}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
STUDYING = View("study", "", "main h2", ("button.primary", "text=skip: I cannot answer"))
TRAINING = Screen("report_training", "#barista_relations", ".tile", size=(1280, 1860))
TRAINED = BUILD / "training" / "report" / "report.html"
"""A report that `make run` does not make. docs/training.md describes how to make it."""


def kitchen() -> Image.Image:
    """Draw a frame as filmed, and the same frame with its marks."""
    examples = open_examples(BUILD / "data" / "barista", "barista", "relations")
    frame, marked = examples[0].images(get_task("barista", "relations"))
    both = Image.new("RGB", (2 * frame.width + GAP, frame.height), "white")
    both.paste(frame, (0, 0))
    both.paste(marked, (frame.width + GAP, 0))
    return both


def figures() -> None:
    """Copy the figures that `report --figures` draws of BARISTA's runs."""
    results = load_results(sorted((BUILD / "runs").glob("*/barista")))
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in FIGURES.items():
            results.plot(figure, out=folder)
            shutil.copy(Path(folder) / f"{figure}.svg", OUT / f"{name}.svg")


def paper_figures(browser: Browser) -> None:
    """Convert the papers' figures that `report --figures` and `show stats` draw to `docs/images/paper_<figure>.png`."""
    results = load_results(sorted((BUILD / "runs").iterdir()))
    program = typer.main.get_command(app)
    with tempfile.TemporaryDirectory() as folder:
        for figure in PAPERS.values():
            if figure in results.plots:
                results.plot(figure, out=folder)
        for source, benchmark in (("graphs", "barista"), ("data/egocot", "egocot")):
            arguments = [
                "show",
                "stats",
                str(BUILD / source),
                "--benchmark",
                benchmark,
                "--out",
                f"{folder}/{benchmark}",
            ]
            program([*arguments, "--no-progress"], standalone_mode=False)
        for name, figure in PAPERS.items():
            page = browser.new_page(device_scale_factor=2)
            page.goto(next(Path(folder).rglob(f"{figure}.svg")).as_uri())
            out = OUT / f"paper_{name}.png"
            page.locator("svg").screenshot(path=out)
            Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)
            page.close()


def picture(browser: Browser, page_address: str, screen: Screen, sample: str) -> None:
    """Write one screen as `docs/images/<name>.png`."""
    width, height = screen.size
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if screen.dark else "light"
    )
    page.goto(page_address)
    page.goto(page_address.partition("?")[0] + screen.address.format(sample=quote(sample, safe="")))
    page.locator(screen.shown).first.wait_for()
    if screen.focus:
        page.locator(screen.focus).evaluate("part => part.scrollIntoView()")
    if screen.paper:
        page.emulate_media(media="print")
    page.wait_for_timeout(500)  # pictures are decoded
    out = OUT / f"{screen.name}.png"
    page.screenshot(path=out)
    Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)
    page.close()


def view_pictures(browser: Browser, addresses: Iterable[str], view: View, sample: str, video: str = "") -> None:
    """Write a view as `docs/images/studio_<name>_<width>_<scheme>.webp`, in both sizes and colour schemes.

    The pictures use the addresses in turn.
    """
    address = view.address.format(sample=quote(sample, safe=""), video=quote(video))
    for ((width, height), scheme), page_address in zip(product(SIZES.items(), SCHEMES), cycle(addresses), strict=False):
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(page_address)
        page.wait_for_url(lambda url: "token=" not in url)  # the studio moves to an address of its own
        page.goto(page.url.partition("#")[0] + address)
        page.locator(view.shown).first.wait_for()
        for click in view.clicks:
            page.locator(click).first.click()
        for key in view.keys:
            page.keyboard.press(key)
        page.locator(view.then).first.wait_for()
        page.wait_for_timeout(700)  # pictures are decoded, and what rests is sharp
        with Image.open(BytesIO(page.screenshot())) as shot:
            shot.save(OUT / f"studio_{view.name}_{width}_{scheme}.webp", quality=60, method=6)
        page.close()


def second_annotator(project: Path, folder: Path) -> Path:
    """Make a copy of a project in which another annotator has left out the first object of each keyframe."""
    other = Path(shutil.copytree(project, folder / "ben"))
    for path in other.glob(f"*/{AcceptedFile.FILE}"):
        accepted = read_record(path, AcceptedFile)
        keyframes = [
            msgspec.structs.replace(keyframe, masks=dict(list(keyframe.masks.items())[1:]))
            for keyframe in accepted.keyframes
        ]
        write_record(path, msgspec.structs.replace(accepted, keyframes=keyframes))
    return other


@contextmanager
def studio(paths: list[Path], folder: Path | None = None, compared: tuple[Path, ...] = ()) -> Iterator[str]:
    """Start a studio on these paths, and yield its address."""
    program = typer.main.get_command(app)
    with (
        tempfile.TemporaryDirectory() as people,
        chdir(people),  # a page names it as the command would
        studio_server(
            open_workspace(paths, person="anna", out=Path("people"), folder=folder, compared=compared), program=program
        ) as server,
    ):
        thread = threading.Thread(target=server.run)
        thread.start()
        yield server.address
        server.stop()
        thread.join()


def participant(browser: Browser, data: Path) -> None:
    """Show a practice question of a study, with the right answer."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        study = Study(1, port, "", (str(data),), ("grounding",), 20, 20)
        links = invite(Path(folder), study, ["anna", "ben", "carla", "david"])  # each sees the first question
        with study_server(Path(folder)) as server:
            thread = threading.Thread(target=server.run)
            thread.start()
            view_pictures(browser, links.values(), STUDYING, "")
            server.stop()
            thread.join()


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    kitchen().quantize(128).save(OUT / "kitchen.png", optimize=True)
    figures()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        raise SystemExit("no browser. Fix: apt-get install chromium, or name one in the variable CHROMIUM")
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
        review = BUILD / "releases" / "review.jsonl"
        with studio([BUILD / "kitchen", BUILD / "data" / "barista", BUILD / "runs" / "chance", review]) as address:
            for view in EXPLORING:
                view_pictures(browser, [address], view, sample)
        participant(browser, BUILD / "data" / "barista")
        project = BUILD / "own" / "project"
        with (
            tempfile.TemporaryDirectory() as folder,
            studio([project], compared=(second_annotator(project, Path(folder)),)) as address,
        ):
            for view in ANNOTATING:
                view_pictures(browser, [address], view, sample, video=next(iter(open_project(project).file.videos)))
        with studio([project, BUILD / "kitchen", BUILD / "data" / "barista", BUILD / "runs"], BUILD) as address:
            for view in WORKING:
                view_pictures(browser, [address], view, sample)
        browser.close()
