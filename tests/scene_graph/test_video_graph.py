"""Queries: what holds at a frame and over a span, on a graph whose every number is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph, VideoGraph
from tests.releases import BOXES, BUTTON, CUP, LEFT, MACHINE, RIGHT, SEEN, document, relation, write_release


def read(root: Path, content: dict[str, Any] | None = None) -> VideoGraph:
    return SceneGraph(write_release(root, content=content, video=False))["v1"]


@pytest.fixture
def graph(tmp_path: Path) -> VideoGraph:
    return read(tmp_path)


def test_objects_and_boxes_are_those_annotated_on_the_frame(graph: VideoGraph) -> None:
    for frame in (0, 9, 10, 19, 20, 39):
        seen = {name for name, (start, end) in SEEN.items() if start <= frame < end}
        assert {item.id for item in graph.objects_at(frame)} == seen
        assert graph.boxes(frame) == {name: tuple(map(float, BOXES[name])) for name in seen}
    assert graph.boxes(40) == {}


def test_a_span_is_half_open(graph: VideoGraph) -> None:
    assert {item.id for item in graph.objects_at((20, 40))} == {MACHINE, CUP, RIGHT, BUTTON}
    assert {item.id for item in graph.objects_at((19, 20))} == {MACHINE, CUP, LEFT, RIGHT, BUTTON}
    assert len(graph.instances((0, 2))) == 8
    assert len(graph.instances()) == 170


def test_a_relation_holds_only_where_both_ends_have_a_box(graph: VideoGraph) -> None:
    holders = {frame: {r.source.id for r in graph.relations(frame) if r.value == "holds"} for frame in range(40)}
    for frame in range(40):
        expected = set()
        if frame < 20:  # stated on [0, 40), seen on [0, 20)
            expected.add(LEFT)
        if 10 <= frame < 15 or frame >= 30:  # stated on [5, 15) and [30, 40), seen from 10
            expected.add(RIGHT)
        assert holders[frame] == expected, frame
    assert [r.source.id for r in graph.relations((20, 30)) if r.value == "holds"] == []


def test_the_frames_of_a_relation_range_are_cut_to_the_span(graph: VideoGraph) -> None:
    right = [i for i in range(len(graph.relations_table.start)) if graph.relations_table.row[i] == 3]
    assert [graph.relation_frames(i).tolist() for i in right] == [list(range(10, 15)), list(range(30, 40))]
    assert graph.relation_frames(right[1], (35, 37)).tolist() == [35, 36]


def test_a_record_whose_ranges_overlap_counts_once_at_a_frame_and_two_records_count_twice(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(BUTTON, MACHINE, "position", "part of", (0, 20), (10, 30))]
    graph = read(tmp_path / "once", content)
    assert len(graph.relations(15)) == 1
    assert len(graph.relations((0, 40))) == 2
    content["relations"] *= 2
    assert [r.row for r in read(tmp_path / "twice", content).relations(15)] == [0, 1]


def test_contacts_attributes_and_segments_hold_on_their_ranges(graph: VideoGraph) -> None:
    contacts = [(c.side, c.object.id, c.value) for c in graph.hand_contacts(12)]
    assert contacts == [("left", CUP, "holds"), ("right", CUP, "holds")]
    assert graph.hand_contacts(25) == []
    assert [(a.type, a.value) for a in graph.attributes(19)] == [("type", "capsule"), ("color", "white")]
    for frame, holds in ((20, True), (30, False)):
        assert (("state", "extracting") in [(a.type, a.value) for a in graph.attributes(frame)]) == holds
    # Ends are excluded unless a task reads them inclusive.
    assert [s.name for s in graph.activities(20)] == ["Press button"]
    assert [s.name for s in graph.activities(20, inclusive=True)] == ["Place cup", "Press button"]
    assert [s.name for s in graph.steps((0, 1))] == ["Extract coffee"]


def test_a_mask_fills_its_box(graph: VideoGraph) -> None:
    for instance in graph.instances(12):
        x, y, width, height = BOXES[instance.object.id]
        expected = np.zeros((64, 96), dtype=bool)
        expected[y : y + height, x : x + width] = True
        assert np.array_equal(graph.mask(instance), expected)


@pytest.mark.parametrize(
    ("segmentation", "what"),
    [
        (None, "neither"),
        ({"counts": "garbage~~~", "size": [64, 96]}, "characters outside the code"),
        ({"counts": "0", "size": [64, 96]}, "runs cover 0 of 6144 pixels"),
        ({"counts": "", "size": [64, 96]}, "empty"),
        ({"counts": "oooooooooooooooooo", "size": [64, 96]}, "not a run-length"),
        ({"counts": "`\u0130", "size": [64, 96]}, "ASCII"),
        ({"counts": "00", "size": [10**9, 10**9]}, "is not the frame's"),
        ({"counts": "00", "size": [96, 64]}, "is not the frame's"),
        ({"counts": [1, 2], "size": [64, 96]}, "runs cover 3 of 6144 pixels"),
        ([[0, 0, 1e9, 0, 1e9, 1e9]], "reaches more than"),
        ([[0, 0, 300, 60] * 200], "far more than a frame has room for"),
        ([[0, 0, 1]], "an even count"),
        ([], "no polygon"),
        ("missing", "missing"),
    ],
)
def test_a_bad_mask_is_refused_before_native_code_reads_it(tmp_path: Path, segmentation: object, what: str) -> None:
    content = document()
    content["annotations"][0]["segmentation"] = segmentation
    if segmentation == "missing":
        del content["annotations"][0]["segmentation"]
    graph = read(tmp_path, content)
    first, *others = graph.instances(0)
    with pytest.raises(DataError, match=what) as raised:
        graph.mask(first)
    assert "v1/coco_annotation.json: annotations[0].segmentation" in str(raised.value)
    assert all(graph.mask(other).any() for other in others)


def test_polygons_are_rasterised(tmp_path: Path) -> None:
    content = document()
    content["annotations"][0]["segmentation"] = [[10, 10, 20, 10, 20, 20, 10, 20]]
    graph = read(tmp_path, content)
    mask = graph.mask(graph.instances(0)[0])
    assert mask.sum() == 100
    assert mask[10:20, 10:20].all()


def test_preparation_is_the_type_of_the_machine_seen_first(tmp_path: Path) -> None:
    content = document()
    content["object_id_to_category_id"]["o-old"] = "c-coffee machine"
    old = {**content["attributes"][0], "object_id": "o-old", "value": "portafilter"}
    content["attributes"].insert(0, old)
    assert read(tmp_path / "two", content).preparation == "capsule"
    content["attributes"] = []
    assert read(tmp_path / "none", content).preparation == "unknown"


def test_masks_are_found_where_records_were_left_out(tmp_path: Path) -> None:
    """Rows and places differ then."""
    content = document()
    whole = read(tmp_path / "whole", content)
    content["annotations"] = [{"image_id": "x"}, *content["annotations"]]
    cut = read(tmp_path / "cut", content)
    assert [i.row for i in cut.instances(12)] == [i.row + 1 for i in whole.instances(12)]
    assert [cut.rle(i) for i in cut.instances(12)] == [whole.rle(i) for i in whole.instances(12)]


def test_many_masks_at_once_are_judged_as_in_single_calls(tmp_path: Path) -> None:
    content = document()
    content["annotations"][1]["segmentation"] = {"counts": "0", "size": [64, 96]}
    content["annotations"][2]["segmentation"] = [[1, 1, 20, 1, 20, 20]]
    content["annotations"][3]["segmentation"] = {"counts": "0", "size": [1, 1]}
    del content["annotations"][4]["segmentation"]
    graph = read(tmp_path, content)
    chosen = graph.instances((0, 3))
    together = graph.rles(chosen)
    for instance, outcome in zip(chosen, together, strict=True):
        if isinstance(outcome, DataError):
            with pytest.raises(DataError) as refused:
                graph.rle(instance)
            assert str(refused.value) == str(outcome)
        else:
            assert graph.rle(instance) == outcome
    assert sum(isinstance(outcome, DataError) for outcome in together) == 3
