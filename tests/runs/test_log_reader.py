"""All logs of a folder read together: which record of each sample counts, and which samples are finished."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.core.example import Status
from barista_bench.errors import DataError
from barista_bench.runs.log import log_reader as reader_module
from barista_bench.runs.log.log_reader import LogReader, finished_samples
from barista_bench.runs.log.sample_log import counting_records, log_files, sample_digest
from tests.runs.made_logs import folders, names, read_folder, record, reference_winners, sample_of, write, write_lines


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


def test_of_one_log_a_finished_record_counts_whatever_follows(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    failed = Status.INFRA_ERROR
    write(path, record("a", failed, "0"), record("a", text="1"), record("a", failed, "2"), record("a", text="3"))
    assert counting_records(path)["a"].text == "1"
    assert [r.text for r in read_folder(tmp_path)] == ["1"]


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
def test_any_split_over_ranks_gives_what_the_rule_says(tmp_path_factory, logs):
    folder = tmp_path_factory.mktemp("run")
    for name, records in reversed(logs.items()):
        write_lines(folder / name, records)
    expected = reference_winners(logs)
    assert list(read_folder(folder)) == expected
    finished = finished_samples(folder)
    assert len(finished) == sum(r.finished for r in expected)
    assert all((sample_digest(*sample_of(r)) in finished) == r.finished for r in expected)


@settings(deadline=None)
@given(folders(), st.data())
def test_a_truncation_anywhere_loses_only_the_lines_it_cuts(tmp_path_factory, logs, data):
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
    written = {r.key for records in logs.values() for r in records if r.finished}
    assert {r.key for r in read if r.finished} <= written


def test_a_reader_keeps_its_view_while_files_are_replaced_and_removed(tmp_path: Path) -> None:
    write_lines(tmp_path / "samples.jsonl", [record("a")])
    write_lines(tmp_path / "samples-0.jsonl", [record("b")])
    with LogReader(tmp_path) as reader:
        write_lines(tmp_path / "new", [record("x")])
        (tmp_path / "new").replace(tmp_path / "samples.jsonl")
        (tmp_path / "samples-0.jsonl").unlink()
        assert names(reader) == ["a", "b"]


def test_logs_that_are_compacted_between_listing_and_opening_are_listed_again(tmp_path, monkeypatch):
    write_lines(tmp_path / "samples-0.jsonl", [record("a")])
    listed = log_files(tmp_path)
    (tmp_path / "samples-0.jsonl").rename(tmp_path / "samples.jsonl")
    answers = iter([listed])
    monkeypatch.setattr(reader_module, "log_files", lambda folder: next(answers, None) or log_files(folder))
    assert names(read_folder(tmp_path)) == ["a"]


def test_a_log_overwritten_while_it_is_read_is_an_error_not_a_wrong_record(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    write_lines(path, [record(str(n), text="x" * 100_000) for n in range(3)])
    size = path.stat().st_size
    with LogReader(tmp_path) as reader:
        path.write_bytes(b"y" * (size - 1) + b"\n")
        with pytest.raises(DataError, match="changed in place"):
            reader.record(list(reader.winners.values())[2])


def test_records_that_are_kept_share_what_all_repetitions_say(tmp_path: Path) -> None:
    texts = {"example_id": "an example", "fingerprint": "a fingerprint", "prompt": "a prompt", "media": "some media"}
    write(tmp_path / "samples.jsonl", *(msgspec.structs.replace(record(key), **texts) for key in "ab"))
    with LogReader(tmp_path, keep=True) as reader:
        first, second = reader
    for name in texts:
        assert getattr(first, name) is getattr(second, name)
