from pathlib import Path

import pytest

from barista_bench.benchmarks.vista.release import VistaRelease, open_release
from tests.conftest import SHARED, MadeOnce
from tests.vista.made import write_small_release


@pytest.fixture(scope="session")
def real_vista() -> VistaRelease:
    """The annotations of the real release, which lie beside the repository on some machines; never its videos."""
    folder = SHARED / "data" / "vista"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: the annotations of ViSTa are not part of this repository")
    return open_release(folder)


@pytest.fixture(scope="session")
def mini(made_once: MadeOnce) -> Path:
    """A small hand-made release with every environment."""
    return made_once("made/vista", write_small_release)
