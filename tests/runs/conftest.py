from pathlib import Path

import pytest

from barista_bench.data.folder import build
from tests.conftest import MadeOnce


@pytest.fixture(scope="session")
def dataset(small_release: Path, made_once: MadeOnce) -> Path:
    """24 frozen examples."""
    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}
    return made_once("running/barista", lambda out: build(small_release, out, **settings))


@pytest.fixture(scope="session")
def linked_dataset(small_release: Path, made_once: MadeOnce) -> Path:
    """The same examples, frames decoded on access."""
    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "frames": "linked", "cache": False}
    return made_once("running_linked/barista", lambda out: build(small_release, out, **settings))
