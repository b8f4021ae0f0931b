"""The contract of every task, in three parts: question, scoring, display."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.display import (
    Display,
    Explanation,
    ExplanationRow,
    Judged,
    Overlay,
    OverlayKind,
    Rationale,
    Verdict,
)
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    FrameRef,
    Inputs,
    Json,
    Metadata,
    ParseError,
    Prediction,
    Scored,
    Target,
    TypedFields,
    evidence_objects,
    features_of,
)
from barista_bench.core.failures import AnswerFailure
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.options import Option, OptionValue, quote_value
from barista_bench.core.prompt import Prompt, PromptTexts, packaged_prompts
from barista_bench.core.statistics import MicroF1, SampleStatistics
from barista_bench.errors import ConfigError

if TYPE_CHECKING:
    from datasets import Features

    from barista_bench.core.options import Sampling

# Names that the code of tasks imports from here.
__all__ = ["AnswerFailure", "Example", "Fields", "FrameRef", "Json", "ParseError", "Prediction", "Scored"]
__all__ += ["Explanation", "ExplanationRow", "Judged", "Overlay", "OverlayKind", "Rationale", "Verdict"]
__all__ += ["Display", "Question", "Scoring", "Task", "evidence_objects"]


class Question(ABC):
    """The first part of a task. Only `reference_answer`, `correct_choices` and `has_answer` see the target."""

    benchmark: ClassVar[str]
    name: ClassVar[str]
    inputs_type: ClassVar[type[Inputs]]
    target_type: ClassVar[type[Target]]
    metadata_type: ClassVar[type[Metadata]]
    evidence_type: ClassVar[type[Evidence]]
    """Each of the four types declares the fields of one column."""
    answer_note: ClassVar[str]
    """The form of an answer, in a few words, for lists of tasks."""
    answered_by_text: ClassVar[bool] = True
    """Whether models that write text can answer; otherwise only baselines and answers in a file."""

    def features(self) -> Features:
        """Return the `datasets` features of the columns `inputs`, `target`, `metadata` and `evidence`.

        Raises:
            ConfigError: a column has no field, which Parquet cannot hold.
        """
        from datasets import Features

        columns = {
            name: features_of(getattr(self, f"{name}_type")) for name in ("inputs", "target", "metadata", "evidence")
        }
        for name, features in columns.items():
            if not features:
                where = f"{self.benchmark}/{self.name}: {name}_type"
                raise ConfigError(f"{where} has no field, and no file can hold such a column. Fix: add a field")
        return Features({name: dict(features) for name, features in columns.items()})

    @abstractmethod
    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        """Return the question; it depends only on `inputs` and the model's box format."""

    def follow_up(self, example: Example, answers: tuple[str, ...], box_format: BoxFormat) -> Prompt | None:
        """Return the next question, in a separate conversation, after these answers; None if the last of them is the
        answer.

        Always None for tasks that ask once. May count images, which are the example's images.
        """
        return None

    def frozen_question(self, example: Example) -> str | None:
        """Return the sentence that the benchmark's own release freezes with an example; None if it freezes none."""
        return None

    def choices(self, example: Example) -> Mapping[str, str]:
        """Return label -> text of the choices, in the order asked, for models that score given texts.

        They answer in the form that `read_scores` of `core/example.py` reads. Empty if there are no choices.
        """
        return {}

    def correct_choices(self, example: Example) -> Sequence[str]:
        """Return the labels of the right `choices`; empty if there are none, or the reference is hidden."""
        return ()

    def with_order(self, example: Example, order: Sequence[int]) -> Example:
        """Return the example with its choices in another order: `order` are the places, from 0, of the choices.

        The label of a place stays. Raises ConfigError if the task cannot do so.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} cannot reorder choices. Fix: leave the option order out")

    def answered_choices(self, prediction: Prediction) -> Sequence[str]:
        """Return the labels of `choices` that an answer names. Raises ConfigError if the task does not define this."""
        raise ConfigError(f"{type(self).__name__} has choices, but no `answered_choices`. Fix: leave its runs out")

    def has_answer(self, example: Example) -> bool:
        """Whether the reference is known: questions with hidden answers are asked, and never scored."""
        return True

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        """Return the images that the prompt counts, from the example's frames, each (height, width, 3) RGB; by default
        the frames.
        """
        return tuple(map(Image.fromarray, frames))

    def displayed_images(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """Return an example's images after the run's options (resolution, a choice of frames); by default all.

        Applied to stored and decoded images alike: sets store the result of `images`.
        """
        return tuple(images)

    def frame_times(self, example: Example) -> FrameTimes | None:
        """Return the times of the example's frames, by the clock of its prompt; None if its columns lack them.

        By default from `fps` of its metadata, if present. Missing times are read from the media.
        """
        fps, count = example.metadata.get("fps"), example.metadata.get("frame_count")
        if not isinstance(fps, int | float) or not 0 < fps < float("inf"):
            return None
        frame_count = count if isinstance(count, int) and count > 0 else None
        return FrameTimes(float(fps), tuple(frame.frame_index for frame in example.frames), frame_count)

    def image_frames(self, example: Example) -> Sequence[int]:
        """Return the index among the example's frames of each image that the prompt counts; by default they are the
        same.
        """
        return range(len(example.frames))

    def request_inputs(self, example: Example) -> Fields:
        """Return the question as data for models that read no prompt, after the run's options; by default the
        `inputs`.
        """
        return example.inputs

    @abstractmethod
    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Read an answer of a model that writes boxes in `box_format`. Never raises, and never sees the target."""

    def answer_schema(self, example: Example) -> Fields | None:
        """Return the JSON Schema of the answer that the prompt asks for; None if it is not JSON."""
        return None

    @abstractmethod
    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return the reference as a model would write it: the answer of the `oracle` model."""

    @abstractmethod
    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return a valid answer that uses nothing of the image: the answer of the `chance` model."""

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the most likely answer given only the references of `others`: the answer of the `prior` model.

        Args:
            others: examples of other videos than this one's, in the order of the set; may be empty.

        Raises:
            ConfigError: the task has no such answer.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} has no prior baseline. Fix: use --model chance")

    def centre_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return one box in the middle of the image for each requested object: the answer of the `centre_box` model.

        Raises:
            ConfigError: the task asks for no boxes.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} asks for no boxes. Fix: use --model chance or prior")

    def copied_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return the question's masks of the first frame on every frame: the answer of the `copy_first_mask` model.

        Raises:
            ConfigError: the question gives no masks.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} gives no masks to copy. Fix: use --model chance or prior")


