"""Name the models of compared runs. A run has one label in all tables of a command.

Reports, tables, plots, comparisons and tables of judges call `run_labels`; the studio calls `start_labels` for people's
answers. The rule:

1. The name of a run is the value of `run --name`. In front of it are the ablations of the model (`text_only:mine`), or
   `aided:`.
2. Without `--name`, it is the model's own name (`ModelInfo.label`: the value of `--model`, with ` + adapter DIGEST` and
   ` + N shots` if there are any). Of a local path only the last folder is used, and `predictions:` is left out. If two
   models then have the same name, they keep `predictions:`, and as many of the last folders as are needed. No name is
   an absolute path.
3. If scores are not of the run's own reading, `, read by ...` is added.
4. If two runs of the same questions have the same name, the folder of the start is added to this name everywhere:
   `name (cold)`. If they still have the same name, the starts are numbered by their paths: `name (cold) (1)`. A start
   has one number in all tasks.

The tables of judges name models by this rule (`model_labels` of `judging/cross.py`), and judges too (`judge_labels` of
`judging/judged_run.py`). A diagnosis of one model has the name of the first two points (`own_name`); reports show the
run's label instead (`labelled_diagnoses` of `reporting/aided.py`). The output of `score`, the leaderboard and exports
name a model by `ModelInfo.label`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from barista_bench.core.model_names import ALTERED
from barista_bench.files.text_out import shared_name
from barista_bench.runs.score.comparability import Comparability
from barista_bench.runs.score.scoring import ScoredRun

Labels: TypeAlias = Mapping[Path, str]
"""Maps each run folder to its label."""


def comparable_groups(runs: Sequence[ScoredRun]) -> dict[Comparability, list[ScoredRun]]:
    """Group runs with comparable scores by their common record."""
    groups: dict[Comparability, list[ScoredRun]] = {}
    for run in runs:
        groups.setdefault(run.results.comparability, []).append(run)
    return groups


def differing_media(runs: Mapping[str, ScoredRun]) -> list[str]:
    """Return the differences in media between runs of the same examples, one line per run. `runs` maps labels to runs.

    The hash of a set covers only its texts, so images may still differ.
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
    """Map each example to the digest of its media, if the log has it."""
    records = (sample.record for sample in run.samples)
    return {record.example_id: record.media for record in records if record.media and record.is_finished}


def differing_circumstances(runs: Sequence[ScoredRun]) -> list[str]:
    """Return the circumstances in which comparable runs differ, one line per setting.

    Circumstances are decoding, box format, engine and number of repetitions. Runs with other media are listed too.
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


class NamedModel(Protocol):
    """A model, or the model of a judge."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...


class Start(NamedTuple):
    """A run folder that needs a label.

    `given_name` is the value of `run --name`. Runs with equal `examples` are compared. `reading` names the reading of
    the log if scores do not come from the run's own reading.
    """

    folder: Path
    given_name: str
    model: NamedModel
    benchmark: str
    task: str
    examples: tuple[object, ...] = ()
    reading: str = ""


def run_labels(runs: Sequence[ScoredRun]) -> dict[Path, str]:
    """Return a label for each run folder, as `start_labels` does. Runs with another wording get separate labels."""
    starts = []
    for run in runs:
        results, dataset = run.results, run.results.dataset
        examples = (str(dataset.task_version), dataset.split, dataset.content_hash)
        starts.append(
            Start(
                run.folder, run.name, results.model, dataset.benchmark, dataset.task, examples, results.reading_in_words
            )
        )
    return start_labels(starts)


