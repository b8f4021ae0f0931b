"""Guessers, which measure how many choice questions of a set can be answered from their texts only.

A guesser scores each choice of a question and takes the choice with the highest score. Its opposite takes the choice
with the lowest score. Some guessers follow a fixed rule (`length`, `overlap`, `offered`). All others learn from the
answers of other videos (`place`, `prior`, `form`, `difficulty`, `text`), of the other half of the videos (`half`), or
of other questions about the same video (`same_video`). No guesser sees a frame, so any accuracy above chance comes from
a shortcut.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FOLDS = 5
ALPHA = 0.01
"""p-value below which a set counts as guessed: between .05 for one guesser and .05 corrected for all guessers."""
Scores: TypeAlias = list[NDArray[np.float64]]
"""For each question, an array with one score per choice."""


class TextQuestion(NamedTuple):
    """A question as a guesser sees it.

    `correct` holds indices of `choices`. `form` is the wording without the words that fill it, and `difficulty` is the
    level. Both are empty if unknown.
    """

    video_id: str
    question: str
    choices: tuple[str, ...]
    correct: tuple[int, ...]
    form: str = ""
    difficulty: str = ""


class GuessedSet(NamedTuple):
    """The result of a guesser, or of the opposite guesser, on a set.

    Args:
        credit: for each question, the probability (0 to 1) that the choice taken is right. Choices of equal score are
            equally likely to be taken.
        accuracy: mean of `credit`.
        chance: accuracy of taking a random choice.
        p_value: probability of this accuracy or more by chance (one-sided, questions independent).
        opposite: whether the guesser takes the choice of the lowest score.
    """

    credit: tuple[float, ...]
    accuracy: float
    chance: float
    p_value: float
    opposite: bool = False


def guess(questions: Sequence[TextQuestion], guesser: str) -> tuple[GuessedSet, GuessedSet] | None:
    """Return the results of a guesser and of the opposite guesser.

    Return None if the set has nothing to learn from, or if no question has the label that the guesser uses.
    """
    scores = GUESSERS[guesser](questions)
    if scores is None:
        return None
    chances = [len(question.correct) / len(question.choices) for question in questions]
    return _result(questions, scores, chances), _result(questions, [-row for row in scores], chances, opposite=True)


def _result(
    questions: Sequence[TextQuestion], scores: Scores, chances: Sequence[float], opposite: bool = False
) -> GuessedSet:
    credit = []
    for question, score in zip(questions, scores, strict=True):
        best = np.flatnonzero(score >= score.max() - 1e-9)
        credit.append(len(set(best.tolist()) & set(question.correct)) / len(best))
    hits = int(np.floor(sum(credit) + 1e-9))
    p_value = float(min(1.0, _successes(tuple(chances))[hits:].sum()))
    return GuessedSet(tuple(credit), float(np.mean(credit)), float(np.mean(chances)), p_value, opposite)


@lru_cache(maxsize=8)  # all guessers of a set need the same result
def _successes(chances: tuple[float, ...]) -> NDArray[np.float64]:
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, [1 - chance, chance])
    return distribution


def shared_word_fraction(choice: str, question: str) -> float:
    """Return the share of a choice's different words that the question also contains."""
    words = set(words_in(choice))
    return len(words & set(words_in(question))) / max(1, len(words))


def _scores(questions: Sequence[TextQuestion], of_choice: Callable[[TextQuestion, str], float]) -> Scores:
    return [np.array([float(of_choice(question, choice)) for choice in question.choices]) for question in questions]


def _counts(questions: Sequence[TextQuestion], key: Callable[[TextQuestion, str], Hashable]) -> Scores:
    times = Counter(key(question, choice) for question in questions for choice in question.choices)
    return _scores(questions, lambda question, choice: times[key(question, choice)])


def _place_scores(questions: Sequence[TextQuestion]) -> Scores | None:
    keys = [[(f"place {index}",) for index in range(len(question.choices))] for question in questions]
    return _learned_scores(questions, keys, excluded=_videos(questions))


def _half_scores(questions: Sequence[TextQuestion]) -> Scores | None:
    numbers = {video_id: number for number, video_id in enumerate(sorted(set(_videos(questions))))}
    halves = [numbers[question.video_id] % 2 for question in questions]
    return _learned_scores(questions, _text_keys(questions), excluded=halves)


def _same_video_scores(questions: Sequence[TextQuestion]) -> Scores | None:
    numbers = list(range(len(questions)))
    return _learned_scores(questions, _text_keys(questions), excluded=numbers, within=_videos(questions))


def _label_scores(questions: Sequence[TextQuestion], labels: Sequence[str]) -> Scores | None:
    """Return how often a choice's text, and how often its place, was right in questions with the same label."""
    if not any(labels):
        return None
    keys = [
        [(f"{label}\n{choice}", f"{label}\nplace {index}") for index, choice in enumerate(question.choices)]
        for question, label in zip(questions, labels, strict=True)
    ]
    return _learned_scores(questions, keys, excluded=_videos(questions))


def _videos(questions: Sequence[TextQuestion]) -> list[str]:
    return [question.video_id for question in questions]


def _text_keys(questions: Sequence[TextQuestion]) -> list[list[tuple[str, ...]]]:
    return [[(choice,) for choice in question.choices] for question in questions]


