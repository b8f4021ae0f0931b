"""Define HanDyVQA's multiple-choice questions: five categories with one right option, and objects, with one or more.

Scores follow the public script (docs/upstream/handyvqa.md, "Scoring"). Of the options' letters in an answer, the
alphabetically first counts, and answers without a letter are left out (`accuracy`). Two more scores count answers
without a letter as wrong. `accuracy_counted` uses the same letters, and `accuracy_strict` the strict reading. If no
answer can be read, `accuracy` is 0.

For objects, every option of every question is one item to be ranked. The rank value is 1 if the answer names the
option's letter, and 0 otherwise. For a model that scores, it is the model's score. The main score is the average
precision over all items together, without unanswered questions (`average_precision`). A further score counts unanswered
questions as empty answers (`average_precision_counted`). Exact match and F1 of the named sets are given for both
readings, with 0 for unanswered questions.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from barista_bench.aids.task_aids import TaskAids
from barista_bench.benchmarks.handyvqa.base_task import ClipFrames, HandyvqaTask
from barista_bench.benchmarks.handyvqa.letters import (
    PLAIN,
    READING,
    RELEASED,
    LetterReading,
    letters,
    parse_letters,
    write_letters,
)
from barista_bench.benchmarks.handyvqa.release import HandyvqaQuestion
from barista_bench.benchmarks.kinds.choice import ChoiceTask
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Fields, Inputs, ParseError, Prediction, Scored, Target
from barista_bench.core.options import Option
from barista_bench.core.prompt import Prompt
from barista_bench.core.statistics import Floats, Metrics, Row, SampleStatistics, Sums, SumStatistics, fraction
from barista_bench.metrics.choice_accuracy.multiple import resampled_average_precision


class OptionsInputs(Inputs):
    """`options` are in the order shown, A first. `reading` is how answers are read; it depends on the question's
    source.
    """

    question: str
    options: list[str]
    reading: str = RELEASED  # sets older than version 3 have no reading


class RightOptions(Target):
    """The indices of the right options, from 0; empty if the record has no right option."""

    correct: list[int]


class OptionsTask(ChoiceTask, HandyvqaTask):
    """A category of multiple-choice questions."""

    version = 5
    options: ClassVar[Mapping[str, Option]] = {**HandyvqaTask.options, "reading": READING}
    takes_several: ClassVar[bool] = False
    decided_by = None  # accuracy leaves out unanswered questions
    inputs_type = OptionsInputs
    target_type = RightOptions

    def columns(self, question: HandyvqaQuestion, frames: ClipFrames) -> tuple[Inputs, Target]:
        return self.choice_columns(question)

    @staticmethod
    def choice_columns(question: HandyvqaQuestion) -> tuple[OptionsInputs, RightOptions]:
        """Return `inputs` and `target`. They do not depend on the clip."""
        reading = RELEASED if question.is_released else PLAIN
        return OptionsInputs(question.question, list(question.options), reading), RightOptions(list(question.correct))

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs, count = OptionsInputs.of(example), len(example.frames)
        lines = write_letters(letters(len(inputs.options)), inputs.options)
        return self.prompts.prompt(count, frame_count=str(count), question=inputs.question, options=lines)

    def choices(self, example: Example) -> Mapping[str, str]:
        options = options_of(example)
        return dict(zip(letters(len(options)), options, strict=True))

    def correct_choices(self, example: Example) -> Sequence[str]:
        return correct_labels(example)

    def with_order(self, example: Example, order: Sequence[int]) -> Example:
        options, right = options_of(example), RightOptions.of(example).correct
        inputs = {**example.inputs, "options": [options[place] for place in order]}
        return replace(example, inputs=inputs, target={"correct": sorted(order.index(place) for place in right)})

    def answered_choices(self, prediction: Prediction) -> Sequence[str]:
        """Return the labels in an answer that count."""
        return LetterReading.of(prediction).letters

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the letters of an answer, or a model's scores. The option `reading` overrides the question's
        reading.
        """
        question = OptionsInputs.read(inputs)
        reading = str(self.chosen["reading"] or question.reading)
        return parse_letters(text, question.options, reading, several=self.takes_several)

    def facets(self, example: Example) -> Fields:
        return {"options": len(options_of(example))}

    def answer_text(self, labels: Sequence[str], example: Example) -> str:
        return write_letters(labels, options_of(example))


