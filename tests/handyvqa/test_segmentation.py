"""Masks as answers: read masks, dropped masks, and J and F per annotated frame."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.handyvqa import RvosObjects
from barista_bench.benchmarks.handyvqa.segmentation import scored_frames
from barista_bench.benchmarks.kinds.masks import answered_masks
from barista_bench.core.example import Example, FrameRef, ParseError, Prediction, Scored
from barista_bench.core.prompt import ImagePart
from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.metrics.region_boundary import region_boundary
from barista_bench.models.base import Request
from barista_bench.models.specialists.sam3_masks import images_to_segment, is_sequential, problem_with, write_masks
from barista_bench.scene_graph import decode_mask
from tests import answering
from tests.handyvqa.made import BOXES, DAMAGED_MASKS, HEIGHT, WIDTH, rectangle, rle
from tests.stats.made import drawn_out

TASK = RvosObjects()
FRAMES, SIZE = 6, {"width": WIDTH, "height": HEIGHT}
FIRST, LAST = rectangle(10, 10, 40, 30), rectangle(50, 20, 80, 60)

Mask = NDArray[np.bool_]


def example_of(masks: dict[int, Mask], name: str = "q") -> Example:
    """Six frames; those at the places of `masks` are annotated."""
    return Example(
        example_id=name,
        benchmark="handyvqa",
        task="rvos_objects",
        label="cup; jug",
        frames=tuple(FrameRef(f"{name}_frames", 10 * index) for index in range(FRAMES)),
        inputs={"query": "What is lifted?", "frame_count": FRAMES, "frames": sorted(masks), **SIZE},
        target={
            "phrases": ["cup", "jug"],
            "masks": [{"frame": index, "rle": rle(masks[index])} for index in sorted(masks)],
        },
        metadata={"split": "test", "n_frames": FRAMES},
    )


EXAMPLE = example_of({1: FIRST, 4: LAST})


def said(*entries: tuple[int, Any]) -> str:
    masks = [{"frame": f, "rle": rle(m) if isinstance(m, np.ndarray) else m} for f, m in entries]
    return json.dumps({"masks": masks})


def read(text: str, example: Example = EXAMPLE, task: Task = TASK) -> Prediction:
    return answering.read(task, text, example)


def pixels(prediction: Prediction) -> dict[int, Mask]:
    return {frame: decode_mask(mask) for frame, mask in answered_masks(prediction)}


def test_masks_are_read_out_of_prose_and_fences() -> None:
    answer = said((1, FIRST), (4, LAST))
    for text in (
        answer,
        f"Here [1, 2] they are:\n```json\n{answer}\n```\nDone.",
        f"First I thought {said((1, LAST))}. {answer}",
    ):
        masks = pixels(read(text))
        assert sorted(masks) == [1, 4]
        np.testing.assert_array_equal(masks[1], FIRST)
        np.testing.assert_array_equal(masks[4], LAST)


def test_masks_of_one_frame_are_united_and_other_frames_passed_over() -> None:
    prediction = read(said((1, FIRST), (1, LAST), (3, LAST)))
    assert prediction.dropped == 0
    masks = pixels(prediction)
    assert list(masks) == [1]
    np.testing.assert_array_equal(masks[1], FIRST | LAST)


def test_an_empty_list_says_that_nothing_is_there() -> None:
    empty = read('{"masks": []}')
    assert empty.value == {"masks": []}
    assert TASK.score(EXAMPLE, empty) == {"J": 0.0, "F": 0.0, "J_and_F": 0.0}
    nothing = example_of({1: FIRST, 4: np.zeros_like(FIRST)})
    assert TASK.score(nothing, read('{"masks": []}', nothing))["J"] == 0.5


@pytest.mark.parametrize(
    "entry",
    [
        *DAMAGED_MASKS,
        {"size": [HEIGHT, WIDTH]},
        {"size": [HEIGHT + 1, WIDTH], "counts": rle(FIRST)["counts"]},
        *("PPYo0", None),
    ],
)
def test_a_damaged_mask_is_dropped_and_costs_no_other(entry: object) -> None:
    prediction = read(said((1, entry), (4, LAST)))
    assert prediction.dropped == 1
    assert list(pixels(prediction)) == [4]


@pytest.mark.parametrize("frame", [-1, FRAMES, 10**30, "x", None, True, 1.5])
def test_a_frame_that_was_not_shown_is_dropped(frame: object) -> None:
    unshown, shown = ({"frame": number, "rle": rle(FIRST)} for number in (frame, 1))
    assert read(json.dumps({"masks": [unshown, shown]})).dropped == 1
    assert isinstance(TASK.parse(json.dumps({"masks": [unshown]}), EXAMPLE.inputs, BOXES), ParseError)


@pytest.mark.parametrize("text", ["", "no", "[1, 2]", '{"masks": "none"}', '{"masks": [{"frame": 1}]}', "[" * 10_000])
def test_an_answer_without_masks_is_a_parse_error(text: str) -> None:
    assert isinstance(TASK.parse(text, EXAMPLE.inputs, BOXES), ParseError)


def random_mask(rng: np.random.Generator) -> Mask:
    kind = rng.integers(0, 6)
    if kind < 2:  # nothing, or everything
        return np.full((HEIGHT, WIDTH), bool(kind))
    if kind == 2:
        x, y = int(rng.integers(0, WIDTH)), int(rng.integers(0, HEIGHT))
        return rectangle(x, y, x + 1, y + 1)
    x0, y0 = rng.integers(0, WIDTH - 1), rng.integers(0, HEIGHT - 1)
    box = rectangle(x0, y0, int(rng.integers(x0 + 1, WIDTH + 1)), int(rng.integers(y0 + 1, HEIGHT + 1)))
    return box & (rng.random(box.shape) < 0.9) if kind == 3 else box


def n_answered_empty(samples: list[Scored]) -> int:
    """Frames with a mask without foreground as the answer."""
    answered = [mask for s in samples if s.prediction is not None for mask in pixels(s.prediction).values()]
    return sum(not mask.any() for mask in answered)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_scores_of_samples_are_the_metric_over_all_frames_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples, predictions, references = [], [], []
    for number in range(4):
        true = {index: random_mask(rng) for index in (0, 2, 5)[: rng.integers(1, 4)]}
        example = example_of(true, f"q{number}")
        answer = {index: random_mask(rng) for index in true if rng.random() < 0.8}
        references.append([true[index] for index in true])
        if rng.random() < 0.2:
            samples.append(Scored(example, None))
            predictions.append(None)
            continue
        samples.append(Scored(example, read(said(*answer.items()), example)))
        empty = np.zeros((HEIGHT, WIDTH), bool)
        predictions.append([answer.get(index, empty) for index in true])
    expected = region_boundary(predictions, references)
    metrics = TASK.aggregate(samples)
    assert metrics["J"] == pytest.approx(expected["frame_J_mean"])
    assert metrics["F"] == pytest.approx(expected["frame_F_mean"])
    assert metrics["J_and_F"] == pytest.approx(expected["frame_J&F_mean"])
    assert metrics["n_frames"] == expected["n_frames"]
    assert metrics["coverage"] == pytest.approx(expected["coverage"])
    n_masks = sum(mask.any() for track in predictions if track is not None for mask in track)
    n_empty = n_answered_empty(samples)
    assert metrics["frame_coverage"] == pytest.approx((n_masks + n_empty) / expected["n_frames"])
    weights = np.vstack([rng.integers(0, 3, (3, len(samples))), np.zeros(len(samples))]).astype(float)
    fast, slow = TASK.statistics(samples).compute_metrics(weights), drawn_out(TASK, samples, weights)
    for name, values in fast.items():
        np.testing.assert_allclose(values, slow[name], atol=1e-12, err_msg=name)


def test_the_prior_is_the_median_box_of_other_videos() -> None:
    others = [example_of({0: rectangle(0, 0, 20, 20), 2: FIRST}, "a"), example_of({5: LAST}, "b")]
    prior = read(TASK.prior_answer(EXAMPLE, others, BOXES))
    for mask in pixels(prior).values():  # of (0, 0, 20, 20), (10, 10, 40, 30) and (50, 20, 80, 60)
        np.testing.assert_array_equal(mask, rectangle(10, 10, 40, 30))
    assert sorted(pixels(prior)) == [1, 4]
    assert TASK.prior_answer(EXAMPLE, [], BOXES) == TASK.centre_answer(EXAMPLE, BOXES)


def test_frame_wise_shows_only_annotated_frames_and_renumbers_them() -> None:
    images = [Image.new("RGB", (WIDTH, HEIGHT), (index,) * 3) for index in range(FRAMES)]
    frame_wise = RvosObjects(options={"mode": "frame_wise"})
    assert [image.getpixel((0, 0))[0] for image in frame_wise.displayed_images(EXAMPLE, images)] == [1, 4]  # type: ignore[index]
    assert len(TASK.displayed_images(EXAMPLE, images)) == FRAMES
    prompt = frame_wise.prompt(EXAMPLE, BOXES)
    assert [part.index for part in prompt.parts if isinstance(part, ImagePart)] == [0, 1]
    assert "on the frames 0, 1." in prompt.as_text()
    assert "on the frames 1, 4." in TASK.prompt(EXAMPLE, BOXES).as_text()
    assert frame_wise.image_captions(EXAMPLE) == ("frame 10 (annotated)", "frame 40 (annotated)")
    assert sorted(pixels(read(said((0, FIRST), (1, LAST)), EXAMPLE, frame_wise))) == [1, 4]
    assert frame_wise.request_inputs(EXAMPLE)["frames"] == [0, 1]
    assert TASK.request_inputs(EXAMPLE)["frames"] == [1, 4]


def test_truth_options_replace_the_question_by_the_right_options() -> None:
    named = RvosObjects(options={"truth_options": True})
    assert named.request_inputs(EXAMPLE)["phrases"] == ["cup", "jug"]
    assert "- cup\n- jug" in named.prompt(EXAMPLE, BOXES).as_text()
    assert TASK.request_inputs(EXAMPLE)["phrases"] == ["What is lifted?"]
    prompt = TASK.prompt(EXAMPLE, BOXES).as_text()
    assert "What is lifted?" in prompt
    assert "cup" not in prompt
    assert {"query", "answer", "mode", "width", "height"} <= set(named.request_inputs(EXAMPLE))


@pytest.mark.parametrize("mode", ["sequential", "frame_wise"])
def test_a_segmenter_understands_the_request_and_its_answer_is_read(mode: str) -> None:
    task = RvosObjects(options={"mode": mode, "truth_options": True})
    images = task.displayed_images(EXAMPLE, [Image.new("RGB", (WIDTH, HEIGHT))] * FRAMES)
    request = Request("q", task.prompt(EXAMPLE, BOXES), images, inputs=task.request_inputs(EXAMPLE))
    assert problem_with(request) is None
    assert is_sequential(request) == (mode == "sequential")
    answer = write_masks(dict(zip(images_to_segment(request), (FIRST, LAST), strict=True)))
    assert task.score(EXAMPLE, read(answer, EXAMPLE, task))["J_and_F"] == 1.0


def test_a_mask_of_the_image_shown_is_brought_to_the_size_annotated() -> None:
    thin = RvosObjects(options={"max_side": 48})
    assert "[32, 48]" in thin.prompt(EXAMPLE, BOXES).as_text()
    half = rectangle(5, 5, 20, 15, (32, 48))
    masks = pixels(read(said((1, half)), EXAMPLE, thin))
    np.testing.assert_array_equal(masks[1], FIRST)
    assert isinstance(TASK.parse(said((1, half)), EXAMPLE.inputs, BOXES), ParseError)


def test_overlays_are_the_boxes_of_masks_on_the_images_shown() -> None:
    prediction = read(said((1, LAST)))
    overlays = TASK.overlays(EXAMPLE, prediction)
    assert [(o.image, o.box, o.kind) for o in overlays] == [
        (1, (10.0, 10.0, 40.0, 30.0), "reference"),
        (4, (50.0, 20.0, 80.0, 60.0), "reference"),
        (1, (50.0, 20.0, 80.0, 60.0), "predicted"),
    ]
    small = RvosObjects(options={"mode": "frame_wise", "max_side": 48})
    assert [(o.image, o.box) for o in small.overlays(EXAMPLE, None)] == [
        (0, (5.0, 5.0, 20.0, 15.0)),
        (1, (25.0, 10.0, 40.0, 30.0)),
    ]


def test_explanations_and_failures_go_frame_by_frame() -> None:
    example = example_of({0: FIRST, 1: FIRST, 2: FIRST, 3: FIRST})
    near = rectangle(10, 10, 20, 30)  # a third of it
    prediction = read(said((0, FIRST), (1, near), (2, LAST)), example)
    assert [round(score.j, 2) for _, score, _ in scored_frames(example, prediction)] == [1.0, 0.33, 0.0, 0.0]
    assert [row.kind for row in TASK.explain(example, prediction).rows] == ["hit", "miss", "wrong", "wrong"]
    kinds = [failure.kind for failure in TASK.failures(example, prediction)]
    assert kinds == ["loose_mask", "hallucinated", "missed"]
    assert [failure.kind for failure in TASK.failures(example, None)] == ["format"]
    assert all(row.kind == "miss" for row in TASK.explain(example, None).rows)


DAMAGES: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("target", lambda target: target["masks"][0].update(rle=rle(np.zeros((16, 16), bool)))),
    ("target", lambda target: target["masks"][0].update(frame=2)),
    ("inputs", lambda inputs: inputs.update(width=0)),
    ("inputs", lambda inputs: inputs.update(height=10**9)),
    ("inputs", lambda inputs: inputs.update(frames=[99])),
    ("inputs", lambda inputs: inputs.update(frame_count=2**31)),
]


@pytest.mark.parametrize(("part", "change"), DAMAGES)
def test_a_damaged_row_is_an_error_that_says_so(part: str, change: Callable[[dict[str, Any]], object]) -> None:
    example = copy.deepcopy(EXAMPLE)
    change(getattr(example, part))
    with pytest.raises(DataError, match="Fix: build the dataset again"):
        TASK.statistics([Scored(example, None)])
