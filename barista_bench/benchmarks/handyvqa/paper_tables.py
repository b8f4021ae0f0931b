"""Make the paper's tables and figures from scored runs and from a set of questions.

Runs give accuracy by question type, segmentation scores, and scores by number of frames. Sets give the sizes of
questions and the motion of annotated regions. Runs of one model with different settings (frames, resolution, mode of
segmentation) are separate rows. Intervals are computed as for every score (`core.intervals`), with all question types
drawn together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise, product
from math import dist
from operator import itemgetter
from statistics import fmean

import numpy as np
from pycocotools import mask as coco_mask

from barista_bench.benchmarks.handyvqa.choice_tasks import OptionsInputs, RightOptions, options_of
from barista_bench.benchmarks.handyvqa.release import MCQ_CATEGORIES, RVOS_CATEGORIES
from barista_bench.benchmarks.handyvqa.segmentation import SegmentationTarget
from barista_bench.benchmarks.kinds.masks import frame_masks
from barista_bench.core.example import Example
from barista_bench.core.intervals import ResampledRepetition, metric_interval, metrics_of_units
from barista_bench.core.model_samples import ModelSamples
from barista_bench.core.options import OptionValue
from barista_bench.scene_graph import Rle, decode_mask
from barista_bench.tables import RangedScore, Table, Value, chart, words

SINGLE = tuple(name for name in MCQ_CATEGORIES if name != "objects")
RangedMetrics = dict[str, RangedScore | float]
"""Scores by name. A score is a plain number if there is only one resampling unit."""


@dataclass(frozen=True)
class ScoredTask:
    """One task of one model. The samples are compared with the reference once."""

    samples: ModelSamples
    repetitions: tuple[ResampledRepetition, ...]

    @classmethod
    def of(cls, samples: ModelSamples) -> ScoredTask:
        of = (ResampledRepetition.of(samples.task, answers, samples.model) for answers in samples.repetitions)
        return cls(samples, tuple(of))

    @cached_property
    def metrics(self) -> RangedMetrics:
        return mean_metrics([self])

    @cached_property
    def settings(self) -> dict[str, OptionValue]:
        """Return the settings that differ from the default, by name, and the largest number of `frames`, if known."""
        counts = [sample.example.metadata.get("n_frames") for answers in self.samples.repetitions for sample in answers]
        most = max((count for count in counts if isinstance(count, int)), default=None)
        task = self.samples.task
        changed = {name: value for name, value in task.chosen.items() if value != task.options[name].default}
        settings = {**({"frames": most} if most else {}), **changed}
        for name in ("frames", "max_side"):  # those of `run` apply to what the set and the task's option show
            limit, value = self.samples.settings.get(name), settings.get(name)
            if isinstance(limit, int):
                settings[name] = min(limit, value) if isinstance(value, int) else limit
        return settings

    def settings_text(self, without: str = "") -> str:
        """Return the settings in words, all or all but one."""
        texts = {
            name: f"{value} frames" if name == "frames" else f"{name}={str(value).lower() if value is True else value}"
            for name, value in self.settings.items()
        }
        return ", ".join(text for name, text in texts.items() if name != without)

    def by_option_count(self) -> dict[int, ScoredTask]:
        """Return the samples by the number of options of the question, fewest first. Only numbers that occur in every
        repetition are included.
        """
        positions: dict[int, list[list[int]]] = defaultdict(lambda: [[] for _ in self.repetitions])
        for repetition, answers in enumerate(self.samples.repetitions):
            for index, sample in enumerate(answers):
                positions[len(options_of(sample.example))][repetition].append(index)
        return {
            count: ScoredTask(
                self.samples, tuple(one.subset(indices) for one, indices in zip(self.repetitions, group, strict=True))
            )
            for count, group in sorted(positions.items())
            if all(group)
        }


def mean_metrics(tasks: Sequence[ScoredTask]) -> RangedMetrics:
    """Return the scores common to all tasks, with intervals: means over the repetitions of a task, then over tasks."""
    repetitions = [repetition for task in tasks for repetition in task.repetitions]
    if not repetitions or not all(repetition.units for repetition in repetitions):
        return {}
    units = sorted({unit for repetition in repetitions for unit in repetition.units})
    by_task = [metrics_of_units(task.repetitions, units) for task in tasks]
    means: RangedMetrics = {}
    for name in by_task[0]:
        if all(name in metrics for metrics in by_task):
            values = np.mean([metrics[name] for metrics in by_task], axis=0)
            ends = metric_interval(values)
            if not np.isnan(values[0]):
                means[name] = RangedScore(float(values[0]), ends.low, ends.high) if ends else float(values[0])
    return means


@dataclass
class _TableRow:
    """One model with certain settings."""

    model: str
    settings: str
    tasks: dict[str, ScoredTask] = field(default_factory=dict)

    def metric(self, task: str, metric: str) -> RangedScore | float | None:
        return self.tasks[task].metrics.get(metric) if task in self.tasks else None

    def point(self, task: str, metric: str) -> float | None:
        """Return a score without its interval."""
        value = self.metric(task, metric)
        return value.value if isinstance(value, RangedScore) else value

    @cached_property
    def averages(self) -> RangedMetrics:
        """Return means over the five categories with one right option, if all five were run."""
        present = [self.tasks[name] for name in SINGLE if name in self.tasks]
        return mean_metrics(present) if len(present) == len(SINGLE) else {}


def paper_tables(samples: Sequence[ModelSamples]) -> list[Table]:
    """Return the tables and figures for which there are samples."""
    tasks = list(map(ScoredTask.of, samples))
    choice = _rows(task for task in tasks if task.samples.task.name in MCQ_CATEGORIES)
    masks = _rows(task for task in tasks if task.samples.task.name in RVOS_CATEGORIES)
    tables: list[Table] = []
    if choice:
        tables += [_choice_table(choice, *wording) for wording in _CHOICE_TABLES]
        tables += [*_option_tables(choice), *_charts(choice)]
    if masks:
        tables.append(_mask_table(masks))
    return tables


_CHOICE_TABLES = (
    (
        "Table 4: accuracy by question type, and average precision of Objects, as released",
        ("accuracy", "average_precision", "coverage", "AP"),
        "Accuracy, and average precision over all options of Objects, of the answered questions alone; beside each the "
        "share that was answered. Avg. is the mean of the five accuracies.",
    ),
    (
        "Table 4, unanswered questions counted as wrong",
        ("accuracy_counted", "average_precision_counted", "coverage", "AP"),
        "As released, but a question without an answer is wrong, and names no object.",
    ),
    (
        "Table 4, by the strict reading",
        ("accuracy_strict", "f1_strict", "coverage_strict", "F1"),
        "Only the answer format that was asked for counts, all else is wrong; of the objects, F1 of the set.",
    ),
)
"""(title, score for one right option, score for Objects, score for the answered fraction, measure of Objects, note)"""


def _rows(tasks: Iterable[ScoredTask]) -> list[_TableRow]:
    """Return a row for each model and settings. Of several equal runs, the first counts."""
    rows: dict[tuple[str, str], _TableRow] = {}
    for task in tasks:
        key = task.samples.model, task.settings_text()
        rows.setdefault(key, _TableRow(*key)).tasks.setdefault(task.samples.task.name, task)
    return list(rows.values())


def _table(title: str, rows: Iterable[_TableRow], columns: dict[str, Callable[[_TableRow], Value]], note: str) -> Table:
    cells = ((row.model, row.settings or None, *(cell(row) for cell in columns.values())) for row in rows)
    return Table.of(title, ("Model", "Settings", *columns), cells, note)


def _choice_table(rows: list[_TableRow], title: str, metrics: tuple[str, str, str, str], note: str) -> Table:
    single, multiple, coverage, measure = metrics
    columns: dict[str, Callable[[_TableRow], Value]] = {}
    for name in SINGLE:
        columns[name.capitalize()] = partial(_TableRow.metric, task=name, metric=single)
        columns[f"{name.capitalize()} answered"] = partial(_TableRow.point, task=name, metric=coverage)
    columns["Avg."] = lambda row: row.averages.get(single)
    columns[f"Objects ({measure})"] = partial(_TableRow.metric, task="objects", metric=multiple)
    columns["Objects answered"] = partial(_TableRow.point, task="objects", metric=coverage)
    return _table(title, rows, columns, note)


def _option_tables(rows: list[_TableRow]) -> list[Table]:
    tables = []
    for name in MCQ_CATEGORIES:
        metric, chance, measure = "accuracy_counted", "chance_level", "Accuracy"
        if name == "objects":
            metric, chance, measure = "average_precision_counted", "prevalence", "AP"
        cells: list[tuple[Value, ...]] = []
        for row in rows:
            groups = row.tasks[name].by_option_count() if name in row.tasks else {}
            for count, group in groups.items():
                part = _TableRow(row.model, row.settings, {name: group})
                scores = (part.metric(name, metric), part.point(name, chance), part.point(name, "coverage"))
                cells.append((row.model, row.settings or None, count, len(group.repetitions[0].units), *scores))
        if len({row[2] for row in cells}) > 1:
            columns = ("Model", "Settings", "Options", "Questions", measure, "Chance", "Answered")
            note = "Unanswered questions count as wrong; questions are those of the first run."
            tables.append(Table.of(f"{name.capitalize()} by number of options", columns, cells, note))
    return tables


_FIGURES = (
    ("Figure 3: average accuracy except Objects", "accuracy", SINGLE),
    ("Figure 4: average precision for Objects", "average_precision", ("objects",)),
)
_AXES = (("frames", "frames shown", ""), ("max_side", "longer side of a frame in pixels", ", by resolution"))
"""(setting, label of the axis, end of the title)"""


def _charts(rows: list[_TableRow]) -> list[Table]:
    """Return figures 3 and 4: scores by shown frames and by resolution, with a line for each model.

    They need runs with different frames, or with different values of `max_side`.
    """
    charts = []
    for (setting, axis, ending), (title, metric, names) in product(_AXES, _FIGURES):
        lines: dict[str, dict[int, Value]] = defaultdict(dict)
        for row in rows:
            value = row.averages.get(metric) if names == SINGLE else row.metric("objects", metric)
            tasks = [row.tasks[name] for name in names if name in row.tasks]
            x_values = {task.settings.get(setting) for task in tasks}
            x = x_values.pop() if len(x_values) == 1 else None
            if value is None or not isinstance(x, int):
                continue
            name, other_settings = tasks[0].samples.name or row.model, tasks[0].settings_text(without=setting)
            lines[f"{name} ({other_settings})" if other_settings else name].setdefault(x, value)
        if len({x for points in lines.values() for x in points}) > 1:
            charts.append(chart(f"{title}{ending}", axis, words(metric), lines))
    return charts


def _mask_table(rows: list[_TableRow]) -> Table:
    columns: dict[str, Callable[[_TableRow], Value]] = {}
    for name, title in (("rvos_objects", "Objects"), ("rvos_parts", "Parts")):
        for metric, word in (("J", "J"), ("F", "F"), ("J_and_F", "J&F")):
            columns[f"{title} {word}"] = partial(_TableRow.metric, task=name, metric=metric)
        columns[f"{title} answered"] = partial(_TableRow.point, task=name, metric="coverage")
    note = "J and F: means over all annotated frames; an unreadable answer scores 0 on each of its frames."
    return _table("Table 5: segmentation", rows, columns, note)


Examples = Mapping[str, Sequence[Example]]
"""The examples of each task."""


def set_tables(examples: Examples) -> list[Table]:
    """Return tables 2 and 3 and figure 2, if there are examples for them."""
    tables = (_questions_table(examples), _regions_table(examples), _scenario_chart(examples))
    return [table for table in tables if table.rows]


def _scenario_chart(examples: Examples) -> Table:
    scenarios = Counter(
        str(scenario)
        for name in MCQ_CATEGORIES
        for example in examples.get(name, ())
        if (scenario := example.metadata.get("scenario")) is not None
    )
    counts: dict[str, Value] = dict(scenarios.most_common())
    return chart("Figure 2: questions by scenario", "scenario", "questions", {"questions": counts}, "bar")


def _questions_table(examples: Examples) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name in MCQ_CATEGORIES:
        option_lists = [OptionsInputs.of(example).options for example in examples.get(name, ())]
        n_right = [len(RightOptions.of(example).correct) for example in examples.get(name, ())]
        n_words = [len(option.split()) for options in option_lists for option in options]
        if option_lists:
            rows.append((name, len(option_lists), fmean(map(len, option_lists)), fmean(n_right), fmean(n_words)))
    columns = ("category", "questions", "options", "right options", "words")
    return Table.of("Table 2: questions", columns, rows, "Means a question; words are those of an option.")


def _regions_table(examples: Examples) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name in RVOS_CATEGORIES:
        targets = [SegmentationTarget.of(example).masks for example in examples.get(name, ())]
        clips = [[mask for _, mask in sorted(frame_masks(masks), key=itemgetter(0))] for masks in targets]
        moves = [move for masks in clips for pair in pairwise(masks) if (move := region_move(*pair))]
        if clips:
            shift, iou = map(fmean, zip(*moves, strict=True)) if moves else (None, None)
            rows.append((name, sum(map(len, clips)), fmean(map(len, clips)), shift, iou))
    note = "From each annotated frame to the next; pairs with an empty mask are left out."
    columns = ("category", "frames", "frames a question", "centroid shift (px)", "IoU with the next")
    return Table.of("Table 3: annotated regions", columns, rows, note)


def region_move(first: Rle, second: Rle) -> tuple[float, float] | None:
    """Return how many pixels the centroid moves between two masks of one size, and the IoU; None if a mask is empty."""
    pixel_sets = [np.argwhere(decode_mask(mask)) for mask in (first, second)]
    if not all(map(len, pixel_sets)):
        return None
    pair = [{"size": list(mask.size), "counts": mask.counts.encode("ascii")} for mask in (first, second)]
    iou = float(coco_mask.iou([pair[0]], [pair[1]], [0])[0, 0])
    return dist(*(pixels.mean(axis=0).tolist() for pixels in pixel_sets)), iou
