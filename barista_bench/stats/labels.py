"""Names of models where several runs stand side by side: one name a model and setting, everywhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from barista_bench.runs.score.comparability import Comparability
from barista_bench.runs.score.scoring import ScoredRun

Labels: TypeAlias = Mapping[Path, str]
"""By run folder."""


def comparable_groups(runs: Sequence[ScoredRun]) -> dict[Comparability, list[ScoredRun]]:
    """Runs whose figures may share a rank, together, by what they share."""
    groups: dict[Comparability, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(run.results.comparability, []).append(run)
    return groups


def differing_circumstances(runs: Sequence[ScoredRun]) -> list[str]:
    """Circumstances that comparable runs do not share, a line a setting: decoding, boxes, engine, number of runs."""
    labels = run_labels(runs)
    lines = []
    for group in comparable_groups(runs).values():
        settings = {labels[run.folder]: run.results.circumstances for run in group}
        for name in dict.fromkeys(name for circumstances in settings.values() for name in circumstances):
            values = {label: circumstances.get(name) for label, circumstances in settings.items()}
            if len(set(map(repr, values.values()))) > 1:
                values_text = ", ".join(f"{label} {value}" for label, value in values.items())
                lines.append(f"{group[0].task.name}: {name}: {values_text}")
    return lines


def run_labels(runs: Sequence[ScoredRun]) -> dict[Path, str]:
    """A label for each run folder: the model's, and behind it the start's folder where it was run twice.

    A model that answered the same examples in two runs (with other settings, say) has two labels, and each of them
    stands for all tasks of one start: `runs/cold/grounding` and `runs/cold/relations` are both `name (cold)`.
    """
    groups: dict[tuple[str, ...], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        dataset = run.results.dataset
        version, examples = str(dataset.task_version), (dataset.split, dataset.content_hash)
        # In whatever wording: each has a label of its own.
        groups[dataset.benchmark, dataset.task, version, *examples].append(run)
    repeated_names = set[str]()
    for group in groups.values():
        names = [run.results.model.label for run in group]
        repeated_names.update(name for name in names if names.count(name) > 1)
    labels = {
        run.folder: f"{name} ({_start_name(run)})" if (name := run.results.model.label) in repeated_names else name
        for run in runs
    }
    for group in groups.values():
        alike = defaultdict[str, list[Path]](list)
        for run in group:
            alike[labels[run.folder]].append(run.folder)
        for label, folders in alike.items():
            if len(set(folders)) > 1:
                labels.update({folder: f"{label} ({number})" for number, folder in enumerate(folders, start=1)})
    return labels


def _start_name(run: ScoredRun) -> str:
    """The folder that one start of the runner wrote: above those that are named after the task and its benchmark."""
    folder = run.folder
    for name in (run.task.name, run.task.benchmark):
        folder = folder.parent if folder.name == name else folder
    return folder.name
