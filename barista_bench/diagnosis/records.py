"""Read and write `diagnosis.json`, and describe diagnoses in tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
from pydantic import Field

from barista_bench.aids.levels import LevelName
from barista_bench.core.statistics import Floats, adjust_p_values
from barista_bench.diagnosis.conditions import Design, condition_name, true_aids
from barista_bench.diagnosis.estimates import (
    ALPHA,
    Estimate,
    Estimates,
    LevelEstimates,
    cause_p_value,
    estimate_of,
    is_unused,
)
from barista_bench.files.reading import Line, Strict, read_model
from barista_bench.files.writing import write_whole
from barista_bench.runs.score.letters import FEWEST
from barista_bench.tables import Table, Value, number_columns, text_columns, words

DIAGNOSIS_FILE: Final = "diagnosis.json"
NEARLY_ALL: Final = 0.9

PValues: TypeAlias = Mapping[str, float]
"""P-values after Holm's correction, by level and by the name of a change."""


class LevelDiagnosis(LevelEstimates):
    """The effects of the aids of one level, and what else is known of it.

    `p` tests whether the level is a cause, before Holm's correction. `is_unused` is true if few answers follow a false
    aid. `followed_plain` is the share of answers without aids that agree with the false aids by chance. `by_video`
    holds the values of `share` with all videos, without each video in turn, and with each video only.
    """

    is_unused: bool
    followed_plain: float | None
    p: float | None
    by_video: list[float | None] = Field(default_factory=list)
    examples: int = Field(description="that are told it")


class ComparedMeans(Strict):
    """Mean sample scores of the same examples before and after a change.

    The change is a view, or own answers in place of the truth. `change` is `after` minus `before`, paired within
    examples.
    """

    name: Line
    examples: int
    before: Estimate
    after: Estimate
    change: Estimate


class SameAnswer(Strict):
    """The most frequent answer without aids: `count` of all `answers`.

    `right` is the number of answers for whose questions it is right, or None if questions have no choices.
    """

    text: Line
    count: int
    answers: int
    right: int | None = None

    @property
    def is_nearly_all(self) -> bool:
        """Whether nearly all questions get this answer. Then no level explains the errors of the model."""
        return self.count >= NEARLY_ALL * self.answers

    @property
    def is_favoured(self) -> bool:
        """Whether it is at least half of the answers to questions with choices, and right at most half as often."""
        is_known = self.text != "" and self.right is not None and self.answers >= FEWEST
        return is_known and self.count >= self.answers / 2 and 2 * (self.right or 0) <= self.count


class Diagnosis(Strict):
    """The diagnosis of one model in one task.

    Args:
        metric: the task's primary metric. All scores are values of this metric, except in `views` and `own`.
        sample_metric: the metric of a single example, of which `views` and `own` are means.
        same_answer: the most frequent answer, if nearly all questions get it, or if it is favoured.
        by_words: whether the metric only compares words. Aids supply such words.
        asked: the levels about which the task asks. Empty if it asks for a conclusion.
        left_out: maps each reason to the number of examples that all conditions leave out.
        unreadable: maps each condition and status to the number of answers without a prediction.
        has_views: whether the task admits views.
        views: each view compared with the plain answers. `own` compares aids with own answers with the true aids.
        causes: maps each example id to the smallest sets of levels that correct its answer. `single_causes` defines
            `false_cause_rate`.
        video_ids: the videos in the order of `by_video`.
    """

    benchmark: Line
    task: Line
    model: Line
    metric: Line
    sample_metric: Line = "score"
    same_answer: SameAnswer | None = None
    by_words: bool
    design: Design
    asked: list[LevelName]
    repetitions: int
    examples: int
    videos: int
    answers: int
    left_out: dict[str, int]
    unreadable: dict[str, dict[str, int]]
    plain: Estimate
    remainder: Estimate
    text: Estimate
    belief: Estimate
    believes_any_text: bool
    levels: dict[LevelName, LevelDiagnosis]
    has_views: bool = True
    views: list[ComparedMeans] = Field(default_factory=list)
    own: list[ComparedMeans] = Field(default_factory=list)
    causes: dict[str, list[list[LevelName]]] = Field(default_factory=dict)
    false_cause_rate: float | None = None
    video_ids: list[str] = Field(default_factory=list)

    @property
    def subject(self) -> str:
        return f"{self.model} in {words(self.task)}"

    @property
    def changes(self) -> list[ComparedMeans]:
        return [*self.views, *self.own]

    @property
    def unread_with_aids(self) -> int:
        """Return the number of unreadable answers with all true aids."""
        return sum(self.unreadable.get(condition_name(true_aids(self.levels)), {}).values())

    @property
    def is_unread(self) -> bool:
        """Whether most answers with all true aids are unreadable. Then the aids show nothing about levels."""
        return 2 * self.unread_with_aids > self.examples * self.repetitions

    @property
    def remainder_name(self) -> str:
        """Return the name of the remainder. The remainder is reasoning only if the task asks about no level."""
        return "asked level or reasoning" if self.asked else "reasoning"


class DiagnosisFile(Strict):
    """The content of `diagnosis.json`. `diagnoses` is empty until `diagnose` has finished."""

    schema_version: Literal[1] = 1
    diagnoses: list[Diagnosis] = Field(default_factory=list)


