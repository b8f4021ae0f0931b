"""Phrase grounding, rule by rule (upstream.md 1.5)."""

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

from barista_bench.benchmarks.barista.frame_index import even_places
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.phrases import AS_SOURCE, AS_TARGET, Link, Seen, is_color, subject_of
from barista_bench.builders.rows import from_row, row_features, to_row
from barista_bench.prompt import BoxFormat, ImagePart, TextPart
from barista_bench.scene_graph import SceneGraph, SceneObject, VideoGraph
from barista_bench.task import Example, ParseError, Prediction, Sampling, Scored, SkippedExample, content_seed
from tests.releases import BUTTON, CUP, HEIGHT, LEFT, MACHINE, RIGHT, WIDTH, document, relation, span, write_release

TASK = Grounding()
GRID = BoxFormat()
FORMATS = [GRID, BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1), BoxFormat("xyxy", None)]
EVERY_FRAME = Sampling(min_area=0)
SNAPSHOT = Path(__file__).parent / "snapshots" / "grounding.txt"
SIZE: dict[str, Any] = {"frame_width": 2000, "frame_height": 500}
CUP2, CUP3 = "o-cup2", "o-cup3"

Content = dict[str, Any]


def derive(root: Path, sampling: Sampling = EVERY_FRAME) -> list[Example]:
    return [e for e in TASK.examples(SceneGraph(root), sampling) if isinstance(e, Example)]


def derived(tmp_path: Path, content: Content, sampling: Sampling = EVERY_FRAME) -> list[Example]:
    return derive(write_release(tmp_path, content=content, video=False), sampling)


def on_frame(examples: Iterable[Example], frame: int) -> dict[str, Example]:
    return {e.label: e for e in examples if e.frames[0].frame_index == frame}


def scene(**sections: Any) -> Content:
    """The usual document with other attributes, relations, ... and with a second and a third cup on all frames."""
    content = document()
    mask = content["annotations"][0]["segmentation"]
    for number, name in enumerate((CUP2, CUP3)):
        content["object_id_to_category_id"][name] = "c-coffee cup"
        content["annotations"] += [
            {"image_id": i, "object_id": name, "bbox": [10.0 + 20 * number, 40.0, 16.0, 8.0], "segmentation": mask}
            for i in range(40)
        ]
    return content | sections


def color(item: str, value: str, start: int = 0, end: int = 40) -> Content:
    return {"object_id": item, "attribute_type": "color", "value": value, "image_ranges": [span(start, end)]}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("grounding"), video=False)


@pytest.fixture(scope="module")
def example(root: Path) -> Example:
    return on_frame(derive(root), 12)["coffee cup"]


def test_published_sampling_is_the_default() -> None:
    assert TASK.sampling == Sampling(limit=1000, seed=42, fraction=0.1, min_area=100)
    assert (TASK.name, TASK.upstream_name, TASK.primary, TASK.sample_score) == (
        "grounding",
        "grounding",
        "map",
        "mean_best_iou",
    )


def test_one_phrase_a_category_where_there_is_something_to_say(root: Path) -> None:
    found = on_frame(derive(root), 25)
    # On frame 25: no left hand; the right hand holds the cup on [5, 15) and [30, 40) only. The machine has no colour,
    # and what is part of it or under it is told from the other side only.
    assert {name: e.inputs["phrase"] for name, e in found.items()} == {
        "button": "button that is part of the coffee machine",
        "coffee cup": "white coffee cup under the coffee machine",
    }
    assert list(on_frame(derive(root), 12)) == ["button", "coffee cup", "left hand", "right hand"]
    assert on_frame(derive(root), 12)["left hand"].inputs["phrase"] == "left hand holding the coffee cup"


