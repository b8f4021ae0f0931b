"""Compute the primary metric per group of examples, and count failures by kind.

Groups come from any metadata key, the facets of the task, or the position in the video. Numbers with many values are
cut into quantile bins of about equal size. If a key holds a list, an example counts in the group of each listed value.
Intervals are over the resampling units of the group. Failures come from the tasks (`Task.failures`,
`task.FAILURE_KINDS`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from barista_bench.core.display import FAILURE_KINDS, AnswerFailure
from barista_bench.core.example import Example, Json, evidence_objects
from barista_bench.core.guarding import attempt, unit_of
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import Floats
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.runs.score.results import MetricValue
from barista_bench.runs.score.samples import ScoredSample, group_metric
from barista_bench.runs.score.scoring import ScoredRun

BINS = 4
"""Number of quantile bins for a number with more than `DISTINCT` values."""
DISTINCT = 8
POSITION, OBJECTS, LABEL = "position", "evidence_objects", "label"
FRAME_COUNT = "frame_count"


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """The primary metric over the examples of one group.

    `value` names the group: a metadata value, or a bin such as `[0.25, 0.50)`. If the key holds lists, an example is in
    the group of each listed value, so groups overlap. `order` sorts the rows of a key.
    """

    key: str
    value: str
    order: int
    examples: int
    units: int
    samples: int
    metric: MetricValue


class _Group(NamedTuple):
    value: str
    order: int
    samples: list[ScoredSample]


def breakdown_keys(run: ScoredRun) -> tuple[str, ...]:
    """Return the sorted keys that divide the examples of a run into at least two groups.

    Keys come from metadata and `Task.facets`. There are three more keys: `label`; `position`, the first frame's
    position in its video from 0 to 1, if metadata have the number of frames; `evidence_objects`, the example's number
    of objects. If resampling units are scored as a set, all examples of a unit must share the key's value.
    """
    task, examples = run.task, run.examples.examples
    example_facts = [grouping_values(example, task) for example in examples]
    units = [unit_of(task, example) if task.scores_whole_units else example.example_id for example in examples]
    keys = sorted({key for item in example_facts for key in item})
    dividing_keys = []
    for key in keys:
        values = [_make_hashable(item.get(key)) for item in example_facts]
        if len(set(values)) > 1 and len(set(zip(units, values, strict=True))) == len(set(units)):
            dividing_keys.append(key)
    return tuple(dividing_keys)


@remember
def grouping_values(example: Example, task: Task) -> Mapping[str, Json]:
    """Return the values of all fields that can group an example, by name."""
    facets = attempt(task, "facets", example, lambda: task.facets(example), {})
    values: dict[str, Json] = {LABEL: example.label, **example.metadata, **facets}
    frames = example.metadata.get(FRAME_COUNT)
    if isinstance(frames, int) and frames > 0:
        values[POSITION] = example.frames[0].frame_index / frames
    objects = evidence_objects(example)
    if objects:
        values[OBJECTS] = len(objects)
    return values


def breakdown(run: ScoredRun, key: str, *, intervals: bool = True) -> tuple[BreakdownRow, ...]:
    """Return the primary metric for each value of `key`, in the order of the values.

    Args:
        key: a key from `breakdown_keys`, or any other key of the examples' metadata.

    Raises:
        ConfigError: no example has such a key.
    """
    return breakdowns(run, [key], intervals=intervals)[key]


def breakdowns(
    run: ScoredRun, keys: Iterable[str], *, intervals: bool = True, most: int | None = None
) -> dict[str, tuple[BreakdownRow, ...]]:
    """Return the rows of `breakdown` for several keys. Only the `most` largest groups of each key are kept.

    If `most` is None, all groups are kept.
    """
    rows: dict[str, tuple[BreakdownRow, ...]] = {}
    for key in keys:
        groups = _groups(run, key)
        largest = sorted(groups, key=lambda group: -_examples(group.samples))[:most]
        rows[key] = tuple(
            _row(run.task, key, group, metric)
            for group in sorted(largest, key=lambda group: group.order)
            if (metric := group_metric(run.task, run.counted, group.samples, intervals=intervals)) is not None
        )
    return rows


class ThoughtBin(NamedTuple):
    """Samples with similar amounts of thought: their median number of thinking tokens, and their primary metric."""

    tokens: float
    row: BreakdownRow


def by_thinking(run: ScoredRun) -> tuple[ThoughtBin, ...]:
    """Return the primary metric by number of thinking tokens, in quantile bins of the samples with logged thoughts.

    Repetitions of a greedy answer count once. The result is empty if no sample has thoughts, or if all have equally
    many tokens. It is also empty if the task scores units as a set, since the samples of a unit differ in thinking
    tokens.
    """
    counted = (sample for sample in run.samples if sample.is_counted and sample.record.output_tokens)
    samples = [sample for sample in counted if sample.record.thinking_tokens is not None]
    tokens = np.array([sample.record.thinking_tokens for sample in samples], dtype=np.float64)
    if run.task.scores_whole_units or not tokens.any():
        return ()
    return tuple(
        ThoughtBin(
            float(np.median([sample.record.thinking_tokens or 0 for sample in group.samples])),
            _row(run.task, "thinking_tokens", group, metric),
        )
        for group in _quantile_groups(samples, tokens)
        if (metric := group_metric(run.task, run.counted, group.samples)) is not None
    )


def _row(task: Task, key: str, group: _Group, metric: MetricValue) -> BreakdownRow:
    return BreakdownRow(
        key=key,
        value=group.value,
        order=group.order,
        examples=_examples(group.samples),
        units=len({unit_of(task, sample.example) for sample in group.samples}),
        samples=sum(sample.is_counted for sample in group.samples),
        metric=metric,
    )


def _groups(run: ScoredRun, key: str) -> list[_Group]:
    with_values = [(sample, grouping_values(sample.example, run.task).get(key)) for sample in run.samples]
    present = [(sample, value) for sample, value in with_values if value is not None]
    if not present:
        known_keys = ", ".join(breakdown_keys(run))
        raise ConfigError(f"{run.folder}: no example has {key!r}. Fix: group by one of {known_keys}")
    numbers = [value for _, value in present if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(present) and len(set(numbers)) > DISTINCT:
        return _quantile_groups([sample for sample, _ in present], np.array(numbers, dtype=np.float64))
    members: dict[str, list[ScoredSample]] = {}
    ranks: dict[str, tuple[int, float, str]] = {}
    for sample, value in present:
        # Take each value of a list once. A value with several fields counts by its text.
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        for text, item in {str(item): item for item in values}.items():
            members.setdefault(text, []).append(sample)
            is_number = isinstance(item, int | float) and not isinstance(item, bool)
            ranks[text] = (0, float(item), "") if is_number else (1, 0.0, text)  # type: ignore[arg-type]
    names = sorted(members, key=lambda name: ranks[name])
    return [_Group(name, order, members[name]) for order, name in enumerate(names)]


def _quantile_groups(samples: Sequence[ScoredSample], values: Floats) -> list[_Group]:
    """Group samples in bins between quantiles. Bins are half-open, except the last. Bins with equal quantiles merge."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)))
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    groups = []
    for order in range(len(edges) - 1):
        end = "]" if order == len(edges) - 2 else ")"
        members = [sample for sample, bin_index in zip(samples, bins.tolist(), strict=True) if bin_index == order]
        if members:
            groups.append(_Group(f"[{edges[order]:.4g}, {edges[order + 1]:.4g}{end}", order, members))
    return groups


