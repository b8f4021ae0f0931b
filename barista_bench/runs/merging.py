"""Merge the logs of a run folder into one log, and several folders of one run into one folder."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from filelock import Timeout

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import refuse_inside, replacing_folder
from barista_bench.files.writing import atomic_write, sync
from barista_bench.runs.data_location import moved_data
from barista_bench.runs.described import AIDS_FILE, DECISION_FILE
from barista_bench.runs.log.inputs import merge_inputs
from barista_bench.runs.log.sample_log import LOCK_WAIT, LOG_FILE, find_running_elsewhere, log_files, log_lock
from barista_bench.runs.log_reader import LogReader
from barista_bench.runs.run_folder import RunDescription, first_difference, judge_folders, read_run, write_run

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compaction:
    """The number of records before and after compaction, and the bytes saved."""

    before: int
    after: int
    bytes: int


def compact(folder: str | Path) -> Compaction:
    """Merge all logs of a run folder into `samples.jsonl` and drop superseded, truncated and damaged lines.

    Lines are copied byte for byte, so fields of later versions survive. The merged file is complete on disk before it
    replaces the old file. Then the files of the ranks are removed in order. If the process is killed in between, the
    folder still reads the same, and the next call finishes the work.

    Raises:
        ConfigError: a run is writing to the folder.
        DataError: there is no log.
    """
    folder = Path(folder)
    merged = folder / LOG_FILE
    with ExitStack() as stack:
        # If another process creates a log after this point, the log is not locked here and therefore not removed.
        locked_logs = _lock_all(folder, stack)
        reader = stack.enter_context(LogReader(folder))
        if not reader.paths:
            raise DataError(f"{folder}: no sample log here. Fix: name the folder of a run")
        size = sum(path.stat().st_size for path in reader.paths)
        _write_merged(reader, merged)
        # In ascending order: among failed records of a key the last file's record counts, so that file must go last.
        for path in locked_logs:
            if path != merged:
                path.unlink()
        sync(folder)
        size_left = sum(path.stat().st_size for path in log_files(folder))
        return Compaction(reader.line_count, len(reader.counting_lines), size - size_left)


def _lock_all(folder: Path, stack: ExitStack) -> list[Path]:
    """Lock every existing log and the merged log. Return the existing logs."""
    logs = log_files(folder)
    if not logs:
        return []  # there is nothing to do, so no lock file is left behind
    for path in sorted({folder / LOG_FILE, *logs}):
        try:
            stack.enter_context(log_lock(path).acquire(timeout=LOCK_WAIT, poll_interval=0.02))
        except Timeout as error:
            raise ConfigError(f"{path}: a run is writing here. Fix: wait until it has ended") from error
    return [path for path in logs if path.exists()]


def _write_merged(reader: LogReader, merged: Path) -> None:
    for leftover in merged.parent.glob(f".{merged.name}.*.partial"):
        leftover.unlink()  # a killed call left it, since this process holds the lock
    with atomic_write(merged, durable=True) as partial, partial.open("wb") as file:
        for line in reader.counting_lines.values():
            file.write(reader.line(line))


def merge(folders: Sequence[Path], out: Path) -> Compaction:
    """Merge several folders of one run (same examples, model and settings) into the run folder `out`.

    The record of a sample that counts is chosen as if all logs were in one folder, in the order of `folders`. Verdicts
    of judges are left out, since they depend on all answers together.

    Args:
        out: a new or empty folder.

    Raises:
        ConfigError: the runs differ in a condition or a question (the message names it), a run is named twice or is
            being written, or `out` is not empty.
        DataError: a folder is not a run, or its files are damaged.
    """
    if len({folder.resolve() for folder in folders}) < max(2, len(folders)):
        raise ConfigError("merge needs at least two run folders, each named once. Fix: name them")
    refuse_inside(out, *folders)
    descriptions = [read_run(folder) for folder in folders]
    for folder, description in zip(folders, descriptions, strict=True):
        if find_running_elsewhere(folder):
            raise ConfigError(f"{folder}: a run is writing here. Fix: wait until it has ended")
        _refuse_other_conditions(folders[0], descriptions[0], folder, description)
        if judge_folders(folder):
            log.warning("%s: its verdicts are left out. Judge the merged run", folder)
    with replacing_folder(out) as merged:
        merge_inputs(folders, merged)
        data = moved_data(descriptions[0].data, folders[0], out)
        write_run(merged, descriptions[0].model_copy(update={"data": data}))
        for kind in ("samples", "steps", "sessions"):
            files = (log_files(one) if kind == "samples" else sorted(one.glob(f"{kind}*.jsonl")) for one in folders)
            for number, path in enumerate(chain.from_iterable(files)):
                shutil.copyfile(path, merged / f"{kind}-{number}.jsonl")
        for name in (DECISION_FILE, AIDS_FILE):
            if source := next((one / name for one in folders if (one / name).is_file()), None):
                shutil.copyfile(source, merged / name)
        compaction = compact(merged)
        for path in merged.glob("*.lock"):
            path.unlink()  # no other process uses this folder
    return compaction


def _refuse_other_conditions(first: Path, before: RunDescription, folder: Path, now: RunDescription) -> None:
    difference = first_difference(before, now)
    if difference is None and before.repetitions != now.repetitions:
        difference = "repetitions", before.repetitions, now.repetitions
    if difference:
        name, old, new = difference
        raise ConfigError(
            f"{folder}: was run with {name} {new!r}, but {first} with {old!r}. Fix: merge only folders of one run"
        )
    for name, version in before.versions.items():
        if now.versions.get(name) != version:
            log.warning("%s: was run with %s %s, and %s with %s", folder, name, now.versions.get(name), first, version)