def test_frames_lie_in_an_activity_and_carry_a_relation(tmp_path: Path) -> None:
    content = document()
    content["activities"] = [
        {"image_range": span(3, 6), "activity_class_id": "a", "display_name": "Place cup"},
        {"image_range": span(10, 20), "activity_class_id": None, "display_name": "Press button"},
        {"image_range": span(30, 40), "activity_class_id": "b", "display_name": "Press button"},
    ]
    content["relations"] = [relation(CUP, MACHINE, "position", "under", (5, 12), (35, 38))]
    assert [e.frames[0].frame_index for e in derived(tmp_path, content)] == [5, 35, 36, 37]


def test_a_relation_needs_both_ends_boxed(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(LEFT, CUP, "human_actions", "holds", (0, 40))]
    frames = {e.frames[0].frame_index for e in derived(tmp_path, content)}
    assert frames == set(range(20)), "the left hand is seen on frames 0 to 19"


def test_the_fraction_is_taken_evenly_from_each_video(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_release(tmp_path, name, video=False)
    found = derive(tmp_path, Sampling(fraction=0.1))
    frames = sorted({(e.video_id, e.frames[0].frame_index) for e in found})
    assert frames == [(v, f) for v in "ab" for f in (0, 13, 26, 39)]
    assert {e.frames[0].frame_index for e in derive(tmp_path, Sampling(fraction=0.01))} == {20}
    cut = Sampling(fraction=0.5, frame_range=(10, 18), frame_step=2)
    assert {e.frames[0].frame_index for e in derive(tmp_path, cut)} == {10, 16}


@given(st.integers(1, 500), st.data())
def test_even_places_are_different_and_reach_both_ends(length: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, length))
    places = even_places(length, count)
    assert len(set(places)) == count
    assert 0 <= places[0] <= places[-1] < length
    assert count == 1 or (places[0], places[-1]) == (0, length - 1)


def test_small_objects_are_left_out(root: Path) -> None:
    # The button is 4 x 4 pixels, the left hand 10 x 16.
    assert "button" not in on_frame(derive(root, Sampling(min_area=16.5)), 12)
    assert "button" in on_frame(derive(root, Sampling(min_area=16)), 12)
    assert set(on_frame(derive(root, Sampling(min_area=161)), 12)) == {"coffee cup", "right hand"}


def test_unknown_objects_are_neither_asked_for_nor_named(tmp_path: Path) -> None:
    content = document()
    content["categories"].append({"id": "c-unknown", "name": "unknown"})
    content["object_id_to_category_id"][MACHINE] = "c-unknown"
    content["attributes"].append(color(MACHINE, "red"))
    found = on_frame(derived(tmp_path, content), 25)
    assert {name: e.inputs["phrase"] for name, e in found.items()} == {"coffee cup": "white coffee cup"}


@pytest.mark.parametrize(
    ("value", "of_source", "of_target"),
    [
        ("under", "under the jar", None),
        ("on", "on the jar", None),
        ("attached to", "attached to the jar", None),
        ("part of", "that is part of the jar", None),
        ("inside", "inside the jar", "containing the jar"),
        ("contains", "containing the jar", "inside the jar"),
        ("pulls", "pulling the jar", "pulled by the jar"),
        ("pushes", "pushing the jar", "pushed by the jar"),
        ("presses", "pressing the jar", "pressed by the jar"),
        ("holds", "holding the jar", "held by the jar"),
        ("touches", "touching the jar", "touched by the jar"),
        ("turns", "turning the jar", "turned by the jar"),
        ("looks at", None, None),
    ],
)
def test_words_of_both_directions(value: str, of_source: str | None, of_target: str | None) -> None:
    jar = SceneObject("j", "jar")
    assert Link(value, jar, True, 0).words == of_source
    assert Link(value, jar, False, 0).words == of_target
    assert Link(value, SceneObject("u", "unknown"), True, 0).words is None
    assert len(AS_SOURCE) == 12
    assert AS_TARGET.keys() < AS_SOURCE.keys()


