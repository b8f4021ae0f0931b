"""Letters in an answer, read in two ways: as the released script does, and by the format that the prompt asks for.

Released: any letter before a closing bracket anywhere in the text counts if it has an option, in alphabetical order
(`metrics.choice_accuracy.handyvqa_letters`). Strict: only lines that begin with a bracketed capital count, and an
answer that names a letter without an option, or another option's text behind a letter, is none.

Models that score the options (`core.example.read_scores`) choose those with the highest score, in both readings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.example import TypedFields, read_scores
from barista_bench.core.task import ParseError, Prediction
from barista_bench.metrics.choice_accuracy.inputs import handyvqa_letters

_LABEL = re.compile(r"\(([A-Z])\)")


class LetterReading(TypedFields):
    """One parsed answer.

    `released` are the letters that the released script reads, capitals in alphabetical order; `strict` those of the
    strict reading in the order of the answer, all with an option, None for none; `scores` one an option, of models that
    score.
    """

    released: list[str]
    strict: list[str] | None = None
    scores: list[float] | None = None

    @classmethod
    def of(cls, prediction: Prediction | None) -> LetterReading:
        """What was read; nothing of an answer that cannot be read."""
        return cls([]) if prediction is None else cls.read(prediction.value)


def letters(count: int) -> Sequence[str]:
    """The labels of `count` options: A, B, ..., Z, then 27, 28, ..., which cannot be read as letters of others."""
    return [*ascii_uppercase[:count], *map(str, range(len(ascii_uppercase) + 1, count + 1))]


def parse_letters(text: str, options: Sequence[str]) -> Prediction | ParseError:
    """Read an answer to a question with these options. Where the released script finds none of them, there is none."""
    labels = letters(len(options))
    scores = read_scores(text, labels)
    if scores is not None:
        highest = max(scores.values())
        best = [label for label in labels if scores[label] == highest]
        return Prediction(LetterReading(best, best, [scores[label] for label in labels]).write())
    text = text[:MAX_ANSWER]
    released = [letter.upper() for letter in handyvqa_letters(text, len(options))]
    if not released:
        return ParseError("no letter of an option before a closing bracket")
    return Prediction(LetterReading(released, strict_letters(text, options)).write())


def strict_letters(text: str, options: Sequence[str]) -> list[str] | None:
    """The letters of the lines `(A) text of the option`, each once; None where there is none, or one is wrong.

    >>> strict_letters("(B) a cup", ["a jug", "a cup"])
    ['B']
    >>> strict_letters("It is b).", ["a jug", "a cup"]), strict_letters("(A) a cup", ["a jug", "a cup"])
    (None, None)
    """
    texts = [option.strip().casefold() for option in options]
    labels = letters(len(options))
    chosen: dict[str, None] = {}
    for line in map(str.strip, text.splitlines()):
        label = _LABEL.match(line)
        if not label:
            continue
        letter, rest = label[1], line[label.end() :].strip().casefold()
        if letter not in labels or (rest and rest in texts and rest != texts[labels.index(letter)]):
            return None
        chosen[letter] = None
    return list(chosen) or None


def write_letters(labels: Sequence[str], options: Sequence[str]) -> str:
    """An answer in the format that the prompt asks for, a line an option."""
    texts = dict(zip(letters(len(options)), options, strict=True))
    return "\n".join(f"({label}) {texts[label]}" for label in labels)
