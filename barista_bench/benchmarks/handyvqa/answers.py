"""Letters in an answer, read in two ways: as the released script does, and by the format that the prompt asks for.

Released: any letter before a closing bracket anywhere in the text is one if it has an option, in alphabetical order
(`metrics.choice_accuracy.handyvqa_letters`). Strict: only lines that begin with a bracketed capital count, and an
answer that names a letter without an option, or another option's text behind a letter, is none.

Models that score the options (`choices.read_scores`) choose those with the highest score, in both readings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from barista_bench.benchmarks.handyvqa.records import letters
from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.choice_scores import read_scores
from barista_bench.core.task import Fields, ParseError, Prediction
from barista_bench.metrics.choice_accuracy.handyvqa import handyvqa_letters

_LABEL = re.compile(r"\(([A-Z])\)")


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer.

    Args:
        released: the letters that the released script reads, capitals in alphabetical order; one at least.
        strict: those of the strict reading in the order of the answer, all with an option; None for none.
        scores: one an option, of models that score.
    """

    released: tuple[str, ...]
    strict: tuple[str, ...] | None
    scores: tuple[float, ...] | None = None

    @classmethod
    def of(cls, prediction: Prediction) -> Reading:
        """The inverse of `parse_letters`."""
        value = cast("Mapping[str, Sequence[object] | None]", prediction.value)
        strict, scores = value["strict"], value["scores"]
        return cls(
            tuple(map(str, value["released"] or ())),
            None if strict is None else tuple(map(str, strict)),
            None if scores is None else tuple(float(cast("float", score)) for score in scores),
        )


def parse_letters(text: str, options: Sequence[str]) -> Prediction | ParseError:
    """Read an answer to a question with these options. Where the released script finds none of them, there is none."""
    labels = letters(len(options))
    scores = read_scores(text, labels)
    if scores is not None:
        best = max(scores.values())
        chosen = [label for label in labels if scores[label] == best]
        return _prediction(chosen, chosen, [scores[label] for label in labels])
    text = text[:MAX_ANSWER]
    released = [letter.upper() for letter in handyvqa_letters(text, len(options))]
    if not released:
        return ParseError("no letter of an option before a closing bracket")
    return _prediction(released, strict_letters(text, options), None)


def _prediction(released: list[str], strict: Sequence[str] | None, scores: list[float] | None) -> Prediction:
    value: Fields = {"released": released, "strict": None if strict is None else list(strict), "scores": scores}
    return Prediction(value)


def strict_letters(text: str, options: Sequence[str]) -> tuple[str, ...] | None:
    """The letters of the lines `(A) text of the option`, each once; None where there is none, or one is wrong.

    >>> strict_letters("(B) a cup", ["a jug", "a cup"])
    ('B',)
    >>> strict_letters("It is b).", ["a jug", "a cup"]), strict_letters("(A) a cup", ["a jug", "a cup"])
    (None, None)
    """
    plain = [option.strip().casefold() for option in options]
    labels = letters(len(options))
    chosen: dict[str, None] = {}
    for line in text.splitlines():
        label = _LABEL.match(line.strip())
        if not label:
            continue
        letter, said = label[1], line.strip()[label.end() :].strip().casefold()
        if letter not in labels or (said and said in plain and said != plain[labels.index(letter)]):
            return None
        chosen[letter] = None
    return tuple(chosen) or None


def written(labels: Sequence[str], options: Sequence[str]) -> str:
    """An answer in the format that the prompt asks for, a line an option."""
    texts = dict(zip(letters(len(options)), options, strict=True))
    return "\n".join(f"({label}) {texts[label]}" for label in labels)
