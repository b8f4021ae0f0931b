"""`protocol="paper"` against `"release"`: each rule that changes something changes exactly that."""

import json
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks import get_task, task_names
from barista_bench.benchmarks.barista.activity_choices import ActivitySampling
from barista_bench.benchmarks.barista.grounding import GroundingSampling
from barista_bench.benchmarks.barista.hand_object import HandObjectSampling
from barista_bench.benchmarks.barista.referring import ReferringSampling
from barista_bench.benchmarks.barista.relations import RelationsSampling
from barista_bench.benchmarks.barista.temporal_vqa import TemporalSampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, Prediction, Scored
from barista_bench.core.options import Sampling
from barista_bench.core.task import Task
from barista_bench.data.frozen import content_hash, read_frozen, write_frozen
from barista_bench.data.rows import row_features
from barista_bench.errors import ConfigError
from tests.answering import examples_of
from tests.graph_examples import opened
from tests.releases import CUP, FRAMES, MACHINE, document, relation, segmentation, span, write_release

NAMES = task_names("barista")
BOXES = BoxFormat("xyxy", 1000)

COMMON = Sampling.names()


def tasks(name: str) -> tuple[Task, Task]:
    return get_task("barista", name), get_task("barista", name, options={"protocol": "paper"})


def examples(task: Any, root: Path, **sampling: Any) -> list[Example]:
    return examples_of(task, opened(root), task.sampling.with_overrides(sampling))


PUBLISHED: dict[str, tuple[Sampling, str, str, str]] = {
    "activity": (
        ActivitySampling(limit=500, seed=42, frames=4, choices=25, per_class=20, same_verb=4),
        *("activity_mcq", "accuracy", "accuracy"),
    ),
    "grounding": (
        GroundingSampling(limit=1000, seed=42, in_activities=True, with_relations=True, fraction=0.1, min_area=100),
        *("grounding", "map", "mean_best_iou"),
    ),
    "hand_object": (HandObjectSampling(limit=1000, seed=42, fraction=1.0), "hand_object", "f1", "f1"),
    "referring": (
        ReferringSampling(limit=1000, seed=42, in_activities=True, frame_step=60, per_frame=10, per_class=50),
        *("referring", "lexical_f1", "lexical_f1"),
    ),
    "relations": (RelationsSampling(limit=1000, seed=42, frame_step=300), *("relation_extraction", "micro_f1", "f1")),
    "temporal_vqa": (
        TemporalSampling(limit=300, seed=42, frames=6, spacing=24, per_class=100, max_frames=6),
        *("visual_qa", "lexical_f1", "lexical_f1"),
    ),
}
"""Sampling, released name, the figure of a run and that of a sample."""


@pytest.mark.parametrize("name", NAMES)
def test_the_default_is_the_published_protocol(name: str) -> None:
    task = get_task("barista", name)
    assert (task.sampling, task.upstream_name, task.primary, task.sample_score) == PUBLISHED[name]


def test_the_release_is_the_default_and_others_are_refused() -> None:
    assert {get_task("barista", name).protocol for name in NAMES} == {"release"}
    assert {get_task("barista", name, options={"protocol": "paper"}).protocol for name in NAMES} == {"paper"}
    with pytest.raises(
        ConfigError, match=r"option protocol is 'arxiv'.*give --option protocol=VALUE, one of release, paper"
    ):
        get_task("barista", "relations", options={"protocol": "arxiv"})


@pytest.mark.parametrize("name", NAMES)
def test_the_protocol_is_part_of_an_examples_identity_only_where_it_makes_another(
    name: str, small_kitchen: Path, tmp_path: Path
) -> None:
    ours, papers = tasks(name)
    sampling = {key: getattr(ours.sampling, key) for key in ours.sampling.names() if key not in COMMON}
    first, other = (list(map(t.stamp, examples(t, small_kitchen, **sampling)[:5])) for t in (ours, papers))
    assert all("protocol" not in example.metadata for example in first)
    write_frozen(other, tmp_path / "f.jsonl")
    read = list(read_frozen(tmp_path / "f.jsonl"))
    if not papers.example_options:
        assert content_hash(first) == content_hash(other)
        ours.refuse_others(read)
        return
    assert content_hash(first) != content_hash(other)
    assert {example.metadata["protocol"] for example in read} == {"paper"}
    papers.refuse_others(read)
    for task, given in ((ours, read), (papers, first)):
        with pytest.raises(ConfigError, match=r"was frozen by the protocol '(paper|release)', not"):
            task.refuse_others(given)
    features = row_features(papers, "frozen")
    row = {"metadata": other[0].metadata}
    assert features["metadata"].keys() == row["metadata"].keys()


def test_grounding_scores_against_the_annotated_pixels(tmp_path: Path) -> None:
    ours, papers = tasks("grounding")
    items = examples(ours, write_release(tmp_path, video=False))
    example = next(e for e in items if e.inputs["category"] == "coffee cup")
    exact = Prediction({"boxes": example.target["boxes"]})  # [50, 30, 70, 50] of 96x64 pixels is not on the grid
    assert papers.score(example, exact)["mean_best_iou"] == 1.0
    assert ours.score(example, exact)["mean_best_iou"] < 1.0
    on_grid = ours.parse(ours.reference_answer(example, BOXES), example.inputs, BOXES)
    assert isinstance(on_grid, Prediction)
    assert ours.score(example, on_grid)["mean_best_iou"] == 1.0
    assert papers.score(example, on_grid)["mean_best_iou"] < 1.0
    assert papers.explain(example, exact).rows[0].kind == "hit"


