"""The contract that every task keeps: Example, Prediction, Task, Status.

An example reads from left to right: `inputs` is all that the model and the parser may see, `target` is what scoring
compares with, `metadata` is what analysis groups by, `evidence` leads back into the scene graph.
"""

from __future__ import annotations

import hashlib
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.core.explanation import FAILURE_KINDS as FAILURE_KINDS
from barista_bench.core.explanation import Explanation as Explanation
from barista_bench.core.explanation import ExplanationRow as ExplanationRow
from barista_bench.core.explanation import Failure as Failure
from barista_bench.core.explanation import FailureKind as FailureKind
from barista_bench.core.explanation import Judged as Judged
from barista_bench.core.explanation import Overlay as Overlay
from barista_bench.core.explanation import OverlayKind as OverlayKind
from barista_bench.core.explanation import Rationale as Rationale
from barista_bench.core.explanation import Verdict as Verdict
from barista_bench.core.options import Option, OptionValue, effective
from barista_bench.core.prompt import BoxFormat, Prompt
from barista_bench.core.prompt_sets import PromptTexts, packaged_prompts
from barista_bench.core.sampling import Sampling as Sampling
from barista_bench.errors import ConfigError

if TYPE_CHECKING:
    from datasets import Features

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Fields: TypeAlias = dict[str, "Json"]
ProtocolName: TypeAlias = Literal["release", "paper"]
PROTOCOLS: tuple[ProtocolName, ...] = ("release", "paper")
"""Whose rules hold: those of the released code (the default), or the paper's where it says otherwise."""


class Status(StrEnum):
    """What became of one sample. Only infrastructure errors are tried again; see `Task.counts_provider_errors`."""

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
class ProtocolRule:
    """One rule on which a benchmark's release and its paper differ, in words.

    `changes` says what depends on the protocol here: `nothing` where a rule is only documented.
    """

    changes: Literal["examples", "images", "prompt", "parsing", "scores", "nothing"]
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


class Task(ABC):
    """One task is one class that says all of it: features, examples, prompt, parser, score."""

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
    options: ClassVar[Mapping[str, Option]] = {}
    """What the user may choose."""
    breakdown_keys: ClassVar[tuple[str, ...]]
    """Keys of `metadata` by which every result is broken down."""
    whole_clusters: ClassVar[bool] = False
    """Whether the examples of a cluster are scored together, so that analysis must not group by what cuts one apart."""
    failure_kinds: ClassVar[Mapping[Verdict, FailureKind]] = {"miss": "missed", "wrong": "hallucinated"}
    """The kind of failure that a row of `explain` tells of, where `failures` is not overridden."""

    def __init__(
        self,
        prompts: PromptTexts | None = None,
        *,
        protocol: ProtocolName = "release",
        options: Mapping[str, object] | None = None,
    ) -> None:
        if protocol not in PROTOCOLS:
            raise ConfigError(f"no protocol {protocol!r}. Remedy: use one of {', '.join(PROTOCOLS)}")
        self.prompts = prompts or packaged_prompts(self.prompt_package, self.name)
        self.protocol: ProtocolName = protocol
        self.chosen: dict[str, OptionValue] = effective(self.options, options or {}, f"{self.benchmark}/{self.name}")

    def option(self, name: str) -> OptionValue:
        """The value of one of the task's options."""
        return self.chosen[name]

    @property
    def follows_paper(self) -> bool:
        return self.protocol == "paper"

    @property
    def counts_provider_errors(self) -> bool:
        """Whether an example without any answer counts as one whose answer cannot be read; else it is left out."""
        return False

    @classmethod
    def freezes_by_protocol(cls) -> bool:
        """Whether the two protocols freeze different examples or images; where not, they share the frozen sets."""
        return any(rule.changes in ("examples", "images") for rule in cls.protocol_rules)

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

    @abstractmethod
    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        """What is asked; depends on `inputs` and the model's box format alone."""

    def follow_up(self, example: Example, answers: tuple[str, ...], boxes: BoxFormat) -> Prompt | None:
        """What is asked next, in a conversation of its own, after these answers to all that was asked before.

        None: the last of them is the answer, which is the case with every task that asks once. May count images, which
        are those of the example.
        """
        return None

    def frozen_question(self, example: Example) -> str | None:
        """The sentence that the benchmark's own release freezes with an example; None where it freezes none."""
        return None

    def choices(self, example: Example) -> Mapping[str, str]:
        """Label to text of what the answer is chosen from, in the order asked, for models that score given texts.

        They answer as `choices.read_scores` reads. Empty where nothing is given to choose from.
        """
        return {}

    def has_answer(self, example: Example) -> bool:
        """Whether the truth is known: questions with hidden answers are asked, and never scored."""
        return True

    def cluster(self, example: Example) -> str:
        """What the example belongs to when intervals are made: what is drawn with all that belongs to it."""
        return example.video_id

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        """The images that the prompt counts, from the example's frames, each (height, width, 3) RGB; here those."""
        return tuple(map(Image.fromarray, frames))

    def shown(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """What a run shows of an example's images, as its options say (resolution, a choice of frames); here all.

        Applied to stored and to decoded images alike: sets hold what `images` gives.
        """
        return tuple(images)

    def request_inputs(self, example: Example) -> Fields:
        """The question as data for models that read no prompt, as the run's options put it; here the `inputs`."""
        return example.inputs

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

        An answer that cannot be read fails once, in all objects of the example's evidence. Here misses and wrong
        answers as `explain` tells them, of the `failure_kinds`; tasks that know more override it.
        """
        if prediction is None:
            return self.unreadable(example)
        rows, kinds = self.explain(example, prediction).rows, self.failure_kinds
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

    def rationale(self, example: Example, prediction: Prediction) -> Rationale | None:
        """What a judge of reasoning is shown; None for a task that asks for none."""
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
