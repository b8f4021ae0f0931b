"""How much the choice of the judge matters: the same answers under several judges (BARISTA paper, section A.6).

For each pair of judges and each metric: Kendall's tau-b of the models' ranking, the mean shift of their scores and its
spread over the models (divisor n, as in the paper), and whether a judge prefers models of its own family. The maths is
the metric's (`metrics/judge_score/agreement.py`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from barista_bench.errors import ConfigError
from barista_bench.judging.judged_run import JudgedRun, raw_scores
from barista_bench.judging.results import MEAN
from barista_bench.metrics.judge_score.agreement import calibration_shift, judge_agreement, kendall_tau_b
from barista_bench.runs.score.comparability import differences

MetricScores = Mapping[str, Mapping[str, float]]
"""Judge -> model -> score from 0 to 1."""
Family = Mapping[str, str]
"""Name of a judge or model -> who makes it."""

MAKERS = {
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
"""Beginnings of model names by maker; `--family` overrides them."""


class Comparison(msgspec.Struct, frozen=True):
    """Two judges on one metric, over the models that both judged.

    Args:
        metric: e.g. `temporal_vqa: accuracy`, or with a category `temporal_vqa / state_change: mean`.
        judges: the first is the one that shifts are measured from.
        models, first, second: names, and their scores under the two judges.
        tau: Kendall's tau-b of the two rankings; None where it is undefined.
        shift, shift_sd: mean of second - first over the models, and its standard deviation (divisor n).
    """

    metric: str
    judges: tuple[str, str]
    models: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    tau: float | None
    shift: float
    shift_sd: float

    @property
    def differences(self) -> tuple[float, ...]:
        return tuple(b - a for a, b in zip(self.first, self.second, strict=True))


class OwnFamily(msgspec.Struct, frozen=True):
    """A model under a judge of its own family and under one of another.

    Args:
        rank, other_rank: place among the models under the own and the other judge, from 1; ties share the better one.
        gain: score under the own judge minus score under the other.
        gain_of_others: mean of that difference over the models of other families than the judge's; None without any.
        preference: `gain` - `gain_of_others`: above 0, the judge is kinder to its own than to others.
    """

    metric: str
    judge: str
    other_judge: str
    model: str
    family: str
    rank: int
    other_rank: int
    gain: float
    gain_of_others: float | None

    @property
    def preference(self) -> float | None:
        return None if self.gain_of_others is None else self.gain - self.gain_of_others


class SampleAgreement(msgspec.Struct, frozen=True):
    """Two judges answer by answer, on one criterion: see `metrics/judge_score` for the figures."""

    criterion: str
    judges: tuple[str, str]
    n: int
    coverage: float
    exact: float | None
    within_1: float | None
    qwk: float | None
    tau: float | None


class Labelled(NamedTuple):
    """What one judge says of one run, under the names by which both are told apart from the others of their task."""

    judged: JudgedRun
    judge: str
    model: str

    @property
    def task(self) -> str:
        return self.judged.results.dataset.task


class CrossJudge(msgspec.Struct, frozen=True):
    """All of it; the order in which runs are given does not matter.

    Args:
        scores: metric -> judge -> model -> score.
        coverage: judge -> task and model -> share judged.
    """

    scores: dict[str, dict[str, dict[str, float]]]
    coverage: dict[str, dict[str, float]]
    comparisons: tuple[Comparison, ...]
    own_family: tuple[OwnFamily, ...]
    agreement: tuple[SampleAgreement, ...]


def compare(metric: str, scores: MetricScores, first: str, second: str) -> Comparison | None:
    """Two judges over the models that both judged; None if there are none.

    >>> found = compare("m", {"a": {"x": 0.5, "y": 0.7}, "b": {"x": 0.4, "y": 0.5}}, "a", "b")
    >>> found.tau, round(found.shift, 3), round(found.shift_sd, 3)
    (1.0, -0.15, 0.05)
    """
    models = tuple(model for model in scores[first] if model in scores[second])
    if not models:
        return None
    left, right = (tuple(scores[judge][model] for model in models) for judge in (first, second))
    shift = calibration_shift(left, right)
    # Rounding noise must not break a tie between models.
    tau = kendall_tau_b(*([round(value, 12) for value in values] for values in (left, right)))
    return Comparison(metric, (first, second), models, left, right, tau, shift["shift"], shift["sd"])


def compare_all(scores: Mapping[str, MetricScores]) -> tuple[Comparison, ...]:
    """Every pair of judges on every metric."""
    pairs = (
        compare(metric, own, first, second) for metric, own in scores.items() for first, second in combinations(own, 2)
    )
    return tuple(pair for pair in pairs if pair)


def own_family(comparisons: Sequence[Comparison], families: Family) -> tuple[OwnFamily, ...]:
    """The self-preference probe: each model whose family is that of one of the two judges, and of that one alone."""
    found: list[OwnFamily] = []
    for pair in comparisons:
        there = dict(zip(pair.models, pair.first, strict=True)), dict(zip(pair.models, pair.second, strict=True))
        found += _preferred(pair.metric, pair.judges, *there, families)
        found += _preferred(pair.metric, pair.judges[::-1], *there[::-1], families)
    return tuple(found)


def _preferred(
    metric: str,
    judges: tuple[str, str],
    scores: Mapping[str, float],
    elsewhere: Mapping[str, float],
    families: Family,
) -> list[OwnFamily]:
    """Models of the first judge's family, whose scores are `scores` under it and `elsewhere` under the second."""
    family, other = (families.get(judge) for judge in judges)
    if family is None or family == other:
        return []
    gains = {model: scores[model] - elsewhere[model] for model in scores}
    # The other judge's own models would show that judge's preference instead.
    neither = [
        gain for model, gain in gains.items() if families.get(model) is None or families[model] not in (family, other)
    ]
    baseline = sum(neither) / len(neither) if neither else None
    return [
        OwnFamily(metric, *judges, model, family, _rank(scores, model), _rank(elsewhere, model), gains[model], baseline)
        for model in scores
        if families.get(model) == family
    ]


