"""Counterparts of the paper's figures 3 to 5 and 13 to 17, from any number of models' samples.

Every value is the unweighted mean of macro-F1 over problem sets. Its 95% interval is the released one: mean +- 1.96
standard errors over sets. A model's runs are first averaged within each set. The baseline answers every video of a set
with the set's most frequent right label.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barista_bench.benchmarks.vista.release_files import ENVIRONMENTS, THEMES
from barista_bench.benchmarks.vista.scoring import MatchedSet, MatchedSets
from barista_bench.core.model_samples import ModelSamples
from barista_bench.metrics.sequence_matching.scoring import mean_with_interval
from barista_bench.tables import RangedScore, Table, Value, chart, words

if TYPE_CHECKING:
    import pandas as pd

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
"""The text that a report adds to the name of a model with several runs."""


def paper_tables(samples: Sequence[ModelSamples]) -> list[Table]:
    """Return one table over all problem sets, and the charts for which there are samples."""
    sets = set_means(samples)
    if sets.empty:
        return []
    lines = [
        ("3b: longer sequences, all environments", sets),
        ("4: general problem sets", sets[sets["type"] == "general"]),
        ("4: permutation problem sets", sets[sets["type"] == "permutation"]),
    ]
    for number, name in zip(("13a", "14a", "15a"), map(words, ENVIRONMENTS.values()), strict=True):
        lines.append((f"{number}: longer sequences, {name}", sets[sets["environment"] == name]))
    single = sets[sets["level"] == 1]
    return [
        _table(sets),
        *([_chart("3a: single actions (level 1)", single, "environment and type")] if len(single) else []),
        *(_chart(title, part, "level") for title, part in lines if part["level"].nunique() > 1),
        *_frame_charts(sets),
        *_table_chart(sets),
    ]


def set_means(samples: Sequence[ModelSamples]) -> pd.DataFrame:
    """Return a row per problem set and model, in the order of the paper: by environment, level, theme.

    `f1` and `majority` (the baseline's score) are means over repetitions. A model that saw several numbers of frames
    counts as several models, with different values of `name`, in the order of `at`. Each model has a set once, even if
    several tasks ask for the set.
    """
    import pandas as pd

    rows: dict[tuple[str, int, str], dict[str, object]] = {}
    numbers: dict[tuple[str, int], int] = {}
    for item in samples:
        repetitions: defaultdict[str, list[MatchedSet]] = defaultdict(list)
        for answers in item.repetitions:
            for matched_set in MatchedSets.of(answers, str(item.task.chosen["standardise"])).sets:
                repetitions[matched_set.set_id].append(matched_set)
        for set_id, sets_of_repetitions in repetitions.items():
            scores = [(s.f1, s.majority) for s in sets_of_repetitions if s.f1 is not None and s.majority is not None]
            if scores:
                metadata = sets_of_repetitions[0].metadata
                frames = min(metadata.frames, int(item.task.chosen["shown_frames"] or 1))
                f1, majority = (math.fsum(column) / len(scores) for column in zip(*scores, strict=True))
                environment, theme = words(metadata.environment), words(metadata.type)
                row = {
                    "model": item.model,
                    "frames": frames,
                    "at": numbers.setdefault((item.model, frames), len(numbers)),
                    "set_id": set_id,
                    "environment": environment,
                    "environment_at": list(ENVIRONMENTS.values()).index(metadata.environment),
                    "level": metadata.level,
                    "type": metadata.type,
                    "type_at": THEMES.index(metadata.type),
                    "theme": theme,
                    "environment and type": f"{environment}: {theme}",
                    "release_type": metadata.release_type,
                    "f1": f1,
                    "majority": majority,
                }
                rows.setdefault((item.model, frames, set_id), row)
    sets = pd.DataFrame(rows.values())
    if rows:
        sets = sets.sort_values(["environment_at", "level", "type_at", "set_id", "at"], ignore_index=True)
        has_several = sets.groupby("model")["frames"].transform("nunique") > 1
        sets["name"] = sets["model"].where(~has_several, sets["model"] + ", " + sets["frames"].astype(str) + " frames")
    return sets


def _names(sets: pd.DataFrame) -> list[str]:
    return list(sets.sort_values("at")["name"].unique())


def _distinct_sets(sets: pd.DataFrame) -> pd.DataFrame:
    """Return each set once, whatever the number of models."""
    return sets.drop_duplicates("set_id", keep="last")


def _table(sets: pd.DataFrame) -> Table:
    """Return figures 3, 4 and 13 to 15 as one table with a row for each environment, level and type."""
    names = _names(sets)

    def cells(group: pd.DataFrame) -> list[Value]:
        """Return the number of sets, each model's mean over the sets that it answered, and the baseline's mean."""
        distinct_sets = _distinct_sets(group)
        models = (_cell(group[group["name"] == name]["f1"]) for name in names)
        return [len(distinct_sets), *models, _cell(distinct_sets["majority"])]

    groups = sets.groupby(["environment", "level", "theme"], sort=False)
    rows = [(environment, int(level), theme, *cells(group)) for (environment, level, theme), group in groups]
    rows.append(("all", None, None, *cells(sets)))
    title = "Macro-F1 by environment, level and type (figures 3, 4 and 13 to 15)"
    return Table.of(title, ("environment", "level", "type", "problem sets", *names, BASELINE), rows, _NOTE)


def _cell(values: pd.Series[float]) -> Value:
    interval = mean_with_interval(values.tolist())
    mean, low, high = interval["mean"], interval["ci_low"], interval["ci_high"]
    return mean if mean is None or low is None or high is None else RangedScore(mean, low, high)


def _chart(title: str, sets: pd.DataFrame, x: str) -> Table:
    """Return a line chart by level, or a bar chart by environment and theme."""
    series = {name: _series(sets[sets["name"] == name], x) for name in _names(sets)}
    series[BASELINE] = _series(_distinct_sets(sets), x, "majority")
    if x == "level":
        return chart(f"Figure {title}", _LENGTH, _Y, series, "line", _NOTE)
    return chart(f"Figure {title}", x, _Y, series, "bar", _BAR_NOTE)


def _series(sets: pd.DataFrame, x: str, y: str = "f1") -> dict[float | str, Value]:
    return {
        index if isinstance(index, str) else int(index): _cell(part[y]) for index, part in sets.groupby(x, sort=False)
    }


def _frame_charts(sets: pd.DataFrame) -> list[Table]:
    """Return figures 5 and 16 if a model saw different numbers of frames.

    Figure 5 shows general sets, and figure 16 shows level 1 by theme.
    """
    by_frames = sets.assign(model=sets["model"].str.replace(_SUFFIX, "", regex=True)).sort_values("at", kind="stable")
    by_frames = by_frames.drop_duplicates(["model", "frames", "set_id"])
    by_frames = by_frames[by_frames.groupby("model")["frames"].transform("nunique") > 1].sort_index()
    by_frames["line"] = by_frames["model"] + ": " + by_frames["theme"]
    by_frames["at"] = by_frames.groupby(["model", "frames"])["at"].transform("min")
    by_frames = by_frames.sort_values(["frames", "at"], kind="stable")
    charts = (
        ("Figure 5: frames, general problem sets", by_frames[by_frames["type"] == "general"], "model"),
        ("Figure 16: frames, single actions (level 1)", by_frames[by_frames["level"] == 1], "line"),
    )
    return [
        chart(
            title,
            "frames",
            _Y,
            {name: _series(line, "frames") for name, line in part.groupby(group_column, sort=False)},
            "line",
            _NOTE,
        )
        for title, part, group_column in charts
        if len(part)
    ]


def _table_chart(sets: pd.DataFrame) -> list[Table]:
    """Return figure 17: an object is picked up from a cluttered table, simulated (habitat) or filmed (real)."""
    cluttered = sets[sets["release_type"] == _CLUTTERED_TABLE]
    cluttered = cluttered.assign(place=[words(set_id.rpartition("/")[2]) for set_id in cluttered["set_id"]])
    series = {name: _series(cluttered[cluttered["name"] == name], "place") for name in _names(cluttered)}
    note = "Macro-F1 within each problem set; runs are averaged."
    title = "Figure 17: objects on a cluttered table"
    return [chart(title, "problem set", _Y, series, "bar", note)] if series else []