def start_labels(starts: Sequence[Start]) -> dict[Path, str]:
    """Return a label for each run folder. It covers all tasks of one start: `runs/cold/grounding` and
    `runs/cold/relations` are both `name (cold)`.
    """
    names = _names(starts)
    groups: dict[tuple[object, ...], list[Start]] = defaultdict(list)
    for start in starts:
        groups[start.benchmark, start.task, *start.examples].append(start)
    repeated_names = set[str]()
    for group in groups.values():
        in_group = [names[start.folder] for start in group]
        repeated_names.update(name for name in in_group if in_group.count(name) > 1)
    labels = {
        start.folder: f"{name} ({start_name(start.folder, start.task, start.benchmark)})"
        if (name := names[start.folder]) in repeated_names
        else name
        for start in starts
    }
    alike = {
        label
        for group in groups.values()
        for label, folders in _folders_by_label(group, labels).items()
        if len(folders) > 1
    }
    for label, folders in _folders_by_label(starts, labels).items():
        if label in alike:  # all tasks of a start have its number
            by_start = {folder: _start_key(start) for folder, start in folders.items()}
            ordered = sorted(set(by_start.values()))
            labels.update({folder: f"{label} ({ordered.index(key) + 1})" for folder, key in by_start.items()})
    return labels


def _start_key(start: Start) -> tuple[Path, int]:
    """Return the folder of a start and the depth of its runs. Starts at `out/TASK` and `out/BENCHMARK/TASK` differ."""
    above = start_folder(start.folder, start.task, start.benchmark)
    return above, len(start.folder.parts) - len(above.parts)


def _folders_by_label(starts: Sequence[Start], labels: Labels) -> dict[str, dict[Path, Start]]:
    folders: dict[str, dict[Path, Start]] = defaultdict(dict)
    for start in starts:
        folders[labels[start.folder]][start.folder] = start
    return folders


def short_name(model: NamedModel) -> str:
    """Shorten a model's name: a local path to its last folder, recorded answers to the model that gave them.

    >>> from types import SimpleNamespace
    >>> names = ("/ckpt/llava", "text_only:predictions:kitchen", "predictions:/home/me/answers.jsonl", "served:org/a")
    >>> [short_name(SimpleNamespace(name=name, label=name)) for name in names]
    ['llava', 'text_only:kitchen', 'answers.jsonl', 'served:org/a']
    """
    return pathless_name(model).replace(_RECORDED, "")


def pathless_name(model: NamedModel, folders: int = 1) -> str:
    """Return a model's own name. Of a local path, only the last `folders` folders remain."""
    return shared_name(model.name, folders) + model.label.removeprefix(model.name)


def _longer_name(model: NamedModel, others: Collection[NamedModel]) -> str:
    """Return the name with at least two folders of a local path, and with more if another model has it too."""
    folders = 2
    while folders < len(Path(model.name).parts) and pathless_name(model, folders) in {
        pathless_name(other, folders) for other in others
    }:
        folders += 1
    return pathless_name(model, folders)


_RECORDED = "predictions:"


def _names(starts: Sequence[Start]) -> dict[Path, str]:
    """Map each run folder to the given or short name of its model. If two models would share it, use longer names."""
    names = {start.folder: own_name(start.given_name, start.model) for start in starts}
    models_by_name: dict[str, dict[str, NamedModel]] = defaultdict(dict)
    for start in starts:
        models_by_name[names[start.folder]][start.model.label] = start.model
    for start in starts:
        models = models_by_name[names[start.folder]]
        others = [model for label, model in models.items() if label != start.model.label]
        if others and not start.given_name:
            names[start.folder] = _longer_name(start.model, others)
    readings = {start.folder: start.reading for start in starts if start.reading}
    return {
        folder: f"{name}, read by {readings[folder]}" if folder in readings else name for folder, name in names.items()
    }


def own_name(given_name: str, model: NamedModel) -> str:
    """Return the name given at the start of a run, after the prefixes of a model that gets changed questions. Without a
    given name, return the short name of the model.
    """
    altered = takewhile(lambda part: part in ALTERED, model.name.split(":"))
    return ":".join([*altered, given_name]) if given_name else short_name(model)


def start_name(folder: Path, task: str, benchmark: str) -> str:
    return start_folder(folder, task, benchmark).name


def start_folder(folder: Path, task: str, benchmark: str) -> Path:
    """Return the folder that one start wrote. It lies above the folders of the task and its benchmark."""
    for name in (task, benchmark):
        folder = folder.parent if folder.name == name else folder
    return folder
