"""Compute the scores of a run from its verdicts, for every method of judging.

Scores are means over the model's repetitions with a verdict. Intervals are over resampling units.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from barista_bench.core.guarding import unit_of
from barista_bench.core.intervals import ratio_interval
from barista_bench.core.status import status_counts
from barista_bench.core.task import Task
from barista_bench.files.writing import atomic_write
from barista_bench.judging.answers import REASONING
from barista_bench.judging.judge_folder import JudgeDescription
from barista_bench.judging.results import MEAN, CategoryMetrics, JudgedCoverage, JudgedResults, JudgeInfo, RubricInfo
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.costs import costs_of, token_sums
from barista_bench.runs.score.labels import Start, start_labels
from barista_bench.runs.score.results import RESULTS_FILE, SCORES_FILE, MetricValue, write_results
from barista_bench.runs.score.samples import ScoredSample, metric_value
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.version import __version__

MISSING = "missing"
BY_RULE = "rule"


@dataclass(frozen=True, slots=True)
class SampleVerdict:
    """One verdict on one sample.

    Args:
        score: from 0 to the judge's `scale` (10 for G-Eval), or None without a usable verdict. `scoring` tells whether
            the score is weighted.
        status: status of the reply, or `missing` if the reply was not requested yet.
        scoring: weighted, inferred (weighted, with a split "10" inferred), plain or rule. Empty without a score.
        text: the judge's reason, or the reason for a missing score.
    """

    criterion: str
    repetition: int
    score: float | None
    status: str
    scoring: str
    text: str


Verdicts = tuple[SampleVerdict, ...]


class MetricValues(NamedTuple):
    """The values behind a score, and how to combine them. A sample that does not count has the value None."""

    values: Sequence[float | None]
    combine: Callable[[Sequence[float]], float]

    def of(self, positions: Sequence[int]) -> float | None:
        """Return the score of the samples at these positions, or None if no sample counts."""
        present = [value for index in positions if (value := self.values[index]) is not None]
        return self.combine(present) if present else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogVerdicts:
    """The verdicts in a judge's log, as a method of judging reads them.

    Sequences have the order of the run's finished samples.

    Args:
        scale: the highest score of a verdict.
        verdicts: verdicts per sample. A sample without anything to judge has no verdicts.
        metrics: values by metric name. A sample with a value of `MEAN` counts as judged.
        records: records of the log that count. A record that several samples share appears once.
    """

    scale: float
    samples: Sequence[ScoredSample]
    verdicts: Sequence[Verdicts]
    metrics: Mapping[str, MetricValues]
    records: Sequence[SampleRecord]
    sd_of_verdicts: Mapping[str, float | None] = field(default_factory=dict)
    tops: Mapping[str, float] = field(default_factory=dict)
    breakdown_keys: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """All data of one judge of one run that a report needs. `verdicts` are by example id and repetition."""

    folder: Path
    run: ScoredRun
    results: JudgedResults
    verdicts: Mapping[tuple[str, int], Verdicts]

    @classmethod
    def of(cls, run: ScoredRun, folder: Path, description: JudgeDescription, log_verdicts: LogVerdicts) -> JudgedRun:
        names = [sample.name for sample in log_verdicts.samples]
        verdicts = dict(zip(names, log_verdicts.verdicts, strict=True))
        return cls(folder, run, _results(run, description, log_verdicts), verdicts)

    def write(self) -> None:
        """Write `results.json` and `scores.jsonl` to the judge's folder."""
        with (
            atomic_write(self.folder / SCORES_FILE) as partial,
            partial.open("w", encoding="utf-8", errors="replace") as file,
        ):
            file.writelines(self.score_lines())
        write_results(self.results, self.folder / RESULTS_FILE)

    def score_lines(self) -> Iterator[str]:
        """Yield the lines of `scores.jsonl`."""
        videos = {sample.name: sample.example.video_id for sample in self.run.samples}
        for (example_id, number), verdicts in self.verdicts.items():
            about = {"example_id": example_id, "video_id": videos[example_id, number], "repetition": number}
            for line in map(asdict, verdicts) if verdicts else [{"status": "unanswered"}]:
                yield json.dumps(about | line, sort_keys=True) + "\n"


def judge_labels(judged_runs: Sequence[JudgedRun]) -> list[str]:
    """Return the judges' names by the rule of `start_labels`. A digest distinguishes the settings of one judge."""
    digests = [Path(judged_run.folder.name.rpartition("-")[2]) for judged_run in judged_runs]
    starts = {
        folder: Start(folder, "", of.results.judge, of.run.task.benchmark, of.run.task.name)
        for folder, of in zip(digests, judged_runs, strict=True)
    }
    labels = start_labels(list(starts.values()))
    return [labels[folder] for folder in digests]


