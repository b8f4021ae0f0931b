"""The counterparts of the paper's tables and figures, and the sweep over thresholds that it leaves open.

Each figure is the mean over a model's runs; bootstrapped intervals stand in the report's general tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple, TypeAlias

from barista_bench.benchmarks.tog_bench.scores import (
    Rules,
    assess,
    assess_all,
    count_group,
    figures,
    group_order,
    grouped,
    true_objects,
)
from barista_bench.benchmarks.tog_bench.t_stvg import TSTVG
from barista_bench.core.paper_tables import ModelSamples, PaperChart, PaperTable, Point, Series, TableCell
from barista_bench.core.task import Example, Scored
from barista_bench.metrics.spatio_temporal_grounding import TaskScore

LEVELS = ("m_tIoU", "R1@0.3", "R1@0.5", "R1@0.7", "m_vIoU", "AP@0.3", "AP@0.5", "AP@0.7")
"""Temporal, then spatial measures, as the paper's tables 1, 2 and 8 have them."""
SWEEP = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CATEGORIES = 40
"""Bars of the distribution of categories (the paper's main figure has as many)."""

Figures: TypeAlias = Mapping[str, float]
Groups: TypeAlias = Mapping[str, Figures]
Rows: TypeAlias = "tuple[tuple[TableCell, ...], ...]"


class _Run(NamedTuple):
    samples: tuple[Scored, ...]
    scores: list[TaskScore]


class _Model(NamedTuple):
    name: str
    runs: list[_Run]

    def mean(self, name: str) -> float | None:
        return _mean([figures(run.scores) for run in self.runs], name)

    def by(self, key: Callable[[Example], str]) -> list[Groups]:
        """One mapping a run."""
        return [grouped(run.scores, run.samples, key) for run in self.runs]


def paper_tables(models: Sequence[ModelSamples]) -> Sequence[PaperTable | PaperChart]:
    """Tables 1, 2, 4, 5 and 8 and figures 3 to 6 of the paper, and the sweep of the threshold of recognition."""
    given = [(model, [run for run in model.runs if run]) for model in models if isinstance(model.task, TSTVG)]
    scored = [_scored(model.model, runs, model.task) for model, runs in given if runs and isinstance(model.task, TSTVG)]
    if not scored:
        return []
    examples = _examples(scored)
    return [
        _levels(scored, "Table 1: task level", "T-", ("T-Acc",)),
        _levels(scored, "Table 2: object level", "O-", ("O-Acc", "EAcc", "IAcc")),
        _by_kind(scored),
        _by_count(scored),
        _levels(scored, "Table 8: strict task level", "ST-", (), "0 for tasks with an object that was not recognised"),
        _by_duration(scored),
        *_sweeps(given),
        *_of_the_set(examples),
    ]


def _scored(name: str, runs: Sequence[tuple[Scored, ...]], task: TSTVG) -> _Model:
    return _Model(name, [_Run(run, [a.score for a in assess_all(run, task.rules)]) for run in runs])


def _examples(models: Sequence[_Model]) -> list[Example]:
    """All examples that any model answered, each once, in the order first met."""
    found = {s.example.example_id: s.example for model in models for run in model.runs for s in run.samples}
    return list(found.values())


def _mean(runs: Sequence[Figures], name: str) -> float | None:
    values = [run[name] for run in runs if name in run]
    return fmean(values) if values else None


def _levels(models: Sequence[_Model], title: str, prefix: str, first: Sequence[str], note: str = "") -> PaperTable:
    names = (*first, *(f"{prefix}{name}" for name in LEVELS))
    rows = [(model.name, *(model.mean(name) for name in names)) for model in models]
    return PaperTable(title, ("model", *names), tuple(rows), note)


def _cells(models: Sequence[_Model], key: Callable[[Example], str], wanted: Sequence[tuple[str, str]]) -> Rows:
    """A row a model, of (group, figure)."""
    rows: list[tuple[TableCell, ...]] = []
    for model in models:
        runs = model.by(key)
        rows.append((model.name, *(_mean([run.get(group, {}) for run in runs], name) for group, name in wanted)))
    return tuple(rows)


def _kind(example: Example) -> str:
    return str(example.metadata["kind"])


def _count(example: Example) -> str:
    return count_group(len(true_objects(example)))


def _by_kind(models: Sequence[_Model]) -> PaperTable:
    short = {"T-Acc": "T-{}Acc", "T-m_tIoU": "T-m_{}tIoU", "T-R1@0.5": "T-{}R1@0.5", "T-m_vIoU": "T-m_{}vIoU"}
    short["T-AP@0.5"] = "T-{}AP@0.5"
    wanted = [(kind, name) for kind in ("explicit", "implicit") for name in short]
    columns = ("model", *(short[name].format(kind[0].upper()) for kind, name in wanted))
    return PaperTable("Table 4: explicit and implicit tasks", columns, _cells(models, _kind, wanted))


