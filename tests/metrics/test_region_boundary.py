"""J and F of the region_boundary metric: bit for bit against the published full-frame definition, and by hand."""

import numpy as np
import pytest
from pycocotools import mask as coco_mask
from region_boundary import bound_pixels, boundary_f, region_boundary, region_j, sequence_statistics
from scipy import ndimage


def davis_contour(seg):
    """seg2bmap where the map has the size of the mask: e(ast), s(outh) and se neighbours."""
    e, s, se = np.zeros_like(seg), np.zeros_like(seg), np.zeros_like(seg)
    e[:, :-1] = seg[:, 1:]
    s[:-1, :] = seg[1:, :]
    se[:-1, :-1] = seg[1:, 1:]
    b = seg ^ e | seg ^ s | seg ^ se
    b[-1, :] = seg[-1, :] ^ e[-1, :]
    b[:, -1] = seg[:, -1] ^ s[:, -1]
    b[-1, -1] = 0
    return b


def davis_disk(radius):
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return x * x + y * y <= radius * radius


def davis_f(prediction, reference, tolerance=0.008, dilate=None):
    dilate = dilate or (lambda contour, radius: ndimage.binary_dilation(contour, davis_disk(radius)))
    radius = tolerance if tolerance >= 1 else int(np.ceil(tolerance * np.linalg.norm(reference.shape)))
    fg, gt = davis_contour(prediction), davis_contour(reference)
    gt_match, fg_match = gt & dilate(fg, radius), fg & dilate(gt, radius)
    n_fg, n_gt = np.sum(fg), np.sum(gt)
    if n_fg == 0 and n_gt > 0:
        precision, recall = 1, 0
    elif n_fg > 0 and n_gt == 0:
        precision, recall = 0, 1
    elif n_fg == 0 and n_gt == 0:
        precision, recall = 1, 1
    else:
        precision, recall = np.sum(fg_match) / float(n_fg), np.sum(gt_match) / float(n_gt)
    return 0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)


def davis_j(prediction, reference):
    union = np.sum(prediction | reference)
    return 1 if np.isclose(union, 0) else np.sum(prediction & reference) / union


def davis_statistics(values):
    """db_statistics, with whole numbers instead of 8 bits for the bins' ends."""
    ids = (np.round(np.linspace(1, len(values), 5) + 1e-10) - 1).astype(np.int64)
    bins = [values[ids[i] : ids[i + 1] + 1] for i in range(4)]
    return np.nanmean(values), np.nanmean(values > 0.5), np.nanmean(bins[0]) - np.nanmean(bins[3])


def rle(mask):
    return coco_mask.encode(np.asfortranarray(mask, np.uint8))


def listed_rle(mask):
    """Uncompressed run lengths, written without pycocotools."""
    counts, value = [0], False
    for pixel in mask.T.ravel():
        if pixel != value:
            counts.append(0)
            value = pixel
        counts[-1] += 1
    return {"size": list(mask.shape), "counts": counts}


def blobs(rng, height, width, parts=3):
    """Ellipses, in and over the border, with a ragged edge and sometimes a hole."""
    y, x = np.mgrid[:height, :width]
    mask = np.zeros((height, width), bool)
    for part in range(rng.integers(1, parts + 1)):
        cy, cx = rng.uniform(-0.1, 1.1, 2) * (height, width)
        ry, rx = rng.uniform(0.02, 0.5, 2) * (height, width) + 0.5
        ellipse = ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1 + rng.normal(0, 0.1, mask.shape)
        mask = mask & ~ellipse if part and rng.random() < 0.3 else mask | ellipse
    return mask


def special(kind, rng, height, width):
    mask, every = np.zeros((height, width), bool), slice(None)
    y, x, end, other_end = rng.integers(height), rng.integers(width), *rng.choice([0, -1], 2)
    places = {
        "empty": (0, slice(0)),
        "full": every,
        "pixel": (y, x),
        "corner": (end, other_end),
        "border": end,
        "side": (every, end),
        "quarter": (slice(y, None), slice(x, None)),
        "lines": (every, slice(None, None, rng.integers(2, 4))),
    }
    mask[places[kind]] = True
    return mask


KINDS = ("empty", "full", "pixel", "corner", "border", "side", "quarter", "noise", "lines", "blobs")


def any_mask(rng, height, width, kind=None):
    kind = kind or KINDS[rng.integers(len(KINDS))]
    if kind == "noise":
        return rng.random((height, width)) < rng.random()
    return blobs(rng, height, width) if kind == "blobs" else special(kind, rng, height, width)


def neighbour(rng, mask):
    """The mask moved by some pixels, and at times another one."""
    if rng.random() < 0.2:
        return any_mask(rng, *mask.shape)
    return np.roll(mask, rng.integers(-4, 5, 2), (0, 1)) ^ (rng.random(mask.shape) < 0.002)


FORMS = (lambda m: m, rle, listed_rle, lambda m: m.astype(np.uint8) * 255, np.asfortranarray, lambda m: m.tolist())


def assert_equals_the_definition(prediction, reference, rng, tolerance=0.008):
    p, r = FORMS[rng.integers(len(FORMS))](prediction), FORMS[rng.integers(len(FORMS))](reference)
    assert region_j(p, r) == davis_j(prediction, reference)
    assert boundary_f(p, r, tolerance) == davis_f(prediction, reference, tolerance)