def test_colours_are_sorted_and_those_that_say_nothing_left_out(tmp_path: Path) -> None:
    content = scene(
        attributes=[
            color(CUP, "white"),
            color(CUP, "black", 0, 20),
            color(CUP, "coffee"),
            color(LEFT, "skin"),
            {**color(CUP, "hot"), "attribute_type": "state"},
        ],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    found = derived(tmp_path, content)
    assert [on_frame(found, f)["coffee cup"].inputs["phrase"] for f in (19, 20)] == [
        "black white coffee cup",
        "white coffee cup",
    ]
    assert "left hand" not in on_frame(found, 12), "neither colour nor relation: no example"


def test_a_relation_outweighs_colours_then_colours_count_then_the_first_wins(tmp_path: Path) -> None:
    colors = [color(CUP, "white"), color(CUP, "black"), color(CUP2, "red"), color(CUP3, "blue")]
    on = [relation(cup, MACHINE, "position", "on", (0, 40)) for cup in (CUP2, CUP3)]
    described = []
    for name, content in (
        ("a", scene(attributes=colors, relations=on)),
        ("b", scene(attributes=[*colors, color(CUP3, "grey")], relations=on)),
        ("c", scene(attributes=colors, relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))])),
    ):
        found = derived(tmp_path / name, content)
        described.append(on_frame(found, 12)["coffee cup"].inputs["phrase"])
    assert described == [
        "red coffee cup on the coffee machine",
        "blue grey coffee cup on the coffee machine",
        "black white coffee cup",
    ]


def test_all_objects_that_fit_are_the_truth(tmp_path: Path) -> None:
    """Same set of colours, and a relation of the same value with the same category in either direction."""
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red"), color(CUP3, "red"), color(CUP3, "blue", 30, 40)],
        relations=[
            relation(CUP, MACHINE, "position", "on", (0, 40)),
            relation(MACHINE, CUP2, "position", "on", (0, 20)),
            relation(CUP3, MACHINE, "position", "on", (25, 35)),
            relation(CUP2, BUTTON, "position", "on", (20, 40)),
        ],
    )
    found = derived(tmp_path, content)
    cups = {f: on_frame(found, f)["coffee cup"] for f in (12, 22, 27, 32)}
    assert {f: e.evidence["object_ids"] for f, e in cups.items() if f != 32} == {
        12: [CUP, CUP2],
        22: [CUP],
        27: [CUP, CUP3],
    }
    assert cups[12].inputs["phrase"] == "red coffee cup on the coffee machine"
    assert cups[12].evidence["relation_rows"] == [0, 1]
    assert cups[12].evidence["attribute_rows"] == [0, 1]
    # With another colour the third cup is the richest, and no other fits.
    assert cups[32].inputs["phrase"] == "blue red coffee cup on the coffee machine"
    assert cups[32].evidence["object_ids"] == [CUP3]


def test_without_a_relation_the_colours_alone_decide(tmp_path: Path) -> None:
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red"), color(CUP3, "skin")],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    found = on_frame(derived(tmp_path, content), 3)["coffee cup"]
    assert found.inputs["phrase"] == "red coffee cup"
    assert found.evidence["object_ids"] == [CUP, CUP2]
    assert (found.metadata["relation"], found.metadata["objects"]) == ("", 2)


def test_the_relation_is_drawn_by_content_alone(tmp_path: Path) -> None:
    turned = document()
    turned["relations"] = turned["relations"][::-1]
    some = derived(tmp_path / "a", document())
    other = derived(tmp_path / "b", turned, Sampling(min_area=0, seed=7))
    phrases = [[e.inputs["phrase"] for e in found if e.label == "coffee cup"] for found in (some, other)]
    assert phrases[0] == phrases[1]
    both = {on_frame(some, f)["coffee cup"].inputs["phrase"] for f in range(20)}
    assert {"white coffee cup under the coffee machine", "white coffee cup held by the left hand"} <= both


