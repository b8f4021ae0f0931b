"""The words of the claim grammar: what is done, what stands where, and names for the same thing. Data, and small.

What is in no list here, and in no evidence, makes no claim. Names come from the evidence; this file only says which
names mean the same, and how verbs are inflected.
"""

from __future__ import annotations

import re
from itertools import chain
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from barista_bench.benchmarks.lexical import stem

PieceKind: TypeAlias = Literal[
    "name", "predicate", "region", "target", "negation", "hedge", "article", "stop", "word",
    "state", "action", "cause", "order",
]  # fmt: skip


class Predicate(NamedTuple):
    """A relation by its canonical name. `flipped`: the words name the two ends the other way round (`held by`)."""

    name: str
    flipped: bool = False


class Region(NamedTuple):
    """A part of the frame: `across` is left, centre or right, `down` is upper, middle or lower; empty for any."""

    across: str
    down: str


def stems(text: str) -> tuple[str, ...]:
    """Words as they are compared: case-folded, singular, split at everything but letters and digits.

    >>> stems("Left-hand cups")
    ('left', 'hand', 'cup')
    """
    words = "".join(character if character.isalnum() else " " for character in text.casefold()).split()
    return tuple(stem(word) for word in words)


def _verb(base: str, past: str, *, ing: str = "") -> tuple[str, ...]:
    return (base, f"{base}s", past, ing or f"{base}ing")


_VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "holds": (
        _verb("hold", "held"),
        _verb("grasp", "grasped"),
        _verb("grip", "gripped", ing="gripping"),
        _verb("clutch", "clutched"),
        _verb("carry", "carried"),
        _verb("lift", "lifted"),
        ("carries", "clutches", "steady", "steadies", "steadied", "steadying", "steadily hold"),
        ("pick up", "picks up", "picked up", "picking up"),
    ),
    "touches": (
        _verb("touch", "touched"),
        ("touches",),
        _verb("contact", "contacted"),
        ("in contact with", "in direct contact with", "in physical contact with", "in direct physical contact with"),
    ),
    "presses": (_verb("press", "pressed"), ("presses",)),
    "pushes": (_verb("push", "pushed"), ("pushes",)),
    "pulls": (_verb("pull", "pulled"),),
    "turns": (_verb("turn", "turned"), _verb("rotate", "rotated", ing="rotating"), _verb("twist", "twisted")),
    "opens": (_verb("open", "opened"),),
    "closes": (_verb("close", "closed", ing="closing"), ("shut", "shuts", "shutting")),
    "releases": (
        _verb("release", "released", ing="releasing"),
        ("let go of", "lets go of", "letting go of", "put down", "puts down", "putting down"),
        _verb("drop", "dropped", ing="dropping"),
    ),
    "cuts": (_verb("cut", "cut", ing="cutting"), _verb("slice", "sliced", ing="slicing")),
    "switches": (
        ("turn on", "turns on", "turned on", "turning on", "turn off", "turns off", "turned off", "turning off"),
        ("switch on", "switches on", "switched on", "switch off", "switches off", "switched off"),
    ),
    "manipulates by": (("manipulates objects using", "manipulating objects using", "manipulates objects with"),),
    "manipulates": (_verb("manipulate", "manipulated", ing="manipulating"), _verb("handle", "handled")),
}
_PLACES: dict[str, tuple[str, ...]] = {
    "on": ("on", "on top of", "onto", "atop", "resting on", "lying on", "placed on", "sitting on", "standing on"),
    "under": ("under", "underneath", "beneath", "below", "placed under"),
    "inside": ("inside", "inside of", "in", "into", "within", "placed in", "inserted in", "inserted into"),
    "outside": ("outside", "outside of"),
    "near": ("near", "near to", "next to", "beside", "close to", "adjacent to"),
    "far from": ("far from",),
    "attached to": ("attached to", "connected to", "fixed to", "fastened to", "mounted on"),
    "detached from": ("detached from", "disconnected from", "separated from", "removed from"),
    "part of": ("part of", "a part of"),
    "left of": ("left of", "to the left of"),
    "right of": ("right of", "to the right of"),
    "in front of": ("in front of",),
    "behind": ("behind",),
}
_FLIPPED: dict[str, tuple[str, ...]] = {
    "holds": ("held by", "held in", "held with", "grasped by", "gripped by", "carried by", "lifted by", "clutched by"),
    "touches": ("touched by", "contacted by"),
    "presses": ("pressed by",),
    "pushes": ("pushed by",),
    "pulls": ("pulled by",),
    "turns": ("turned by", "rotated by", "twisted by"),
    "opens": ("opened by",),
    "closes": ("closed by", "shut by"),
    "releases": ("released by", "put down by", "dropped by"),
    "manipulates": ("manipulated by", "handled by"),
    "cuts": ("cut by",),
    "inside": ("contains", "contain", "containing", "contained"),
    "under": ("above",),
}

