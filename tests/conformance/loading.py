"""Metrics as `evaluate.load` finds them: copied, with their siblings, into a folder of modules that a test owns."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
METRICS = REPO / "metrics"
FOLDERS = sorted(path.parent.name for path in METRICS.glob("[!_.]*/__init__.py"))


@contextmanager
def own_modules(folder: Path) -> Iterator[Path]:
    """Let `evaluate` copy scripts into `folder`, from the repository's root; return the folder of its data."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", folder)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", folder / "data")
    patch.setattr(sys, "path", [*sys.path])
    patch.chdir(REPO)
    _forget_copies()
    try:
        yield folder / "data"
    finally:
        patch.undo()
        _forget_copies()


def load_class(name: str, data: Path) -> type:
    """The metric's class. Call it within `own_modules`, which has this data folder."""
    import evaluate

    return type(evaluate.load(str(METRICS / name), cache_dir=str(data)))


def _forget_copies() -> None:
    """The package of copied scripts remembers its first folder, and would look for other tests' metrics there."""
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        del sys.modules[name]
