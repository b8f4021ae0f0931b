"""Draft a domain file from a graph's words for a person to finish, or draft the lines that a domain file lacks.

Each line has the count of a word and the first place where the word occurs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import yaml

from barista_bench.scene_graph.domain import Domain, load_domain
from barista_bench.scene_graph.graph_words import (
    KIND,
    GraphWords,
    Word,
    base_form,
    hand_side,
    participle,
    spoken_form,
    third_person,
)
from barista_bench.scene_graph.video_graph import UNNAMED

FEWEST = 2
"""Number of times that two verbs describe one thing at once, or that a noun and a category occur together, before the
draft proposes them as alike.
"""


_INSTRUCTIONS = (
    ("Bring me the {a}.", 1),
    ("Put away the {a}.", 1),
    ("Hold the {a}.", 1),
    ("Move the {a} out of the way.", 1),
    ("Check whether the {a} is clean.", 1),
    ("Bring me the {a} and the {b}.", 2),
    ("Put the {a} next to the {b}.", 2),
    ("Put away the {a}, the {b} and the {c}.", 3),
)
"""Instructions that make sense for most things, with the number of things that each needs."""
_PLACING = {
    "on": "Put the {a} on the {b}.",
    "in": "Put the {a} into the {b}.",
    "inside": "Put the {a} into the {b}.",
    "under": "Put the {a} under the {b}.",
    "attached to": "Attach the {a} to the {b}.",
}
_STATES = {"open": "Open the {a}.", "close": "Close the {a}.", "closed": "Close the {a}."}


class DraftLine(NamedTuple):
    """A line of the file. `word` is the word for which the line makes a proposal."""

    text: str
    word: Word | None = None


def draft_domain(words: GraphWords, name: str) -> str:
    """Return the domain file as YAML that `load_domain` reads. A comment gives the count and place of each proposal."""
    lines = draft_lines(words, name)
    return "".join(f"{text}  # {words.note(*word)}\n" if word else f"{text}\n" for text, word in lines)


def draft_lines(words: GraphWords, name: str) -> list[DraftLine]:
    """Return the lines of the file without comments."""
    file = _Draft(words)
    hands = {side: [c for (c,) in words.rank_words("category") if hand_side(c) == side] for side in ("left", "right")}
    categories = [c for (c,) in words.rank_words("category") if not hand_side(c) and c.lower() != UNNAMED]
    contact_type, place_type = file.main_relation_types()
    contacts = [value for kind, value in words.rank_words("relation", "hand") if kind == contact_type]
    places = [value for kind, value in words.rank_words("relation", "thing") if kind == place_type]
    file.add_head(name)
    file.add_map("categories", ((c, "", ("category", c)) for c in categories))
    file.add(f"vague: {_flow([UNNAMED] if (UNNAMED,) in words.rank_words('category') else [])}")
    file.add(f"hands: {_flow({side: [c.lower() for c in names] for side, names in hands.items()})}")
    file.add(f"contact_type: {_flow(contact_type)}")
    file.add_map("contacts", ((v, _verb(v), ("relation", "hand", contact_type, v)) for v in contacts))
    file.add(f"place_type: {_flow(place_type)}")
    file.add_map("places", ((v, {"words": v}, ("relation", "thing", place_type, v)) for v in places))
    file.add_attributes()
    verbs = [verb for (verb,) in words.rank_words("verb")]
    file.add(
        "# Verbs that can be said of one action: none is offered as a wrong answer for another. First the groups that"
    )
    file.add("# the package knows, with the count of the first verb; then verbs that were said of one thing at once.")
    file.add_list("verbs", file.verb_groups())
    file.add("# Verbs of which one undoes the other: they are never one action, although a group may have both.")
    file.add_list("opposites", file.opposites())
    file.add("# Names that can mean one thing: a noun of activities, and what hands touch meanwhile or ends like it.")
    pairs = combinations(sorted(categories, key=len), 2)
    endings = [pair for pair in pairs if pair[1].lower().endswith(f" {pair[0].lower()}")]
    name_endings = (([first.lower(), second.lower()], ("category", second)) for first, second in endings)
    file.add_list("nouns", [*file.noun_pairs(), *name_endings])
    file.add("# Stuff, of which a part may be in the hand and the rest elsewhere: no question is about where it is.")
    file.add_list("divisible", file.divisible_nouns())
    kinds = [kind for kind, _ in words.rank_words("value")]
    file.add("# Whose value videos are stratified by.")
    kind = "type" if "type" in kinds else (kinds or ["type"])[0]
    file.add(f"stratum: {_flow([(categories or [UNNAMED])[0], kind])}")
    plural = [c for c in categories if c.endswith("s") and not c.endswith("ss")]
    file.add("# Names without article and number: those that look like plurals.")
    file.add(f"uncounted: {_flow(plural)}")
    file.add_families(verbs, contacts, places, categories)
    return file.lines


def _flow(value: object) -> str:
    """Return a value as YAML on one line, whatever words it contains."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True).removesuffix("...\n").strip()
    return text if len(text.splitlines()) < 2 else json.dumps(value)


