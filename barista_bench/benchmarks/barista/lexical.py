"""`lexical`: how many content words an answer shares with a reference, without any model.

A floor, not the published score. The paper's figures for referring and temporal VQA come from a language model as judge
(G-Eval), which understands paraphrase, negation and who does what to whom; counting shared words does not. Figures are
therefore called `lexical_*`, and they must never be reported as the paper's Correctness, Accuracy or Completeness.

Words are case-folded runs of letters and digits; stop words are dropped; plural and third-person endings are cut; words
are matched as multisets. Shares run from 0 to 1.

`LexicalTask` is what tasks with free-text answers share: scores, explanations and failures by words alone.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE
from barista_bench.benchmarks.explanations import explanation
from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.deriving import GraphTask
from barista_bench.core.failures import FailureKind
from barista_bench.core.statistics import Figures, Row, Sums, SumStatistics, share
from barista_bench.core.task import (
    AnswerFailure,
    Example,
    Explanation,
    Prediction,
    Scored,
)
from barista_bench.scene_graph.domain import load_domain

_WORD = re.compile(r"[^\W_]+")
# Function words. Words of place and number (on, under, inside, no, left, right, open) say something and stay.
_FUNCTION_WORDS = """
a an the this that these those it its they them their there here he she his her i you your we one ones of to at by for
from with as and or but while which who whose what how is are was were be been being am do does did done has have had
having can will would could should may might also so such very both each other another some any all s appears appear
seems seem visible seen see sees shown show shows showing described description object objects thing things
"""
# What answers about a clip say whatever happens in it. What begins and ends is asked for, so those words stay.
_CLIP_WORDS = """
clip video frame frames image images scene sequence moment moments time times course order given beginning first last
then next after before later finally initially during through throughout over between until when now longer nothing
across compared comparing watching following answer change changes changed
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split()) | frozenset(_CLIP_WORDS.split())
"""Words that carry nothing to compare."""

_SAME = {"held": "hold", "opened": "open", "closed": "close", "began": "begin", "begun": "begin"}
_SAME |= {"ended": "end", "started": "start", "stopped": "stop", "touched": "touch", "gray": "grey"}
_NUMBERS = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
}


class Overlap(NamedTuple):
    precision: float
    recall: float
    f1: float


NO_OVERLAP = Overlap(0.0, 0.0, 0.0)


