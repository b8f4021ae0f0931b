"""A domain: names, predicates, values and how they relate, as data in one YAML file.

`domain.yaml` beside this module describes coffee making. For videos of another kind copy it, and name the copy.
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
"""Largest domain file that is read."""
_REMEDY = "compare with the domain.yaml of the package"
Side: TypeAlias = Literal["left", "right"]
ValueRelation: TypeAlias = Literal["synonym", "compatible", "exclusive"]


class DomainRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the file's records: a key that the format does not know is an error."""


class VerbForms(DomainRecord, frozen=True):
    """A contact in words: `does` (holds), `do` (hold), `doing` (holding); `excludes` are contacts that a hand cannot
    have with the same thing at the same time."""

    does: str
    do: str
    doing: str
    excludes: tuple[str, ...] = ()


class PlaceWords(DomainRecord, frozen=True):
    """A spatial predicate: its words between two names, the predicate of the other direction, and those that it
    excludes between the same two things. `is_part`: the first is a part of the second. `belongs`: it can be told from
    others by the second, as the lid of the jar."""

    words: str
    inverse: str | None = None
    excludes: tuple[str, ...] = ()
    is_part: bool = False
    belongs: bool = False


class AttributeWords(DomainRecord, frozen=True):
    """Relations between the values of one attribute type.

    Args:
        dimensions: lists of values that exclude each other; an entry that is a list holds words for one value. Values
            of different dimensions can hold together.
        compatible: pairs within a dimension that can both be said of one moment.
    """

    dimensions: tuple[tuple[str | tuple[str, ...], ...], ...]
    compatible: tuple[tuple[str, str], ...] = ()

    @property
    def groups(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """`dimensions`, each value by all of its words."""
        return tuple(
            tuple((entry,) if isinstance(entry, str) else entry for entry in dimension) for dimension in self.dimensions
        )

    @property
    def values(self) -> tuple[str, ...]:
        """All words for values."""
        return tuple(value for dimension in self.groups for words in dimension for value in words)


class Lengths(DomainRecord, frozen=True):
    """Seconds: a hole in an annotation that is not an event; what must be so around a moment that is asked about, and
    how far that is at the least from where a value comes by degrees; a clip of HanDyVQA; the shortest and longest clip
    of one ViSTa action, of which `action_frames` pictures are shown at the least, too."""

    gap: float = 0.5
    margin: float = 0.1
    gradual: float = 1.0
    clip: float = 5.0
    action_min: float = 0.0
    action_frames: int = 3
    action_max: float = 4.0


PromptWord: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f{}]+\Z", max_length=500)]
"""One line without braces, which mark places."""


class PromptWords(DomainRecord, frozen=True):
    """The words of a domain in packaged prompts and rubrics, at their places `{domain.NAME}`.

    Args:
        do, doing: what the people filmed do: "make coffee", "making coffee".
        lifted, carried, steadied: things with their article, in made-up pictures of two hands.
        uses_tool: what the right hand does with a tool meanwhile: "stirs with a spoon".
        part, whole: a thing that belongs to another one, in an example.
        other_name: which name may stand for another one.
        vague_name: a name that is too vague, and for what.
        one_thing: a sentence on names that mean one thing.
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
        as_source: value of a relation to words for its source, before the category of its target.
        as_target: the same for its target. A value that is in neither is in no phrase.
        no_color: values of `color` that tell nothing apart.
    """

    as_source: dict[str, str]
    as_target: dict[str, str]
    no_color: tuple[str, ...] = ()


