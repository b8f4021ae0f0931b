"""Scored runs made by hand over a task of the tests' own, so that reports are known to need no real one."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.display import Explanation, ExplanationRow, Overlay
from barista_bench.core.example import Example, FrameRef, Prediction, Scored
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.statistics import Row, SumStatistics, fraction
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.runs.described import BoxFormatInfo, ModelInfo, Prices
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.costs import costs_of
from barista_bench.runs.score.results import Breakdown, DatasetInfo, PromptsInfo, Results, SampleCoverage, Timing
from barista_bench.runs.score.samples import ScoredSample, counted_samples, metric_value
from barista_bench.runs.score.scoring import ScoredRun
from tests.stats.made import Bare

HOSTILE = "</script><img src=x onerror=alert(1)> {{7*7}} ![x](http://evil.example/p.png) |`*"


class Fruit(Bare):
    """Name the fruit: target and answer are sets of words."""

    benchmark, name, upstream_name, version, primary, sample_score = "garden", "fruit", "fruit", 3, "micro_f1", "f1"
    primary_note, row_note = "F1 of words over all samples.", "two pictures, and the fruit in them"

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        return Prompt("Name the fruit.", (ImagePart(0), ImagePart(1), TextPart(f"Which? {example.inputs['hint']}")))

    def parse(self, text: str, inputs: Any, box_format: BoxFormat) -> Prediction:
        return Prediction({"words": cast("Any", text.split(", "))}, dropped=1)

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        return SumStatistics(
            [_row(s.example, s.prediction) for s in samples],
            lambda sums: {
                "micro_f1": fraction(sums["f1"], sums["n"]),
                "mean_recall": fraction(sums["recall"], sums["n"]),
            },
            sample_scores={"mean_recall": "recall", "micro_f1": "f1"},
            tables=_tables,
        )

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """A reference by the example's number, an answered box with a hostile label, and a box that cannot be drawn."""
        number = example.frames[0].frame_index // 300
        reference = Overlay(0, (10.0 + number, 20.0, 110.0, 90.0), "reference", HOSTILE)
        said = (Overlay(0, (12.0, 1e30, 100.0, 80.0), "predicted"), Overlay(1, (float("nan"), 0, 1, 1), "predicted"))
        return (reference, *said) if prediction else (reference,)

    def image_captions(self, example: Example) -> tuple[str, ...]:
        return "as filmed", f"by {HOSTILE}"

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        reference, said = _words(example, prediction)
        groups = (("hit", reference & said), ("miss", reference - said), ("wrong", said - reference))
        return Explanation(
            tuple(ExplanationRow(cast("Any", v), word) for v, values in groups for word in sorted(values))
        )


def _words(example: Example, prediction: Prediction | None) -> tuple[set[str], set[str]]:
    return set(cast("Any", example.target["words"])), set(cast("Any", prediction.value["words"] if prediction else ()))


def _row(example: Example, prediction: Prediction | None) -> Row:
    reference, said = _words(example, prediction)
    hits, misses, wrong = len(reference & said), len(reference - said), len(said - reference)
    f1 = 2 * hits / (2 * hits + misses + wrong) if prediction else 0.0
    words = {("support", word): 1.0 for word in reference} | {("answered", word): 1.0 for word in said}
    return {"f1": f1, "recall": hits / (hits + misses), **words}


def _tables(sums: Row) -> dict[str, Any]:
    words = sorted({key[1] for key in sums if isinstance(key, tuple)})
    counts = {w: {part: int(sums.get((part, w), 0)) for part in ("support", "answered")} for w in words}
    return {"per_fruit": {w: {**count, "rate": 0.5} for w, count in counts.items()}, "n": int(sums["n"])}


class MadeItem:
    def __init__(self, index: int, size: tuple[int, int], broken: bool) -> None:
        self.index, self.size, self.broken = index, size, broken

    def images(self, task: Task) -> Sequence[Image.Image]:
        if self.broken:
            raise DataError(f"{HOSTILE} cannot be decoded")
        width, height = self.size
        noise = np.random.default_rng(self.index).integers(0, 256, (height, width, 3), dtype=np.uint8)
        return Image.fromarray(noise), Image.new("RGB", self.size, (self.index * 20 % 256, 90, 120))


class MadeExamples:
    """Replaces an `ExampleSet`."""

    def __init__(self, count: int, *, size: tuple[int, int] = (320, 180), broken: frozenset[int] = frozenset()) -> None:
        self.examples = tuple(_example(index) for index in range(count))
        self.size, self.broken = size, broken

    def __getitem__(self, index: int) -> MadeItem:
        return MadeItem(index, self.size, index in self.broken)


