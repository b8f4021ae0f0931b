"""HanDyVQA's objects: which of the options are used by the hands; one or several are right.

Scored as the public script does (docs/upstream/handyvqa.md, "Scoring"): every option of every question is one item to
be ranked, by 1 where the answer names its letter and 0 otherwise, or by the score of a model that scores; average
precision over all items together, questions without an answer left out (`average_precision`). Beside it the same with
those counted as naming nothing (`average_precision_counted`), and exact match and F1 of the sets named, by either
reading, unanswered 0.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from barista_bench.benchmarks.handyvqa.choice_tasks import (
    LetterReading,
    OptionsTask,
    correct_labels,
    letters,
    options_of,
    write_letters,
)
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.statistics import Figures, Floats, Row, SampleStatistics, Sums, SumStatistics, fraction
from barista_bench.core.task import Example, Scored
from barista_bench.metrics.choice_accuracy.multiple import drawn_average_precision

CELLS = 4_000_000
"""Options times draws that are ranked at once, which bounds the memory that intervals take."""
_SET_SCORES = ("f1", "exact_match", "f1_strict", "exact_match_strict")


class Objects(OptionsTask):
    """Which objects the hands use."""

    name = upstream_name = "objects"
    primary = "average_precision"
    primary_note = "Average precision over all options of all questions together."
    sample_score = "f1"
    row_note = "frames of a clip, five or more objects, and those that the hands use"
    answer_note = "letters of options, and their texts"

    def statistics(self, samples: Sequence[Scored]) -> RankedOptions:
        """Average precision over all options, over those of answered questions, and by number of options."""
        return RankedOptions(list(map(_answered_question, samples)))

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Each option with a chance of one half, one at the least."""
        options = options_of(example)
        labels = letters(len(options))
        drawn = [label for label in labels if rng.random() < 0.5]
        return write_letters(drawn or [rng.choice(labels)], options)


class AnsweredQuestion(NamedTuple):
    """The contribution of one sample.

    Args:
        correct: (O,) 1 for what is right.
        ranks: (O,) by what the options are ranked; 0 where nothing was answered.
        is_answered: whether the answer can be read.
        row: the sums that plain means are made of.
    """

    correct: Floats
    ranks: Floats
    is_answered: bool
    row: Row


class RankedOptions(SampleStatistics):
    """Average precision over the options of all questions, and means over questions."""

    def __init__(self, questions: Sequence[AnsweredQuestion]) -> None:
        self._questions = questions
        self._means = SumStatistics(
            [question.row for question in questions], _means, sample_scores={name: name for name in _SET_SCORES}
        )

    @property
    def size(self) -> int:
        return len(self._questions)

    def among(self, samples: Sequence[int]) -> RankedOptions:
        return RankedOptions([self._questions[at] for at in samples])

    def scores(self) -> dict[str, Floats]:
        """Exact match and F1 of the options named, by either reading; 0 without an answer."""
        return self._means.scores()

    def figures(self, weights: Floats) -> Figures:
        is_answered = np.array([question.is_answered for question in self._questions], dtype=np.float64)
        precisions = {
            "average_precision": self._average_precision(weights * is_answered),
            "average_precision_counted": self._average_precision(weights),
        }
        is_empty = weights.sum(axis=1) == 0
        return {
            **{name: np.where(is_empty, np.nan, values) for name, values in precisions.items()},
            **self._means.figures(weights),
        }

    def tables(self) -> dict[str, Any]:
        groups: dict[int, list[int]] = defaultdict(list)
        for at, question in enumerate(self._questions):
            groups[len(question.correct)].append(at)
        per_options = {}
        for count, members in sorted(groups.items()):
            figures = self.among(members).figures(np.ones((1, len(members))))
            named = {name: float(figures[name][0]) for name in ("average_precision_counted", "f1")}
            per_options[str(count)] = {**named, "support": len(members)}
        return {
            "per_options": per_options,
            "n": self.size,
            "n_failed": sum(not question.is_answered for question in self._questions),
            "n_options": sum(len(question.correct) for question in self._questions),
        }

    def _average_precision(self, weights: Floats) -> Floats:
        """(D,) of each draw, for (D, S) weights; 0 where a draw has nothing right."""
        correct = np.concatenate([question.correct for question in self._questions])
        ranks = np.concatenate([question.ranks for question in self._questions])
        owner = np.repeat(np.arange(self.size), [len(question.correct) for question in self._questions])
        batch = max(1, CELLS // len(owner))
        parts = [weights[start : start + batch, owner] for start in range(0, len(weights), batch)]
        return np.concatenate([drawn_average_precision(correct, ranks, part) for part in parts])


def _answered_question(sample: Scored) -> AnsweredQuestion:
    labels, reference = letters(len(options_of(sample.example))), set(correct_labels(sample.example))
    reading = LetterReading.of(sample.prediction)
    correct = np.array([label in reference for label in labels], dtype=np.float64)
    ranks = np.array(reading.scores or [label in reading.released for label in labels], dtype=np.float64)
    row: dict[Any, float] = {}
    for suffix, named in (("", set(reading.released)), ("_strict", set(reading.strict or ()))):
        row[f"f1{suffix}"] = 2 * len(named & reference) / (len(named) + len(reference)) if reference else 0.0
        row[f"exact_match{suffix}"] = float(bool(reference) and named == reference)
    row |= {
        "coverage": float(sample.prediction is not None),
        "coverage_strict": float(reading.strict is not None),
        "right_options": float(correct.sum()),
        "options": float(len(correct)),
    }
    return AnsweredQuestion(correct, ranks, sample.prediction is not None, row)


def _means(sums: Sums) -> Figures:
    means = {name: fraction(sums[name], sums["n"]) for name in (*_SET_SCORES, "coverage", "coverage_strict")}
    return {**means, "prevalence": fraction(sums["right_options"], sums["options"])}
