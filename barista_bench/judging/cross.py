"""Measure how scores of the same answers depend on the choice of the judge (BARISTA paper, section A.6).

The analysis covers each pair of judges and each metric. It computes Kendall's tau-b of the models' rankings, the mean
shift of the models' scores, and the spread of the shift over models (divisor n, as in the paper). It also tests whether
a judge prefers models of its own vendor. The formulas are in `metrics/judge_score/agreement.py`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec

from barista_bench.errors import ConfigError
from barista_bench.judging.judged_run import JudgedRun, judge_labels, raw_scores
from barista_bench.judging.results import MEAN, JudgedResults
from barista_bench.metrics.judge_score.agreement import calibration_shift, judge_agreement, kendall_tau_b
from barista_bench.runs.score.comparability import differences
from barista_bench.runs.score.labels import run_labels
from barista_bench.runs.score.scoring import ScoredRun

MetricScores = Mapping[str, Mapping[str, float]]
"""Judge -> model -> score from 0 to 1."""
VendorByName = Mapping[str, str]
"""Name of a judge or model -> its vendor."""

VENDORS = {
    "google": ("gemini", "gemma", "palm"),
    "openai": ("gpt", "o1", "o3", "o4"),
    "alibaba": ("qwen", "qwq", "qvq"),
    "anthropic": ("claude",),
    "meta": ("llama",),
    "mistral": ("mistral", "mixtral", "pixtral", "magistral"),
    "deepseek": ("deepseek",),
    "opengvlab": ("internvl",),
    "microsoft": ("phi",),
    "moonshot": ("kimi",),
    "zhipu": ("glm",),
}
"""Beginnings of model names by vendor. `--vendor` overrides this table."""


class JudgeComparison(msgspec.Struct, frozen=True):
    """The comparison of two judges on one metric, over the models that both judged.

    Args:
        metric: e.g. `temporal_vqa: accuracy`, or with a category `temporal_vqa / state_change: mean`.
        judges: names of the two judges. Shifts are measured from the first judge.
        models, first, second: names of the models, and their scores under the first and the second judge.
        tau: Kendall's tau-b of the two rankings, or None if it is undefined.
        shift, shift_sd: mean and standard deviation (divisor n) of second - first over the models.
    """

    metric: str
    judges: tuple[str, str]
    models: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    tau: float | None
    shift: float
    shift_sd: float


class OwnVendor(msgspec.Struct, frozen=True):
    """A model under a judge of its own vendor and under a judge of another vendor.

    Args:
        rank, other_rank: rank among the models under the own judge and under the other judge, from 1. Tied models share
            the better rank.
        gain: score under the own judge minus score under the other judge.
        gain_of_others: mean of this difference over models from other vendors than the own judge's vendor. None without
            such models.
        preference: `gain` - `gain_of_others`. Above 0, the judge favours its own vendor's model.
    """

    metric: str
    judge: str
    other_judge: str
    model: str
    vendor: str
    rank: int
    other_rank: int
    gain: float
    gain_of_others: float | None

    @property
    def preference(self) -> float | None:
        return None if self.gain_of_others is None else self.gain - self.gain_of_others


class SampleAgreement(msgspec.Struct, frozen=True):
    """Agreement of two judges on one criterion, answer by answer. `metrics/judge_score` defines the scores."""

    criterion: str
    judges: tuple[str, str]
    n: int
    coverage: float
    exact: float | None
    within_1: float | None
    qwk: float | None
    tau: float | None


class LabelledJudgedRun(NamedTuple):
    """The results of one judge on one run, with a label for the judge and for the run.

    Labels are unique within a task.
    """

    judged_run: JudgedRun
    judge: str
    model: str

    @property
    def results(self) -> JudgedResults:
        return self.judged_run.results

    @property
    def task(self) -> str:
        return self.results.dataset.task


class CrossJudge(msgspec.Struct, frozen=True):
    """The analysis of several judges on the same answers. It does not depend on the order of the runs.

    `scores` maps metric, judge and model to a score. `coverage` maps judge, then task and model, to the judged
    fraction.
    """

    scores: dict[str, dict[str, dict[str, float]]]
    coverage: dict[str, dict[str, float]]
    comparisons: tuple[JudgeComparison, ...]
    own_vendor: tuple[OwnVendor, ...]
    agreement: tuple[SampleAgreement, ...]


def compare_judges(metric: str, scores: MetricScores, first: str, second: str) -> JudgeComparison | None:
    """Compare two judges over the models that both judged. Return None without such models.

    >>> pair = compare_judges("m", {"a": {"x": 0.5, "y": 0.7}, "b": {"x": 0.4, "y": 0.5}}, "a", "b")
    >>> pair.tau, round(pair.shift, 3), round(pair.shift_sd, 3)
    (1.0, -0.15, 0.05)
    """
    models = tuple(model for model in scores[first] if model in scores[second])
    if not models:
        return None
    left, right = (tuple(scores[judge][model] for model in models) for judge in (first, second))
    shift = calibration_shift(left, right)
    # Rounding noise must not break a tie between models.
    tau = kendall_tau_b(*([round(value, 12) for value in values] for values in (left, right)))
    return JudgeComparison(metric, (first, second), models, left, right, tau, shift["shift"], shift["sd"])


def compare_all_judges(scores: Mapping[str, MetricScores]) -> tuple[JudgeComparison, ...]:
    """Compare every pair of judges on every metric."""
    pairs = (
        compare_judges(metric, judges, *pair) for metric, judges in scores.items() for pair in combinations(judges, 2)
    )
    return tuple(pair for pair in pairs if pair)


def own_vendor_probes(comparisons: Sequence[JudgeComparison], vendors: VendorByName) -> tuple[OwnVendor, ...]:
    """Return the self-preference probes: all models from the vendor of exactly one of the two judges."""
    probes: list[OwnVendor] = []
    for pair in comparisons:
        first, second = (dict(zip(pair.models, scores, strict=True)) for scores in (pair.first, pair.second))
        probes += _probes(pair.metric, pair.judges, first, second, vendors)
        probes += _probes(pair.metric, pair.judges[::-1], second, first, vendors)
    return tuple(probes)


def _probes(
    metric: str,
    judges: tuple[str, str],
    scores: Mapping[str, float],
    other_scores: Mapping[str, float],
    vendors: VendorByName,
) -> list[OwnVendor]:
    """Return the probes for the first judge's vendor, from all models' scores under the first and the second judge."""
    vendor, other_vendor = (vendors.get(judge) for judge in judges)
    if vendor is None or vendor == other_vendor:
        return []
    gains = {model: scores[model] - other_scores[model] for model in scores}
    # Models of the second judge's vendor would show the second judge's preference instead.
    neutral = [gain for model, gain in gains.items() if vendors.get(model, "") not in (vendor, other_vendor)]
    return [
        OwnVendor(
            metric,
            *judges,
            model=model,
            vendor=vendor,
            rank=_rank(scores, model),
            other_rank=_rank(other_scores, model),
            gain=gains[model],
            gain_of_others=sum(neutral) / len(neutral) if neutral else None,
        )
        for model in scores
        if vendors.get(model) == vendor
    ]


def _rank(scores: Mapping[str, float], model: str) -> int:
    return 1 + sum(value > scores[model] for value in scores.values())


def vendor_of(name: str) -> str | None:
    """Return the vendor of a model by the start of its name or of a part of its name, or None if unknown.

    >>> vendor_of("served:gemini-2.5-flash"), vendor_of("org/Qwen3.5-9B"), vendor_of("lexical")
    ('google', 'alibaba', None)
    """
    parts = re.split(r"[/:_ -]", name.casefold())
    vendors = (vendor for vendor, starts in VENDORS.items() for part in parts if part.startswith(starts))
    return next(vendors, None)


def cross_judge(judged_runs: Sequence[JudgedRun], vendors: Mapping[str, str] | None = None) -> CrossJudge:
    """Compare several judges on several runs. `judged_runs` comes from `all_judged`.

    `vendors` maps names of judges or models to vendors and overrides vendors found in the names. Raises ConfigError if
    no run has two judges, a run is given twice, or judges of a task used different examples or rubrics.
    """
    _refuse_unlike(judged_runs)
    labels = label_runs(judged_runs)
    _refuse_lone_judges(labels)
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    coverage: dict[str, dict[str, float]] = defaultdict(dict)
    for label in labels:
        for metric, value in _metrics(label):
            scores[metric][label.judge][label.model] = value
        coverage[label.judge][f"{label.task}: {label.model}"] = label.results.coverage.fraction
    comparisons = compare_all_judges(scores)
    return CrossJudge(
        {metric: {judge: dict(by_model) for judge, by_model in judges.items()} for metric, judges in scores.items()},
        dict(coverage),
        comparisons,
        own_vendor_probes(comparisons, _vendors(labels, vendors or {})),
        tuple(_agreement(labels)),
    )


def label_runs(judged_runs: Sequence[JudgedRun]) -> list[LabelledJudgedRun]:
    """Return every judged run with its labels, ordered by task, judge and model.

    Raises ConfigError if two judged runs have the same task, judge and model, for example if a run is given twice.
    """
    by_name: dict[tuple[str, str, str], LabelledJudgedRun] = {}
    models = model_labels([judged_run.run for judged_run in judged_runs])
    for label in map(LabelledJudgedRun, judged_runs, judge_labels(judged_runs), models):
        first = by_name.setdefault((label.task, label.judge, label.model), label)
        if first is not label:
            raise ConfigError(
                f"{label.judged_run.folder} and {first.judged_run.folder}: both are {label.model!r} "
                f"judged by {label.judge!r} on {label.task}. Fix: name each run once"
            )
    return [by_name[name] for name in sorted(by_name)]


def model_labels(runs: Sequence[ScoredRun]) -> list[str]:
    """Return each run's label from `run_labels`. Labels do not depend on the order of runs or on links to folders."""
    by_folder = {run.folder.resolve(): run for run in runs}
    labels = run_labels([by_folder[folder] for folder in sorted(by_folder)])
    return [labels[by_folder[run.folder.resolve()].folder] for run in runs]


