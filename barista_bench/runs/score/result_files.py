"""Figures of one run by several options lie side by side in its folder; none overwrites another's.

results.json, scores.jsonl                      by the options that the run was started with
results.<digest>.json, scores.<digest>.jsonl    by others: `score --option`; which ones stands inside
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import task_class
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.log.keys import digest
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import RESULTS_FILE, Results, read_results

log = logging.getLogger(__name__)

_DIGITS = 8
_RESULTS_NAME = re.compile(rf"results(\.[0-9a-f]{{{_DIGITS}}})?\.json")


def result_files(folder: Path, results: Results) -> tuple[Path, Path]:
    """The files for these figures, and for those of every sample."""
    described = read_run(folder)
    started_with = {**described.get("options", {}), **described["identity"].get("options", {})}
    return _files(folder) if {**results.options, **started_with} == results.options else _files(folder, results)


def claim_result_files(folder: Path, results: Results) -> tuple[Path, Path]:
    """`result_files`, to be written. A run may be started again with other options: files in whose place these figures
    come, or in whose place they were, are renamed first. Figures that cannot be read are replaced.
    """
    by_own_options, wanted = _files(folder), result_files(folder, results)
    with suppress(DataError):
        _rename(by_own_options, result_files(folder, read_results(by_own_options[0])))
    if wanted == by_own_options:
        _rename(_files(folder, results), by_own_options)
    return wanted


def _files(folder: Path, results: Results | None = None) -> tuple[Path, Path]:
    """Those by the run's own options, or by the options of `results`."""
    by = "" if results is None else f".{digest(results.options)[:_DIGITS]}"
    return folder / f"results{by}.json", folder / f"scores{by}.jsonl"


def _rename(files: tuple[Path, Path], names: tuple[Path, Path]) -> None:
    for file, name in zip(files, names, strict=True):
        if file != name and file.exists():
            file.replace(name)


def stored_options(folder: Path) -> Mapping[str, Any]:
    """The options of the figures that lie in a folder; where there are none, or several, the run's own: no others.

    Raises:
        DataError: the only figures there are broken; names the field.
    """
    files = _stored(folder)
    return read_results(files[0]).options if len(files) == 1 and files[0].name != RESULTS_FILE else {}


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
        if not any(name in known for known in declared):
            raise ConfigError(f"no task here has an option {name!r}. Remedy: leave it out")
    return [{name: value for name, value in options.items() if name in known} or None for known in declared]


def log_options(folder: Path, results: Results) -> None:
    """Log by which options a folder is read, where they are not the task's defaults or other figures lie there."""
    others = [path.name for path in _stored(folder) if path != result_files(folder, results)[0]]
    options = results.comparability.options_in_words
    if options or others:
        beside = f"; it holds other figures too ({', '.join(others)}): choose with --option" if others else ""
        log.warning("%s: read by %s%s", folder, options or "the default options", beside)


def _stored(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("results*.json") if _RESULTS_NAME.fullmatch(path.name))
