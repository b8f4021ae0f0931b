"""Counterparts of the paper's figures 3 to 5 and 13 to 17, from any number of models' samples.

Every value is the unweighted mean of macro-F1 over problem sets with the released 95% interval (mean +- 1.96 standard
errors over sets); a model's runs are averaged within each set first. The baseline answers every video of a set with the
label that is true most often.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Literal

from barista_bench.benchmarks.vista.columns import MatchingMetadata
from barista_bench.benchmarks.vista.release_files import ENVIRONMENTS, THEMES
from barista_bench.benchmarks.vista.scoring import MatchedSet, MatchedSets
from barista_bench.core.model_samples import ModelSamples
from barista_bench.metrics.sequence_matching.scoring import mean_with_interval
from barista_bench.tables import Ranged, Table, Value, chart, words

BASELINE = "majority baseline"
_Y = "macro-F1 (0 to 1)"
_LENGTH = "actions in the sequence (level)"
_NOTE = (
    "Unweighted mean over problem sets; 95% interval over sets, as released: it may pass 0 and 1. Runs are averaged "
    "within each set."
)
_BAR_NOTE = f"{_NOTE} Figures 13b, 14b and 15b split the same by the release's own groups."
_CLUTTERED_TABLE = "object"
"""The release's type of the two problem sets that figure 17 compares."""
_SUFFIX = re.compile(r" \([^()]*\)$")
"""What a report puts behind the name of a model that has several runs."""


@dataclass(frozen=True, slots=True)
class SetMean:
    """One problem set of one model: `f1` is the mean over its runs, `majority` that of the baseline."""

    set_id: str
    metadata: MatchingMetadata
    f1: float
    majority: float

    @property
    def paper_order(self) -> tuple[int, int, int]:
        """By environment, level, theme."""
        about = self.metadata
        return list(ENVIRONMENTS.values()).index(about.environment), about.level, THEMES.index(about.type)

    @property
    def theme(self) -> str:
        return words(self.metadata.type)


Models = Mapping[str, Sequence[SetMean]]
"""By the model's name in tables; sets in the order of the paper."""


def paper_tables(samples: Sequence[ModelSamples]) -> list[Table]:
    """One table over all, and charts as far as the samples have what they show."""
    means = [(item.model, set_means(item)) for item in samples]
    models = _models(means)
    if not models:
        return []
    charts = [
        _chart(models, "Figure 3a: single actions (level 1)", lambda mean: mean.metadata.level == 1, kind="bar"),
        _chart(models, "Figure 3b: longer sequences, all environments", lambda _: True),
        _chart(models, "Figure 4: general problem sets", lambda mean: mean.metadata.type == "general"),
        _chart(models, "Figure 4: permutation problem sets", lambda mean: mean.metadata.type == "permutation"),
    ]
    for number, name in zip(("13a", "14a", "15a"), ENVIRONMENTS.values(), strict=True):
        title = f"Figure {number}: longer sequences, {words(name)}"
        charts.append(_chart(models, title, partial(_is_of, environment=name)))
    return [
        _table(models),
        *(each for each in charts if each is not None),
        *_frame_charts(means),
        *_table_chart(models),
    ]


def _is_of(mean: SetMean, environment: str) -> bool:
    return mean.metadata.environment == environment


def set_means(item: ModelSamples) -> list[SetMean]:
    """The problem sets of one model that can be scored, each as the mean over runs."""
    runs: dict[str, list[MatchedSet]] = defaultdict(list)
    for run in item.runs:
        for matched in MatchedSets.of(run, str(item.task.chosen["standardise"])).sets:
            runs[matched.set_id].append(matched)
    means = []
    for set_id, matched_sets in runs.items():
        scored = [
            (each.f1, each.majority) for each in matched_sets if each.f1 is not None and each.majority is not None
        ]
        if scored:
            f1, majority = (math.fsum(column) / len(scored) for column in zip(*scored, strict=True))
            means.append(SetMean(set_id, matched_sets[0].metadata, f1, majority))
    return means


def _by_frames(means: Iterable[tuple[str, Sequence[SetMean]]]) -> dict[tuple[str, int], list[SetMean]]:
    """(model, frames asked for) to its sets in the order of the paper, each once though several tasks ask for it."""
    models: dict[tuple[str, int], dict[str, SetMean]] = defaultdict(dict)
    for model, sets in means:
        for mean in sets:
            models[model, mean.metadata.frames].setdefault(mean.set_id, mean)
    return {key: _in_paper_order(sets.values()) for key, sets in models.items()}


def _models(means: Iterable[tuple[str, Sequence[SetMean]]]) -> dict[str, list[SetMean]]:
    """A model that was shown several numbers of frames is as many models."""
    by_frames = _by_frames(means)
    times = Counter(model for model, _ in by_frames)
    return {
        f"{model}, {frames} frames" if times[model] > 1 else model: sets for (model, frames), sets in by_frames.items()
    }


