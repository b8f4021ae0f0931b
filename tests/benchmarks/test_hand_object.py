"""Hand-object interaction, rule by rule (upstream.md 1.6)."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from barista_bench.benchmarks.barista.hand_object import EXEMPLARS, HandObject
from barista_bench.core.prompt import BoxFormat, ImagePart, TextPart
from barista_bench.core.task import Example, FrameRef, ParseError, Prediction, Sampling, Scored
from barista_bench.data.rows import from_row, row_features, to_row
from barista_bench.metrics.interaction_f1.scoring import score_frame
from barista_bench.scene_graph import SceneGraph
from tests.benchmarks.answering import answer_all
from tests.releases import BUTTON, CUP, HEIGHT, LEFT, MACHINE, RIGHT, WIDTH, document, relation, write_release

TASK = HandObject()
GRID = BoxFormat()
FORMATS = [GRID, BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1), BoxFormat("xyxy", None)]
SNAPSHOT = Path(__file__).parent / "snapshots" / "hand_object.txt"
SIZE: dict[str, Any] = {"frame_width": 2000, "frame_height": 500}

Content = dict[str, Any]


def derive(root: Path, sampling: Sampling = TASK.sampling) -> list[Example]:
    return [e for e in TASK.examples(SceneGraph(root), sampling) if isinstance(e, Example)]


def derived(tmp_path: Path, content: Content, sampling: Sampling = TASK.sampling) -> list[Example]:
    return derive(write_release(tmp_path, content=content, video=False), sampling)


def contact(source: str, target: str, verb: str, *ranges: tuple[int, int]) -> Content:
    return relation(source, target, "human_actions", verb, *ranges)


def brief(examples: Iterable[Example], frame: int) -> list[tuple[str, str, int]]:
    """(object, hand type, number of hand boxes) of each interaction on one frame."""
    (found,) = (e for e in examples if e.frames[0].frame_index == frame)
    return [(i["object_id"], i["hand_type"], len(i["hand_boxes"])) for i in found.target["interactions"]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("hand_object"), video=False)


@pytest.fixture(scope="module")
def example(root: Path) -> Example:
    return derive(root)[12]


def test_published_sampling_is_the_default() -> None:
    assert TASK.sampling == Sampling(limit=1000, seed=42, fraction=1.0)
    names = (TASK.name, TASK.upstream_name, TASK.primary, TASK.sample_score)
    assert names == ("hand_object", "hand_object", "f1", "f1")


def test_frames_are_those_with_an_interaction(root: Path) -> None:
    found = derive(root)
    # The left hand is seen on [0, 20); the right one from 10 on, and it acts on [5, 15) and [30, 40).
    assert [e.frames[0].frame_index for e in found] == [*range(20), *range(30, 40)]
    assert [brief(found, f)[0] for f in (3, 12, 17, 35)] == [
        (CUP, "left", 1),
        (CUP, "both", 2),
        (CUP, "left", 1),
        (CUP, "right", 1),
    ]


def test_activities_do_not_matter(tmp_path: Path) -> None:
    assert len(derived(tmp_path, document() | {"activities": []})) == 30


@pytest.mark.parametrize(
    ("sampling", "frames"),
    [
        # Of all 40 frames the fraction leaves 0, 13, 26 and 39; none but 26 has an interaction.
        (Sampling(fraction=0.1), [0, 13, 39]),
        (Sampling(fraction=0.01), [19]),
        (Sampling(frame_range=(14, 36), frame_step=4), [16, 32]),
    ],
)
def test_frames_are_thinned_before_interactions_are_looked_for(
    root: Path, sampling: Sampling, frames: list[int]
) -> None:
    assert [e.frames[0].frame_index for e in derive(root, sampling)] == frames


def test_only_human_actions_of_objects_that_are_hands_by_category(tmp_path: Path) -> None:
    content = document()
    content["categories"] = [
        {**c, "name": {"left hand": "Left Hand", "right hand": "right hand glove"}.get(c["name"], c["name"])}
        for c in content["categories"]
    ]
    content["relations"] = [
        relation(LEFT, CUP, "position", "on", (0, 40)),
        relation(LEFT, CUP, "Human_actions", "holds", (0, 40)),
        contact(LEFT, BUTTON, "presses", (2, 4)),
        contact(RIGHT, CUP, "holds", (0, 40)),
        contact(MACHINE, CUP, "touches", (0, 40)),
        contact(CUP, LEFT, "touches", (0, 40)),
    ]
    found = derived(tmp_path, content)
    assert [(e.frames[0].frame_index, brief(found, e.frames[0].frame_index)) for e in found] == [
        (2, [(BUTTON, "left", 1)]),
        (3, [(BUTTON, "left", 1)]),
    ]


def test_one_hand_on_two_objects_is_two_interactions_in_the_order_of_the_file(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [
        contact(RIGHT, MACHINE, "touches", (10, 40)),
        contact(LEFT, CUP, "holds", (0, 20)),
        contact(RIGHT, BUTTON, "presses", (10, 40)),
    ]
    assert brief(derived(tmp_path, content), 12) == [
        (MACHINE, "right", 1),
        (CUP, "left", 1),
        (BUTTON, "right", 1),
    ]


def test_a_hand_that_acts_twice_on_an_object_counts_once(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [contact(LEFT, CUP, verb, (0, 12), (8, 20)) for verb in ("touches", "holds")]
    found = derived(tmp_path, content)
    assert brief(found, 10) == [(CUP, "left", 1)]
    assert found[10].metadata["verbs"] == ["holds", "touches"]
    assert found[10].evidence["relation_rows"] == [0, 1]


def test_two_left_hands_are_two_boxes_of_type_left(tmp_path: Path) -> None:
    content = document()
    content["object_id_to_category_id"][MACHINE] = "c-left hand"
    content["relations"] = [contact(hand, CUP, "holds", (0, 20)) for hand in (LEFT, MACHINE)]
    assert brief(derived(tmp_path, content), 5) == [(CUP, "left", 2)]


def test_a_hand_may_act_on_anything(tmp_path: Path) -> None:
    content = document()
    content["categories"].append({"id": "c-unknown", "name": "unknown"})
    content["object_id_to_category_id"][CUP] = "c-unknown"
    content["relations"] = [contact(LEFT, target, "holds", (12, 13)) for target in (CUP, RIGHT, LEFT)]
    assert brief(derived(tmp_path, content), 12) == [(name, "left", 1) for name in (CUP, RIGHT, LEFT)]


def test_of_two_annotations_of_an_object_the_last_one_is_its_box(tmp_path: Path) -> None:
    """Also one outside of the frame, or without an area."""
    content = document()
    boxes = {CUP: [-9.0, 10.0, 8.0, 0.2], LEFT: [0.0, 0.0, 48.0, 32.0]}
    content["annotations"] += [{"image_id": 3, "object_id": name, "bbox": box} for name, box in boxes.items()]
    found = derived(tmp_path, content)
    (interaction,) = found[3].target["interactions"]
    assert (interaction["object_box"], interaction["hand_boxes"]) == ([0, 156, 0, 159], [[0, 0, 500, 500]])
    rows = len(content["annotations"])
    assert found[3].evidence["instance_rows"] == [rows - 2, rows - 1]


def test_objects_keep_their_lower_case_ids_where_a_relation_writes_them_otherwise(tmp_path: Path) -> None:
    cup, hand = "88acdb91-6a48-5bf4-aef8-195802a88b14", "0c2f1a4e-90ab-5cde-8123-456789abcdef"
    content = json.loads(json.dumps(document()).replace(f'"{CUP}"', f'"{cup}"').replace(f'"{LEFT}"', f'"{hand}"'))
    content["relations"] = [contact(hand.upper(), cup.replace("-", ""), "holds", (0, 1))]
    assert brief(derived(tmp_path, content), 0) == [(cup, "left", 1)]


def test_an_example_is_whole(example: Example) -> None:
    assert (example.example_id, example.label) == ("hand_object:v1:12", "both")
    assert example.inputs == {"frame_width": WIDTH, "frame_height": HEIGHT}
    # Cup [50, 30, 20, 20], left [44, 40, 10, 16] and right hand [68, 36, 12, 18] in a frame of 96 x 64.
    assert example.target == {
        "interactions": [
            {
                "object_id": CUP,
                "category": "coffee cup",
                "hand_type": "both",
                "hand_boxes": [[458, 625, 562, 875], [708, 562, 833, 844]],
                "object_box": [521, 469, 729, 781],
                "hand_pixels": [[44.0, 40.0, 54.0, 56.0], [68.0, 36.0, 80.0, 54.0]],
                "object_pixels": [50.0, 30.0, 70.0, 50.0],
            }
        ],
        "bbox_format": "xyxy",
        "bbox_scale": 1000,
    }
    assert example.metadata["hand_types"] == ["both"]
    assert example.metadata["categories"] == ["coffee cup"]
    assert example.metadata["steps"] == ["Extract coffee"]
    assert example.evidence["object_ids"] == [CUP]
    assert example.evidence["hand_ids"] == [LEFT, RIGHT]
    assert example.evidence["relation_rows"] == [2, 3]
    rows = [document()["annotations"][row] for row in example.evidence["instance_rows"]]
    assert [(a["object_id"], a["image_id"]) for a in rows] == [(CUP, 12), (LEFT, 12), (RIGHT, 12)]


def test_a_video_without_contacts_gives_nothing(tmp_path: Path) -> None:
    assert derived(tmp_path / "a", document() | {"relations": []}) == []
    assert derived(tmp_path / "b", document() | {"relations": document()["relations"][:2]}) == []


def test_the_prompt_shows_three_exemplars_in_the_format_of_the_model(example: Example) -> None:
    for boxes in FORMATS:
        prompt = TASK.prompt(example, boxes)
        assert prompt.parts[0] == ImagePart(0)
        assert isinstance(prompt.parts[1], TextPart)
        arrays = [line for line in prompt.system.splitlines() if line.startswith("[{")]
        read = [TASK.parse(line, example.inputs, boxes) for line in arrays]
        types = [[i["hand_type"] for i in p.value["interactions"]] for p in read if isinstance(p, Prediction)]
        assert types == [["right"], ["both"], ["left", "right"]]
    first = json.loads(arrays[0])[0]["object_box"]
    exact = [v * size / 1000 for v, size in zip(EXEMPLARS["one_hand"][0].object_box, (WIDTH, HEIGHT) * 2, strict=True)]
    assert first == [round(v) for v in exact], "pixels of this frame"
    blind = replace(example, target={}, evidence={}, metadata={}, label="")
    assert TASK.prompt(blind, GRID) == TASK.prompt(example, GRID)


def test_the_rendered_prompt_is_the_one_on_file(example: Example) -> None:
    formats = (BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1))
    rendered = "\n\n".join(f"=== {f} ===\n{TASK.prompt(example, f).as_text()}" for f in formats) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(rendered, encoding="utf-8")
    assert rendered == SNAPSHOT.read_text(encoding="utf-8")


def test_the_image_is_the_frame(example: Example) -> None:
    frame = np.full((HEIGHT, WIDTH, 3), 7, np.uint8)
    (image,) = TASK.images(example, [frame])
    assert np.array_equal(np.asarray(image), frame)


def item(hands: object = ((1, 2, 3, 4),), target: object = (10, 20, 30, 40), kind: object = "left") -> Content:
    return {"hand_boxes": hands, "object_box": target, "hand_type": kind}


# On a frame of 2000 x 500, [x0, y0, x1, y1] on the grid are [2 x0, y0 / 2, 2 x1, y1 / 2] in pixels.
ONE = json.dumps(item())
ONE_PX = {"hand_boxes": [[2.0, 1.0, 6.0, 2.0]], "object_box": [20.0, 10.0, 60.0, 20.0], "hand_type": "left"}
BOTH = json.dumps(item(hands=((1, 2, 3, 4), (5, 6, 7, 8.5)), kind="both"))
BOTH_PX = {**ONE_PX, "hand_boxes": [[2.0, 1.0, 6.0, 2.0], [10.0, 3.0, 14.0, 4.0]], "hand_type": "both"}
BAD = json.dumps(item(kind="none"))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("[]", []),
        (f"[{ONE}]", [ONE_PX]),
        (f" \n[{ONE}, {BOTH}] ", [ONE_PX, BOTH_PX]),
        (f"```json\n[{ONE}]\n```", [ONE_PX]),
        (f"Sure:\n```\n[{BOTH}]\n``` so [] it is", [BOTH_PX]),
        (f"I see [{ONE}].", [ONE_PX]),
        ("I see none: []", []),
        (f"See [1] and [2, 3]: [{ONE}]", [ONE_PX]),
        (f"not [{BAD}] but [{ONE}]", [ONE_PX]),
        (f"first [{ONE}] then [{BOTH}]", [ONE_PX]),
        (f'{{"interactions": [{ONE}]}}', [ONE_PX]),
        # Where an outer list in running text is not valid, those inside of it are tried: an empty one says `none`.
        (f"so [[{ONE}]]", [ONE_PX]),
        (f"not [{json.dumps(item(hands=()))}] but [{ONE}]", []),
        (f"```json \n[{ONE}]\n```", [ONE_PX]),
        (
            json.dumps([item(hands=[["1", " 2 ", "3.4", True]], target=["1_0", 20, 30, 40])]),
            [{**ONE_PX, "hand_boxes": [[2.0, 1.0, 6.0, 0.5]]}],
        ),
        (json.dumps([{**item(), "verb": "holds"}]), [ONE_PX]),
        # Inverted boxes and surplus hands stay.
        (json.dumps([item(target=(30, 40, 10, 20))]), [{**ONE_PX, "object_box": [60.0, 20.0, 20.0, 10.0]}]),
        (json.dumps([item(hands=[[1, 2, 3, 4]] * 3)]), [{**ONE_PX, "hand_boxes": [[2.0, 1.0, 6.0, 2.0]] * 3}]),
    ],
)
def test_answers_are_read_as_released(answer: str, found: list[Content]) -> None:
    parsed = TASK.parse(answer, SIZE, GRID)
    assert isinstance(parsed, Prediction)
    assert parsed.value["interactions"] == found


def test_what_the_model_wrote_is_kept_beside_the_pixels() -> None:
    parsed = TASK.parse(f"[{BOTH}]", SIZE, BoxFormat("yxyx", 1000))
    assert isinstance(parsed, Prediction)
    assert parsed.value["written"] == [item(hands=[[1, 2, 3, 4], [5, 6, 7, 8]], target=[10, 20, 30, 40], kind="both")]


@pytest.mark.parametrize(
    "bad", [item(hands=[[1, 2, 3, True]]), item(target=[1, 2, 3, "4"]), item(target=[1, 2, 3, 1e12])]
)
def test_the_papers_protocol_reads_plain_numbers_alone(bad: object) -> None:
    assert isinstance(TASK.parse(json.dumps([bad]), SIZE, GRID), Prediction)
    assert isinstance(HandObject(protocol="paper").parse(json.dumps([bad]), SIZE, GRID), ParseError)


def test_a_true_hand_that_nothing_overlaps_uses_up_an_answered_one_as_released() -> None:
    hands, alone = [[700, 700, 800, 800], [0, 0, 100, 100]], [[0, 0, 100, 100]]
    entry = {"object_id": "o", "category": "cup", "hand_type": "both", "hand_boxes": hands, "object_box": [0, 0, 9, 9]}
    target = {"interactions": [{**entry, "hand_pixels": hands, "object_pixels": [0, 0, 9, 9]}]}
    size = {"frame_width": 1000, "frame_height": 1000}
    asked = Example("e", "barista", "hand_object", "both", (FrameRef("v", 0),), size, target)
    answer = json.dumps([item(hands=alone, target=[0, 0, 9, 9], kind="both")])
    found = []
    for task in (TASK, HandObject(protocol="paper")):
        parsed = task.parse(answer, size, GRID)
        assert isinstance(parsed, Prediction)
        found.append(task.aggregate([Scored(asked, parsed)])["hand_iou"])
    assert found == [0.0, 0.5]


@pytest.mark.parametrize(
    "bad",
    [
        item(hands=[]),
        item(hands=None),
        item(hands=[1, 2, 3, 4]),
        item(hands=[[1, 2, 3]]),
        item(hands=[[1, 2, 3, 4, 5]]),
        item(hands=[[1, 2, 3, 4], None]),
        item(hands=[[1, 2, 3, "four"]]),
        item(hands=[[1, 2, 3, "nan"]]),
        item(target=[1, 2, 3]),
        item(target=[1, 2, 3, "inf"]),
        item(target=[1, 2, 3, 1e99]),
        item(target=[1, 2, 3, float("nan")]),
        item(target=[1, 2, 3, float("inf")]),
        item(target=[1, 2, 3, 10**400]),
        item(target=[[1, 2, 3, 4]]),
        item(target=None),
        item(kind="Left"),
        item(kind="neither"),
        item(kind=None),
        item(kind=["left"]),
        {},
        [],
        None,
        3,
    ],
)
def test_one_bad_entry_rejects_the_whole_answer(bad: object) -> None:
    assert isinstance(TASK.parse(json.dumps([item(), bad]), SIZE, GRID), ParseError)


@pytest.mark.parametrize(
    "answer",
    ["", "none", "null", "{}", ONE, f"[{ONE}", f"[{ONE}, {ONE[:30]}", "[1]", "[" * 9_000,
     '[{"hand_boxes": [[' + "9" * 5_000],
)  # fmt: skip
def test_an_answer_without_a_valid_array_is_a_parse_error(answer: str) -> None:
    assert isinstance(TASK.parse(answer, SIZE, GRID), ParseError)


def test_numbers_mean_what_the_format_of_the_model_says() -> None:
    answers = {
        BoxFormat("yxyx", 1000): item([[2, 1, 4, 3]], [20, 10, 40, 30]),
        BoxFormat("xyxy", 1): item([[0.001, 0.002, 0.003, 0.004]], [0.01, 0.02, 0.03, 0.04]),
        BoxFormat("xyxy", None): item([[2, 1, 6, 2]], [20, 10, 60, 20]),
    }
    for boxes, answer in answers.items():
        parsed = TASK.parse(json.dumps([answer]), SIZE, boxes)
        assert isinstance(parsed, Prediction)
        (found,) = parsed.value["interactions"]
        assert found["object_box"] == pytest.approx(ONE_PX["object_box"])
        assert found["hand_boxes"] == [pytest.approx(ONE_PX["hand_boxes"][0])]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["left", "both"]) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(list(ONE_PX)) | st.text(max_size=3), inner, max_size=4)
        | st.fixed_dictionaries(dict.fromkeys(ONE_PX, inner))
    ),
    max_leaves=15,
)


@settings(max_examples=300)
@given(
    st.text(max_size=200) | json_values.map(json.dumps) | json_values.map(lambda v: f"x [{json.dumps(v)}] y"),
    st.sampled_from(FORMATS),
)
def test_the_parser_never_raises_and_its_boxes_can_be_scored(text: str, boxes: BoxFormat) -> None:
    parsed = TASK.parse(text, SIZE, boxes)
    assert isinstance(parsed, Prediction | ParseError)
    if isinstance(parsed, Prediction):
        score_frame(parsed.value["interactions"], [])


grid_boxes = st.lists(st.integers(0, 1000), min_size=4, max_size=4)
interactions = st.fixed_dictionaries(
    {
        "hand_boxes": st.lists(grid_boxes, min_size=1, max_size=2),
        "object_box": grid_boxes,
        "hand_type": st.sampled_from(["left", "right", "both"]),
    }
)


@given(st.lists(interactions, max_size=4))
def test_what_is_written_as_json_is_read_back(items: list[Content]) -> None:
    parsed = TASK.parse(json.dumps(items), SIZE, GRID)
    assert isinstance(parsed, Prediction)

    def pixels(box: list[int]) -> list[float]:
        return [2 * box[0], box[1] / 2, 2 * box[2], box[3] / 2]

    assert parsed.value["interactions"] == [
        {**i, "hand_boxes": [pixels(b) for b in i["hand_boxes"]], "object_box": pixels(i["object_box"])} for i in items
    ]


@pytest.mark.parametrize("boxes", FORMATS[:3])
def test_the_oracle_scores_the_maximum(small_release: Path, boxes: BoxFormat) -> None:
    result = answer_all(TASK, derive(small_release), lambda e: TASK.reference_answer(e, boxes), boxes)
    names = ("precision", "recall", "f1", "object_iou", "hand_iou", "hand_type_accuracy", "coverage")
    assert [result[name] for name in names] == pytest.approx([1.0] * 7)
    assert result["no_detection_rate"] == 0.0


def one_box(box: list[int], kind: str = "right") -> str:
    return json.dumps([item([box], box, kind)])


SPRAY = json.dumps(
    [item([[x, y, x + 125, y + 125]], [x, y, x + 125, y + 125]) for x in range(0, 900, 60) for y in range(0, 900, 60)]
)


@pytest.mark.parametrize(
    ("answer", "ceiling"),
    [
        (lambda e: "", 0.0),
        (lambda e: "[]", 0.0),
        (lambda e: "I see no hands.", 0.0),
        (lambda e: one_box([0, 0, 1000, 1000]), 0.0),
        (lambda e: SPRAY, 0.02),
        (lambda e: TASK.random_answer(e, random.Random(e.example_id), GRID), 0.03),
    ],
    ids=["empty", "empty list", "prose", "whole frame", "225 boxes", "chance"],
)
def test_blind_answers_stay_near_zero(small_release: Path, answer: Callable[[Example], str], ceiling: float) -> None:
    assert answer_all(TASK, derive(small_release), answer)["f1"] <= ceiling


def test_real_clips_are_answered_by_the_oracle_and_not_by_chance(real_release: Path) -> None:
    examples = derive(real_release)
    assert len(examples) > 500
    assert answer_all(TASK, examples, lambda e: TASK.reference_answer(e, GRID))["f1"] == 1.0
    assert answer_all(TASK, examples, lambda e: TASK.random_answer(e, random.Random(e.example_id), GRID))["f1"] < 0.02


def test_a_failed_answer_counts_as_none_predicted(example: Example) -> None:
    full = TASK.parse(TASK.reference_answer(example, GRID), example.inputs, GRID)
    assert isinstance(full, Prediction)
    result = TASK.aggregate([Scored(example, full), Scored(example, None)])
    assert (result["precision"], result["recall"], result["no_detection_rate"]) == (1.0, 0.5, 0.5)
    assert (result["n"], result["n_failed"], result["coverage"]) == (2, 1, 0.5)
    found = {"recall": 0.5, "object_iou": 1.0, "hand_iou": 1.0, "hand_type_accuracy": 1.0, "support": 2}
    assert result["per_hand_type"] == {"both": found}
    assert result["per_category"] == {"coffee cup": found}
    assert TASK.score(example, full) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert TASK.score(example, None) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_figures_of_nothing_are_left_out(example: Example) -> None:
    result = TASK.aggregate([Scored(example, None)])
    assert "object_iou" not in result
    assert result["f1"] == 0.0
    assert result["per_hand_type"] == {"both": {"recall": 0.0, "support": 1}}
    json.dumps(result, allow_nan=False)


def test_an_explanation_names_hits_misses_and_wrong_answers(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [contact(LEFT, CUP, "holds", (0, 20)), contact(RIGHT, BUTTON, "presses", (10, 40))]
    found = derived(tmp_path, content)[12]
    answer = [item([[44, 40, 54, 56]], [50, 30, 70, 48], "both"), item([[0, 0, 1, 1]], [0, 0, 5, 5], "right")]
    explanation = TASK.explain(found, Prediction({"interactions": answer}))
    assert [(row.verdict, row.text) for row in explanation.rows] == [
        ("hit", "left hand on coffee cup: object IoU 0.90, hand IoU 0.99, answered as both"),
        ("miss", "right hand on button"),
        ("wrong", "right hand on an object at [0, 0, 5, 5]"),
    ]
    assert [row.verdict for row in TASK.explain(found, None).rows] == ["miss", "miss"]


def test_chance_gives_valid_answers_that_depend_on_the_seed_alone(example: Example) -> None:
    first, again, other = (TASK.random_answer(example, random.Random(seed), GRID) for seed in (1, 1, 2))
    assert first == again != other
    for seed in range(30):
        parsed = TASK.parse(TASK.random_answer(example, random.Random(seed), GRID), example.inputs, GRID)
        assert isinstance(parsed, Prediction)
        for made_up in parsed.value["interactions"]:
            assert len(made_up["hand_boxes"]) == (2 if made_up["hand_type"] == "both" else 1)


def test_examples_survive_a_dataset(root: Path) -> None:
    examples = derive(root)
    rows = [{**to_row(e, i, "0" * 64), "images": []} for i, e in enumerate(examples)]
    stored = Dataset.from_list(rows, features=row_features(TASK, "frozen"))
    assert [from_row(row) for row in stored] == examples
