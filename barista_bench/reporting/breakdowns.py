"""Break a task's primary score down by group. The groups that separate models most come first.

Each partition of the examples is shown once. Keys come from `stats.breakdown_keys`, not from a benchmark or task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.reporting.analyses import is_unranked
from barista_bench.reporting.tables import MAX_ROWS, metric_cell, shorten_name
from barista_bench.runs.score.results import Breakdown
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import BreakdownRow
from barista_bench.stats.breakdowns import grouping_values
from barista_bench.tables import Cell, Table, number_columns, text_columns, words


class KeyGroups(NamedTuple):
    """A breakdown by `key`: for each value the scores of the models by label, and the separation of the models."""

    key: str
    values: Mapping[str, Mapping[str, Breakdown]]
    separation: float

    @property
    def examples(self) -> dict[str, int]:
        """Return the number of examples of each value. Interrupted models have fewer."""
        return {value: max(group.examples for group in of_value.values()) for value, of_value in self.values.items()}


def key_groups(
    labels: Sequence[str], runs: Sequence[ScoredRun], rows: Sequence[Mapping[str, Sequence[BreakdownRow]]]
) -> list[KeyGroups]:
    """Return the breakdowns to show, sorted by decreasing separation of models.

    A key with the partition of an earlier key is left out, and a key with fewer than two values with several examples.

    Args:
        rows: for each run, the rows that its results do not contain.
    """
    by_key: dict[str, dict[str, dict[str, Breakdown]]] = defaultdict(lambda: defaultdict(dict))
    for label, run, further_rows in zip(labels, runs, rows, strict=True):
        for key, parts in run.results.breakdowns.items():
            for value, part in parts.items():
                by_key[key][value][label] = part
        for key in further_rows.keys() - run.results.breakdowns.keys():
            for row in sorted(further_rows[key], key=lambda row: row.order):
                by_key[key][row.value][label] = Breakdown(examples=row.examples, metric=row.metric)
    compared_labels = [label for label, run in zip(labels, runs, strict=True) if not is_unranked(run)] or list(labels)
    partitions: set[frozenset[frozenset[str]]] = set()
    kept_groups = []
    for key in sorted(by_key, key=lambda key: (all(key not in run.results.breakdowns for run in runs), key)):
        groups = KeyGroups(key, by_key[key], separation(by_key[key], compared_labels))
        partition = _partition(runs[0].task, runs[0].examples.examples, key)
        if sum(count > 1 for count in groups.examples.values()) > 1 and partition not in partitions:
            partitions.add(partition)
            kept_groups.append(groups)
    return sorted(kept_groups, key=lambda groups: -groups.separation)


def separation(values: Mapping[str, Mapping[str, Breakdown]], labels: Sequence[str]) -> float:
    """Return how far models are apart: best minus worst score within each group, averaged over groups.

    Groups are weighted by their examples. For a single model, return how far its groups are apart. Groups of one
    example are ignored, since their scores are mostly chance.
    """
    groups = [
        [(group.examples, group.metric.mean) for label in labels if (group := of_value.get(label))]
        for of_value in values.values()
    ]
    large = [group for group in groups if group and group[0][0] > 1]
    if not large:
        return 0.0
    means = [[mean for _, mean in group] for group in large]
    if len(labels) == 1:
        return max(map(max, means)) - min(map(min, means))
    weights = [group[0][0] for group in large]
    ranges = [max(group_means) - min(group_means) for group_means in means]
    return sum(weight * width for weight, width in zip(weights, ranges, strict=True)) / sum(weights)


def _partition(task: Task, examples: Sequence[Example], key: str) -> frozenset[frozenset[str]]:
    """Return the parts into which a key divides the examples, without value names. Each value of a list counts."""
    parts: dict[str, set[str]] = defaultdict(set)
    for example in examples:
        value = grouping_values(example, task).get(key)
        items = sorted(map(str, value)) if isinstance(value, list | tuple) else [str(value)]
        parts[repr(items)].add(example.example_id)
    return frozenset(map(frozenset, parts.values()))


def breakdown_table(groups: KeyGroups, labels: Sequence[str], primary: str) -> Table:
    """Return a table with a row per value and a column per model. Scores link to their samples."""
    examples = groups.examples
    rows = []
    for value, of_value in list(groups.values.items())[:MAX_ROWS]:
        query = (("key", groups.key), ("value", value))
        cells = (
            metric_cell(group.metric, (*query, ("model", label))) if (group := of_value.get(label)) else Cell(None)
            for label in labels
        )
        rows.append((Cell(shorten_name(value), query=query), Cell(examples[value]), *cells))
    columns = (*text_columns(words(groups.key)), *number_columns("", "examples", *labels))
    note = f"The first {MAX_ROWS} of {len(groups.values)} rows." if len(groups.values) > MAX_ROWS else ""
    title = f"Examples by {words(groups.key)}: {words(primary)}"
    return replace(Table.of(title, columns, rows, note), drawn="heat")
