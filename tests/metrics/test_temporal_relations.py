"""Recall@K and segment IoU of relations over time: by hand, and against frame sets on random cases."""

import random
from typing import Any

import pytest
from temporal_relations import temporal_relations
from temporal_relations.scoring import RANKS

from tests.metrics.conftest import assert_metrics

Row = tuple[str, str, str, int, int]


def held(start: float, end: float) -> tuple[Any, ...]:
    return "hand", "holds", "cup", start, end


def recall(prediction: list[Any], reference: list[Any]) -> float:
    return float(temporal_relations([prediction], [reference])["recall_at_10"])


def test_half_of_the_time_in_common_is_a_hit_and_case_and_outer_white_space_do_not_matter() -> None:
    assert [recall([held(0, end)], [held(0, 4)]) for end in (2, 1.9)] == [1, 0]
    assert recall([(" Hand", "HOLDS", "cup ", 0, 4)], [held(0, 4)]) == 1


def test_only_the_first_predictions_count_and_all_references() -> None:
    true = [("hand", "holds", f"cup {number}", 0, 1) for number in range(25)]
    wrong = [("hand", "pulls", f"cup {number}", 0, 1) for number in range(15)]
    result = temporal_relations([wrong + true], [true])
    assert [result[f"recall_at_{rank}"] for rank in RANKS] == [0, 5 / 25, 25 / 25]
    assert temporal_relations([true], [true])["recall_at_10"] == 10 / 25


def test_a_failed_example_misses_its_references_and_an_empty_one_is_perfect_only_if_answered() -> None:
    result = temporal_relations([None, [held(0, 4)]], [[held(0, 4)], [held(0, 4)]])
    assert (result["recall_at_10"], result["segment_iou"], result["n_failed"], result["coverage"]) == (0.5, 0.5, 1, 0.5)
    assert temporal_relations([[]], [[]])["recall_at_10"] == 1
    assert temporal_relations([None], [[]])["segment_iou"] == 0


@pytest.mark.parametrize("times", [(0, 10**400), (-1.7e308, 1.7e308), (2**53, 2**53 + 1), (0, float("nan"))])
def test_times_that_are_equal_in_64_bits_are_refused(times: tuple[float, float]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"predictions\[0\]\[0\]: (start|end) is"):
        temporal_relations([[held(*times)]], [[held(0, 4)]])


def frames(row: Row) -> set[int]:
    return set(range(row[3], row[4]))


def plain_metrics(examples: list[tuple[list[Row] | None, list[Row]]]) -> dict[str, float]:
    """The same figures of relations on whole frames, from sets of frames."""
    hits, possible = dict.fromkeys(RANKS, 0), 0
    said_and_true = said_or_true = 0
    for prediction, reference in examples:
        left = list(reference)
        for rank, row in enumerate(prediction or (), start=1):
            rivals = [true for true in left if true[:3] == row[:3]]
            overlaps = [len(frames(row) & frames(true)) / len(frames(row) | frames(true)) for true in rivals]
            if overlaps and max(overlaps) >= 0.5:
                left.remove(rivals[overlaps.index(max(overlaps))])
                for limit in RANKS:
                    hits[limit] += rank <= limit
        possible += len(reference)
        said, true = ({(row[:3], at) for row in rows for at in frames(row)} for rows in (prediction or [], reference))
        said_and_true += len(said & true)
        said_or_true += len(said | true)
    recalls = {f"recall_at_{limit}": hits[limit] / possible for limit in RANKS}
    return recalls | {"segment_iou": said_and_true / said_or_true}


def random_row(rng: random.Random) -> Row:
    start = rng.randrange(8)
    triplet = rng.choice(("left", "right")), rng.choice(("holds", "on")), rng.choice(("cup", "lid"))
    return (*triplet, start, rng.randint(start + 1, 8))


def test_metrics_equal_those_made_frame_by_frame_on_random_cases() -> None:
    rng = random.Random(23)
    for _ in range(150):
        examples: list[tuple[list[Row] | None, list[Row]]] = []
        for _ in range(rng.randint(1, 3)):
            reference = [random_row(rng) for _ in range(rng.randint(1, 25))]
            guesses = [rng.choice((rng.choice(reference), random_row(rng))) for _ in range(rng.randint(0, 60))]
            examples.append((guesses if rng.random() < 0.9 else None, reference))
        result = temporal_relations([answer for answer, _ in examples], [true for _, true in examples])
        assert_metrics(result, plain_metrics(examples))
