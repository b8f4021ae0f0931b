"""A family of questions: it finds candidates in a scene, samples a set and writes the release.

`generator.py` makes questions of each video's graph in steps 1 to 5, and a set of the questions of all videos in steps
6 to 9:

1. `Family.candidates` yields all possible questions of each subtask. An answer is a text with a `Statement` about the
   graph, and so is a condition for asking.
2. `decide_candidate` (`candidates.py`) keeps a candidate if all conditions and right answers are proved (their `truth`
   is True), and enough wrong answers are excluded (False). A statement that the graph leaves open (None) is neither.
   The docstring of each statement says which records prove and exclude it.
3. `with_difficulty` (`difficulty.py`) rates it. Only the levels of `--difficulty` are kept.
4. `one_per_event` keeps one question per fact.
5. `keep_most` limits the number per subtask and video.
6. `sample_candidates` takes `--per-subtask` questions. It balances answers first, then videos. `with_choices` takes
   the wrong choices, so that a text is wrong in proportion to how often it is right, and orders the choices.
7. `assign_forms` (`wordings.py`) gives each question a form of its wording in `wordings.yaml`.
8. `items` leaves out questions that can be answered from the texts of their choices (`shortcuts.py`).
9. `write` writes the release. Its videos are links to the videos of the graphs; a folder of pictures is encoded.

The questions of a subtask, and the statements that only this family needs (`statements.py` has all others):

    vista      level 1: vista/clips.py, vista/effects.py; levels 2 to 8: vista/family.py     vista/statements.py
    handyvqa   a method per category: handyvqa/questions.py, handyvqa/object_questions.py    handyvqa/statements.py
    tog_bench  tog_bench/family.py, of the instructions in scene_graph/domain.yaml           tog_bench/statements.py
    egocot     QUESTIONS in egocot/questions.py, whose head has the steps for a new kind     egocot/statements.py

ViSTa overrides steps 2 and 4 to 7, since it samples sets of clips. HanDyVQA overrides step 6: it also balances words.
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
    DIFFICULTIES,
    DifficultyName,
    Item,
    QuestionCandidate,
    Tally,
    decide_candidate,
    keep_most,
    one_per_event,
    sample_candidates,
    with_choices,
)
from barista_bench.generate.difficulty import with_difficulty
from barista_bench.generate.missing import UndecidedCandidates
from barista_bench.generate.scene import Scene
from barista_bench.generate.shortcuts import TextQuestion, guessable_indices
from barista_bench.generate.wordings import assign_forms
from barista_bench.media.encoding import encode_video
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.domain import Domain, DomainRecord

RecordT = TypeVar("RecordT", bound=DomainRecord)


class SampledItems(NamedTuple):
    """A family's items, and the number of items left out per subtask because their texts reveal the answers."""

    items: list[Item]
    guessable: Mapping[str, int]