class Scoring(ABC):
    """The second part of a task."""

    primary: ClassVar[str]
    """The primary metric, which represents the task in tables."""
    primary_note: ClassVar[str] = ""
    """A description of the primary metric, in one sentence for readers of reports."""
    sample_score: ClassVar[str]
    floor: ClassVar[str] = ""
    """What the score of a task counts whose published score needs a judge: a lower bound. Empty for other tasks."""
    """The score that represents one sample."""
    breakdown_keys: ClassVar[tuple[str, ...]]
    """Keys of `metadata` by which every result is broken down."""
    decided_by: ClassVar[Literal["mean"] | MicroF1 | None] = None
    """How few answers decide a question about the primary metric (`runs/decide`): it is the mean of `sample_score` over
    all samples, or a micro F1. None: it cannot be decided early."""
    scores_whole_units: ClassVar[bool] = False
    """Whether a resampling unit is scored as one, so that analysis must not group by keys that split a unit."""

    @abstractmethod
    def statistics(self, samples: Sequence[Scored]) -> SampleStatistics:
        """Return the statistics of these samples of one run, from which its scores follow.

        Without a readable answer, a sample scores as the protocol defines.
        """

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Return the scores of one sample; for many, compute their `statistics` once."""
        scores = self.statistics([Scored(example, prediction)]).scores()
        return {name: float(value[0]) for name, value in scores.items()}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """Return the task's scores over all samples of one run, and the tables beside them."""
        return self.statistics(samples).published_metrics()

    def as_target(self, example: Example, prediction: Prediction) -> TypedFields | None:
        """Return an answer in the form of the reference, so that others can be scored against it; None if it names
        nothing.

        Choices are compared by `answered_choices` instead. Fields that only explanations read are left empty.

        Raises:
            ConfigError: the task cannot do so.
        """
        raise ConfigError(f"{type(self).__name__} cannot hold answers against each other. Fix: leave its runs out")

    def resampling_unit(self, example: Example) -> str:
        """Return the unit of the example: intervals leave out, and tests exchange, complete units."""
        return example.video_id


