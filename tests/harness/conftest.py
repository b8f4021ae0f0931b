from pathlib import Path

import pytest

from barista_bench.data.folder import build
from tests.conftest import MadeOnce


@pytest.fixture(scope="session")
def dataset(small_release: Path, made_once: MadeOnce) -> Path:
    settings = {"configs": ["relations", "grounding"], "sampling": {"frame_step": 20}, "cache": False}
    return made_once("harness/barista", lambda out: build(small_release, out, **settings))