def _in_paper_order(sets: Iterable[SetMean]) -> list[SetMean]:
    return sorted(sets, key=lambda mean: (mean.paper_order, mean.set_id))


def _union(models: Models) -> list[SetMean]:
    """The sets that any model has, in the order of the paper."""
    return _in_paper_order({mean.set_id: mean for sets in models.values() for mean in sets}.values())


def _table(models: Models) -> Table:
    """Figures 3, 4 and 13 to 15 in one table: a row for each environment, level and type."""
    union = _union(models)
    rows: list[tuple[Value, ...]] = []
    for _, group in groupby(union, key=lambda mean: mean.paper_order):
        members = list(group)
        about = members[0].metadata
        rows.append((words(about.environment), about.level, members[0].theme, *_cells(models, members)))
    rows.append(("all", None, None, *_cells(models, union)))
    title = "Macro-F1 by environment, level and type (figures 3, 4 and 13 to 15)"
    return Table.of(title, ("environment", "level", "type", "problem sets", *models, BASELINE), rows, _NOTE)


def _cells(models: Models, members: Sequence[SetMean]) -> list[Value]:
    """How many sets there are, the mean of each model over those that it has, and that of the baseline."""
    ids = {mean.set_id for mean in members}
    values = [[mean.f1 for mean in sets if mean.set_id in ids] for sets in models.values()]
    return [len(members), *map(_cell, values), _cell([mean.majority for mean in members])]


def _cell(values: Sequence[float]) -> Value:
    interval = mean_with_interval(values)
    mean, low, high = interval["mean"], interval["ci_low"], interval["ci_high"]
    return mean if mean is None or low is None or high is None else Ranged(mean, low, high)


def _chart(
    models: Models, title: str, takes: Callable[[SetMean], bool], *, kind: Literal["line", "bar"] = "line"
) -> Table | None:
    """Lines against the level, or bars by environment and theme; None where there is nothing to compare."""

    def x(mean: SetMean) -> float | str:
        return mean.metadata.level if kind == "line" else f"{words(mean.metadata.environment)}: {mean.theme}"

    union = [mean for mean in _union(models) if takes(mean)]
    if len({x(mean) for mean in union}) < (2 if kind == "line" else 1):
        return None
    values = {name: [(x(mean), mean.f1) for mean in sets if takes(mean)] for name, sets in models.items()}
    values[BASELINE] = [(x(mean), mean.majority) for mean in union]
    series = {name: _series(pairs) for name, pairs in values.items() if pairs}
    axis, note = (_LENGTH, _NOTE) if kind == "line" else ("environment and type", _BAR_NOTE)
    return chart(title, axis, _Y, series, kind, note)


def _series(values: Iterable[tuple[float | str, float]]) -> dict[float | str, Value]:
    """(x, macro-F1) of single sets, those of one x together."""
    by_x: dict[float | str, list[float]] = defaultdict(list)
    for x, value in values:
        by_x[x].append(value)
    return {x: _cell(at_x) for x, at_x in by_x.items()}


def _frame_charts(means: Iterable[tuple[str, Sequence[SetMean]]]) -> list[Table]:
    """Figures 5 and 16, where a model was shown different numbers of frames: general sets, and level 1 by theme."""
    by_frames = _by_frames((_SUFFIX.sub("", model), sets) for model, sets in means)
    times = Counter(model for model, _ in by_frames)
    general: dict[str, list[tuple[float | str, float]]] = defaultdict(list)
    single: dict[str, list[tuple[float | str, float]]] = defaultdict(list)
    for (model, frames), sets in sorted(by_frames.items(), key=lambda item: item[0][1]):
        for mean in sets if times[model] > 1 else ():
            if mean.metadata.type == "general":
                general[model].append((frames, mean.f1))
            if mean.metadata.level == 1:
                single[f"{model}: {mean.theme}"].append((frames, mean.f1))
    charts = (
        ("Figure 5: frames, general problem sets", general),
        ("Figure 16: frames, single actions (level 1)", single),
    )
    return [
        chart(title, "frames", _Y, {name: _series(pairs) for name, pairs in lines.items()}, "line", _NOTE)
        for title, lines in charts
        if lines
    ]


def _table_chart(models: Models) -> Iterator[Table]:
    """Figure 17: the object that is picked up from a cluttered table, in a simulation (habitat) and filmed (real)."""
    asked = {
        name: [mean for mean in sets if mean.metadata.release_type == _CLUTTERED_TABLE] for name, sets in models.items()
    }
    series = {
        name: _series((words(mean.set_id.rpartition("/")[2]), mean.f1) for mean in sets)
        for name, sets in asked.items()
        if sets
    }
    if series:
        note = "Macro-F1 within each problem set; runs are averaged."
        yield chart("Figure 17: objects on a cluttered table", "problem set", _Y, series, "bar", note)