@pytest.mark.full
def test_j_and_f_equal_the_full_frame_definition_on_600_random_images():
    rng = np.random.default_rng(0)
    for _ in range(600):
        reference = blobs(rng, *rng.integers(40, 160, 2))
        assert_equals_the_definition(neighbour(rng, reference), reference, rng)


def test_j_and_f_equal_the_full_frame_definition_on_small_masks():
    rng = np.random.default_rng(1)
    for _ in range(500):
        height, width = rng.integers(1, 25, 2)
        prediction, reference = any_mask(rng, height, width), any_mask(rng, height, width)
        assert_equals_the_definition(prediction, reference, rng, rng.choice([0.008, 0.1, 0.3, 1, 2, 5]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_j_and_f_equal_the_full_frame_definition_on_every_pair_of_special_masks(kind, other):
    rng = np.random.default_rng(2)
    for size in ((1, 1), (1, 9), (9, 1), (2, 2), (60, 90)):
        assert_equals_the_definition(any_mask(rng, *size, other), any_mask(rng, *size, kind), rng)


def test_f_equals_the_definition_at_full_hd_with_opencvs_dilation():
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(3)

    def dilate(contour, radius):
        return cv2.dilate(contour.astype(np.uint8), davis_disk(radius).astype(np.uint8)) > 0

    for _ in range(3):
        reference = blobs(rng, 1080, 1920)
        prediction = np.roll(reference, rng.integers(-30, 30, 2), (0, 1))
        want = davis_f(prediction, reference, dilate=dilate)
        assert boundary_f(rle(prediction), rle(reference)) == boundary_f(prediction, reference) == want


def test_statistics_equal_the_definition_for_every_length():
    rng = np.random.default_rng(5)
    for length in [*range(1, 300), 1000, 2536]:
        values = rng.random(length)
        got = sequence_statistics(values)
        assert [got["mean"], got["recall"], got["decay"]] == pytest.approx(davis_statistics(values), abs=1e-12)


def square(y, x, side=4, size=(20, 30)):
    mask = np.zeros(size, bool)
    mask[y : y + side, x : x + side] = True
    return mask


EMPTY, FULL, DOT = square(0, 0, 0), np.ones((20, 30), bool), square(5, 5, 1)


@pytest.mark.parametrize(
    ("prediction", "reference", "j", "f"),
    [
        (EMPTY, EMPTY, 1, 1),
        (DOT, EMPTY, 0, 0),
        (EMPTY, FULL, 0, 1),  # neither has a contour
        (FULL, DOT, 1 / 600, 0),
        (square(4, 4), square(4, 6), 8 / 24, 10 / 16),  # of 16 contour pixels, 10 are on or beside the other
        (square(4, 4), square(5, 4), 12 / 20, 1),
    ],
)
def test_a_pair_is_scored_as_computed_by_hand(prediction, reference, j, f):
    assert bound_pixels((20, 30)) == 1
    assert region_j(prediction, reference) == j
    assert boundary_f(prediction, reference) == pytest.approx(f)


@pytest.mark.parametrize(
    ("size", "tolerance", "want"), [((1080, 1920), 0.008, 18), ((480, 854), 0.008, 8), ((3, 4), 0.2, 1), ((9, 9), 3, 3)]
)
def test_the_radius_is_the_diagonals_share_rounded_up_or_a_number_of_pixels(size, tolerance, want):
    assert bound_pixels(size, tolerance) == want


def test_a_track_is_summarised_as_computed_by_hand():
    half = square(4, 4) & ~square(4, 6)
    result = region_boundary([[square(4, 4), half, EMPTY, None]], [[square(4, 4)] * 3 + [EMPTY]])
    track = result["per_object"][0]
    assert track["J"] == [1, 0.5, 0, 0]
    assert (track["J_mean"], track["J_recall"]) == (0.375, 0.25)
    assert track["J_decay"] == 0.75  # frames 1 and 2 less frames 3 and 4
    assert track["J&F_mean"] == (track["J_mean"] + track["F_mean"]) / 2
    assert (result["n_frames"], result["n_failed_frames"]) == (4, 1)
    assert (result["frame_coverage"], result["coverage"]) == (0.75, 1)


def test_objects_have_equal_weight_in_the_means_and_frames_in_the_frame_means():
    result = region_boundary([[DOT], [EMPTY] * 3], [[DOT], [DOT] * 3])
    assert result["J_mean"] == result["F_mean"] == result["J&F_mean"] == 0.5
    assert result["frame_J_mean"] == result["frame_F_mean"] == result["frame_J&F_mean"] == 0.25


def test_a_track_without_an_answer_scores_zero_even_where_nothing_was_to_be_found():
    assert region_boundary([[EMPTY]], [[EMPTY]])["J&F_mean"] == 1
    failed = region_boundary([None, [DOT]], [[EMPTY, EMPTY], [DOT]])
    assert failed["J&F_mean"] == 0.5
    assert failed["frame_J_mean"] == pytest.approx(1 / 3)
    assert (failed["n"], failed["n_failed"], failed["coverage"], failed["n_failed_frames"]) == (2, 1, 0.5, 2)