_OBJECTS_IN_VIEW = TaskAids(default=("objects",), views=())
"""The aids of generated questions. Other tasks of this benchmark ask about objects, places and times."""


class SingleAnswer(OptionsTask):
    """A category whose questions have one right option."""

    sample_score = "accuracy_counted"
    answer_note = "the letter of an option, and its text"

    def answered_choices(self, prediction: Prediction) -> Sequence[str]:
        return super().answered_choices(prediction)[:1]

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Return accuracy for all readings, the fractions of readable answers, and accuracy by number of options."""
        names = {name: name for name in ("accuracy_counted", "accuracy_strict")}
        return SumStatistics(
            list(map(_answer_row, samples)), _compute_metrics, sample_scores=names, tables=_by_option_count
        )


class Action(SingleAnswer):
    """Questions about the action of the hands."""

    name = upstream_name = "action"
    row_note = "frames of a clip, five descriptions of what the hands do, and the right one"
    aids = _OBJECTS_IN_VIEW


class Process(SingleAnswer):
    """Questions about the way of an action."""

    name = upstream_name = "process"
    row_note = "frames of a clip, five ways in which it may be done, and the right one"
    aids = _OBJECTS_IN_VIEW


class Location(SingleAnswer):
    """Questions about the place of an action."""

    name = upstream_name = "location"
    row_note = "frames of a clip, five places, and the right one"


class State(SingleAnswer):
    """Questions about the change of an object."""

    name = upstream_name = "state"
    row_note = "frames of a clip, five changes of an object's state, and the right one"
    aids = _OBJECTS_IN_VIEW


class Parts(SingleAnswer):
    """Questions about the affected part of an object."""

    name = upstream_name = "parts"
    row_note = "frames of a clip, five parts of an object, and the right one"


def options_of(example: Example) -> list[str]:
    """Return the texts of a question's options, starting with A."""
    return OptionsInputs.of(example).options


def correct_labels(example: Example) -> list[str]:
    """Return the labels of the right options, in order. A faulty record has no right options."""
    labels = letters(len(options_of(example)))
    return [labels[index] for index in RightOptions.of(example).correct]


def _answer_row(sample: Scored) -> Row:
    """Return the contribution of one sample to the totals and to the sums for the sample's number of options."""
    count, correct = len(options_of(sample.example)), correct_labels(sample.example)
    reading = LetterReading.of(sample.prediction)
    # In the strict reading, an answer that names two options is no answer. Of equal scores, the first counts.
    strict = reading.letters[:1] if reading.scores is not None else reading.strict or []
    strict = strict if len(strict) == 1 else []
    is_right = float(any(label in correct for label in reading.letters[:1]))
    row: dict[Hashable, float] = {
        "right": is_right,
        "strict": float(bool(strict) and strict[0] in correct),
        "answered": float(sample.prediction is not None),
        "answered_strictly": float(bool(strict)),
        "chance": 1 / count,
        ("n", count): 1.0,
        ("right", count): is_right,
    }
    return row


def _compute_metrics(sums: Sums) -> Metrics:
    default = np.where(sums["n"] > 0, 0.0, np.nan)
    ratios = {
        "accuracy": ("right", "answered"),
        "accuracy_counted": ("right", "n"),
        "accuracy_strict": ("strict", "n"),
        "chance_level": ("chance", "n"),
        "coverage": ("answered", "n"),
        "coverage_strict": ("answered_strictly", "n"),
    }
    return {name: fraction(sums[part], sums[whole], default) for name, (part, whole) in ratios.items()}


def _by_option_count(sums: Row) -> dict[str, Any]:
    sizes = {key[1]: int(n) for key, n in sums.items() if isinstance(key, tuple) and key[0] == "n" and n}
    groups = {
        str(size): {"accuracy_counted": sums["right", size] / n, "chance_level": 1 / size, "support": n}
        for size, n in sorted(sizes.items())
    }
    return {"per_options": groups, "n": int(sums["n"]), "n_failed": int(sums["n"] - sums["answered"])}


CELLS = 4_000_000
"""Maximum number of options times draws that are ranked at once. It limits the memory for intervals."""
_SET_SCORES = ("f1", "exact_match", "f1_strict", "exact_match_strict")


