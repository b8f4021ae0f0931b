"""Define a domain: names, predicates and values with the relations between them, as data in one YAML file.

`domain.yaml` beside this module describes coffee making. For videos of another kind, copy the file, change the copy,
and give its path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from barista_bench.errors import ConfigError
from barista_bench.files.reading import load_yaml, read_bounded

MAX_BYTES = 2**22
"""Maximum number of bytes of a domain file."""
_REMEDY = "compare with the domain.yaml of the package"
Side: TypeAlias = Literal["left", "right"]
ValueRelation: TypeAlias = Literal["synonym", "compatible", "exclusive"]


class DomainRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of the file's records. Unknown keys are errors."""


class VerbForms(DomainRecord, frozen=True):
    """The words of a contact: `does` (holds), `do` (hold), `doing` (holding).

    `excludes` lists the contacts that a hand cannot have with the same thing at the same time.
    """

    does: str
    do: str
    doing: str
    excludes: tuple[str, ...] = ()


class PlaceWords(DomainRecord, frozen=True):
    """The words of a spatial predicate between two names.

    The record also has the inverse predicate, and the predicates that this one excludes for the same pair.

    `is_part` means that the first thing is a part of the second. `belongs` means that the second thing distinguishes
    the first from others, as in the lid of the jar. `enclosed` has the words for a first thing that is inside the
    outline of the second.
    """

    words: str
    enclosed: str = ""
    inverse: str | None = None
    excludes: tuple[str, ...] = ()
    is_part: bool = False
    belongs: bool = False


