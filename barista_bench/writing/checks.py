"""Check a model's texts: a question with its answer, and reworded texts of an item.

For questions, the release asks once and uses a pair that is readable and has a long enough answer. `protocol="paper"`
also requires that the pair states exactly the annotated changes (`pair_fault`). Words are compared by their roots, so
`placing the cup` matches `Place cup`. An answer must name the subject and the objects of each change, and the change
itself if it has a separate name (opened, started extracting). Neither the question nor the answer may name an object
category, a colour or a state that is not part of the changes. Other inventions of a model, such as a manner or a
reason, cannot be found by a list of words.

Reworded texts must have the meaning of the item's texts. They may be rephrased under these conditions:

* The words stay, except for endings and the words in `FREE`, which carry no information about a scene. So nothing is
  left out or invented.
* Names, sides, negations and words of order stay in their order. So do verbs, words of place, numbers and times. Values
  also stay in order, and keep every letter. Names may change places only in a text with a single claim (a hand on an
  object, an object in a place).
* The claims that EgoCoT's checker reads in both (`claims_of`) are the same: who does what to what.
* A choice that is only a name does not change.
* No two choices are alike, and the right choices do not become conspicuous by their length.

Grammar and style are not checked. Complaints do not reveal the right choice, since the writer reads them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Category, Change
from barista_bench.benchmarks.barista.qa_templates import FEWEST_WORDS, QaPair
from barista_bench.benchmarks.egocot.claims import Claim, claims_of
from barista_bench.benchmarks.egocot.evidence import Terms, Vocabulary, canonical_name, vocabulary_of
from barista_bench.benchmarks.egocot.lexicon import GRAPH_WORDS, NEGATIONS, ORDER, PieceKind, word_stems
from barista_bench.benchmarks.egocot.phrases import ANY, split_clauses
from barista_bench.benchmarks.lexical import stem
from barista_bench.benchmarks.parsing import is_text
from barista_bench.core.prompt import object_schema
from barista_bench.generate.candidates import are_alike
from barista_bench.runs.ask.replies import MAX_REPLY, Unusable
from barista_bench.scene_graph.domain import Domain, domain_vocabulary

SCHEMA = object_schema({name: {"type": "string"} for name in QaPair.__annotations__})
COLOURS = tuple(
    "black white grey gray silver red blue green yellow orange brown pink purple transparent golden".split()  # noqa: SIM905
)
STATES = ("opened", "closed", "extracting", "rinsing")

_FENCE = "```"
_WORD = re.compile(r"[^\W_]+")
_IRREGULAR = {"took": "take", "taken": "take", "putting": "put", "poured": "pour", "held": "hold", "begun": "begin"}
_SYNONYMS = {"start": ("start", "begin", "began"), "stop": ("stop", "end", "finish", "ceas")}


def word_root(word: str) -> str:
    """Return a word without its endings, by crude rules. Roots are only meant to be compared for equality.

    >>> [word_root(word) for word in ("placing", "Place", "pressed", "presses", "putting", "cups", "closed")]
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


def word_roots(text: str) -> list[str]:
    return [word_root(word) for word in _WORD.findall(text)]


