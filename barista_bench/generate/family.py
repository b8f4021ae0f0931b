"""A family of questions: its candidates in a scene, the sampling of its set, and the writing of its release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

import msgspec

from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import (
    DECIDED,
    LEVELS,
    Item,
    Level,
    QuestionCandidate,
    Tally,
    decide,
    once_an_event,
    sample,
    thin,
    with_choices,
)
from barista_bench.generate.difficulty import with_difficulty
from barista_bench.generate.missing import Waiting
from barista_bench.generate.scene import Scene
from barista_bench.generate.shortcuts import AskedChoices, guessable
from barista_bench.generate.wordings import worded
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain, DomainRecord

RecordT = TypeVar("RecordT", bound=DomainRecord)


class SampledItems(NamedTuple):
    """A family's items, and by subtask how many sampled ones were left out again because their texts give them away."""

    items: list[Item]
    guessable: Mapping[str, int]


def as_asked(item: Item) -> AskedChoices:
    """An item as a guesser sees it."""
    candidate, texts = item.candidate, tuple(choice.text for choice in item.choices)
    level = candidate.difficulty.level if candidate.difficulty else ""
    return AskedChoices(candidate.video_id, candidate.question, texts, item.correct, candidate.form, level)


class Family(ABC):
    """One benchmark's questions. Made once a run, and once in each process."""

    name: ClassVar[str]
    """Of the benchmark whose release is written."""
    subtasks: ClassVar[tuple[str, ...]]
    choice_subtasks: ClassVar[tuple[str, ...]] = ()
    """Those whose choices a model is shown, and could guess from."""
    has_own_texts: ClassVar[bool] = True
    """Whether each item is asked in texts of its own, rather than in labels that a whole set shares."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.levels: tuple[Level, ...] = LEVELS
        """Of difficulty, that are asked for."""

    @abstractmethod
    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        """Everything that could be asked about a video, undecided, in an order that depends on the graph alone."""

    @abstractmethod
    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        """How many distractors a question takes; 0 where the family has none."""

    def decided(self, scene: Scene, tally: Tally, waiting: Waiting | None = None) -> Iterator[QuestionCandidate]:
        """The candidates that the graph decides, of the levels asked for; the others are counted by their reason, and
        noted in `waiting` by the annotation that they lack."""
        for candidate in self.candidates(scene):
            needed = self.distractors_needed(candidate)
            verdict = decide(candidate, scene, needed)
            if isinstance(verdict, str) and waiting is not None:
                waiting.add(self.name, candidate, scene, needed, verdict)
            if not isinstance(verdict, str):
                verdict = with_difficulty(verdict, scene, needed)
                if verdict.difficulty and verdict.difficulty.level not in self.levels:
                    verdict = f"it is {verdict.difficulty.level}"
            tally[candidate.subtask, verdict if isinstance(verdict, str) else DECIDED] += 1
            if not isinstance(verdict, str):
                yield verdict

    def offered(
        self, scene: Scene, tally: Tally, most: int, seed: int, waiting: Waiting | None = None
    ) -> list[QuestionCandidate]:
        """The decided candidates that a video offers: one an event, of each subtask about `most`."""
        return self.thinned(once_an_event(self.decided(scene, tally, waiting), seed, tally), most, seed)

    def thinned(self, candidates: Sequence[QuestionCandidate], most: int, seed: int) -> list[QuestionCandidate]:
        """Of each subtask about `most`; the order of `candidates` does not matter."""
        return thin(candidates, most, seed)

    def sampled(self, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        """At most `size` items a subtask, sampled by balance, with their choices in place."""
        items: list[Item] = []
        for subtask in self.subtasks:
            items += self.sampled_of(subtask, [c for c in candidates if c.subtask == subtask], size, seed)
        return items

    def sampled_of(self, subtask: str, offered: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        return with_choices(sample(offered, size, seed), subtask.lower(), self.distractors_needed, seed)

    def worded(self, items: Sequence[Item], seed: int) -> list[Item]:
        """The sampled items, each in a form of its wording."""
        return worded(items, seed)

    def items(
        self, candidates: Sequence[QuestionCandidate], size: int, seed: int, ceiling: float | None = None
    ) -> SampledItems:
        """The sample, without the items that make a subtask guessable from its texts: beyond chance, or, where it is
        given, with an accuracy above `ceiling`."""
        items = self.worded(self.sampled(candidates, size, seed), seed)
        given_away: dict[str, int] = {}
        for subtask in self.choice_subtasks:
            of_subtask = [item for item in items if item.candidate.subtask == subtask]
            left_out = {of_subtask[at].id for at in guessable([as_asked(item) for item in of_subtask], ceiling)}
            given_away[subtask] = len(left_out)
            items = [item for item in items if item.id not in left_out]
        return SampledItems(items, given_away)

    @abstractmethod
    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        """Write the release, annotations and media, to the new folder `out`, in the benchmark's own format."""


def section(domain: Domain, family: str, record: type[RecordT]) -> RecordT:
    """A domain file's section for a family. Raises ConfigError for what the family does not know, or what it lacks."""
    try:
        return msgspec.convert(domain.families.get(family, {}), record)
    except msgspec.ValidationError as error:
        raise refusal(domain, f"families.{family}: {error}") from error


def refusal(domain: Domain, what: str) -> ConfigError:
    return ConfigError(f"domain {domain.name!r}: {what}. Remedy: compare with the domain.yaml of the package")


FAMILIES: Mapping[str, str] = {
    "vista": "barista_bench.generate.vista:ViSTaFamily",
    "handyvqa": "barista_bench.generate.handyvqa:HanDyVQAFamily",
    "tog_bench": "barista_bench.generate.tog_bench:ToGBenchFamily",
    "egocot": "barista_bench.generate.egocot:EgoCoTFamily",
}
"""Where each is, by the name of its benchmark: imported when it is asked for."""


def family_class(name: str) -> type[Family]:
    """The class of a family. Raises ConfigError for a name that is none."""
    if name not in FAMILIES:
        raise ConfigError(f"families: {name!r} is none. Remedy: name some of {', '.join(FAMILIES)}")
    module, _, attribute = FAMILIES[name].partition(":")
    made: type[Family] = getattr(import_module(module), attribute)
    return made