class Task(Question, Scoring, Display):
    """One task is one class: question, scoring and display, and the rules for them."""

    upstream_name: ClassVar[str]
    """The `task_name` in frozen files."""
    version: ClassVar[int]
    """Goes up with every change that alters prompts, parsing or scores; part of a sample's key."""
    sampling: ClassVar[Sampling]
    """The published parameters; its class has those that the task reads."""
    prompt_package: ClassVar[str]
    """The package that holds `prompts/<name>.yaml`, and `rubrics/<name>.yaml` of a judged task."""
    options: ClassVar[Mapping[str, Option]] = {}
    """Options that the user may set."""

    def __init__(self, prompts: PromptTexts | None = None, *, options: Mapping[str, object] | None = None) -> None:
        """Raise ConfigError for an unknown option, or an invalid value."""
        self.prompts = prompts or packaged_prompts(self.prompt_package, self.name)
        values = options or {}
        for name in values:
            if name not in self.options:
                remedy = f"use one of {', '.join(self.options)}" if self.options else "leave it out"
                raise ConfigError(f"{self.benchmark}/{self.name} has no option {quote_value(name)}. Fix: {remedy}")
        self.chosen: dict[str, OptionValue] = {
            name: option.checked(name, values[name]) if name in values else option.default
            for name, option in self.options.items()
        }
        self.faults: dict[str, None] = {}
        """What its methods raised while all else went on, each message once (`core/guarding.py`)."""

    @property
    def protocol(self) -> str:
        """Return the value of the option `protocol`; `release` for tasks without it."""
        return str(self.chosen.get("protocol", "release"))

    @property
    def follows_paper(self) -> bool:
        return self.protocol == "paper"

    @property
    def counts_provider_errors(self) -> bool:
        """Whether an example without an answer counts as one with an unreadable answer; otherwise it is left out."""
        return False

    @classmethod
    def new_example(
        cls,
        example_id: str,
        video_id: str,
        frames: Iterable[int],
        *,
        label: str,
        inputs: Inputs,
        target: Target,
        metadata: Metadata | Fields,
        evidence: Evidence | Fields,
    ) -> Example:
        """Return an example of this task about some frames of one video, by their indices; its columns are JSON
        values.
        """
        return Example(
            example_id=example_id,
            benchmark=cls.benchmark,
            task=cls.name,
            label=label,
            frames=tuple(FrameRef(video_id, frame) for frame in frames),
            inputs=inputs.write(),
            target=target.write(),
            metadata=metadata.write() if isinstance(metadata, Metadata) else metadata,
            evidence=evidence.write() if isinstance(evidence, Evidence) else evidence,
        )

    @property
    def example_options(self) -> dict[str, OptionValue]:
        """Return the options that change examples and differ from their default."""
        names = (name for name, option in self.options.items() if option.changes == "examples")
        return {name: self.chosen[name] for name in names if self.chosen[name] != self.options[name].default}

    def stamp(self, example: Example) -> Example:
        """Return the example with `example_options` in its metadata, as part of its identity; without any it stays the
        same bytes.
        """
        return (
            replace(example, metadata={**example.metadata, **self.example_options}) if self.example_options else example
        )

    def refuse_others(self, examples: Sequence[Example]) -> None:
        """Raise ConfigError if an example was made with another value of an option that changes examples."""
        for name, option in self.options.items():
            for example in examples if option.changes == "examples" else ():
                frozen = example.metadata.get(name, option.default)
                if frozen != self.chosen[name]:
                    raise ConfigError(
                        f"{example.example_id}: was frozen by the {name} {frozen!r}, not {self.chosen[name]!r}. "
                        f"Fix: say {name}={frozen}, or build the set again with {name}={self.chosen[name]}"
                    )
