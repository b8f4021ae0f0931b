from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from barista_bench.annotate.project import Project
from barista_bench.data.folder import build
from barista_bench.studio.workspace import open_workspace
from tests.annotate.projects import VIDEO, started
from tests.conftest import MadeOnce
from tests.reporting.browser import Watched
from tests.studio.annotating_page import Annotating, Visited, page_of
from tests.studio.serving import studio_at


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of videos lie in a cache of the tests'."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def asked_data(small_kitchen: Path, made_once: MadeOnce) -> Path:
    """A dataset whose answers are a choice, boxes and a text."""
    tasks = ["activity", "grounding", "referring"]
    return made_once(
        "asked/data", lambda out: build(small_kitchen, out, configs=tasks, sampling={"frame_step": 40}, cache=False)
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where people's answers go."""
    return tmp_path / "people"


@pytest.fixture
def project(small_kitchen: Path, tmp_path: Path) -> Project:
    """Asks for its keyframes."""
    return started(small_kitchen, tmp_path)


@pytest.fixture
def annotating(chromium: Browser, out: Path) -> Annotating:
    """Opens a studio of some folders at a video of its project; see `page_of`."""

    @contextmanager
    def opened(*paths: Path, route: str = f"#/project/{VIDEO}", person: str = "anna", **more: Any) -> Iterator[Page]:
        workspace = open_workspace(paths, person=person, out=out, **more)
        with studio_at(workspace) as address, page_of(chromium, address, route) as page:
            yield page

    return opened


@pytest.fixture
def visited(chromium: Browser, out: Path) -> Visited:
    """Opens a studio of some folders at its home page."""

    @contextmanager
    def opened(*paths: Path, **more: Any) -> Iterator[Watched]:
        workspace = open_workspace(paths, person="anna", out=out, **more)
        with studio_at(workspace) as address, chromium.new_context() as context:
            watched = Watched(context.new_page())
            watched.page.goto(address)
            yield watched

    return opened
