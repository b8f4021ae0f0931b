"""How HanDyVQA (arXiv 2512.00885) reads answers and scores them, as its public evaluation script does.

Its options are lettered from a. Only a letter before a closing bracket counts: "A." or a bare "A" is no answer,
and any letter before a bracket in running text is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from .inputs import as_column
from .multiple import multi_answer
from .scoring import choice_accuracy

_LETTER = re.compile(r"\(?([a-z])\)")


def handyvqa_letters(text: str) -> list[str]:
    """The letters that a model's output names, each once, in alphabetical order.

    >>> handyvqa_letters("(C) the cup, and (A). Not d), no")
    ['a', 'c', 'd']
    >>> handyvqa_letters("A. The cup")
    []
    """
    if not isinstance(text, str):
        raise TypeError(f"text: is {text!r} ({type(text).__name__}); give the model's output as a string")
    return sorted(set(_LETTER.findall(text.strip().lower().replace(".", ""))))


def handyvqa_answer(text: str) -> str | None:
    """The answer to a question with one right option: the first letter of the alphabet that is named, or None.

    >>> handyvqa_answer("(b) rather than (a)"), handyvqa_answer("no idea")
    ('a', None)
    """
    return next(iter(handyvqa_letters(text)), None)


def handyvqa_option_scores(text: str, n_options: int) -> list[int]:
    """Of each of the `n_options` options, 1 if the output names it, else 0; letters beyond the last are dropped.

    >>> handyvqa_option_scores("(a), (c) and (z)", 5)
    [1, 0, 1, 0, 0]
    """
    letters = handyvqa_letters(text)
    return [int(letter in letters) for letter in _option_letters(n_options, "n_options")]


def handyvqa_accuracy(outputs: Sequence[str | None], correct: Sequence[int]) -> dict[str, Any]:
    """Score questions with one right option; `correct` holds its index, from 0. None: the model gave no output.

    The result is that of `choice_accuracy`. The public script runs without unanswered questions, which is
    `accuracy_on_parsed`; `accuracy` counts them as wrong. An answer beyond the last option is an answer, and wrong.

    >>> result = handyvqa_accuracy(["(B)", "(a)", "it is c"], [1, 1, 2])
    >>> round(result["accuracy"], 3), result["accuracy_on_parsed"], result["n_failed"]
    (0.333, 0.5, 1)
    """
    texts, indices = as_column(outputs, "outputs"), as_column(correct, "correct")
    answers = [None if text is None else handyvqa_answer(text) for text in texts]
    return choice_accuracy(answers, [_letter(index, f"correct[{i}]") for i, index in enumerate(indices)])


def handyvqa_average_precision(
    outputs: Sequence[str | None], correct: Sequence[Sequence[int]], n_options: Sequence[int]
) -> dict[str, Any]:
    """Score questions with several right options; `correct` holds their indices, from 0. None: no output.

    The result is that of `multi_answer`. The public script runs without unanswered questions, which is
    `average_precision_on_parsed`; `average_precision` counts them as choosing nothing.

    >>> result = handyvqa_average_precision(["(a) and (b)", "none"], [[0], [2]], [4, 4])
    >>> result["average_precision"], result["average_precision_on_parsed"]
    (0.375, 0.5)
    """
    texts, indices = as_column(outputs, "outputs"), as_column(correct, "correct")
    options = [_option_letters(n, f"n_options[{i}]") for i, n in enumerate(as_column(n_options, "n_options"))]
    if not len(texts) == len(indices) == len(options):
        raise ValueError(
            f"there are {len(texts)} outputs and {len(options)} numbers of options for {len(indices)} entries of "
            "correct; give one of each per question"
        )
    answers = []
    for text, known in zip(texts, options, strict=True):
        letters = [] if text is None else handyvqa_letters(text)
        # A question is answered as soon as a letter is named, even if no option has it.
        answers.append([letter for letter in letters if letter in known] if letters else None)
    truths = [
        [_letter(index, f"correct[{i}]") for index in as_column(row, f"correct[{i}]")] for i, row in enumerate(indices)
    ]
    return multi_answer(answers, truths, options)


def _option_letters(n_options: object, where: str) -> list[str]:
    if isinstance(n_options, bool) or not isinstance(n_options, int) or not 1 <= n_options <= len(ascii_lowercase):
        raise ValueError(f"{where}: is {n_options!r}; give the number of options, 1 to {len(ascii_lowercase)}")
    return list(ascii_lowercase[:n_options])


def _letter(index: object, where: str) -> str:
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(ascii_lowercase):
        raise ValueError(f"{where}: is {index!r}; give the index of the right option, from 0")
    return ascii_lowercase[index]
