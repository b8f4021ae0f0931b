"""All logs of a folder read together: which record of each sample counts. Compaction changes none, killed or not."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.core.status import Status
from barista_bench.errors import ConfigError, DataError
from barista_bench.files import writing
from barista_bench.runs import log_reader, merging
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, log_files, sample_digest, seal
from barista_bench.runs.log_reader import LogReader, finished_samples
from barista_bench.runs.merging import Compaction, compact
from tests.kills import in_child
from tests.runs.made_logs import (
    content_of,
    folders,
    names,
    read_folder,
    record,
    reference_winners,
    sample_of,
    write,
    write_lines,
)


def test_only_logs_of_writers_are_read(tmp_path: Path) -> None:
    others = [f"samples-{part}.jsonl" for part in ("01", "x", "", "1234567", "old")]
    others += ["samples-1.jsonl.bak", "mysamples.jsonl", "sessions.jsonl", "samples.jsonl.partial"]
    for name in ("samples-2.jsonl", "samples-10.jsonl", "samples.jsonl", "samples-0.jsonl", *others):
        write_lines(tmp_path / name, [record(name)])
    (tmp_path / "samples-3.jsonl").mkdir()
    (tmp_path / "samples-4.jsonl").symlink_to(tmp_path / "nowhere")
    log_names = ["samples.jsonl", "samples-0.jsonl", "samples-2.jsonl", "samples-10.jsonl"]
    assert [path.name for path in log_files(tmp_path)] == log_names
    assert names(read_folder(tmp_path)) == log_names
    assert log_files(tmp_path / "missing") == []
    compact(tmp_path)
    assert all((tmp_path / name).exists() for name in others)


def test_a_second_answer_is_warned_of_but_a_copy_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_lines(tmp_path / "samples.jsonl", [record("a"), record("b")])
    write_lines(tmp_path / "samples-0.jsonl", [record("b"), record("a")])
    assert names(read_folder(tmp_path)) == ["a", "b"]
    assert not caplog.records
    write_lines(tmp_path / "samples-1.jsonl", [record("a", text="other")])
    assert [r.text for r in read_folder(tmp_path)] == ["[]", "[]"]
    assert "1 finished records are of the sample of an earlier one" in caplog.text


@settings(deadline=None)
@given(folders())
def test_any_split_over_ranks_reads_as_the_rule_says_tidied_or_not(
    tmp_path_factory: pytest.TempPathFactory, logs: dict[str, list[SampleRecord]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    for name, records in reversed(logs.items()):
        write_lines(folder / name, records)
    expected = reference_winners(logs)
    assert list(read_folder(folder)) == expected
    finished = finished_samples(folder)
    assert len(finished) == sum(r.is_finished for r in expected)
    assert all((sample_digest(*sample_of(r)) in finished) == r.is_finished for r in expected)
    counts = compact(folder)
    assert list(read_folder(folder)) == expected
    assert (counts.before, counts.after) == (sum(map(len, logs.values())), len(expected))
    assert (folder / "samples.jsonl").read_bytes().count(b"\n") == len(expected)


@settings(deadline=None)
@given(folders(), st.data())
def test_a_truncation_anywhere_loses_only_the_lines_it_cuts(
    tmp_path_factory: pytest.TempPathFactory, logs: dict[str, list[SampleRecord]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    kept = {}
    for name, records in logs.items():
        lines = write_lines(folder / name, records)
        size = sum(map(len, lines))
        cut = data.draw(st.integers(0, size), label=name)
        os.truncate(folder / name, cut)
        whole = sum(sum(map(len, lines[: number + 1])) <= cut for number in range(len(lines)))
        kept[name] = records[:whole]
    read = list(read_folder(folder))
    assert read == reference_winners(kept)
    written = {r.key for records in logs.values() for r in records if r.is_finished}
    assert {r.key for r in read if r.is_finished} <= written


def test_a_reader_keeps_its_view_while_files_are_replaced_and_removed(tmp_path: Path) -> None:
    write_lines(tmp_path / "samples.jsonl", [record("a")])
    write_lines(tmp_path / "samples-0.jsonl", [record("b")])
    with LogReader(tmp_path) as reader:
        write_lines(tmp_path / "new", [record("x")])
        (tmp_path / "new").replace(tmp_path / "samples.jsonl")
        (tmp_path / "samples-0.jsonl").unlink()
        assert names(reader) == ["a", "b"]


def test_logs_that_are_compacted_between_listing_and_opening_are_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "samples-0.jsonl", [record("a")])
    listed = log_files(tmp_path)
    (tmp_path / "samples-0.jsonl").rename(tmp_path / "samples.jsonl")
    answers = iter([listed])
    monkeypatch.setattr(log_reader, "log_files", lambda folder: next(answers, None) or log_files(folder))
    assert names(read_folder(tmp_path)) == ["a"]


def test_a_log_overwritten_while_it_is_read_is_an_error_not_a_wrong_record(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    write_lines(path, [record(str(n), text="x" * 100_000) for n in range(3)])
    size = path.stat().st_size
    with LogReader(tmp_path) as reader:
        path.write_bytes(b"y" * (size - 1) + b"\n")
        with pytest.raises(DataError, match="changed in place"):
            reader.record(list(reader.counting_lines.values())[2])


def test_records_that_are_kept_share_what_all_repetitions_say(tmp_path: Path) -> None:
    texts = {"example_id": "an example", "fingerprint": "a fingerprint", "prompt": "a prompt", "media": "some media"}
    write(tmp_path / "samples.jsonl", *(msgspec.structs.replace(record(key), **texts) for key in "ab"))
    with LogReader(tmp_path, keep=True) as reader:
        first, second = reader
    for name in texts:
        assert getattr(first, name) is getattr(second, name)


FAILED = Status.INFRA_ERROR
LOGS = {
    "samples.jsonl": [record("a"), record("b", FAILED, "old")],
    "samples-0.jsonl": [record("c"), record("b", text="new"), record("d", FAILED, "first"), record("a", text="second")],
    "samples-1.jsonl": [record("e"), record("d", FAILED, "last")],
    "samples-10.jsonl": [record("f"), record("g", FAILED, "x")],
}
COUNTING = [("a", "[]"), ("c", "[]"), ("b", "new"), ("e", "[]"), ("d", "last"), ("f", "[]"), ("g", "x")]


def make(folder: Path) -> Path:
    for name, records in LOGS.items():
        write_lines(folder / name, records)
    return folder


def content(folder: Path) -> list[tuple[str, str | None]]:
    return [(record.key, record.text) for record in read_folder(folder)]


def test_all_logs_merge_into_one_that_reads_the_same_and_stays_unchanged(tmp_path: Path) -> None:
    size = sum(path.stat().st_size for path in log_files(make(tmp_path)))
    assert content(tmp_path) == COUNTING
    counts = compact(tmp_path)
    assert [path.name for path in log_files(tmp_path)] == ["samples.jsonl"]
    assert content(tmp_path) == COUNTING
    assert counts == Compaction(10, 7, size - (tmp_path / "samples.jsonl").stat().st_size)
    assert not list(tmp_path.glob("*.partial"))
    before = (tmp_path / "samples.jsonl").read_bytes()
    assert compact(tmp_path) == Compaction(7, 7, 0)
    assert (tmp_path / "samples.jsonl").read_bytes() == before


def test_torn_and_damaged_lines_go_and_the_rest_stays_byte_for_byte(tmp_path: Path) -> None:
    [line] = write_lines(tmp_path / "samples-0.jsonl", [record("a")])
    later = seal(b'{"of_a_later_version": [1,  2],' + content_of(json.loads(line))[1:])
    (tmp_path / "samples-0.jsonl").write_bytes(b"\xff\n{}\n" + later + line[:20])
    assert compact(tmp_path) == Compaction(1, 1, 5 + 20)
    assert (tmp_path / "samples.jsonl").read_bytes() == later


@pytest.mark.full
@pytest.mark.parametrize("name", ["samples.jsonl", "samples-0.jsonl", "samples-10.jsonl"])
def test_it_is_refused_while_a_run_writes(tmp_path: Path, name: str) -> None:
    make(tmp_path)
    before = {path.name: path.read_bytes() for path in log_files(tmp_path)}
    with SampleLog(tmp_path / name) as log:
        log.append(record("live"))
        before[name] = (tmp_path / name).read_bytes()
        with pytest.raises(ConfigError, match="a run is writing"):
            compact(tmp_path)
    assert {path.name: path.read_bytes() for path in log_files(tmp_path)} == before
    compact(tmp_path)
    assert sample_digest("live", "f", "e", 0) in finished_samples(tmp_path)


def test_a_log_that_a_run_starts_during_the_work_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    lock_all = merging._lock_all

    def start_after_locking(*arguments: object) -> object:
        locked = lock_all(*arguments)  # type: ignore[arg-type]
        with SampleLog(tmp_path / "samples-3.jsonl") as log:
            log.append(record("started"))
        return locked

    monkeypatch.setattr(merging, "_lock_all", start_after_locking)
    compact(tmp_path)
    assert (tmp_path / "samples-3.jsonl").exists()
    assert sample_digest("started", "f", "e", 0) in finished_samples(tmp_path)


def test_a_full_disk_leaves_everything_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        compact(tmp_path)
    assert content(tmp_path) == COUNTING
    assert sorted(LOGS) == sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock")


def test_a_folder_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no sample log here"):
        compact(tmp_path)
    assert not list(tmp_path.iterdir())


def traced(work: Callable[[Path], object], folder: Path, before_line: Callable[[int], object]) -> None:
    """Do the work; `before_line` gets the number of each executed line of its modules."""
    executed = 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal executed
        if frame.f_code.co_filename not in (log_reader.__file__, merging.__file__, writing.__file__):
            return None
        if event == "line":
            executed += 1
            before_line(executed)
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work(folder)
    finally:
        sys.settrace(None)


def first_lines(work: Callable[[Path], object], folder: Path) -> list[int]:
    """The first executed line at each state of the folder's files: kills at lines in between leave the same bytes."""
    first: dict[tuple[tuple[str, bytes], ...], int] = {}

    def note(number: int) -> None:
        first.setdefault(tuple(sorted((path.name, path.read_bytes()) for path in folder.iterdir())), number)

    traced(work, folder, note)
    return sorted(first.values())


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_kill_at_any_line_loses_nothing_and_the_next_call_finishes(tmp_path: Path) -> None:
    lines, states = first_lines(compact, make(tmp_path / "whole")), set()
    assert len(lines) > 8  # locks, the merged file as it grows and in place, each removal
    for line in lines:
        folder = make(tmp_path / str(line))

        def kill(number: int, line: int = line) -> None:
            if number == line:
                os.kill(os.getpid(), signal.SIGKILL)

        assert in_child(lambda folder=folder, kill=kill: traced(compact, folder, kill)) == -signal.SIGKILL
        states.add(tuple(path.name for path in log_files(folder)))
        assert sorted(content(folder)) == sorted(COUNTING)
        with SampleLog(folder / "samples-1.jsonl") as log:  # the run continues
            log.append(record("g", text="retried"))
        compact(folder)
        expected = [entry for entry in COUNTING if entry[0] != "g"] + [("g", "retried")]
        assert sorted(content(folder)) == sorted(expected)
        assert [path.name for path in log_files(folder)] == ["samples.jsonl"]
        assert not list(folder.glob("*.partial"))
    # It was killed before the merged file took its place, and after each removal.
    every = ("samples.jsonl", "samples-0.jsonl", "samples-1.jsonl", "samples-10.jsonl")
    assert states == {every, (every[0], *every[2:]), (every[0], every[3]), (every[0],)}


def test_after_a_kill_only_copies_remain_so_no_warning_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("samples-0.jsonl", "samples-1.jsonl"):
        write_lines(tmp_path / name, [record(name)])

    unlink = Path.unlink

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".jsonl":
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        compact(tmp_path)
    assert len(log_files(tmp_path)) == 3
    assert names(read_folder(tmp_path)) == ["samples-0.jsonl", "samples-1.jsonl"]
    assert not caplog.records
