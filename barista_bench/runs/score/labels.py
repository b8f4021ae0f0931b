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


def differing_media(runs: Mapping[str, ScoredRun]) -> list[str]:
    """What runs of the same examples, by label, were shown that the first of them was not, a line a run.

    The hash of a set is of its texts: pictures may differ all the same.
    """
    shown = {label: media for label, run in runs.items() if (media := _media(run))}
    lines: list[str] = []
    for label in list(shown)[1:]:
        first = next(iter(shown))
        stored, linked = sorted((first, label), key=lambda name: runs[name].examples.is_linked)
        differing = [name for name, media in shown[first].items() if shown[label].get(name, media) != media]
        if runs[stored].examples.is_linked != runs[linked].examples.is_linked:
            lines.append(f"{stored} was shown stored pictures, {linked} frames of videos: logs do not tell them apart")
        elif differing:
            counts = f"{len(differing)} of {len(shown[first])} examples"
            lines.append(f"{label} was shown other media than {first} in {counts}, first {differing[0]}")
    return lines


def _media(run: ScoredRun) -> dict[str, str]:
    """What was shown, by example, as far as the log says it."""
    records = (sample.record for sample in run.samples)
    return {record.example_id: record.media for record in records if record.media and record.is_finished}


def differing_circumstances(runs: Sequence[ScoredRun]) -> list[str]:
    """Circumstances that comparable runs do not share, a line a setting: decoding, boxes, engine, number of runs; and
    which of them were shown other media.
    """
    labels = run_labels(runs)
    lines = []
    for group in comparable_groups(runs).values():
        task = group[0].task.name
        lines += [f"{task}: media: {line}" for line in differing_media({labels[run.folder]: run for run in group})]
        settings = {labels[run.folder]: run.results.circumstances for run in group}
        for name in dict.fromkeys(name for circumstances in settings.values() for name in circumstances):
            values = {label: circumstances.get(name) for label, circumstances in settings.items()}
            if len(set(map(repr, values.values()))) > 1:
                values_text = ", ".join(f"{label} {value}" for label, value in values.items())
                lines.append(f"{task}: {name}: {values_text}")
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
