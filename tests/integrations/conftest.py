from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.integrations.test_fresh_environments import ROOT, run, tracked


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of what git tracks."""
    folder = tmp_path_factory.mktemp("sdist")
    for name in tracked():
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / "tree" / name)
    run([sys.executable, "-c", "from setuptools import build_meta; build_meta.build_sdist('..')"], folder / "tree")
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the source distribution: a tree keeps `build/lib`, and with it files that are deleted since."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, sdist], folder)
    (made,) = folder.glob("*.whl")
    return made
