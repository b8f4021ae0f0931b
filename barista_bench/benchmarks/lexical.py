"""Compare texts by words, without a model: words that count, the overlap of two texts, and labels in answers.

Words are case-folded runs of letters and digits. Stop words are dropped, plural and third-person endings are cut, and
words are matched as multisets. Fractions run from 0 to 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from barista_bench.benchmarks.parsing import MAX_ANSWER

_WORD = re.compile(r"[^\W_]+")
# Function words. Words of place and number (on, under, inside, no, left, right, open) carry meaning and are kept.
_FUNCTION_WORDS = """
a an the this that these those it its they them their there here he she his her i you your we one ones of to at by for
from with as and or but while which who whose what how is are was were be been being am do does did done has have had
having can will would could should may might also so such very both each other another some any all s appears appear
seems seem visible seen see sees shown show shows showing described description object objects thing things
"""
# Words in answers about any clip. Questions ask for beginnings and ends, so words for beginnings and ends are not
# listed.
_CLIP_WORDS = """
clip video frame frames image images scene sequence moment moments time times course order given beginning first last
then next after before later finally initially during through throughout over between until when now longer nothing
across compared comparing watching following answer change changes changed
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split()) | frozenset(_CLIP_WORDS.split())
"""Words that are ignored in comparisons."""

_BASE_FORMS = {"held": "hold", "opened": "open", "closed": "close", "began": "begin", "begun": "begin"}
_BASE_FORMS |= {"ended": "end", "started": "start", "stopped": "stop", "touched": "touch", "gray": "grey"}
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
    """Return a word without a plural or third-person `s`. This is just enough to match `cups` with `cup`.

    >>> [stem(word) for word in ("cups", "presses", "touches", "carries", "ties", "glass", "boxes", "held")]
    ['cup', 'press', 'touch', 'carry', 'tie', 'glass', 'box', 'hold']
    """
    if word in _BASE_FORMS:
        return _BASE_FORMS[word]
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def content_words(text: str) -> list[str]:
    """Return the content words, stemmed, in the order of the text.

    >>> content_words("The white cups are on a saucer, held by 2 hands.")
    ['white', 'cup', 'on', 'saucer', 'hold', '2', 'hand']
    """
    return list(_content_words(text))


@lru_cache(2**12)  # a report needs the words of each text a dozen times
def _content_words(text: str) -> tuple[str, ...]:
    words = (_NUMBERS.get(word, word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS)
    return tuple(map(stem, words))


def word_overlap(answer: str, reference: str, context: str = "", question: str = "") -> Overlap:
    """Return the multiset overlap of content words; all values are 0 if either side has no content words.

    Words of `context` are also true but were not requested, so they count neither for nor against the answer. Words of
    `question` are ignored on both sides, so that repeating the question earns nothing (unless the reference has no
    other words).

    >>> word_overlap("a red cup", "a white cup")
    Overlap(precision=0.5, recall=0.5, f1=0.5)
    >>> word_overlap("a white cup, part of a set", "a white cup", context="set: (cup part of set)").f1
    1.0
    >>> word_overlap("the hand touches it", "the hand touches the lid", question="What does the hand touch?").f1
    0.0
    """
    reference_words = Counter(content_words(reference))
    ignored_words = set(content_words(question))
    if reference_words.keys() <= ignored_words:
        ignored_words = set()
    reference_words = Counter({word: count for word, count in reference_words.items() if word not in ignored_words})
    answer_words = Counter(word for word in content_words(answer) if word not in ignored_words)
    hits = (answer_words & reference_words).total()
    if not hits:
        return NO_OVERLAP
    wrong = (answer_words - reference_words - Counter(content_words(context))).total()
    precision, recall = hits / (hits + wrong), hits / reference_words.total()
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def is_said(text: str, answer: str) -> bool:
    """Return True if every content word of `text` appears in the answer.

    >>> is_said("coffee cup under coffee machine", "A machine for coffee; under it a cup.")
    True
    """
    return set(content_words(text)) <= set(content_words(answer))


def unexpected_words(answer: str, *texts: str) -> list[str]:
    """Return the answer's content words that are in none of the texts, each word once, in order.

    >>> unexpected_words("a red cup, red as wine", "a white cup")
    ['red', 'wine']
    """
    expected_words = {word for text in texts for word in content_words(text)}
    return [word for word in dict.fromkeys(content_words(answer)) if word not in expected_words]


def most_typical_text(texts: Sequence[str], ignored_words: Collection[str] = ()) -> str:
    """Return the text that shares most words with all texts: the text with the highest expected F1 of content words.

    Expected hits are divided by expected lengths, so that not every pair of texts must be compared. Words in
    `ignored_words` do not count. At a tie, the first text in sorted order is returned. At least one text is required.

    >>> most_typical_text(["a red cup", "a white cup on a table", "the white cup"])
    'the white cup'
    """
    times = Counter(texts)
    words = {text: Counter(word for word in content_words(text) if word not in ignored_words) for text in times}
    text_counts: Counter[tuple[str, int]] = Counter()
    length = 0
    for text, counts in words.items():
        length += times[text] * counts.total()
        for word in _occurrences(counts):
            text_counts[word] += times[text]

    def expected_f1(text: str) -> float:
        count = words[text].total() * len(texts)
        return 2 * sum(text_counts[word] for word in _occurrences(words[text])) / (count + length) if count else 0.0

    return max(sorted(words), key=expected_f1)


def _occurrences(words: Counter[str]) -> list[tuple[str, int]]:
    """Return every word with the number of each occurrence, which makes the multiset a set."""
    return [(word, number) for word, count in words.items() for number in range(count)]


def after_label(text: str, label: str) -> str:
    r"""Return the text after the last `<label>:` that begins a line, up to the end of that line.

    Without such a label, return the complete text.

    The released expression is `^\s*label\s*:\s*(.+)$` without case, over lines (docs/upstream/barista.md). Here,
    leading white space is searched only within one line. This finds the same answers, in linear time for any text.

    >>> after_label("I see a cup.\nDescription: a red cup\nBye", "description")
    'a red cup'
    >>> after_label(" A red cup. ", "description")
    'A red cup.'
    """
    text = text[:MAX_ANSWER]
    matches = re.findall(rf"^[^\S\n]*{label}\s*:\s*(.+)$", text, re.IGNORECASE | re.MULTILINE)
    return str(matches[-1] if matches else text).strip()


def after_last(text: str, marker: str) -> str:
    r"""Return all text after the last `marker`, anywhere and in any case (paper, A.3.3).

    Without a marker, return the complete text.

    >>> after_last("I think. answer: the lid\nwas opened.", "Answer:")
    'the lid\nwas opened.'
    """
    text = text[-MAX_ANSWER:]
    matches = list(re.finditer(re.escape(marker), text, re.IGNORECASE))
    return text[matches[-1].end() if matches else 0 :].strip()
