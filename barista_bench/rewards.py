"""ViSTa's score of a video against a description, as a reward for agents (arXiv 2411.13211, sections 1 and 4.1).

    reward = VideoReward(model, ["take the cup, then pour milk", "pour milk, then take the cup"], episodes)
    reward(episode, "take the cup, then pour milk")
    reward.steps(episode, "take the cup, then pour milk", 10)

A raw score says little, so it is standardised as the benchmark's: by a softmax over the descriptions, then for each
description by mean and standard deviation over reference videos. The scored video is none of these: what it is worth
must not depend on itself (footnote 2 of the paper).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.vista.columns import MISSING, LabelScores, MatchingInputs
from barista_bench.benchmarks.vista.matching import All
from barista_bench.core.task import Example, FrameRef, Prediction
from barista_bench.errors import ConfigError, ModelError
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.metrics.sequence_matching.rescaling import Scores, leave_one_out_z_scores, softmax_over_labels
from barista_bench.models import Failure, GenerationConfig, Model, Request

log = logging.getLogger(__name__)

Video = Sequence[NDArray[np.uint8]]
"""Frames, each (height, width, 3) RGB, in their order: a list, an array, or `LazyFrames` of a file."""
GREEDY = GenerationConfig(temperature=0.0)


class VideoReward:
    """Standardised scores of videos, by a dual encoder or a model that writes; higher fits better.

    Args:
        model: scores the descriptions, or is asked in the benchmark's two conversations.
        descriptions: of what an agent may do, the wanted one and others that it is held against.
        references: videos that the scores are standardised over, such as earlier episodes, the more alike the better.
        frames: how many frames of a video are shown at the most, evenly spaced.
        generation: settings of a model that writes.

    Raises:
        ConfigError: there are fewer than two different descriptions or references.
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
        if len(set(descriptions)) < 2 or len(references) < 2:
            raise ConfigError(
                f"{len(set(descriptions))} descriptions and {len(references)} references cannot be compared. "
                "Remedy: give two or more of each"
            )
        self._model, self._frames, self._generation = model, frames, generation
        self._descriptions = list(dict.fromkeys(descriptions))
        self._task = All()
        self._references = self._raw_scores(references)

    def __call__(self, video: Video, description: str) -> float:
        """The score of a whole video against one of the descriptions, in standard deviations of the references.

        Raises:
            ConfigError: the description is none of those given.
            DataError: the video has no frame.
            ModelError: the model did not answer.
        """
        return self.steps(video, description, 1)[0]

    def steps(self, video: Video, description: str, count: int) -> list[float]:
        """Scores of a video up to the end of each of `count` equal parts; their differences are a reward a step.

        Raises:
            ConfigError, DataError, ModelError: as for the whole video; or it has fewer than `count` frames.
        """
        if description not in self._descriptions:
            raise ConfigError(f"{description!r} is none of the descriptions. Remedy: give it when the reward is made")
        if not 1 <= count <= max(1, len(video)):
            raise ConfigError(f"{count} steps of {len(video)} frames were asked for. Remedy: ask for 1 up to these")
        rows = self._raw_scores([video[: len(video) * step // count] for step in range(1, count + 1)])
        column = self._descriptions.index(description)
        together = (softmax_over_labels(np.vstack([self._references, row])) for row in rows)
        return [float(leave_one_out_z_scores(scores)[-1, column]) for scores in together]

    def _raw_scores(self, videos: Sequence[Video]) -> Scores:
        """(videos, descriptions): as the model gives them; by the released rule -0.1 where it gives none."""
        examples, images = [], []
        for number, video in enumerate(videos):
            chosen = evenly_spaced(len(video), self._frames)
            images.append(tuple(Image.fromarray(np.asarray(video[index])) for index in chosen))
            examples.append(self._example(number, chosen))
        answers = self._answers(examples, images)
        rows = []
        for example, answer in zip(examples, answers, strict=True):
            labels = MatchingInputs.read(example.inputs).labels
            read = self._task.parse(answer, example.inputs, self._model.box_format)
            scores = LabelScores.read(read.value).scores if isinstance(read, Prediction) else {}
            rows.append([scores.get(label, MISSING) for label in labels])
            if len(scores) < len(labels):
                log.warning("video %s: %d of %d descriptions are scored", example.example_id, len(scores), len(labels))
        return np.array(rows)

    def _answers(self, examples: Sequence[Example], images: Sequence[tuple[Image.Image, ...]]) -> list[str]:
        """The last answer to each example, in as many waves of questions as the task asks."""
        boxes, answers = self._model.box_format, [tuple[str, ...]()] * len(examples)
        prompts = {at: self._task.prompt(example, boxes) for at, example in enumerate(examples)}
        while prompts:
            requests = [
                Request(
                    examples[at].example_id,
                    prompt,
                    images[at] if prompt.image_count else (),
                    inputs=examples[at].inputs,
                    choices=self._task.choices(examples[at]),
                )
                for at, prompt in prompts.items()
            ]
            for at, (answer,) in zip(prompts, self._model.generate(requests, self._generation), strict=True):
                if isinstance(answer, Failure):
                    raise ModelError(f"{self._model.identity.name}: video {at}: {answer.error}. Remedy: ask again")
                answers[at] += (answer.text,)
            follow_ups = {at: self._task.follow_up(examples[at], answers[at], boxes) for at in prompts}
            prompts = {at: prompt for at, prompt in follow_ups.items() if prompt is not None}
        return [texts[-1] for texts in answers]

    def _example(self, number: int, frames: Sequence[int]) -> Example:
        labels = [f"summary_{at}" for at in range(len(self._descriptions))]
        return Example(
            example_id=str(number),
            benchmark=self._task.benchmark,
            task=self._task.name,
            label="",
            frames=tuple(FrameRef(str(number), index) for index in frames),
            inputs=MatchingInputs("", labels, self._descriptions, "", None, len(frames)).write(),
            target={},
        )
