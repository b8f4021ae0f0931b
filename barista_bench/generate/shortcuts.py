"""Guessers, which show how much of a set of choices can be told from the texts alone, video by video.

Each is told the answers of all videos but the one it is asked about: `text`, a logistic regression over the
words of question and choice, alone and in pairs, over a choice's place and length; `prior`, how often a choice's text
is right where it stands; `form` and `difficulty`, the same of questions in the same form or of the same level, and how
often the choice in its place is right there. What any of them gets right beyond chance is not due to the video.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

FOLDS = 5
Guesser: TypeAlias = Literal["prior", "form", "difficulty", "text"]
GUESSERS: tuple[Guesser, ...] = get_args(Guesser)
"""The cheaper ones first."""


class TextQuestion(NamedTuple):
    """One question as a guesser sees it. `correct` are indices of `choices`; `form` is its wording without what is
    filled in, `difficulty` its level, empty where they are not known."""

    video_id: str
    question: str
    choices: tuple[str, ...]
    correct: tuple[int, ...]
    form: str = ""
    difficulty: str = ""


class GuessedSet(NamedTuple):
    """The result of a guesser on a set.

    Args:
        credit: for each question the probability, 0 to 1, that the choice it takes is right; choices that it ranks the
            same share it.
        accuracy: their mean.
        chance: what taking any choice would give.
        p_value: of doing as well or better by chance (one-sided, questions independent).
    """

    credit: tuple[float, ...]
    accuracy: float
    chance: float
    p_value: float


def guess(questions: Sequence[TextQuestion], guesser: Guesser) -> GuessedSet | None:
    """A guesser's result on a set; None where there are fewer than two videos to learn from and be asked about, or no
    question has the label that the guesser goes by."""
    videos = sorted({question.video_id for question in questions})
    if len(videos) < 2:
        return None
    labels = [str(getattr(question, guesser)) for question in questions] if guesser in ("form", "difficulty") else None
    if labels and not any(labels):
        return None
    scores = _text_scores(questions) if guesser == "text" else _prior_scores(questions, labels)
    credit = []
    for question, score in zip(questions, scores, strict=True):
        best = np.flatnonzero(score >= score.max() - 1e-9)
        credit.append(len(set(best.tolist()) & set(question.correct)) / len(best))
    chances = [len(question.correct) / len(question.choices) for question in questions]
    return GuessedSet(tuple(credit), float(np.mean(credit)), float(np.mean(chances)), _p_value(sum(credit), chances))


def _p_value(hits: float, chances: Sequence[float]) -> float:
    """Probability of at least `hits` (rounded down) successes of independent trials with these probabilities."""
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, [1 - chance, chance])
    return float(min(1.0, distribution[int(np.floor(hits + 1e-9)) :].sum()))


def _text_scores(questions: Sequence[TextQuestion]) -> list[NDArray[np.float64]]:
    # On demand: a second, for few.
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    rows = [features for question in questions for features in _features(question)]
    counts = CountVectorizer(analyzer=list, binary=True).fit_transform(rows)
    right = np.array([at in question.correct for question in questions for at in range(len(question.choices))])
    question_of_choice = np.repeat(np.arange(len(questions)), [len(question.choices) for question in questions])
    videos = np.array([question.video_id for question in questions])[question_of_choice]
    scores = np.zeros(len(right))
    for train, test in GroupKFold(min(FOLDS, len(set(videos.tolist())))).split(counts, right, videos):
        if right[train].any() and not right[train].all():
            model = LogisticRegression(solver="liblinear", class_weight="balanced").fit(counts[train], right[train])
            scores[test] = model.decision_function(counts[test])
    return np.split(scores, np.flatnonzero(np.diff(question_of_choice)) + 1)


def _features(question: TextQuestion) -> Iterator[list[str]]:
    question_words = _words(question.question)
    lengths = sorted({len(choice) for choice in question.choices})
    for at, choice in enumerate(question.choices):
        words = _words(choice)
        pairs = [f"{a}&{b}" for a in sorted(set(question_words)) for b in sorted(set(words))]
        rank = lengths.index(len(choice)) / max(1, len(lengths) - 1)
        yield [*words, *pairs, f"place={at}", f"length={rank:.1f}", f"shared={len(set(question_words) & set(words))}"]


def words_in(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _words(text: str) -> list[str]:
    words = words_in(text)
    return words + [f"{a} {b}" for a, b in pairwise(words)]


def _prior_scores(questions: Sequence[TextQuestion], labels: Sequence[str] | None = None) -> list[NDArray[np.float64]]:
    """Score of each choice of each question: how often its text was right, of the times it stood in other videos.

    With `labels` only questions of the same label count, and the same fraction for the choice's place (first,
    second, ...) is added. Each fraction is smoothed by one more choice, which is right as often as all choices are.
    """
    times_shown: Counter[tuple[str, ...]] = Counter()
    times_right: Counter[tuple[str, ...]] = Counter()
    keys = [
        [((label, choice), *([(label, f"place {at}")] if labels else [])) for at, choice in enumerate(question.choices)]
        for question, label in zip(questions, labels or [""] * len(questions), strict=True)
    ]
    for question, question_keys in zip(questions, keys, strict=True):
        for at, choice_keys in enumerate(question_keys):
            for key in choice_keys:
                for video_id in ("", question.video_id):
                    times_shown[(video_id, *key)] += 1
                    times_right[(video_id, *key)] += at in question.correct
    base_rate = sum(len(q.correct) for q in questions) / sum(len(q.choices) for q in questions)

    def fraction(key: tuple[str, ...], video_id: str) -> float:
        count = times_shown[("", *key)] - times_shown[(video_id, *key)]
        return (times_right[("", *key)] - times_right[(video_id, *key)] + base_rate) / (count + 1)

    return [
        np.array([sum(fraction(key, question.video_id) for key in choice_keys) for choice_keys in question_keys])
        for question, question_keys in zip(questions, keys, strict=True)
    ]


def guessable_indices(questions: Sequence[TextQuestion], ceiling: float | None = None) -> list[int]:
    """Indices of questions to leave out, so that no guesser beats chance any more (p < .05), or `ceiling` where it
    is given: those that are guessed, as many as are too many, round by round.

    Args:
        ceiling: accuracy, 0 to 1, that a guesser may reach.
    """
    kept_indices = list(range(len(questions)))
    while kept_indices:
        kept_questions = [questions[at] for at in kept_indices]
        # What a cheaper guesser makes us leave out the dearer ones need not look at.
        excess = next(filter(None, (_excess(kept_questions, guesser, ceiling) for guesser in GUESSERS)), frozenset())
        if not excess:
            break
        kept_indices = [at for number, at in enumerate(kept_indices) if number not in excess]
    return sorted(set(range(len(questions))) - set(kept_indices))


def _excess(questions: Sequence[TextQuestion], guesser: Guesser, ceiling: float | None) -> frozenset[int]:
    """Guessed questions beyond what chance, or the ceiling, allows; the last ones first."""
    guesses = guess(questions, guesser)
    if guesses is None or (guesses.accuracy <= ceiling if ceiling is not None else guesses.p_value >= 0.05):
        return frozenset()
    allowed = guesses.chance if ceiling is None else ceiling
    count = max(1, int((guesses.accuracy - allowed) * len(questions)))
    certain = [at for at in reversed(range(len(questions))) if guesses.credit[at] >= 1]
    return frozenset(certain[:count] or [len(questions) - 1])