def interaction(box: list[float]) -> dict[str, Any]:
    return {"hand_boxes": [[0.0, 0.0, 10.0, 10.0]], "object_box": box, "hand_type": "left"}


def hand_object_example(target: list[list[float]]) -> Example:
    items = [
        {"object_id": str(i), "category": "cup", "hand_type": "left", "hand_pixels": [[0, 0, 10, 10]],
         "object_pixels": box, "hand_boxes": [[0, 0, 10, 10]], "object_box": box}
        for i, box in enumerate(target)
    ]  # fmt: skip
    inputs = {"frame_width": 1000, "frame_height": 1000}
    return Example("x", "barista", "hand_object", "left", (FrameRef("v", 0),), inputs, {"interactions": items})  # type: ignore[arg-type]


def test_hand_object_counts_an_overlap_of_exactly_a_half(tmp_path: Path) -> None:
    ours, papers = tasks("hand_object")
    example = hand_object_example([[0, 0, 100, 100]])
    half = Prediction({"interactions": [interaction([0, 0, 100, 50])]})
    assert (ours.score(example, half)["f1"], papers.score(example, half)["f1"]) == (0.0, 1.0)


def test_hand_object_matches_the_highest_overlap_of_all_first() -> None:
    ours, papers = tasks("hand_object")
    # Heights: a and b fit the first answer (0.99 and 0.98), b the second one a little (0.65), c that one well (0.90).
    example = hand_object_example([[0, 0, 100, 99], [0, 2, 100, 100], [0, 36, 100, 112]])
    answers = Prediction({"interactions": [interaction([0, 0, 100, 100]), interaction([0, 30, 100, 110])]})
    overlaps = []
    for task in (ours, papers):
        hits = [row.text for row in task.explain(example, answers).rows if row.kind == "hit"]
        overlaps.append(sorted(float(text.split("object IoU ")[1].split(",")[0]) for text in hits))
    assert overlaps == [[0.65, 0.99], [0.90, 0.99]]


def test_referring_tells_of_every_related_object_and_leaves_no_fragment_out(tmp_path: Path) -> None:
    content = document()
    # A second button on the machine, so that the machine is related to `2x button`; and a cup at the very edge.
    content["object_id_to_category_id"]["o-button2"] = "c-button"
    box = (20, 10, 4, 4)
    content["annotations"] += [
        {"image_id": f, "object_id": "o-button2", "bbox": list(map(float, box)), "segmentation": segmentation(box)}
        for f in range(FRAMES)
    ]
    content["relations"] += [
        relation(MACHINE, "o-button", "position", "contains", (0, FRAMES)),
        relation(MACHINE, "o-button2", "position", "contains", (0, FRAMES)),
    ]
    content["attributes"] += [
        {"object_id": name, "attribute_type": "color", "value": color, "image_ranges": [span(0, FRAMES)]}
        for name, color in (("o-button", "red"), ("o-button2", "green"))
    ]
    edge = (0, 30, 8, 8)
    for annotation in content["annotations"]:
        if annotation["object_id"] == CUP:
            annotation |= {"bbox": list(map(float, edge)), "segmentation": segmentation(edge)}
    root = write_release(tmp_path, content=content, video=False)
    ours, papers = ([(e.label, e) for e in examples(task, root, frame_step=20)] for task in tasks("referring"))
    assert "coffee cup" not in {label for label, _ in ours}
    assert "coffee cup" in {label for label, _ in papers}
    references = [str(dict(items)["coffee machine"].target["reference"]) for items in (ours, papers)]
    assert all("contains 2x button" in text for text in references)
    assert ["  button: color=red" in text and "  button: color=green" in text for text in references] == [False, True]


def test_activity_keeps_segments_that_share_time(tmp_path: Path) -> None:
    content = document()
    content["activities"] = [
        {"image_range": span(start, end), "activity_class_id": f"a{i}", "display_name": f"Move thing{i}"}
        for i, (start, end) in enumerate([(0, 12), (8, 20), (20, 30), (30, 39)])
    ]
    root = write_release(tmp_path, content=content, video=False)
    ours, papers = (examples(task, root, frames=4, choices=25, per_class=20) for task in tasks("activity"))
    assert {e.metadata["segment_start"] for e in ours} == {20, 30}
    assert {e.metadata["segment_start"] for e in papers} == {0, 8, 20, 30}


def test_relations_read_any_white_space_as_one_space(tmp_path: Path) -> None:
    ours, papers = tasks("relations")
    (example, *_) = examples(ours, write_release(tmp_path, video=False))
    spaced = json.dumps(example.target["relations"]).replace("part of", "Part \\n  of ")
    assert "Part" in spaced
    scores = []
    for task in (ours, papers):
        parsed = task.parse(spaced, example.inputs, BOXES)
        assert isinstance(parsed, Prediction)
        scores.append(task.score(example, parsed)["f1"])
        assert task.aggregate([Scored(example, parsed)])["micro_f1"] == scores[-1]
    assert scores[0] < 1.0
    assert scores[1] == 1.0


@pytest.mark.parametrize(
    ("text", "released", "papers"),
    [
        ("Answer: the lid\nis open", "the lid", "the lid\nis open"),
        ("So the answer: the lid", "So the answer: the lid", "the lid"),
        ("ANSWER: one\nAnswer: two", "two", "two"),
        ("no marker", "no marker", "no marker"),
    ],
)
def test_temporal_vqa_takes_all_that_follows_the_last_marker(text: str, released: str, papers: str) -> None:
    parsed = [task.parse(text, {}, BOXES) for task in tasks("temporal_vqa")]
    assert [answer.value["answer"] for answer in parsed if isinstance(answer, Prediction)] == [released, papers]
