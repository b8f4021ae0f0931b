"""The sample log survives any death: whole lines count, torn ones do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barista_bench.errors import ConfigError
from barista_bench.running.log import SampleLog, SampleRecord, latest_records, read_records
from barista_bench.task import Status


def record(key: str, status: Status = Status.OK, text: str | None = "[]") -> SampleRecord:
    return SampleRecord(key=key, fingerprint="f", example_id="e", run=0, status=status, text=text)


def write(path: Path, *records: SampleRecord) -> None:
    with SampleLog(path) as log:
        for item in records:
            log.append(item)


def test_records_are_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "run/samples.jsonl"
    write(path, record("a"), record("b", Status.TRUNCATED))
    write(path, record("c"))
    assert list(read_records(path)) == [record("a"), record("b", Status.TRUNCATED), record("c")]


def test_a_log_cut_at_any_byte_keeps_every_whole_line_and_goes_on(tmp_path: Path) -> None:
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


def test_the_last_record_of_a_key_counts(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    write(path, record("a", Status.INFRA_ERROR, None), record("b"), record("a"))
    assert latest_records(path)["a"].status is Status.OK
    assert not record("a", Status.INFRA_ERROR).finished


@pytest.mark.parametrize("line", [b"{}", b"[]", b"null", b"{", b"\xff\xfe", b'{"key": "x", "surprise": 1}'])
def test_a_damaged_line_costs_its_sample_alone_and_is_named(
    tmp_path: Path, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "samples.jsonl"
    write(path, record("a"), record("b"))
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([first, line, second]) + b"\n")
    assert [r.key for r in read_records(path)] == ["a", "b"]
    assert "line 2" in caplog.text


def test_an_overlong_line_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barista_bench.running.log.MAX_LINE", 500)
    path = tmp_path / "samples.jsonl"
    write(path, record("a"), record("b", text="x" * 2000), record("c"))
    assert [r.key for r in read_records(path)] == ["a", "c"]


def test_two_writers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    with SampleLog(path), pytest.raises(ConfigError, match="another run"), SampleLog(path):
        pass


@given(st.text())
def test_any_text_of_a_model_survives(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("log") / "samples.jsonl"
    write(path, record("a", text=text))
    assert [r.text for r in read_records(path)] == [text]


def test_lone_surrogates_do_not_break_the_log(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    write(path, record("a", text="x\ud800y"), record("b"))
    assert [r.key for r in read_records(path)] == ["a", "b"]
