import shutil
from pathlib import Path

import pytest

from barista_bench.data.folder import build
from tests.conftest import MadeOnce


@pytest.fixture(scope="session")
def release(small_release: Path, made_once: MadeOnce) -> Path:
    """The small release, whose videos all show the same, with different bytes for each: MP4's box of nothing."""

    def make(root: Path) -> None:
        shutil.copytree(small_release, root)
        for folder in root.iterdir():
            with (folder / "video.mp4").open("ab") as file:
                file.write(b"\0\0\0\x0cfree" + folder.name.encode().ljust(4))

    return made_once("training/release", make)


@pytest.fixture(scope="session")
def built(release: Path, made_once: MadeOnce) -> Path:
    """The release with its own split: three videos to train on, three to test."""
    sampling = {"grounding": {"fraction": 0.5}}
    return made_once("training/built", lambda out: build(release, out, sampling=sampling, cache=False, progress=False))
