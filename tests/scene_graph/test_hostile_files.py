"""Annotation files that claim or hold far too much cost their video, little memory, and nothing of the other videos."""

import json
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph, limits, reading, validate
from tests.releases import document, span, write_release
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


def test_there_are_many_hostile_files() -> None:
    assert len(HOSTILE) >= 70
    assert set(HOSTILE) >= LOST


LIMITS = {
    "objects": (limits, "MAX_OBJECTS", 4, "holds 5 objects, more than 4"),
    "ranges": (limits, "MAX_RANGES", 7, "holds 8 ranges of attributes and relations, more than 7"),
    "segments": (limits, "MAX_SEGMENTS", 2, "holds 3 activities and process steps, more than 2"),
    "kinds": (limits, "MAX_RELATION_LABELS", 2, "holds 3 kinds of relations, more than 2"),
    "cells": (limits, "MAX_CELLS", 199, "holds 200 objects times frames with a box, more than 199"),
    "pixels": (limits, "MAX_PIXELS", 96 * 64 - 1, "names frames of 96x64 pixels, more than 6,143"),
    "values": (reading, "MAX_VALUES", 100, "JSON values, more than 100"),
    "bytes": (reading, "MAX_BYTES", 100, "bytes, more than 100"),
}


@pytest.mark.parametrize(("module", "limit", "value", "what"), LIMITS.values(), ids=LIMITS)
def test_each_limit_costs_the_video_that_passes_it_and_names_the_excess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, limit: str, value: int, what: str
) -> None:
    write_release(tmp_path, video=False)
    assert SceneGraph(tmp_path)["v1"].problems == ()
    monkeypatch.setattr(module, limit, value)
    with pytest.raises(DataError, match=rf"v1/coco_annotation\.json: .*{what}\. Fix: "):
        SceneGraph(tmp_path)["v1"]


def test_a_claim_of_a_long_video_is_held_against_the_video_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs the video where the file holds fewer frames; where there is no file, as before a download, it stands."""
    content = document()
    content["video_metadata"][0]["frame_count"] = 150_000
    write_release(tmp_path, "claiming", content)
    write_release(tmp_path, "without", content, video=False)
    graph = SceneGraph(tmp_path)
    assert [video.video_id for video in graph.videos()] == ["without"]
    assert "frame_count: 150,000, and video.mp4 holds 40 frames" in str(graph.failed["claiming"])


def test_a_record_beyond_a_limit_costs_only_itself(tmp_path: Path) -> None:
    content = document()
    content["relations"][2]["image_ranges"] = [span(0, 40)] * 41
    content["attributes"][1]["value"] = "white " * 200
    content["activities"][0]["display_name"] = "Place " + "x" * 1000
    content["object_id_to_category_id"]["o" * 1001] = "c-button"
    (tmp_path / "empty").mkdir()
    report = validate(write_release(tmp_path, content=content))
    (video,) = report.videos
    assert (video.relations, video.attributes, video.activities, video.objects) == (4, 2, 1, 5)
    told = [str(problem) for problem in report.problems if problem.severity == "error"]
    assert len(told) == 4
    assert any("relations[2].image_ranges: 41 ranges, more than the video's 40 frames: left out" in m for m in told)
    assert sum("of length <= 1000" in m for m in told) == 3
    assert all(len(m) < 900 for m in told), "a long text is not repeated"


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