def _vendors(labels: Sequence[LabelledJudgedRun], vendors_set: Mapping[str, str]) -> dict[str, str]:
    """Map labels to vendors.

    If no vendor is set for a label, use the model's name, since a folder's name shows no vendor.
    """
    vendors = {}
    for label in labels:
        for name, model_name in ((label.judge, label.results.judge.name), (label.model, label.results.model)):
            vendor = vendors_set.get(name) or vendors_set.get(model_name) or vendor_of(model_name)
            if vendor:
                vendors[name] = vendor
    return vendors


def _metrics(label: LabelledJudgedRun) -> Iterator[tuple[str, float]]:
    """Yield the names and values of a judged run's scores: the overall scores, then the mean of each category."""
    for name, metric in label.results.metrics.items():
        if name != MEAN or len(label.results.rubric.criteria) > 1:
            yield f"{label.task}: {name}", metric.mean
    for category, metrics in label.results.per_category.items():
        if MEAN in metrics.metrics:
            yield f"{label.task} / {category}: {MEAN}", metrics.metrics[MEAN].mean


def _refuse_unlike(judged_runs: Sequence[JudgedRun]) -> None:
    """Refuse judges of one task if their answers are not comparable or their rubrics differ."""
    firsts: dict[str, JudgedRun] = {}
    for other in judged_runs:
        task = other.results.dataset.task
        first = firsts.setdefault(task, other)
        conditions = differences(first.results.answers, other.results.answers)
        rubrics = [of.results.rubric.sha256[:12] for of in (first, other)]
        if rubrics[0] != rubrics[1]:
            conditions["rubric"] = " and ".join(rubrics)
        for condition, values in conditions.items():
            raise ConfigError(
                f"{other.folder}: other {condition} than {first.folder} for {task} ({values}). "
                "Fix: compare judges over the same examples, asked in the same words and read by the same options, "
                "with the same rubric"
            )


