"""From what a method of judging makes of its log to figures: what G-Eval and judges of reasons have in common.

Figures are means over the model's runs, of those that have a verdict at all; intervals are over clusters.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from barista_bench import __version__
from barista_bench.core.bootstrap import ratio_interval
from barista_bench.core.prices import token_cost
from barista_bench.core.task import Status
from barista_bench.files.atomic import replacing
from barista_bench.judging.results import (
    MEAN,
    CategoryFigures,
    JudgedCoverage,
    JudgedResults,
    JudgeInfo,
    RubricInfo,
    write_judged,
)
from barista_bench.judging.session import JudgeDescription
from barista_bench.runs.log.keys import digest
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.figures import figure
from barista_bench.runs.score.results import RESULTS_FILE, SCORES_FILE, Figure
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun

MISSING = "missing"


@dataclass(frozen=True, slots=True)
class SampleVerdict:
    """One verdict on one sample.

    Args:
        score: from 0 to the judge's `scale` (10 for G-Eval), weighted where `scoring` says so; None where there is no
            usable verdict.
        status: of the reply, or `missing` where it was not asked for yet.
        scoring: weighted, inferred (weighted, with a split "10" inferred), plain or rule; empty without a score.
        text: the judge's reason, or why there is no score.
    """

    criterion: str
    draw: int
    score: float | None
    status: str
    scoring: str
    text: str


Verdicts = tuple[SampleVerdict, ...]


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """All that a report needs of one judge on one run. `verdicts` are by example id and run."""

    folder: Path
    run: ScoredRun
    results: JudgedResults
    verdicts: Mapping[tuple[str, int], Verdicts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a method makes of a judge's log; sequences are over the finished samples, in the order of the run's.

    Args:
        verdicts: of each sample; none where there is nothing to judge.
        answered: samples that there is something to judge of.
        values: what each sample weighs in with, by figure; None where it has no part in that figure. Whoever has a
            value of `MEAN` counts as judged.
        figures: by name, over the samples at these places, all of one run of the model; None where there is none.
        used: the log's records that count, each once however many samples share it.
        scoring: usable verdicts by how they were made.
    """

    scale: float
    samples: Sequence[ScoredSample]
    verdicts: Sequence[Verdicts]
    answered: int
    values: Mapping[str, Sequence[float | None]]
    figures: Callable[[Sequence[int]], Mapping[str, float | None]]
    used: Sequence[SampleRecord]
    scoring: dict[str, int]
    sd_draws: dict[str, float | None]
    tops: dict[str, float] = field(default_factory=dict)
    breakdown_keys: Sequence[str] = ()


def judged_run(run: ScoredRun, folder: Path, described: JudgeDescription, made: Judgement) -> JudgedRun:
    """The figures of a judgement."""
    keys = ((one.example.example_id, one.record.run) for one in made.samples)
    verdicts = dict(zip(keys, made.verdicts, strict=True))
    return JudgedRun(folder, run, _results(run, described, made), verdicts)


def write_judged_run(judged: JudgedRun, made: Judgement) -> None:
    """Write `results.json` and `scores.jsonl` to the judge's folder."""
    _write_scores(made, judged.folder / SCORES_FILE)
    write_judged(judged.results, judged.folder / RESULTS_FILE)


def criteria_of(described: JudgeDescription) -> list[str]:
    return [criterion["name"] for criterion in described.rubric["criteria"]]