SYMMETRIC = frozenset({"near", "far from", "attached to", "detached from"})
"""These hold in both directions."""
CONTACTS = frozenset({"holds", "touches", "presses", "pushes", "pulls", "turns", "opens", "closes", "manipulates"})
"""What a hand does to what it touches: a claim of such a thing is one about the hand."""
HOLDING = "holds"
RELEASING = "releases"
"""A moment, not a state: it may happen at the very end of the holding."""
ENTAILS = MappingProxyType(
    {
        **{name: frozenset({"touches", "manipulates", "near"}) for name in CONTACTS},
        "touches": frozenset({"near"}),
        "on": frozenset({"near"}),
        "inside": frozenset({"near"}),
        "attached to": frozenset({"near"}),
    }
)
"""What is true wherever a relation is. `holds`: whoever holds a thing touches it."""
_OPPOSITES = (
    ("on", "under"), ("inside", "outside"), ("near", "far from"), ("attached to", "detached from"),
    ("left of", "right of"), ("in front of", "behind"), ("pushes", "pulls"), ("opens", "closes"),
    ("holds", "releases"), ("inside", "far from"), ("on", "far from"), ("holds", "far from"),
)  # fmt: skip
APART = "apart from"
EXCLUDED = MappingProxyType({name: f"not {name}" for name in ("touches", APART, "is", "does", "causes")})
"""What a graph excludes, by what it would be if it were so."""
_NO_CONTACT = tuple((name, apart) for name in CONTACTS for apart in (APART, EXCLUDED["touches"]))
OPPOSITES = frozenset(
    pair
    for first, second in (*_OPPOSITES, *_NO_CONTACT, *EXCLUDED.items())
    for pair in ((first, second), (second, first))
)
"""Pairs that never hold of the same two things at the same time."""
ONE_WAY = frozenset(
    {"on", "under", "inside", "outside", "part of", "left of", "right of", "in front of", "behind", "precedes"}
)
"""These never hold in both directions."""

PREDICATES: MappingProxyType[tuple[str, ...], Predicate] = MappingProxyType(
    {
        **{
            stems(words): Predicate(name)
            for name, groups in _VERBS.items()
            for words in (name, *chain.from_iterable(groups))
        },
        **{stems(words): Predicate(name) for name, group in _PLACES.items() for words in group},
        **{stems(words): Predicate(name, flipped=True) for name, group in _FLIPPED.items() for words in group},
    }
)

_ACROSS = {"left": "left", "right": "right", "center": "centre", "centre": "centre", "central": "centre"}
_DOWN = {"upper": "upper", "top": "upper", "lower": "lower", "bottom": "lower", "middle": "middle", "mid": "middle"}
_PARTS = ("side", "half", "edge", "part", "region", "corner", "portion", "area", "third")
_VIEWS = ("frame", "view", "image", "scene", "screen", "picture", "video", "shot")


def _regions() -> dict[tuple[str, ...], Region]:
    regions: dict[tuple[str, ...], Region] = {}
    for down, row in _DOWN.items():
        for across, column in _ACROSS.items():
            regions[(down, across)] = regions[(across, down)] = Region(column, row)
    for word, region in (
        *((word, Region(column, "")) for word, column in _ACROSS.items()),
        *((word, Region("", row)) for word, row in _DOWN.items() if word != "middle"),
        ("middle", Region("centre", "")),
    ):
        for part in _PARTS:
            regions[(word, part)] = region
        for view in _VIEWS:
            regions[(word, "of", view)] = regions[(word, "of", "the", view)] = region
    return regions


REGIONS: MappingProxyType[tuple[str, ...], Region] = MappingProxyType(_regions())
"""Only wordings that can mean nothing but a part of the frame: `right` alone is a hand, a direction or an approval."""
VIEWS = frozenset(_VIEWS) | {"egocentric", "camera", "operator"}
"""`the left side of ...` is a part of the frame before these, else of a thing."""