def test_a_record_with_overlapping_ranges_counts_once(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(CUP, MACHINE, "position", "under", (0, 20), (10, 40))]
    found = on_frame(derived(tmp_path, content), 15)["coffee cup"]
    assert found.evidence["relation_rows"] == [0]


def test_an_example_is_whole(example: Example) -> None:
    assert example.example_id == "grounding:v1:12:coffee cup"
    assert (example.label, example.metadata["category"], example.metadata["colors"]) == (
        "coffee cup",
        "coffee cup",
        ["white"],
    )
    assert example.inputs["frame_width"] == WIDTH
    # The cup is [50, 30, 20, 20] in a frame of 96 x 64.
    assert example.target == {
        "boxes": [[50.0, 30.0, 70.0, 50.0]],
        "ground_truth_boxes": [[521, 469, 729, 781]],
        "bbox_format": "xyxy",
        "bbox_scale": 1000,
    }
    rows = [document()["annotations"][row] for row in example.evidence["instance_rows"]]
    assert [(a["object_id"], a["image_id"]) for a in rows] == [(CUP, 12)]
    assert example.evidence["object_ids"] == [CUP]
    assert example.evidence["related_object_id"] in (MACHINE, LEFT, RIGHT)
    assert example.metadata["activities"] == ["Place cup"]


def test_metadata_change_with_the_segment(root: Path) -> None:
    activities = [e.metadata["activities"] for e in derive(root) if e.label == "button"]
    assert activities == [["Place cup"]] * 20 + [["Press button"]] * 20


def test_a_box_without_area_on_the_grid_is_skipped(tmp_path: Path) -> None:
    content = document()
    content["annotations"] = [
        {**a, "bbox": [95.98, 10.0, 0.01, 40.0]} if a["object_id"] == CUP and a["image_id"] == 3 else a
        for a in content["annotations"]
    ]
    graph = SceneGraph(write_release(tmp_path, content=content, video=False))
    skipped = [e for e in TASK.examples(graph, EVERY_FRAME) if isinstance(e, SkippedExample)]
    assert [(s.frame.frame_index, s.reason) for s in skipped] == [(3, "a box of coffee cup has no area on the grid")]


def test_a_video_without_relations_or_activities_gives_nothing(tmp_path: Path) -> None:
    empty: Content = {"relations": [], "attributes": []}
    assert derived(tmp_path / "a", document() | empty) == []
    assert derived(tmp_path / "b", document() | {"activities": []}) == []


def test_the_prompt_says_format_and_phrase_and_nothing_of_the_target(example: Example) -> None:
    prompt = TASK.prompt(example, BoxFormat("yxyx", 1000))
    assert prompt.parts[0] == ImagePart(0)
    assert isinstance(prompt.parts[1], TextPart)
    assert f'"{example.inputs["phrase"]}"' in prompt.parts[1].text
    assert '{"bboxes": [[y_min, x_min, y_max, x_max], ...]}' in prompt.system
    assert "integers from 0 to 1000" in prompt.system
    blind = replace(example, target={}, evidence={}, metadata={}, label="")
    assert TASK.prompt(blind, GRID) == TASK.prompt(example, GRID)


def test_the_rendered_prompt_is_the_one_on_file(example: Example) -> None:
    fixed = replace(example, inputs={**example.inputs, "phrase": "white coffee cup held by the left hand"})
    formats = (BoxFormat("yxyx", 1000), BoxFormat("xyxy", None))
    rendered = "\n\n".join(f"=== {f} ===\n{TASK.prompt(fixed, f).as_text()}" for f in formats) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(rendered, encoding="utf-8")
    assert rendered == SNAPSHOT.read_text(encoding="utf-8")


def test_the_image_is_the_frame(example: Example) -> None:
    frame = np.full((HEIGHT, WIDTH, 3), 7, np.uint8)
    (image,) = TASK.images(example, [frame])
    assert np.array_equal(np.asarray(image), frame)