def raw_scores(verdicts: Sequence[SampleVerdict]) -> dict[str, float]:
    """A sample's score by criterion, in the judge's units, mean over its usable draws; criteria without are absent."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in verdicts:
        if one.score is not None:
            found[one.criterion].append(one.score)
    return {name: statistics.fmean(values) for name, values in found.items()}


def _results(run: ScoredRun, described: JudgeDescription, made: Judgement) -> JudgedResults:
    identity, info = described.identity, run.results
    statuses = Counter(verdict.status for own in made.verdicts for verdict in own)
    tokens_in = sum(record.input_tokens or 0 for record in made.used)
    tokens_out = sum(record.output_tokens or 0 for record in made.used)
    tables = _Tables(run, made)
    return JudgedResults(
        barista_bench=__version__,
        method=identity["method"],
        scale=made.scale,
        tops=made.tops,
        judge=JudgeInfo(**{name: identity["model"][name] for name in ("name", "revision", "settings")}),
        generation=described.generation,
        rubric=RubricInfo(
            version=described.rubric["version"],
            sha256=identity["rubric"],
            wording=described.rubric.get("wording", ""),
            criteria=criteria_of(described),
        ),
        prompt_sha256=identity["prompt"],
        steps=identity["steps"],
        steps_sha256=digest(described.steps),
        draws=described.draws,
        model=info.model.name,
        model_revision=info.model.revision,
        answers=info.comparability,
        dataset=info.dataset,
        runs=info.runs,
        coverage=JudgedCoverage(
            expected=info.coverage.expected,
            finished=len(made.samples),
            answered=made.answered,
            judged=tables.judged(range(len(made.samples))),
            verdicts={name: statuses[name] for name in (*map(str, Status), MISSING)},
        ),
        scoring=made.scoring,
        figures=tables.figures(range(len(made.samples))),
        sd_draws=made.sd_draws,
        per_category=tables.categories([one.example.label for one in made.samples]),
        breakdowns={
            key: tables.categories([str(one.example.metadata[key]) for one in made.samples])
            for key in made.breakdown_keys
        },
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=token_cost(tokens_in, tokens_out, described.prices.get("input"), described.prices.get("output")),
    )


class _Tables:
    """Figures of groups of samples, which are given as places."""

    def __init__(self, run: ScoredRun, made: Judgement) -> None:
        self._made = made
        self._runs = [one.record.run for one in made.samples]
        self._clusters = [run.task.cluster(one.example) for one in made.samples]

    def judged(self, places: Sequence[int]) -> int:
        return sum(self._made.values[MEAN][place] is not None for place in places)

    def figures(self, places: Sequence[int]) -> dict[str, Figure]:
        by_run: dict[int, list[int]] = defaultdict(list)
        for place in places:
            by_run[self._runs[place]].append(place)
        found: dict[str, list[float]] = defaultdict(list)
        for number in sorted(by_run):
            for name, value in self._made.figures(by_run[number]).items():
                if value is not None:
                    found[name].append(value)
        return {name: self._with_interval(figure(own), places, name) for name, own in found.items()}

    def _with_interval(self, found: Figure, places: Sequence[int], name: str) -> Figure:
        """An answer that has no part in the figure weighs nothing in the draws either."""
        values = self._made.values[name]
        usable = [place for place in places if values[place] is not None]
        ends = ratio_interval(
            np.array([values[place] for place in usable], dtype=np.float64),
            np.ones(len(usable)),
            runs=[self._runs[place] for place in usable],
            clusters=[self._clusters[place] for place in usable],
        )
        return found.model_copy(update={"low": ends.low, "high": ends.high}) if ends else found

    def categories(self, labels: Sequence[str]) -> dict[str, CategoryFigures]:
        groups: dict[str, list[int]] = defaultdict(list)
        for place, label in enumerate(labels):
            groups[label].append(place)
        return {
            label: CategoryFigures(
                examples=len({self._made.samples[place].example.example_id for place in places}),
                expected=len(places),
                judged=self.judged(places),
                figures=self.figures(places),
            )
            for label, places in sorted(groups.items())
        }


def _write_scores(made: Judgement, path: Path) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", errors="replace") as file:
        for sample, verdicts in zip(made.samples, made.verdicts, strict=True):
            about = {
                "example_id": sample.example.example_id,
                "video_id": sample.example.video_id,
                "run": sample.record.run,
            }
            for line in map(asdict, verdicts) if verdicts else [{"status": "unanswered"}]:
                file.write(json.dumps(about | line, sort_keys=True) + "\n")
