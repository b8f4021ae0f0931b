from pathlib import Path

import pytest

from barista_bench.data.folder import build
from tests.conftest import MadeOnce


@pytest.fixture(scope="session")
def dataset(small_release: Path, made_once: MadeOnce) -> Path:
    """24 frozen examples of relations."""
    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}
    return made_once("evaluators/barista", lambda out: build(small_release, out, **settings))
