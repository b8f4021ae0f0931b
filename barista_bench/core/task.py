"""Define the contract of every task, in three parts: question, scoring and display."""

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
from barista_bench.core.display import Display
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
    features_of,
)
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.options import Option, OptionValue, Sampling, quote_value
from barista_bench.core.prompt import Prompt, PromptTexts
from barista_bench.core.prompt_files import packaged_prompts
from barista_bench.core.statistics import MicroF1, SampleStatistics
from barista_bench.errors import ConfigError

if TYPE_CHECKING:
    from datasets import Features


class Question(ABC):
    """The first part of a task. Only `reference_answer`, `correct_choices` and `has_answer` see the target."""

    benchmark: ClassVar[str]
    name: ClassVar[str]
    inputs_type: ClassVar[type[Inputs]]
    target_type: ClassVar[type[Target]]
    metadata_type: ClassVar[type[Metadata]]
    evidence_type: ClassVar[type[Evidence]]
    """Each of these four types declares the fields of one column."""
    answer_note: ClassVar[str]
    """A description of the form of an answer in a few words, for lists of tasks."""
    answered_by_text: ClassVar[bool] = True
    """Whether models that write text can answer. Otherwise only baselines and answers in a file are possible."""
    encoder_options: ClassVar[Mapping[str, OptionValue]] = {}
    """Options with another default for dual encoders, which read no prompt."""

    def features(self) -> Features:
        """Return the `datasets` features of the columns `inputs`, `target`, `metadata` and `evidence`.

        Raises:
            ConfigError: a column has no fields: Parquet cannot store such a column.
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
        """Return the question. It depends only on `inputs` and the model's box format."""

    def follow_up(self, example: Example, answers: tuple[str, ...], box_format: BoxFormat) -> Prompt | None:
        """Return the next question after these answers; None if the last of these is the answer to the example.

        The next question is a separate conversation and may show the example's images. Tasks that ask once always
        return None.
        """
        return None

    def frozen_question(self, example: Example) -> str | None:
        """Return the sentence that the benchmark's own release freezes with an example; None if there is none."""
        return None

    def choices(self, example: Example) -> Mapping[str, str]:
        """Return the text of each choice by its label, in the order shown, for models that score given texts.

        These models answer in the form that `read_scores` of `core/example.py` reads. The result is empty if the
        question has no choices.
        """
        return {}

    def correct_choices(self, example: Example) -> Sequence[str]:
        """Return the labels of the right `choices`; empty if the question has no choices or the reference is hidden."""
        return ()

    def with_order(self, example: Example, order: Sequence[int]) -> Example:
        """Return the example with its choices in another order. `order[i]` is the old place of choice i, from 0.

        Each place keeps its label. Raises ConfigError if the task cannot reorder choices.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} cannot reorder choices. Fix: leave the option order out")

    def answered_choices(self, prediction: Prediction) -> Sequence[str]:
        """Return the labels of `choices` that an answer names. Raises ConfigError if the task does not define this."""
        raise ConfigError(f"{type(self).__name__} has choices, but no `answered_choices`. Fix: leave its runs out")

    def counterpart(self, example: Example, others: Mapping[str, Example]) -> str | None:
        """Return the id of the example whose answer this example uses, if an option names a run (`Option.names_run`).

        Args:
            others: the examples of that run, by id.

        Returns:
            The id, or None if the run has no such example.
        """
        return None

    def has_answer(self, example: Example) -> bool:
        """Whether the reference is known. Questions with hidden answers are asked but never scored."""
        return True

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        """Return the images that the prompt counts, made from the example's frames, each (height, width, 3) RGB.

        By default, the images are the frames.
        """
        return tuple(map(Image.fromarray, frames))

    def displayed_images(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """Return the images after the run's options are applied (resolution, a choice of frames); by default all
        images.

        The method is applied to both stored and decoded images, since sets store the result of `images`.
        """
        return tuple(images)

    def frame_times(self, example: Example) -> FrameTimes | None:
        """Return the times of the example's frames, on the clock of the prompt; None if the example's columns have no
        times.

        By default, the times follow from `fps` in the metadata, if present. Missing times are read from the media.
        """
        fps, count = example.metadata.get("fps"), example.metadata.get("frame_count")
        if not isinstance(fps, int | float) or not 0 < fps < float("inf"):
            return None
        frame_count = count if isinstance(count, int) and count > 0 else None
        return FrameTimes(float(fps), tuple(frame.frame_index for frame in example.frames), frame_count)

    def image_frames(self, example: Example) -> Sequence[int]:
        """Return, for each image that the prompt counts, the index of its frame among the example's frames.

        By default, images and frames are the same.
        """
        return range(len(example.frames))

    def request_inputs(self, example: Example) -> Fields:
        """Return the question as data for models that read no prompt, after the run's options are applied.

        By default, these data are the `inputs`.
        """
        return example.inputs

    @abstractmethod
    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Read an answer of a model that writes boxes in `box_format`. Never raises, and never sees the target."""

    def answer_schema(self, example: Example) -> Fields | None:
        """Return the JSON Schema of the answer that the prompt asks for; None if the answer is not JSON."""
        return None

    @abstractmethod
    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return the reference as a model would write it: the answer of the `oracle` model."""

    @abstractmethod
    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return a valid answer that does not depend on the image: the answer of the `chance` model."""

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the most likely answer given only the references of `others`: the answer of the `prior` model.

        Args:
            others: examples of all other videos, in the order of the set; may be empty.

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

    def first_mask_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return the question's masks of the first frame for every frame: the answer of the `copy_first_mask` model.

        Raises:
            ConfigError: the question gives no masks.
        """
        raise ConfigError(f"{self.benchmark}/{self.name} gives no masks to copy. Fix: use --model chance or prior")


class Scoring(ABC):
    """The second part of a task."""

    primary: ClassVar[str]
    """The primary metric, which represents the task in tables."""
    primary_note: ClassVar[str] = ""
    """A description of the primary metric in one sentence, for readers of reports."""
    sample_score: ClassVar[str]
    """The score that represents one sample."""
    floor: ClassVar[str] = ""
    """What the score counts if the published score needs a judge. It is a lower bound. Empty for other tasks."""
    breakdown_keys: ClassVar[tuple[str, ...]]
    """Keys of `metadata` by which every result is broken down."""
    decided_by: ClassVar[Literal["mean"] | MicroF1 | None] = None
    """The form of the primary metric, for early decisions (`runs/decide`): the mean of `sample_score` over all samples,
    or a micro F1. None means that no early decision is possible."""
    scores_whole_units: ClassVar[bool] = False
    """Whether a resampling unit is scored as a whole. Analysis must then not group by keys that split a unit."""

    @abstractmethod
    def statistics(self, samples: Sequence[Scored]) -> SampleStatistics:
        """Return the statistics of these samples of one repetition. All scores follow from them.

        The protocol defines the score of a sample without a readable answer.
        """

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Return the scores of one sample. For many samples, compute `statistics` once instead."""
        scores = self.statistics([Scored(example, prediction)]).scores()
        return {name: float(value[0]) for name, value in scores.items()}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """Return the task's scores over all samples of one repetition, and the tables beside these scores."""
        return self.statistics(samples).published_metrics()

    def as_target(self, example: Example, prediction: Prediction) -> TypedFields | None:
        """Return an answer in the form of the reference, so that other answers can be scored against it.

        The result is None if the answer names nothing.

        Choices are compared by `answered_choices` instead. Fields that only explanations read are left empty.

        Raises:
            ConfigError: the task has no such form.
        """
        raise ConfigError(f"{type(self).__name__} cannot hold answers against each other. Fix: leave its runs out")

    def resampling_unit(self, example: Example) -> str:
        """Return the resampling unit of the example. Intervals leave out complete units, and tests exchange complete
        units.
        """
        return example.video_id