def stem(word: str) -> str:
    """A word without its plural or third-person `s`: enough to match `cups` with `cup`, no more.

    >>> [stem(word) for word in ("cups", "presses", "touches", "carries", "glass", "boxes", "held")]
    ['cup', 'press', 'touch', 'carry', 'glass', 'box', 'hold']
    """
    if word in _SAME:
        return _SAME[word]
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def content_words(text: str) -> list[str]:
    """The words that count, stemmed, in the order of the text.

    >>> content_words("The white cups are on a saucer, held by 2 hands.")
    ['white', 'cup', 'on', 'saucer', 'hold', '2', 'hand']
    """
    words = (_NUMBERS.get(word, word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)
    return [stem(word) for word in words]


def overlap(answer: str, reference: str, context: str = "", asked: str = "") -> Overlap:
    """Multiset overlap of content words; all 0 where either side has none.

    Words of `context` are true as well but not asked for: they count neither for the answer nor against it. Words of
    `asked`, the question, are passed over on both sides, so that repeating the question earns nothing (unless the
    reference has no other words).

    >>> overlap("a red cup", "a white cup")
    Overlap(precision=0.5, recall=0.5, f1=0.5)
    >>> overlap("a white cup, part of a set", "a white cup", context="set: (cup part of set)").f1
    1.0
    >>> overlap("the hand touches it", "the hand touches the lid", asked="What does the hand touch?").f1
    0.0
    """
    wanted = Counter(content_words(reference))
    ignored = set(content_words(asked))
    if wanted.keys() <= ignored:
        ignored = set()
    wanted = Counter({word: count for word, count in wanted.items() if word not in ignored})
    answered = Counter(word for word in content_words(answer) if word not in ignored)
    hits = (answered & wanted).total()
    if not hits:
        return NO_OVERLAP
    wrong = (answered - wanted - Counter(content_words(context))).total()
    precision, recall = hits / (hits + wrong), hits / wanted.total()
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def is_said(text: str, answer: str) -> bool:
    """Whether every content word of `text` stands somewhere in the answer.

    >>> is_said("coffee cup under coffee machine", "A machine for coffee; under it a cup.")
    True
    """
    return set(content_words(text)) <= set(content_words(answer))


def unexpected(answer: str, *texts: str) -> list[str]:
    """Content words of the answer that none of the texts has, each once, in order.

    >>> unexpected("a red cup, red as wine", "a white cup")
    ['red', 'wine']
    """
    known = {word for text in texts for word in content_words(text)}
    return [word for word in dict.fromkeys(content_words(answer)) if word not in known]


FIGURES = {"lexical_f1": "f1", "lexical_precision": "precision", "lexical_recall": "recall"}
"""Figures, and the field of `Overlap` that each is a mean of."""


def lexical_statistics(overlaps: Sequence[Overlap | None], categories: Iterable[str]) -> SumStatistics:
    """Means over all samples, and `per_category`; None is a sample without a readable answer: 0.

    >>> result = lexical_statistics([Overlap(1.0, 1.0, 1.0), None], ["a", "b"]).published()
    >>> result["lexical_f1"], result["coverage"], result["per_category"]["b"]["support"]
    (0.5, 0.5, 1)
    """
    rows: list[Row] = []
    for overlap_or_none, category in zip(overlaps, categories, strict=True):
        score = overlap_or_none or NO_OVERLAP
        row: dict[Hashable, float] = {name: getattr(score, field) for name, field in FIGURES.items()}
        row |= {(category, name): value for name, value in row.items()}
        row |= {(category, "support"): 1.0, "n_failed": float(overlap_or_none is None)}
        rows.append(row)
    return SumStatistics(rows, _means, sample_scores={name: name for name in FIGURES}, tables=_tables)


def _means(sums: Sums) -> Figures:
    means = {name: share(sums[name], sums["n"]) for name in FIGURES}
    return {**means, "coverage": 1 - share(sums["n_failed"], sums["n"])}


def _tables(sums: Row) -> dict[str, Any]:
    support = {key[0]: count for key, count in sums.items() if isinstance(key, tuple) and key[1] == "support" and count}
    per_category = {
        category: {**{name: sums[category, name] / count for name in FIGURES}, "support": int(count)}
        for category, count in sorted(support.items())
    }
    return {"per_category": per_category, "n": int(sums["n"]), "n_failed": int(sums["n_failed"])}


def most_typical(texts: Sequence[str], passed: Collection[str] = ()) -> str:
    """The text that shares most words with all texts: the highest expected F1 of content words (`lexical.py`).

    Expected hits are divided by expected lengths, which spares comparing each text with each other one. Words of
    `passed` do not count. Of several the first in sorted order. At least one text.

    >>> most_typical(["a red cup", "a white cup on a table", "the white cup"])
    'the white cup'
    """
    times = Counter(texts)
    words = {text: Counter(word for word in content_words(text) if word not in passed) for text in times}
    having: Counter[tuple[str, int]] = Counter()
    length = 0
    for text, counts in words.items():
        length += times[text] * counts.total()
        for word in _numbered(counts):
            having[word] += times[text]

    def expected(text: str) -> float:
        count = words[text].total() * len(texts)
        return 2 * sum(having[word] for word in _numbered(words[text])) / (count + length) if count else 0.0

    return max(sorted(words), key=expected)


def _numbered(words: Counter[str]) -> list[tuple[str, int]]:
    """Every word with its first, second, ... occurrence: a multiset as a set."""
    return [(word, number) for word, count in words.items() for number in range(count)]


def labelled(text: str, label: str) -> str:
    r"""What follows the last `<label>:` that begins a line, up to that line's end; the whole text where there is none.

    The released expression is `^\s*label\s*:\s*(.+)$` without case, over lines
    (docs/upstream/barista.md). Leading white space is looked for within one line here: that finds the same answers, in
    linear time for any text.

    >>> labelled("I see a cup.\nDescription: a red cup\nBye", "description")
    'a red cup'
    >>> labelled(" A red cup. ", "description")
    'A red cup.'
    """
    text = text[:MAX_ANSWER]
    matches = re.findall(rf"^[^\S\n]*{label}\s*:\s*(.+)$", text, re.IGNORECASE | re.MULTILINE)
    return str(matches[-1] if matches else text).strip()


def after_last(text: str, marker: str) -> str:
    r"""All that follows the last `marker`, in either case, anywhere; the whole text where there is none (paper, A.3.3).

    >>> after_last("I think. answer: the lid\nwas opened.", "Answer:")
    'the lid\nwas opened.'
    """
    text = text[-MAX_ANSWER:]
    matches = list(re.finditer(re.escape(marker), text, re.IGNORECASE))
    return text[matches[-1].end() if matches else 0 :].strip()


def domain_vocabulary() -> dict[str, str]:
    """The release's 45 object categories, each with a short description: for judges and for made-up answers."""
    return load_domain().categories


class Compared(NamedTuple):
    """What an answer's words are compared with, as `lexical.overlap` takes it; words of none of it are unexpected."""

    reference: str
    context: str = ""
    asked: str = ""


class ReferenceFact(NamedTuple):
    """One thing to say.

    Args:
        text: whose content words an answer must have.
        shown: the text in explanations.
        objects: ids of those that it is about.
        replaced: the kind of failure where an answer has other words instead.
    """

    text: str
    shown: str
    objects: tuple[str, ...]
    replaced: FailureKind = "missed"


class LexicalTask(GraphTask):
    """A task whose answer is one text, the field `answer_field` of a prediction."""

    benchmark = "barista"
    primary = "lexical_f1"
    primary_note = "Mean F1 of the facts and words that answer and reference share."
    sample_score = "lexical_f1"
    prompt_package = PROMPT_PACKAGE
    answer_field: ClassVar[str]

    @abstractmethod
    def compared(self, example: Example) -> Compared:
        """The texts that an answer is compared with."""

    @abstractmethod
    def facts(self, example: Example) -> list[ReferenceFact]:
        """What an answer should say; empty for released files that leave it out."""

    def described(self, example: Example) -> tuple[str, ...]:
        """Ids of the objects that failures of the answer as a whole are about; here none."""
        return ()

    def text_of(self, prediction: Prediction | None) -> str:
        """The text of an answer; empty where there is none."""
        return str(prediction.value[self.answer_field]) if prediction else ""

    @abstractmethod
    def category(self, example: Example) -> str:
        """The group of an example in the table `per_category`."""

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Means of `lexical_f1`, `lexical_precision`, `lexical_recall`; no readable or an empty answer scores 0."""
        overlaps = [self._overlap(sample.example, sample.prediction) for sample in samples]
        return lexical_statistics(overlaps, (self.category(sample.example) for sample in samples))

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """As in `explain`: facts that are missing, and words that no fact has.

        A fact is `missed`, or `replaced` where the answer has such other words instead.
        """
        facts, described = self.facts(example), self.described(example)
        other, answer = self._unexpected(example, prediction), self.text_of(prediction)
        failures = [
            AnswerFailure(fact.replaced if other else "missed", fact.objects)
            for fact in facts
            if not is_said(fact.text, answer)
        ]
        if not facts and not overlap(answer, *self.compared(example)).recall:
            failures.append(AnswerFailure("missed", described))
        return (*failures, *([AnswerFailure("hallucinated", described)] if other else ()))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """By words alone: a fact is a hit where the answer has all its content words, whatever they refer to."""
        answer = self.text_of(prediction)
        facts = dict.fromkeys((fact.text, fact.shown) for fact in self.facts(example))
        return explanation(
            (shown for text, shown in facts if is_said(text, answer)),
            (shown for text, shown in facts if not is_said(text, answer)),
            (f"not in the reference: {word}" for word in self._unexpected(example, prediction)),
        )

    def _overlap(self, example: Example, prediction: Prediction | None) -> Overlap | None:
        """None without a readable answer."""
        return overlap(self.text_of(prediction), *self.compared(example)) if prediction else None

    def _unexpected(self, example: Example, prediction: Prediction | None) -> list[str]:
        return unexpected(self.text_of(prediction), *self.compared(example))