# On a frame of 2000 x 500, [x0, y0, x1, y1] on the grid are [2 x0, y0 / 2, 2 x1, y1 / 2] in pixels.
ONE, ONE_PX = "[10, 20, 30, 40]", [20.0, 10.0, 60.0, 20.0]
TWO, TWO_PX = "[100, 200, 300, 400]", [200.0, 100.0, 600.0, 200.0]


@pytest.mark.parametrize(
    ("answer", "found", "dropped"),
    [
        (f'{{"bboxes": [{ONE}]}}', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}, {TWO}], "why": "x"}}', [ONE_PX, TWO_PX], 0),
        ('{"bboxes": []}', [], 0),
        (f'{{"boxes": [{ONE}]}}', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}], "boxes": [{TWO}]}}', [ONE_PX], 0),
        (f'  ```json\n{{"bboxes": [{ONE}]}}\n``` done [1, 2, 3, 4]', [ONE_PX], 0),
        (f'```\n{{"bboxes": [{ONE}]}}\n```', [ONE_PX], 0),
        ('{"bboxes": [[10, 20, 30, 40, 0.9]]}', [ONE_PX], 0),
        ('{"bboxes": [[10.4, 19.6, 30.2, 39.9]]}', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}, [1, 2, 3], "1, 2, 3, 4", {{}}, null]}}', [ONE_PX], 4),
        ('{"bboxes": [[1, 2, 3, true], [1, 2, 3, "4"], [1, 2, 3, NaN], [1, 2, 3, 1e99], [1, 2, 3, Infinity]]}', [], 5),
        # No object with a list: every run of four integers in the text.
        (f"[{ONE}, {TWO}]", [ONE_PX, TWO_PX], 0),
        (ONE, [ONE_PX], 0),
        (f"It is at {ONE}, and the other one at {TWO}.", [ONE_PX, TWO_PX], 0),
        ("x: 10,20,30 , 40", [ONE_PX], 0),
        (f'Here: {{"bboxes": [{ONE}]}}', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}, [100, 200, 3', [ONE_PX], 0),
        (f'```json\n{{"bboxes": [{ONE}', [ONE_PX], 0),
        (f'{{"bboxes": {{"a": {ONE}}}}}', [ONE_PX], 0),
        (f'{{"box": {ONE}}}', [ONE_PX], 0),
        ("1, 2, 10, 20, 30, 40, 50, 60", [[2.0, 1.0, 20.0, 10.0], [60.0, 20.0, 100.0, 30.0]], 0),
        ("-10, 20, 30, 40", [[-20.0, 10.0, 60.0, 20.0]], 0),
        # Degenerate and inverted boxes stay.
        ('{"bboxes": [[30, 40, 10, 20]]}', [[60.0, 20.0, 20.0, 10.0]], 0),
    ],
)
def test_answers_are_read_as_released(answer: str, found: list[list[float]], dropped: int) -> None:
    assert TASK.parse(answer, SIZE, GRID) == Prediction({"boxes": found}, dropped)


@pytest.mark.parametrize(
    "answer",
    ["", "no box", "{}", "[]", "null", "[1, 2, 3]", "[0.1, 0.2, 0.3, 0.4]", "1, 2, 3, 4.5", "1.5, 2, 3, 4",
     '{"bboxes": null}', "[" * 100_000, "9" * 5_000 + ", 1, 2, 3", '{"bboxes": [[1, 2, ' + "9" * 5_000],
)  # fmt: skip
def test_an_answer_without_boxes_is_a_parse_error(answer: str) -> None:
    assert isinstance(TASK.parse(answer, SIZE, GRID), ParseError)