def _example(index: int) -> Example:
    return Example(
        example_id=f"fruit:{HOSTILE if index == 1 else 'video'}:{index}",
        benchmark="garden",
        task="fruit",
        label="2 fruit",
        frames=(FrameRef(f"video_{index}", 300 * index),),
        inputs={"hint": HOSTILE},
        target={"words": ["apple", "pear"]},
        metadata={
            "preparation": ("capsule", "moka")[index % 2],
            "activities": [("wash", "rinse")[index % 2], HOSTILE],
            "device": "glasses",
        },
        evidence={"fruit_rows": [index, index + 7]},
    )


STATUSES = (Status.OK, Status.PARSE_ERROR, Status.REFUSED, Status.TRUNCATED, Status.INFRA_ERROR)


def made_run(
    examples: MadeExamples,
    *,
    name: str = "org/model",
    repetitions: int = 2,
    statuses: Sequence[Status] = STATUSES,
    answer: str = "apple, plum",
    left_out: int = 0,
    folder: str = "a",
    task: Task | None = None,
    thinks: bool = False,
) -> ScoredRun:
    """Statuses go round over the samples; the last `left_out` examples were not run.

    A run that `thinks` does so for 10 tokens more with each example after the first.
    """
    task = task or Fruit()
    samples = []
    for index, example in enumerate(examples.examples[: len(examples.examples) - left_out]):
        thought = 10 * index if thinks else 0
        for run in range(repetitions):
            status = statuses[(index + run) % len(statuses)]
            text = None if status is Status.INFRA_ERROR else answer
            record = SampleRecord(
                key=f"{index}-{run}",
                fingerprint="",
                example_id=example.example_id,
                repetition=run,
                status=status,
                text=text,
                reasoning="It is red." if run else None,
                error=None if status is Status.OK else f"why {status}: {HOSTILE}",
                input_tokens=100,
                output_tokens=10 + thought,
                thinking_tokens=thought if thinks else None,
                seconds=0.25,
            )
            prediction = task.parse(answer, {}, BoxFormat()) if status is Status.OK else None
            samples.append(
                ScoredSample(example, record, cast("Any", prediction), task.score(example, cast("Any", prediction)))
            )
    results = _results(task, examples, samples, name, repetitions)
    counted = counted_samples(task, samples)
    return ScoredRun(Path(folder), task, cast("Any", examples), tuple(samples), results, counted)


def _results(task: Task, examples: MadeExamples, samples: list[ScoredSample], name: str, repetitions: int) -> Results:
    scored = [s for s in samples if s.record.status is not Status.INFRA_ERROR]
    details = [
        task.aggregate(cast("Any", [s for s in scored if s.record.repetition == run])) for run in range(repetitions)
    ]
    statuses = Counter(str(s.record.status) for s in samples)
    parts = {}
    for value in ("capsule", "moka"):
        group = [s for s in scored if s.example.metadata["preparation"] == value]
        parts[value] = Breakdown(
            examples=len({s.example.example_id for s in group}),
            metric=metric_value([cast("Any", task.aggregate(cast("Any", group))[task.primary])]),
        )
    return Results(
        barista_bench="0.1.0",
        protocol="release",
        model=ModelInfo(
            name=name, box_format=BoxFormatInfo(order="xyxy", scale=1000), revision="abc", settings={"dtype": "float32"}
        ),
        dataset=DatasetInfo(
            benchmark=task.benchmark,
            task=task.name,
            task_version=task.version,
            config=task.name,
            split="all",
            limit=None,
            examples=len(examples.examples),
            content_hash="0123456789abcdef" * 4,
        ),
        generation={"temperature": 0.7, "max_new_tokens": 64},
        repetitions=repetitions,
        coverage=SampleCoverage(
            expected=len(examples.examples) * repetitions,
            scored=len(scored),
            answered=sum(s.prediction is not None for s in scored),
            statuses={str(status): statuses[str(status)] for status in Status},
        ),
        prompts=PromptsInfo(version=1, sha256="0" * 64, wording="ours v1"),
        primary=task.primary,
        metrics={
            key: metric_value([cast("float", d[key]) for d in details])
            for key, v in details[0].items()
            if isinstance(v, float)
        },
        breakdowns={"preparation": parts},
        details=cast("Any", details),
        versions={"numpy": "2.1", "pillow": "12.0"},
        timing=Timing(
            sessions=1,
            seconds={"generate": 8.0, "total": 10.0},
            input_tokens=100,
            output_tokens=10,
            costs=costs_of([s.record for s in samples], Prices()),
        ),
    )
