"""VISOR in its released layout, read: known, guessed and unknown facts; and any fault in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from barista_bench.scene_graph import SceneGraph
from tests.other_graphs.stand_ins import SPARSE, imported, participant
from tests.releases import write_video

NAME, NUMBERS = "P01_01", (140, 340, 540)


def square(x: float, y: float, side: float = 200.0) -> list[list[list[float]]]:
    return [[[x, y], [x + side, y], [x + side, y + side], [x, y + side]]]


def entity(number: str, name: str, at: float, **fields: Any) -> dict[str, Any]:
    fields = {"exhaustive": "y", **fields}
    return {"id": number, "name": name, "class_id": 7, "segments": square(at, at), **fields}


def write(root: Path, *pictures: list[dict[str, Any]], sequences: tuple[int, ...] = (1, 1, 2)) -> Path:
    """One video, its pictures 480 x 270."""
    release, rows = root / "GroundTruth-SparseAnnotations", []
    folder = release / "rgb_frames" / "train" / "P01" / NAME
    folder.mkdir(parents=True)
    for number, sequence, entities in zip(NUMBERS, sequences, pictures, strict=False):
        file = f"{NAME}_frame_{number:010d}.jpg"
        Image.new("RGB", (480, 270), (number % 256, 0, 0)).save(folder / file)
        sub = f"{NAME}_seq_{sequence:05d}"
        image = {"image_path": f"{NAME}/{file}", "name": file, "subsequence": sub, "video": NAME}
        rows.append({"image": image, "annotations": entities})
    path = release / "annotations" / "train" / f"{NAME}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"info": {}, "video_annotations": rows}))
    return root


@pytest.mark.full
def test_the_stand_in_is_read_as_the_kitchen(small_kitchen: Path, graphs: dict[str, Path]) -> None:
    kitchen, read = SceneGraph(small_kitchen), SceneGraph(graphs["visor"])
    for number, truth in enumerate(kitchen):
        video = read[participant(number)]
        assert video.frame_count == len(range(0, truth.frame_count, SPARSE))
        for frame in range(video.frame_count):
            for item in (row for row in video.instances(frame) if row.bbox[2] * row.bbox[3] > 2000):
                same = [row for row in truth.instances(frame * SPARSE) if row.object.category == item.object.category]
                drawn = Image.fromarray(video.mask(item)).resize((truth.video.width, truth.video.height))
                assert max(_iou(np.asarray(drawn), truth.mask(row)) for row in same) > 0.6, (item, frame)
            touched = {(row.hand.category, row.object.category) for row in truth.hand_contacts(frame * SPARSE)}
            assert {(row.hand.category, row.object.category) for row in video.hand_contacts(frame)} <= touched
            for hand in (item for item in video.objects_at(frame) if item.category.endswith("hand")):
                is_free = all(row[0] != hand.category for row in touched)
                assert video.coverage.covers_hand(hand.id, frame, frame + 1) <= is_free


def _iou(first: np.ndarray, second: np.ndarray) -> float:
    return float((first & second).sum() / (first | second).sum())


def test_a_name_in_a_subsequence_is_one_thing_by_guess_and_a_hand_one_in_the_video(tmp_path: Path) -> None:
    pictures = [[entity("a", "left hand", 0), entity("b", "Lid", 300)], [entity("c", "lid", 300)]]
    graph, report = imported(
        "visor", write(tmp_path / "source", *pictures, [entity("d", "lid", 600), entity("e", "left hand", 0)])
    )
    assert [item.category for item in graph.objects] == ["left hand", "lid", "lid"]
    frames = [graph.frames_of(at).tolist() for at in range(3)]
    assert frames == [[0, 2], [0, 1], [2]]
    # Pictures are a quarter as large as the canvas of the annotations.
    assert graph.boxes(0)[graph.objects[1].id] == (75, 75, 50, 50)
    assert sum(report.tally.guessed.values()) == 3 + 1  # identities; the rate of pictures
    assert round(graph.video.fps or 0, 3) == round(2 / (400 / 59.94), 3)
    assert graph.coverage.covers_category("lid")
    assert not graph.coverage.covers_category("left hand")


def test_overlap_distinguishes_things_of_one_name_on_a_picture(tmp_path: Path) -> None:
    first = [entity("a", "plate", 0), entity("b", "plate", 500), entity("c", "plate", 900, exhaustive="n")]
    then = [entity("d", "plate", 520), entity("e", "plate", 10)]
    graph, report = imported("visor", write(tmp_path / "source", first, then))
    boxes = [graph.boxes(frame) for frame in (0, 1)]
    lefts = {
        item.id: [frame_boxes[item.id][0] for frame_boxes in boxes if item.id in frame_boxes] for item in graph.objects
    }
    assert sorted(lefts.values()) == [[0, 3], [125, 130], [225]]
    assert report.is_whole
    assert [graph.coverage.covers_category("plate", at, at + 1) for at in range(2)] == [False, True]


def test_a_polygon_inside_another_one_is_a_hole(tmp_path: Path) -> None:
    square, hole = ([[x, y] for x, y in corners] for corners in (_corners(100, 500), _corners(200, 397)))
    ring = {**entity("a", "ring", 0), "segments": [square, hole, []]}
    graph, report = imported("visor", write(tmp_path / "source", [ring]))
    assert graph.mask(graph.instances(0)[0]).sum() == 100**2 - 49**2
    assert report.is_whole


def _corners(low: int, high: int) -> list[tuple[int, int]]:
    return [(low, low), (high, low), (high, high), (low, high)]


def test_contacts_are_relations_and_unknown_ones_are_unknown(tmp_path: Path) -> None:
    def hand(contact: str, **fields: Any) -> dict[str, Any]:
        return entity("h", "left hand", 0, in_contact_object=contact, **fields)

    pictures = [[hand("k"), entity("k", "knife", 300)], [hand("hand-not-in-contact")], [hand("inconclusive")]]
    graph, report = imported("visor", write(tmp_path / "source", *pictures))
    assert [(row.side, row.object.category, row.value) for row in graph.hand_contacts(0)] == [
        ("left", "knife", "touches")
    ]
    hand_id = graph.objects[0].id
    assert [graph.coverage.covers_hand(hand_id, at, at + 1) for at in range(3)] == [False, True, False]
    assert not graph.coverage.covers_layer("relations", 0, 1)
    assert report.tally.left_out["contacts that are inconclusive, or with nothing that is named"] == 1


def test_a_hand_in_a_glove_is_not_recorded_as_touching_nothing(tmp_path: Path) -> None:
    glove = entity("g", "left glove", 50, in_contact_object="k", on_which_hand=["left hand"])
    hand = entity("h", "left hand", 0, in_contact_object="hand-not-in-contact")
    graph, _ = imported("visor", write(tmp_path / "source", [glove, hand, entity("k", "knife", 300)]))
    relations = {(row.source.category, row.value, row.target.category) for row in graph.relations()}
    assert relations == {("left glove", "touches", "knife"), ("left glove", "on", "left hand")}
    assert not any(graph.coverage.covers_hand(item.id, 0, 1) for item in graph.objects)


@pytest.mark.full
@pytest.mark.parametrize("nested", [False, True])
def test_with_its_video_a_graph_is_sparse(tmp_path: Path, nested: bool) -> None:
    source = write(tmp_path / "source", *([entity("a", "lid", 300)] for _ in NUMBERS))
    release = source / "GroundTruth-SparseAnnotations"
    (release / "videos").mkdir()
    write_video(release / "videos" / f"{NAME}.mp4", 20, (1920, 1080))
    files = {f"{NAME}_frame_{number:010d}.jpg": at for number, at in zip(NUMBERS, (2, 8, 20), strict=True)}
    flat = {f"{NAME}/{file}": f"frame_{at:010d}.jpg" for file, at in files.items()}
    (release / "frame_mapping.json").write_text(json.dumps({NAME: files} if nested else flat))
    graph, report = imported("visor", source)
    assert (graph.frame_count, graph.coverage.annotated_frames(0, 20).tolist()) == (
        20,
        [1, 7, 19],
    )  # the mapping counts from 1
    assert graph.boxes(7)[graph.objects[0].id] == (300, 300, 200, 200)
    assert not any("rate" in what for what, count in report.tally.guessed.items() if count)


def test_a_bad_picture_costs_that_picture_and_a_bad_mask_itself(tmp_path: Path) -> None:
    lid = {**entity("b", "lid", 300), "segments": [[[0, 0], [1e9, 0], [5, 5]]]}
    bad = [entity("a", "pan", 0), lid, entity("a", "x", 5)]
    source = write(tmp_path / "source", bad, [entity("c", "pan", 0)], [entity("d", "pan", 0)])
    path = source / "GroundTruth-SparseAnnotations" / "annotations" / "train" / f"{NAME}.json"
    content = json.loads(path.read_text())
    content["video_annotations"][1]["annotations"][0]["segments"] = "none"
    content["video_annotations"] += [
        {"image": {**content["video_annotations"][0]["image"], "name": name}, "annotations": []}
        for name in ("../../P01_01_frame_0000000900.jpg", "P01_01_frame_0000000900.jpg", "frame.jpg")
    ]
    path.write_text(json.dumps(content))
    graph, report = imported("visor", source)
    assert graph.frame_count == 3
    lost = +report.tally.lost
    assert lost["pictures without a frame number, or of another video"] == 2
    assert lost["pictures whose file is missing"] == 1
    assert lost["things whose id is on a picture twice"] == 1
    assert sum(count for what, count in lost.items() if what.startswith("things whose record is wrong")) == 1
    assert sum(count for what, count in lost.items() if what.startswith("masks: ")) == 1
    assert not graph.coverage.covers_category("lid", 0, 1)
