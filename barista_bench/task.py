"""The contract that every task keeps: Example, Prediction, Task, Status.

An example reads from left to right: `inputs` is all that the model and the parser may see, `target` is what scoring
compares with, `metadata` is what analysis groups by, `evidence` leads back into the scene graph.
"""

from __future__ import annotations

import hashlib
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.errors import ConfigError
from barista_bench.prompt import BoxFormat, Prompt
from barista_bench.prompt_sets import PromptTexts, packaged_prompts
from barista_bench.sampling import Sampling as Sampling
from barista_bench.scene_graph import SceneGraph, VideoGraph

if TYPE_CHECKING:
    from datasets import Features

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Fields: TypeAlias = dict[str, "Json"]
Verdict: TypeAlias = Literal["hit", "miss", "wrong"]
ProtocolName: TypeAlias = Literal["release", "paper"]
OverlayKind: TypeAlias = Literal["truth", "predicted", "given"]
FailureKind: TypeAlias = Literal[
    "format",
    "missed",
    "hallucinated",
    "duplicate",
    "loose_box",
    "loose_hand",
    "wrong_hand",
    "wrong_object",
    "wrong_verb",
    "wrong_attribute",
    "wrong_relation",
    "wrong_direction",
]
FAILURE_KINDS: dict[FailureKind, str] = {
    "format": "no readable answer",
    "missed": "true and asked for, but nothing of it is in the answer",
    "hallucinated": "answered, and nothing true is like it",
    "duplicate": "answered more often than it is true",
    "loose_box": "the right place, but the box overlaps the true one too little",
    "loose_hand": "the right interaction and hand, but the hand's box overlaps the true one too little",
    "wrong_hand": "right but for which hand it is",
    "wrong_object": "right but for the object",
    "wrong_verb": "another verb than the true one",
    "wrong_attribute": "another property than the true one",
    "wrong_relation": "the right two objects, in another relation",
    "wrong_direction": "the right relation, the wrong way round",
}
"""What can be wrong with an answer, for all tasks; each uses those that fit it."""
PROTOCOLS: tuple[ProtocolName, ...] = ("release", "paper")
"""Whose rules hold: those of the released code (the default), or the paper's where it says otherwise."""
Vocabulary: TypeAlias = "tuple[tuple[str, str], ...]"
"""Pairs of words, each once, in the order of videos and of their files: see `Task.vocabulary`."""
ItemT = TypeVar("ItemT")


class Status(StrEnum):
    """What became of one sample. Only infrastructure errors are tried again, and they are never scored."""

    OK = "ok"
    PARSE_ERROR = "parse_error"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    INFRA_ERROR = "infra_error"


@dataclass(frozen=True, slots=True)
class FrameRef:
    """One frame of one video; `frame_index` counts from 0."""

    video_id: str
    frame_index: int


@dataclass(frozen=True, slots=True)
class Example:
    """One question, complete: JSON values only, so that it reads from and writes to every format without loss."""

    example_id: str
    benchmark: str
    task: str
    label: str
    frames: tuple[FrameRef, ...]
    inputs: Fields
    target: Fields
    metadata: Fields = field(default_factory=dict)
    evidence: Fields = field(default_factory=dict)

    @property
    def video_id(self) -> str:
        return self.frames[0].video_id


class Candidate(NamedTuple):
    """Where an example can be made. Light: a release has hundreds of thousands, of which a few thousand are drawn.

    Args:
        video_id: the video of the example's frames.
        frame: the first of them.
        group: class, category or question type, by which `Sampling.per_class` counts.
        item: what else the task needs to find the candidate again in its video.
    """

    video_id: str
    frame: int
    group: str = ""
    item: int = 0


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """One rule on which a benchmark's release and its paper differ, in words.

    `changes` says what depends on the protocol here: `nothing` where a rule is only documented.
    """

    changes: Literal["examples", "prompt", "parsing", "scores", "nothing"]
    rule: str
    release: str
    paper: str


