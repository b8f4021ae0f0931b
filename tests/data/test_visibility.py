"""How well the objects of BARISTA's own examples can be seen, by the raw annotation file."""

import shutil
from pathlib import Path

import pytest

from barista_bench.core.example import evidence_objects
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.visibility import graph_visibility
from tests.generate.raw_video import RawVideo

SAMPLING = {"grounding": {"limit": 20, "fraction": 1.0, "min_area": 20.0}, "activity": {"frames": 4}}


def test_area_time_and_occlusion_equal_the_annotation_file(small_kitchen: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    configs = [*SAMPLING, "graph_frames", "graph_instances"]
    build(small_kitchen, data, benchmark="barista", configs=configs, sampling=SAMPLING, cache=False)
    videos: dict[str, RawVideo] = {}
    for task in SAMPLING:
        examples = open_examples(data, "barista", task)
        seen = graph_visibility(examples)
        assert seen.keys() == {example.example_id for example in examples.examples}
        for example in examples.examples:
            if example.video_id not in videos:
                videos[example.video_id] = RawVideo(small_kitchen / example.video_id / "coco_annotation.json")
            video, items = videos[example.video_id], evidence_objects(example)
            moments = [frame.frame_index for frame in example.frames]
            there = [(item, frame) for item in items for frame in moments if video.on(item, frame)]
            boxes = [video.marks[item][frame]["bbox"] for item, frame in there]
            hidden = [max(0.0, 1 - video.area(item, frame) / video._median[item]) for item, frame in there]
            frames = range(moments[0], moments[-1] + 1)
            seconds = [sum(video.on(item, frame) for frame in frames) / video.fps for item in items]
            row = seen[example.example_id]
            assert row.area == pytest.approx(min(w * h for *_, w, h in boxes) / video.width / video.height, abs=1e-6)
            assert row.hidden == pytest.approx(max(hidden), abs=1e-3)
            assert row.seconds == (pytest.approx(min(seconds), abs=1e-3) if len(moments) > 1 else None)
    shutil.rmtree(data / "graph_instances")
    assert graph_visibility(examples) == {}
