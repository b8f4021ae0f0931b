"""What of a graph is complete: questions to it, and files that say it wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barista_bench.data.folder import build
from barista_bench.scene_graph import LAYERS, SceneGraph, VideoGraph, validate
from tests.releases import LEFT, document, span, write_release


def graph(root: Path, coverage: Any) -> VideoGraph:
    return SceneGraph(write_release(root, content={**document(), "coverage": coverage}, video=False))["v1"]


def test_a_file_without_coverage_leaves_nothing_out(tmp_path: Path) -> None:
    coverage = SceneGraph(write_release(tmp_path, video=False))["v1"].coverage
    assert not coverage.is_partial
    assert all(coverage.covers_layer(layer) for layer in LAYERS)
    assert coverage.covers_category("anything")
    assert coverage.annotated_frames(-5, 50).tolist() == list(range(40))


def test_spans_are_complete_where_ranges_cover_them(tmp_path: Path) -> None:
    stated = {
        "frames": [span(3, 4), span(10, 12)],
        "categories": {"Coffee Cup": [span(0, 10), span(10, 20)]},
        "hands": {LEFT: [span(5, 6)]},
        "layers": {"relations": [span(30, 90)]},
    }
    coverage = graph(tmp_path, stated).coverage
    assert coverage.is_partial
    assert coverage.annotated_frames(0, 40).tolist() == [3, 10, 11]
    assert coverage.covers_category("coffee cup", 5, 20)
    assert not coverage.covers_category("coffee cup", 5, 21)
    assert not coverage.covers_category("jar", 5, 6)
    assert coverage.covers_hand(LEFT, 5, 6)
    assert not coverage.covers_hand(LEFT, 5, 7)
    assert coverage.covers_hand(None, 30, 40)  # all relations are there
    assert coverage.covers_layer("relations", 35, 45)  # the video ends at 40
    assert not any(coverage.covers_layer(layer) for layer in LAYERS)


@pytest.mark.parametrize("wrong", [[], "all", {"frames": "all"}, {"layers": {"relations": []}}, {"frame": []}])
def test_an_unreadable_coverage_declares_no_layer_complete(tmp_path: Path, wrong: Any) -> None:
    video = graph(tmp_path, wrong)
    assert video.coverage.is_partial
    assert not video.coverage.covers_layer("relations", 0, 1)
    (error,) = (problem for problem in video.problems if problem.severity == "error")
    assert (error.key, error.file) == ("coverage", "v1/coco_annotation.json")


def test_tasks_ask_only_questions_that_the_annotations_answer(tmp_path: Path) -> None:
    content = document()
    content["coverage"] = {
        "frames": [span(0, 40)],
        "categories": {"coffee cup": [span(0, 40)]},
        "layers": {"relations": [span(0, 20)], "activities": [span(0, 20)]},
    }
    write_release(tmp_path / "graphs", content=content)
    assert not validate(tmp_path / "graphs").problems
    sampling = {"frame_step": 5, "choices": 2, "grounding": {"fraction": 1.0, "in_activities": False}}
    built = build(tmp_path / "graphs", tmp_path / "made", sampling=sampling, cache=False, dry_run=True)
    candidates = {config.name: config.candidates for config in built.configs}
    assert candidates["relations"] == candidates["hand_object"] == 4  # frames 0 to 15
    assert candidates["grounding"] == 8  # only of the cup
    assert "referring" not in candidates  # attributes are not complete
