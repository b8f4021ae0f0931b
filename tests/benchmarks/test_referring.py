"""Referring, rule by rule (docs/upstream/barista.md)."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.referring import ReferringSampling
from barista_bench.core.example import Example, ParseError, Prediction
from barista_bench.data.plan import plan_task
from barista_bench.scene_graph import SceneGraph
from tests.benchmarks.referring_kit import BOXES, TASK, add_object, derive, derive_from, of_object
from tests.graph_examples import graph_examples
from tests.releases import (
    BUTTON,
    CUP,
    HEIGHT,
    MACHINE,
    RIGHT,
    WIDTH,
    document,
    relation,
    segmentation,
    span,
    write_release,
)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    root = write_release(tmp_path_factory.mktemp("referring"), video=False)
    return of_object(derive(root), CUP)


def test_candidates_have_an_attribute_and_a_relation(tmp_path: Path) -> None:
    items = derive_from(tmp_path, document(), ReferringSampling(frame_step=12))
    # Button and hands have relations but no attribute.
    assert [e.example_id for e in items] == [
        f"referring:v1:frame_{frame}:obj_{name}" for frame in (0, 12, 24, 36) for name in (MACHINE, CUP)
    ]
    content = document()
    content["relations"] = [relation(CUP, BUTTON, "position", "on", (0, 12))]
    (only,) = derive_from(tmp_path / "b", content, ReferringSampling(frame_step=12))
    assert only.example_id == f"referring:v1:frame_0:obj_{CUP}", "the machine is in no relation, the range is half-open"


def test_a_relation_in_any_role_makes_a_candidate(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(BUTTON, MACHINE, "position", "part of", (0, 40))]
    (only,) = derive_from(tmp_path, content, ReferringSampling(frame_range=(12, 13)))
    assert only.target["reference"] == "Object: coffee machine\nAttributes: type=capsule"


def test_a_relation_counts_only_while_both_ends_have_a_box(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(RIGHT, CUP, "human_actions", "holds", (0, 40))]
    assert {e.frames[0].frame_index for e in derive_from(tmp_path, content)} == set(range(12, 40, 4))


def test_of_the_frames_at_the_stride_those_inside_an_activity_are_kept(tmp_path: Path) -> None:
    content = document()
    content["activities"] = [
        {"image_range": span(7, 20), "activity_class_id": "a", "display_name": "Place cup"},
        {"image_range": span(28, 40), "activity_class_id": None, "display_name": "No class"},
    ]
    items = derive_from(tmp_path, content, ReferringSampling(frame_step=4, in_activities=True))
    assert sorted({e.frames[0].frame_index for e in items}) == [8, 12, 16]
    assert len({e.frames[0].frame_index for e in derive(tmp_path)}) == 10


def test_unknown_objects_are_never_candidates_but_count_as_other_ends(tmp_path: Path) -> None:
    content = document()
    add_object(content, "o-what", "Unknown", (20, 20, 8, 8), color="red")
    content["relations"] = [relation("o-what", CUP, "any", "leans at", (0, 40))]
    (only,) = derive_from(tmp_path, content, ReferringSampling(frame_range=(12, 13)))
    assert str(only.target["reference"]).splitlines() == [
        "Object: coffee cup",
        "Attributes: color=white",
        "Relations: Unknown leans at coffee cup",
        "Related objects:",
        "  Unknown: color=red",
    ]


def shape(box: tuple[int, int, int, int], mask: tuple[int, int, int, int] | None = None) -> dict[str, Any]:
    """An annotation of a lid; without its own mask it fills its box."""
    return {"bbox": list(map(float, box)), "segmentation": segmentation(mask or box)}


SIDE = (0, 0, 20, 20)  # 400 of 6144 pixels is over 5%
LARGE, SMALL, WHOLE_BOX = shape(SIDE), shape(SIDE, (0, 0, 10, 10)), {"bbox": [0.0, 0.0, 20.0, 20.0]}
SMALL_BOX = {"bbox": [0.0, 0.0, 10.0, 10.0]}


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        ([shape((3, 10, 10, 10))], 1),  # 100 pixels is under 5%, and 3 pixels off the edge
        ([shape((2, 10, 10, 10))], 0),
        ([shape((10, 0, 10, 10))], 0),
        ([shape((WIDTH - 12, 10, 10, 10))], 0),
        ([shape((WIDTH - 13, 10, 10, 10))], 1),
        ([shape((10, HEIGHT - 12, 10, 10))], 0),
        ([shape((10, HEIGHT - 13, 10, 10))], 1),
        # A usable mask decides, the last one of two; else each box.
        ([LARGE], 1),
        ([SMALL], 0),
        ([WHOLE_BOX | {"segmentation": {"counts": "0", "size": [HEIGHT, WIDTH]}}], 1),
        ([LARGE, SMALL_BOX | {"segmentation": segmentation((0, 0, 10, 10))}], 0),
        ([SMALL, SMALL_BOX | {"segmentation": segmentation(SIDE)}], 2),
        ([SMALL, SMALL_BOX], 0),
        ([LARGE, SMALL_BOX], 2),
        ([WHOLE_BOX, SMALL_BOX], 1),
    ],
)
def test_border_fragments_are_dropped(tmp_path: Path, annotations: list[dict[str, Any]], kept: int) -> None:
    content = document()
    add_object(content, "o-lid", "lid", SIDE, color="red")
    content["annotations"] = [a for a in content["annotations"] if a["object_id"] != "o-lid"]
    content["annotations"] += [{"image_id": 12, "object_id": "o-lid", **annotation} for annotation in annotations]
    content["relations"] = [relation("o-lid", CUP, "position", "on", (0, 40))]
    items = derive_from(tmp_path, content, ReferringSampling(frame_range=(12, 13)))
    assert [e.label for e in items].count("lid") == kept


def crowd(count: int) -> dict[str, Any]:
    content = document()
    content["relations"] = []
    for number in range(count):
        add_object(content, f"o-lid-{number:02}", "lid", (10 + 2 * number, 10, 8, 8), color="red")
        content["relations"].append(relation(f"o-lid-{number:02}", BUTTON, "position", "on", (0, 40)))
    return content


def test_a_full_frame_is_drawn_by_video_and_frame(tmp_path: Path) -> None:
    items = derive_from(tmp_path, crowd(12), ReferringSampling(frame_step=20, per_frame=10))
    for frame in (0, 20):
        names = [f"o-lid-{number:02}" for number in range(12)]
        random.Random(f"v1:{frame}").shuffle(names)
        drawn = [e.example_id.split("obj_")[1] for e in items if e.frames[0].frame_index == frame]
        assert drawn == names[:10]
    few = derive_from(tmp_path / "few", crowd(10), ReferringSampling(frame_step=40, per_frame=10))
    assert [e.example_id.split("obj_")[1] for e in few] == [f"o-lid-{number:02}" for number in range(10)]


@pytest.mark.parametrize(("seed", "cap"), [(42, 7), (1, 7), (None, 7), (42, 1000)])
@pytest.mark.full
def test_a_cap_draws_from_each_category_that_exceeds_it(small_release: Path, seed: int | None, cap: int) -> None:
    every = derive(small_release, ReferringSampling(seed=seed))
    expected = []
    for category in ("coffee machine", "coffee cup"):
        ids = [e.example_id for e in every if e.label == category]
        if len(ids) > cap:
            random.Random(f"{seed}:{category}").shuffle(ids)
        expected += ids[:cap]
    assert [e.example_id for e in derive(small_release, ReferringSampling(seed=seed, per_class=cap))] == expected
    assert [e.label for e in every[:4]] == ["coffee machine", "coffee cup"] * 2, "without a cap frame by frame"


def test_an_object_annotated_twice_is_asked_about_once(tmp_path: Path) -> None:
    """Both annotations are drawn; the second one drawn is left out, with a message."""
    content = document()
    content["annotations"].append({"image_id": 12, "object_id": CUP, "bbox": [10, 20, 30.5, 5]})
    graph = SceneGraph(write_release(tmp_path, content=content, video=False))
    sampling = ReferringSampling(frame_range=(12, 13), limit=3)
    candidates = [e for e in graph_examples(TASK, graph, sampling) if isinstance(e, Example)]
    assert [e.inputs["bbox_xywh"] for e in candidates] == [[4, 4, 40, 50], [50, 30, 20, 20], [10, 20, 30.5, 5]]
    plan = plan_task(graph, TASK, sampling, {"v1": "test"})
    drawn = sampling.sample(candidates)
    assert [e.inputs for e in plan.examples] == [e.inputs for e in drawn if e is not drawn[-1]]
    assert (plan.candidates, len(plan.skipped)) == (3, 1)
    assert f"referring:v1:frame_12:obj_{CUP} already exists" in plan.skipped[0].reason


def test_per_example_scores(example: Example) -> None:
    parsed = TASK.parse("Description: a white coffee cup held in the right hand", {}, BOXES)
    assert isinstance(parsed, Prediction)
    score = TASK.score(example, parsed)
    # Said: white coffee cup hold right hand, and `in`, which is not in the reference. Wanted: 12 words.
    assert score["lexical_precision"] == pytest.approx(6 / 7)
    assert score["lexical_recall"] == pytest.approx(6 / 12)
    assert TASK.score(example, None) == dict.fromkeys(("lexical_f1", "lexical_precision", "lexical_recall"), 0.0)


def test_an_explanation_names_facts_and_foreign_words(example: Example) -> None:
    parsed = TASK.parse("Description: a white coffee cup under the coffee machine, near a plate", {}, BOXES)
    assert isinstance(parsed, Prediction)
    rows = [(row.kind, row.text) for row in TASK.explain(example, parsed).rows]
    assert rows == [
        ("hit", "object: coffee cup"),
        ("hit", "color: white"),
        ("hit", "relation: coffee cup under coffee machine"),
        ("miss", "relation: left hand holds coffee cup"),
        ("miss", "relation: right hand holds coffee cup"),
        ("wrong", "not in the reference: near"),
        ("wrong", "not in the reference: plate"),
    ]
    assert {row.kind for row in TASK.explain(example, None).rows} == {"miss"}


def test_a_repeated_fact_is_explained_once_and_fails_twice(example: Example) -> None:
    facts = [{"kind": "relation", "text": "coffee cup touches coffee cup"}] * 2
    sentence = "The coffee cup that touches a coffee cup."
    twice = replace(example, target={**example.target, "facts": facts, "sentence": sentence})
    answer = Prediction({"description": "A white coffee cup."})
    assert [row.text for row in TASK.explain(twice, answer).rows] == ["relation: coffee cup touches coffee cup"]
    assert [failure.kind for failure in TASK.failures(twice, answer)] == ["missed", "missed"]


@pytest.mark.parametrize(
    ("answer", "description"),
    [
        ("Description: a red cup", "a red cup"),
        ("A red cup.", "A red cup."),
        ("  DESCRIPTION :  a red cup  ", "a red cup"),
        ("It is a cup.\nDescription: a red cup\nThanks", "a red cup"),
        ("Description: a\nDescription: b", "b"),
        ("Description:\n\na red cup", "a red cup"),
        ("```\nDescription: a red cup\n```", "a red cup"),
        ("My description: a red cup", "My description: a red cup"),
        ("**Description:** a red cup", "**Description:** a red cup"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_answers_are_read_as_released(answer: str, description: str) -> None:
    assert TASK.parse(answer, {}, BOXES) == Prediction({"description": description})


@pytest.mark.parametrize("answer", ["", "  \n ", "\u00a0\t"])
def test_an_empty_answer_is_a_parse_error(answer: str) -> None:
    parsed = TASK.parse(answer, {}, BOXES)
    assert isinstance(parsed, ParseError)
