"""The files of a run's scores. Each set of options has its own files."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import task_class
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.reading import READINGS
from barista_bench.runs.score.results import RESULTS_FILE, Results, read_results
from barista_bench.runs.score.samples import TaskOptions, refuse_unfetched

log = logging.getLogger(__name__)
_DIGITS = 8


_RESULTS_NAME = re.compile(rf"results(\.[0-9a-f]{{{_DIGITS}}})?\.json")


def result_files(folder: Path, results: Results) -> tuple[Path, Path]:
    """Return the path for these results, and the path for the scores of every sample."""
    is_own = not results.reading and {**results.options, **read_run(folder).all_options} == results.options
    return _result_paths(folder) if is_own else _result_paths(folder, results)


def claim_result_files(folder: Path, results: Results) -> tuple[Path, Path]:
    """Return `result_files` for writing.

    If a run was started again with other options, existing files may hold scores with the earlier options. Such files
    are renamed first. Unreadable files are replaced.
    """
    by_own_options, targets = _result_paths(folder), result_files(folder, results)
    with suppress(DataError):
        _rename(by_own_options, result_files(folder, read_results(by_own_options[0])))
    if targets == by_own_options:
        _rename(_result_paths(folder, results), by_own_options)
    return targets


def _result_paths(folder: Path, results: Results | None = None) -> tuple[Path, Path]:
    """Return the paths of results and sample scores, for the options of `results` or the run's own options."""
    suffix = "" if results is None else f".{digest({**results.options, **results.reading})[:_DIGITS]}"
    return folder / f"results{suffix}.json", folder / f"scores{suffix}.jsonl"


def _rename(files: tuple[Path, Path], names: tuple[Path, Path]) -> None:
    for file, name in zip(files, names, strict=True):
        if file != name and file.exists():
            file.replace(name)


def stored_options(folder: Path) -> Mapping[str, Any]:
    """Return the options of the scores in a folder. With no set of scores, or several, return the run's own options.

    Raises:
        DataError: the only saved scores are damaged. The message names the field.
    """
    files = _stored_results(folder)
    if len(files) != 1 or files[0].name == RESULTS_FILE:
        return {}
    identity, results = read_run(folder).identity, read_results(files[0])
    refuse_unfetched(task_class(identity.benchmark, identity.task), results.options)
    return {**results.options, **results.reading}


def options_of_each(folders: Sequence[str | Path], options: TaskOptions) -> list[dict[str, object] | None]:
    """Return, for each run, the options in `options` that its task has, or None if it has none.

    Raises:
        ConfigError: no task here has an option of this name.
        DataError: a folder is not a run.
    """
    if not options:
        return [None for _ in folders]
    identities = [read_run(folder).identity for folder in folders]
    declared = [task_class(identity.benchmark, identity.task).options for identity in identities]
    for name in options:
        if name not in READINGS and not any(name in of_task for of_task in declared):
            raise ConfigError(f"no task here has an option {name!r}. Fix: leave it out")
    return [
        {name: value for name, value in options.items() if name in of_task or name in READINGS} or None
        for of_task in declared
    ]


def log_options(folder: Path, results: Results) -> None:
    """Log the options of these scores if they are not the run's own options, or if the folder has other scores."""
    file, _ = result_files(folder, results)
    others = [path.name for path in _stored_results(folder) if path != file]
    if others or file.name != RESULTS_FILE:
        options = ", ".join(filter(None, (results.comparability.options_in_words, results.reading_in_words)))
        other_text = f"; it holds other scores too ({', '.join(others)}): choose with --option" if others else ""
        log.warning("%s: read by %s%s", folder, options or "the default options", other_text)


def _stored_results(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("results*.json") if _RESULTS_NAME.fullmatch(path.name))
