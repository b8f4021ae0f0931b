"""Check the metric's input for a question, and convert it to plain strings.

The id of a choice is a string or an integer. Surrounding white space is ignored, and an integer equals its digits: 3
and "3" are the same choice. Case matters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from string import ascii_lowercase
from typing import Any, NamedTuple

_LETTER = re.compile(r"\(?([a-z])\)")
RawId = str | int
# The ids of a question's choices, or a dict from id to the verb of its label (None for a label without a verb).
RawChoices = Sequence[RawId] | Mapping[RawId, str | None]


class ChoiceQuestion(NamedTuple):
    """A question with one right choice. Fields that were not given are None."""

    prediction: str | None
    reference: str
    class_name: str | None = None
    verb: str | None = None
    choices: dict[str, str | None] | None = None


def as_id(raw: object, where: str, remedy: str = "give a non-empty string or an integer") -> str:
    """Return the id of a choice (or the name of a class) as text. Raises TypeError or ValueError starting with `where`.

    >>> as_id(" A ", "references[0]"), as_id(3, "references[1]")
    ('A', '3')
    >>> as_id(2.5, "predictions[7]")
    Traceback (most recent call last):
        ...
    TypeError: predictions[7]: is 2.5 (float); give a non-empty string or an integer
    """
    value = raw
    if getattr(raw, "ndim", None) == 0 and hasattr(raw, "item"):  # a numpy or torch scalar
        value = raw.item()
    # bool is an int in Python, but not a valid name.
    if isinstance(value, bool) or not isinstance(value, str | Integral):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); {remedy}")
    text = value.strip() if isinstance(value, str) else str(int(value))
    if not text:
        raise ValueError(f"{where}: is {raw!r}, which is empty; {remedy}")
    return text


def as_column(raw: object, name: str) -> list[Any]:
    """Return a list, tuple, array, tensor or dataset column as a list. Raises a TypeError that names the column.

    >>> as_column("ABC", "predictions")
    Traceback (most recent call last):
        ...
    TypeError: predictions: is of type str; give a list with one entry per question
    """
    if not isinstance(raw, str | bytes | Mapping):
        if isinstance(raw, Sequence):
            return list(raw)
        values = raw.tolist() if hasattr(raw, "tolist") else None
        if isinstance(values, list):
            return values
    raise TypeError(f"{name}: is of type {type(raw).__name__}; give a list with one entry per question")


def as_choices(raw: object, where: str) -> dict[str, str | None] | None:
    """Return a question's choices as {id: verb or None}. Raises a TypeError or ValueError that starts with `where`.

    >>> as_choices({"A": "Open", "B": None}, "choices[0]"), as_choices([1, 2], "choices[1]")
    ({'A': 'open', 'B': None}, {'1': None, '2': None})
    """
    if raw is None:
        return None
    if isinstance(raw, Mapping):
        pairs: list[tuple[object, object]] = list(raw.items())
    elif isinstance(raw, str | bytes) or not (isinstance(raw, Sequence) or hasattr(raw, "tolist")):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list of ids or a dict from id to verb")
    else:
        pairs = [(choice, None) for choice in as_column(raw, where)]
    choices = {as_id(choice, f"{where}: a choice"): as_verb(verb, where) for choice, verb in pairs}
    if not choices or len(choices) < len(pairs):
        problem = "is empty" if not choices else f"holds an id twice: {[choice for choice, _ in pairs]!r}"
        raise ValueError(f"{where}: {problem}; give each choice of the question once")
    return choices


def as_verb(raw: object, where: str) -> str | None:
    """Return a verb without case and surrounding white space, for comparison. None stays None."""
    return None if raw is None else as_id(raw, f"{where}: a verb", "give it as a non-empty string").casefold()


def as_questions(
    predictions: object, references: object, classes: object = None, verbs: object = None, choices: object = None
) -> list[ChoiceQuestion]:
    """Check the columns and return one record per question.

    The last three columns and their entries may be None. Raises TypeError or ValueError. The message names the column,
    the index, the fault and the remedy.

    >>> as_questions(["A", None], ["A", "B"], verbs=["open", None])[0]
    ChoiceQuestion(prediction='A', reference='A', class_name=None, verb='open', choices=None)
    """
    answers, expected = as_column(predictions, "predictions"), as_column(references, "references")
    if len(answers) != len(expected):
        raise ValueError(
            f"there are {len(answers)} predictions for {len(expected)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    columns = [answers, expected]
    for name, raw in (("classes", classes), ("verbs", verbs), ("choices", choices)):
        columns.append([None] * len(expected) if raw is None else as_column(raw, name))
        if len(columns[-1]) != len(expected):
            raise ValueError(
                f"{name}: has {len(columns[-1])} entries for {len(expected)} references; "
                "give one per reference, or None"
            )
    return [_question(index, *row) for index, row in enumerate(zip(*columns, strict=True))]


_ANSWER_REMEDY = "give the id of the chosen choice, None for no usable answer"
_CLASS_REMEDY = "give the name of the class as a string, or None for no class"


def _question(
    index: int, answer: object, truth: object, name: object, own_verb: object, options: object
) -> ChoiceQuestion:
    """Build one question. The choices must contain its ids, and the verb of the right choice becomes its verb."""
    prediction = None if answer is None else as_id(answer, f"predictions[{index}]", _ANSWER_REMEDY)
    reference = as_id(truth, f"references[{index}]", "give the id of the right choice")
    class_name = None if name is None else as_id(name, f"classes[{index}]", _CLASS_REMEDY)
    verb = as_verb(own_verb, f"verbs[{index}]")
    choices = as_choices(options, f"choices[{index}]")
    if choices is None:
        return ChoiceQuestion(prediction, reference, class_name, verb)
    if reference not in choices:
        raise ValueError(f"references[{index}]: {reference!r} is not among choices[{index}], {list(choices)}; add it")
    if prediction is not None and prediction not in choices:
        raise ValueError(
            f"predictions[{index}]: {prediction!r} is not among choices[{index}], {list(choices)}; "
            "give None for an answer that names no choice"
        )
    choice_verb = choices[reference]
    if verb is not None and choice_verb is not None and verb != choice_verb:
        raise ValueError(
            f"verbs[{index}]: is {verb!r}, but choices[{index}] has {choice_verb!r} for the right choice; give one verb"
        )
    return ChoiceQuestion(prediction, reference, class_name, choice_verb if verb is None else verb, choices)


def handyvqa_letters(text: str, n_options: int) -> list[str]:
    """Return the letters of options (from a) that a model's output names.

    Each letter occurs once, in alphabetical order.

    Answers are read as in the public script of HanDyVQA (arXiv 2512.00885). Only a letter before a closing bracket
    counts, so "A." or a bare "A" is not an answer. Any such letter in running text is an answer if an option has this
    letter. Options beyond z can be right, but an answer cannot name them. Raises TypeError.

    >>> handyvqa_letters("(C) the cup, and (A). Not d), no (option)", 5)
    ['a', 'c', 'd']
    >>> handyvqa_letters("A. The cup", 5)
    []
    """
    if not isinstance(text, str):
        raise TypeError(f"text: is {text!r} ({type(text).__name__}); give the model's output as a string")
    letters = ascii_lowercase[:n_options]
    return sorted(set(_LETTER.findall(text.strip().lower().replace(".", ""))) & set(letters))