class Domain(DomainRecord, frozen=True, kw_only=True, dict=True):
    """One domain file.

    Args:
        name: for people.
        categories: every object category, with what it is in a few words.
        vague: categories that say less than the attribute `type` does: its value is the name.
        names: what the graph calls a thing, in lower case, to what people call it.
        hands: category names of each hand.
        contact_type: relation type of contacts; `contacts` are its values.
        place_type: relation type of spatial relations; `places` are its values.
        attributes: by attribute type.
        verbs: groups of verbs of activities that can be said of one action; groups may overlap.
        opposites: pairs of verbs of which one undoes the other: no action is both, even where they share a group.
        nouns: groups of names that can mean one thing.
        gradual: of each attribute type the values that a thing comes to have by degrees.
        singular: names that say which thing is meant even where not all that is in view is annotated.
        divisible: nouns for stuff, of which parts may be in several places and states at once.
        ongoing: value of an attribute to the verbs of what goes on while something has it, whatever else is done.
        stratum: category and attribute type whose value a video is stratified by.
        prompts: what packaged prompts and rubrics say of the domain; None where they are never used.
        phrases: how the task grounding names things; None where it is never asked.
        uncounted: nouns that take neither article nor number.
        families: by name, what a family of questions needs to be told; the family says in which form.
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
        """The side of the hand that a category names, if any; in upper or lower case."""
        return next((side for side, names in self.hands.items() if category.casefold() in names), None)

    def relation_of(self, attribute_type: str, first: str, second: str) -> ValueRelation | None:
        """The relation between two values of an attribute; None where the file does not know one of them."""
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
        """Whether both verbs could be said of one action."""
        a, b = first.casefold(), second.casefold()
        if (a, b) in self.opposites or (b, a) in self.opposites:
            return False
        return a == b or any(a in group and b in group for group in self.verbs)

    def is_divisible(self, noun: str) -> bool:
        """Whether a noun is stuff, of which parts may be in several places."""
        return noun.endswith(self.divisible)

    def same_noun(self, first: str, second: str) -> bool:
        """Whether both names could mean one thing: they are the same, one ends with the other, or share a group."""
        a, b = first.casefold(), second.casefold()
        if a == b or a.endswith(f" {b}") or b.endswith(f" {a}"):
            return True
        return not self._groups_of_noun(a).isdisjoint(self._groups_of_noun(b))

    @functools.cached_property
    def _groups_of_noun(self) -> Callable[[str], frozenset[int]]:
        """The groups of `nouns` that a name in lower case is of, each name looked up once: it is asked for millions of
        times."""

        @functools.cache
        def groups(name: str) -> frozenset[int]:
            return frozenset(
                number
                for number, group in enumerate(self.nouns)
                if any(name == word or name.endswith(f" {word}") for word in group)
            )

        return groups


def is_excluded(words: Mapping[str, VerbForms | PlaceWords], value: str, others: Iterable[str]) -> bool:
    """Whether one of the others excludes a value, be they contacts of a hand with one thing or places between two."""
    known_others = [other for other in others if other in words and value in words]
    return any(other in words[value].excludes or value in words[other].excludes for other in known_others)


def _position(words: AttributeWords, value: str) -> tuple[int, int] | None:
    """(dimension, entry) of a value."""
    for at, dimension in enumerate(words.dimensions):
        for number, entry in enumerate(dimension):
            if value == entry or (isinstance(entry, tuple) and value in entry):
                return at, number
    return None


def load_domain(path: Path | None = None) -> Domain:
    """The domain file at `path`; of coffee making where it is None.

    Raises:
        ConfigError: the file cannot be read, or says something that the format does not have.
    """
    if path is None:
        return _packaged_domain()
    return parse_domain(read_bounded(path, MAX_BYTES, remedy=_REMEDY, error=ConfigError), str(path))


@functools.cache
def _packaged_domain() -> Domain:
    return parse_domain(resources.files(__package__).joinpath("domain.yaml").read_bytes(), "domain.yaml")


def parse_domain(content: bytes, source: str) -> Domain:
    """A domain file's content; `source` names it in errors. Raises ConfigError for what the format does not have."""
    try:
        domain = msgspec.convert(load_yaml(content, source), Domain)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {error}. Remedy: {_REMEDY}") from error
    for attribute, words in domain.attributes.items():
        for first, second in pairwise(sorted(words.values)):
            if first == second:
                raise ConfigError(f"{source}: attributes.{attribute}: {first!r} stands twice. Remedy: leave one out")
    return domain


def domain_vocabulary() -> dict[str, str]:
    """The release's 45 object categories, each with a short description: for judges and for made-up answers."""
    return load_domain().categories