def levels_of(
    estimates: Estimates,
    followed_plain: Mapping[LevelName, float],
    examples: Mapping[LevelName, int],
    shares: Mapping[LevelName, Floats],
) -> dict[LevelName, LevelDiagnosis]:
    """Return the levels in the form of `diagnosis.json`. `shares` holds the values (1 + 2V,) of each share."""
    return {
        level: LevelDiagnosis(
            **dict(each),
            is_unused=is_unused(each),
            followed_plain=None if math.isnan(followed_plain[level]) else followed_plain[level],
            p=cause_p_value(each),
            examples=examples[level],
            by_video=[None if math.isnan(value) else float(value) for value in shares[level]],
        )
        for level, each in estimates.levels.items()
    }


def write_diagnoses(folder: Path, diagnoses: Sequence[Diagnosis]) -> None:
    content = DiagnosisFile(diagnoses=list(diagnoses))
    write_whole(folder / DIAGNOSIS_FILE, content.model_dump_json(indent=1) + "\n")


def read_diagnoses(folders: Iterable[str | Path]) -> list[Diagnosis]:
    """Return the diagnoses in these folders and their subfolders. Raises DataError if a file is damaged."""
    files = {file: None for folder in folders for file in sorted(Path(folder).rglob(DIAGNOSIS_FILE))}
    return [
        diagnosis
        for file in files
        for diagnosis in read_model(
            file, DiagnosisFile, what="no diagnosis", remedy="run `barista-bench diagnose` again"
        ).diagnoses
    ]


def adjusted_p_values(diagnoses: Sequence[Diagnosis]) -> list[PValues]:
    """Return the p-values of each diagnosis after Holm's correction over all tasks and models.

    One correction covers all levels, and another all changes.
    """
    levels = _adjust([{name: level.p for name, level in each.levels.items()} for each in diagnoses])
    changes = _adjust([{each.name: each.change.p for each in diagnosis.changes} for diagnosis in diagnoses])
    return [{**of_levels, **of_changes} for of_levels, of_changes in zip(levels, changes, strict=True)]


def _adjust(tests: Sequence[Mapping[str, float | None]]) -> list[PValues]:
    adjusted = iter(adjust_p_values([1.0 if p is None else p for each in tests for p in each.values()]))
    return [{name: next(adjusted) for name in each} for each in tests]


def significant(adjusted: PValues) -> set[str]:
    """Return the levels that a report names as causes, and the changes that it calls clear."""
    return {name for name, p in adjusted.items() if p < ALPHA}


def compared_shares(diagnoses: Sequence[Diagnosis]) -> Table:
    """Return the difference in share between each pair of models per task and level, paired over videos.

    Only diagnoses of the same examples and videos are compared. Holm's correction covers the table.
    """
    pairs = [
        (first, second, level)
        for first, second in combinations(diagnoses, 2)
        if (first.task, first.video_ids, first.examples) == (second.task, second.video_ids, second.examples)
        for level in first.levels
        if level in second.levels
    ]
    differences = [estimate_of(_values(first, level) - _values(second, level)) for first, second, level in pairs]
    adjusted = adjust_p_values([1.0 if each.p is None else each.p for each in differences]) if pairs else []
    rows: list[tuple[Value, ...]] = [
        (first.task, level, first.model, second.model, difference.cell, p)
        for (first, second, level), difference, p in zip(pairs, differences, adjusted, strict=True)
    ]
    columns = (
        *text_columns("task", "level", "first", "second"),
        *number_columns("", "difference of shares", "p (Holm)"),
    )
    note = "The share of the first model minus that of the second, with 95 % interval over videos."
    return Table.of("Shares of levels compared", columns, rows, note)


def _values(diagnosis: Diagnosis, level: LevelName) -> Floats:
    values = diagnosis.levels[level].by_video
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def diagnosis_table(diagnoses: Sequence[Diagnosis]) -> Table:
    """Return a table with a row per model, task and level, and rows for the remainder and for any addition."""
    columns = (
        *text_columns("task", "model", "level"),
        *number_columns("", "share", "gain", "inert", "given first", "given last", "uptake", "examples", "p (Holm)"),
        *text_columns("finding"),
    )
    rows: list[tuple[Value, ...]] = [
        (
            *(d.task, d.model, level, told.share.cell, told.gain.cell, told.inert.cell, told.first.value),
            *(told.last.value, told.uptake.cell, told.examples, adjusted[level]),
            "cause" if level in significant(adjusted) else "not used" if told.is_unused and not d.is_unread else "",
        )
        for d, adjusted in zip(diagnoses, adjusted_p_values(diagnoses), strict=True)
        for level, told in d.levels.items()
    ]
    rows += [
        (d.task, d.model, name, measured.cell, *(None,) * 7, finding)
        for d in diagnoses
        for name, measured, finding in (
            (d.remainder_name, d.remainder, "remainder"),
            ("any addition", d.text, _text_finding(d)),
        )
    ]
    rows += [
        (
            *(d.task, d.model, each.name, None, each.change.cell, *(None,) * 4, each.examples, adjusted[each.name]),
            "clear change" if each.name in significant(adjusted) else "change",
        )
        for d, adjusted in zip(diagnoses, adjusted_p_values(diagnoses), strict=True)
        for each in d.changes
    ]
    note = (
        "Share: what the aid of a level gains, minus its inert control, averaged over the orders in which levels can "
        "be given. Uptake: answers that follow a false aid. A cause gains more than nothing and more than inert text "
        "(Holm over all levels, tasks and models). A change is an example's score in a view, or with own answers as an "
        "aid, minus the plain or the truly aided one; it is clear after Holm over all changes, tasks and models."
    )
    return Table.of("Why it fails", columns, rows, note)


def _text_finding(diagnosis: Diagnosis) -> str:
    if diagnosis.text.p is None or diagnosis.text.p >= ALPHA:
        return ""
    return "believes any addition" if diagnosis.believes_any_text else "affected by any addition"
