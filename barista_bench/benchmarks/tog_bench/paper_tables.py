"""Make the counterparts of the paper's tables and figures, and sweep over the threshold that the paper leaves open.

Each score is the mean over a model's runs. Intervals are in the report's general tables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from barista_bench.benchmarks.tog_bench.columns import InstructionMetadata
from barista_bench.benchmarks.tog_bench.scores import count_group, group_order, statistics_of, true_objects
from barista_bench.benchmarks.tog_bench.t_stvg import TSTVG
from barista_bench.core.example import Example, Scored
from barista_bench.core.model_samples import ModelSamples, RepetitionsByModel, mean_of_repetitions, means_of_repetitions
from barista_bench.tables import Table, Value, chart

SCORES = ("m_tIoU", "R1@0.3", "R1@0.5", "R1@0.7", "m_vIoU", "AP@0.3", "AP@0.5", "AP@0.7")
"""Temporal measures, then spatial measures, in the order of the paper's tables 1, 2 and 8."""
SWEEP = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CATEGORIES = 40
"""Number of bars in the distribution of categories, as in the paper's main figure."""
KEY_OBJECTS = 12
"""Maximum number of key objects per scene, as in table 7."""

PublishedMetrics: TypeAlias = Mapping[str, Any]
"""The published statistics of one repetition: scores, and tables by group."""
Rows: TypeAlias = list[tuple[Value, ...]]


def paper_tables(models: Sequence[ModelSamples]) -> Sequence[Table]:
    """Return tables 1, 2, 4, 5 and 8 and figures 3 to 6 of the paper, and the sweep of the recognition threshold."""
    tasks = [(model, model.task, [answers for answers in model.repetitions if answers]) for model in models]
    answered_repetitions = [
        (model.model, task, repetitions)
        for model, task, repetitions in tasks
        if isinstance(task, TSTVG) and repetitions
    ]
    if not answered_repetitions:
        return []
    by_model = {
        name: [task.statistics(answers).published_metrics() for answers in repetitions]
        for name, task, repetitions in answered_repetitions
    }
    examples = {
        s.example.example_id: s.example
        for _, _, repetitions in answered_repetitions
        for answers in repetitions
        for s in answers
    }
    return [
        _metrics_table(by_model, "Table 1: task level", _levels("T-", "T-Acc")),
        _metrics_table(by_model, "Table 2: object level", _levels("O-", "O-Acc", "EAcc", "IAcc")),
        _metrics_table(by_model, "Table 4: explicit and implicit tasks", _BY_KIND),
        _metrics_table(by_model, "Table 5: by number of objects", _BY_COUNT),
        _metrics_table(
            by_model, "Table 8: strict task level", _levels("ST-"), "0 for tasks with an object that was not recognised"
        ),
        _duration_chart(by_model),
        *_sweep_charts(answered_repetitions),
        *_set_count_tables(list(examples.values())),
    ]


Columns: TypeAlias = Mapping[str, tuple[str, ...]]
"""Maps the head of a column to the place of the column's score among the published scores."""


def _levels(prefix: str, *first: str) -> Columns:
    return {name: (name,) for name in (*first, *(f"{prefix}{score}" for score in SCORES))}


_BY_KIND: Columns = {
    f"T-{before}{kind[0].upper()}{after}": ("by_kind", kind, f"T-{before}{after}")
    for kind in ("explicit", "implicit")
    for before, after in (("", "Acc"), ("m_", "tIoU"), ("", "R1@0.5"), ("m_", "vIoU"), ("", "AP@0.5"))
}
_MEAN_OVERLAPS = ("T-Acc", "T-m_tIoU", "T-m_vIoU")
_BY_COUNT: Columns = {
    **{f"{n} obj. {name}": ("by_number_of_objects", n, name) for n in ("1", "2", "3+") for name in _MEAN_OVERLAPS},
    **{f"all {name}": (name,) for name in _MEAN_OVERLAPS},
}


def _metrics_table(models: RepetitionsByModel, title: str, columns: Columns, note: str = "") -> Table:
    return Table.of(title, ("model", *columns), means_of_repetitions(models, columns.values()), note)


def _task_kind(example: Example) -> str:
    return InstructionMetadata.of(example).kind


