"""Annotation files that claim or hold far too much cost their video, little memory, and nothing of the other videos."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.releases import write_release
from tests.scene_graph.hostile_files import HOSTILE, LOST

MOST = 1024
"""MiB that a process may hold."""
GROUPS = 6


def write_hostile(root: Path, names: list[str]) -> dict[str, str]:
    """A release of one sound video and a video of each of these files; the name of each video id."""
    write_release(root, "good")
    video = (root / "good" / "video.mp4").read_bytes()
    ids = {f"v{sorted(HOSTILE).index(name):03d}": name for name in names}
    for video_id, name in ids.items():
        write_release(root, video_id, HOSTILE[name](random.Random(name)), video=False)
        (root / video_id / "video.mp4").write_bytes(video)
    return ids


def test_there_are_many_hostile_files_and_all_are_small() -> None:
    assert len(HOSTILE) >= 70
    assert set(HOSTILE) >= LOST


@pytest.mark.full
@pytest.mark.parametrize("group", range(GROUPS))
def test_hostile_files_take_little_memory_and_cost_no_other_video(tmp_path: Path, group: int) -> None:
    names = sorted(HOSTILE)[group::GROUPS]
    ids = write_hostile(tmp_path / "release", names)
    lost = {video_id for video_id, name in ids.items() if name in LOST}
    command = [sys.executable, "-m", "tests.scene_graph.hostile_run", str(tmp_path / "release")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    told = {line["step"]: line for line in map(json.loads, done.stdout.splitlines())}
    memory = {step: line["mib"] for step, line in told.items()}
    print(memory)
    outcomes: dict[str, Any] = {step: line["outcome"] for step, line in told.items()}
    assert not [outcome for outcome in outcomes.values() if isinstance(outcome, str)], outcomes
    assert sorted({*ids, "good"} - lost) == outcomes["validate"]["usable"]
    assert outcomes["stats"] == {"usable": len(ids) + 1 - len(lost), "lost": len(lost)}
    for benchmark in ("barista", "extended"):
        assert {*outcomes[benchmark]["lost"]} >= lost
        assert "good" not in outcomes[benchmark]["lost"]
        assert outcomes[benchmark]["good"] > 0
    assert max(memory.values()) < MOST, memory