HANDS: MappingProxyType[tuple[str, ...], tuple[str, ...]] = MappingProxyType(
    {
        ("left", "hand"): ("left hand",),
        ("right", "hand"): ("right hand",),
        ("both", "hand"): ("left hand", "right hand"),
        ("two", "hand"): ("left hand", "right hand"),
        ("hand",): ("hand",),
        **{
            stems(words): ("hand",)
            for words in ("operator", "camera wearer", "wearer", "camera wearer (operator)", "person", "user", "actor")
        },
    }
)
"""`hand` is a hand of either side: so are people, who do what they do with their hands."""
SIDES = ("left hand", "right hand")

SYNONYMS = tuple(
    tuple(stems(name) for name in group.split(", "))
    for group in """
cup, mug, coffee cup, coffee mug
glass, drinking glass, tumbler
tap, faucet
sink, basin
refrigerator, fridge
trash can, bin, rubbish bin, garbage can, trash bin
counter, countertop, worktop, kitchen counter
stove, cooktop, hob, stovetop
pan, frying pan, skillet
pot, saucepan, cooking pot
coffee machine, coffee maker, espresso machine
milk frother, frother
milk carton, carton
coffee mill, coffee grinder, grinder
steam wand, wand
cleaning brush, brush
water tank, tank
capsule, pod, coffee capsule
lid, cap
towel, cloth, rag, dishcloth
tissue, paper towel, napkin
phone, cell phone, smartphone, mobile phone
sofa, couch
plastic bag, bag
carafe, jug
""".strip().splitlines()
)

NO_HEADS = frozenset({"can", "top", "side", "part", "piece", "set", "cap", "view", "area", "thing", "step", "time"})
"""Last words of names that say something else when they stand alone: a trash can, but `can be seen`."""
_NOT = """no not never neither nor without none cannot isn doesn aren wasn weren don didn isnt doesnt instead unlike
hardly false incorrect wrong contradict contradicted"""
NEGATIONS = frozenset(stems(_NOT))
HEDGES = frozenset({"might", "may", "could", "would", "if", "whether", "perhaps", "possibly", "unclear", "probably"})
ARTICLES = frozenset({"the", "a", "an", "this", "that", "its", "their", "his", "her", "some", "one", "another"})
TARGET_WORDS = frozenset(
    {
        ("target",),
        ("answer",),
        *((kind, "object") for kind in ("target", "active", "handled", "manipulated", "correct", "relevant")),
    }
)
"""What a rationale calls the thing that is asked about."""
ANYTHING = frozenset({"object", "item", "thing", "device", "tool", "utensil", "something", "it", "them"})
"""Words that may stand for any object."""
_STOPS = """at from to with and or while as by for of is are was were be been being he she they then when before after
during because so thus which who where still now again also"""
STOPS = frozenset(stems(_STOPS)) | frozenset(_STOPS.split())
"""Words that end a name."""


PARTS = frozenset(
    stems("""handle grip knob rim edge lip top bottom base side body neck spout tip end corner middle centre center
front back surface wall stem strap cover shaft""")
)
"""Who holds one of these may hold the thing that it is a part of."""

ORDER = re.compile(
    r"\b(?:later|then|after(?:wards?)?|before(?:hand)?|subsequently|eventually|finally|lastly|next(?! to\b)|first"
    r"|initially|earlier|previously|prior|following|once|until|till|soon|into|onto|starts?|starting|begins?|beginning"
    r"|(?:at|in|by|towards?) the (?:very )?end)\b",
    re.IGNORECASE,
)
"""Words that take what is said to another time than that which was given; putting in or on ends at another one."""
SAME_TIME = re.compile(
    r"\b(?:at|in) (?:this|that|the(?: very)? (?:same|given|asked|specified|stated|queried)) "
    r"(?:very |exact |precise )?(?:moment|time|instant|point|timestamp)\b",
    re.IGNORECASE,
)
"""Words that mean the time last given, or the moment that is asked about."""
CLOCKS = "clock|timer|countdown|stopwatch|microwave|oven|watch|display|thermometer|phone"
"""Things that show times which are none of the video's."""


def canonical_predicate(text: str) -> Predicate:
    """The predicate of an annotation: by the lists above, else by its own words.

    >>> canonical_predicate("touched by"), canonical_predicate("pours into").name
    (Predicate(name='touches', flipped=True), 'pour into')
    """
    words = stems(text)
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
"""Words that say such facts; they are looked for only where the evidence has some, since others use them loosely."""
STATE_MARKS = frozenset({"is", "are", "was", "were", "be", "still", "already", "now", "become", "stay", "remain"})
"""What a state follows by which something is said of a thing: `the drawer is open`, not `the open drawer`."""
