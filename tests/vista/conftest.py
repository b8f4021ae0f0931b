from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks.vista.release import VistaRelease, open_release
from tests.conftest import SHARED


@pytest.fixture(scope="session")
def real_vista() -> VistaRelease:
    """The annotations of the real release, which lie beside the repository on some machines; never its videos."""
    folder = SHARED / "data" / "vista"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: the annotations of ViSTa are not part of this repository")
    return open_release(folder)


@pytest.fixture(scope="session")
def mini(generated: Callable[[str], Path]) -> Path:
    """A small release in ViSTa's layout."""
    return generated("vista")
