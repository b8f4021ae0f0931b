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
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.errors import ConfigError
from barista_bench.prompt import BoxFormat, Prompt
from barista_bench.prompt_sets import PromptTexts, packaged_prompts
from barista_bench.scene_graph import SceneGraph, VideoGraph

if TYPE_CHECKING:
    from datasets import Features

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Fields: TypeAlias = dict[str, "Json"]
Verdict: TypeAlias = Literal["hit", "miss", "wrong"]


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
class ExplanationRow:
    """One reason for a score: `hit` is right, `miss` is true but not answered, `wrong` is answered but not true."""

    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a sample scored as it did, for people."""

    rows: tuple[ExplanationRow, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a frozen set is drawn. Every value changes the set, so all of them are part of its identity.

    A task reads those that it lists in `Task.sampling_uses`; the common ones (`COMMON`) hold for every task.

    Args:
        limit: examples at the most, after shuffling; None for all of them.
        seed: of the shuffle.
        videos: only these videos; None for all.
        preparations: only videos of these preparation types; None for all.
        splits: only videos of these splits; None for all.
        frame_range: only frames in [start, stop) of each video; None for all.
        frame_step: candidate frames are those with an index divisible by it.
        fraction: share of the candidate frames that is kept, evenly.
        per_frame: objects of one frame at the most.
        per_class: examples of one class, category or question type at the most.
        min_area: objects with a smaller box, in square pixels, are passed over.
        frames: frames of one example.
        spacing: frames between two frames of one example.
        choices: options of a multiple-choice question.
    """

    limit: int | None = None
    seed: int = 42
    videos: tuple[str, ...] | None = None
    preparations: tuple[str, ...] | None = None
    splits: tuple[str, ...] | None = None
    frame_range: tuple[int, int] | None = None
    frame_step: int = 1
    fraction: float = 1.0
    per_frame: int | None = None
    per_class: int | None = None
    min_area: float = 0.0
    frames: int = 1
    spacing: int = 1
    choices: int | None = None

    COMMON: ClassVar[frozenset[str]] = frozenset({"limit", "seed", "videos", "preparations", "splits", "frame_range"})

    def with_overrides(self, overrides: Mapping[str, Json], uses: frozenset[str]) -> Sampling:
        """A copy with other values; `uses` are the names that the task reads beside the common ones.

        Raises:
            ConfigError: a name is unknown to the task, or a value is out of range.
        """
        known = self.COMMON | uses
        unknown = sorted(set(overrides) - known)
        if unknown:
            raise ConfigError(f"sampling has no {unknown[0]!r} here. Remedy: use one of {', '.join(sorted(known))}")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in overrides.items()}
        for name, value in values.items():
            if not _fits(name, value):
                raise ConfigError(f"{name} is {value!r}. Remedy: give {_WANTED.get(name, 'a number')}")
        sampling = replace(self, **values)  # type: ignore[arg-type]
        for name in ("limit", "frame_step", "per_frame", "per_class", "frames", "spacing", "choices"):
            value = getattr(sampling, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigError(f"{name} is {value!r}. Remedy: give a whole number of 1 or more")
        if not 0 < sampling.fraction <= 1:
            raise ConfigError(f"fraction is {sampling.fraction}. Remedy: give a share above 0 and up to 1")
        return sampling

    def selected(self, graph: SceneGraph) -> Iterator[VideoGraph]:
        """The videos that are sampled, in order of their ids. `splits` is applied where the split is known."""
        for video in graph.videos(self.videos):
            if not self.preparations or video.preparation in self.preparations:
                yield video

    def frame_indices(self, video: VideoGraph) -> range:
        """Candidate frames of a video: in `frame_range`, index divisible by `frame_step`."""
        start, stop = self.frame_range or (0, video.frame_count)
        first = -(-start // self.frame_step) * self.frame_step
        return range(first, min(stop, video.frame_count), self.frame_step)

    def draw(self, examples: Sequence[Example]) -> list[Example]:
        """Shuffle and cut, as the released freezer does: `Random(seed).shuffle`, then the first `limit`."""
        drawn = list(examples)
        random.Random(self.seed).shuffle(drawn)  # noqa: S311  (reproducible sampling, not secrets)
        return drawn[: self.limit]


_WANTED = {
    "videos": "a list of video ids",
    "preparations": "a list of preparation types",
    "splits": "a list of splits",
    "frame_range": "two frame indices, start before stop",
    "seed": "a whole number",
}


def _fits(name: str, value: object) -> bool:
    """Whether an override is of its field's kind; what is too small or too large is judged elsewhere."""
    if name in ("videos", "preparations", "splits"):
        return value is None or (isinstance(value, tuple) and all(isinstance(item, str) for item in value))
    if name == "frame_range":
        whole = isinstance(value, tuple) and len(value) == 2 and all(type(item) is int for item in value)
        return value is None or (whole and 0 <= value[0] < value[1])  # type: ignore[index]
    if name == "seed":
        return type(value) is int
    if value is None:
        return name in ("limit", "per_frame", "per_class", "choices")
    return isinstance(value, int | float) and not isinstance(value, bool)


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
    """Where `prompts/<name>.yaml` lies."""

    def __init__(self, prompts: PromptTexts | None = None) -> None:
        self.prompts = prompts or packaged_prompts(self.prompt_package, self.name)

    @abstractmethod
    def features(self) -> Features:
        """`datasets` features of the columns `inputs`, `target`, `metadata` and `evidence`."""

    @abstractmethod
    def examples(self, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """All candidates in canonical order (video id, then frame), before shuffling. Deterministic.

        A candidate that the data make impossible is yielded as a `SkippedExample`, so that it is counted.
        """

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

    def answer_schema(self, example: Example) -> Fields | None:
        """JSON Schema of the answer that the prompt asks for; None where it is no JSON."""
        return None


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """A candidate that could not become an example, and why; it is counted and reported."""

    frame: FrameRef
    reason: str


def content_seed(*parts: str | int) -> int:
    """A 63-bit seed made from content, the same on every machine and in every order of work."""
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