def families_of(names: Sequence[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Who makes each model, by the beginning of its name or of a part of it; unknown ones are absent.

    >>> families_of(["served:gemini-2.5-flash", "org/Qwen3.5-9B", "lexical"], {"lexical": "ours"})
    {'served:gemini-2.5-flash': 'google', 'org/Qwen3.5-9B': 'alibaba', 'lexical': 'ours'}
    """
    found = {}
    for name in names:
        parts = re.split(r"[/:_ -]", name.casefold())
        makers = [maker for maker, starts in MAKERS.items() for part in parts if part.startswith(starts)]
        family = (given or {}).get(name) or (makers[0] if makers else None)
        if family:
            found[name] = family
    return found


def cross_judge(judged: Sequence[JudgedRun], families: Mapping[str, str] | None = None) -> CrossJudge:
    """Everything about several judges on several runs.

    Args:
        judged: as `all_judged` gives them, over all runs.
        families: names of judges or models -> family, over what their names say.

    Raises:
        ConfigError: no run has two judges, a run is given twice, or they cannot be compared: other examples, or another
            rubric.
    """
    _refuse_unlike(judged)
    own = labelled(judged)
    _refuse_lone_judges(own)
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    coverage: dict[str, dict[str, float]] = defaultdict(dict)
    for one in own:
        for metric, value in _metrics(one.judged):
            scores[metric][one.judge][one.model] = value
        coverage[one.judge][f"{one.task}: {one.model}"] = one.judged.results.coverage.share
    comparisons = compare_all(scores)
    return CrossJudge(
        {metric: {judge: dict(by_model) for judge, by_model in judges.items()} for metric, judges in scores.items()},
        dict(coverage),
        comparisons,
        own_family(comparisons, _families(own, families or {})),
        tuple(_agreement(own)),
    )


def labelled(judged: Sequence[JudgedRun]) -> list[Labelled]:
    """Every judged run with its labels, ordered by task, judge and model.

    Raises:
        ConfigError: two are of the same task, judge and model, as when a run is given twice.
    """
    found: dict[tuple[str, str, str], Labelled] = {}
    for one in map(Labelled, judged, judge_labels(judged), model_labels(judged)):
        before = found.setdefault((one.task, one.judge, one.model), one)
        if before is not one:
            raise ConfigError(
                f"{one.judged.folder} and {before.judged.folder}: both are {one.model!r} judged by {one.judge!r} on "
                f"{one.task}. Remedy: name each run once"
            )
    return [found[key] for key in sorted(found)]


def judge_labels(judged: Sequence[JudgedRun]) -> list[str]:
    """Judges' names; the digest of their folder tells two settings of one judge apart."""
    folders: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in judged:
        folders[one.results.dataset.task, one.results.judge.name].add(one.folder.name)
    return [
        one.results.judge.name
        if len(folders[one.results.dataset.task, one.results.judge.name]) == 1
        else f"{one.results.judge.name} ({one.folder.name.rpartition('-')[2]})"
        for one in judged
    ]


def model_labels(judged: Sequence[JudgedRun]) -> list[str]:
    """Models' names; runs of one model on one task are told apart by their folder's name, then by number.

    Numbers count the folders' resolved paths in sorted order, so that the order of `judged` does not matter.
    """
    names: dict[str, dict[Path, str]] = defaultdict(dict)
    for one in judged:
        names[one.results.dataset.task][one.run.folder.resolve()] = one.results.model
    labels = {task: _told_apart(own) for task, own in names.items()}
    return [labels[one.results.dataset.task][one.run.folder.resolve()] for one in judged]


def _told_apart(names: Mapping[Path, str]) -> dict[Path, str]:
    counts = Counter(names.values())
    named = {path: f"{name} ({path.name})" if counts[name] > 1 else name for path, name in sorted(names.items())}
    counts, places = Counter(named.values()), Counter[str]()
    found = {}
    for path, name in named.items():
        places[name] += 1
        found[path] = f"{name} ({places[name]})" if counts[name] > 1 else name
    return found


def _families(own: Sequence[Labelled], given: Mapping[str, str]) -> dict[str, str]:
    """Families by label: as given for the label, else by the name proper, since a folder's name tells no maker."""
    found = {}
    for one in own:
        results = one.judged.results
        for label, name in ((one.judge, results.judge.name), (one.model, results.model)):
            family = given.get(label) or families_of([name], given).get(name)
            if family:
                found[label] = family
    return found


def _metrics(one: JudgedRun) -> Iterator[tuple[str, float]]:
    """All figures of a judged run by name: over everything, then the mean of each category."""
    task = one.results.dataset.task
    for name, figure in one.results.figures.items():
        if name != MEAN or len(one.results.rubric.criteria) > 1:
            yield f"{task}: {name}", figure.mean
    for label, category in one.results.per_category.items():
        if MEAN in category.figures:
            yield f"{task} / {label}: {MEAN}", category.figures[MEAN].mean


def _refuse_unlike(judged: Sequence[JudgedRun]) -> None:
    """All judges of a task must have read comparable answers, by the same rubric."""
    seen: dict[str, JudgedRun] = {}
    for one in judged:
        first = seen.setdefault(one.results.dataset.task, one)
        apart = differences(first.results.answers, one.results.answers)
        rubrics = [judged_run.results.rubric.sha256[:12] for judged_run in (first, one)]
        if rubrics[0] != rubrics[1]:
            apart["rubric"] = " and ".join(rubrics)
        for what, values in apart.items():
            raise ConfigError(
                f"{one.folder}: other {what} than {first.folder} for {one.results.dataset.task} ({values}). "
                "Remedy: compare judges over the same examples, asked in the same words and read by the same options, "
                "with the same rubric"
            )


def _refuse_lone_judges(own: Sequence[Labelled]) -> None:
    """Judges are compared on one and the same run: there must be one with two."""
    judges: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in own:
        judges[one.task, one.model].add(one.judge)
    most = max(map(len, judges.values()), default=0)
    if most < 2:
        who = "".join(f"; {task}, {model}: {min(names)}" for (task, model), names in judges.items())
        raise ConfigError(
            f"only {most} judge has judged each of these runs{who}. Remedy: judge them with another as well"
        )


def _agreement(own: Sequence[Labelled]) -> Iterator[SampleAgreement]:
    """Answer by answer: over the samples that both judges of a pair have verdicts on."""
    by_criterion: dict[str, dict[str, dict[tuple[str, str, int], float]]] = defaultdict(lambda: defaultdict(dict))
    for one in own:
        for (example, run), verdicts in one.judged.verdicts.items():
            for criterion, score in raw_scores(verdicts).items():
                by_criterion[f"{one.task}: {criterion}"][one.judge][one.model, example, run] = score
    for criterion, judges in by_criterion.items():
        for first, second in combinations(judges, 2):
            samples = sorted(judges[first].keys() | judges[second].keys())
            columns = {name: [judges[name].get(sample) for sample in samples] for name in (first, second)}
            pair: dict[str, Any] = judge_agreement(columns, judges=[first, second])["pairs"][0]
            yield SampleAgreement(
                criterion,
                (first, second),
                pair["n"],
                pair["coverage"],
                pair["exact"],
                pair["within_1"],
                pair["qwk"],
                pair["tau_examples"],
            )


def _rank(scores: Mapping[str, float], model: str) -> int:
    return 1 + sum(value > scores[model] for value in scores.values())
