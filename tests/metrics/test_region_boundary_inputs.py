"""The inputs of the region_boundary metric: arrays, tensors, run lengths; and its messages about anything else."""

import math

import numpy as np
import pytest
from region_boundary import boundary_f, parse_counts, region_boundary, region_j, sequence_statistics
from region_boundary.masks import as_masks

from tests.metrics.test_region_boundary import DOT, EMPTY, rle, square

METRIC = "region_boundary"
A, B = square(4, 4), square(5, 6)


def some_mask(rng):
    """Noise, stripes of noise, empty, full."""
    height, width = rng.integers(1, 60, 2)
    dense = rng.choice([0, 0.02, 0.5, 0.98, 1])
    return np.repeat(rng.random((height, width)) < dense, rng.integers(1, 4), axis=0)


def test_parsing_run_lengths_equals_pycocotools_and_takes_more_than_255_masks():
    rng = np.random.default_rng(6)
    masks = [some_mask(rng) for _ in range(600)]
    runs = parse_counts([rle(mask)["counts"] for mask in masks])
    for mask, got in zip(masks, runs, strict=True):
        assert np.array_equal(np.repeat(np.arange(got.size) % 2 == 1, got), mask.ravel(order="F"))
    kept, pixels = as_masks([rle(m) for m in masks], [""] * 600), as_masks(masks, [""] * 600)
    assert [(m.area, m.box) for m in kept] == [(m.sum(), other.box) for m, other in zip(masks, pixels, strict=True)]


def test_empty_runs_in_the_middle_change_nothing():
    mask = {"size": [4, 5], "counts": [3, 0, 2, 0, 0, 5, 10]}
    plain = {"size": [4, 5], "counts": [5, 5, 10]}
    odd = {"size": [4, 5], "counts": [5, 2, 0, 3, 10, 0]}
    for other in (mask, odd):
        boxes = [mask.box for mask in as_masks([other, plain], ["other", "plain"])]
        assert boxes[0] == boxes[1]
        assert region_j(other, plain) == boundary_f(other, plain) == 1


def test_the_module_takes_masks_in_every_form_as_the_function_does(metric_class):
    torch = pytest.importorskip("torch")
    code = rle(B)
    text = code | {"counts": code["counts"].decode()}
    predictions = [None, [A, None], [EMPTY, B.astype(int).tolist(), code], torch.stack(2 * [torch.from_numpy(A)])]
    references = [[A], [A, B], [EMPTY, A, B], [text, B]]
    result = metric_class(keep_in_memory=True).compute(predictions=predictions, references=references)
    assert result == region_boundary(predictions, references)
    assert region_j(torch.from_numpy(A), square(4, 6)) == 8 / 24


GOOD = rle(DOT)


@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ([[DOT]], [[]], ValueError, r"references\[0\]: has 0 masks in 0 frames"),
        ([[DOT, DOT]], [[DOT, None]], ValueError, r"references\[0\]: has 1 masks in 2 frames"),
        ([[DOT, DOT]], [[DOT]], ValueError, r"predictions\[0\]: has 2 frames, its reference 1; give None for no mask"),
        ([GOOD], [[DOT]], TypeError, r"predictions\[0\]: is of type dict; give a list with one mask per frame"),
        ([["abc"]], [[DOT]], TypeError, r"predictions\[0\]\[0\]: is 'abc' .str.; give a 2-D array"),
        (
            [[DOT * 0.5]],
            [[DOT]],
            TypeError,
            r"predictions\[0\]\[0\]: has the dtype float64.* cut scores at a threshold",
        ),
        ([[DOT[0]]], [[DOT]], ValueError, r"predictions\[0\]\[0\]: has the shape \(30,\)"),
        ([[[[1, 0], [1]]]], [[DOT]], ValueError, r"predictions\[0\]\[0\]: is not a rectangle"),
        ([[DOT.T]], [[DOT]], ValueError, r"predictions\[0\]\[0\]: is 30 x 20 pixels, the reference 20 x 30; resize"),
        ([[{"size": [20, 30]}]], [[DOT]], ValueError, r"predictions\[0\]\[0\]: counts is missing"),
        ([[GOOD | {"size": [20]}]], [[DOT]], ValueError, r"predictions\[0\]\[0\]: size is \[20\]"),
        ([[GOOD | {"size": [20, 31]}]], [[DOT]], ValueError, "runs of counts do not fill the 20 x 31 pixels"),
        ([[GOOD | {"counts": "ooooooooooooooooooooo0"}]], [[DOT]], ValueError, "runs of counts do not fill"),
        ([[GOOD | {"counts": "x!"}]], [[DOT]], ValueError, "counts is not a compressed COCO RLE string"),
        ([[GOOD | {"counts": [700, -100]}]], [[DOT]], ValueError, "runs of counts do not fill"),
        ([[GOOD | {"counts": 5}]], [[DOT]], TypeError, "counts is 5; give a string, bytes, or a list of integers"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(predictions, references, error, message):
    with pytest.raises(error, match=message):
        region_boundary(predictions, references)


@pytest.mark.parametrize("tolerance", [0, -1, 1.5, math.nan, math.inf, "1", True])
def test_a_wrong_tolerance_is_refused(tolerance):
    with pytest.raises(ValueError, match="tolerance is"):
        boundary_f(DOT, DOT, tolerance)


@pytest.mark.parametrize("values", [[], [[0.5]]])
def test_statistics_of_nothing_are_refused(values):
    with pytest.raises(ValueError, match="one score per frame"):
        sequence_statistics(values)
