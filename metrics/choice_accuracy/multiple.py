"""Score questions with several right choices by average precision over all options of all questions together.

HanDyVQA scores its Objects questions this way (arXiv 2512.00885, section 4.1, and its public evaluation script). Each
option of each question is an item to be ranked. Needs numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .inputs import RawChoices, RawId, as_choices, as_column, as_id

Floats = NDArray[np.float64]


def average_precision(labels: Sequence[int], scores: Sequence[float]) -> float:
    """Return the average precision of a ranking: the sum over thresholds of (gain in recall) x (precision), 0 to 1.

    `labels` (n,): 1 or True for right items, 0 or False otherwise. `scores` (n,): higher scores rank first. Items of
    equal score share one threshold, so their order does not matter. Returns 0 if no item is right. Equals
    scikit-learn's `average_precision_score`. Accepts lists, arrays and tensors; raises ValueError or TypeError for
    anything else.

    >>> average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.8333333333333333
    >>> average_precision([1, 0, 0, 1], [1, 1, 0, 0])
    0.5
    """
    truth, ranks = _vector(labels, "labels"), _vector(scores, "scores")
    if truth.shape != ranks.shape:
        raise ValueError(f"there are {len(truth)} labels for {len(ranks)} scores; give one score per label")
    if not truth.size:
        raise ValueError("labels and scores are empty: there is nothing to rank; give >= 1 item")
    if not np.isin(truth, (0, 1)).all():
        raise ValueError("labels: hold something other than 0 and 1; give 1 for right items and 0 otherwise")
    return float(resampled_average_precision(truth, ranks, np.ones((1, len(truth))))[0])


def resampled_average_precision(labels: Floats, scores: Floats, counts: Floats) -> Floats:
    """Return the average precision (D,) of D resamples that take each of n items `counts` (D, n) times.

    The result is 0 if no item is right. `labels` (n,) and `scores` (n,) are the same as in `average_precision`, but are
    not checked.
    """
    order = np.argsort(-scores, kind="stable")
    last_of_tie = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    ranked_counts = counts[:, order]
    hits = np.cumsum(ranked_counts * labels[order], axis=1)[:, last_of_tie]
    ranked = np.cumsum(ranked_counts, axis=1)[:, last_of_tie]
    gains = np.diff(hits, axis=1, prepend=0.0) * (hits / np.maximum(ranked, 1))
    # Divide by the total last, so that a ranking without mistakes gives exactly 1.
    return np.asarray(gains.sum(axis=1) / np.maximum(hits[:, -1], 1))


def _vector(raw: object, name: str) -> Floats:
    values = np.asarray(raw if hasattr(raw, "__array__") else as_column(raw, name))
    if values.ndim != 1 or (values.size and values.dtype.kind not in "biuf"):
        raise TypeError(
            f"{name}: is not a list of numbers but {values.dtype} of shape {values.shape}; give (n,) numbers"
        )
    if not np.isfinite(values.astype(np.float64)).all():
        raise ValueError(f"{name}: holds NaN or infinity; give finite numbers")
    return values.astype(np.float64)


class MultiQuestion(NamedTuple):
    """A question with several right choices. If the prediction is None, there is no usable answer."""

    prediction: list[str] | None
    reference: list[str]
    choices: list[str]


def as_multi_questions(predictions: object, references: object, choices: object = None) -> list[MultiQuestion]:
    """Check the columns.

    Raises a TypeError or ValueError that names the column, the index, the fault and the remedy.
    """
    answers, expected = as_column(predictions, "predictions"), as_column(references, "references")
    options = as_column(choices, "choices")
    if not len(answers) == len(expected) == len(options):
        raise ValueError(
            f"there are {len(answers)} predictions and {len(options)} lists of choices for {len(expected)} references; "
            "give one of each per reference, a prediction of None where there is no usable answer"
        )
    questions = []
    for index, (answer, truth, ids) in enumerate(zip(answers, expected, options, strict=True)):
        choice_ids = list(as_choices(ids, f"choices[{index}]") or ())
        if not choice_ids:
            raise TypeError(f"choices[{index}]: is None; give the ids of the question's choices")
        reference = _as_ids(truth, choice_ids, f"references[{index}]")
        if not reference:
            raise ValueError(f"references[{index}]: is empty; give the ids of the right choices, one at least")
        prediction = None if answer is None else _as_ids(answer, choice_ids, f"predictions[{index}]")
        questions.append(MultiQuestion(prediction, reference, choice_ids))
    return questions


def _as_ids(raw: object, choices: Sequence[str], where: str) -> list[str]:
    """Return the named choices without repetition, in the order of their ids."""
    if isinstance(raw, str | int) or raw is None:
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list of ids of choices")
    ids = [as_id(item, where) for item in as_column(raw, where)]
    unknown = [item for item in ids if item not in choices]
    if unknown:
        raise ValueError(f"{where}: {unknown[0]!r} is not among the question's choices, {list(choices)}; leave it out")
    return sorted(set(ids))


def multi_answer(
    predictions: Sequence[Sequence[RawId] | None], references: Sequence[Sequence[RawId]], choices: Sequence[RawChoices]
) -> dict[str, Any]:
    """Return the average precision of the chosen options. A chosen option scores 1, any other option 0.

    For each question, give the ids that were chosen (None: no usable answer), the ids that are right (at least one)
    and all choices. Returned:
    * `average_precision`: over all options of all questions. A question without a usable answer has no chosen
      option.
    * `average_precision_on_parsed`: over the options of the questions with a usable answer; None without such
      questions.
    * `prevalence`: the fraction of options that are right, which is the average precision of choosing everything.
    * `n`, `n_failed`, `coverage`: the number of questions, the number without a usable answer, and the fraction with
      a usable answer.
    * `n_options`: the number of options of all questions.

    Raises ValueError for no questions, unequal lengths or unknown ids, TypeError for wrong types.

    >>> options = [["a", "b", "c", "d"]] * 2
    >>> result = multi_answer([["a", "b"], None], [["a"], ["c"]], options)
    >>> result["average_precision"], result["average_precision_on_parsed"], result["prevalence"]
    (0.375, 0.5, 0.25)
    """
    return multi_metrics_of(as_multi_questions(predictions, references, choices))


def multi_metrics_of(questions: Sequence[MultiQuestion]) -> dict[str, Any]:
    """Return the result of `multi_answer` for checked questions, or for a selection of them."""
    if not questions:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 question")
    parsed = [question for question in questions if question.prediction is not None]
    labels = [choice in question.reference for question in questions for choice in question.choices]
    return {
        "average_precision": _pooled_precision(questions),
        "average_precision_on_parsed": _pooled_precision(parsed) if parsed else None,
        "prevalence": sum(labels) / len(labels),
        "n": len(questions),
        "n_failed": len(questions) - len(parsed),
        "coverage": len(parsed) / len(questions),
        "n_options": len(labels),
    }


def _pooled_precision(questions: Sequence[MultiQuestion]) -> float:
    options = [(question, choice) for question in questions for choice in question.choices]
    labels = [int(choice in question.reference) for question, choice in options]
    scores = [float(choice in (question.prediction or [])) for question, choice in options]
    return average_precision(labels, scores)
