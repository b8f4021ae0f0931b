"""HOTA and identity switches of the tracking metric: by hand, and what must hold of any masks."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pycocotools import mask as coco_mask
from tracking import ALPHAS, tracking

SIZE = (6, 20)


def bar(start: int, length: int = 4) -> dict[str, Any]:
    """A mask of some columns."""
    mask = np.zeros(SIZE, np.uint8)
    mask[:, start : start + length] = 1
    return coco_mask.encode(np.asfortranarray(mask))


A, B, C = bar(0), bar(8), bar(16)


def score(prediction: list[Any], reference: list[Any]) -> dict[str, Any]:
    return tracking([prediction], [reference])


def compute_metrics(result: dict[str, Any]) -> tuple[float, ...]:
    return tuple(result[name] for name in ("HOTA", "DetA", "AssA", "LocA", "IDSW"))


def test_other_names_of_the_same_tracks_are_perfect() -> None:
    assert compute_metrics(score([{7: A, 8: B}] * 3, [{"cup": A, "lid": B}] * 3)) == (1, 1, 1, 1, 0)


def test_ids_swapped_half_way_keep_detection_and_lose_association() -> None:
    result = score([{1: A, 2: B}] * 2 + [{1: B, 2: A}] * 2, [{1: A, 2: B}] * 4)
    # Each true track of 4 frames shares 2 with each predicted one of 4: 2 / (4 + 4 - 2).
    assert compute_metrics(result) == pytest.approx((math.sqrt(1 / 3), 1, 1 / 3, 1, 2))


def test_missed_and_spurious_masks_count_against_detection() -> None:
    result = score([{1: A}, {1: A, 5: C}, {}], [{1: A}, {1: A}, {1: A}])
    # 2 matched, 1 missed, 1 spurious; the track of 3 frames shares 2 with one of 2.
    assert compute_metrics(result) == pytest.approx((math.sqrt(2 / 4 * 2 / 3), 2 / 4, 2 / 3, 1, 0))


def test_masks_match_up_to_their_overlap() -> None:
    result = score([{1: bar(1)}], [{1: A}])  # 3 of 5 columns
    matched = np.count_nonzero(ALPHAS <= 0.6 + 1e-9) / len(ALPHAS)
    assert compute_metrics(result) == pytest.approx((matched, matched, matched, matched * 0.6 + 1 - matched, 0))


def test_a_switch_counts_after_a_gap_and_not_where_the_pair_still_overlaps_by_half() -> None:
    assert score([{1: A}, {}, {2: A}], [{1: A}] * 3)["IDSW"] == 1
    # Track 2 fits better in the second frame, and track 1 still fits.
    assert score([{1: A}, {1: bar(1), 2: A}], [{1: A}] * 2)["IDSW"] == 0
    assert score([{1: A}, {1: bar(0, 8), 2: A}], [{1: A}] * 2)["IDSW"] == 0  # by exactly one half
    assert score([{1: A}, {1: bar(3), 2: A}], [{1: A}] * 2)["IDSW"] == 1


def test_sequences_are_counted_together() -> None:
    short, long = [{1: A}], [{1: B}] * 9
    result = tracking([short, None], [short, long])
    assert compute_metrics(result) == pytest.approx((math.sqrt(0.1), 0.1, 1, 1, 0))
    assert [part["HOTA"] for part in result["per_sequence"]] == [1, 0]
    assert (result["n"], result["n_failed"], result["coverage"]) == (2, 1, 0.5)


def test_an_empty_mask_and_a_missing_one_are_not_there() -> None:
    empty = coco_mask.encode(np.zeros(SIZE, np.uint8, order="F"))
    assert compute_metrics(score([{1: A, 2: empty, 3: None}], [{1: A, 4: empty}])) == (1, 1, 1, 1, 0)
    assert compute_metrics(score([{}], [{}])) == (0, 0, 0, 1, 0)


@pytest.mark.parametrize(
    ("mask", "named"),
    [
        ({"size": [6, 20], "counts": "0"}, "does not fill the 6 x 20 pixels"),
        ({"size": [6, 20], "counts": ""}, "does not fill"),
        ({"size": [6, 20], "counts": "~~"}, "does not fill"),
        ({"size": [6, 20], "counts": "PPPPPPPPPPPPP0"}, "does not fill"),
        ({"size": [6, 20], "counts": [0, 120]}, "counts is of type list"),
        ({"size": [6], "counts": A["counts"]}, "give \\[height, width\\]"),
        ({"size": [0, 20], "counts": "0"}, "give \\[height, width\\]"),
        ([1, 2], "give a COCO RLE dict"),
        (bar(0) | {"size": [20, 6]}, "its reference of \\[6, 20\\]"),
    ],
)
def test_a_wrong_mask_is_named_before_native_code_reads_it(mask: Any, named: str) -> None:
    with pytest.raises((TypeError, ValueError), match=named):
        score([{}, {3: mask}], [{1: A}, {1: A}])


frames = st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 16).map(bar), max_size=4), min_size=1, max_size=6)


@given(frames)
def test_every_sequence_is_perfect_against_itself(sequence: list[Any]) -> None:
    if any(sequence):
        assert compute_metrics(score(sequence, sequence)) == pytest.approx((1, 1, 1, 1, 0))


@given(frames, frames, st.permutations(range(4)))
def test_names_do_not_matter_and_every_metric_is_a_share(first: list[Any], other: list[Any], names: list[int]) -> None:
    length = min(len(first), len(other))
    prediction, reference = first[:length], other[:length]
    result = score(prediction, reference)
    assert all(0 <= value <= 1 + 1e-12 for value in compute_metrics(result)[:4])
    renamed = [{f"track {names[track]}": mask for track, mask in frame.items()} for frame in prediction]
    assert compute_metrics(score(renamed, reference)) == pytest.approx(compute_metrics(result))


@given(frames)
def test_an_identity_that_changes_every_frame_keeps_detection(sequence: list[Any]) -> None:
    renamed = [{f"{index} {track}": mask for track, mask in frame.items()} for index, frame in enumerate(sequence)]
    result, kept = score(renamed, sequence), score(sequence, sequence)
    assert result["DetA"] == pytest.approx(kept["DetA"])
    assert result["AssA"] <= kept["AssA"] + 1e-12