def _refuse_lone_judges(labels: Sequence[LabelledJudgedRun]) -> None:
    """Refuse the runs if no run has two judges, since judges are compared on the same run."""
    judges: dict[tuple[str, str], set[str]] = defaultdict(set)
    for label in labels:
        judges[label.task, label.model].add(label.judge)
    most = max(map(len, judges.values()), default=0)
    if most < 2:
        who = "".join(f"; {task}, {model}: {min(names)}" for (task, model), names in judges.items())
        raise ConfigError(f"only {most} judge has judged each of these runs{who}. Fix: judge them with another as well")


def _agreement(labels: Sequence[LabelledJudgedRun]) -> Iterator[SampleAgreement]:
    """Yield the agreement of each pair of judges over the samples that both judged."""
    by_criterion: dict[str, dict[str, dict[tuple[str, str, int], float]]] = defaultdict(lambda: defaultdict(dict))
    for label in labels:
        for (example, repetition), verdicts in label.judged_run.verdicts.items():
            for criterion, score in raw_scores(verdicts).items():
                by_criterion[f"{label.task}: {criterion}"][label.judge][label.model, example, repetition] = score
    for criterion, scores in by_criterion.items():
        for judges in combinations(scores, 2):
            samples = sorted(set().union(*(scores[judge] for judge in judges)))
            columns = {judge: [scores[judge].get(sample) for sample in samples] for judge in judges}
            pair = judge_agreement(columns, judges=judges)["pairs"][0]
            metrics = {name: pair[name] for name in ("n", "coverage", "exact", "within_1", "qwk")}
            yield SampleAgreement(criterion, judges, tau=pair["tau_examples"], **metrics)
