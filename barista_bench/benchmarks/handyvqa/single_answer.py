"""HanDyVQA's five categories with one right option among five: action, process, location, state, parts.

Scored as the public script does (upstream.md, 4): of the options' letters in an answer, the first of the alphabet
counts, and answers without one are left out (`accuracy`). Beside it the same with those counted as wrong
(`accuracy_counted`), and the strict reading, unanswered wrong (`accuracy_strict`). Where not a single answer can be
read, `accuracy` is 0.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from barista_bench.benchmarks.handyvqa.answers import Reading, written
from barista_bench.benchmarks.handyvqa.questions import ChoiceTask, by_options, options_of, truth_of
from barista_bench.benchmarks.handyvqa.records import letters
from barista_bench.benchmarks.pooling import Floats, ratio, weighted_sums
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Example, Explanation, Json, Prediction, Scored

Row = Mapping[Hashable, float]

FIGURES = {
    "accuracy": ("right", "answered"),
    "accuracy_counted": ("right", "n"),
    "accuracy_strict": ("strict", "n"),
    "chance_level": ("chance", "n"),
    "coverage": ("answered", "n"),
    "coverage_strict": ("answered_strictly", "n"),
}
"""The two sums over samples (`SingleAnswer._row`) of which each figure is the ratio; 0 where none is answered."""


class SingleAnswer(ChoiceTask):
    """A category whose questions have one right option."""

    primary = "accuracy"
    sample_score = "accuracy_counted"

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """1 for the right option, 0 for another one or none, by either reading."""
        truth = truth_of(example)
        answer, strict = chosen(prediction)
        return {"accuracy_counted": float(answer in truth), "accuracy_strict": float(strict in truth)}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """Accuracy by all readings, the shares of answers that they can read, and accuracy by number of options."""
        rows = [self._row(sample) for sample in samples]
        total = {name: sum(row[name] for row in rows) for name in rows[0]}
        groups = {
            str(count): {
                "accuracy_counted": sum(self._row(sample)["right"] for sample in group) / len(group),
                "chance_level": 1 / count,
                "support": len(group),
            }
            for count, group in by_options(samples).items()
        }
        return {
            **{name: total[part] / total[whole] if total[whole] else 0.0 for name, (part, whole) in FIGURES.items()},
            "per_options": groups,
            "n": len(samples),
            "n_failed": len(samples) - int(total["answered"]),
        }

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        sums = weighted_sums([self._row(sample) for sample in samples], weights)
        nothing = np.where(sums["n"] > 0, 0.0, np.nan)
        return {name: ratio(sums[part], sums[whole], nothing) for name, (part, whole) in FIGURES.items()}

    def _row(self, sample: Scored) -> Row:
        """What one sample adds to the sums that figures are made of."""
        scores = self.score(sample.example, sample.prediction)
        _, strict = chosen(sample.prediction)
        return {
            "n": 1.0,
            "right": scores["accuracy_counted"],
            "strict": scores["accuracy_strict"],
            "answered": float(sample.prediction is not None),
            "answered_strictly": float(strict is not None),
            "chance": 1 / len(options_of(sample.example)),
        }

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        answer, _ = chosen(prediction)
        return self.explained(example, [] if answer is None else [answer])

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        options = options_of(example)
        return written([rng.choice(letters(len(options)))], options)


class Action(SingleAnswer):
    """What the hands do."""

    name = upstream_name = "action"
    row_note = "frames of a clip, five descriptions of what the hands do, and the right one"


class Process(SingleAnswer):
    """How something is done."""

    name = upstream_name = "process"
    row_note = "frames of a clip, five ways in which it may be done, and the right one"


class Location(SingleAnswer):
    """Where it is done."""

    name = upstream_name = "location"
    row_note = "frames of a clip, five places, and the right one"


class State(SingleAnswer):
    """How an object changes."""

    name = upstream_name = "state"
    row_note = "frames of a clip, five changes of an object's state, and the right one"


class Parts(SingleAnswer):
    """Which part of an object is concerned."""

    name = upstream_name = "parts"
    row_note = "frames of a clip, five parts of an object, and the right one"


def chosen(prediction: Prediction | None) -> tuple[str | None, str | None]:
    """The label that counts by the released and by the strict reading; None for none, or for several."""
    if prediction is None:
        return None, None
    reading = Reading.of(prediction)
    if reading.scores is not None:  # at a tie the first, in both
        return reading.released[0], reading.released[0]
    strict = reading.strict or ()
    return reading.released[0], strict[0] if len(strict) == 1 else None