class Family(ABC):
    """One benchmark's questions. A family is created once for a run, and once in each process.

    Args:
        name: name of the benchmark.
        choice_subtasks: subtasks that show choices to a model, so that the model could guess from their texts.
        has_own_texts: whether each item has its own texts. If False, the items of a set share their labels.
        difficulties: requested difficulties.
        splits: the split of each video by id, for a benchmark whose layout names the split of a question; empty for its
            default.
    """

    name: ClassVar[str]
    subtasks: ClassVar[tuple[str, ...]]
    choice_subtasks: ClassVar[tuple[str, ...]] = ()
    has_own_texts: ClassVar[bool] = True

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.difficulties: tuple[DifficultyName, ...] = DIFFICULTIES
        self.splits: Mapping[str, str] = {}

    @abstractmethod
    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        """Yield all possible questions about a video, undecided, in an order that depends only on the graph."""

    @abstractmethod
    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        """Return the number of distractors that a question needs; 0 if the family has no distractors."""

    def decide_all(
        self, scene: Scene, tally: Tally, undecided: UndecidedCandidates | None = None
    ) -> Iterator[QuestionCandidate]:
        """Yield the candidates that the graph decides and that have a requested level.

        All other candidates are counted by reason. `undecided` lists them by the annotation that they lack.
        """
        for candidate in self.candidates(scene):
            distractors_needed = self.distractors_needed(candidate)
            verdict = decide_candidate(candidate, scene, distractors_needed)
            if isinstance(verdict, str):
                tally[candidate.subtask, verdict] += 1
                if undecided is not None:
                    undecided.add(self.name, candidate, scene, distractors_needed, verdict)
                continue
            rated = with_difficulty(verdict, scene, distractors_needed)
            is_wanted = rated.level in self.difficulties
            tally[candidate.subtask, DECIDED if is_wanted else f"it is {rated.level}"] += 1
            if is_wanted:
                yield rated

    def collect_candidates(
        self, scene: Scene, tally: Tally, most: int, seed: int, undecided: UndecidedCandidates | None = None
    ) -> list[QuestionCandidate]:
        """Return the decided candidates of a video: one per event, and about `most` of each subtask."""
        candidates = one_per_event(self.decide_all(scene, tally, undecided), seed, tally)
        if undecided is not None:
            undecided.mark_asked(self.name, candidates)
        return self.limit_candidates(candidates, most, seed)

    def limit_candidates(
        self, candidates: Sequence[QuestionCandidate], most: int, seed: int
    ) -> list[QuestionCandidate]:
        """Keep about `most` candidates of each subtask. The order of `candidates` does not matter."""
        return keep_most(candidates, most, seed)

    def sample_items(self, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        """Return a balanced sample of at most `size` items per subtask, with their choices in order."""
        items: list[Item] = []
        for subtask in self.subtasks:
            items += self.sample_subtask(subtask, [c for c in candidates if c.subtask == subtask], size, seed)
        return items

    def sample_subtask(self, subtask: str, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        return with_choices(sample_candidates(candidates, size, seed), subtask.lower(), self.distractors_needed, seed)

    def assign_forms(self, items: Sequence[Item], seed: int) -> list[Item]:
        """Return the sampled items with a form of the wording assigned to each."""
        return assign_forms(items, seed)

    def items(
        self, candidates: Sequence[QuestionCandidate], size: int, seed: int, ceiling: float | None = None
    ) -> SampledItems:
        """Return the sample without the items that make a subtask guessable from its texts.

        A subtask is guessable if a guesser beats chance significantly, or exceeds the accuracy `ceiling` if it is
        given.
        """
        items = self.assign_forms(self.sample_items(candidates, size, seed), seed)
        guessable_counts: dict[str, int] = {}
        for subtask in self.choice_subtasks:
            subtask_items = [item for item in items if item.candidate.subtask == subtask]
            questions = []
            for item in subtask_items:
                c, texts = item.candidate, tuple(choice.text for choice in item.choices)
                questions.append(TextQuestion(c.video_id, c.question, texts, item.correct, c.form, c.level))
            guessable_ids = {subtask_items[index].id for index in guessable_indices(questions, ceiling)}
            guessable_counts[subtask] = len(guessable_ids)
            items = [item for item in items if item.id not in guessable_ids]
        return SampledItems(items, guessable_counts)

    def size_problem(self, subtask: str, candidates: Sequence[QuestionCandidate], size: int) -> str:
        """Return why no number of decided candidates can fill a subtask of this size; empty if they can."""
        return ""

    def public_items(self, items: Sequence[Item]) -> dict[str, Item]:
        """Return the items whose answers are in the release, by their names in the release."""
        return {item.id: item for item in items}

    @abstractmethod
    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        """Write the release (annotations and media) in the benchmark's format to the new folder `out`."""


def family_words(domain: Domain, family: str, record: type[RecordT]) -> RecordT:
    """Return a domain file's section for a family. Raises ConfigError for unknown or missing fields."""
    try:
        return msgspec.convert(domain.families.get(family, {}), record)
    except msgspec.ValidationError as error:
        raise domain_error(domain, f"families.{family}: {error}") from error


def domain_error(domain: Domain, problem: str) -> ConfigError:
    return ConfigError(f"domain {domain.name!r}: {problem}. Fix: compare with the domain.yaml of the package")


def check_placeable(graph: SceneGraph, video: VideoGraph) -> None:
    """Raise DataError if a folder of pictures cannot be encoded as a video."""
    facts = video.video
    if (facts.width % 2 or facts.height % 2) and graph.video_path(video.video_id).is_dir():
        size = f"{facts.width}x{facts.height}"
        raise DataError(f"{video.video_id}: pictures of {size} cannot become a video. Fix: give even sizes")


def place_video(graph: SceneGraph, video_id: str, target: Path) -> None:
    """Put a video into a release as MP4. If the source is a folder of pictures, frame k is shown at k / fps seconds."""
    path = graph.video_path(video_id)
    if not path.is_dir():
        place_file(path, target)
        return
    rate = Fraction(graph[video_id].video.fps or 1).limit_denominator(10_000)
    with open_reader(path) as reader:
        encode_video(target, (reader.read([index])[0] for index in range(len(reader))), size=reader.size, fps=rate)


FAMILIES: Mapping[str, str] = {
    "vista": "barista_bench.generate.vista.family:VistaFamily",
    "handyvqa": "barista_bench.generate.handyvqa.family:HandyvqaFamily",
    "tog_bench": "barista_bench.generate.tog_bench.family:ToGBenchFamily",
    "egocot": "barista_bench.generate.egocot.family:EgocotFamily",
}
"""The class of each family, by the name of its benchmark. Its module is imported when it is needed."""


def family_class(name: str) -> type[Family]:
    """Return the class of a family. Raises ConfigError for an unknown name."""
    if name not in FAMILIES:
        raise ConfigError(f"families: {name!r} is unknown. Fix: name some of {', '.join(FAMILIES)} with --families")
    module, _, attribute = FAMILIES[name].partition(":")
    family: type[Family] = getattr(import_module(module), attribute)
    return family
