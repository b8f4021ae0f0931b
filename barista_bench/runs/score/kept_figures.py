"""Figures of one run by several options lie side by side in its folder; nobody's are overwritten by another's.

results.json, scores.jsonl                      by the options that the run was started with
results.<digest>.json, scores.<digest>.jsonl    by others: `score --option`; which ones stands inside
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import task_class
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.log.keys import digest
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import RESULTS_FILE, SCORES_FILE, Results, read_results

log = logging.getLogger(__name__)

_DIGITS = 8
_KEPT = re.compile(rf"results(\.[0-9a-f]{{{_DIGITS}}})?\.json")


def figure_files(folder: Path, results: Results) -> tuple[Path, Path]:
    """Where the figures lie, and those of every sample."""
    return _own_files(folder) if _is_own(results, folder) else _files_beside(folder, results)


def free_place(folder: Path, results: Results) -> tuple[Path, Path]:
    """`figure_files`, to be written. A run may be started again with other options: what has the name that these
    figures get, or lies where they lay, is renamed first. Figures that cannot be read are replaced.
    """
    own = _own_files(folder)
    try:
        before = read_results(own[0])
    except DataError:
        pass
    else:
        if not _is_own(before, folder):
            _rename(own, _files_beside(folder, before))
    if _is_own(results, folder):
        _rename(_files_beside(folder, results), own)
    return figure_files(folder, results)


def _is_own(results: Results, folder: Path) -> bool:
    """Whether figures are by the options that the run was started with."""
    described = read_run(folder)
    started_with = {**described.get("options", {}), **described["identity"].get("options", {})}
    return {**results.options, **started_with} == results.options


def _own_files(folder: Path) -> tuple[Path, Path]:
    return folder / RESULTS_FILE, folder / SCORES_FILE


def _files_beside(folder: Path, results: Results) -> tuple[Path, Path]:
    name = digest(results.options)[:_DIGITS]
    return folder / f"results.{name}.json", folder / f"scores.{name}.jsonl"


def _rename(files: tuple[Path, Path], names: tuple[Path, Path]) -> None:
    for file, name in zip(files, names, strict=True):
        if file.exists():
            file.replace(name)


def kept_options(folder: Path) -> Mapping[str, Any]:
    """The options of the figures that lie in a folder; where there are none, or several, the run's own: no others.

    Raises:
        DataError: the only figures there are broken; names the field.
    """
    kept = _kept(folder)
    return read_results(kept[0]).options if len(kept) == 1 and kept[0].name != RESULTS_FILE else {}


def options_of_each(
    folders: Sequence[str | Path], options: Mapping[str, object] | None
) -> list[dict[str, object] | None]:
    """Of each run, the options that its task has; None where it has none of them.

    Raises:
        ConfigError: no task here has one of the options.
        DataError: a folder is no run.
    """
    if not options:
        return [None for _ in folders]
    identities = [read_run(folder)["identity"] for folder in folders]
    declared = [task_class(identity["benchmark"], identity["task"]).options for identity in identities]
    for name in options:
        if not any(name in own for own in declared):
            raise ConfigError(f"no task here has an option {name!r}. Remedy: leave it out")
    return [{name: value for name, value in options.items() if name in own} or None for own in declared]


def tell_which(folder: Path, results: Results) -> None:
    """Log by which options a folder is read, where they are not the task's defaults or other figures lie there."""
    others = [path.name for path in _kept(folder) if path != figure_files(folder, results)[0]]
    options = results.comparability.options_in_words
    if options or others:
        beside = f"; it holds other figures too ({', '.join(others)}): choose with --option" if others else ""
        log.warning("%s: read by %s%s", folder, options or "the default options", beside)


def _kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("results*.json") if _KEPT.fullmatch(path.name))