def _duration_chart(models: Mapping[str, Sequence[PublishedMetrics]]) -> Table:
    series: dict[str, dict[str, float]] = {}
    for model, repetitions in models.items():
        bins = sorted({name for metrics in repetitions for name in metrics["by_duration"]}, key=group_order)
        for name in _MEAN_OVERLAPS:
            means = [(group, mean_of_repetitions(repetitions, "by_duration", group, name)) for group in bins]
            series[f"{model}: {name}"] = {group: mean for group, mean in means if mean is not None}
    return chart("Figure 5: by duration of the video", "duration", "score", series, "bar")


def _sweep_charts(models: Sequence[tuple[str, TSTVG, Sequence[tuple[Scored, ...]]]]) -> list[Table]:
    """Return accuracy and overlap by recognition threshold, for runs that compare names by embeddings."""
    series: dict[str, dict[float, float]] = {}
    for model, task, repetitions in models:
        if task.rules.recogniser.matcher == "embeddings":
            pairs = [(threshold, _metrics_at(threshold, repetitions, task)) for threshold in SWEEP]
            for name in ("O-Acc", "T-Acc", "T-m_vIoU"):
                series[f"{model}: {name}"] = {
                    threshold: mean_of_repetitions(metrics, name) or 0.0 for threshold, metrics in pairs
                }
    note = "The paper does not state its threshold; the tables use the option `threshold`."
    title = "Recognition by the threshold of similarity"
    return [chart(title, "threshold", "score", series, note=note)] if series else []


def _metrics_at(threshold: float, repetitions: Sequence[tuple[Scored, ...]], task: TSTVG) -> list[PublishedMetrics]:
    """Return the scores of each repetition at another threshold."""
    rules = replace(task.rules, recogniser=replace(task.rules.recogniser, threshold=threshold))
    return [statistics_of(answers, rules).published_metrics() for answers in repetitions]


def _set_count_tables(examples: Sequence[Example]) -> list[Table]:
    """Return counts of the examples: the paper's figures 3, 4 and 6."""
    counts = Counter((_task_kind(example), count_group(len(true_objects(example)))) for example in examples)
    objects = Counter(item.kind for example in examples for item in true_objects(example))
    rows: Rows = [
        (kind, *(counts[kind, count] for count in ("1", "2", "3+")), sum(counts[kind, c] for c in ("1", "2", "3+")))
        for kind in ("explicit", "implicit")
    ]
    note = f"{objects['explicit']} objects are named by their instruction, {objects['implicit']} are not."
    columns = ("tasks", "1 object", "2 objects", "3+ objects", "all")
    videos = {example.video_id: InstructionMetadata.of(example).duration_bin for example in examples}
    durations = Counter(videos.values())
    bars = {name: durations[name] for name in sorted(durations, key=group_order)}
    return [
        Table.of("Figure 3: instructions", columns, rows, note),
        chart("Figure 4: durations of the videos", "duration", "videos", {"videos": bars}, "bar"),
        _categories_chart(examples),
    ]


def set_tables(examples: Mapping[str, Sequence[Example]]) -> list[Table]:
    """Return figures 3, 4 and 6 and table 7 of a set of tasks."""
    tasks = examples.get(TSTVG.name, ())
    return [*_set_count_tables(tasks), _key_objects_table(tasks)] if tasks else []


def _key_objects_table(examples: Sequence[Example]) -> Table:
    by_scene: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        metadata = InstructionMetadata.of(example)
        by_scene[metadata.scene].update(set(metadata.categories))
    rows = []
    for scene, counts in sorted(by_scene.items()):
        most_frequent = sorted(counts, key=lambda name: (-counts[name], name))[:KEY_OBJECTS]
        rows.append((scene, ", ".join(f"{name} ({counts[name]})" for name in most_frequent)))
    note = f"The {KEY_OBJECTS} objects at most that most tasks take, with the number of these tasks."
    return Table.of("Table 7: key objects by scene", ("scene", "key objects"), rows, note)


def _categories_chart(examples: Sequence[Example]) -> Table:
    by_kind = {
        kind: Counter(item.category for e in examples if _task_kind(e) == kind for item in true_objects(e))
        for kind in ("explicit", "implicit")
    }
    all_counts = sum(by_kind.values(), Counter())
    most_frequent = sorted(all_counts, key=lambda name: (-all_counts[name], name))[:CATEGORIES]
    series = {f"{kind} tasks": {name: counter[name] for name in most_frequent} for kind, counter in by_kind.items()}
    note = f"The {len(most_frequent)} most frequent of {len(all_counts)} categories."
    return chart("Figure 6: categories", "category", "objects", series, "bar", note)
