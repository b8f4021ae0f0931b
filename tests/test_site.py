"""The documentation site as it is built: whole, without a server and without a network."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

import barista_bench
from tests.test_cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.full

TYPED = {
    "how do I resume a killed evaluation": "resume-a-killed-run",
    "custom judge model": "use-my-own-judge",
    "number of frames per video": "limit-the-examples-or-the-number-of-frames-per-video",
    "how to evaluate a new model": "add-and-evaluate-a-new-model",
    "compare two runs": "compare-two-runs",
    "significance between models": "read-p_adjusted-the-significance-of-a-difference-between-two-models",
    "token usage and cost": "count-tokens-and-estimate-the-cost-before-a-run",
    "slurm multi node": "run-on-slurm-on-several-gpus-or-nodes",
    "evaluate existing predictions": "evaluate-existing-predictions-recorded-by-another-program",
    "add a custom task": "add-a-custom-task-or-a-new-benchmark",
    "my own questions": "ask-my-own-questions",
    "no internet": "run-offline-without-internet",
    "where are the responses saved": "get-the-outputs-of-each-sample",
    "results lower than reported": "see-why-my-score-differs-from-the-papers",
}
"""What people type whose questions stand in the issue trackers of other harnesses, and the answer on docs/faq.md."""


FORMAT = ("annotation file format", "annotations format", "scene graph format", "coco_annotation.json format")
"""What people type who have annotations of their own: docs/graph_format.md."""


class Links(HTMLParser):
    """The links of a page (`links`), the files that a browser loads for it (`loaded`), and its anchors (`ids`)."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag != "a":
            self.loaded += [given[name] for name in ("src", "href") if name in given]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False, env=os.environ | {"PYTHONUTF8": "1"}
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_command_and_every_public_name_has_its_place(site: Path) -> None:
    for command, parameters in COMMANDS.items():
        page = (site / "reference" / "commands" / f"{command.split()[0]}.html").read_text(encoding="utf-8")
        text = re.sub(r"<[^>]+>", "", page)
        assert f"barista-bench {command}" in text
        options = [parameter.opts[0] for parameter in parameters if parameter.param_type_name == "option"]
        assert not [option for option in options if option not in text], command
    ids = Links(site / "reference" / "python.html").ids
    assert {f"barista_bench.{name}" for name in barista_bench.__all__} <= ids


def test_every_link_leads_somewhere_and_nothing_is_fetched(site: Path) -> None:
    pages = {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 80
    followed = 0
    for page, found in pages.items():
        for link in found.links + found.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert link in found.links, f"{page}: loads {link}"
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page}: {link}"
            assert not parts.fragment or target.suffix != ".html" or parts.fragment in pages[target].ids, link
            followed += 1
    assert followed > 5000


def test_programs_that_read_find_every_page_and_its_text(site: Path) -> None:
    listed = re.findall(r"^- \[.+?\]\((.+?)\)", (site / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert all((site / name).is_file() for name in listed)
    texts = {name for name in listed if name.endswith(".md")}
    assert {"faq.md", "reference/commands/run.md", "repository/CHANGELOG.md"} <= texts
    assert len(texts) > 70


def test_questions_as_people_type_them_find_their_answer_first_without_a_server(site: Path, chromium: Browser) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": 860})
    page.goto((site / "index.html").as_uri())
    query = page.locator("input[name=query]")
    query.click()
    for typed, answer in TYPED.items():
        query.fill("")
        query.press_sequentially(typed)
        found = page.locator(f".md-search-result__item:first-child a[href*='faq.html'][href$='#{answer}']").first
        found.wait_for(state="visible", timeout=20_000)
    for typed in FORMAT:
        query.fill("")
        query.press_sequentially(typed)
        found = page.locator(".md-search-result__item:first-child a[href*='graph_format.html']").first
        found.wait_for(state="visible", timeout=20_000)
    page.close()


def test_the_search_tells_nodes_of_words_with_digits_apart(site: Path, chromium: Browser) -> None:
    """Else words get lost, and a search that meets one fails (scripts/site.py, `_mend_search`)."""
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    page = chromium.new_page()
    page.add_script_tag(path=worker)
    names = page.evaluate("""() => [{1: {id: 234}}, {1: {id: 2}, 3: {id: 4}}].map(
        edges => Object.assign(new lunr.TokenSet(), {edges}).toString())""")
    page.close()
    assert len(set(names)) == 2
