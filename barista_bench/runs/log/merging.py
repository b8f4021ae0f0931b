"""One run folder of several that machines without a common disk have written of one run."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import refuse_inside, replacing_folder
from barista_bench.runs.log.asked import merge_inputs
from barista_bench.runs.log.log_reader import Compacted, compact
from barista_bench.runs.log.sample_log import log_files, running_elsewhere
from barista_bench.runs.run_folder import (
    RunDescription,
    first_difference,
    judge_folders,
    moved_data,
    read_run,
    write_run,
)

log = logging.getLogger(__name__)


def merge(folders: Sequence[Path], out: Path) -> Compacted:
    """Write the run folder `out` from folders of one run: same examples, model and settings.

    Of the records of one sample the one counts that would if all logs lay in one folder, in the order of `folders`.
    Verdicts of judges are left out: they are given on all answers together.

    Args:
        out: a new or empty folder.

    Raises:
        ConfigError: the runs differ in a condition or in what they asked (names it), one is named twice or is being
            written, or `out` holds something.
        DataError: a folder is not a run, or its files are damaged.
    """
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        raise ConfigError("merge joins two run folders or more, each named once. Remedy: name them")
    refuse_inside(out, *folders)
    described = [read_run(folder) for folder in folders]
    for folder, description in zip(folders, described, strict=True):
        if running_elsewhere(folder):
            raise ConfigError(f"{folder}: a run is writing here. Remedy: wait until it has ended")
        _refuse_other_conditions(folders[0], described[0], folder, description)
        if judge_folders(folder):
            log.warning("%s: its verdicts are left out. Judge the merged run", folder)
    with replacing_folder(out) as merged:
        merge_inputs(folders, merged)
        write_run(merged, described[0].model_copy(update={"data": moved_data(described[0].data, folders[0], out)}))
        for kind in ("samples", "steps", "sessions"):
            paths = [path for folder in folders for path in _logs(folder, kind)]
            for number, path in enumerate(paths):
                shutil.copyfile(path, merged / f"{kind}-{number}.jsonl")
        done = compact(merged)
        for path in merged.glob("*.lock"):
            path.unlink()  # nobody else knows of this folder yet
    return done


def _logs(folder: Path, kind: str) -> list[Path]:
    return log_files(folder) if kind == "samples" else sorted(folder.glob(f"{kind}*.jsonl"))


def _refuse_other_conditions(first: Path, before: RunDescription, folder: Path, now: RunDescription) -> None:
    difference = first_difference(before, now)
    if difference is None and before.runs != now.runs:
        difference = "runs", before.runs, now.runs
    if difference:
        name, old, new = difference
        raise ConfigError(
            f"{folder}: was run with {name} {new!r}, and {first} with {old!r}. Remedy: merge folders of one run alone"
        )
    for name, version in before.versions.items():
        if now.versions.get(name) != version:
            log.warning("%s: was run with %s %s, and %s with %s", folder, name, now.versions.get(name), first, version)