def _by_count(models: Sequence[_Model]) -> PaperTable:
    names = ("T-Acc", "T-m_tIoU", "T-m_vIoU")
    wanted = [(count, name) for count in ("1", "2", "3+") for name in names]
    rows = _cells(models, _count, wanted)
    average = [tuple(model.mean(name) for name in names) for model in models]
    columns = ("model", *(f"{count} obj. {name}" for count, name in wanted), *(f"all {name}" for name in names))
    joined = tuple((*row, *end) for row, end in zip(rows, average, strict=True))
    return PaperTable("Table 5: by number of objects", columns, joined)


def _by_duration(models: Sequence[_Model]) -> PaperChart:
    series = []
    for model in models:
        runs = model.by(lambda example: str(example.metadata["duration_bin"]))
        bins = sorted({name for run in runs for name in run}, key=group_order)
        for name in ("T-Acc", "T-m_tIoU", "T-m_vIoU"):
            means = [(group, _mean([run.get(group, {}) for run in runs], name)) for group in bins]
            points = tuple(Point(group, mean) for group, mean in means if mean is not None)
            series.append(Series(f"{model.name}: {name}", points))
    return PaperChart("Figure 5: by duration of the video", "duration", "score", tuple(series), "bar")


def _sweeps(models: Sequence[tuple[ModelSamples, Sequence[tuple[Scored, ...]]]]) -> list[PaperChart]:
    """Accuracy and overlap against the threshold of recognition, for models whose names are compared by embeddings."""
    series = []
    for model, runs in models:
        if isinstance(model.task, TSTVG) and model.task.rules.recogniser.matcher == "embeddings" and runs:
            swept = [(threshold, _at(threshold, runs, model.task.rules)) for threshold in SWEEP]
            for name in ("O-Acc", "T-Acc", "T-m_vIoU"):
                points = tuple(Point(threshold, _mean(found, name) or 0.0) for threshold, found in swept)
                series.append(Series(f"{model.model}: {name}", points))
    note = "The paper does not state its threshold; the tables use the option `threshold`."
    title = "Recognition by the threshold of similarity"
    return [PaperChart(title, "threshold", "score", tuple(series), note=note)] if series else []


def _at(threshold: float, runs: Sequence[tuple[Scored, ...]], rules: Rules) -> list[Figures]:
    """Figures of each run at another threshold; the names are embedded by now."""
    other = replace(rules, recogniser=replace(rules.recogniser, threshold=threshold))
    return [figures([assess(sample, other).score for sample in run]) for run in runs]


def _of_the_set(examples: Sequence[Example]) -> list[PaperTable | PaperChart]:
    """What the examples hold: the paper's figures 3, 4 and 6."""
    counts = Counter((_kind(example), _count(example)) for example in examples)
    objects = Counter(str(item["kind"]) for example in examples for item in true_objects(example))
    rows: list[tuple[TableCell, ...]] = [
        (kind, *(counts[kind, count] for count in ("1", "2", "3+")), sum(counts[kind, c] for c in ("1", "2", "3+")))
        for kind in ("explicit", "implicit")
    ]
    note = f"{objects['explicit']} objects are named by their instruction, {objects['implicit']} are not."
    columns = ("tasks", "1 object", "2 objects", "3+ objects", "all")
    videos = {example.video_id: str(example.metadata["duration_bin"]) for example in examples}
    durations = Counter(videos.values())
    bars = tuple(Point(name, float(durations[name])) for name in sorted(durations, key=group_order))
    return [
        PaperTable("Figure 3: instructions", columns, tuple(rows), note),
        PaperChart("Figure 4: durations of the videos", "duration", "videos", (Series("videos", bars),), "bar"),
        _categories(examples),
    ]


def _categories(examples: Sequence[Example]) -> PaperChart:
    found = {
        kind: Counter(str(item["category"]) for e in examples if _kind(e) == kind for item in true_objects(e))
        for kind in ("explicit", "implicit")
    }
    both = sum(found.values(), Counter())
    usual = sorted(both, key=lambda name: (-both[name], name))[:CATEGORIES]
    series = tuple(
        Series(f"{kind} tasks", tuple(Point(name, float(counter[name])) for name in usual))
        for kind, counter in found.items()
    )
    note = f"The {len(usual)} most frequent of {len(both)} categories."
    return PaperChart("Figure 6: categories", "category", "objects", series, "bar", note)