class AttributeWords(DomainRecord, frozen=True):
    """Relations between the values of one attribute type.

    Args:
        dimensions: lists of values that exclude each other. An entry that is itself a list contains synonyms of one
            value. Values of different dimensions can hold together.
        compatible: pairs within a dimension that can hold at the same moment.
    """

    dimensions: tuple[tuple[str | tuple[str, ...], ...], ...]
    compatible: tuple[tuple[str, str], ...] = ()

    @property
    def groups(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Return `dimensions` with each value as a tuple of all its words."""
        return tuple(
            tuple((entry,) if isinstance(entry, str) else entry for entry in dimension) for dimension in self.dimensions
        )

    @property
    def values(self) -> tuple[str, ...]:
        """Return all words for values."""
        return tuple(value for dimension in self.groups for words in dimension for value in words)


class Lengths(DomainRecord, frozen=True):
    """Durations in seconds.

    `gap` is a gap in an annotation that is not an event. `margin` is the time around a queried moment that must be
    constant. `gradual` is the minimum distance of this moment from a gradual change of value. `clip` is the duration of
    a HanDyVQA clip. `action_min` and `action_max` are the durations of the shortest and longest clip of one ViSTa
    action. At least `action_frames` images of an action are shown; this is a count, not a duration.
    """

    gap: float = 0.5
    margin: float = 0.1
    gradual: float = 1.0
    clip: float = 5.0
    action_min: float = 0.0
    action_frames: int = 3
    action_max: float = 4.0


PromptWord: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f{}]+\Z", max_length=500)]
"""One line without braces, since braces mark places."""


class PromptWords(DomainRecord, frozen=True):
    """The words of a domain that fill the places `{domain.NAME}` in packaged prompts and rubrics.

    Args:
        do, doing: the activity of the filmed people: "make coffee", "making coffee".
        lifted, carried, steadied: things with an article, in invented pictures of two hands.
        uses_tool: what the right hand does with a tool at the same time: "stirs with a spoon".
        part, whole: an example of a thing that belongs to another thing, and that other thing.
        other_name: a name that may replace another name.
        vague_name: a name that is too vague, and the thing that it would name.
        one_thing: a sentence on names that mean the same thing.
    """

    do: PromptWord
    doing: PromptWord
    lifted: PromptWord
    carried: PromptWord
    steadied: PromptWord
    uses_tool: PromptWord
    part: PromptWord
    whole: PromptWord
    other_name: PromptWord
    vague_name: PromptWord
    one_thing: PromptWord


class PhraseRules(DomainRecord, frozen=True):
    """Phrases of the task grounding: `white coffee cup held by left hand`.

    Args:
        as_source: maps the value of a relation to words for the relation's source. They come before the category of the
            target.
        as_target: maps the value of a relation to words for the relation's target. A value in neither mapping appears
            in no phrase.
        no_color: values of `color` that distinguish nothing.
    """

    as_source: dict[str, str]
    as_target: dict[str, str]
    no_color: tuple[str, ...] = ()


class Domain(DomainRecord, frozen=True, kw_only=True, dict=True):
    """One domain file.

    Args:
        name: for people.
        categories: every object category with a short description.
        vague: categories that are less specific than the attribute `type`. The value of `type` is then the name.
        names: maps the name of a thing in the graph, in lower case, to an everyday name.
        hands: category names of each hand.
        contact_type: relation type of contacts; `contacts` are its values.
        place_type: relation type of spatial relations; `places` are its values.
        attributes: relations between values, by attribute type.
        verbs: groups of activity verbs that can describe one action; groups may overlap.
        activities: maps an activity or step, in lower case, to the name that people use.
        opposites: pairs of verbs that undo each other. No action is both, even if the two verbs share a group.
        nouns: groups of names that can mean the same thing.
        gradual: the values that a thing reaches gradually, for each attribute type.
        singular: names that identify a thing even if not everything in view is annotated.
        divisible: nouns for substances. Parts of a substance may be in several places and states at once.
        ongoing: maps an attribute value to verbs of processes that continue while a thing has this value, even during
            other actions.
        stratum: the category and the attribute type whose value stratifies the videos.
        prompts: words of the domain for packaged prompts and rubrics; None if packaged texts are never used.
        phrases: how the task grounding names things; None if this task is never asked.
        uncounted: nouns without article or number.
        families: settings of each family of questions, by name. Each family defines the form of its settings.
    """

    version: Literal[1]
    name: str
    categories: dict[str, str]
    vague: tuple[str, ...]
    hands: dict[Side, tuple[str, ...]]
    contact_type: str
    contacts: dict[str, VerbForms]
    place_type: str
    places: dict[str, PlaceWords]
    attributes: dict[str, AttributeWords]
    verbs: tuple[tuple[str, ...], ...]
    nouns: tuple[tuple[str, ...], ...]
    stratum: tuple[str, str]
    activities: dict[str, str] = {}
    opposites: tuple[tuple[str, str], ...] = ()
    gradual: dict[str, tuple[str, ...]] = {}
    singular: tuple[str, ...] = ()
    divisible: tuple[str, ...] = ()
    ongoing: dict[str, tuple[str, ...]] = {}
    lengths: Lengths = Lengths()
    prompts: PromptWords | None = None
    phrases: PhraseRules | None = None
    uncounted: tuple[str, ...] = ()
    names: dict[str, str] = {}
    families: dict[str, dict[str, Any]] = {}

    def side(self, category: str) -> Side | None:
        """Return the side of the hand that a category names, if any. Case is ignored."""
        return next((side for side, names in self.hands.items() if category.casefold() in names), None)

    def relation_of(self, attribute_type: str, first: str, second: str) -> ValueRelation | None:
        """Return the relation between two values of an attribute; None if the file lacks one of the values."""
        words = self.attributes.get(attribute_type)
        positions = [_position(words, value) for value in (first, second)] if words else [None, None]
        if positions[0] is None or positions[1] is None:
            return None
        if positions[0] == positions[1]:
            return "synonym"
        pairs = {frozenset(pair) for pair in words.compatible} if words else set()
        is_compatible = positions[0][0] != positions[1][0] or frozenset((first, second)) in pairs
        return "compatible" if is_compatible else "exclusive"

    def same_verb(self, first: str, second: str) -> bool:
        """Whether both verbs could describe one action.

        A particle that only one of them has does not matter: a person who puts a cup back also places it.
        """
        a, b = first.casefold(), second.casefold()
        if (a, b) in self.opposites or (b, a) in self.opposites:
            return False
        if a == b or any(a in group and b in group for group in self.verbs):
            return True
        (a_head, _, a_particle), (b_head, _, b_particle) = a.partition(" "), b.partition(" ")
        return bool(a_particle) != bool(b_particle) and self.same_verb(a_head, b_head)

    def is_divisible(self, noun: str) -> bool:
        """Whether a noun is a substance, whose parts may be in several places."""
        return noun.endswith(self.divisible)

    def same_noun(self, first: str, second: str) -> bool:
        """Whether both names could mean one thing: the names are equal, one ends with the other, both share a group, or
        one is empty.
        """
        a, b = first.casefold(), second.casefold()
        if a == b or not (a and b) or a.endswith(f" {b}") or b.endswith(f" {a}"):
            return True
        return not self._groups_of_noun(a).isdisjoint(self._groups_of_noun(b))

    @functools.cached_property
    def _groups_of_noun(self) -> Callable[[str], frozenset[int]]:
        """Return a cached function from a name in lower case to its groups of `nouns`. It is called millions of
        times.
        """

        @functools.cache
        def groups(name: str) -> frozenset[int]:
            return frozenset(
                number
                for number, group in enumerate(self.nouns)
                if any(name == word or name.endswith(f" {word}") for word in group)
            )

        return groups


def is_excluded(words: Mapping[str, VerbForms | PlaceWords], value: str, others: Iterable[str]) -> bool:
    """Whether one of `others` excludes a value. The values are contacts of a hand with one thing, or places of
    a pair.
    """
    known_others = [other for other in others if other in words and value in words]
    return any(other in words[value].excludes or value in words[other].excludes for other in known_others)


def _position(words: AttributeWords, value: str) -> tuple[int, int] | None:
    """Return the position (dimension, entry) of a value."""
    for index, dimension in enumerate(words.dimensions):
        for number, entry in enumerate(dimension):
            if value == entry or (isinstance(entry, tuple) and value in entry):
                return index, number
    return None


def load_domain(path: Path | None = None) -> Domain:
    """Read the domain file at `path`; by default, the domain file of coffee making.

    Raises:
        ConfigError: the file cannot be read or has content that the format does not allow.
    """
    if path is None:
        return _packaged_domain()
    return parse_domain(read_bounded(path, MAX_BYTES, remedy=_REMEDY, error=ConfigError), str(path))


@functools.cache
def _packaged_domain() -> Domain:
    return parse_domain(resources.files(__package__).joinpath("domain.yaml").read_bytes(), "domain.yaml")


def parse_domain(content: bytes, source: str) -> Domain:
    """Parse a domain file's content; `source` names it in errors. Raises ConfigError for content outside the format."""
    try:
        domain = msgspec.convert(load_yaml(content, source), Domain)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {error}. Fix: {_REMEDY}") from error
    for attribute, words in domain.attributes.items():
        for first, second in pairwise(sorted(words.values)):
            if first == second:
                raise ConfigError(f"{source}: attributes.{attribute}: {first!r} occurs twice. Fix: remove one")
    return domain


def domain_vocabulary() -> dict[str, str]:
    """Return the release's 45 object categories with short descriptions, for judges and for invented answers."""
    return load_domain().categories
