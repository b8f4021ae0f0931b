from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barista_bench.media.video import FrameReader, open_reader
from tests.annotate.scenes import write_scene


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrameReader]:
    """41 frames of the made scene."""
    folder: Path = write_scene(tmp_path_factory.mktemp("scene") / "frames", 41)
    with open_reader(folder) as frames:
        yield frames
