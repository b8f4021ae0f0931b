"""Transformed questions are the ones that the transformed graph asks: its annotations are mirrored or reversed."""

import json
from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista.change_detection import detect_changes
from barista_bench.benchmarks.barista.clips import ClipArrays
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.scene_graph import Rle, SceneGraph, decode_mask
from barista_bench.scene_graph.masks import encode_mask
from tests.diagnosis.conftest import SAMPLING, Aids

SIDES = {"left hand": "right hand", "right hand": "left hand"}


def _mirror(graph: dict) -> None:
    width = graph["video_metadata"][0]["width"]
    for category in graph["categories"]:
        category["name"] = SIDES.get(category["name"], category["name"])
    for annotation in graph["annotations"]:
        x, y, w, h = annotation["bbox"]
        annotation["bbox"] = [width - x - w, y, w, h]
        height, _ = annotation["segmentation"]["size"]
        mask = decode_mask(Rle(annotation["segmentation"]["counts"], (height, width)))
        annotation["segmentation"]["counts"] = encode_mask(np.ascontiguousarray(mask[:, ::-1])).counts


def _reverse(graph: dict) -> None:
    count = graph["video_metadata"][0]["frame_count"]
    for annotation in graph["annotations"]:
        annotation["image_id"] = count - 1 - annotation["image_id"]
    spans = [span for layer in ("attributes", "relations") for item in graph[layer] for span in item["image_ranges"]]
    for span in spans:
        span["image_id_start"], span["image_id_end"] = count - span["image_id_end"], count - span["image_id_start"]
    for layer in ("activities", "process_steps"):
        for item in graph[layer]:
            span = item["image_range"]  # its end belongs to it
            start, end = span["image_id_start"], span["image_id_end"]
            span["image_id_start"], span["image_id_end"] = count - 1 - end, count - 1 - start


def _transformed(kitchen: Path, out: Path, change) -> Path:
    for source in kitchen.glob("*/coco_annotation.json"):
        folder = out / source.parent.name
        folder.mkdir(parents=True)
        graph = json.loads(source.read_text())
        change(graph)
        (folder / "coco_annotation.json").write_text(json.dumps(graph))
        (folder / "video.mp4").hardlink_to(source.parent / "video.mp4")
    return out


@pytest.mark.full
def test_mirrored_questions_equal_the_questions_of_the_mirrored_graph(kitchen_data: Path, tmp_path: Path) -> None:
    kitchen = _transformed(kitchen_data.parent / "kitchen", tmp_path / "kitchen", _mirror)
    build(kitchen, tmp_path / "data", frames="linked", sampling=SAMPLING, cache=False, num_proc=1)
    for name in ("hand_object", "referring", "temporal_vqa", "activity"):
        task = get_task("barista", name)
        derived = {
            example.example_id: example for example in open_examples(tmp_path / "data", "barista", name).examples
        }
        compared = 0
        for example in open_examples(kitchen_data, "barista", name).examples:
            other = derived.get(example.example_id)
            if other is None:
                continue
            found = task.aids.mirrored(example, (160, 90))
            assert found is not None
            assert found.inputs == other.inputs, example.example_id
            assert found.target == other.target, example.example_id
            compared += 1
        assert compared > 20, name


@pytest.mark.full
def test_reversed_questions_equal_the_questions_of_the_reversed_graph(
    kitchen_data: Path, aids_of: Aids, tmp_path: Path
) -> None:
    kitchen = _transformed(kitchen_data.parent / "kitchen", tmp_path / "kitchen", _reverse)
    (_, examples, book), graphs, compared = aids_of("temporal_vqa"), SceneGraph(kitchen), 0
    for example in examples:
        viewed = book.viewed(example, "reversed")
        if viewed is None:
            continue
        graph = graphs[example.video_id]
        keyframes = tuple(graph.frame_count - 1 - frame.frame_index for frame in reversed(example.frames))
        category = example.target["category"]
        changes = detect_changes(ClipArrays(graph, keyframes)).get(category, [])
        assert changes, example.example_id
        assert viewed.example.target["answer"] == write_pair(category, changes)["answer"], example.example_id
        compared += 1
    assert compared > 20
