"""The script of docs/your_own_videos.md."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from barista_bench.scene_graph import SceneGraph

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "your_own_videos.md"


def run_script(clips: Path, folder: Path) -> str:
    """What the script prints, in a folder of its own where `clips` are the videos."""
    (folder / "clips").symlink_to(clips)
    program = folder / "bin" / "barista-bench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W ignore -m barista_bench.cli "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HF_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "1",
    }
    (script,) = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(
        ["bash", "-e", "-u", "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(clips: Path, folder: Path) -> None:
    printed = run_script(clips, folder)
    assert "a person is needed: masks on" in printed
    assert "0 errors, 0 warnings" in printed
    graphs, reference = SceneGraph(folder / "graphs"), SceneGraph(clips)
    assert graphs.video_ids == reference.video_ids
    for video_id in reference.video_ids:
        made, original = graphs[video_id], reference[video_id]
        assert made.frame_count == original.frame_count
        assert len(made.activities()) == len(original.activities())
        assert len(made.instances()) > 0.8 * len(original.instances())
    assert (folder / "runs" / "report" / "report.html").stat().st_size > 10_000


@pytest.mark.full
def test_the_script_runs_on_videos_of_the_mini_kitchen(small_kitchen: Path, tmp_path: Path) -> None:
    shutil.copytree(small_kitchen, tmp_path / "release")
    check(tmp_path / "release", tmp_path)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_script_runs_on_three_real_clips(real_release: Path, tmp_path: Path) -> None:
    check(real_release, tmp_path)