def _verb(value: str) -> dict[str, str]:
    verb = base_form(value.lower())
    return {"does": third_person(verb), "do": verb, "doing": participle(verb)}


class _Draft:
    def __init__(self, words: GraphWords) -> None:
        self.words = words
        self.lines: list[DraftLine] = []

    def add(self, text: str, word: Word | None = None) -> None:
        self.lines.append(DraftLine(text, word))

    def add_head(self, name: str) -> None:
        head = (
            "# Proposed by `barista-bench show stats --domain-draft` from the words of scene graphs. Behind each",
            "# proposal stands how often it was found, and where first. Go through it: leave out what is wrong, add",
            "# what lacks. docs/generate.md says what each section does; the package's domain.yaml is a finished one.",
            "version: 1",
            f"name: {_flow(name)}",
        )
        self.lines += map(DraftLine, head)

    def main_relation_types(self) -> tuple[str, str]:
        """Return the two relation types with the most records: one for hands, and one for things."""
        counts: dict[str, Counter[str]] = {"hand": Counter(), "thing": Counter()}
        for (kind, *rest), count in self.words.counts.items():
            if kind == "relation":
                counts[rest[0]][rest[1]] += count
        contact = max(sorted(counts["hand"]), key=counts["hand"].__getitem__, default="")
        placement = max(sorted(set(counts["thing"]) - {contact}), key=counts["thing"].__getitem__, default="")
        others = sorted({*counts["hand"], *counts["thing"]} - {contact, placement})
        if others:
            self.add(f"# Relation types that stand in neither section: {_flow(others)}")
        return contact, placement

    def add_map(self, key: str, rows: Iterable[tuple[str, object, Word]]) -> None:
        lines = [DraftLine(f"  {_flow(name)}: {_flow(value)}", word) for name, value, word in rows]
        self.lines += [DraftLine(f"{key}:"), *lines] if lines else [DraftLine(f"{key}: {{}}")]

    def add_list(self, key: str, rows: Iterable[tuple[str | list[str], Word]], indent: str = "") -> None:
        lines = [DraftLine(f"{indent}  - {_flow(row)}", word) for row, word in rows]
        self.lines += [DraftLine(f"{indent}{key}:"), *lines] if lines else [DraftLine(f"{indent}{key}: []")]

    def verb_groups(self) -> Iterator[tuple[list[str], Word]]:
        """Yield the package's groups as far as the graph has their verbs, then other pairs that were said at once."""
        verbs = self._known_verbs()
        groups = [[verb for verb in verbs if verb in group] for group in load_domain().verbs]
        largest = [group for group in groups if not any({*group} < {*other} for other in groups)]
        for row in (row for index, row in enumerate(largest) if len(row) > 1 and row not in largest[:index]):
            if verbs[row[0]][0] == "verb":
                yield row, verbs[row[0]]
        for pair in self._pairs_at_once():
            if not any({*pair} <= {*row} for row in largest):
                yield [*pair], ("alike verbs", *pair)

    def opposites(self) -> Iterator[tuple[list[str], Word]]:
        verbs, at_once = self._known_verbs(), {frozenset(pair) for pair in self._pairs_at_once()}
        for pair in load_domain().opposites:
            if verbs.keys() >= {*pair} and frozenset(pair) not in at_once:
                yield [*pair], verbs[pair[0]]

    def _known_verbs(self) -> dict[str, Word]:
        """Return the verbs of activities, with and without particle, then those of contacts, each with its word."""
        activities = [(verb, ("verb", verb)) for (verb,) in self.words.rank_words("verb")]
        heads = [(verb.partition(" ")[0], word) for verb, word in activities]
        contacts = [
            (base_form(row[1].lower()), ("relation", "hand", *row)) for row in self.words.rank_words("relation", "hand")
        ]
        verbs: dict[str, Word] = {}
        for verb, word in (*activities, *heads, *contacts):
            verbs.setdefault(verb, word)
        return verbs

    def _pairs_at_once(self) -> list[Word]:
        rows = self.words.rank_words("alike verbs")
        return [pair for pair in rows if self.words.counts["alike verbs", *pair] >= FEWEST]

    def divisible_nouns(self) -> Iterator[tuple[str, Word]]:
        """Yield the package's nouns of stuff with which a name of the graph ends."""
        names = [
            (*kind, *name)
            for kind in (("category",), ("value", KIND), ("noun",))
            for name in self.words.rank_words(*kind)
        ]
        for stuff in load_domain().divisible:
            if found := [word for word in names if word[-1].lower().endswith(stuff)]:
                yield stuff, max(found, key=self.words.counts.__getitem__)

    def noun_pairs(self) -> Iterator[tuple[list[str], Word]]:
        """Yield pairs of a noun and the category that is touched most often at the same time.

        The noun is not an annotated name in any video.
        """
        paired_nouns = {name.lower() for (name,) in self.words.rank_words("category")}
        paired_nouns |= {kind.lower() for (kind,) in self.words.rank_words("value", KIND)}
        for noun, category in self.words.rank_words("named"):
            if noun not in paired_nouns and self.words.counts["named", noun, category] >= FEWEST:
                paired_nouns.add(noun)
                yield [noun, category], ("named", noun, category)

    def add_attributes(self) -> None:
        """Add each attribute type with its mutually exclusive values.

        Two values exclude each other if a thing has them one after the other, and no thing has both at once.
        """
        kinds = list(dict.fromkeys(kind for kind, _ in self.words.rank_words("value")))
        self.add("attributes:" if kinds else "attributes: {}")
        for kind in kinds:
            self.add(f"  {_flow(kind)}:")
            self.add_list("dimensions", self._dimensions(kind), "    ")

    def _dimensions(self, kind: str) -> Iterator[tuple[list[str], Word]]:
        values = [value for (value,) in self.words.rank_words("value", kind)]
        at_once = {frozenset(pair) for pair in self.words.rank_words("at once", kind)}
        exclusive = {frozenset(pair) for pair in self.words.rank_words("exclusive", kind)} - at_once
        while values:
            group = [values.pop(0)]
            for value in list(values):
                is_linked = any(frozenset((value, other)) in exclusive for other in group)
                if is_linked and not any(frozenset((value, other)) in at_once for other in group):
                    group.append(value)
                    values.remove(value)
            pairs = [pair for pair in combinations(sorted(group), 2) if frozenset(pair) in exclusive]
            yield group, ("exclusive", kind, *pairs[0]) if pairs else ("value", kind, group[0])

    def add_families(
        self, verbs: Sequence[str], contacts: Sequence[str], places: Sequence[str], names: Sequence[str]
    ) -> None:
        kinds = [kind for kind, _ in self.words.rank_words("value")]
        state = "state" if "state" in kinds else next(iter(kinds), "")
        self.add("families:")
        self.add("  handyvqa:")
        self.add("    doing:" if verbs else "    doing: {}")
        for verb in verbs:
            self.add(f"      {_flow(verb)}: {_flow(participle(spoken_form(verb)))}", ("verb", verb))
        words = {"grip": contacts[0] if contacts else "", "where": list(places), "state": state}
        self.lines += [DraftLine(f"    {key}: {_flow(value)}") for key, value in words.items()]
        self.lines += map(DraftLine, ("  egocot:", "    # What an action does that goes on while a value comes."))
        causes: dict[str, list[str]] = {}
        for value, verb in self.words.rank_words("cause"):
            causes.setdefault(value, []).append(verb)
        self.add("    causes:" if causes else "    causes: {}")
        for value, cause_verbs in causes.items():
            self.add(f"      {_flow(value)}: {_flow(cause_verbs)}", ("cause", value, cause_verbs[0]))
        phrases = {verb: spoken_form(verb) for verb in verbs if spoken_form(verb) != verb}
        self.add(f"    verbs: {_flow(phrases)}")
        lower = [name.lower() for name in names]
        states = {name: {value: value for (value,) in self.words.rank_words("has", name, state)} for name in lower}
        kinds = ["held"] if any(_verb(value)["do"] == "hold" for value in contacts) else lower
        tog: Mapping[str, object] = {
            "scene": "Room",
            "handled": "I only mean things that the person touches in the video.",
            "explicit": [{"say": say, "takes": [list(kinds) for _ in range(count)]} for say, count in _INSTRUCTIONS],
            "implicit": [],
            "places": {value: _PLACING[value] for value in places if value in _PLACING},
            "states": {
                value: say for value, say in _STATES.items() if (state, value) in self.words.rank_words("value")
            },
            "synonyms": {},
        }
        vista: Mapping[str, object] = {
            "prompt": "Somebody handles things. Say for each frame where the hands are and what they touch.",
            "example": "1. The right hand holds nothing.\n2. The hand has closed around a thing.",
            "width": 320,
            "fps": 30,
            "phrases": phrases,
            "nouns": {},
            "opposites": {},
            "objects": [noun for (noun,) in self.words.rank_words("noun")],
            "states": {name: values for name, values in states.items() if len(values) > 1},
            "hollow": [],
            "contents": "",
        }
        for family, section in (("tog_bench", tog), ("vista", vista)):
            self.add(f"  {family}:")
            self.lines += [DraftLine(f"    {key}: {_flow(value)}") for key, value in section.items()]


