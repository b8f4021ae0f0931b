"""Counterparts of the two leaderboards on EgoCoT-Bench's page, with scores of checked claims and set statistics.

The set statistics correspond to the paper's figure 2. Scores are means over repetitions. Accuracy and fractions range
from 0 to 1. R ranges from 0 to 5, as published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from barista_bench.benchmarks.egocot.claim_statistics import CLAIM_METRICS
from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.items import GROUP_SUBTASKS, GROUPS, SUBTASKS, CotMetadata
from barista_bench.core.example import Example, Scored
from barista_bench.core.model_samples import (
    ModelSamples,
    RepetitionsByModel,
    mean_of_repetitions,
    means_of_repetitions,
    sample_name,
)
from barista_bench.metrics.judge_score.agreement import quadratic_weighted_kappa
from barista_bench.metrics.judge_score.egocot import SPURIOUS_AT, egocot_reasoning
from barista_bench.tables import Table, Value, chart


class Agreement(NamedTuple):
    """Agreement of judge and evidence on a model's right answers. Each calls an answer `spurious` or not.

    Args:
        n: number of right answers with a verdict of the judge and of the evidence.
        judge, evidence, both: number of answers called spurious by the judge, by the evidence, and by both.
        phi: correlation of the two verdicts, -1 to 1; None if one verdict is constant.
        kappa: Cohen's kappa; None if one verdict is constant.
    """

    n: int
    judge: int
    evidence: int
    both: int
    phi: float | None
    kappa: float | None


def paper_tables(samples: Sequence[ModelSamples]) -> list[Table]:
    """Return tables and figures of the models that answered `egocot/cot`; empty without models."""
    cot_models = [(model, model.task) for model in samples if isinstance(model.task, Cot) and model.repetitions]
    if not cot_models:
        return []
    metrics = {
        m.model: [task.statistics(samples).published_metrics() for samples in m.repetitions] for m, task in cot_models
    }
    judged_models = [(model, judge) for model, _ in cot_models for judge in sorted(model.judge_scores)]
    tables: list[Table] = [_accuracy_table(metrics), _accuracy_chart(metrics), _claims_table(metrics)]
    if judged_models:
        tables += [_reasoning_table(judged_models), _agreement_table(judged_models)]
    return tables


def set_tables(examples: Mapping[str, Sequence[Example]]) -> list[Table]:
    """Return figure 2: questions by group and subtask, and videos by source dataset."""
    videos_shown = [(example.video_id, CotMetadata.of(example)) for example in examples.get(Cot.name, ())]
    if not videos_shown:
        return []
    counts = Counter(metadata.subtask for _, metadata in videos_shown)
    videos = Counter({video_id: metadata.source for video_id, metadata in videos_shown}.values())
    groups = {
        group: {subtask.code: counts[subtask.code] for subtask in subtasks if counts[subtask.code]}
        for group, subtasks in GROUP_SUBTASKS.items()
    }
    sources = dict(sorted(videos.items(), key=lambda row: (-row[1], row[0])))
    return [
        chart("Figure 2: questions", "subtask", "questions", groups, "bar", f"{len(videos_shown)} questions."),
        chart("Figure 2: videos", "source", "videos", {"videos": sources}, "bar"),
    ]


def _accuracy_table(metrics: RepetitionsByModel) -> Table:
    columns: dict[str, tuple[str, ...]] = {"Mean": ("accuracy",)}
    for group in GROUPS:
        columns |= {s.code: ("per_subtask", s.code, "accuracy") for s in GROUP_SUBTASKS[group]}
        columns[f"{group} mean"] = ("per_group", group, "accuracy")
    rows = means_of_repetitions(metrics, columns.values())
    rows.sort(key=lambda row: -(row[1] if isinstance(row[1], float) else 0.0))
    return Table.of(
        "Accuracy leaderboard: accuracy by subtask and group",
        ("model", *columns),
        rows,
        "Group and overall means pool their samples. Answers that could not be read are wrong.",
    )


def _accuracy_chart(metrics: RepetitionsByModel) -> Table:
    series = {}
    for model, repetitions in metrics.items():
        values = {s.code: mean_of_repetitions(repetitions, "per_subtask", s.code, "accuracy") for s in SUBTASKS}
        series[model] = {code: value for code, value in values.items() if value is not None}
    return chart("Figure 3: accuracy by subtask", "subtask", "accuracy", series, "bar")


def _claims_table(metrics: RepetitionsByModel) -> Table:
    columns: dict[str, tuple[str, ...]] = {name: (name,) for name in ("accuracy", "reasoned", *CLAIM_METRICS)}
    columns |= {f"{group} verified_scr": ("per_group", group, "verified_scr") for group in GROUPS}
    return Table.of(
        "Evidence-checked reasoning: claims of rationales against the annotations",
        ("model", *columns),
        means_of_repetitions(metrics, columns.values()),
        "Beyond the paper. verified_scr: right answers with a claim that the evidence contradicts; no judge is asked. "
        "What the evidence does not decide counts as unverifiable, never as wrong.",
    )


def _reasoning_table(judged_models: Sequence[tuple[ModelSamples, str]]) -> Table:
    rows = []
    for model, judge in judged_models:
        scores = model.judge_scores[judge]
        repetitions = [
            egocot_reasoning(
                [scores.get(sample_name(sample.example.example_id, repetition)) for sample in answers],
                [_is_right(sample) for sample in answers],
                [CotMetadata.of(sample.example).subtask for sample in answers],
                empty_reasoning=[
                    not (sample.prediction and sample.prediction.value["reasoning"]) for sample in answers
                ],
            )
            for repetition, answers in enumerate(model.repetitions)
        ]
        cells: list[Value] = []
        for path in ((), *(("per_group", group) for group in GROUPS)):
            percent = mean_of_repetitions(repetitions, *path, "scr")
            cells += [mean_of_repetitions(repetitions, *path, "r"), None if percent is None else percent / 100]
        rows.append((model.model, judge, *cells, mean_of_repetitions(repetitions, "coverage")))
    titles = [f"{name} {metric}" for name in ("Mean", *GROUPS) for metric in ("R", "SCR")]
    return Table.of(
        "Reasoning leaderboard: R (0 to 5) and SCR by group",
        ("model", "judge", *titles, "judged"),
        rows,
        f"R is the mean over all samples, without a rationale 0; SCR the fraction of right answers with "
        f"{SPURIOUS_AT} or less. Verdicts that are missing are in neither, and lower the fraction judged.",
    )


def _agreement_table(judged_models: Sequence[tuple[ModelSamples, str]]) -> Table:
    return Table.of(
        "Judge and evidence: do they call the same right answers spurious?",
        ("model", "judge", "n", "by the judge", "by the evidence", "by both", "phi", "kappa"),
        ((model.model, judge, *judge_and_evidence(model, judge)) for model, judge in judged_models),
        "Of the right answers, pooled over repetitions. The two look at different things: a judge at logic and "
        "wording, the evidence at facts; a low agreement is no fault of either.",
    )


def judge_and_evidence(model: ModelSamples, judge: str) -> Agreement:
    """Return the agreement of a judge and the evidence on a model's right answers, over all its repetitions.

    Raises TypeError if the samples are not of `egocot/cot`.
    """
    if not isinstance(model.task, Cot):
        raise TypeError(f"{model.model}: samples of {model.task.name}, not of egocot/cot")
    # Imported here, because other uses of the benchmark do not need scipy.
    from scipy.stats import pearsonr

    pairs = list(_pairs(model.task, model.repetitions, model.judge_scores[judge]))
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    both_vary = len(set(first)) > 1 and len(set(second)) > 1
    return Agreement(
        n=len(pairs),
        judge=int(sum(first)),
        evidence=int(sum(second)),
        both=sum(a and b for a, b in pairs),
        # For two yes-or-no columns, Pearson's r equals phi, and the weighted kappa equals Cohen's kappa.
        phi=float(pearsonr(first, second).statistic) if both_vary else None,
        kappa=quadratic_weighted_kappa(first, second) if both_vary else None,
    )


def _pairs(
    task: Cot, repetitions: Sequence[Sequence[Scored]], scores: Mapping[str, float]
) -> Iterator[tuple[bool, bool]]:
    """Yield two verdicts for each right answer: whether the judge and whether the evidence calls it spurious.

    Answers without both verdicts are left out.
    """
    for repetition, answers in enumerate(repetitions):
        for sample in answers:
            # Without a rationale, the judge's rule gives 0, and the evidence has no claim to contradict.
            if sample.prediction and _is_right(sample) and sample.prediction.value["reasoning"]:
                score = scores.get(sample_name(sample.example.example_id, repetition))
                if score is not None:
                    yield score <= SPURIOUS_AT, task.check(sample.example, sample.prediction).is_contradicted


def _is_right(sample: Scored) -> bool:
    return sample.prediction is not None and sample.prediction.value["answer"] == sample.example.target["answer"]