class Task(Question, Scoring, Display):
    """One task is one class, with question, scoring and display, and the rules for all three."""

    upstream_name: ClassVar[str]
    """The `task_name` in frozen files."""
    version: ClassVar[int]
    """The version goes up with every change that alters prompts, parsing or scores. It is part of a sample's key."""
    sampling: ClassVar[Sampling]
    """The published parameters. The class of this object defines which parameters the task reads."""
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
        self.run_answers: dict[str, list[str]] = {}
        """The choices that the run of an option `names_run` answered, as texts, by the id of this task's example.
        Unanswered examples are absent."""
        self.faults: dict[str, None] = {}
        """What its methods raised while all else went on, each message once (`core/guarding.py`)."""

    @property
    def protocol(self) -> str:
        """Return the value of the option `protocol`; `release` for tasks without this option."""
        return str(self.chosen.get("protocol", "release"))

    @property
    def follows_paper(self) -> bool:
        return self.protocol == "paper"

    @property
    def counts_provider_errors(self) -> bool:
        """Whether an example without an answer counts as an unreadable answer. Otherwise the example is left out."""
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
        """Return an example of this task about the frames with these indices in one video.

        The columns of the example are JSON values.
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
        """Return the options that change examples and whose values differ from the default."""
        names = (name for name, option in self.options.items() if option.changes == "examples")
        return {name: self.chosen[name] for name in names if self.chosen[name] != self.options[name].default}

    def stamp(self, example: Example) -> Example:
        """Return the example with `example_options` in its metadata, as part of its identity.

        Without such options, the example stays the same to the byte.
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
