"""Top-1 accuracy of multiple-choice answers, and statistics of the wrong answers.

The accuracy is defined as in the BARISTA paper (arXiv 2605.12074, section A.3.1): an answer that names no choice is
wrong. The scores per class, per verb and of distractors are ours. All fractions run from 0 to 1. Needs only numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inputs import ChoiceQuestion, RawChoices, RawId, as_questions


def choice_accuracy(
    predictions: Sequence[RawId | None],
    references: Sequence[RawId],
    *,
    classes: Sequence[RawId | None] | None = None,
    verbs: Sequence[str | None] | None = None,
    choices: Sequence[RawChoices | None] | None = None,
) -> dict[str, Any]:
    """Score all questions. `predictions[i]` answers `references[i]`; None means that there is no usable answer.

    The ids of choices are strings or integers. You can leave out the other columns, or single entries of them
    (None): `classes` (the class of the right answer), `verbs` (the verb of the right answer; a verb in `choices`
    takes precedence) and `choices` (for each question the ids, or a dict from id to verb).

    Returned:
    * `accuracy`: over all questions, where a question without a usable answer is wrong.
    * `accuracy_on_parsed`: over the questions with a usable answer, None without any.
    * `n_correct`: the number of right answers.
    * `chance_level`: the mean of 1 / number of choices; None unless the choices of all questions are given.
    * `per_class`, `per_verb`: accuracy, n_correct, n and n_failed of each class or verb, sorted; None without any.
    * `class_mean_accuracy`: the mean of the accuracies of all classes, None without any.
    * `distractors`: statistics of the wrong answers whose choices all have verbs. `n_wrong` is their number, and
      `same_verb_share` the fraction with the verb of the right answer. `random_share` is the share that a random
      wrong choice of the same questions gives on average. Both shares are None where n_wrong is 0. `distractors` is
      None without any verbs.
    * `n`, `n_failed`: the number of questions, and of questions without a usable answer.
    * `coverage`: the fraction of questions with a usable answer.

    Raises ValueError for no questions, unequal lengths or ids that are not among the choices, and TypeError for
    wrong types.

    >>> verbs = {"A": "open", "B": "open", "C": "close", "D": "turn", "E": "turn"}
    >>> result = choice_accuracy(["A", "B", None], ["A", "A", "C"], choices=[verbs] * 3)
    >>> round(result["accuracy"], 3), result["accuracy_on_parsed"], result["chance_level"]
    (0.333, 0.5, 0.2)
    >>> result["distractors"]
    {'n_wrong': 1, 'same_verb_share': 1.0, 'random_share': 0.25}
    """
    return metrics_of(as_questions(predictions, references, classes, verbs, choices))


def metrics_of(questions: Sequence[ChoiceQuestion]) -> dict[str, Any]:
    """Return the result of `choice_accuracy` for checked questions, or for a selection of them."""
    if not questions:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 question")
    sums: Counter[Hashable] = Counter()
    for question in questions:
        sums.update(question_sums(question))
    values = compute_metrics({name: np.array([float(total)]) for name, total in sums.items()})
    return {**{name: None if np.isnan(value[0]) else float(value[0]) for name, value in values.items()}, **tables(sums)}


Floats = NDArray[np.float64]
_COUNTS = ("n", "n_failed", "n_correct")


def question_sums(question: ChoiceQuestion) -> dict[Hashable, float]:
    """Return a question's contribution to the sums. Counts are in total, by class, by verb and for distractors.

    >>> sums = question_sums(ChoiceQuestion("B", "A", choices={"A": "open", "B": "open", "C": "close"}))
    >>> sums["n_correct"], sums["n_wrong"], sums["n_same_verb"], sums["random_share", 0.5]
    (0, 1, 1, 1)
    """
    prediction, reference, choices = question.prediction, question.reference, question.choices or {}
    correct = prediction == reference
    counts: dict[Hashable, float] = {"n": 1, "n_failed": int(prediction is None), "n_correct": int(correct)}
    sums: dict[Hashable, float] = {**counts, ("choices", len(choices)): 1}
    for kind, name in (("class", question.class_name), ("verb", question.verb)):
        if name is not None:
            sums |= {(kind, name, part): count for part, count in counts.items()}
    has_verbs = bool(choices) and None not in choices.values()
    sums["n_with_verbs"] = int(has_verbs)
    if has_verbs and prediction is not None and not correct:
        same_verb = [verb == choices[reference] for choice, verb in choices.items() if choice != reference]
        n_same_verb = int(choices[prediction] == choices[reference])
        sums |= {"n_wrong": 1, "n_same_verb": n_same_verb, ("random_share", sum(same_verb) / len(same_verb)): 1}
    return sums


def compute_metrics(sums: Mapping[Hashable, Floats]) -> dict[str, Floats]:
    """Return the scores (D,) of `choice_accuracy` from the sums (D,) over D selections of questions.

    A score is NaN if `choice_accuracy` returns None.
    """
    n, right = sums["n"], sums["n_correct"]
    choices = {key[1]: count for key, count in sums.items() if isinstance(key, tuple) and key[0] == "choices"}
    classes = [key[1] for key in sums if isinstance(key, tuple) and key[0] == "class" and key[2] == "n"]
    # Compute means in extended precision. Only the last step rounds, so the order of questions does not matter.
    chances = sum(count * np.longdouble(1 / size) for size, count in choices.items() if size)
    accuracies, present = np.zeros_like(n, dtype=np.longdouble), np.zeros_like(n)
    for name in classes:
        n_of_class = sums["class", name, "n"]
        accuracies += _fraction(sums["class", name, "n_correct"], n_of_class, 0.0)
        present += n_of_class > 0
    return {
        "accuracy": _fraction(right, n),
        "accuracy_on_parsed": _fraction(right, n - sums["n_failed"]),
        "chance_level": _fraction(np.where(choices.get(0, np.zeros_like(n)) > 0, np.nan, chances), n),
        "class_mean_accuracy": _fraction(accuracies, present),
        "coverage": 1 - _fraction(sums["n_failed"], n),
    }


def tables(sums: Mapping[Hashable, float]) -> dict[str, Any]:
    """Return the tables of `choice_accuracy` from the sums over all questions."""
    return {
        "per_class": _per_group(sums, "class"),
        "per_verb": _per_group(sums, "verb"),
        "distractors": _distractors(sums),
        **{name: int(sums[name]) for name in _COUNTS},
    }


def _fraction(part: NDArray[Any], total: Floats, nothing: float = np.nan) -> Floats:
    return np.asarray(np.where(total > 0, part / np.where(total > 0, total, 1.0), nothing), dtype=np.float64)


def _per_group(sums: Mapping[Hashable, float], kind: str) -> dict[str, dict[str, Any]] | None:
    names = sorted({key[1] for key in sums if isinstance(key, tuple) and key[0] == kind})
    groups: dict[str, dict[str, Any]] = {}
    for name in names:
        n, n_failed, n_correct = (int(sums[kind, name, part]) for part in _COUNTS)
        if n:
            groups[name] = {"accuracy": n_correct / n, "n_correct": n_correct, "n": n, "n_failed": n_failed}
    return groups or None


def _distractors(sums: Mapping[Hashable, float]) -> dict[str, Any] | None:
    if not sums["n_with_verbs"]:
        return None
    wrong = int(sums.get("n_wrong", 0))
    fractions = {
        key[1]: int(count) for key, count in sums.items() if isinstance(key, tuple) and key[0] == "random_share"
    }
    return {
        "n_wrong": wrong,
        "same_verb_share": int(sums["n_same_verb"]) / wrong if wrong else None,
        "random_share": mean(Counter(fractions).elements()) if wrong else None,
    }