def read_pair(text: str) -> QaPair | Unusable:
    r"""Parse the pair in a reply as the release does: a JSON object, or a list's first entry, perhaps in a code fence.

    >>> read_pair('```json\n[{"question": "What opens?", "answer": "The lid.", "category": "state_change"}]\n```')
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


def length_fault(pair: QaPair) -> str:
    """Return the reason why the release drops a readable pair; empty if the release keeps the pair."""
    words = len(pair["answer"].split())
    return f"the answer has {words} words, fewer than {FEWEST_WORDS}" if words < FEWEST_WORDS else ""


def pair_fault(pair: QaPair, category: Category, changes: Sequence[Change], domain: Domain | None = None) -> str:
    """Return the fault of a pair: it adds to the changes, or omits some of them. The text is empty without a fault.

    Args:
        domain: the domain whose categories and values may be named only if the changes have them. None stands for the
            categories of coffee making and the states of the release.
    """
    if pair["category"] != category:
        return f"the category is {pair['category']!r}, not {category!r}"
    if not pair["question"].endswith("?"):
        return "the question does not end with a question mark"
    if missing := missing_changes(pair["answer"], changes):
        return f"the answer does not mention {missing[0]}"
    if foreign := foreign_names(f"{pair['question']} {pair['answer']}", changes, domain):
        return f"it speaks of {foreign[0]!r}, which is no part of the changes"
    return ""


def missing_changes(answer: str, changes: Sequence[Change]) -> list[str]:
    """Return, in words, the changes that the answer does not name."""
    words = set(word_roots(answer))
    missing: list[str] = []
    for change in changes:
        missing += [text for text in (change.subject, *change.objects) if not set(word_roots(text)) <= words]
        if change.category == "state_change":
            synonyms = (_SYNONYMS.get(word, (word,)) for word in word_roots(change.kind))
            if not all(words & set(alternatives) for alternatives in synonyms):
                missing.append(f"{change.subject}: {change.kind}")
    return list(dict.fromkeys(missing))


def foreign_names(text: str, changes: Sequence[Change], domain: Domain | None = None) -> list[str]:
    """Return object categories, colours and states in a text that are not part of the changes.

    With a domain, all values of the domain are checked.
    """
    texts = [part for c in changes for part in (c.subject, c.kind, c.value, *c.objects)]
    change_roots = {word for part in texts for word in word_roots(part)}
    words = word_roots(text)
    values = (value for attribute in domain.attributes.values() for value in attribute.values) if domain else ()
    names = (*domain.categories, *values) if domain else (*domain_vocabulary(), *COLOURS, *STATES)
    padded = f" {' '.join(words)} "
    return [
        name
        for name in names
        if not set(word_roots(name)) <= change_roots and f" {' '.join(word_roots(name))} " in padded
    ]


CHECKS_VERSION = 1
"""Must be increased with every change of these checks."""
FREE = frozenset(
    """a an the this that these those which what who is are was were be being do does did it its there of at to by and
    person someone somebody they their them he she his her moment time video clip""".split()  # noqa: SIM905
)
"""Words that may be added or removed."""
SIDE_WORDS = frozenset({"left", "right", "upper", "lower", "hand"})
DIRECTIONS = frozenset({"into", "onto", "from", "with", "over"})
EXTRA_WORDS = 6
"""Maximum number of words that a text may have more than its template."""
_TOKEN = re.compile(r"\d+(?:[:.]\d+)*|[^\W\d_]+")
_STOPS = ".?!"


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """The texts of an item: its question or instruction, and its choices in the order asked."""

    question: str
    choices: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (self.question, *self.choices)


@dataclass(frozen=True)
class WordingChecker:
    """Checks reworded texts with the words of one domain."""

    domain: Domain

    def fault(self, new: ItemTexts, old: ItemTexts, correct: Sequence[int]) -> str:
        """Return the fault of a new wording, with its kind before a colon; empty if the wording can be used.

        Args:
            old: texts of the template.
            correct: indices of the right choices.
        """
        if len(new.choices) != len(old.choices):
            return f"number of choices: {len(new.choices)}, not {len(old.choices)}"
        if new == old:
            return "nothing reworded"
        faults = (self._text_fault(text, template) for text, template in zip(new.all, old.all, strict=True))
        if fault := next(filter(None, faults), ""):
            return fault
        if any(are_alike(first, second) for first, second in combinations(new.choices, 2)):
            return "choices alike: two of them say the same"
        telltale = _telltale_length(new.choices, correct)
        if telltale and telltale != _telltale_length(old.choices, correct):
            return "choices of unlike length: one stands out"
        return ""

    def words_to_keep(self, texts: ItemTexts) -> list[str]:
        """Return the names, numbers and times in the texts, which must stay as written, each once and in order."""
        names = [
            text[piece.start : piece.end]
            for text in texts.all
            for clause in split_clauses(text, self._vocabulary, terms=self._terms)
            for piece in clause.pieces
            if piece.kind == "name" and piece.names not in (ANY, {"hand"})
        ]
        numbers = [token for text in texts.all for token in _TOKEN.findall(text) if token[0].isdigit()]
        return list(dict.fromkeys([*names, *numbers]))

    def _text_fault(self, new: str, old: str) -> str:
        if new == old:
            return ""
        if old[-1:] not in _STOPS:
            return f"a name changed: {old!r} must stay as it is"
        if new[-1:] != old[-1:]:
            return f"punctuation: {new!r} does not end with {old[-1]!r}"
        if odd_characters := sorted({c for c in set(new) - set(old) if not (c.isascii() and c.isalnum())} - set(" ,;")):
            return f"characters: {odd_characters[0]!r} in {new!r}"
        words, template = _words(new), _words(old)
        if len(_TOKEN.findall(new)) > len(_TOKEN.findall(old)) + EXTRA_WORDS:
            return f"length: {new!r} has far more words than {old!r}"
        if added := Counter(words) - Counter(template):
            return f"a word added: {_first_word(added, new)!r} in {new!r}"
        if missing := Counter(template) - Counter(words):
            return f"a word left out: {_first_word(missing, old)!r} in {new!r}"
        claims, new_claims = self._claims(old), self._claims(new)
        if {claim.content for claim in claims} != {claim.content for claim in new_claims}:
            return f"another claim: {new!r} does not say who does what, or what is where, as {old!r} does"
        is_single = len(claims) == 1 and not ORDER.search(old)
        if self._words_in_order(new, is_single) != self._words_in_order(old, is_single):
            return f"another order: {new!r} does not keep names, verbs, states and times of {old!r} as they stand"
        return ""

    def _words_in_order(self, text: str, is_single: bool) -> tuple[list[str], ...]:
        """Return the words that must keep their order: verbs, numbers, values and names.

        Values must keep every letter (`filled` is not `being filled`). The names of a single claim are left out.
        """
        words = _words(text)
        verbs = [word for word in words if word in self._verb_roots]
        things = [] if is_single else [word for word in words if word in self._thing_roots]
        numbers = [word for word in words if word[0].isdigit()]
        return verbs, numbers, self._values.findall(text.casefold()), things

    def _claims(self, text: str) -> list[Claim]:
        """Return the claims of a text, except claims of names and times, which are words that stay."""
        claims = claims_of(text, self._vocabulary, terms=self._terms)
        return [claim for claim in claims if claim.kind not in ("object", "time")]

    @cached_property
    def _names(self) -> frozenset[str]:
        kinds = self.domain.attributes.get("type")
        nouns = (noun for group in self.domain.nouns for noun in group)
        return frozenset((*self.domain.categories, *nouns, *(kinds.values if kinds else ())))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return vocabulary_of(canonical_name(name) for name in self._names)

    @cached_property
    def _terms(self) -> Terms:
        words = ((kind, name, text) for name, texts in GRAPH_WORDS.items() for kind, text in texts)
        terms: dict[tuple[str, ...], tuple[PieceKind, str]] = {
            word_stems(text): (kind, name) for kind, name, text in words
        }
        for name, attribute in self.domain.attributes.items():
            terms |= {word_stems(value): ("state", value) for value in attribute.values if name != "type"}
        return terms

    @cached_property
    def _values(self) -> re.Pattern[str]:
        """Return a pattern for the values of attributes, the longest first."""
        values = {value for name, words in self.domain.attributes.items() if name != "type" for value in words.values}
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(values, key=lambda v: (-len(v), v))))})\b")

    @cached_property
    def _thing_roots(self) -> frozenset[str]:
        values = (value for attribute in self.domain.attributes.values() for value in attribute.values)
        words = (word for text in (*self._names, *values) for word in _words(text))
        return frozenset((*words, *SIDE_WORDS, *map(word_root, NEGATIONS), *map(word_root, _ORDER_WORDS)))

    @cached_property
    def _verb_roots(self) -> frozenset[str]:
        contacts = (words.do for words in self.domain.contacts.values())
        places = (relation.words for relation in self.domain.places.values())
        verbs = (verb for group in self.domain.verbs for verb in group)
        words = (word for text in (*contacts, *places, *verbs) for word in _words(text))
        return frozenset((*words, *DIRECTIONS)) - self._thing_roots


_ORDER_WORDS = "first second third then later after before finally last next once until earlier previously".split()  # noqa: SIM905


def _words(text: str) -> list[str]:
    """Return the roots of words that must stay, and the numbers, in order.

    >>> _words("At 00:12.00, which object is the right hand touching?")
    ['00:12.00', 'object', 'right', 'hand', 'touch']
    """
    return [_root(token) for token in _TOKEN.findall(text.casefold()) if token not in FREE]


def _root(token: str) -> str:
    return token if token[0].isdigit() else word_root(token)


def _first_word(roots: Counter[str], text: str) -> str:
    return next(token for token in _TOKEN.findall(text) if _root(token.casefold()) in roots)


def _telltale_length(choices: Sequence[str], correct: Sequence[int]) -> str:
    """Return "longest" or "shortest" if all right choices have more, or fewer, words than all wrong choices."""
    lengths = [len(choice.split()) for choice in choices]
    right = [length for index, length in enumerate(lengths) if index in correct]
    wrong = [length for index, length in enumerate(lengths) if index not in correct]
    if not right or not wrong:
        return ""
    return "longest" if min(right) > max(wrong) else "shortest" if max(right) < min(wrong) else ""
