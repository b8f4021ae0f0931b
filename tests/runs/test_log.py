"""The sample log survives any death: whole lines count, torn ones do not. Several logs of a folder say one thing."""

import itertools
import json
import os
import re
import signal
import sys
import time
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.errors import ConfigError, DataError
from barista_bench.models.base import TokenLogprob
from barista_bench.runs.log import sample_log as log_module
from barista_bench.runs.log.sample_log import (
    LoggedToken,
    SampleLog,
    find_running_elsewhere,
    log_files,
    logged_logprobs,
    read_records,
)
from barista_bench.runs.log_reader import finished_samples
from barista_bench.runs.merging import compact
from tests.processes import PROCESSES
from tests.runs.made_logs import change_lines, digest_of, names, read_folder, record, write, write_lines


def test_a_log_cut_at_any_byte_keeps_every_whole_line_and_continues(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    write(path, record("a", text="ä" * 10), record("b"))
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    for end in range(len(data)):
        path.write_bytes(data[:end])
        whole = [] if end < first else ["a"]
        assert [r.key for r in read_records(path)] == whole
        write(path, record("n"))
        assert [r.key for r in read_records(path)] == [*whole, "n"]


def test_a_torn_line_longer_than_a_block_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    write(path, record("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * 200_000)
    write(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b"null", b"{", b"\xff\xfe", b'{"key": "x", "surprise": 1}', b"[" * 9999]
)
def test_a_damaged_line_costs_only_its_sample_and_is_named(
    tmp_path: Path, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "samples.jsonl"
    write(path, record("a"), record("b"))
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, line, second]) + b"\n")
    assert [r.key for r in read_records(path)] == ["a", "b"]
    assert "line 2" in caplog.text


@pytest.mark.parametrize("text", [b'"\xff"', b"12", b'["x"]', b'"\x00"', b'"B"', b'"AA"', b'""', b"null"])
def test_a_sample_with_a_damaged_text_is_not_finished(tmp_path: Path, text: bytes) -> None:
    write(tmp_path / "samples.jsonl", record("a", text="A"), record("b"))
    path = tmp_path / "samples.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"A"', text, 1))
    assert [digest_of(key) in finished_samples(tmp_path) for key in "ab"] == [False, True]
    assert names(read_folder(tmp_path)) == ["b"]


def test_many_damaged_lines_are_counted_instead_of_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "samples.jsonl").write_bytes(b"x\n" * 1000)
    assert not list(read_folder(tmp_path))
    *named, counted = caplog.messages
    assert [re.findall(r": line (\d+)", message) for message in named] == [[str(number)] for number in range(1, 6)]
    assert "1000 lines in all" in counted