def _learned_scores(
    questions: Sequence[TextQuestion],
    keys: Sequence[Sequence[tuple[str, ...]]],
    *,
    excluded: Sequence[Hashable],
    within: Sequence[Hashable] | None = None,
) -> Scores | None:
    """Return, for each choice, the sum over its keys of how often a choice with that key was right.

    A question learns from all questions or, if `within` is given, from the questions with the same label there. In both
    cases, questions with the same label in `excluded` are left out. Each fraction is smoothed by one additional choice,
    which is right as often as all choices are.

    Returns:
        The scores, or None if no question has another question to learn from.
    """
    labels = within or [""] * len(questions)
    if len(set(zip(labels, excluded, strict=True))) == len(set(labels)):
        return None
    shown: Counter[tuple[Hashable, ...]] = Counter()
    right: Counter[tuple[Hashable, ...]] = Counter()
    for question, rows, label, group in zip(questions, keys, labels, excluded, strict=True):
        for index, choice_keys in enumerate(rows):
            for key in choice_keys:
                for place in ((label, key), (label, group, key)):
                    shown[place] += 1
                    right[place] += index in question.correct
    base_rate = sum(len(q.correct) for q in questions) / sum(len(q.choices) for q in questions)

    def fraction(key: str, label: Hashable, group: Hashable) -> float:
        count = shown[label, key] - shown[label, group, key]
        return (right[label, key] - right[label, group, key] + base_rate) / (count + 1)

    return [
        np.array([sum(fraction(key, label, group) for key in choice_keys) for choice_keys in rows])
        for rows, label, group in zip(keys, labels, excluded, strict=True)
    ]


def _text_scores(questions: Sequence[TextQuestion]) -> Scores | None:
    """Score choices by logistic regression, cross-validated by video.

    Features are the words of question and choice, single and in pairs, and the place and length of the choice.
    """
    if len(set(_videos(questions))) < 2:
        return None
    # Imported here, because the import takes a second.
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    rows = [features for question in questions for features in _features(question)]
    counts = CountVectorizer(analyzer=list, binary=True).fit_transform(rows)
    right = np.array([index in question.correct for question in questions for index in range(len(question.choices))])
    question_of_choice = np.repeat(np.arange(len(questions)), [len(question.choices) for question in questions])
    videos = np.array(_videos(questions))[question_of_choice]
    scores = np.zeros(len(right))
    for train, test in GroupKFold(min(FOLDS, len(set(videos.tolist())))).split(counts, right, videos):
        if right[train].any() and not right[train].all():
            model = LogisticRegression(solver="liblinear", class_weight="balanced").fit(counts[train], right[train])
            scores[test] = model.decision_function(counts[test])
    return np.split(scores, np.flatnonzero(np.diff(question_of_choice)) + 1)


def _features(question: TextQuestion) -> Iterator[list[str]]:
    question_words = _words(question.question)
    lengths = sorted({len(choice) for choice in question.choices})
    for index, choice in enumerate(question.choices):
        words = _words(choice)
        pairs = [f"{a}&{b}" for a in sorted(set(question_words)) for b in sorted(set(words))]
        rank = lengths.index(len(choice)) / max(1, len(lengths) - 1)
        shared = len(set(question_words) & set(words))
        yield [*words, *pairs, f"place={index}", f"length={rank:.1f}", f"shared={shared}"]


def words_in(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _words(text: str) -> list[str]:
    words = words_in(text)
    return words + [f"{a} {b}" for a, b in pairwise(words)]


GUESSERS: Mapping[str, Callable[[Sequence[TextQuestion]], Scores | None]] = {
    "place": _place_scores,
    "length": lambda questions: _scores(questions, lambda _, choice: len(choice)),
    "overlap": lambda questions: _scores(questions, lambda q, choice: shared_word_fraction(choice, q.question)),
    "offered": lambda questions: _counts(questions, lambda _, choice: choice),
    "offered_in_video": lambda questions: _counts(questions, lambda q, choice: (q.video_id, choice)),
    "prior": lambda questions: _learned_scores(questions, _text_keys(questions), excluded=_videos(questions)),
    "half": _half_scores,
    "same_video": _same_video_scores,
    "form": lambda questions: _label_scores(questions, [question.form for question in questions]),
    "difficulty": lambda questions: _label_scores(questions, [question.difficulty for question in questions]),
    "text": _text_scores,
}
"""The guessers by name, the cheaper ones first. Each returns the scores of a set."""


def guessable_indices(questions: Sequence[TextQuestion], ceiling: float | None = None) -> list[int]:
    """Return indices of questions to leave out, so that no guesser and no opposite guesser beats chance (p < `ALPHA`).

    If `ceiling` is given, it replaces chance. Each round leaves out as many guessed questions as exceed the limit.

    Args:
        ceiling: accuracy, 0 to 1, that a guesser may reach.
    """
    kept_indices = list(range(len(questions)))
    while kept_indices:
        kept_questions = [questions[index] for index in kept_indices]
        # Stop at the first guesser that succeeds, so that expensive guessers see fewer questions.
        excess = next(filter(None, (_excess(kept_questions, guesser, ceiling) for guesser in GUESSERS)), frozenset())
        if not excess:
            break
        kept_indices = [index for number, index in enumerate(kept_indices) if number not in excess]
    return sorted(set(range(len(questions))) - set(kept_indices))


def _excess(questions: Sequence[TextQuestion], guesser: str, ceiling: float | None) -> frozenset[int]:
    """Return the guessed questions that exceed the number allowed by chance or by the ceiling, the last ones first."""
    for guesses in guess(questions, guesser) or ():
        if guesses.accuracy <= ceiling if ceiling is not None else guesses.p_value >= ALPHA:
            continue
        allowed = guesses.chance if ceiling is None else ceiling
        count = max(1, int((guesses.accuracy - allowed) * len(questions)))
        certain = [index for index in reversed(range(len(questions))) if guesses.credit[index] >= 1]
        return frozenset(certain[:count] or [len(questions) - 1])
    return frozenset()
