"""Whether a written question and answer can be used: how the release reads a reply, and what a pair must hold.

The release keeps a readable pair whose answer is long enough, and asks once. `protocol="paper"` asks for more: that the
pair says what the annotations hold, every change and nothing else (`wrong_with`). Words are compared by their roots, so
that `placing the cup` says `Place cup`. An answer must name the subject and the objects of each change, and the change
itself where it has a name of its own (opened, started extracting). Neither the question nor the answer may name an
object category, a colour or a state that is no part of the changes. What else a model could invent, such as a manner or
a reason, no word list can find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Category, Change
from barista_bench.benchmarks.barista.common import domain_vocabulary
from barista_bench.benchmarks.barista.qa_templates import FEWEST_WORDS, QaPair
from barista_bench.benchmarks.lexical import stem
from barista_bench.benchmarks.parsing import is_text, object_schema
from barista_bench.runs.ask.replies import MAX_REPLY, Unusable
from barista_bench.scene_graph.domain import Domain

SCHEMA = object_schema({name: {"type": "string"} for name in QaPair.__annotations__})
COLOURS = tuple(
    "black white grey gray silver red blue green yellow orange brown pink purple transparent golden".split()  # noqa: SIM905
)
STATES = ("opened", "closed", "extracting", "rinsing")

_FENCE = "```"
_WORD = re.compile(r"[^\W_]+")
_IRREGULAR = {"took": "take", "taken": "take", "putting": "put", "poured": "pour", "held": "hold", "begun": "begin"}
_SYNONYMS = {"start": ("start", "begin", "began"), "stop": ("stop", "end", "finish", "ceas")}


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
    """The pair in a reply, as the release reads it: a JSON object, or the first of a list, perhaps in a code fence.

    >>> read_pair('```json\\n[{"question": "What opens?", "answer": "The lid.", "category": "state_change"}]\\n```')
    {'question': 'What opens?', 'answer': 'The lid.', 'category': 'state_change'}
    """
    if len(text) > MAX_REPLY:
        return Unusable(f"longer than {MAX_REPLY} characters")
    text = text.strip()
    if text.startswith(_FENCE):
        text = text.split("\n", 1)[-1].rsplit(_FENCE, 1)[0]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unusable(f"not JSON: {error}")
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return Unusable(f"a JSON {type(value).__name__}, not one object")
    fields = [value.get(name) for name in ("question", "answer", "category")]
    if not all(is_text(field) and field.strip() for field in fields):
        return Unusable("question, answer or category is missing, or no text")
    question, answer, category = map(str, fields)
    if category not in CATEGORIES:
        return Unusable(f"the category is {category!r}, not one of {', '.join(CATEGORIES)}")
    return QaPair(question=question, answer=answer, category=category)


def too_short(pair: QaPair) -> str:
    """Why the release drops a pair that can be read; empty where it keeps it."""
    words = len(pair["answer"].split())
    return f"the answer has {words} words, fewer than {FEWEST_WORDS}" if words < FEWEST_WORDS else ""


def wrong_with(pair: QaPair, category: Category, changes: Sequence[Change], domain: Domain | None = None) -> str:
    """The fault of a pair: what it adds to the changes, or leaves out; empty where it has none.

    Args:
        domain: whose categories and values must not be named in vain; None: coffee's, and the release's states.
    """
    if pair["category"] != category:
        return f"the category is {pair['category']!r}, not {category!r}"
    if not pair["question"].endswith("?"):
        return "the question does not end with a question mark"
    if missing := unmentioned(pair["answer"], changes):
        return f"the answer does not mention {missing[0]}"
    if foreign := invented(f"{pair['question']} {pair['answer']}", changes, domain):
        return f"it speaks of {foreign[0]!r}, which is no part of the changes"
    return ""


def unmentioned(answer: str, changes: Sequence[Change]) -> list[str]:
    """Changes that the answer does not name, in words."""
    words = set(roots(answer))
    missing: list[str] = []
    for change in changes:
        missing += [text for text in (change.subject, *change.objects) if not set(roots(text)) <= words]
        if change.category == "state_change":
            synonyms = (_SYNONYMS.get(word, (word,)) for word in roots(change.kind))
            if not all(words & set(alternatives) for alternatives in synonyms):
                missing.append(f"{change.subject}: {change.kind}")
    return list(dict.fromkeys(missing))


def invented(text: str, changes: Sequence[Change], domain: Domain | None = None) -> list[str]:
    """Object categories, colours and states in a text that are no part of the changes; of a domain, all its values."""
    texts = [part for c in changes for part in (c.subject, c.kind, c.value, *c.objects)]
    known = {word for part in texts for word in roots(part)}
    words = roots(text)
    values = (value for attribute in domain.attributes.values() for value in attribute.values) if domain else ()
    names = (*domain.categories, *values) if domain else (*domain_vocabulary(), *COLOURS, *STATES)
    return [name for name in names if not set(roots(name)) <= known and _contains(words, roots(name))]


def _contains(words: Sequence[str], phrase: Sequence[str]) -> bool:
    length = len(phrase)
    return any(words[start : start + length] == phrase for start in range(len(words) - length + 1))
