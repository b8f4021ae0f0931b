from pathlib import Path

import pytest

from barista_bench.data.folder import build
from tests.conftest import MadeOnce


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
