import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_benchmark
from barista_bench.data.folder import build
from barista_bench.data.register import register, unregister
from barista_bench.mini import write_kitchen
from tests.conftest import MadeOnce

LIMIT = 6
"""Examples of each task in the shared folders."""


@pytest.fixture(scope="session")
def kitchen_release(made_once: MadeOnce) -> Path:
    """Two small scripted videos, long and busy enough for every task to have examples."""
    return made_once("builders/kitchen", lambda root: write_kitchen(root, videos=2, width=128, height=64, num_proc=1))


@pytest.fixture(scope="session")
def kitchen_split(kitchen_release: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A split file that puts one video on either side."""
    first, second = sorted(path.parent.name for path in kitchen_release.glob("*/video.mp4"))
    path = tmp_path_factory.mktemp("split") / "split.json"
    path.write_text(json.dumps({"train": [first], "test": [second]}))
    return str(path)


@pytest.fixture(scope="session")
def six_frozen(kitchen_release: Path, kitchen_split: str, made_once: MadeOnce) -> Path:
    """All configs of the kitchen, frozen, in a folder called `barista`."""
    settings = {"sampling": {"limit": LIMIT}, "split_file": kitchen_split, "cache": False}
    return made_once("six_frozen/barista", lambda out: build(kitchen_release, out, **settings))


@pytest.fixture(scope="session")
def six_linked(kitchen_release: Path, kitchen_split: str, made_once: MadeOnce) -> Path:
    """The six tasks again, frames linked."""
    settings = {"sampling": {"limit": LIMIT}, "split_file": kitchen_split, "cache": False}
    settings |= {"configs": get_benchmark("barista").task_names, "frames": "linked"}
    return made_once("six_linked/barista", lambda out: build(kitchen_release, out, **settings))


@pytest.fixture
def offline(tmp_path: Path, datasets_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own to work in, and a `datasets` cache, which is returned."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    return datasets_cache


@pytest.fixture
def registered() -> Iterator[None]:
    """Replaces `load_dataset` by our function."""
    register()
    yield
    unregister()
