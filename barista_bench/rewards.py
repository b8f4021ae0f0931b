"""Rewards: `task_reward` of any task's answers (`training/task_rewards.py`), and `VideoReward` of a video.

`VideoReward` is ViSTa's score of a video against a description, for agents (arXiv 2411.13211, sections 1 and 4.1).

    reward = VideoReward(model, ["take the cup, then pour milk", "pour milk, then take the cup"], episodes)
    reward(episode, "take the cup, then pour milk")
    reward.steps(episode, "take the cup, then pour milk", 10)

A raw score has little meaning, so it is standardised as in the benchmark: by a softmax over the descriptions, then for
each description by mean and standard deviation over reference videos. The scored video is not among these, since its
score must not depend on itself (footnote 2 of the paper).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.vista.columns import MISSING_SCORE, LabelScores, MatchingInputs
from barista_bench.benchmarks.vista.matching import All
from barista_bench.core.example import Example, FrameRef, Prediction
from barista_bench.core.prompt import Prompt
from barista_bench.errors import ConfigError, ModelError
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.metrics.sequence_matching.rescaling import leave_one_out_z_scores, softmax_over_labels
from barista_bench.models import Failure, GenerationConfig, Model, Request
from barista_bench.training.task_rewards import TaskReward as TaskReward, task_reward as task_reward

log = logging.getLogger(__name__)

Video = Sequence[NDArray[np.uint8]]
"""Frames, each (height, width, 3) RGB, in their order: a list, an array, or `LazyFrames` of a file."""
GREEDY = GenerationConfig(temperature=0.0)


class VideoReward:
    """Standardised scores of videos, by a dual encoder or a model that writes text; higher is better.

    Args:
        model: scores the descriptions, or answers in the benchmark's two conversations.
        descriptions: possible actions of an agent, the intended one and others to compare it with.
        references: videos over which scores are standardised, such as earlier episodes.
        frames: maximum number of frames of a video to show, evenly spaced.
        generation: settings of a model that writes text.

    Raises:
        ConfigError: there are fewer than two different descriptions, or two references.
        DataError: a video has no frame.
        ModelError: the model did not answer.
    """

    def __init__(
        self,
        model: Model,
        descriptions: Sequence[str],
        references: Sequence[Video],
        *,
        frames: int = All.sampling.frames,
        generation: GenerationConfig = GREEDY,
    ) -> None:
        self._descriptions = list(dict.fromkeys(descriptions))
        if min(len(self._descriptions), len(references)) < 2:
            raise ConfigError(
                f"{len(self._descriptions)} descriptions and {len(references)} references cannot be compared. "
                "Fix: give at least two of each"
            )
        self._model, self._frames, self._generation = model, frames, generation
        self._task = All(options={"shown_frames": frames})
        self._references = [self._raw_scores(video) for video in references]

    def __call__(self, video: Video, description: str) -> float:
        """Return how many standard deviations of the references a video fits one of the descriptions better than they
        do.

        Raises:
            ConfigError: the description is not among the given ones.
            DataError, ModelError: as when the reward is made.
        """
        if description not in self._descriptions:
            raise ConfigError(f"{description!r} is none of the descriptions. Fix: give it when the reward is made")
        fractions = softmax_over_labels(np.array([*self._references, self._raw_scores(video)]))
        return float(leave_one_out_z_scores(fractions)[-1, self._descriptions.index(description)])

    def steps(self, video: Video, description: str, count: int) -> list[float]:
        """Return the scores of a video up to the end of each of `count` equal parts; their differences are rewards per
        step.

        Raises:
            ConfigError, DataError, ModelError: as for the complete video; or it has fewer than `count` frames.
        """
        if not 1 <= count <= len(video):
            raise ConfigError(f"{count} steps of {len(video)} frames were asked for. Fix: ask for 1 up to these")
        return [self(video[: len(video) * step // count], description) for step in range(1, count + 1)]

    def _raw_scores(self, video: Video) -> list[float]:
        """Return the model's score of each description; by the released rule -0.1 if it gives none."""
        indices = evenly_spaced(len(video), self._frames)
        labels = [f"summary_{position}" for position in range(len(self._descriptions))]
        example = Example(
            example_id="video",
            benchmark=self._task.benchmark,
            task=self._task.name,
            label="",
            frames=tuple(FrameRef("video", index) for index in indices),
            inputs=MatchingInputs("", labels, self._descriptions, "", None, len(indices)).write(),
            target={},
        )
        answer = self._answer(example, tuple(Image.fromarray(np.asarray(video[index])) for index in indices))
        prediction = self._task.parse(answer, example.inputs, self._model.box_format)
        scores = LabelScores.read(prediction.value).scores if isinstance(prediction, Prediction) else {}
        if len(scores) < len(labels):
            log.warning("%d of %d descriptions have a score in: %.200s", len(scores), len(labels), answer)
        return [scores.get(label, MISSING_SCORE) for label in labels]

    def _answer(self, example: Example, images: tuple[Image.Image, ...]) -> str:
        """Return the answer to the task's last question."""
        box_format, answers = self._model.box_format, tuple[str, ...]()
        prompt: Prompt | None = self._task.prompt(example, box_format)
        while prompt is not None:
            prompt_images, choices = images if prompt.image_count else (), self._task.choices(example)
            request = Request(example.example_id, prompt, prompt_images, inputs=example.inputs, choices=choices)
            ((answer,),) = self._model.generate([request], self._generation)
            if isinstance(answer, Failure):
                raise ModelError(f"{self._model.identity.name}: {answer.error}. Fix: ask again")
            answers = (*answers, answer.text)
            prompt = self._task.follow_up(example, answers, box_format)
        return answers[-1]
