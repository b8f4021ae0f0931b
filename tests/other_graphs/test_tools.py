"""Exports of annotation tools become graphs: everything in them is where it was drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from barista_bench.other_graphs.importing import ImportReport, import_graphs
from barista_bench.scene_graph import SceneGraph, VideoGraph, validate
from tests.other_graphs.exports import EXPORTS, SEEN, THINGS

PICTURES = {"coco", "label_studio_pictures", "labelme", "supervisely_pictures"}
ACTIVITIES = {"label_studio", "supervisely", "fiftyone"}
COLORS = {"coco", "label_studio", "labelme", "supervisely", "supervisely_pictures", "fiftyone"}


def imported(tool: str, tmp_path: Path) -> tuple[VideoGraph, ImportReport]:
    EXPORTS[tool](tmp_path / "export")
    out = tmp_path / "graphs"
    report = import_graphs("table", tmp_path / "export", out, map=tool.removesuffix("_pictures"))
    assert not validate(out).problems
    (graph,) = SceneGraph(out)
    return graph, report


@pytest.mark.parametrize("tool", EXPORTS)
def test_an_export_becomes_a_graph_with_everything_in_its_place(tool: str, tmp_path: Path) -> None:
    graph, report = imported(tool, tmp_path)
    assert report.is_whole, list(report.lines())
    frames = range(3) if tool in PICTURES else SEEN
    assert graph.frame_count == (3 if tool in PICTURES else 40)
    holes = {"coffee cup": 16} if tool == "supervisely_pictures" else {}
    for frame in frames:
        shown = {item.object.category: item for item in graph.instances(frame)}
        assert np.allclose([shown[name].bbox for name in THINGS], list(THINGS.values()))
        for name, box in THINGS.items():
            assert graph.mask(shown[name]).sum() == box[2] * box[3] - holes.get(name, 0)
    assert not [frame for frame in range(graph.frame_count) if frame not in frames and graph.boxes(frame)]
    assert graph.coverage.covers_category("coffee cup", frames[0], frames[-1] + 1)
    assert not graph.coverage.covers_layer("relations", 0, 1)
    colors = {(row.object.category, row.type, row.value) for row in graph.attributes()}
    assert colors == ({("coffee cup", "color", "white")} if tool in COLORS else set())
    spans = [(row.name, row.start, row.end) for row in graph.activities()]
    assert spans == ([("Take cup", 10, 30)] if tool in ACTIVITIES else [])


def test_the_relations_of_label_studio_hold_where_both_are_seen(tmp_path: Path) -> None:
    graph, report = imported("label_studio", tmp_path)
    (row,) = graph.relations()
    assert (row.source.category, row.type, row.value) == ("left hand", "human_actions", "holds")
    assert (row.start, row.end) == (10, 13)
    assert report.tally.guessed["boxes between keyframes, by a straight line"] == 2
    assert report.tally.left_out["further, or cancelled, annotations of a task"] == 1
