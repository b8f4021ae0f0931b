"""Define what a level is: its facts, their inert and false controls, their form, and its words in a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from barista_bench.aids.facts import Fact, Finder, QuestionScene, alike_facts
from barista_bench.aids.graph_rows import Box


class Picture(msgspec.Struct, frozen=True, omit_defaults=True):
    """A picture to show: a frame of the video, cut to `crop`, with numbered boxes. Boxes are in pixels."""

    frame: int
    crop: Box | None = None
    marks: tuple[tuple[int, Box], ...] = ()


Part = str | Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level of the scene graph, or a kind of picture that shows one.

    Args:
        heading: the line before the facts. `{format}` stands for the box format.
        given: how a sentence of a diagnosis names the true facts.
        verb: the verb after the level's name, in such a sentence.
        fill: colour of the level's share in a bar of the report.
        facts: finds the facts on which a question depends. A task may have its own rule (`TaskAids.facts`).
        inert: chooses as many facts that the question does not depend on, or none if the video lacks them. It receives
            the needed facts, and the task's rule for the level.
        pictures: returns the pictures of facts among their lines. None for a level that is told as text.
        shows: the level whose facts the pictures show. Empty for other levels.
        has_false: whether another answer can follow from exchanged facts.
        has_own: whether a model's own boxes, from a run of grounding, can replace the true boxes.
    """

    heading: str
    given: str
    verb: str = "are"
    fill: str
    facts: Finder
    inert: Callable[[QuestionScene, Sequence[Fact], Finder], list[Fact]] = alike_facts
    pictures: Callable[[Sequence[Fact], Sequence[str]], list[Part]] | None = None
    shows: str = ""
    has_false: bool = True
    has_own: bool = False

    def parts(self, facts: Sequence[Fact], lines: Sequence[str], box_format: str) -> list[Part]:
        """Return the heading and the lines of facts, with the pictures of a level that is shown."""
        heading = self.heading.replace("{format}", box_format) + "\n"
        return [heading, *self.pictures(facts, lines)] if self.pictures else ["".join((heading, *lines))]


def pictures_below_lines(facts: Sequence[Fact], lines: Sequence[str]) -> list[Part]:
    """Return each line followed by its frame, cut to the fact's box."""
    pairs = zip(facts, lines, strict=True)
    return [part for fact, line in pairs for part in (line, Picture(fact.span[0], crop=fact.box))]
