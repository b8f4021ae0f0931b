"""The paper's tables and figures out of scored runs: accuracy by question type, segmentation, number of frames.

A model's runs with other settings (frames, resolution, mode of segmentation) are rows of their own. Intervals those of
every figure (`resampling`), all question types drawn together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from barista_bench.benchmarks.handyvqa.questions import options_of
from barista_bench.benchmarks.handyvqa.records import MCQ_CATEGORIES, RVOS_CATEGORIES
from barista_bench.core.bootstrap import DRAWS, ClusteredRun, drawn_interval, figures_of, interval_weights
from barista_bench.core.paper_tables import ModelSamples, PaperChart, PaperTable, Point, Ranged, Series, TableCell
from barista_bench.core.task import Scored

SINGLE = tuple(name for name in MCQ_CATEGORIES if name != "objects")
TITLES = {name: name.capitalize() for name in SINGLE} | {"objects": "Objects"}

Row = tuple[str, str]
"""The model, and its settings in words."""
Rows = Mapping[Row, Mapping[str, ModelSamples]]
"""By task."""


def paper_tables(samples: Sequence[ModelSamples]) -> list[PaperTable | PaperChart]:
    """The tables and figures that these samples can fill."""
    choice = _rows(entry for entry in samples if entry.task.name in MCQ_CATEGORIES)
    masks = _rows(entry for entry in samples if entry.task.name in RVOS_CATEGORIES)
    found: list[PaperTable | PaperChart] = []
    if choice:
        found += [
            _choice_table(
                choice,
                "Table 4: accuracy by question type, and average precision of Objects, as released",
                ("accuracy", "average_precision"),
                _RELEASED,
            ),
            _choice_table(
                choice,
                "Table 4, unanswered questions counted as wrong",
                ("accuracy_counted", "average_precision_counted"),
                "As released, but a question without an answer is wrong, and names no object.",
            ),
            _choice_table(
                choice,
                "Table 4, by the strict reading",
                ("accuracy_strict", "f1_strict"),
                "Only the answer format that was asked for counts, all else is wrong; of the objects, F1 of the set.",
                is_strict=True,
            ),
        ]
        found += _option_tables(choice)
        found += _frame_charts(choice)
    if masks:
        found.append(_mask_table(masks))
    return found


_RELEASED = (
    "Accuracy, and average precision over all options of Objects, of the answered questions alone; beside each the "
    "share that was answered. Avg. is the mean of the five accuracies."
)


def _rows(samples: Iterable[ModelSamples]) -> Rows:
    """Samples by model and settings, then by task; of several runs alike the first."""
    rows: dict[Row, dict[str, ModelSamples]] = defaultdict(dict)
    for entry in samples:
        rows[entry.model, _settings(entry)].setdefault(entry.task.name, entry)
    return rows


def _settings(entry: ModelSamples) -> str:
    """What was not left at its default, and how many frames were shown."""
    words = [f"{frames} frames"] if (frames := _frames(entry)) else []
    chosen, options = entry.task.chosen, entry.task.options
    changed = {name: value for name, value in chosen.items() if value != options[name].default}
    words += [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in changed.items()]
    return ", ".join(words)


def _frames(entry: ModelSamples) -> int:
    """Frames of an example, at the most; 0 where it is not known what was shown."""
    counts = [sample.example.metadata.get("n_frames") for run in entry.runs for sample in run]
    return max((count for count in counts if isinstance(count, int)), default=0)


def _choice_table(
    rows: Rows, title: str, figures: tuple[str, str], note: str, *, is_strict: bool = False
) -> PaperTable:
    single, multiple = figures
    answered = "coverage_strict" if is_strict else "coverage"
    columns = ["Model", "Settings"]
    for name in SINGLE:
        columns += [TITLES[name], f"{TITLES[name]} answered"]
    measure = "F1" if is_strict else "AP"
    columns += ["Avg.", f"Objects ({measure})", "Objects answered"]
    made = []
    for (model, settings), tasks in rows.items():
        cells: list[TableCell] = [model, settings or None]
        for name in SINGLE:
            entry = [tasks[name]] if name in tasks else []
            cells += [ranged(entry, single), point(entry, answered)]
        cells.append(ranged([tasks[name] for name in SINGLE], single) if set(SINGLE) <= set(tasks) else None)
        objects = [tasks["objects"]] if "objects" in tasks else []
        cells += [ranged(objects, multiple), point(objects, answered)]
        made.append(tuple(cells))
    return PaperTable(title, tuple(columns), tuple(made), note)


def _option_tables(rows: Rows) -> list[PaperTable]:
    """Scores by number of options, where questions differ in it."""
    found = []
    for name in MCQ_CATEGORIES:
        figure = "average_precision_counted" if name == "objects" else "accuracy_counted"
        chance = "prevalence" if name == "objects" else "chance_level"
        made: list[tuple[TableCell, ...]] = []
        for (model, settings), tasks in rows.items():
            groups = by_option_count(tasks[name]) if name in tasks else {}
            for count, group in groups.items():
                cells = (ranged([group], figure), point([group], chance), point([group], "coverage"))
                made.append((model, settings or None, count, len(group.runs[0]), *cells))
        if len({cells[2] for cells in made}) > 1:
            measure = "AP" if name == "objects" else "Accuracy"
            columns = ("Model", "Settings", "Options", "Questions", measure, "Chance", "Answered")
            note = "Unanswered questions count as wrong; questions are those of the first run."
            found.append(PaperTable(f"{TITLES[name]} by number of options", columns, tuple(made), note))
    return found


def by_option_count(entry: ModelSamples) -> dict[int, ModelSamples]:
    """The samples of one task by the number of options that their questions have, fewest first."""
    counts = sorted({len(options_of(sample.example)) for run in entry.runs for sample in run})
    return {
        count: replace(entry, runs=tuple(_with_options(run, count) for run in entry.runs))
        for count in counts
        if all(_with_options(run, count) for run in entry.runs)
    }


def _with_options(run: Sequence[Scored], count: int) -> tuple[Scored, ...]:
    return tuple(sample for sample in run if len(options_of(sample.example)) == count)


def _frame_charts(rows: Rows) -> list[PaperChart]:
    """Figures 3 and 4: scores against the frames shown, a line for each model; where frames differ."""
    found = []
    charts = (
        ("Figure 3: average accuracy except Objects", "accuracy", SINGLE),
        ("Figure 4: average precision for Objects", "average_precision", ("objects",)),
    )
    for title, figure, names in charts:
        lines: dict[str, list[Point]] = defaultdict(list)
        for (model, settings), tasks in rows.items():
            present = [tasks[name] for name in names if name in tasks]
            frames = {_frames(entry) for entry in present}
            if len(present) < len(names) or len(frames) != 1 or not max(frames):
                continue
            others = ", ".join(word for word in settings.split(", ") if not word.endswith(" frames"))
            value = ranged(present, figure)
            line = f"{model} ({others})" if others else model
            if isinstance(value, Ranged):
                lines[line].append(Point(max(frames), *value))
            elif isinstance(value, float):
                lines[line].append(Point(max(frames), value))
        if len({point.x for points in lines.values() for point in points}) > 1:
            series = tuple(Series(name, tuple(sorted(points))) for name, points in lines.items())
            found.append(PaperChart(title, "frames shown", figure.replace("_", " "), series))
    return found


def _mask_table(rows: Rows) -> PaperTable:
    names = {"rvos_objects": "Objects", "rvos_parts": "Parts"}
    figures = {"J": "J", "F": "F", "J_and_F": "J&F"}
    words = (*figures.values(), "answered")
    columns = ["Model", "Settings", *(f"{title} {word}" for title in names.values() for word in words)]
    made = []
    for (model, settings), tasks in rows.items():
        cells: list[TableCell] = [model, settings or None]
        for name in names:
            entry = [tasks[name]] if name in tasks else []
            cells += [*(ranged(entry, figure) for figure in figures), point(entry, "coverage")]
        made.append(tuple(cells))
    note = "J and F: means over all annotated frames; an unreadable answer scores 0 on each of its frames."
    return PaperTable("Table 5: segmentation", tuple(columns), tuple(made), note)


def ranged(entries: Sequence[ModelSamples], figure: str) -> Ranged | float | None:
    """A figure, mean over the runs of a task, then over tasks, with its interval.

    A number alone where there is only one cluster; None where a task has no such figure.
    """
    if not entries or not all(entry.runs and all(entry.runs) for entry in entries):
        return None
    clusters = sorted({entry.task.cluster(s.example) for entry in entries for run in entry.runs for s in run})
    weights = interval_weights(clusters, DRAWS) if len(clusters) > 1 else np.ones((1, 1))
    found = [
        figures_of([ClusteredRun.of(entry.task, run) for run in entry.runs], clusters, weights).get(figure)
        for entry in entries
    ]
    present = [values for values in found if values is not None]
    if len(present) < len(found):
        return None
    values = np.mean(present, axis=0)
    if np.isnan(values[0]):
        return None
    ends = drawn_interval(values, len(clusters)) if len(clusters) > 1 else None
    return Ranged(float(values[0]), ends.low, ends.high) if ends else float(values[0])


def point(entries: Sequence[ModelSamples], figure: str) -> float | None:
    """As `ranged`, without an interval."""
    if not entries or not all(entry.runs and all(entry.runs) for entry in entries):
        return None
    found = [
        np.mean([entry.task.statistics(run).figures(np.ones((1, len(run))))[figure][0] for run in entry.runs])
        for entry in entries
    ]
    return float(np.mean(found))
