"""Whether a written question and answer say what the annotations hold: every change, and nothing else.

Words are compared by their roots, so that `placing the cup` says `Place cup`. An answer must name the subject and the
objects of each change, and the change itself where it has a name of its own (opened, started extracting). Neither the
question nor the answer may name an object category, a colour or a state that is no part of the changes. What else a
model could invent, such as a manner or a reason, no word list can find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import cast

from barista_bench.benchmarks.barista.change_detection import Category, Change
from barista_bench.benchmarks.barista.free_text import domain_vocabulary
from barista_bench.benchmarks.barista.lexical import stem
from barista_bench.benchmarks.barista.qa_templates import FEWEST_WORDS, QaPair
from barista_bench.benchmarks.parsing import is_text
from barista_bench.judging.verdicts import Unusable, read_object

MAX_TEXT = 2_000
"""Characters of a question or an answer."""
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("question", "answer", "category")},
    "required": ["question", "answer", "category"],
    "additionalProperties": False,
}
COLOURS = tuple(
    "black white grey gray silver red blue green yellow orange brown pink purple transparent golden".split()  # noqa: SIM905
)
STATES = ("opened", "closed", "extracting", "rinsing")

_WORD = re.compile(r"[^\W_]+")
_IRREGULAR = {"took": "take", "taken": "take", "putting": "put", "poured": "pour", "held": "hold", "begun": "begin"}
_SAID_AS = {"start": ("start", "begin", "began"), "stop": ("stop", "end", "finish", "ceas")}


def root(word: str) -> str:
    """A word without its endings, crudely; only equality of roots means anything.

    >>> [root(word) for word in ("placing", "Place", "pressed", "presses", "putting", "cups", "closed")]
    ['plac', 'plac', 'pres', 'pres', 'put', 'cup', 'clos']
    """
    word = word.casefold()
    word = _IRREGULAR.get(word, word)
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = word[: -len(ending)]
            break
    else:
        word = stem(word)
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def roots(text: str) -> list[str]:
    return [root(word) for word in _WORD.findall(text)]


def read_pair(text: str) -> QaPair | Unusable:
    """The pair in a model's reply; its category is checked by `wrong_with`."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    if set(found) != {"question", "answer", "category"}:
        return Unusable(f"has the keys {sorted(found)[:5]}, not question, answer and category")
    for name, value in found.items():
        if not is_text(value) or not value.strip() or len(value) > MAX_TEXT:
            return Unusable(f"{name} is no text of 1 to {MAX_TEXT} characters")
    return QaPair(
        question=" ".join(str(found["question"]).split()),
        answer=" ".join(str(found["answer"]).split()),
        category=cast("Category", found["category"]),  # compared before it is used
    )


def wrong_with(pair: QaPair, category: Category, changes: Sequence[Change]) -> str:
    """Why a pair cannot be used; empty where it can."""
    if pair["category"] != category:
        return f"the category is {pair['category']!r}, not {category!r}"
    if not pair["question"].endswith("?"):
        return "the question does not end with a question mark"
    words = len(pair["answer"].split())
    if words < FEWEST_WORDS:
        return f"the answer has {words} words, fewer than {FEWEST_WORDS}"
    missing = unmentioned(pair["answer"], changes)
    if missing:
        return f"the answer does not mention {missing[0]}"
    foreign = invented(f"{pair['question']} {pair['answer']}", changes)
    return f"it speaks of {foreign[0]!r}, which is no part of the changes" if foreign else ""


def unmentioned(answer: str, changes: Sequence[Change]) -> list[str]:
    """What of the changes the answer does not name, in words."""
    said = set(roots(answer))
    found: dict[str, None] = {}
    for change in changes:
        for text in (change["subject"], *change["objects"]):
            if not set(roots(text)) <= said:
                found[text] = None
        if change["category"] == "state_change":
            for word in roots(change["kind"]):
                if not said & set(_SAID_AS.get(word, (word,))):
                    found[f"{change['subject']}: {change['kind']}"] = None
    return list(found)


def invented(text: str, changes: Sequence[Change]) -> list[str]:
    """Object categories, colours and states in a text that are no part of the changes."""
    texts = [part for c in changes for part in (c["subject"], c["kind"], c["value"], *c["objects"])]
    known = {word for part in texts for word in roots(part)}
    said = roots(text)
    foreign: Iterable[str] = (*domain_vocabulary(), *COLOURS, *STATES)
    return [name for name in foreign if not set(roots(name)) <= known and _stands_in(roots(name), said)]


def _stands_in(words: Sequence[str], said: Sequence[str]) -> bool:
    return any(said[place : place + len(words)] == list(words) for place in range(len(said) - len(words) + 1))
