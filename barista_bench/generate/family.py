"""A family of questions: its candidates in a scene, the sampling of its set, and the writing of its release, whose
videos are those of the graphs, linked; a folder of pictures becomes a video.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

import msgspec

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.writing import place_file
from barista_bench.generate.candidates import (
    DECIDED,
    LEVELS,
    Item,
    Level,
    QuestionCandidate,
    Tally,
    decide,
    one_per_event,
    sample,
    thin,
    with_choices,
)
from barista_bench.generate.difficulty import with_difficulty
from barista_bench.generate.missing import UndecidedCandidates
from barista_bench.generate.scene import Scene
from barista_bench.generate.shortcuts import TextQuestion, guessable_indices
from barista_bench.generate.wordings import deal_forms
from barista_bench.media.encoding import encode_video
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.domain import Domain, DomainRecord

RecordT = TypeVar("RecordT", bound=DomainRecord)


class SampledItems(NamedTuple):
    """A family's items, and by subtask how many sampled ones were left out again because their texts give them away."""

    items: list[Item]
    guessable: Mapping[str, int]


class Family(ABC):
    """One benchmark's questions. Made once a run, and once in each process.

    Args:
        name: the benchmark's.
        choice_subtasks: those whose choices a model is shown, and could guess from.
        has_own_texts: whether each item is asked in texts of its own, rather than in labels that a whole set shares.
        levels: difficulties that are asked for.
    """

    name: ClassVar[str]
    subtasks: ClassVar[tuple[str, ...]]
    choice_subtasks: ClassVar[tuple[str, ...]] = ()
    has_own_texts: ClassVar[bool] = True

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.levels: tuple[Level, ...] = LEVELS

    @abstractmethod
    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        """Everything that could be asked about a video, undecided, in an order that depends on the graph alone."""

    @abstractmethod
    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        """Number of distractors that a question takes; 0 where the family has none."""

    def decide_all(
        self, scene: Scene, tally: Tally, undecided: UndecidedCandidates | None = None
    ) -> Iterator[QuestionCandidate]:
        """The candidates that the graph decides, of the levels asked for; the others are counted by their reason, and
        noted in `undecided` by the annotation that they lack."""
        for candidate in self.candidates(scene):
            distractors_needed = self.distractors_needed(candidate)
            verdict = decide(candidate, scene, distractors_needed)
            if isinstance(verdict, str):
                tally[candidate.subtask, verdict] += 1
                if undecided is not None:
                    undecided.add(self.name, candidate, scene, distractors_needed, verdict)
                continue
            rated = with_difficulty(verdict, scene, distractors_needed)
            is_wanted = rated.level in self.levels
            tally[candidate.subtask, DECIDED if is_wanted else f"it is {rated.level}"] += 1
            if is_wanted:
                yield rated

    def offer(
        self, scene: Scene, tally: Tally, most: int, seed: int, undecided: UndecidedCandidates | None = None
    ) -> list[QuestionCandidate]:
        """The decided candidates that a video offers: one an event, of each subtask about `most`."""
        return self.thin_out(one_per_event(self.decide_all(scene, tally, undecided), seed, tally), most, seed)

    def thin_out(self, candidates: Sequence[QuestionCandidate], most: int, seed: int) -> list[QuestionCandidate]:
        """About `most` candidates of each subtask; their order does not matter."""
        return thin(candidates, most, seed)

    def sample_items(self, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        """At most `size` items a subtask, sampled by balance, with their choices in place."""
        items: list[Item] = []
        for subtask in self.subtasks:
            items += self.sample_subtask(subtask, [c for c in candidates if c.subtask == subtask], size, seed)
        return items

    def sample_subtask(self, subtask: str, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        return with_choices(sample(candidates, size, seed), subtask.lower(), self.distractors_needed, seed)

    def deal_forms(self, items: Sequence[Item], seed: int) -> list[Item]:
        """The sampled items, each in a form of its wording."""
        return deal_forms(items, seed)

    def items(
        self, candidates: Sequence[QuestionCandidate], size: int, seed: int, ceiling: float | None = None
    ) -> SampledItems:
        """The sample, without the items that make a subtask guessable from its texts: beyond chance, or, where it is
        given, with an accuracy above `ceiling`."""
        items = self.deal_forms(self.sample_items(candidates, size, seed), seed)
        guessable_counts: dict[str, int] = {}
        for subtask in self.choice_subtasks:
            subtask_items = [item for item in items if item.candidate.subtask == subtask]
            questions = []
            for item in subtask_items:
                c, texts = item.candidate, tuple(choice.text for choice in item.choices)
                questions.append(TextQuestion(c.video_id, c.question, texts, item.correct, c.form, c.level))
            guessable_ids = {subtask_items[at].id for at in guessable_indices(questions, ceiling)}
            guessable_counts[subtask] = len(guessable_ids)
            items = [item for item in items if item.id not in guessable_ids]
        return SampledItems(items, guessable_counts)

    @abstractmethod
    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        """Write the release, annotations and media, to the new folder `out`, in the benchmark's own format."""


def family_words(domain: Domain, family: str, record: type[RecordT]) -> RecordT:
    """A domain file's section for a family. Raises ConfigError for what the family does not know, or what it lacks."""
    try:
        return msgspec.convert(domain.families.get(family, {}), record)
    except msgspec.ValidationError as error:
        raise domain_error(domain, f"families.{family}: {error}") from error


def domain_error(domain: Domain, problem: str) -> ConfigError:
    return ConfigError(f"domain {domain.name!r}: {problem}. Remedy: compare with the domain.yaml of the package")


def check_placeable(graph: SceneGraph, video: VideoGraph) -> None:
    """Raise DataError for a folder of pictures that cannot become a video."""
    facts = video.video
    if (facts.width % 2 or facts.height % 2) and graph.video_path(video.video_id).is_dir():
        size = f"{facts.width}x{facts.height}"
        raise DataError(f"{video.video_id}: pictures of {size} make no video. Remedy: give even sizes")


def place_video(graph: SceneGraph, video_id: str, target: Path) -> None:
    """Put a video, as MP4, where a release has it. Of a folder of pictures frame k then stands at k / fps seconds."""
    path = graph.video_path(video_id)
    if not path.is_dir():
        place_file(path, target)
        return
    rate = Fraction(graph[video_id].video.fps or 1).limit_denominator(10_000)
    with open_reader(path) as reader:
        encode_video(target, (reader.read([at])[0] for at in range(len(reader))), size=reader.size, fps=rate)


FAMILIES: Mapping[str, str] = {
    "vista": "barista_bench.generate.vista:VistaFamily",
    "handyvqa": "barista_bench.generate.handyvqa:HandyvqaFamily",
    "tog_bench": "barista_bench.generate.tog_bench:ToGBenchFamily",
    "egocot": "barista_bench.generate.egocot:EgocotFamily",
}
"""Place of each family, by the name of its benchmark: imported when it is asked for."""


def family_class(name: str) -> type[Family]:
    """The class of a family. Raises ConfigError for a name that is none."""
    if name not in FAMILIES:
        raise ConfigError(f"families: {name!r} is none. Remedy: name some of {', '.join(FAMILIES)} with --families")
    module, _, attribute = FAMILIES[name].partition(":")
    family: type[Family] = getattr(import_module(module), attribute)
    return family
