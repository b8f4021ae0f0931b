"""docs/tutorial.md runs from top to bottom, as a reader would run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


@pytest.mark.slow
def test_the_tutorial_runs_and_shows_what_it_speaks_of(six_tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "barista").symlink_to(six_tasks)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for shown in ("micro_f1", "effect_size", "preparation", "missed", "grounding -> relations: odds ratio"):
        assert shown in done.stdout, done.stdout
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"chance", "oracle", "prior"}
