"""Counterparts of the paper's figures 3 to 5 and 13 to 16, from any number of models' samples.

Every value is the unweighted mean of macro-F1 over problem sets with the released 95% interval (mean +- 1.96 standard
errors over sets); a model's runs are averaged within each set first. The baseline answers every video of a set with the
label that is true most often.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from barista_bench.benchmarks.vista.problem_sets import ENVIRONMENTS, THEMES
from barista_bench.benchmarks.vista.scoring import MatchedSet, by_set, match
from barista_bench.core.paper_tables import ModelSamples, PaperChart, PaperTable, Point, Ranged, Series, TableCell
from barista_bench.core.task import Fields
from barista_bench.metrics.sequence_matching.scoring import mean_with_interval

BASELINE = "majority baseline"
_Y = "macro-F1 (0 to 1)"
_LENGTH = "actions in the sequence (level)"
_NOTE = (
    "Unweighted mean over problem sets; 95% interval over sets, as released: it may pass 0 and 1. Runs are averaged "
    "within each set."
)
_SUFFIX = re.compile(r" \([^()]*\)$")
"""What a report puts behind the name of a model that has several runs."""


@dataclass(frozen=True, slots=True)
class SetMean:
    """One problem set of one model: `f1` is the mean over its runs, `majority` that of the baseline."""

    set_id: str
    metadata: Fields
    f1: float
    majority: float

    @property
    def level(self) -> int:
        return int(str(self.metadata["level"]))

    @property
    def frames(self) -> int:
        """How many were asked for."""
        return int(str(self.metadata["frames"]))

    @property
    def place(self) -> tuple[int, int, int]:
        """In the order of the paper: environment, level, theme."""
        environments = list(ENVIRONMENTS.values())
        return (
            environments.index(str(self.metadata["environment"])),
            self.level,
            THEMES.index(str(self.metadata["type"])),
        )


Models = Mapping[str, Sequence[SetMean]]


def paper_tables(samples: Sequence[ModelSamples]) -> list[PaperTable | PaperChart]:
    """One table over all, and charts as far as the samples have what they show."""
    models = _by_model(samples)
    if not models:
        return []
    charts = [
        _bars(models, "Figure 3a: single actions (level 1)", lambda own: own.level == 1),
        _lines(models, "Figure 3b: longer sequences, all environments", lambda own: True),
        _lines(models, "Figure 4: general problem sets", _of_type("general")),
        _lines(models, "Figure 4: permutation problem sets", _of_type("permutation")),
        *(
            _lines(models, f"Figure {number}: longer sequences, {_words(name)}", _in_environment(name))
            for number, name in (("13a", "virtual_home"), ("14a", "real_world"), ("15a", "minecraft"))
        ),
        *_frame_charts(samples),
    ]
    return [_table(models), *(chart for chart in charts if chart is not None)]


def _in_environment(name: str) -> Callable[[SetMean], bool]:
    return lambda own: own.metadata["environment"] == name


def _of_type(name: str) -> Callable[[SetMean], bool]:
    return lambda own: own.metadata["type"] == name


def _by_model(samples: Iterable[ModelSamples]) -> dict[str, list[SetMean]]:
    """Each model's problem sets, each once though several tasks ask for it, in the order of the paper.

    A model that was shown several numbers of frames is as many models.
    """
    found: dict[tuple[str, int], dict[str, SetMean]] = {}
    for item in samples:
        for mean in set_means(item):
            found.setdefault((item.model, mean.frames), {}).setdefault(mean.set_id, mean)
    times = Counter(model for model, _ in found)
    return {
        f"{model}, {frames} frames" if times[model] > 1 else model: sorted(
            own.values(), key=lambda each: (each.place, each.set_id)
        )
        for (model, frames), own in found.items()
    }


def set_means(item: ModelSamples) -> list[SetMean]:
    """The problem sets of one model that can be scored, each as the mean over runs."""
    runs: dict[str, list[MatchedSet]] = {}
    how = str(item.task.option("standardise"))
    for run in item.runs:
        for set_id, own in by_set(run).items():
            runs.setdefault(set_id, []).append(match(own, how))
    means = []
    for set_id, matched in runs.items():
        scored = [(each.f1, each.majority) for each in matched if each.f1 is not None and each.majority is not None]
        if scored:
            f1, majority = (math.fsum(values) / len(scored) for values in zip(*scored, strict=True))
            means.append(SetMean(set_id, matched[0].metadata, f1, majority))
    return means


def _table(models: Models) -> PaperTable:
    """Figures 3, 4 and 13 to 15 in one table: a row for each environment, level and type."""
    union = _union(models)
    rows = []
    for _, group in groupby(union, key=lambda own: own.place):
        members = list(group)
        ids = {own.set_id for own in members}
        first = members[0].metadata
        cells = [_cell([own.f1 for own in sets if own.set_id in ids]) for sets in models.values()]
        rows.append(
            (
                _words(str(first["environment"])),
                members[0].level,
                _words(str(first["type"])),
                len(members),
                *cells,
                _cell([own.majority for own in members]),
            )
        )
    overall = [_cell([own.f1 for own in sets]) for sets in models.values()]
    rows.append(("all", None, None, len(union), *overall, _cell([own.majority for own in union])))
    return PaperTable(
        title="Macro-F1 by environment, level and type (figures 3, 4 and 13 to 15)",
        columns=("environment", "level", "type", "problem sets", *models, BASELINE),
        rows=tuple(rows),
        note=_NOTE,
    )


def _union(models: Models) -> list[SetMean]:
    """The sets that any model has, in the order of the paper."""
    found = {own.set_id: own for sets in models.values() for own in sets}
    return sorted(found.values(), key=lambda own: (own.place, own.set_id))


def _cell(values: Sequence[float]) -> TableCell:
    interval = mean_with_interval(values)
    mean, low, high = interval["mean"], interval["ci_low"], interval["ci_high"]
    return mean if mean is None or low is None or high is None else Ranged(mean, low, high)


def _point(x: float | str, values: Sequence[float]) -> Point:
    interval = mean_with_interval(values)
    mean = interval["mean"]
    assert mean is not None, "points are made of values"
    return Point(x, mean, interval["ci_low"], interval["ci_high"])


def _lines(models: Models, title: str, takes: Callable[[SetMean], bool]) -> PaperChart | None:
    """Against the level; None where there are fewer than two levels."""
    union = [own for own in _union(models) if takes(own)]
    if len({own.level for own in union}) < 2:
        return None
    series = [
        Series(model, _by_level([(own.level, own.f1) for own in sets if takes(own)])) for model, sets in models.items()
    ]
    series.append(Series(BASELINE, _by_level([(own.level, own.majority) for own in union])))
    return PaperChart(title, _LENGTH, _Y, tuple(each for each in series if each.points), "line", _NOTE)


def _by_level(values: Sequence[tuple[int, float]]) -> tuple[Point, ...]:
    levels = sorted({level for level, _ in values})
    return tuple(_point(level, [value for at, value in values if at == level]) for level in levels)


def _bars(models: Models, title: str, takes: Callable[[SetMean], bool]) -> PaperChart | None:
    """By environment and theme."""
    union = [own for own in _union(models) if takes(own)]
    if not union:
        return None
    series = [Series(model, _by_group([(own, own.f1) for own in sets if takes(own)])) for model, sets in models.items()]
    series.append(Series(BASELINE, _by_group([(own, own.majority) for own in union])))
    note = f"{_NOTE} Figures 13b, 14b and 15b split the same by the release's own groups."
    return PaperChart(title, "environment and type", _Y, tuple(each for each in series if each.points), "bar", note)


def _by_group(values: Sequence[tuple[SetMean, float]]) -> tuple[Point, ...]:
    """`values` come in the order of the paper, so that equal names stand side by side."""
    groups = groupby(values, key=lambda pair: f"{_words(str(pair[0].metadata['environment']))}: {_type(pair[0])}")
    return tuple(_point(name, [value for _, value in group]) for name, group in groups)


def _type(own: SetMean) -> str:
    return _words(str(own.metadata["type"]))


def _frame_charts(samples: Sequence[ModelSamples]) -> list[PaperChart]:
    """Figures 5 and 16, where a model was shown different numbers of frames: general sets, and level 1 by theme."""
    found: dict[tuple[str, int], dict[str, SetMean]] = {}
    for item in samples:
        model = _SUFFIX.sub("", item.model)
        for mean in set_means(item):
            found.setdefault((model, mean.frames), {}).setdefault(mean.set_id, mean)
    counts = {model: sorted(frames for name, frames in found if name == model) for model, _ in found}
    several = {model: frames for model, frames in counts.items() if len(frames) > 1}
    if not several:
        return []

    def chart(title: str, takes: Callable[[SetMean], bool], by: Callable[[SetMean], str]) -> PaperChart | None:
        series = []
        for model, frames in several.items():
            kinds = dict.fromkeys(by(own) for count in frames for own in found[model, count].values() if takes(own))
            for kind in kinds:
                values = {
                    count: [own.f1 for own in found[model, count].values() if takes(own) and by(own) == kind]
                    for count in frames
                }
                points = tuple(_point(count, own) for count, own in values.items() if own)
                series.append(Series(f"{model}: {kind}" if kind else model, points))
        return PaperChart(title, "frames", _Y, tuple(series), "line", _NOTE) if series else None

    general = chart(
        "Figure 5: frames, general problem sets", lambda own: own.metadata["type"] == "general", lambda _: ""
    )
    first = chart("Figure 16: frames, single actions (level 1)", lambda own: own.level == 1, _type)
    return [each for each in (general, first) if each is not None]


def _words(name: str) -> str:
    return name.replace("_", " ")