def raw_scores(verdicts: Sequence[SampleVerdict]) -> dict[str, float]:
    """Return a sample's score by criterion, in the judge's units, averaged over usable verdicts.

    Criteria without a usable verdict are absent.
    """
    repetitions: dict[str, list[float]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.score is not None:
            repetitions[verdict.criterion].append(verdict.score)
    return {name: statistics.fmean(values) for name, values in repetitions.items()}


def _results(run: ScoredRun, description: JudgeDescription, log_verdicts: LogVerdicts) -> JudgedResults:
    identity, info = description.identity, run.results
    verdicts = [verdict for sample in log_verdicts.verdicts for verdict in sample]
    statuses = Counter(verdict.status for verdict in verdicts)
    scoring = Counter(verdict.scoring for verdict in verdicts)
    tokens_in, tokens_out, cached = token_sums(log_verdicts.records)
    tables = GroupMetrics(run.task, log_verdicts)
    everything = range(len(log_verdicts.samples))
    return JudgedResults(
        barista_bench=__version__,
        method=identity["method"],
        scale=log_verdicts.scale,
        tops=dict(log_verdicts.tops),
        judge=JudgeInfo(**{name: identity["model"][name] for name in ("name", "revision", "settings")}),
        generation=description.generation,
        rubric=RubricInfo(
            version=description.rubric["version"],
            sha256=identity["rubric"],
            wording=description.rubric["wording"],
            criteria=description.criteria,
        ),
        prompt_sha256=identity["prompt"],
        steps=identity["steps"],
        steps_sha256=digest(description.steps),
        verdicts_per_answer=description.verdicts_per_answer,
        model=info.model.name,
        model_revision=info.model.revision,
        answers=info.comparability,
        dataset=info.dataset,
        repetitions=info.repetitions,
        coverage=JudgedCoverage(
            expected=info.coverage.expected,
            finished=len(log_verdicts.samples),
            answered=sum(any(verdict.scoring != BY_RULE for verdict in sample) for sample in log_verdicts.verdicts),
            judged=tables.judged_count(everything),
            verdicts={**status_counts(statuses.elements()), MISSING: statuses[MISSING]},
        ),
        scoring={
            "weighted": scoring["weighted"] + scoring["inferred"],
            "inferred": scoring["inferred"],
            "plain": scoring["plain"],
            **({BY_RULE: scoring[BY_RULE]} if identity["method"] == REASONING else {}),
        },
        metrics=tables.compute_metrics(everything),
        sd_of_verdicts={name: log_verdicts.sd_of_verdicts.get(name) for name in (MEAN, *description.criteria)},
        per_category=tables.groups([sample.example.label for sample in log_verdicts.samples]),
        breakdowns={
            key: tables.groups([str(sample.example.metadata[key]) for sample in log_verdicts.samples])
            for key in log_verdicts.breakdown_keys
        },
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=description.prices.cost(tokens_in, tokens_out, cached),
        costs=costs_of(log_verdicts.records, description.prices),
    )


class GroupMetrics:
    """Computes the scores of groups of samples. A group is a sequence of positions."""

    def __init__(self, task: Task, log_verdicts: LogVerdicts) -> None:
        self._log_verdicts = log_verdicts
        self._repetitions = [sample.record.repetition for sample in log_verdicts.samples]
        self._units = [unit_of(task, sample.example) for sample in log_verdicts.samples]

    def judged_count(self, positions: Sequence[int]) -> int:
        values = self._log_verdicts.metrics[MEAN].values
        return sum(values[index] is not None for index in positions)

    def values(self, positions: Sequence[int]) -> dict[str, list[float]]:
        """Return each score's values in all repetitions that have the score."""
        by_repetition_index: dict[int, list[int]] = defaultdict(list)
        for index in positions:
            by_repetition_index[self._repetitions[index]].append(index)
        values = {
            name: [
                value
                for number in sorted(by_repetition_index)
                if (value := metric_values.of(by_repetition_index[number])) is not None
            ]
            for name, metric_values in self._log_verdicts.metrics.items()
        }
        return {name: of_runs for name, of_runs in values.items() if of_runs}

    def compute_metrics(self, positions: Sequence[int]) -> dict[str, MetricValue]:
        return {
            name: self._with_interval(metric_value(values), positions, self._log_verdicts.metrics[name])
            for name, values in self.values(positions).items()
        }

    def _with_interval(self, bare: MetricValue, positions: Sequence[int], metric_values: MetricValues) -> MetricValue:
        """Return the score with its interval.

        A sample that does not count also has weight 0 when units are resampled.
        """
        values = {index: value for index in positions if (value := metric_values.of([index])) is not None}
        interval = ratio_interval(
            np.array(list(values.values()), dtype=np.float64),
            np.ones(len(values)),
            repetitions=[self._repetitions[index] for index in values],
            units=[self._units[index] for index in values],
        )
        return bare.model_copy(update={"low": interval.low, "high": interval.high}) if interval else bare

    def groups(self, labels: Sequence[str]) -> dict[str, CategoryMetrics]:
        """Return the scores of the samples that share a label."""
        groups: dict[str, list[int]] = defaultdict(list)
        for index, label in enumerate(labels):
            groups[label].append(index)
        return {
            label: CategoryMetrics(
                examples=len({self._log_verdicts.samples[index].example.example_id for index in positions}),
                expected=len(positions),
                judged=self.judged_count(positions),
                metrics=self.compute_metrics(positions),
            )
            for label, positions in sorted(groups.items())
        }