def test_numbers_mean_what_the_format_of_the_model_says() -> None:
    answers = {
        BoxFormat("yxyx", 1000): "[20, 10, 40, 30]",
        BoxFormat("xyxy", 1): '{"bboxes": [[0.01, 0.02, 0.03, 0.04]]}',
        BoxFormat("yxyx", 1): "at [0.02, 0.01, 0.04, 0.03]",
        BoxFormat("xyxy", None): "[20, 10, 60, 20]",
    }
    for boxes, answer in answers.items():
        parsed = TASK.parse(answer, SIZE, boxes)
        assert isinstance(parsed, Prediction)
        assert parsed.value["boxes"] == [pytest.approx(ONE_PX)], boxes


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["bboxes", "boxes"]) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(
    st.text(max_size=200)
    | st.text(alphabet="0123456789.,- []{}`\n", max_size=80)
    | json_values.map(json.dumps)
    | json_values.map(lambda v: f'{{"bboxes": {json.dumps(v)}}}'),
    st.sampled_from(FORMATS),
)
def test_the_parser_never_raises_and_its_boxes_can_be_scored(text: str, boxes: BoxFormat) -> None:
    parsed = TASK.parse(text, SIZE, boxes)
    assert isinstance(parsed, Prediction | ParseError)
    if isinstance(parsed, Prediction):
        assert np.isfinite(np.array(parsed.value["boxes"], dtype=float)).all()


@given(st.lists(st.lists(st.integers(0, 1000), min_size=4, max_size=4), max_size=5))
def test_what_is_written_as_json_is_read_back(boxes: list[list[int]]) -> None:
    parsed = TASK.parse(json.dumps({"bboxes": boxes}), SIZE, GRID)
    assert isinstance(parsed, Prediction)
    assert parsed.value["boxes"] == [[2 * a, b / 2, 2 * c, d / 2] for a, b, c, d in boxes]


def answer_all(examples: Iterable[Example], answer: Callable[[Example], str], boxes: BoxFormat = GRID) -> dict:
    samples = []
    for e in examples:
        parsed = TASK.parse(answer(e), e.inputs, boxes)
        samples.append(Scored(e, parsed if isinstance(parsed, Prediction) else None))
    return TASK.aggregate(samples)


@pytest.mark.parametrize("boxes", FORMATS[:3])
def test_the_oracle_scores_the_maximum(small_release: Path, boxes: BoxFormat) -> None:
    examples = derive(small_release, Sampling(fraction=0.3, min_area=0))
    result = answer_all(examples, lambda e: TASK.reference_answer(e, boxes), boxes)
    assert [result[name] for name in ("map", "map_50", "f1@50", "mean_best_iou", "coverage")] == pytest.approx([1] * 5)
    parsed = TASK.parse(TASK.reference_answer(examples[0], boxes), examples[0].inputs, boxes)
    assert isinstance(parsed, Prediction)
    assert TASK.score(examples[0], parsed)["mean_best_iou"] == pytest.approx(1)


SPRAY = json.dumps({"bboxes": [[x, y, x + 125, y + 125] for x in range(0, 900, 60) for y in range(0, 900, 60)]})


@pytest.mark.parametrize(
    ("answer", "ceiling"),
    [
        (lambda e: "", 0.0),
        (lambda e: '{"bboxes": []}', 0.0),
        (lambda e: "I cannot see it.", 0.0),
        (lambda e: '{"bboxes": [[0, 0, 1000, 1000]]}', 0.01),
        (lambda e: SPRAY, 0.01),
        (lambda e: TASK.random_answer(e, random.Random(e.example_id), GRID), 0.02),
    ],
    ids=["empty", "empty list", "prose", "whole frame", "225 boxes", "chance"],
)
def test_blind_answers_stay_near_zero(small_release: Path, answer: Callable[[Example], str], ceiling: float) -> None:
    examples = derive(small_release, Sampling(fraction=0.3, min_area=0))
    assert answer_all(examples, answer)["map"] <= ceiling


