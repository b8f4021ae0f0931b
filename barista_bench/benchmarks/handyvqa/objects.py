"""HanDyVQA's objects: which of the options are used by the hands; one or several are right.

Scored as the public script does (upstream.md, 4): every option of every question is one item to be ranked, by 1 where
the answer names its letter and 0 otherwise, or by the score of a model that scores; average precision over all items
together, questions without an answer left out (`average_precision`). Beside it the same with those counted as naming
nothing (`average_precision_counted`), and exact match and F1 of the sets named, by either reading, unanswered 0.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence

import numpy as np

from barista_bench.benchmarks.handyvqa.answers import Reading, written
from barista_bench.benchmarks.handyvqa.questions import ChoiceTask, by_options, options_of, truth_of
from barista_bench.benchmarks.handyvqa.records import letters
from barista_bench.benchmarks.pooling import Floats, ratio, weighted_sums
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Example, Explanation, Json, Prediction, Scored
from barista_bench.metrics.choice_accuracy.multiple import average_precision

CELLS = 4_000_000
"""Options times draws that are ranked at once, which bounds the memory that intervals take."""


class Objects(ChoiceTask):
    """Which objects the hands use."""

    name = upstream_name = "objects"
    primary = "average_precision"
    sample_score = "f1"
    row_note = "frames of a clip, five or more objects, and those that the hands use"

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Exact match and F1 of the options named, by either reading; 0 without an answer."""
        truth = set(truth_of(example))
        released, strict = named(prediction)
        return {
            "f1": _f1(released, truth),
            "exact_match": float(bool(truth) and released == truth),
            "f1_strict": _f1(strict, truth),
            "exact_match_strict": float(bool(truth) and strict == truth),
        }

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """Average precision over all options, over those of answered questions, and by number of options."""
        rows = [self._row(sample) for sample in samples]
        n = len(samples)
        means: dict[str, Json] = {str(name): sum(row[name] for row in rows) / n for name in rows[0] if name != "n"}
        groups = {
            str(count): {
                "average_precision_counted": _precision(group),
                "f1": sum(self.score(s.example, s.prediction)["f1"] for s in group) / len(group),
                "support": len(group),
            }
            for count, group in by_options(samples).items()
        }
        answered = [sample for sample in samples if sample.prediction is not None]
        labels = np.concatenate([_labels(sample) for sample in samples])
        return {
            "average_precision": _precision(answered) if answered else 0.0,
            "average_precision_counted": _precision(samples),
            **means,
            "prevalence": float(labels.mean()),
            "per_options": groups,
            "n": n,
            "n_failed": n - len(answered),
            "n_options": len(labels),
        }

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        sums = weighted_sums([self._row(sample) for sample in samples], weights)
        n = sums.pop("n")
        answered = np.array([sample.prediction is not None for sample in samples], dtype=np.float64)
        figures = {
            "average_precision": weighted_precision(samples, weights * answered),
            "average_precision_counted": weighted_precision(samples, weights),
            **{str(name): ratio(total, n) for name, total in sums.items()},
            "prevalence": _prevalence(samples, weights),
        }
        for values in figures.values():
            values[n == 0] = np.nan
        return figures

    def _row(self, sample: Scored) -> dict[Hashable, float]:
        """What one sample adds to the sums that plain means are made of."""
        prediction = sample.prediction
        strict = prediction is not None and Reading.of(prediction).strict is not None
        scores = self.score(sample.example, prediction)
        return {
            **dict[Hashable, float](scores.items()),
            "coverage": float(prediction is not None),
            "coverage_strict": float(strict),
            "n": 1.0,
        }

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        return self.explained(example, () if prediction is None else Reading.of(prediction).released)

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        """Each option with a chance of one half, one at the least."""
        options = options_of(example)
        labels = letters(len(options))
        drawn = [label for label in labels if rng.random() < 0.5]
        return written(drawn or [rng.choice(labels)], options)


def named(prediction: Prediction | None) -> tuple[set[str], set[str]]:
    """The options that an answer names by the released and by the strict reading."""
    if prediction is None:
        return set(), set()
    reading = Reading.of(prediction)
    return set(reading.released), set(reading.strict or ())


def _f1(said: set[str], truth: set[str]) -> float:
    return 2 * len(said & truth) / (len(said) + len(truth)) if truth else 0.0


def _labels(sample: Scored) -> Floats:
    """(options,) 1 for what is right."""
    truth = truth_of(sample.example)
    return np.array([label in truth for label in letters(len(options_of(sample.example)))], dtype=np.float64)


def _ranks(sample: Scored) -> Floats:
    """(options,) by what the options are ranked; 0 where nothing was answered."""
    if sample.prediction is not None:
        scores = Reading.of(sample.prediction).scores
        if scores is not None:
            return np.array(scores)
    said, _ = named(sample.prediction)
    return np.array([label in said for label in letters(len(options_of(sample.example)))], dtype=np.float64)


def _precision(samples: Sequence[Scored]) -> float:
    """Average precision over all options of all samples."""
    labels, ranks = (np.concatenate([part(sample) for sample in samples]) for part in (_labels, _ranks))
    return average_precision(labels, ranks)


def weighted_precision(samples: Sequence[Scored], weights: Floats) -> Floats:
    """(D,) the average precision of each draw, for (D, S) weights; 0 where a draw has nothing right."""
    labels, ranks = (np.concatenate([part(sample) for sample in samples]) for part in (_labels, _ranks))
    owner = np.repeat(np.arange(len(samples)), [len(options_of(sample.example)) for sample in samples])
    order = np.argsort(-ranks, kind="stable")
    labels, owner = labels[order], owner[order]
    last_of_tie = np.append(np.flatnonzero(np.diff(ranks[order])), len(order) - 1)
    batch = max(1, CELLS // len(order))
    parts = [weights[start : start + batch, owner] for start in range(0, len(weights), batch)]
    return np.concatenate([_ranked(labels, part, last_of_tie) for part in parts])


def _ranked(labels: Floats, counts: Floats, last_of_tie: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """(B,) average precision of B draws that take each ranked item (O,) `counts` (B, O) times."""
    hits = np.cumsum(counts * labels, axis=1)[:, last_of_tie]
    ranked = np.cumsum(counts, axis=1)[:, last_of_tie]
    gains = np.diff(hits, axis=1, prepend=0.0)
    return ratio((gains * ratio(hits, ranked, 0.0)).sum(axis=1), hits[:, -1], 0.0)


def _prevalence(samples: Sequence[Scored], weights: Floats) -> Floats:
    right = np.array([_labels(sample).sum() for sample in samples])
    options = np.array([len(options_of(sample.example)) for sample in samples], dtype=np.float64)
    return ratio(weights @ right, weights @ options)