def test_an_overlong_line_is_one_damaged_line_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_module, "MAX_LINE", 500)
    path = tmp_path / "samples.jsonl"
    write(path, record("a"), record("b", text="x" * 2000), record("c"))
    assert names(read_records(path)) == ["a", "c"]
    assert [re.findall(r": line (\d+)", message) for message in caplog.messages] == [["2"]]
    assert names(read_folder(tmp_path)) == ["a", "c"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_bytes_overwritten_anywhere_cost_their_lines_and_never_change_a_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    written = [record("a", text="wash the cup"), record("b", text="0.5"), record("c")]
    lines = write_lines(folder / "samples.jsonl", written)
    whole = bytearray(b"".join(lines))
    start = data.draw(st.integers(0, len(whole) - 1))
    over = data.draw(st.binary(min_size=1, max_size=9))[: len(whole) - start]
    ends = list(itertools.accumulate(map(len, lines)))
    same = [bytes(whole[start : start + len(over)]) == over] * 3
    # A line begins with the end of the line before it; without it the two would be one.
    begins = [max(0, end - len(line) - 1) for end, line in zip(ends, lines, strict=True)]
    hit = [start < end and start + len(over) > begin for begin, end in zip(begins, ends, strict=True)]
    whole[start : start + len(over)] = over
    (folder / "samples.jsonl").write_bytes(whole)
    records = list(read_folder(folder))
    assert all(record in written for record in records)
    assert {record.key for record in records} >= {r.key for r, touched in zip(written, hit, strict=True) if not touched}
    assert len(records) == 3 - (0 if same[0] else sum(record not in records for record in written))
    finished = finished_samples(folder)
    assert [digest_of(record.key) in finished for record in written] == [record in records for record in written]


@pytest.mark.parametrize("lost", ["checksum", "log"])
@pytest.mark.parametrize("position", [0, 1])
def test_a_line_without_its_checksum_or_version_is_damaged_and_its_sample_named(
    tmp_path: Path, lost: str, position: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "samples.jsonl"
    lines = write_lines(path, [record("a"), record("b")])
    lines[position] = re.sub(rb'"%s":("[^"]*"|2),?' % lost.encode(), b"", lines[position]).replace(b",}", b"}")
    assert lost not in json.loads(lines[position])
    path.write_bytes(b"".join(lines))
    assert names(read_folder(tmp_path)) == ["ab"[1 - position]]
    assert f"line {position + 1} is damaged (of e repetition 0?)" in caplog.text


@pytest.mark.parametrize("byte", [b" ", b"\0", b"}", b"\xff", b'"'])
def test_a_damaged_end_of_a_line_does_not_cost_the_record_after_it(tmp_path: Path, byte: bytes) -> None:
    path = tmp_path / "samples.jsonl"
    written = [record("a"), record("b", text='{"log":2,'), record("c")]
    first, *others = write_lines(path, written)
    path.write_bytes(first[:-1] + byte + b"".join(others))
    assert list(read_records(path)) == list(read_folder(tmp_path)) == written[1:]
    assert [digest_of(key) in finished_samples(tmp_path) for key in "abc"] == [False, True, True]
    compact(tmp_path)
    assert path.read_bytes() == b"".join(others)


def test_a_first_line_damaged_twice_does_not_hide_the_other_lines(tmp_path: Path) -> None:
    first, other = write_lines(tmp_path / "samples.jsonl", [record("a"), record("b")])
    damaged = first.replace(b'"log"', b'"lag"').replace(b'"checksum"', b'"checksun"')
    (tmp_path / "samples.jsonl").write_bytes(damaged + other)
    assert names(read_folder(tmp_path)) == ["b"]


def test_every_reader_and_writer_refuses_a_log_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "samples.jsonl"
    body = write_lines(path, [record("a")])[0].rpartition(b',"checksum":"')[0].replace(b'"log":2', b'"log":3')
    path.write_bytes(body + b',"checksum":"%08x"}\n' % zlib.crc32(body))
    before = path.read_bytes()
    for use in (finished_samples, compact, lambda folder: list(read_folder(folder)), lambda _: write(path)):
        with pytest.raises(DataError, match=r"samples\.jsonl: is a log of version 3, .* Fix: .*--out") as refused:
            use(tmp_path)
    assert refused.traceback  # which keeps the file open, so that only its end freed the lock
    monkeypatch.setattr(log_module.time, "sleep", None)  # nothing to wait for
    assert not find_running_elsewhere(tmp_path)
    assert path.read_bytes() == before


def test_fields_of_a_later_version_do_not_hide_a_record(tmp_path: Path) -> None:
    counted = msgspec.structs.replace(record("a"), input_tokens=0, output_tokens=2**53)  # the least and the most
    write_lines(tmp_path / "samples.jsonl", [counted])
    change_lines(tmp_path / "samples.jsonl", lambda line: line | {"later": [1]})
    assert list(read_folder(tmp_path)) == [counted]


@given(st.text(), st.text())
def test_any_text_of_a_model_survives(tmp_path_factory: pytest.TempPathFactory, text: str, reasoning: str) -> None:
    path = tmp_path_factory.mktemp("log") / "samples.jsonl"
    whole = msgspec.structs.replace(record("a", text=text), reasoning=reasoning)
    write(path, whole)
    assert list(read_records(path)) == [whole]


def test_lone_surrogates_do_not_break_the_log(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    write(path, record("a", text="x\ud800y"), record("b"))
    assert [r.text for r in read_records(path)] == ["x?y", "[]"]


def test_log_probabilities_are_logged_as_arrays_and_come_back(tmp_path: Path) -> None:
    tokens = (TokenLogprob("A", -0.25, (("A", -0.25), ("B", float("-inf")))), TokenLogprob("\n", float("-inf")))
    path = tmp_path / "samples.jsonl"
    write(path, msgspec.structs.replace(record("a"), logprobs=logged_logprobs(tokens)))
    [line] = path.read_text().splitlines()
    assert json.loads(line)["logprobs"] == [["A", -0.25, [["A", -0.25], ["B", None]]], ["\n", None, []]]
    [read] = read_records(path)
    assert read.logprobs == (LoggedToken("A", -0.25, (("A", -0.25), ("B", None))), LoggedToken("\n", None))
    assert logged_logprobs(None) is None


@pytest.mark.full
def test_two_writers_of_one_log_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    with SampleLog(path), pytest.raises(ConfigError, match="another run"), SampleLog(path):
        pass


def write_slowly(path: str, keys: list[str], started: object, go_on: object) -> None:
    with SampleLog(Path(path), launch=Path(path).name) as log:
        started.set()  # type: ignore[attr-defined]
        for key in keys:
            log.append(record(key, text="x" * 1000))
        go_on.wait(60)  # type: ignore[attr-defined]


@pytest.mark.full
def test_two_processes_write_at_once_and_a_third_reads(tmp_path: Path) -> None:
    keys = [[f"{rank}-{n}" for n in range(150)] for rank in range(2)]
    events = [(PROCESSES.Event(), PROCESSES.Event()) for _ in keys]
    writers = [
        PROCESSES.Process(
            target=write_slowly, args=(str(tmp_path / f"samples-{rank}.jsonl"), keys[rank], *events[rank])
        )
        for rank in range(2)
    ]
    for writer in writers:
        writer.start()
    seen: set[str] = set()
    until = time.monotonic() + 60
    while len(seen) < 300 and time.monotonic() < until:
        now = {r.key for r in read_folder(tmp_path)}
        assert seen <= now
        seen = now
    assert seen == {key for some in keys for key in some}
    assert all(event.wait(60) for event, _ in events)
    assert find_running_elsewhere(tmp_path) == ["samples-0.jsonl", "samples-1.jsonl"]
    assert find_running_elsewhere(tmp_path, launch="samples-0.jsonl") == ["samples-1.jsonl"]
    assert find_running_elsewhere(tmp_path, launch="another") == ["samples-0.jsonl", "samples-1.jsonl"]
    with pytest.raises(ConfigError, match="another run"), SampleLog(tmp_path / "samples-1.jsonl"):
        pass
    events[0][1].set()
    writers[0].join(60)
    assert find_running_elsewhere(tmp_path) == ["samples-1.jsonl"]
    os.kill(writers[1].pid, signal.SIGKILL)
    writers[1].join(60)
    assert find_running_elsewhere(tmp_path) == []
    write(tmp_path / "samples-1.jsonl", record("after"))
    assert len(list(read_folder(tmp_path))) == 301


@pytest.mark.full
def test_looking_for_runs_leaves_no_files_and_looks_at_no_foreign_locks(tmp_path: Path) -> None:
    assert find_running_elsewhere(tmp_path / "missing") == []
    with log_module.log_lock(tmp_path / "samples-x.jsonl"):
        assert find_running_elsewhere(tmp_path) == []
    assert not log_files(tmp_path)
    # A log whose lock is held, and that says no launch, is another's.
    with log_module.log_lock(tmp_path / "samples.jsonl"):
        assert find_running_elsewhere(tmp_path, launch="ours") == ["samples.jsonl"]


def look(folder: str, go_on: object, answers: object) -> None:
    looked_up = []
    while not looked_up or go_on.is_set():  # type: ignore[attr-defined]
        looked_up.append(tuple(find_running_elsewhere(folder)))
    answers.put(set(looked_up))  # type: ignore[attr-defined]


@pytest.mark.full
def test_readers_do_not_block_writers_or_other_readers(tmp_path: Path) -> None:
    write(tmp_path / "samples-0.jsonl")
    write(tmp_path / "samples-1.jsonl")
    answers, go_on = PROCESSES.Queue(), PROCESSES.Event()
    go_on.set()
    lookers = [PROCESSES.Process(target=look, args=(str(tmp_path), go_on, answers)) for _ in range(2)]
    for looker in lookers:
        looker.start()
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        write(tmp_path / "samples-0.jsonl")
        time.sleep(0.005)
    go_on.clear()
    looked_up = set().union(*(answers.get(timeout=60) for _ in lookers))
    for looker in lookers:
        looker.join(60)
    assert () in looked_up
    assert all("samples-1.jsonl" not in names for names in looked_up)


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.full
def test_the_lock_of_a_killed_writer_is_free_while_its_child_lives(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    reading, writing = os.pipe()
    owner = os.fork()
    if owner == 0:
        with SampleLog(path):
            if os.fork() == 0:  # as a data loader's worker is
                time.sleep(30)
                os._exit(0)
            os.write(writing, b"x")
            time.sleep(30)
        os._exit(0)
    assert os.read(reading, 1) == b"x"
    with pytest.raises(ConfigError, match="another run"), SampleLog(path):
        pass
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    write(path, record("a"))
    assert names(read_folder(tmp_path)) == ["a"]
