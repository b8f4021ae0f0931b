"""ViSTa's section of a domain file: how actions, states and places are put into words."""

from __future__ import annotations

from barista_bench.scene_graph.domain import DomainRecord

_PARTICLES = ("", "up", "down", "on", "off", "in", "out", "away", "back", "over")
"""Words behind a verb that "it" stands before."""


class VistaWords(DomainRecord, frozen=True):
    """ViSTa's section of a domain file.

    Args:
        prompt: words about the videos for a generative model.
        example: an example answer for it.
        width: pixels of a video's longer side at the most.
        fps: frames a second of all videos.
        phrases: a verb of the graph's activities to what people say for it.
        nouns: of activities, likewise.
        opposites: pairs of verbs of which one undoes the other, by kind of set.
        objects: what hands can do one and the same thing to, as activities name it.
        states: category to the values that it is asked about, each in words.
        hollow: values with which nothing can be inside of a thing.
        contents: predicate of what is inside of a thing.
    """

    prompt: str
    example: str
    width: int
    fps: int
    phrases: dict[str, str]
    nouns: dict[str, str]
    opposites: dict[str, tuple[tuple[str, str], ...]]
    objects: tuple[str, ...]
    states: dict[str, dict[str, str]]
    hollow: tuple[str, ...]
    contents: str

    def action(self, name: str) -> str:
        """An activity "Verb noun" in words, without a subject: "pick up the cup"."""
        verb, _, noun = name.partition(" ")
        phrase = self.phrases.get(verb.lower(), verb.lower())
        return f"{phrase} the {self.nouns.get(noun.lower(), noun.lower())}"

    def action_on_it(self, name: str) -> str:
        """The same, with "it" for the noun: "pick it up"."""
        verb = name.partition(" ")[0].lower()
        first, _, rest = self.phrases.get(verb, verb).partition(" ")
        return f"{first} it {rest}".strip() if rest in _PARTICLES else f"{first} {rest} it"
