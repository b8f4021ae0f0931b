"""Ask questions with their choices in other orders: `--option order=...`.

`circular` asks every question once for each rotation of its choices. A question counts as right only if every rotation
is answered right, so a model that prefers a position scores 0. `shuffled:SEED` permutes the choices of each question.
Questions, the texts of choices and the labels stay the same. Only the assignment of labels to choices changes.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from barista_bench.core.example import Example, Json, Scored
from barista_bench.core.options import Option
from barista_bench.core.statistics import Floats, Metrics, SampleStatistics
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError

NAME, AS_BUILT, CIRCULAR = "order", "as_built", "circular"
MOST_ROTATIONS = 5
"""The maximum number of rotations that `circular` asks. For questions with more choices, it asks this many, evenly
spread.
"""
ORDER = Option(
    AS_BUILT,
    "order of the choices: as_built, shuffled:SEED, or circular (right only if right in every rotation; circular:K for "
    "K rotations of many choices)",
    "prompt",
    is_added=True,
)
ROTATION_OF, ROTATION, ROTATIONS = "rotation_of", "rotation", "rotations"
"""Metadata of a rotated question: the question's id, the number of places it is rotated by, and its number of
rotations.
"""
_FORMS = re.compile(r"as_built|circular(?::(?P<most>[1-9][0-9]?))?|shuffled:(?P<seed>[0-9]{1,18})")


def reordered(task: Task, example: Example, order: object) -> Iterator[Example]:
    """Yield an example in the orders that the option names. An example without choices stays as it is.

    Raises:
        ConfigError: the value of the option is invalid, or the task cannot reorder its choices.
    """
    form = _FORMS.fullmatch(str(order))
    if form is None:
        raise ConfigError(
            f"option {NAME} is {str(order)!r:.80}. Fix: give as_built, circular, circular:K, shuffled:SEED"
        )
    count = len(task.choices(example))
    if order == AS_BUILT or count < 2:
        yield example
    elif form["seed"] is not None:
        places = list(range(count))
        random.Random(f"{form['seed']}:{example.example_id}").shuffle(places)  # noqa: S311
        yield task.with_order(example, places)
    else:
        most = min(count, int(form["most"] or MOST_ROTATIONS))
        for number in range(most):
            start = number * count // most
            rotated = task.with_order(example, [(place + start) % count for place in range(count)])
            mark: dict[str, Json] = {ROTATION_OF: example.example_id, ROTATION: start, ROTATIONS: most}
            name = f"{example.example_id}~{start}" if start else example.example_id
            yield replace(rotated, example_id=name, metadata={**rotated.metadata, **mark})


def statistics_of(task: Task, samples: Sequence[Scored]) -> SampleStatistics:
    """Return the task's statistics of one repetition's samples. Rotations of a question count as one question."""
    groups: dict[object, list[int]] = defaultdict(list)
    for position, sample in enumerate(samples):
        groups[sample.example.metadata.get(ROTATION_OF, position)].append(position)
    if not any(ROTATION_OF in sample.example.metadata for sample in samples):
        return task.statistics(samples)
    questions = [_decisive(task, [samples[position] for position in positions]) for positions in groups.values()]
    numbers = np.empty(len(samples), dtype=np.int64)
    for number, positions in enumerate(groups.values()):
        numbers[positions] = number
    return QuestionStatistics(task.statistics(questions), numbers)


def _decisive(task: Task, rotations: Sequence[Scored]) -> Scored:
    """Return the first rotation that is not answered right. If a rotation is missing, return the first one as
    unanswered.
    """
    for each in rotations:
        right = sorted(task.correct_choices(each.example))
        if each.prediction is None or sorted(task.answered_choices(each.prediction)) != right:
            return each
    first = rotations[0]
    is_whole = len(rotations) == first.example.metadata.get(ROTATIONS, 1)
    return first if is_whole else Scored(first.example, None)


class QuestionStatistics(SampleStatistics):
    """Statistics of questions that several samples answer together.

    Args:
        questions: statistics of Q questions.
        numbers: (S,) the number of the question of each sample. The samples are in the order of the questions, and
            every question has a sample.
    """

    def __init__(self, questions: SampleStatistics, numbers: NDArray[np.int64]) -> None:
        self._questions, self._numbers = questions, numbers
        self._first = np.unique(numbers, return_index=True)[1]

    @property
    def size(self) -> int:
        return len(self._numbers)

    def compute_metrics(self, weights: Floats) -> Metrics:
        return self._questions.compute_metrics(weights[:, self._first])

    def resampled_metrics(self, weights: Floats, units: NDArray[np.int64]) -> Metrics:
        return self._questions.resampled_metrics(weights, units[self._first])

    def scores(self) -> dict[str, Floats]:
        return {name: values[self._numbers] for name, values in self._questions.scores().items()}

    def subset(self, samples: Sequence[int]) -> QuestionStatistics:
        questions, numbers = np.unique(self._numbers[list(samples)], return_inverse=True)
        return QuestionStatistics(self._questions.subset(questions.tolist()), numbers)

    def tables(self) -> dict[str, object]:
        return self._questions.tables()
