"""Open activity: name the activity in a few frames, in the model's own words.

The task uses the clips of `activity` (same sampling, same seed), without choices. BARISTA's section on limitations
states that multiple choice overestimates recognition. The gap between the two tasks measures by how much
(`paper_tables`). `activity_names.py` describes the scores. A judge can score the answer too (`judged`,
`rubrics/open_activity.yaml`).
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import starmap
from statistics import fmean
from typing import ClassVar

import numpy as np

from barista_bench.benchmarks.barista.activity import Activity, ActivityEvidence, ActivityMetadata
from barista_bench.benchmarks.barista.activity_choices import ActivitySampling, ActivityTarget
from barista_bench.benchmarks.extended.activity_names import (
    MAX_NAME,
    Guesses,
    NamedActivity,
    NamedActivityTask,
    made_up_names,
    usual_activities,
)
from barista_bench.benchmarks.lexical import after_label
from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Candidate, Vocabulary
from barista_bench.core.display import JudgedSample
from barista_bench.core.example import Example, Fields, Inputs, ParseError, Prediction, SkippedExample
from barista_bench.core.intervals import DIFFERENCE, ratio_interval
from barista_bench.core.model_samples import ModelSamples
from barista_bench.core.options import Option, protocol_option, rules_of
from barista_bench.core.prompt import Prompt
from barista_bench.scene_graph import VideoGraph
from barista_bench.tables import RangedScore, Table

_MARKS = re.compile(r"[*`]|__|^[ \t]*(?:[-+•>#]+|\d{1,3}[.)])[ \t]+", re.MULTILINE)
"""Markdown's marks of emphasis anywhere, and its marks of lists, quotations and headings at the start of a line."""


class OpenActivityInputs(Inputs):
    n_frames: int


class OpenActivity(NamedActivityTask[ActivitySampling]):
    name = upstream_name = "open_activity"
    version = 2
    primary = sample_score = "accuracy"
    decided_by = "mean"
    guesses: ClassVar[dict[str, int]] = {"accuracy": 1}
    primary_note = "Fraction of clips whose activity is named in the model's own words, as the option matcher says."
    sampling = Activity.sampling
    row_note = "frames of one activity, and what it is called"
    answer_note = "the activity in own words"
    options: ClassVar[Mapping[str, Option]] = {
        **NamedActivityTask.options,
        **protocol_option([rule for rule in rules_of(Activity.options) if rule.changes in ("examples", "scores")]),
    }

    inputs_type = OpenActivityInputs
    metadata_type = ActivityMetadata
    evidence_type = ActivityEvidence

    @cached_property
    def by_choice(self) -> Activity:
        """Return the task that asks about the same clips, but offers choices."""
        return Activity(options={"protocol": self.protocol})

    @property
    def counts_provider_errors(self) -> bool:
        return self.by_choice.counts_provider_errors

    def span(self, video: VideoGraph, candidate: Candidate, sampling: ActivitySampling) -> tuple[int, int]:
        return self.by_choice.span(video, candidate, sampling)

    def candidates(self, video: VideoGraph, sampling: ActivitySampling) -> Iterator[Candidate | SkippedExample]:
        return self.by_choice.candidates(video, sampling)

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: ActivitySampling
    ) -> Iterator[Candidate | SkippedExample]:
        return self.by_choice.select(candidates, vocabulary, sampling)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: ActivitySampling
    ) -> Iterator[Example]:
        for example in self.by_choice.build(video, candidates, vocabulary, sampling):
            yield replace(
                example,
                example_id=f"{self.name}:{_clip_id(example)}",
                benchmark=self.benchmark,
                task=self.name,
                inputs=OpenActivityInputs(len(example.frames)).write(),
                target=self.reference(ActivityTarget.of(example).class_id, vocabulary).write(),
            )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        count = len(example.frames)
        return self.prompts.prompt(count, frame_count=str(count), last=str(count))

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the last line labelled `Activity:`, or else a text of a single line, without Markdown markup."""
        activity = after_label(_MARKS.sub("", text[:MAX_ANSWER]), "activity")
        if not activity:
            return ParseError("the answer is empty")
        if len(activity.splitlines()) > 1:
            return ParseError("the answer has several lines, and none starts with `Activity:`")
        if len(activity) > MAX_NAME:
            return ParseError(f"the name of the activity has more than {MAX_NAME} characters")
        return Prediction(Guesses([activity]).write())

    def show_to_judge(self, example: Example, prediction: Prediction) -> JudgedSample:
        question = self.prompts.text("question")
        return JudgedSample(question, NamedActivity.of(example).activity, Guesses.read(prediction.value).activities[0])

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return f"Activity: {NamedActivity.of(example).activity}"

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        return f"Activity: {rng.choice(made_up_names())}"

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the most frequent reference of other videos."""
        return f"Activity: {usual_activities(others)[0]}"


def _clip_id(example: Example) -> str:
    """Return the part of an id that names the clip. It is the same in both tasks."""
    return example.example_id.partition(":")[2]


def paper_tables(models: Sequence[ModelSamples]) -> list[Table]:
    """Return each model's accuracy with choices and in its own words, on the clips that both tasks ask about."""
    with_choices = [model for model in models if model.task.name == Activity.name]
    in_own_words = [model for model in models if model.task.name == OpenActivity.name]
    pairs = [(first, second) for second in in_own_words for first in with_choices if first.model == second.model]
    rows = [row for row in starmap(_gap_row, pairs) if row]
    columns = ("model", "clips", "multiple choice", "own words", "gap")
    note = (
        "Accuracy on the same clips, mean over repetitions; the gap is what multiple choice adds. Names are compared "
        "as the option matcher of open_activity says. 95% intervals over videos."
    )
    return [Table.of("Activities by multiple choice and in own words", columns, rows, note)] if rows else []


def _gap_row(choices: ModelSamples, openly: ModelSamples) -> tuple[str, int, float, float, RangedScore | float] | None:
    """Return a row of the table, or None if the tasks have no clip in common."""
    scores = [_clip_accuracy(model) for model in (choices, openly)]
    clips = sorted(scores[0].keys() & scores[1].keys())
    if not clips:
        return None
    with_choices, own_words = (np.array([accuracy[clip] for clip in clips]) for accuracy in scores)
    gap = float((with_choices - own_words).mean())
    videos = [clip.partition(":")[0] for clip in clips]
    interval = ratio_interval(
        with_choices - own_words, np.ones(len(clips)), repetitions=[0] * len(clips), units=videos, bounds=DIFFERENCE
    )
    ranged_gap = RangedScore(gap, interval.low, interval.high) if interval else gap
    return openly.model, len(clips), float(with_choices.mean()), float(own_words.mean()), ranged_gap


def _clip_accuracy(model: ModelSamples) -> dict[str, float]:
    """Return the accuracy on each clip, averaged over repetitions."""
    scores = defaultdict(list)
    for samples in model.repetitions:
        accuracy = model.task.statistics(samples).scores()["accuracy"].tolist()
        for sample, score in zip(samples, accuracy, strict=True):
            scores[_clip_id(sample.example)].append(score)
    return {clip: fmean(values) for clip, values in scores.items()}
