"""Check the laws of aids: aids suffice for an answer, and a program that only copies them gains nothing."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from statistics import fmean, stdev

from barista_bench.aids.levels import LevelName, Part
from barista_bench.aids.task_aids import Aid, aids_of
from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks.kinds.text import TextTask
from barista_bench.benchmarks.lexical import content_words
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example, Prediction
from barista_bench.core.task import Task
from barista_bench.testing.laws import LawError

Reasoner = Callable[[Task, Example, Sequence[Part]], str]
"""A function that answers an example from the parts of aids and the truth about the asked level."""
MOST_GAINED = 0.02
ENOUGH = 500
"""Minimum number of examples for `upper_limit` to use a 95 % limit."""
_LINE = re.compile(r"- (?P<words>.*?)(?: (?P<box>\[[^]]*\]))? \((?:at|from) .*\)")


def check_aid_laws(book: AidBook, examples: Sequence[Example], reason: Reasoner | None, least: float = 0.9999) -> None:
    """Check the laws of the aids of one task.

    The reasoner gets all aids that a question needs. Copiers get every set of admitted aids. They are not checked for
    tasks with free text: if only words are compared, aids supply words.

    Args:
        reason: an exact reasoner. None if no answer follows only from facts, for example if annotators chose a label.
        least: minimum mean score of the reasoner.

    Raises:
        LawError: an aid gives the asked level, the reasoner errs, or a copier gains.
    """
    task, aids = book.task, aids_of(book.task)
    name = f"{task.benchmark}/{task.name}"
    for level in aids.admitted:
        if aids.asks(level):
            raise LawError(f"{name}: the aid {level} gives the level that the task asks. Fix: do not admit it")
    if reason is not None:
        score = fmean(reasoner_scores(book, examples, reason))
        if score < least:
            raise LawError(f"{name}: an exact reasoner scores {score:.4f}. Fix: tell all facts that the answer needs")
    if isinstance(task, TextTask):
        return
    for (told, copier), gains in copier_gains(book, examples).items():
        high = upper_limit(gains)
        if high > MOST_GAINED:
            gained = f"copier {copier} gains {high:.3f} of {'+'.join(told)}"
            raise LawError(f"{name}: {gained}. Fix: tell it in another form")


def reasoner_scores(book: AidBook, examples: Sequence[Example], reason: Reasoner) -> Iterator[float]:
    """Yield the score of the answer that follows from all aids of each example."""
    for example in examples:
        aids = [Aid(level) for level in aids_of(book.task).needed_levels(example)]
        parts = book.parts(example, aids, DEFAULT_BOX_FORMAT) or ()
        yield _score(book.task, example, reason(book.task, example, parts))


def copier_gains(book: AidBook, examples: Sequence[Example]) -> dict[tuple[tuple[LevelName, ...], str], list[float]]:
    """Map (levels, copier) to the gains of true aids over inert aids, one number per example."""
    gains: dict[tuple[tuple[LevelName, ...], str], list[float]] = defaultdict(list)
    for example in examples:
        levels = book.levels(example, aids_of(book.task).admitted)
        for told in (some for size in range(1, len(levels) + 1) for some in combinations(levels, size)):
            answers = []
            for kind in ("true", "inert"):
                aids = [Aid(level, kind) for level in told]
                answers.append(copied_answers(book.task, example, book.text(example, aids, DEFAULT_BOX_FORMAT) or ""))
            for copier, true in answers[0].items():
                scores = [_score(book.task, example, answer) for answer in (true, answers[1][copier])]
                gains[told, copier].append(scores[0] - scores[1])
    return gains


def upper_limit(gains: Sequence[float]) -> float:
    """Return the upper 95 % limit of a mean gain.

    With fewer than `ENOUGH` examples, return the sum without the largest gain, divided by the number of all examples.

    >>> upper_limit([1.0, 0.0, 0.0]), upper_limit([1.0, 1.0, 0.0, 0.0])
    (0.0, 0.25)
    """
    if len(gains) < ENOUGH:
        return (sum(gains) - max(gains)) / len(gains)
    return fmean(gains) + 1.96 * stdev(gains) / math.sqrt(len(gains))


def _score(task: Task, example: Example, text: str) -> float:
    parsed = task.parse(text, example.inputs, DEFAULT_BOX_FORMAT)
    return task.score(example, parsed if isinstance(parsed, Prediction) else None)[task.sample_score]


def copied_answers(task: Task, example: Example, text: str) -> dict[str, str]:
    """Return the answers of literal copiers by name.

    They copy the first, the last or the most frequent item, or the option with the most words in common.
    """
    lines = [match for line in text.splitlines() if (match := _LINE.fullmatch(line))]
    items = [re.sub(r"^(mark|item)? ?\d+: ", "", match["words"]) for match in lines]
    frequent = Counter(items).most_common(1)[0][0] if items else ""
    copied = {"first": items[0] if items else "", "last": items[-1] if items else "", "frequent": frequent}
    if choices := task.choices(example):

        def nearest(words: str) -> str:
            counts = Counter(content_words(words))
            return max(choices, key=lambda label: sum(counts[word] for word in set(content_words(choices[label]))))

        items_and_text = {**copied, "overlap": text}.items()
        return {name: task.answer_text([nearest(item)], example) for name, item in items_and_text}  # type: ignore[attr-defined]
    if isinstance(task, TextTask):
        return {name: f"Answer: {item}" for name, item in {**copied, "all": " ".join(items)}.items()}
    box_of = {item: json.loads(match["box"]) for item, match in zip(items, lines, strict=True) if match["box"]}
    return {name: aids_of(task).copied_answer(example, item, box_of) for name, item in copied.items()}
