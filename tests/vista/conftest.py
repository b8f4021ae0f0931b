from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.benchmarks.vista.release import VistaRelease, open_release
from tests.conftest import SHARED, MadeOnce


@pytest.fixture(scope="session")
def real_vista() -> VistaRelease:
    """The annotations of the real release, which lie beside the repository on some machines; never its videos."""
    folder = SHARED / "data" / "vista"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: the annotations of ViSTa are not part of this repository")
    return open_release(folder)


@pytest.fixture(scope="session")
def mini(small_kitchen: Path, made_once: MadeOnce) -> Path:
    """A small release in ViSTa's layout."""
    from barista_bench.benchmarks.vista.mini import write_mini

    return made_once("mini/vista", lambda out: write_mini(small_kitchen, out))
