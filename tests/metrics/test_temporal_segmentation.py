"""Frame accuracy, edit score and F1 of segments: by hand, and as arrays of frames count them."""

import random
from functools import cache
from typing import Any

import numpy as np
from temporal_segmentation import temporal_segmentation
from temporal_segmentation.scoring import matched_segments, segments_of

from tests.metrics.conftest import assert_metrics

Clip = list[str | None]


def by_frames(predictions: list[Clip | None], references: list[Clip]) -> dict[str, float]:
    """The figures from masks of frames, one a segment, and the edit distance by its definition."""

    def masks(labels: Clip) -> tuple[list[str], np.ndarray]:
        names, rows = [], []
        for start, label in enumerate(labels):
            if label is not None and (start == 0 or labels[start - 1] != label):
                stop = next((at for at in range(start, len(labels)) if labels[at] != label), len(labels))
                names.append(label)
                rows.append([start <= at < stop for at in range(len(labels))])
        return names, np.array(rows, dtype=bool).reshape(len(rows), len(labels))

    right = frames = 0
    edits, counts = [], {percent: np.zeros(3) for percent in (10, 25, 50)}
    for prediction, reference in zip(predictions, references, strict=True):
        frames += len(reference)
        labels: Clip = prediction if prediction is not None else [None] * len(reference)
        right += sum(a == b for a, b in zip(labels, reference, strict=True)) if prediction is not None else 0
        (given, given_masks), (true, true_masks) = masks(labels), masks(reference)

        @cache
        def distance(i: int, j: int, given: Any = tuple(given), true: Any = tuple(true)) -> int:
            if i == 0 or j == 0:
                return i + j
            return min(
                distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (given[i - 1] != true[j - 1])
            )

        longest = max(len(given), len(true))
        edit = 1 - distance(len(given), len(true)) / longest if longest else 1.0
        edits.append(edit if prediction is not None else 0.0)
        for percent, count in counts.items():
            hit = np.zeros(len(true), dtype=bool)
            for name, mask in zip(given, given_masks, strict=True):
                same = [label == name for label in true]
                iou = (mask & true_masks).sum(axis=1) / (mask | true_masks).sum(axis=1) * same
                best = int(iou.argmax()) if len(true) else -1
                is_hit = bool(len(true)) and iou[best] * 100 >= percent and not hit[best]
                count += (is_hit, not is_hit, 0)
                if is_hit:
                    hit[best] = True
            count[2] += (~hit).sum()
    nothing = float(any(prediction is not None for prediction in predictions))
    f1 = {f"f1_{p}": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else nothing for p, (tp, fp, fn) in counts.items()}
    return {"frame_accuracy": right / frames, "edit": float(np.mean(edits)), **f1}


def made_up(rng: random.Random, length: int) -> Clip:
    labels: Clip = []
    while len(labels) < length:
        labels += [rng.choice(["brew", "froth", "serve", None])] * rng.randint(1, 9)
    return labels[:length]


def test_all_metrics_equal_those_counted_frame_by_frame_on_random_cases() -> None:
    rng = random.Random(0)
    for _ in range(150):
        references = [made_up(rng, rng.randint(1, 40)) for _ in range(rng.randint(1, 4))]
        predictions = [None if rng.random() < 0.1 else made_up(rng, len(clip)) for clip in references]
        assert_metrics(temporal_segmentation(predictions, references), by_frames(predictions, references))


def test_a_long_clip_of_short_segments_is_matched_in_linear_time() -> None:
    """Held against each other one by one, these segments would take a quarter of an hour."""
    segments = segments_of(["a", "b"] * 15_000)
    assert len(matched_segments(segments, segments, 50)) == 30_000


def test_background_counts_in_the_accuracy_and_not_as_a_segment() -> None:
    result = temporal_segmentation([[None, None]], [[None, None]])
    assert [result[name] for name in ("frame_accuracy", "edit", "f1_50")] == [1, 1, 1]
    unanswered = temporal_segmentation([None], [[None, "pour"]])
    assert [unanswered[name] for name in ("frame_accuracy", "edit", "f1_50", "coverage")] == [0, 0, 0, 0]
    assert temporal_segmentation([None], [[None, None]])["f1_50"] == 0
