"""PVSG in its released layout, read; and any fault in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from barista_bench.errors import DataError
from barista_bench.other_graphs.importing import import_graphs
from barista_bench.scene_graph import encode_mask
from barista_bench.scene_graph.shapes import masks_of_labels
from tests.other_graphs.stand_ins import imported
from tests.releases import write_video

SIZE = (32, 24)
OBJECTS = ("adult", "cup", "wall")
Change = Callable[[dict[str, Any]], None]


def video(name: str = "v1", **fields: Any) -> dict[str, Any]:
    return {
        "video_id": name,
        "meta": {"height": SIZE[1], "width": SIZE[0], "fps": 5, "duration": 1.2, "num_frames": 6},
        "objects": [
            {"object_id": number, "category": category, "is_thing": category != "wall", "status": []}
            for number, category in enumerate(OBJECTS, start=1)
        ],
        "relations": [[1, 2, "holding", [[1, 3], [5, 5]]], [2, 3, "on", [[0, 5]]], [1, 3, "jumping over", [[2, 2]]]],
        "captions": [{"time": "0000-0001", "description": "An adult (1) holds a cup (2)."}],
        "qa_pairs": [{"time": "0001", "question": "Who?", "answer": "An adult."}],
        "summary": "A cup is held.",
        **fields,
    }


def write(root: Path, *videos: dict[str, Any], frames: bool = True) -> Path:
    names = [row["video_id"] for row in videos]
    content = {
        "objects": {"thing": ["adult", "cup", "jar"], "stuff": ["wall"]},
        "relations": ["holding", "on", "jumping over"],
        "split": {"vidor": {"train": [name for name in names if "/" not in name], "val": []}},
        "data": list(videos),
    }
    (root / "data").mkdir(parents=True)
    (root / "data" / "pvsg.json").write_text(json.dumps(content))
    for name in (name for name in names if "/" not in name):
        for number in range(6):
            labels = np.full((SIZE[1], SIZE[0]), 3, np.uint8)
            labels[4:12, 4 + number : 12 + number] = 1
            labels[14:20, 14:20] = 2 * (number < 5)
            mask = Image.fromarray(labels, mode="P")
            mask.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
            save(mask, root / "data" / "vidor" / "masks" / name / f"{number:04d}.png")
            if frames:
                save(Image.new("RGB", SIZE, (number, 9, 9)), root / "data/vidor/frames" / name / f"{number:04d}.png")
    return root


def save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def test_masks_relations_and_notes_are_taken(tmp_path: Path) -> None:
    graph, report = imported("pvsg", write(tmp_path / "source", video()))
    adult, cup, wall = graph.objects
    assert [item.category for item in graph.objects] == list(OBJECTS)
    assert (graph.frame_count, graph.video.fps) == (6, 5.0)
    assert graph.boxes(2) == {adult.id: (6, 4, 8, 8), cup.id: (14, 14, 6, 6), wall.id: (0, 0, 32, 24)}
    assert cup.id not in graph.boxes(5)
    relations = {(row.source.category, row.type, row.value, row.start, row.end) for row in graph.relations()}
    assert relations == {
        ("adult", "human_actions", "holds", 1, 4),  # from 1 to 3, both included; the cup is gone at 5
        ("cup", "position", "on", 0, 6),
        ("adult", "relation", "jumping over", 2, 3),
    }
    assert report.tally.taken["relations kept as they are: jumping over"] == 1
    assert report.tally.taken["captions, as notes"] == 1
    notes = json.loads((tmp_path / "graphs" / "v1" / "notes.json").read_text())
    assert notes["questions"] == [{"time": "0001", "question": "Who?", "answer": "An adult."}]


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (24, 32)])
def test_masks_of_each_number_equal_an_encoders_masks(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    for most in (1, 2, 256):
        labels = rng.integers(0, most, size).astype(np.uint8)
        labels[-1, -1] = most - 1
        rles = masks_of_labels(labels)
        assert rles == {number: encode_mask(labels == number) for number in set(labels.ravel().tolist()) - {0}}


def test_the_vocabulary_is_closed_and_relations_are_open(tmp_path: Path) -> None:
    coverage = imported("pvsg", write(tmp_path / "source", video()))[0].coverage
    assert coverage.covers_category("jar")
    assert coverage.covers_category("wall")
    assert not coverage.covers_category("hammer", 0, 1)
    assert not coverage.covers_layer("relations", 0, 1)


def test_pictures_are_linked_and_a_second_import_gives_the_same_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "source", video())
    imported("pvsg", source)
    import_graphs("pvsg", source, tmp_path / "again")
    first, again = ((tmp_path / name / "v1" / "coco_annotation.json").read_bytes() for name in ("graphs", "again"))
    assert first == again
    placed = tmp_path / "graphs" / "v1" / "video.mp4" / "000002.png"
    assert placed.samefile(source / "data" / "vidor" / "frames" / "v1" / "0002.png")


def test_of_a_video_the_frames_nearest_in_time_are_annotated(tmp_path: Path) -> None:
    source = write(tmp_path / "source", video(), frames=False)
    (source / "data" / "vidor" / "videos").mkdir()
    write_video(source / "data" / "vidor" / "videos" / "v1.mp4", 40, SIZE)  # 30 frames a second
    graph, _ = imported("pvsg", source)
    assert (graph.frame_count, round(graph.video.fps or 0)) == (40, 30)
    assert graph.coverage.annotated_frames(0, 40).tolist() == [0, 6, 12, 18, 24, 30]
    assert sorted(graph.frames_of(0).tolist()) == [0, 6, 12, 18, 24, 30]
    assert [(row.start, row.end) for row in graph.relations() if row.value == "holds"] == [(6, 19)]
    assert not graph.coverage.covers_category("cup", 0, 7)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda row: row["meta"].update(num_frames=10**9), "num_frames"),
        (lambda row: row["meta"].update(width=64), "no picture of masks can be used"),
        (lambda row: row.pop("objects"), "objects"),
        (lambda row: row["objects"][0].update(object_id=300), "object_id"),
        (lambda row: row["objects"][0].update(category="c" * 1000), "category"),
        (lambda row: row.update(video_id="../v2"), "not a usable name"),
        (lambda row: row.update(video_id="v1"), "stands there twice"),
    ],
)
def test_a_bad_video_costs_that_video(tmp_path: Path, change: Change, complaint: str) -> None:
    bad = video("v2")
    change(bad)
    videos = [video("v0"), video("v1"), bad] if bad["video_id"] == "v1" else [video("v1"), bad]
    source = write(tmp_path / "source", *videos)
    report = import_graphs("pvsg", source, tmp_path / "graphs")
    assert report.videos == 1
    (reason,) = report.lost.values()
    assert complaint in reason
    assert "Fix: " in reason
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graphs", "source"]


def test_bad_records_cost_themselves_and_are_counted(tmp_path: Path) -> None:
    rows = [[1, 2, "holding", [[3, 1], [4, 90]]], [1, 9, "on", [[0, 1]]], [1, 1, "on", [[0, 1]]], [1, 2], "on"]
    source = write(tmp_path / "source", video(relations=rows))
    masks = source / "data" / "vidor" / "masks" / "v1"
    (masks / "0000.png").write_bytes(b"no picture")
    save(Image.new("P", (640, 480)), masks / "0001.png")
    save(Image.new("RGB", SIZE), masks / "0002.png")
    save(Image.fromarray(np.full((SIZE[1], SIZE[0]), 200, np.uint8), mode="L"), masks / "0003.png")
    huge = masks / "0004.png"  # a head that claims more pixels than Pillow opens
    huge.write_bytes(huge.read_bytes()[:16] + b"\x00\x00\x60\x00" * 2 + huge.read_bytes()[24:])
    graph, report = imported("pvsg", source)
    assert graph.coverage.annotated_frames(0, 6).tolist() == [3, 5]
    assert not graph.coverage.covers_category("cup", 3, 4)  # the unlisted number is unknown
    assert graph.coverage.covers_category("cup", 5, 6)
    assert report.tally.left_out["ends of relations past the end of the video"] == 1
    lost = +report.tally.lost
    assert lost["relations that are not [number, number, name, spans]"] == 2
    assert lost["relations of an object that is not listed, or with itself"] == 2
    assert lost["spans of relations that end before they begin, or begin after the video"] == 1
    assert lost["masks of a number that is not listed"] == 1
    assert sum(count for what, count in lost.items() if what.startswith("pictures of masks: ")) == 4
    assert any(line.startswith("lost: ") for line in report.lines())


def test_a_picture_that_is_missing_costs_its_frame(tmp_path: Path) -> None:
    source = write(tmp_path / "source", video(relations=[[1, 2, "on", [[0, 5]]]]))
    (source / "data" / "vidor" / "frames" / "v1" / "0002.png").unlink()
    graph, report = imported("pvsg", source)
    assert graph.frame_count == 5
    assert report.tally.lost["frames whose picture is missing"] == 1
    assert [(row.start, row.end) for row in graph.relations()] == [(0, 5)]
    assert not report.is_whole


def test_names_of_pictures_that_count_from_one_are_read_from_there(tmp_path: Path) -> None:
    source = write(tmp_path / "source", video())
    straight, _ = imported("pvsg", write(tmp_path / "straight" / "source", video()))
    for kind in ("frames", "masks"):
        folder = source / "data" / "vidor" / kind / "v1"
        for path in sorted(folder.iterdir(), reverse=True):
            path.rename(folder / f"{int(path.stem) + 1:04d}.png")
    graph, report = imported("pvsg", source)
    assert report.tally.guessed["folders whose names count from 1"] == 2
    assert [graph.boxes(frame) for frame in range(6)] == [straight.boxes(frame) for frame in range(6)]


def test_a_preposition_that_says_the_same_is_the_domains_word(tmp_path: Path) -> None:
    graph, _ = imported("pvsg", write(tmp_path / "source", video(relations=[[1, 2, "in", [[0, 1]]]])))
    assert [(row.type, row.value) for row in graph.relations()] == [("position", "inside")]


NAMELESS = '{"objects": {"thing": [], "stuff": []}, "split": {}, "data": [1]}'


@pytest.mark.parametrize("content", ["", "[]", "{}", NAMELESS])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pvsg.json").write_text(content)
    with pytest.raises(DataError, match=r"pvsg.json: .*Fix"):
        import_graphs("pvsg", tmp_path, tmp_path.parent / "graphs")
