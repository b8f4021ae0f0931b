"""Order, resampling and rounding of the mean_ap metric: tie spread, bootstrap, the single precision of torchmetrics."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mean_ap import STATISTICS, compute_metrics, evaluate_images, mean_ap, spread_of
from mean_ap.accumulate import accumulate, select, statistics
from mean_ap.matching import single_precision_thresholds
from mean_ap.weighted import TOGETHER, weighted_statistics

from tests.metrics.test_mean_ap_pycocotools import random_images, run_pycocotools, twelve

PRECISIONS = STATISTICS[:6]
GOOD, BAD = {"boxes": [[0, 0, 40, 40]]}, {"boxes": [[60, 60, 99, 99]]}


def unscored(rng, n_images):
    """Images without confidences: the normal case."""
    predictions, references = random_images(rng, n_images=n_images)
    return [{"boxes": p["boxes"], "labels": p["labels"]} for p in predictions], references


def tie_spread(predictions, references, **options):
    return spread_of(evaluate_images(predictions, references), **options)


def reordered(cases, order):
    predictions, references = cases
    return [predictions[index] for index in order], [references[index] for index in order]


@pytest.mark.full
def test_an_exhaustive_spread_contains_the_value_of_every_order():
    rng = np.random.default_rng(0)
    for _ in range(40):
        cases = unscored(rng, 4)
        spread = tie_spread(*cases, orders=24)
        assert spread["exhaustive"]
        orders = list(permutations(range(len(cases[0]))))
        values = np.array([twelve(mean_ap(*reordered(cases, order)))[:6] for order in orders])
        for name, column in zip(PRECISIONS, values.T, strict=True):
            metrics = [spread[name][key] for key in ("canonical", "min", "mean", "max")]
            assert metrics == pytest.approx([column[0], column.min(), column.mean(), column.max()])
            assert spread[name]["lower"] <= column.min() + 1e-12
            assert column.max() <= spread[name]["upper"] + 1e-12


def test_the_bounds_contain_every_order_that_pycocotools_is_given():
    rng = np.random.default_rng(1)
    for _ in range(8):
        cases = unscored(rng, 8)
        spread = tie_spread(*cases, orders=5)
        for _ in range(5):
            ones = [p | {"scores": np.ones(len(p["labels"]))} for p in cases[0]]
            values, _, _ = run_pycocotools(*reordered((ones, cases[1]), rng.permutation(len(ones))))
            for name, value in zip(PRECISIONS, values[:6], strict=True):
                assert spread[name]["lower"] - 1e-12 <= value <= spread[name]["upper"] + 1e-12


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([GOOD, BAD, {"boxes": GOOD["boxes"] + BAD["boxes"]}, None]), min_size=2, max_size=12))
def test_a_sampled_spread_is_ordered_and_contains_the_canonical_value(predictions):
    spread = tie_spread(predictions, [GOOD] * len(predictions), orders=3, seed=1)
    assert spread["orders"] <= 3
    for name in PRECISIONS:
        values = [spread[name][key] for key in ("lower", "min", "mean", "max", "upper")]
        assert all(low <= high for low, high in pairwise(values))
        assert spread[name]["min"] <= spread[name]["canonical"] <= spread[name]["max"]
    assert spread["map"]["canonical"] == mean_ap(predictions, [GOOD] * len(predictions))["map"]


def test_the_spread_reaches_its_bounds_where_good_images_come_first_or_last():
    predictions, references = [GOOD] * 10 + [BAD] * 10, [GOOD] * 20
    spread = tie_spread(predictions, references, orders=50)
    assert not spread["exhaustive"]
    assert spread["map"]["canonical"] == spread["map"]["upper"]
    assert tie_spread(predictions[::-1], references)["map"]["canonical"] == spread["map"]["lower"]
    assert spread["map"]["min"] < spread["map"]["max"] == spread["map"]["upper"]


def test_the_spread_over_100_or_the_given_number_of_orders_depends_only_on_the_seed():
    scored = [image | {"scores": [0.1 * number]} for number, image in enumerate([GOOD, BAD, GOOD, BAD])]
    assert len(set(tie_spread(scored, [GOOD] * 4)["map"].values())) == 1, "distinct scores leave no spread"
    cases = [GOOD, BAD] * 6, [GOOD] * 12
    assert tie_spread(*cases, orders=9, seed=3) == tie_spread(*cases, orders=9, seed=3)
    assert tie_spread(*cases, orders=9, seed=3) != tie_spread(*cases, orders=9, seed=4)
    assert tie_spread(*cases)["orders"] == 100
    with pytest.raises(ValueError, match="orders is 0; give the number of orders"):
        tie_spread(*cases, orders=0)


@pytest.mark.parametrize("scored", [False, True])
def test_each_resample_equals_the_metric_on_the_images_as_drawn(scored):
    rng = np.random.default_rng(2)
    for _ in range(6):
        predictions, references = random_images(rng, n_images=8) if scored else unscored(rng, 8)
        predictions[0] = None
        evaluated = evaluate_images(predictions, references)
        draws = np.random.default_rng(5).multinomial(8, [1 / len(references)] * len(references), size=8)
        drawn = compute_metrics(evaluated, draws)
        for row, weights in enumerate(draws):
            order = np.repeat(np.arange(len(references)), weights)
            want = mean_ap(*reordered((predictions, references), order))
            for name in drawn:
                assert np.nan_to_num(drawn[name][row], nan=-1) == pytest.approx(want[name], abs=1e-12), name


def one_by_one(matches, weights):
    """Each draw accumulated separately, from its images as often in a row as it takes them."""
    lists = [np.repeat(np.arange(matches.n_images), row) for row in weights]
    chosen = [accumulate(matches, select(matches, images)) for images in lists]
    return np.array([statistics(values, single_precision=matches.single_precision) for values in chosen])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.booleans(), st.booleans(), st.sampled_from(["none", "float32"]))
def test_draws_taken_together_equal_separate_draws(seed, n_images, scored, unanswered, rounding):
    rng = np.random.default_rng(seed)
    predictions, references = random_images(rng, n_images=n_images) if scored else unscored(rng, n_images)
    if unanswered:
        predictions[0] = None
    matches = evaluate_images(predictions, references, rounding=rounding).matches
    weights = rng.integers(0, 5, (8, len(references))) * (rng.random((8, len(references))) < 0.6)
    weights[0], weights[1] = 1, 0
    computed = weighted_statistics(matches, weights)
    assert computed == pytest.approx(one_by_one(matches, weights), abs=1e-7 if rounding == "float32" else 1e-12)
    assert computed[0] == pytest.approx(statistics(accumulate(matches), single_precision=matches.single_precision))
    assert (computed[1] == -1).all()


def test_resamples_beyond_one_batch_are_complete_and_copies_of_an_image_keep_its_boxes():
    cases = unscored(np.random.default_rng(6), 5)
    matches = evaluate_images(*cases).matches
    weights = np.random.default_rng(7).integers(0, 3, (TOGETHER + 3, len(cases[1])))
    assert weighted_statistics(matches, weights)[-5:] == pytest.approx(one_by_one(matches, weights[-5:]))
    # Right and wrong boxes of one score alternate when their image is taken twice: R W R W, and not R R W W.
    matches = evaluate_images([{"boxes": GOOD["boxes"] + BAD["boxes"]}], [GOOD]).matches
    ((average, *_),) = weighted_statistics(matches, np.array([[2]]))
    assert average == pytest.approx((51 * 1 + 50 * 2 / 3) / 101)


def test_tied_boxes_of_an_image_outside_the_draw_do_not_count():
    right_and_wrong = {"boxes": GOOD["boxes"] + BAD["boxes"]}
    matches = evaluate_images([right_and_wrong, None], [GOOD, GOOD]).matches
    ((average, *others),) = weighted_statistics(matches, np.array([[0, 3]]))
    assert average == 0
    assert [average, *others] == one_by_one(matches, [[0, 3]])[0].tolist()


def test_the_rounded_thresholds_equal_torch_up_to_the_last_bit():
    torch = pytest.importorskip("torch")
    iou, recall = single_precision_thresholds()
    for ours, theirs in ((iou, torch.linspace(0.5, 0.95, 10)), (recall, torch.linspace(0.0, 1.0, 101))):
        assert np.all(np.abs(ours - theirs.numpy()) <= np.spacing(theirs.numpy()))


def rounded(image):
    """What torchmetrics hands on: corners in single precision, extents as their differences in single precision."""
    boxes = image["boxes"].astype(np.float32)
    extents = (boxes[:, 2:] - boxes[:, :2]).astype(float)
    # The reference computes extents as differences in double precision: this corner gives the rounded extent.
    corners = np.hstack([boxes[:, :2].astype(float), boxes[:, :2].astype(float) + extents])
    scores = {"scores": image["scores"].astype(np.float32)} if "scores" in image else {}
    return image | {"boxes": corners} | scores


def test_float32_equals_pycocotools_with_rounded_inputs_and_thresholds():
    rng, moved = np.random.default_rng(3), 0
    for _ in range(30):
        predictions, references = random_images(rng, n_images=4)
        sides = [[rounded(image) for image in side] for side in (predictions, references)]
        want, _, _ = run_pycocotools(*sides, thresholds=single_precision_thresholds())
        single, plain = mean_ap(predictions, references, rounding="float32"), mean_ap(predictions, references)
        got = twelve(single)
        assert got.tolist() == want.astype(np.float32).astype(float).tolist()
        moved += np.abs(got - twelve(plain)).max() > 1e-4
        assert all(single[name] == plain[name] for name in ("f1@50", "f1@[.5:.95]", "mean_best_iou"))
    assert moved  # the option is not idle