# What a domain file lacks


def lacking_lines(words: GraphWords, domain: Domain) -> list[str]:
    """Return the lines that a domain file lacks for these words, most frequent first, each with count and place."""
    rows = [(words.counts[word], f"{line}  # {words.note(*word)}") for word, line in _lacking_words(words, domain)]
    return [line for _, line in sorted(rows, key=lambda row: (-row[0], row[1]))]


def _lacking_words(words: GraphWords, domain: Domain) -> Iterator[tuple[Word, str]]:
    categories = {name.casefold() for name in domain.categories}
    for (name,) in words.rank_words("category"):
        if name.casefold() not in categories and name.lower() != UNNAMED and domain.side(name) is None:
            yield ("category", name), f"categories: {_flow({name: ''})}"
    for source_kind, kind, value in words.rank_words("relation"):
        word = ("relation", source_kind, kind, value)
        if kind == domain.contact_type and source_kind == "hand" and value not in domain.contacts:
            yield word, f"contacts: {_flow({value: _verb(value)})}"
        elif kind == domain.place_type and source_kind == "thing" and value not in domain.places:
            yield word, f"places: {_flow({value: {'words': value}})}"
        elif kind not in (domain.contact_type, domain.place_type):
            yield word, f"contact_type or place_type, of the relation type {kind!r}: {_flow(value)}"
    for kind, value in words.rank_words("value"):
        if kind not in domain.attributes or value not in domain.attributes[kind].values:
            yield ("value", kind, value), f"attributes: {{{_flow(kind)}: {{dimensions: [[{_flow(value)}]]}}}}"
    doing = domain.families.get("handyvqa", {}).get("doing", {})
    for (verb,) in words.rank_words("verb"):
        if verb not in doing:
            yield ("verb", verb), f"families: {{handyvqa: {{doing: {_flow({verb: participle(spoken_form(verb))})}}}}}"
    names = [*domain.categories, *(domain.attributes["type"].values if "type" in domain.attributes else ())]
    for (noun,) in words.rank_words("noun"):
        if not any(domain.same_noun(noun, name) for name in names):
            yield ("noun", noun), f"nouns: [[{_flow(noun)}]]"
