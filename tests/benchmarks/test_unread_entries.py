"""An answer with only unreadable entries is a parse error, and never `nothing there`.

So it is by the paper's protocol and in tasks without released code. The release reads it as an empty answer; either way
entries that were left out are counted.
"""

import json
from typing import Any

import pytest

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.benchmarks.extended.mask_tracking import MaskTracking
from barista_bench.benchmarks.extended.step_segmentation import StepSegmentation
from barista_bench.benchmarks.extended.temporal_scene_graph import TemporalSceneGraph
from barista_bench.benchmarks.handyvqa import RvosParts
from barista_bench.benchmarks.tog_bench.t_stvg import TSTVG
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import ParseError, Prediction
from barista_bench.core.task import Task

PAPER = {"protocol": "paper"}
SIZE = {"frame_width": 640, "frame_height": 480}
MASK = {"size": [4, 4], "counts": "52203"}
TASKS: dict[str, tuple[Task, dict[str, Any]]] = {
    "grounding": (Grounding(options=PAPER), {"phrase": "cup", "category": "cup", **SIZE}),
    "hand_object": (HandObject(options=PAPER), SIZE),
    "relations": (Relations(options=PAPER), {}),
    "step_segmentation": (
        StepSegmentation(),
        {"steps": ["grind", "brew"], "times": [0.0, 4.0], "fps": 1.0, "frame_count": 8},
    ),
    "temporal_scene_graph": (TemporalSceneGraph(), {"objects": ["cup", "table"], "relations": ["on"], "n_frames": 4}),
    "mask_tracking": (
        MaskTracking(),
        {"objects": [{"number": 1, "category": "cup", "rle": MASK}], "n_frames": 2, "width": 4, "height": 4},
    ),
    "rvos_parts": (RvosParts(), {"query": "Which?", "frames": [0], "frame_count": 2, "width": 4, "height": 4}),
    "t_stvg": (TSTVG(), {"instruction": "Tidy up.", "times": [0.0, 1.0], "duration": 2.0, **SIZE}),
}
UNREAD = [
    ("grounding", '{"bboxes": [10, 20, 300, 400]}'),
    ("grounding", '{"bboxes": [{"bbox_2d": [10, 20, 300, 400]}]}'),
    ("grounding", '{"boxes": [[10, 20, 300], ["a"]]}'),
    ("hand_object", '[{"hand": "left"}]'),
    ("relations", '[{"subject": 1, "predicate": "on", "object": 2}]'),
    ("relations", '[[1, "on", 2]]'),
    ("relations", '```json\n[{"source_id": "cup", "target_id": 2, "relation_type": "position", "value": "on"}]\n```'),
    ("step_segmentation", '[["grind", "0m0s", "0m4s"]]'),
    ("step_segmentation", '[["tidy", 0, 4]]'),
    ("temporal_scene_graph", '[["cup", "on", "table"]]'),
    ("mask_tracking", '{"masks": [{"object": 7, "frame": 1, "rle": {"size": [4, 4], "counts": "`0"}}]}'),
    ("mask_tracking", '{"masks": [{"object": 1, "frame": 1, "rle": "`0"}]}'),
    ("rvos_parts", '{"masks": [{"frame": 0, "rle": {"size": [9, 9], "counts": "~"}}]}'),
    ("t_stvg", '{"explicit_object": [{"thing": "cup"}]}'),
    ("t_stvg", '{"explicit_object": [7], "spatial_tracking": [{"object": "cup", "time": 1, "box": [1, 2, 3, 4]}]}'),
]
NOTHING = [
    ("grounding", '{"bboxes": []}'),
    ("grounding", '{"bboxes": [], "scores": "none"}'),
    *((name, "[]") for name in ("hand_object", "relations", "step_segmentation", "temporal_scene_graph")),
    *((name, '{"masks": []}') for name in ("mask_tracking", "rvos_parts")),
    ("rvos_parts", json.dumps({"masks": [{"frame": 1, "rle": MASK}, {"frame": 0, "rle": {}}]})),
    ("t_stvg", '{"explicit_object": "none", "implicit_object": ""}'),
]
SOME = [
    ("grounding", '{"bboxes": [[10, 20, 300, 400], {"x": 1}, "?"]}', 2),
    ("relations", '[{"source_id": 1, "target_id": 2, "relation_type": "position", "value": "on"}, [1]]', 1),
    ("step_segmentation", '[["grind", 0, 4], ["tidy", 4, 8]]', 1),
]


def parsed(name: str, text: str) -> Prediction | ParseError:
    task, inputs = TASKS[name]
    return task.parse(text, inputs, DEFAULT_BOX_FORMAT)


@pytest.mark.parametrize(("name", "text"), UNREAD)
def test_an_answer_with_only_unreadable_entries_is_a_parse_error(name: str, text: str) -> None:
    assert isinstance(parsed(name, text), ParseError)


@pytest.mark.parametrize(("name", "text"), NOTHING)
def test_an_answer_without_entries_says_that_there_is_nothing(name: str, text: str) -> None:
    assert isinstance(parsed(name, text), Prediction)


@pytest.mark.parametrize(("name", "text", "dropped"), SOME)
def test_unreadable_entries_are_counted_and_the_others_are_kept(name: str, text: str, dropped: int) -> None:
    answer = parsed(name, text)
    assert isinstance(answer, Prediction)
    assert answer.dropped == dropped


@pytest.mark.parametrize(("name", "text"), [case for case in UNREAD if case[0] in ("grounding", "relations")])
def test_the_release_reads_it_as_an_empty_answer_and_counts_its_omissions(name: str, text: str) -> None:
    task, inputs = TASKS[name]
    answer = type(task)().parse(text, inputs, DEFAULT_BOX_FORMAT)
    if isinstance(answer, Prediction):
        assert answer.dropped > 0
        assert not any(answer.value.values())