def _make_hashable(value: Json) -> str:
    return str(sorted(value.items())) if isinstance(value, Mapping) else repr(value)


def _examples(samples: Sequence[ScoredSample]) -> int:
    return len({sample.example.example_id for sample in samples})


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One kind of failure in a task. `task.FAILURE_KINDS` explains the kinds.

    `count` is the number of failures, `samples` the number of samples with this failure, and `fraction` their share of
    all scored samples.
    """

    task: str
    model: str
    kind: str
    count: int
    samples: int
    fraction: float


def answer_failures(task: Task, sample: ScoredSample) -> tuple[AnswerFailure, ...]:
    """Return the failures that the task finds in an answer."""
    example = sample.example
    return attempt(task, "failures", example, lambda: task.failures(example, sample.prediction), ())


def failure_rows(run: ScoredRun) -> tuple[FailureRow, ...]:
    """Return one row per kind of failure that occurs, in the order of the vocabulary.

    A sample may fail in several ways.
    """
    failures = [answer_failures(run.task, sample) for sample in run.samples if sample.record.is_finished]
    counts = Counter(failure.kind for of_sample in failures for failure in of_sample)
    samples = Counter(kind for of_sample in failures for kind in {failure.kind for failure in of_sample})
    task, model = run.task.name, run.results.model.label
    return tuple(
        FailureRow(task, model, kind, counts[kind], samples[kind], samples[kind] / len(failures))
        for kind in FAILURE_KINDS
        if counts[kind]
    )
