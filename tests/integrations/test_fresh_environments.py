"""Environments of their own, made by pip: an installed wheel, and the metrics without this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
METRICS = sorted(path.parent for path in (ROOT / "metrics").glob("*/requirements.txt"))


def run(command: list[str | Path], folder: Path) -> str:
    """What a command prints that sees nothing of this environment."""
    variables = {**os.environ, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(folder: Path, *requirements: str | Path) -> Path:
    """The scripts of a new virtual environment that holds these requirements."""
    run([sys.executable, "-m", "venv", folder], folder.parent)
    constraints = ["--constraint", ROOT / "constraints.txt"]
    run([folder / "bin/pip", "install", "--quiet", *constraints, *requirements], folder.parent)
    return folder / "bin"


def test_an_installed_wheel_goes_from_a_kitchen_to_a_score(tmp_path: Path) -> None:
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    scripts = environment(tmp_path / "env", wheel)
    work = tmp_path / "work"
    work.mkdir()
    ours = scripts / "barista-bench"
    run([ours, "mini", "kitchen", "--videos", "3", "--no-progress"], work)
    run([ours, "build", "--source", "kitchen", "--out", "data/barista", "--sampling", "limit=5"], work)
    run([ours, "run", "data/barista", "--task", "all", "--model", "oracle", "--runs", "1", "--out", "runs"], work)
    for folder in sorted((work / "runs").iterdir()):
        assert " 1.000 over 1 run(s)" in run([ours, "score", folder], work), folder


def test_every_metric_loads_where_only_its_own_requirements_are(tmp_path: Path) -> None:
    requirements = [argument for metric in METRICS for argument in ("--requirement", metric / "requirements.txt")]
    scripts = environment(tmp_path / "env", *requirements)
    program = "import evaluate, sys\nfor name in sys.argv[1:]: print(type(evaluate.load(name)).__name__)"
    printed = run([scripts / "python", "-c", program, *METRICS], tmp_path)
    assert len(printed.split()) == len(METRICS)