@dataclass(frozen=True, slots=True)
class ParseError:
    """The answer could not be read. Not an exception: a model that answers badly is an outcome to count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """A parsed answer. `dropped` counts entries of it that the task's rules left out as invalid."""

    value: Fields
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Scored:
    """One sample as a metric sees it: `prediction` is None where there is no readable answer."""

    example: Example
    prediction: Prediction | None


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge is shown of one sample: the question, the reference made from the annotations, and the answer."""

    question: str
    reference: str
    answer: str


class Failure(NamedTuple):
    """One thing that is wrong with an answer. `objects` are ids of the annotated objects that it is about, if any."""

    kind: FailureKind
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplanationRow:
    """One reason for a score: `hit` is right, `miss` is true but not answered, `wrong` is answered but not true."""

    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a sample scored as it did, for people."""

    rows: tuple[ExplanationRow, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """One box to draw over an image of a sample, for people.

    Args:
        image: which of `Task.images`, from 0.
        box: [x0, y0, x1, y1] in pixels of that image; a predicted one may lie outside of it.
        kind: `truth` is what scoring compares with, `predicted` what was answered, `given` what the question shows.
        label: a few words.
    """

    image: int
    box: tuple[float, float, float, float]
    kind: OverlayKind
    label: str = ""


class Task(ABC):
    """One task is one file that says all of it: features, examples, prompt, parser, score."""

    benchmark: ClassVar[str]
    name: ClassVar[str]
    upstream_name: ClassVar[str]
    """`task_name` in frozen files."""
    version: ClassVar[int]
    """Goes up with every change that alters prompts, parsing or scores; part of a sample's key."""
    primary: ClassVar[str]
    """The figure of `aggregate` that stands for the task in tables."""
    sample_score: ClassVar[str]
    """The figure of `score` that stands for one example."""
    sampling: ClassVar[Sampling]
    """The published parameters."""
    sampling_uses: ClassVar[frozenset[str]]
    """The fields of `Sampling` that this task reads beside the common ones."""
    prompt_package: ClassVar[str]
    """Where `prompts/<name>.yaml` lies, and `rubrics/<name>.yaml` of a judged task."""

    row_note: ClassVar[str]
    """What one example is, in a line, for dataset cards."""
    protocol_rules: ClassVar[tuple[ProtocolRule, ...]] = ()
    """Where release and paper differ."""

    def __init__(self, prompts: PromptTexts | None = None, *, protocol: ProtocolName = "release") -> None:
        if protocol not in PROTOCOLS:
            raise ConfigError(f"no protocol {protocol!r}. Remedy: use one of {', '.join(PROTOCOLS)}")
        self.prompts = prompts or packaged_prompts(self.prompt_package, self.name)
        self.protocol: ProtocolName = protocol

    @property
    def follows_paper(self) -> bool:
        return self.protocol == "paper"

    @classmethod
    def freezes_by_protocol(cls) -> bool:
        """Whether the two protocols give different examples; where they do not, they share the frozen sets."""
        return any(rule.changes == "examples" for rule in cls.protocol_rules)

    def stamped(self, example: Example) -> Example:
        """The example with its protocol in its metadata, where that makes a difference: it is part of its identity.

        Examples of the release stay as they are, and keep the bytes that they always had.
        """
        if self.protocol == "release" or not self.freezes_by_protocol():
            return example
        return replace(example, metadata={**example.metadata, "protocol": self.protocol})

    def refuse_other_protocol(self, examples: Sequence[Example]) -> None:
        """Raise ConfigError where an example was frozen by other rules than those that this task follows."""
        for example in examples if self.freezes_by_protocol() else ():
            frozen = example.metadata.get("protocol", "release")
            if frozen != self.protocol:
                raise ConfigError(
                    f"{example.example_id}: was frozen by the protocol {frozen!r}, not {self.protocol!r}. "
                    f"Remedy: say protocol={frozen}, or build the set again with protocol={self.protocol}"
                )

    @abstractmethod
    def features(self) -> Features:
        """`datasets` features of the columns `inputs`, `target`, `metadata` and `evidence`."""

    def vocabulary(self, video: VideoGraph) -> Vocabulary:
        """Words of one video that the examples of others need too, e.g. class ids and names. Asked of every video."""
        return ()

    @abstractmethod
    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate | SkippedExample]:
        """Where one video has examples, in order of frames; deterministic, from this video alone.

        What the data make impossible is yielded as a `SkippedExample`, so that it is counted.
        """

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Candidate | SkippedExample]:
        """What caps over all videos leave of the candidates, in their order."""
        yield from candidates

    @abstractmethod
    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Example]:
        """One example for each of a video's candidates, in the order given. `vocabulary` is that of all videos."""

    def examples(self, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """All examples in canonical order (video id, then frame), before shuffling; what was skipped comes first.

        The plain way through the parts above. `builders.plan` reads each video once for all tasks, and builds only
        what is drawn.

        Raises:
            DataError: `sampling.videos` names a video that the graph lacks.
        """
        sampling.refuse_unknown_videos(graph)
        words: dict[tuple[str, str], None] = {}
        found: list[Candidate] = []
        for video in graph:
            words.update(dict.fromkeys(self.vocabulary(video)))
            for item in self.candidates(video, sampling) if sampling.selects(video) else ():
                if isinstance(item, SkippedExample):
                    yield item
                else:
                    found.append(item)
        vocabulary = tuple(words)
        selected = list(self.select(found, vocabulary, sampling))
        yield from (item for item in selected if isinstance(item, SkippedExample))
        kept = (item for item in selected if isinstance(item, Candidate))
        for video_id, group in groupby(kept, key=lambda candidate: candidate.video_id):
            yield from self.build(graph[video_id], list(group), vocabulary, sampling)

    @abstractmethod
    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        """What is asked; depends on `inputs` and the model's box format alone."""

    @abstractmethod
    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        """The images that the prompt counts, from the example's frames, each (height, width, 3) RGB."""

    @abstractmethod
    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """Read an answer of a model that writes boxes as `boxes` says. Never raises, and never sees the target."""

    @abstractmethod
    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Figures for one example, for analysis. None (no readable answer) scores as the protocol says."""

    @abstractmethod
    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """The task's figures over all samples of one run."""

    def resampled(self, samples: Sequence[Scored], weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Figures of `aggregate` for many draws of samples at once: what intervals and tests are made of.

        Args:
            samples: (S,) of one run.
            weights: (D, S) how often each draw takes each sample, whole numbers of 0 and more.

        Returns:
            (D,) a figure; NaN where a draw has none. With weights of 1 they are those of `aggregate`. A task may
            leave figures out, but not its primary one.

        Here every draw is aggregated anew, which is slow: tasks whose figures come from sums override it.
        """
        drawn = [
            self.aggregate([s for s, count in zip(samples, row, strict=True) for _ in range(int(count))])
            if row.any()
            else {}
            for row in weights
        ]
        names = dict.fromkeys(name for figures in drawn for name, value in figures.items() if isinstance(value, float))
        columns = {name: [figures.get(name) for figures in drawn] for name in names}
        return {
            name: np.array([value if isinstance(value, float) else np.nan for value in column])
            for name, column in columns.items()
        }

    def facets(self, example: Example) -> Fields:
        """What analysis may group examples by beside `metadata`: from question and truth, never from an answer."""
        return {}

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """What is wrong with an answer, by the matching that its score is made of; empty where nothing is.

        An answer that cannot be read fails once, in all objects of the example's evidence. Here misses are `missed`
        and wrong answers `hallucinated`, as `explain` tells them; tasks that know more override it.
        """
        if prediction is None:
            return self.unreadable(example)
        kinds: dict[Verdict, FailureKind] = {"miss": "missed", "wrong": "hallucinated"}
        rows = self.explain(example, prediction).rows
        return tuple(Failure(kinds[row.verdict]) for row in rows if row.verdict in kinds)

    @staticmethod
    def unreadable(example: Example) -> tuple[Failure, ...]:
        """The failures of an answer that cannot be read."""
        return (Failure("format", evidence_objects(example)),)

    @abstractmethod
    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Why the example scores as it does, hits first, then misses, then wrong answers."""

    @abstractmethod
    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        """The ground truth as a model would write it: what the `oracle` model says."""

    @abstractmethod
    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        """A valid answer that knows nothing of the image: what the `chance` model says."""

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """What one would answer who knows only how the truths of `others` are distributed: the `prior` model.

        Args:
            others: examples of other videos than this one's, in the order of the set; may be empty.

        Raises:
            ConfigError: the task has no such answer.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} has no prior baseline. Remedy: use chance")

    def centre_answer(self, example: Example, boxes: BoxFormat) -> str:
        """One box in the middle of the image for everything that is asked for: the `centre_box` model.

        Raises:
            ConfigError: the task asks for no boxes.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} asks for no boxes. Remedy: use chance or prior")

    def judged(self, example: Example, prediction: Prediction) -> Judged | None:
        """What a judge is shown; None for a task that no judge scores. The criteria stand in `rubrics/<name>.yaml`."""
        return None

    def answer_schema(self, example: Example) -> Fields | None:
        """JSON Schema of the answer that the prompt asks for; None where it is no JSON."""
        return None

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Boxes to draw over the example's images. Without a prediction, those of the question and the truth alone."""
        return ()

    def image_captions(self, example: Example) -> tuple[str, ...]:
        """What each of `images` shows, in their order."""
        return tuple(f"frame {frame.frame_index}" for frame in example.frames)


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """A candidate that could not become an example, and why; it is counted and reported."""

    frame: FrameRef
    reason: str


def evidence_objects(example: Example) -> tuple[str, ...]:
    """Ids of the annotated objects that an example is about; empty where its evidence names none."""
    found = example.evidence.get("object_ids")
    return tuple(str(name) for name in found if name) if isinstance(found, list | tuple) else ()


def content_seed(*parts: str | int) -> int:
    """A 63-bit seed made from content, the same on every machine and in every order of work."""
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
