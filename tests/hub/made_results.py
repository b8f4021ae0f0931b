"""Rows of submissions made by hand, and their results."""

import statistics
from pathlib import Path
from typing import Any, Literal

from barista_bench.benchmarks import task_class
from barista_bench.hub.checks import check_schema
from barista_bench.hub.rows import SubmissionRow
from barista_bench.hub.settings import SubmissionTarget
from barista_bench.hub.submission import Submission, submission_of
from barista_bench.judging.results import CategoryMetrics, JudgedCoverage, JudgedResults, JudgeInfo, RubricInfo
from barista_bench.runs.described import BoxFormatInfo, ModelInfo
from barista_bench.runs.score.costs import Cost
from barista_bench.runs.score.results import DatasetInfo, MetricValue, PromptsInfo, Results, SampleCoverage, Timing

MODEL = "garden/fruit-8b"
DATASET = "garden/BARISTA"
HASH = "ab" * 32
TARGET = {"model_repo": MODEL, "dataset_repo": DATASET}


def metric(values: list[float], low: float | None = None, high: float | None = None) -> MetricValue:
    spread = statistics.stdev(values) if len(values) > 1 else None
    return MetricValue(mean=statistics.fmean(values), std=spread, repetitions=values, low=low, high=high)


def results(
    task: str = "relations",
    values: tuple[float, ...] = (0.41, 0.43, 0.42),
    interval: tuple[float, float] | Literal["about"] | None = "about",
    *,
    model: str = MODEL,
    examples: int = 100,
    missing: int = 0,
    split: str = "all",
    protocol: str = "release",
    content_hash: str = HASH,
    wording: str = "ours v2",
    settings: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    limit: int | None = None,
    revision: str | None = "c" * 40,
) -> Results:
    cls = task_class("barista", task)
    examples = min(examples, limit or examples)
    expected = examples * len(values)
    mean = statistics.fmean(values)
    low, high = (mean - 0.02, mean + 0.02) if interval == "about" else interval or (None, None)
    scored = expected - missing
    return Results(
        barista_bench="0.1.0",
        protocol=protocol,
        changed_options=options or {},
        model=ModelInfo(
            name=model,
            box_format=BoxFormatInfo(order="xyxy", scale=1000),
            revision=revision,
            settings={"dtype": "bfloat16"} if settings is None else settings,
        ),
        dataset=DatasetInfo(
            benchmark="barista",
            task=task,
            task_version=cls.version,
            config=task,
            split=split,
            limit=limit,
            examples=examples,
            content_hash=content_hash,
        ),
        prompts=PromptsInfo(version=2, sha256="d" * 64, wording=wording),
        generation={"temperature": 0.7},
        repetitions=len(values),
        coverage=SampleCoverage(expected=expected, scored=scored, answered=scored, statuses={"ok": scored}),
        primary=cls.primary,
        metrics={cls.primary: metric(list(values), low, high)},
        breakdowns={},
        details=[{cls.primary: value} for value in values],
        versions={"numpy": "2.4.6"},
        timing=Timing(
            sessions=1,
            seconds={"generate": 1.0},
            input_tokens=0,
            output_tokens=15 * scored,
            cost=12.5,
            costs={
                "output_tokens": Cost(total=15 * scored, mean=15.0, samples=scored),
                "seconds": Cost(total=scored / 4, mean=0.25, samples=scored),
                "dollars": Cost(total=12.5, mean=12.5 / scored, samples=scored),
            },
        ),
    )


def judged(
    of: Results, judge: str = "maker/judge", value: float = 0.61, unjudged: int = 0, **changes: Any
) -> JudgedResults:
    scored = of.coverage.scored
    results = JudgedResults(
        barista_bench="0.1.0",
        method="g-eval",
        judge=JudgeInfo(name=judge, revision=None, settings={"base_url": "https://judge.example/v1"}),
        generation={},
        rubric=RubricInfo(version=1, sha256="e" * 64, wording="ours v1", criteria=["correctness"]),
        prompt_sha256="f" * 64,
        steps="given",
        steps_sha256="f" * 64,
        verdicts_per_answer=3,
        model=of.model.name,
        model_revision=of.model.revision,
        answers=of.comparability,
        dataset=of.dataset,
        repetitions=of.repetitions,
        coverage=JudgedCoverage(
            expected=of.coverage.expected,
            finished=of.coverage.scored,
            answered=of.coverage.answered,
            judged=scored - unjudged,
            verdicts={"ok": 3 * (scored - unjudged), "parse_error": 3 * unjudged},
        ),
        scoring={"plain": 3 * (scored - unjudged)},
        metrics={"mean": metric([value] * of.repetitions)},
        sd_of_verdicts={},
        per_category={
            "one": CategoryMetrics(examples=of.dataset.examples, expected=scored, judged=scored - unjudged, metrics={})
        },
        input_tokens=0,
        output_tokens=0,
        cost=3.5,
    )
    return results.model_copy(update=changes)


def row(made: Results | None = None, judge: JudgedResults | None = None) -> SubmissionRow:
    """As `read_row` gives it of a run with these results."""
    made = made or results()
    task = task_class(made.dataset.benchmark, made.dataset.task)
    return SubmissionRow(Path(made.dataset.task), task, made, judge)


def submission(*rows: SubmissionRow, allow_incomplete: bool = False, **target: str) -> Submission:
    """As `make_submission` gives it of runs with these rows, checks included."""
    return submission_of(
        rows or [row()],
        check_schema(SubmissionTarget, {**TARGET, **target}, "submission"),
        allow_incomplete=allow_incomplete,
    )
