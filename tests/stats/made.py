"""Samples of a made task, right or wrong, so that the reference of a simulation is known."""

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, Prediction, Scored
from barista_bench.core.options import Sampling
from barista_bench.core.prompt import PromptTexts
from barista_bench.core.statistics import SumStatistics, mean_statistics
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.samples import ScoredSample, counted_samples
from barista_bench.runs.score.scoring import ScoredRun


class Bare(Task):
    """A task without videos, questions and answers; a test fills in the parts that it needs."""

    sampling, prompt_package, row_note = Sampling(), "", "a question"

    def __init__(self) -> None:
        super().__init__(PromptTexts(1, "", "", "0" * 64))

    def features(self) -> Any: ...
    def candidates(self, video: Any, sampling: Sampling) -> Any: ...
    def build(self, video: Any, candidates: Any, vocabulary: Any, sampling: Sampling) -> Any: ...
    def prompt(self, example: Example, box_format: BoxFormat) -> Any: ...
    def images(self, example: Example, frames: Any) -> Any: ...
    def parse(self, text: str, inputs: Any, box_format: BoxFormat) -> Any: ...
    def explain(self, example: Example, prediction: Prediction | None) -> Any: ...
    def reference_answer(self, example: Example, box_format: BoxFormat) -> str: ...
    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str: ...


class Quiz(Bare):
    """Right or wrong; knows nothing of any benchmark."""

    benchmark, name, upstream_name, version, primary, sample_score = "made", "quiz", "quiz", 1, "accuracy", "accuracy"

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        right = [{"accuracy": float(s.prediction is not None and bool(s.prediction.value["right"]))} for s in samples]
        return mean_statistics(
            right, [s.prediction is not None for s in samples], tables=lambda sums: {"n": int(sums["n"])}
        )


def drawn_out(task: Task, samples: Sequence[Scored], weights: Any) -> dict[str, list[float]]:
    """What `SampleStatistics.compute_metrics` gives, by `aggregate` of each resample, slowly."""
    resamples = [[s for s, count in zip(samples, row, strict=True) for _ in range(int(count))] for row in weights]
    metrics = [task.aggregate(resample) if resample else {} for resample in resamples]
    names = {name for resampled in metrics for name, value in resampled.items() if isinstance(value, float)}
    return {name: [resampled.get(name, np.nan) for resampled in metrics] for name in names}


def quiz_run(samples: Sequence[ScoredSample], task: Task | None = None) -> ScoredRun:
    """A run of the made task, as far as its analyses look at it."""
    task = task or Quiz()
    made = SimpleNamespace(task=task, samples=samples, folder="made", counted=counted_samples(task, samples))
    return cast("ScoredRun", made)


RIGHT, WRONG = Prediction({"right": True}), Prediction({"right": False})


def quiz_example(index: int, video: str) -> Example:
    frames = (FrameRef(video, index),)
    return Example(f"q{index}", "made", "quiz", label="question", frames=frames, inputs={}, target={})


def quiz_sample(example: Example, right: bool, run: int = 0, status: Status = Status.OK) -> ScoredSample:
    record = SampleRecord(f"{example.example_id}-{run}", "", example.example_id, run, status, text="")
    return ScoredSample(example, record, RIGHT if right else WRONG, {"accuracy": float(right)})


def video_effects(rng: np.random.Generator, videos: int, each: int) -> np.ndarray:
    """(videos, each) answers, right by chances that differ from video to video, a half on average."""
    chance = rng.beta(1.5, 1.5, size=(videos, 1))
    return rng.random((videos, each)) < chance
