"""The words of the claim grammar (`lexicon.yaml`): actions, relations of place, and synonyms of names.

A word makes no claim if neither these lists nor the evidence contain it. Names come from the evidence. The lists only
define synonyms and the inflection of verbs.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from barista_bench.benchmarks.lexical import stem
from barista_bench.files.reading import packaged_data

PieceKind: TypeAlias = Literal[
    "name", "predicate", "region", "target", "negation", "hedge", "article", "stop", "word",
    "state", "action", "cause", "order",
]  # fmt: skip


class Predicate(NamedTuple):
    """A relation by its canonical name.

    `is_flipped` means that the words name subject and object in reverse order (`held by`).
    """

    name: str
    is_flipped: bool = False


class Region(NamedTuple):
    """A part of the frame. An empty text means any value.

    `across` is left, centre or right. `down` is upper, middle or lower.
    """

    across: str
    down: str


def word_stems(text: str) -> tuple[str, ...]:
    """Return words in the form used for comparison: case-folded and singular.

    The text is split at every character that is neither a letter nor a digit.

    >>> word_stems("Left-hand cups")
    ('left', 'hand', 'cup')
    """
    words = "".join(character if character.isalnum() else " " for character in text.casefold()).split()
    return tuple(stem(word) for word in words)


class LexiconFile(msgspec.Struct):
    """The content of `lexicon.yaml`. The file describes each list."""

    verbs: dict[str, list[str]]
    places: dict[str, list[str]]
    flipped: dict[str, list[str]]
    opposites: list[tuple[str, str]]
    across: dict[str, str]
    down: dict[str, str]
    parts_of_views: list[str]
    views: list[str]
    people: list[str]
    synonyms: list[list[str]]
    no_heads: str
    negations: str
    hedges: str
    articles: str
    targets: str
    anything: str
    stops: str
    parts: str
    state_marks: str


_FILE = msgspec.convert(packaged_data(__package__, "lexicon.yaml"), LexiconFile)


def _inflections(words: str) -> tuple[str, ...]:
    base, *forms = words.split("/")
    return (base, f"{base}s", forms[0], forms[1] if forms[1:] else f"{base}ing") if forms else (words,)


SYMMETRIC = frozenset({"near", "far from", "attached to", "detached from"})
"""Relations that hold in both directions."""
CONTACTS = frozenset({"holds", "touches", "presses", "pushes", "pulls", "turns", "opens", "closes", "manipulates"})
"""Actions of a hand on a thing that it touches. A claim of such an action is about the hand."""
HOLDING = "holds"
RELEASING = "releases"
"""Releasing is a moment, not a state. It may happen at the very end of the holding."""
ENTAILS = MappingProxyType(
    {
        **{name: frozenset({"touches", "manipulates", "near"}) for name in CONTACTS},
        "touches": frozenset({"near"}),
        "on": frozenset({"near"}),
        "inside": frozenset({"near"}),
        "attached to": frozenset({"near"}),
    }
)
"""The relations that follow from a relation. For example, a hand that holds a thing touches this thing."""
APART = "apart from"
EXCLUDED = MappingProxyType({name: f"not {name}" for name in ("touches", APART, "is", "does", "causes")})
"""Maps a predicate to the predicate for facts that a graph excludes."""
_NO_CONTACT = tuple((name, apart) for name in CONTACTS for apart in (APART, EXCLUDED["touches"]))
OPPOSITES = frozenset(
    pair
    for first, second in (*_FILE.opposites, *_NO_CONTACT, *EXCLUDED.items())
    for pair in ((first, second), (second, first))
)
"""Pairs of relations that two things never have at the same time."""
ONE_WAY = frozenset(
    {"on", "under", "inside", "outside", "part of", "left of", "right of", "in front of", "behind", "precedes"}
)
"""Relations that never hold in both directions at once."""

PREDICATES: MappingProxyType[tuple[str, ...], Predicate] = MappingProxyType(
    {
        **{
            word_stems(words): Predicate(name)
            for name, texts in _FILE.verbs.items()
            for words in (name, *(form for entry in texts for form in _inflections(entry)))
        },
        **{word_stems(words): Predicate(name) for name, texts in _FILE.places.items() for words in texts},
        **{
            word_stems(words): Predicate(name, is_flipped=True)
            for name, texts in _FILE.flipped.items()
            for words in texts
        },
    }
)


def _regions() -> dict[tuple[str, ...], Region]:
    regions: dict[tuple[str, ...], Region] = {}
    for down, row in _FILE.down.items():
        for across, column in _FILE.across.items():
            regions[(down, across)] = regions[(across, down)] = Region(column, row)
    for word, region in (
        *((word, Region(column, "")) for word, column in _FILE.across.items()),
        *((word, Region("", row)) for word, row in _FILE.down.items() if word != "middle"),
        ("middle", Region("centre", "")),
    ):
        for part in _FILE.parts_of_views:
            regions[(word, part)] = region
        for view in _FILE.views:
            regions[(word, "of", view)] = regions[(word, "of", "the", view)] = region
    return regions


REGIONS: MappingProxyType[tuple[str, ...], Region] = MappingProxyType(_regions())
"""Only words that certainly mean a part of the frame. A single `right` can be a hand, a direction or an approval."""
VIEWS = frozenset(_FILE.views) | {"egocentric", "camera", "operator"}
"""`the left side of ...` is a part of the frame before these words, and a part of a thing before other words."""

HAND_NAMES: MappingProxyType[tuple[str, ...], tuple[str, ...]] = MappingProxyType(
    {
        ("left", "hand"): ("left hand",),
        ("right", "hand"): ("right hand",),
        ("both", "hand"): ("left hand", "right hand"),
        ("two", "hand"): ("left hand", "right hand"),
        ("hand",): ("hand",),
        **{word_stems(words): ("hand",) for words in _FILE.people},
    }
)
"""`hand` is a hand of either side. People count as `hand`, since they act with their hands."""
SIDED_HANDS = ("left hand", "right hand")

SYNONYMS = tuple(tuple(map(word_stems, group)) for group in _FILE.synonyms)
NO_HEADS = frozenset(_FILE.no_heads.split())
NEGATIONS = frozenset(word_stems(_FILE.negations))
HEDGES = frozenset(_FILE.hedges.split())
ARTICLES = frozenset(_FILE.articles.split())
TARGET_WORDS = frozenset({("target",), ("answer",), *((kind, "object") for kind in _FILE.targets.split())})
ANYTHING = frozenset(_FILE.anything.split())
STOPS = frozenset(word_stems(_FILE.stops)) | frozenset(_FILE.stops.split())
PARTS = frozenset(word_stems(_FILE.parts))
STATE_MARKS = frozenset(_FILE.state_marks.split())

ORDER = re.compile(
    r"\b(?:later|then|after(?:wards?)?|before(?:hand)?|subsequently|eventually|finally|lastly|next(?! to\b)|first"
    r"|initially|earlier|previously|prior|following|once|until|till|soon|into|onto|starts?|starting|begins?|beginning"
    r"|(?:at|in|by|towards?) the (?:very )?end)\b",
    re.IGNORECASE,
)
"""Words that move a statement to another time. `into` and `onto` are among them, since putting ends later."""
SAME_TIME = re.compile(
    r"\b(?:at|in) (?:this|that|the(?: very)? (?:same|given|asked|specified|stated|queried)) "
    r"(?:very |exact |precise )?(?:moment|time|instant|point|timestamp)\b",
    re.IGNORECASE,
)
"""Words that refer to the last given time, or to the moment that the question asks about."""
CLOCKS = "clock|timer|countdown|stopwatch|microwave|oven|watch|display|thermometer|phone"
"""Things that show times other than the video's."""


def canonical_predicate(text: str) -> Predicate:
    """Return the predicate of an annotation, from the lists above or else from the annotation's words.

    >>> canonical_predicate("touched by"), canonical_predicate("pours into").name
    (Predicate(name='touches', is_flipped=True), 'pour into')
    """
    words = word_stems(text)
    while words and words[0] in ("is", "are", "being", "be"):
        words = words[1:]
    if words in PREDICATES:
        return PREDICATES[words]
    return Predicate(" ".join(words))


GRAPH_WORDS: MappingProxyType[str, tuple[tuple[PieceKind, str], ...]] = MappingProxyType(
    {
        "causes": (("cause", "so that"), ("cause", "which makes"), ("cause", "with the result that")),
        "precedes": (("order", "before"), ("order", "then"), ("order", "and then")),
        APART: (("predicate", "apart from"), ("predicate", "away from"), ("predicate", "clear of")),
    }
)
"""Words of these facts. They are searched only if the evidence has such facts, since texts use the words loosely."""
