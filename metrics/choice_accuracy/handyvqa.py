"""How HanDyVQA (arXiv 2512.00885) reads answers and scores them, as its public evaluation script does.

Its options are lettered from a. Only a letter before a closing bracket counts: "A." or a bare "A" is no answer,
and any letter before a bracket in running text is one, if there is an option of that letter. Options beyond z can be
right, but no answer names them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from .inputs import as_column
from .multiple import MultiQuestion, multi_figures_of
from .scoring import choice_accuracy

_LETTER = re.compile(r"\(?([a-z])\)")


def handyvqa_letters(text: str, n_options: int) -> list[str]:
    """The letters of options that a model's output names, each once, in alphabetical order.

    >>> handyvqa_letters("(C) the cup, and (A). Not d), no (option)", 5)
    ['a', 'c', 'd']
    >>> handyvqa_letters("A. The cup", 5)
    []
    """
    if not isinstance(text, str):
        raise TypeError(f"text: is {text!r} ({type(text).__name__}); give the model's output as a string")
    known = ascii_lowercase[: _count(n_options, "n_options")]
    return sorted(set(_LETTER.findall(text.strip().lower().replace(".", ""))) & set(known))


def handyvqa_answer(text: str, n_options: int) -> str | None:
    """The answer to a question with one right option: the first letter of the alphabet that is named, or None.

    >>> handyvqa_answer("(b) rather than (a)", 5), handyvqa_answer("(f)", 5)
    ('a', None)
    """
    return next(iter(handyvqa_letters(text, n_options)), None)


def handyvqa_option_scores(text: str, n_options: int) -> list[int]:
    """Of each of the `n_options` options, 1 if the output names it, else 0.

    >>> handyvqa_option_scores("(a), (c) and (z)", 5)
    [1, 0, 1, 0, 0]
    """
    letters = handyvqa_letters(text, n_options)
    return [int(ascii_lowercase[place : place + 1] in letters) for place in range(n_options)]


def handyvqa_accuracy(
    outputs: Sequence[str | None], correct: Sequence[int], n_options: Sequence[int]
) -> dict[str, Any]:
    """Score questions with one right option; `correct` holds its index, from 0. None: the model gave no output.

    The result is that of `choice_accuracy`. The public script runs without unanswered questions, which is
    `accuracy_on_parsed`; `accuracy` counts them as wrong. Where the index is that of no option, every answer is wrong.

    >>> result = handyvqa_accuracy(["(B)", "(a)", "it is c", "(f)"], [1, 1, 2, 5], [5, 5, 5, 5])
    >>> result["accuracy"], result["accuracy_on_parsed"], result["n_failed"]
    (0.25, 0.5, 2)
    """
    rows = _questions(outputs, correct, n_options)
    answers = [None if text is None else handyvqa_answer(text, count) for text, _, count in rows]
    places = [None if answer is None else ascii_lowercase.index(answer) for answer in answers]
    return choice_accuracy(places, [_index(index, f"correct[{i}]") for i, (_, index, _) in enumerate(rows)])


def handyvqa_average_precision(
    outputs: Sequence[str | None], correct: Sequence[Sequence[int]], n_options: Sequence[int]
) -> dict[str, Any]:
    """Score questions with several right options; `correct` holds their indices, from 0. None: no output.

    The result is that of `multi_answer`. The public script runs without unanswered questions, which is
    `average_precision_on_parsed`; `average_precision` counts them as choosing nothing. An index that is that of no
    option counts for nothing, and a question may have no right option at all.

    >>> result = handyvqa_average_precision(["(a) and (b)", "none"], [[0], [2]], [4, 4])
    >>> result["average_precision"], result["average_precision_on_parsed"]
    (0.375, 0.5)
    """
    questions = []
    for number, (text, indices, count) in enumerate(_questions(outputs, correct, n_options)):
        where = f"correct[{number}]"
        right = {_index(index, where) for index in as_column(indices, where)}
        letters = [] if text is None else handyvqa_letters(text, count)
        named = [str(ascii_lowercase.index(letter)) for letter in letters]
        reference = [str(place) for place in range(count) if place in right]
        questions.append(MultiQuestion(named or None, reference, [str(place) for place in range(count)]))
    return multi_figures_of(questions)


def _questions(outputs: object, correct: object, n_options: object) -> list[tuple[Any, Any, int]]:
    """(output, right, number of options) of each question."""
    texts, right = as_column(outputs, "outputs"), as_column(correct, "correct")
    counts = [_count(count, f"n_options[{i}]") for i, count in enumerate(as_column(n_options, "n_options"))]
    if not len(texts) == len(right) == len(counts):
        raise ValueError(
            f"there are {len(texts)} outputs and {len(counts)} numbers of options for {len(right)} entries of "
            "correct; give one of each per question"
        )
    return list(zip(texts, right, counts, strict=True))


def _count(n_options: object, where: str) -> int:
    if isinstance(n_options, bool) or not isinstance(n_options, int) or n_options < 1:
        raise ValueError(f"{where}: is {n_options!r}; give the number of options, 1 or more")
    return n_options


def _index(index: object, where: str) -> int:
    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"{where}: is {index!r} ({type(index).__name__}); give the index of the right option, from 0")
    return index
