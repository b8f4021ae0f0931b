"""What a task asks: features, prompt, images, parser, and the answers of models that do not look."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.core.example import Example, Fields, ParseError, Prediction
from barista_bench.core.prompt import BoxFormat, Prompt
from barista_bench.core.typed_fields import TypedFields, features_of
from barista_bench.errors import ConfigError

if TYPE_CHECKING:
    from datasets import Features


class Question(ABC):
    """The first part of a task. Nothing here but `reference_answer` and `has_answer` looks at an example's target."""

    benchmark: ClassVar[str]
    name: ClassVar[str]
    inputs_type: ClassVar[type[TypedFields]]
    target_type: ClassVar[type[TypedFields]]
    metadata_type: ClassVar[type[TypedFields]]
    evidence_type: ClassVar[type[TypedFields]]
    """What the columns of an example hold."""

    def features(self) -> Features:
        """`datasets` features of the columns `inputs`, `target`, `metadata` and `evidence`."""
        from datasets import Features

        columns = {
            "inputs": self.inputs_type,
            "target": self.target_type,
            "metadata": self.metadata_type,
            "evidence": self.evidence_type,
        }
        return Features({name: dict(features_of(kind)) for name, kind in columns.items()})

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

    def answer_schema(self, example: Example) -> Fields | None:
        """JSON Schema of the answer that the prompt asks for; None where it is no JSON."""
        return None

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
