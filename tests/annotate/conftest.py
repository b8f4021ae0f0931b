from collections.abc import Iterator
from pathlib import Path

import pytest

from barista_bench.annotate.project import Project, VideoFiles
from barista_bench.media.video import FrameReader, open_reader
from tests.annotate.projects import asked, started, tracked
from tests.annotate.scenes import write_scene
from tests.conftest import MadeOnce


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrameReader]:
    """41 frames of the made scene."""
    folder: Path = write_scene(tmp_path_factory.mktemp("scene") / "frames", 41)
    with open_reader(folder) as frames:
        yield frames


@pytest.fixture(scope="session")
def checkpoints(made_once: MadeOnce) -> Path:
    """`detector`, `segmenter` (SAM 2, which also tracks): random weights."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tests.annotate.sam_checkpoints import write_checkpoint, write_detector

    def make(folder: Path) -> None:
        transformers.set_seed(0)
        write_detector(folder / "detector")
        write_checkpoint(folder / "segmenter", "sam2_video")

    return made_once("bootstraps", make)


@pytest.fixture
def project(small_kitchen: Path, tmp_path: Path) -> Project:
    return started(small_kitchen, tmp_path)


@pytest.fixture
def video(small_kitchen: Path, project: Project) -> VideoFiles:
    """Annotated, not propagated."""
    return asked(small_kitchen, project.folder.parent)


@pytest.fixture
def tracked_video(small_kitchen: Path, tmp_path: Path) -> VideoFiles:
    """Annotated and propagated."""
    return tracked(small_kitchen, tmp_path)