def test_real_clips_are_grounded_by_the_oracle_and_not_by_chance(real_release: Path) -> None:
    examples = derive(real_release, TASK.sampling)
    assert len(examples) > 100
    assert answer_all(examples, lambda e: TASK.reference_answer(e, GRID))["map"] == pytest.approx(1)
    assert answer_all(examples, lambda e: TASK.random_answer(e, random.Random(e.example_id), GRID))["map"] < 0.02


def test_a_failed_answer_counts_as_empty(example: Example) -> None:
    full = TASK.parse(TASK.reference_answer(example, GRID), example.inputs, GRID)
    assert isinstance(full, Prediction)
    result = TASK.aggregate([Scored(example, full), Scored(example, None)])
    assert (result["n"], result["n_failed"], result["coverage"]) == (2, 1, 0.5)
    assert result["mar_100"] == result["mean_best_iou"] == 0.5
    assert TASK.score(example, None) == {"mean_best_iou": 0.0}


def test_scores_of_examples_average_to_the_figure_of_the_run(small_release: Path) -> None:
    examples = derive(small_release, Sampling(fraction=0.3, min_area=0))
    rng = random.Random(1)
    boxes = [[[rng.randint(0, 90) for _ in range(4)] for _ in range(rng.randint(0, 3))] for _ in examples]
    samples = [Scored(e, Prediction({"boxes": found})) for e, found in zip(examples, boxes, strict=True)]
    mean = np.mean([TASK.score(s.example, s.prediction)["mean_best_iou"] for s in samples])
    assert mean == pytest.approx(TASK.aggregate(samples)["mean_best_iou"])
    assert mean > 0


def test_figures_without_a_reference_are_left_out(example: Example) -> None:
    result = TASK.aggregate([Scored(example, None)])
    # The cup is 20 x 20 pixels: small; there are no medium and large objects.
    assert {name for name in result if name.startswith("map_")} == {"map_50", "map_75", "map_small"}
    assert isinstance(result["map"], float)
    assert result["per_category"]["coffee cup"]["support"] == 1
    json.dumps(result, allow_nan=False)


def test_the_spread_over_orders_stands_beside_the_figure(small_release: Path) -> None:
    examples = derive(small_release, Sampling(fraction=0.3, min_area=0))
    half = answer_all(
        examples, lambda e: TASK.reference_answer(e, GRID) if e.video_id < "v3" else '{"bboxes": [[1,1,2,2]]}'
    )
    spread = half["tie_spread"]["map"]
    assert spread["canonical"] == half["map"]
    assert spread["lower"] <= spread["min"] < spread["max"] <= spread["upper"]


def test_an_explanation_names_hits_misses_and_wrong_answers(tmp_path: Path) -> None:
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red")],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    found = on_frame(derived(tmp_path, content), 3)["coffee cup"]
    explanation = TASK.explain(found, Prediction({"boxes": [[50, 30, 70, 48], [0, 0, 5, 5]]}))
    assert [(row.verdict, row.text) for row in explanation.rows] == [
        ("hit", "red coffee cup at [50, 30, 70, 50]: IoU 0.90 with [50, 30, 70, 48]"),
        ("miss", "red coffee cup at [10, 40, 26, 48]: best IoU 0.00"),
        ("wrong", "box [0, 0, 5, 5]: best IoU 0.00"),
    ]
    assert [row.verdict for row in TASK.explain(found, None).rows] == ["miss", "miss"]


def test_chance_depends_on_the_seed_alone(example: Example) -> None:
    first, again, other = (TASK.random_answer(example, random.Random(seed), GRID) for seed in (1, 1, 2))
    assert first == again != other


def test_examples_survive_a_dataset(root: Path) -> None:
    examples = derive(root, TASK.sampling)
    rows = [{**to_row(e, i, "0" * 64), "images": []} for i, e in enumerate(examples)]
    stored = Dataset.from_list(rows, features=row_features(TASK, "frozen"))
    assert [from_row(row) for row in stored] == examples