class Objects(OptionsTask):
    """Questions about the objects that the hands use."""

    name = upstream_name = "objects"
    takes_several = True
    primary = "average_precision"
    primary_note = "Average precision over all options of all questions together."
    sample_score = "f1"
    row_note = "frames of a clip, five or more objects, and those that the hands use"
    answer_note = "letters of options, and their texts"

    def statistics(self, samples: Sequence[Scored]) -> RankedOptions:
        """Return average precision over all options, over the options of answered questions, and by number of
        options.
        """
        return RankedOptions(list(map(_ranked_question, samples)))

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return each option with a probability of one half, and at least one option."""
        options = options_of(example)
        labels = letters(len(options))
        picked = [label for label in labels if rng.random() < 0.5]
        return write_letters(picked or [rng.choice(labels)], options)


CHOICE_TASKS: tuple[type[OptionsTask], ...] = (Action, Process, Location, State, Parts, Objects)
"""The tasks with options, in the order of the paper's tables."""


class AnsweredQuestion(NamedTuple):
    """The contribution of one sample: for each option (O,), 1 if the option is right, and the option's rank value.

    Rank values are 0 without an answer. `row` has the sums for plain means.
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

    def subset(self, samples: Sequence[int]) -> RankedOptions:
        return RankedOptions([self._questions[index] for index in samples])

    def scores(self) -> dict[str, Floats]:
        """Return exact match and F1 of the named options for both readings; 0 without an answer."""
        return self._means.scores()

    def compute_metrics(self, weights: Floats) -> Metrics:
        is_answered = np.array([question.is_answered for question in self._questions], dtype=np.float64)
        precisions = {
            "average_precision": self._average_precision(weights * is_answered),
            "average_precision_counted": self._average_precision(weights),
        }
        is_empty = weights.sum(axis=1) == 0
        return {
            **{name: np.where(is_empty, np.nan, values) for name, values in precisions.items()},
            **self._means.compute_metrics(weights),
        }

    def tables(self) -> dict[str, Any]:
        groups: dict[int, list[int]] = defaultdict(list)
        for index, question in enumerate(self._questions):
            groups[len(question.correct)].append(index)
        per_options = {}
        for count, members in sorted(groups.items()):
            metrics = self.subset(members).compute_metrics(np.ones((1, len(members))))
            values = {name: float(metrics[name][0]) for name in ("average_precision_counted", "f1")}
            per_options[str(count)] = {**values, "support": len(members)}
        return {
            "per_options": per_options,
            "n": self.size,
            "n_failed": sum(not question.is_answered for question in self._questions),
            "n_options": sum(len(question.correct) for question in self._questions),
        }

    def _average_precision(self, weights: Floats) -> Floats:
        """Return the (D,) average precision of each draw, for (D, S) weights; 0 if a draw has no right option."""
        correct = np.concatenate([question.correct for question in self._questions])
        ranks = np.concatenate([question.ranks for question in self._questions])
        question_of_option = np.repeat(np.arange(self.size), [len(question.correct) for question in self._questions])
        batch = max(1, CELLS // len(question_of_option))
        parts = [weights[start : start + batch, question_of_option] for start in range(0, len(weights), batch)]
        return np.concatenate([resampled_average_precision(correct, ranks, part) for part in parts])


def _ranked_question(sample: Scored) -> AnsweredQuestion:
    labels, reference = letters(len(options_of(sample.example))), set(correct_labels(sample.example))
    reading = LetterReading.of(sample.prediction)
    correct = np.array([label in reference for label in labels], dtype=np.float64)
    ranks = np.array(reading.scores or [label in reading.letters for label in labels], dtype=np.float64)
    row: dict[Any, float] = {}
    for suffix, named in (("", set(reading.letters)), ("_strict", set(reading.strict or ()))):
        row[f"f1{suffix}"] = 2 * len(named & reference) / (len(named) + len(reference)) if reference else 0.0
        row[f"exact_match{suffix}"] = float(bool(reference) and named == reference)
    row |= {
        "coverage": float(sample.prediction is not None),
        "coverage_strict": float(reading.strict is not None),
        "right_options": float(correct.sum()),
        "options": float(len(correct)),
    }
    return AnsweredQuestion(correct, ranks, sample.prediction is not None, row)


def _means(sums: Sums) -> Metrics:
    means = {name: fraction(sums[name], sums["n"]) for name in (*_SET_SCORES, "coverage", "coverage_strict")}
    return {**means, "prevalence": fraction(sums["right_options"], sums["options"])}
