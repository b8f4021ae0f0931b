"""Two laws of aids: an exact reasoner needs nothing else, and a literal copier gains nothing.

Copiers are gated where answers are chosen or structured. Where only words are compared, aids supply words: a diagnosis
says so. `activity` has no reasoner: which label annotators give to what is seen does not follow from facts.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

import pytest

from barista_bench.aids.levels import Aid, needed_levels
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.task import Example, Prediction, Task
from tests.diagnosis.conftest import Aids
from tests.diagnosis.reasoners import copies, reason

PARTLY_SEEN = 0.9
"""Places of what is seen on only a part of a window count by the frames that show it, which aids do not say."""


def _score(task: Task, example: Example, text: str) -> float:
    parsed = task.parse(text, example.inputs, DEFAULT_BOX_FORMAT)
    return task.score(example, parsed if isinstance(parsed, Prediction) else None)[task.sample_score]


def _mean(values: Sequence[float]) -> float:
    assert values
    return fmean(values)


@pytest.mark.parametrize("name", ["relations", "referring", "temporal_vqa"])
def test_an_exact_reasoner_that_reads_only_the_aids_scores_one(name: str, aids_of: Aids) -> None:
    task, examples, book = aids_of(name)
    scores: dict[str, list[float]] = defaultdict(list)
    for example in examples:
        text = book.text(example, [Aid(level) for level in needed_levels(task, example)], DEFAULT_BOX_FORMAT) or ""
        answer = reason(task, example, text, DEFAULT_BOX_FORMAT)
        kind = str(example.target["category"]) if name == "temporal_vqa" else name
        scores[kind].append(_score(task, example, answer))
    for kind, values in scores.items():
        assert _mean(values) >= (PARTLY_SEEN if kind == "relation_change" else 0.9999), kind


@pytest.mark.parametrize("name", ["relations", "activity"])
def test_a_literal_copier_gains_at_most_two_hundredths(name: str, aids_of: Aids) -> None:
    task, examples, book = aids_of(name)
    gains: dict[str, list[float]] = defaultdict(list)
    for example in examples:
        if not (levels := book.levels(example)):
            continue
        texts = [
            book.text(example, [Aid(level, kind) for level in levels], DEFAULT_BOX_FORMAT) or ""
            for kind in ("true", "inert")
        ]
        true, inert = (copies(task, example, text) for text in texts)
        for copier, answer in true.items():
            gains[copier].append(_score(task, example, answer) - _score(task, example, inert[copier]))
    for copier, values in gains.items():
        assert _mean(values) <= 0.02, copier