def test_the_same_release_gives_the_same_examples(root: Path) -> None:
    assert derive(root, TASK.sampling) == derive(root, TASK.sampling)


@st.composite
def _scenes(draw: st.DrawFn) -> Content:
    """Colours and relations of any kind, unknown and hidden ends among them, on any ranges; some boxes without area."""
    names, ranges = (CUP, LEFT, RIGHT, BUTTON, MACHINE), st.tuples(st.integers(0, 30), st.integers(1, 9))
    values = st.sampled_from(("under", "part of", "holds", "fits", "contains"))
    content = document()
    content["categories"][1]["name"] = draw(st.sampled_from(("coffee cup", "unknown", "button")))
    content["relations"] = [
        relation(*pair, "position", value, (start, start + length))
        for pair, value, (start, length) in draw(
            st.lists(st.tuples(st.permutations(names).map(lambda p: p[:2]), values, ranges), max_size=5)
        )
    ]
    content["attributes"] = [
        color(name, value, start, start + length)
        for name, value, (start, length) in draw(
            st.lists(st.tuples(st.sampled_from(names), st.sampled_from(("red", "skin", "cup")), ranges), max_size=4)
        )
    ]
    for place in draw(st.sets(st.integers(0, len(content["annotations"]) - 1), max_size=20)):
        content["annotations"][place]["bbox"] = [10.0, 10.0, 0.01, 5.0]
    return content


def _by_hand(video: VideoGraph, frame: int) -> dict[str, list[str] | None]:
    """Category to the objects meant, or None where one has no area; asked of the graph frame by frame."""
    if not any(s.class_id and s.start <= frame < s.end for s in video.activities()) or not video.relations(frame):
        return {}
    numbers = {item.id: number for number, item in enumerate(video.objects)}
    groups: dict[str, list[Seen]] = {}
    for instance in video.instances(frame):
        item = instance.object
        links = [Link(r.value, r.target, True, r.row) for r in video.relations(frame) if r.source is item]
        links += [Link(r.value, r.source, False, r.row) for r in video.relations(frame) if r.target is item]
        stated = [a for a in video.attributes(frame) if a.object is item and a.type == "color"]
        colors = {a.value: a.row for a in reversed(stated) if is_color(a.value, item.category)}
        if item.category != "unknown":
            groups.setdefault(item.category, []).append(Seen(item, numbers[item.id], colors, links))
    found: dict[str, list[str] | None] = {}
    flat = {i.object.id for i in video.instances(frame) if i.bbox[2] < 0.1}
    for category, group in sorted(groups.items()):
        subject = subject_of(group)
        if subject is not None:
            count = len(subject.links)
            seed = content_seed("grounding", video.video_id, frame, subject.described.object.id)
            meant = [seen.object.id for seen in subject.phrase(seed % count if count > 1 else 0).truth]
            found[category] = None if flat & set(meant) else meant
    return found


@settings(max_examples=60, deadline=None)
@given(content=_scenes())
def test_candidates_and_skips_are_those_that_asking_frame_by_frame_finds(
    content: Content, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = write_release(tmp_path_factory.mktemp("scene"), content=content, video=False)
    graph = SceneGraph(root)
    video = graph["v1"]
    by_hand = {frame: _by_hand(video, frame) for frame in range(video.frame_count)}
    every = [(f, category, meant) for f, found in by_hand.items() for category, meant in found.items()]
    found = list(TASK.examples(graph, EVERY_FRAME))
    examples = [(e.frames[0].frame_index, e.label, e.evidence["object_ids"]) for e in found if isinstance(e, Example)]
    assert examples == [item for item in every if item[2] is not None]
    skipped = [item.frame.frame_index for item in found if isinstance(item, SkippedExample)]
    assert skipped == [frame for frame, _, meant in every if meant is None]
