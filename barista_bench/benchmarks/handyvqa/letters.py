"""Read and write the letters of options in answers to HanDyVQA's multiple-choice questions.

Letters in an answer to a question of the release are read in two ways. In the released reading, any letter before a
closing bracket anywhere in the text counts if the letter has an option. Letters are in alphabetical order
(`metrics.choice_accuracy.handyvqa_letters`). In the strict reading, only lines that begin with a bracketed capital
count. An answer is then unreadable if it names a letter without an option, or has another option's text after a letter.

Answers to your own questions are read plainly (`kinds/choice_reading.py`), and this is then also the strict reading.
The option `reading` selects the released or the plain reading for all questions.

In every reading, models that score the options (`read_scores` of `core/example.py`) choose the option with the highest
score.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from barista_bench.benchmarks.kinds.choice import NO_CHOICE
from barista_bench.benchmarks.kinds.choice_reading import read_choices
from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.example import ParseError, Prediction, TypedFields, read_scores
from barista_bench.core.options import Option
from barista_bench.metrics.choice_accuracy.inputs import handyvqa_letters

RELEASED, PLAIN = "released", "plain"
READING = Option(
    default=None,
    help=(
        "how to read an answer's letter: as the released script does, or with the reader of all other "
        "sets; by default, the source of the question decides"
    ),
    changes="scores",
    choices=(RELEASED, PLAIN),
    kind=str,
)
_LABEL = re.compile(r"\(([A-Z])\)")


class LetterReading(TypedFields):
    """One parsed answer.

    `letters` are the counted letters, in alphabetical order. `strict` are the letters of the strict reading, in the
    order of the answer; each has an option. `strict` is None for an unreadable answer. `scores` has one score per
    option, for models that score.
    """

    letters: list[str]
    strict: list[str] | None = None
    scores: list[float] | None = None

    @classmethod
    def of(cls, prediction: Prediction | None) -> LetterReading:
        """Return the letters of a prediction; empty for an unreadable answer."""
        return cls([]) if prediction is None else cls.read(prediction.value)


def letters(count: int) -> Sequence[str]:
    """Return the labels of `count` options: A, B, ..., Z, then 27, 28, .... These numbers are never read as other
    letters.
    """
    return [*ascii_uppercase[:count], *map(str, range(len(ascii_uppercase) + 1, count + 1))]


def parse_letters(text: str, options: Sequence[str], reading: str, *, several: bool) -> Prediction | ParseError:
    """Read an answer to a question with these options, of which one or, with `several`, more may be right.

    `reading` is `RELEASED` or `PLAIN`. With `RELEASED`, only letters that the released script finds count.
    """
    labels = letters(len(options))
    scores = read_scores(text, labels)
    if scores is not None:
        highest = max(scores.values())
        best_labels = [label for label in labels if scores[label] == highest]
        return Prediction(LetterReading(best_labels, best_labels, [scores[label] for label in labels]).write())
    if reading == PLAIN:
        answer = read_choices(text, dict(zip(labels, options, strict=True)), several=several)
        named = sorted(answer.labels, key=labels.index) if answer else []
        return Prediction(LetterReading(named, named).write()) if named else NO_CHOICE
    text = text[:MAX_ANSWER]
    released = [letter.upper() for letter in handyvqa_letters(text, len(options))]
    if not released:
        return ParseError("no letter of an option before a closing bracket")
    return Prediction(LetterReading(released, strict_letters(text, options)).write())


def strict_letters(text: str, options: Sequence[str]) -> list[str] | None:
    """Return the letters of the lines `(A) text of the option`, each once; None if no letter is found or one is
    wrong.
    """
    texts = [option.strip().casefold() for option in options]
    labels = letters(len(options))
    named_letters: dict[str, None] = {}
    for line in map(str.strip, text.splitlines()):
        label = _LABEL.match(line)
        if not label:
            continue
        letter, rest = label[1], line[label.end() :].strip().casefold()
        if letter not in labels or (rest and rest in texts and rest != texts[labels.index(letter)]):
            return None
        named_letters[letter] = None
    return list(named_letters) or None


def write_letters(labels: Sequence[str], options: Sequence[str]) -> str:
    """Write an answer in the format of the prompt, one line per option."""
    texts = dict(zip(letters(len(options)), options, strict=True))
    return "\n".join(f"({label}) {texts[label]}" for label in labels)
