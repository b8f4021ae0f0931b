"""Tidies a run folder's logs: one file, one line a sample, nothing that counts lost at any moment."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.atomic import replacing, sync
from barista_bench.runs.log.log_reader import LogReader
from barista_bench.runs.log.sample_log import LOCK_WAIT, LOG_FILE, log_files, log_lock


@dataclass(frozen=True, slots=True)
class Compacted:
    """Records before and after, and the bytes that the folder's logs take less."""

    before: int
    after: int
    bytes: int


def compact(folder: str | Path) -> Compacted:
    """Merge all logs of a run folder into `samples.jsonl` and drop superseded, torn and damaged lines.

    Lines are copied byte for byte, so fields of later versions survive. The merged file is complete on disk before it
    takes its place, and only then do the ranks' files go, in order. Killed anywhere in between, the folder reads as it
    did before, and the next call finishes the work.

    Raises:
        ConfigError: a run is writing to the folder.
        DataError: there is no log.
    """
    folder = Path(folder)
    merged = folder / LOG_FILE
    with ExitStack() as stack:
        # A log that another process starts from here on is not locked by us, and therefore not removed.
        locked = _lock_all(folder, stack)
        reader = stack.enter_context(LogReader(folder))
        if not reader.paths:
            raise DataError(f"{folder}: no sample log here. Remedy: name the folder of a run")
        size = sum(path.stat().st_size for path in reader.paths)
        _write(reader, merged)
        # Upwards: of the failed records of a key the last file's counts, so it must be the last to go.
        for path in locked:
            if path != merged:
                path.unlink()
        sync(folder)
        left = sum(path.stat().st_size for path in log_files(folder))
        return Compacted(reader.line_count, len(reader.winners), size - left)


def _lock_all(folder: Path, stack: ExitStack) -> list[Path]:
    """Take the lock of every log there is, and of the merged one; gives the logs that exist."""
    logs = log_files(folder)
    if not logs:
        return []  # nothing to do, and no lock file to leave behind
    for path in sorted({folder / LOG_FILE, *logs}):
        try:
            stack.enter_context(log_lock(path).acquire(timeout=LOCK_WAIT, poll_interval=0.02))
        except Timeout as error:
            raise ConfigError(f"{path}: a run is writing here. Remedy: wait until it has ended") from error
    return [path for path in logs if path.exists()]


def _write(reader: LogReader, merged: Path) -> None:
    for left in merged.parent.glob(f".{merged.name}.*.partial"):  # a killed call's: the lock is ours
        left.unlink()
    with replacing(merged, durable=True) as partial, partial.open("wb") as file:
        for line in reader.winners.values():
            file.write(reader.line(line))
