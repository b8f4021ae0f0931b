"""The script of docs/your_own_videos.md."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barista_bench.media.encoding import encode_video
from barista_bench.media.video import read_frames
from barista_bench.scene_graph import SceneGraph
from tests.conftest import SHARED

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "your_own_videos.md"
CLIP, FRAMES = "real_kitchen_b", 112
"""Of a real one, up to where food has left its tray; test_real_clip_in_browser.py annotates all of another."""


def run_script(clips: Path, folder: Path) -> str:
    """The output of the script, in a new folder where `clips` are the videos."""
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


def write_start(clip: Path, folder: Path) -> None:
    """The first frames of a clip as a separate release."""
    content = json.loads((clip / "coco_annotation.json").read_bytes())
    facts = content["video_metadata"][0]
    facts |= {"frame_count": FRAMES, "length_in_ms": round(1000 * FRAMES / facts["fps"])}
    content["annotations"] = [row for row in content["annotations"] if row["image_id"] < FRAMES]
    for layer in ("attributes", "relations", "activities", "process_steps"):
        content[layer] = list(_started(content[layer]))
    folder.mkdir()
    (folder / "coco_annotation.json").write_text(json.dumps(content))
    pictures = read_frames(clip / "video.mp4", range(FRAMES))
    encode_video(folder / "video.mp4", pictures, size=(facts["width"], facts["height"]), fps=round(facts["fps"]))


def _started(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows that begin in the time, with the part of their ranges inside it."""
    for row in rows:
        ranges = row.get("image_ranges") or [row["image_range"]]
        inside = [
            {**part, "image_id_end": min(part["image_id_end"], FRAMES)}
            for part in ranges
            if part["image_id_start"] < FRAMES
        ]
        if inside:
            yield {**row, **({"image_ranges": inside} if "image_ranges" in row else {"image_range": inside[0]})}


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_script_runs_on_the_mini_kitchen_and_on_a_real_clip_where_available(
    small_kitchen: Path, tmp_path: Path
) -> None:
    clips = shutil.copytree(small_kitchen, tmp_path / "release")
    if (SHARED / "real").is_dir():
        write_start(SHARED / "real" / CLIP, clips / CLIP)
    printed = run_script(clips, tmp_path)
    assert "a person is needed: masks on" in printed
    assert "0 errors, 0 warnings" in printed
    graphs, reference = SceneGraph(tmp_path / "graphs"), SceneGraph(clips)
    assert graphs.video_ids == reference.video_ids
    for video_id in reference.video_ids:
        made, original = graphs[video_id], reference[video_id]
        assert made.frame_count == original.frame_count
        assert len(made.activities()) == len(original.activities())
        assert len(made.instances()) > 0.8 * len(original.instances())
    assert (tmp_path / "runs" / "report" / "report.html").stat().st_size > 10_000
