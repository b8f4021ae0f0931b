"""Top-1 accuracy of multiple-choice answers, and what the wrong ones have in common with the truth.

The accuracy is that of the BARISTA paper (arXiv 2605.12074, section A.3.1): an answer that names no choice is
wrong. The per-class, per-verb and distractor figures are ours. All shares run from 0 to 1. Needs the standard
library only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

from .inputs import Question, RawChoices, RawId, as_questions


class ExampleScore(NamedTuple):
    """One question. `failed`: there is no usable answer.

    `same_verb` and `random_same_verb` are None unless the answer is wrong and the verbs of all choices are known:
    does the chosen distractor share the truth's verb, and what share of the distractors does?
    """

    correct: bool
    failed: bool
    same_verb: bool | None = None
    random_same_verb: float | None = None


def score_question(question: Question) -> ExampleScore:
    """Score one checked question, see `as_questions`.

    >>> verbs = {"A": "open", "B": "open", "C": "close"}
    >>> score_question(Question("B", "A", choices=verbs))
    ExampleScore(correct=False, failed=False, same_verb=True, random_same_verb=0.5)
    """
    prediction, reference = question.prediction, question.reference
    correct = prediction == reference
    choices = question.choices
    if correct or prediction is None or choices is None or None in choices.values():
        return ExampleScore(correct, prediction is None)
    distractors = [verb == choices[reference] for choice, verb in choices.items() if choice != reference]
    same_verb = choices[prediction] == choices[reference]
    return ExampleScore(False, False, same_verb, sum(distractors) / len(distractors))


def score_examples(
    predictions: Sequence[RawId | None],
    references: Sequence[RawId],
    *,
    classes: Sequence[RawId | None] | None = None,
    verbs: Sequence[str | None] | None = None,
    choices: Sequence[RawChoices | None] | None = None,
) -> list[ExampleScore]:
    """One score per question; inputs and errors are those of `choice_accuracy`, but no questions give an empty list."""
    return [score_question(q) for q in as_questions(predictions, references, classes, verbs, choices)]


def choice_accuracy(
    predictions: Sequence[RawId | None],
    references: Sequence[RawId],
    *,
    classes: Sequence[RawId | None] | None = None,
    verbs: Sequence[str | None] | None = None,
    choices: Sequence[RawChoices | None] | None = None,
) -> dict[str, Any]:
    """Score all questions; `predictions[i]` answers `references[i]`, None says that there is no usable answer.

    The ids of choices are strings or integers. The further columns may be left out, and so may single entries
    (None): `classes` (the class of the truth), `verbs` (the verb of the truth; where `choices` has it, that is
    used), and `choices` (of each question the ids, or a dict from id to verb).

    Returned:
    * `accuracy`: over all questions, those without a usable answer are wrong; `accuracy_on_parsed`: over the
      others, None if there are none; `n_correct`.
    * `chance_level`: mean of 1 / number of choices, None unless the choices of all questions are given.
    * `per_class`, `per_verb`: of each class or verb, sorted, accuracy, n_correct, n and n_failed; None without any.
    * `class_mean_accuracy`: the mean of the accuracies of all classes, None without any.
    * `distractors`: about the wrong answers whose choices all have verbs: `n_wrong`; `same_verb_share`, the share of
      them that has the verb of the truth; `random_share`, what picking any wrong choice of the same questions at
      random would give on average. Both shares are None where n_wrong is 0; without any verbs the whole is None.
    * `n`, `n_failed`: questions; `coverage`: the share of questions with a usable answer.

    Raises ValueError for no questions, unequal lengths or ids that are not among the choices, TypeError for wrong
    types.

    >>> verbs = {"A": "open", "B": "open", "C": "close", "D": "turn", "E": "turn"}
    >>> result = choice_accuracy(["A", "B", None], ["A", "A", "C"], choices=[verbs] * 3)
    >>> round(result["accuracy"], 3), result["accuracy_on_parsed"], result["chance_level"]
    (0.333, 0.5, 0.2)
    >>> result["distractors"]
    {'n_wrong': 1, 'same_verb_share': 1.0, 'random_share': 0.25}
    """
    return figures_of(as_questions(predictions, references, classes, verbs, choices))


def figures_of(questions: Sequence[Question]) -> dict[str, Any]:
    """The result of `choice_accuracy` for questions that have been checked, or for a selection of them."""
    if not questions:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 question")
    scores = [score_question(question) for question in questions]
    overall = _group_figures(scores)
    n, n_failed = overall["n"], overall["n_failed"]
    per_class = _per_group([question.class_name for question in questions], scores)
    return {
        "accuracy": overall["accuracy"],
        "accuracy_on_parsed": overall["n_correct"] / (n - n_failed) if n > n_failed else None,
        "chance_level": chance_level(questions),
        "class_mean_accuracy": _mean([group["accuracy"] for group in (per_class or {}).values()]),
        "per_class": per_class,
        "per_verb": _per_group([question.verb for question in questions], scores),
        "distractors": _distractors(questions, scores),
        "n": n,
        "n_failed": n_failed,
        "n_correct": overall["n_correct"],
        "coverage": 1 - n_failed / n,
    }


def chance_level(questions: Sequence[Question]) -> float | None:
    """The expected accuracy of picking a choice at random; None unless the choices of all questions are known."""
    if any(question.choices is None for question in questions):
        return None
    return _mean([1 / len(question.choices) for question in questions if question.choices])


def _mean(values: Sequence[float]) -> float | None:
    # Exact before the last rounding, so that the order of the questions does not matter.
    return mean(values) if values else None


def _group_figures(scores: Sequence[ExampleScore]) -> dict[str, Any]:
    n_correct = sum(score.correct for score in scores)
    return {
        "accuracy": n_correct / len(scores),
        "n_correct": n_correct,
        "n": len(scores),
        "n_failed": sum(score.failed for score in scores),
    }


def _per_group(names: Sequence[str | None], scores: Sequence[ExampleScore]) -> dict[str, dict[str, Any]] | None:
    groups: dict[str, list[ExampleScore]] = defaultdict(list)
    for name, score in zip(names, scores, strict=True):
        if name is not None:
            groups[name].append(score)
    return {name: _group_figures(groups[name]) for name in sorted(groups)} or None


def _distractors(questions: Sequence[Question], scores: Sequence[ExampleScore]) -> Mapping[str, Any] | None:
    if not any(question.choices and None not in question.choices.values() for question in questions):
        return None
    wrong = [score for score in scores if score.same_verb is not None]
    return {
        "n_wrong": len(wrong),
        "same_verb_share": _mean([float(bool(score.same_verb)) for score in wrong]),
        "random_share": _mean([score.random_same_verb for score in wrong if score.random_same_verb is not None]),
    }
