from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.builders.folder import build


@pytest.fixture(scope="session")
def dataset(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 frozen examples."""
    out = tmp_path_factory.mktemp("dataset") / "barista"
    return build(small_release, out, configs=["relations"], sampling={"frame_step": 10}, cache=False).folder


@pytest.fixture(scope="session")
def linked_dataset(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same examples, frames decoded on access."""
    out = tmp_path_factory.mktemp("linked") / "barista"
    made = build(small_release, out, configs=["relations"], sampling={"frame_step": 10}, frames="linked", cache=False)
    return made.folder
