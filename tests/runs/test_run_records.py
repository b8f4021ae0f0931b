"""A run writes down its questions once, and one rule says which records count, for resuming, scoring and comparing."""

import json
import logging
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.core.prompt import Prompt
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.diff import diff
from barista_bench.runs.log import inputs
from barista_bench.runs.log.inputs import (
    INPUTS_FILE,
    UNREADABLE,
    AskedInput,
    claim_inputs,
    digest,
    read_inputs,
    sample_keys,
)
from barista_bench.runs.merging import compact
from barista_bench.runs.score.samples import read_samples
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.runs.made_logs import change_lines

EXAMPLES, RUNS = 4, 2
SAMPLES = EXAMPLES * RUNS


@pytest.fixture(scope="session")
def a_run(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("owned") / "run"
    again(dataset, out)
    return out


@pytest.fixture
def folder(a_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(a_run, tmp_path / "run"))


def again(dataset: Path, out: Path) -> int:
    """How many samples a start asks."""
    return run(dataset, out, task="relations", model="oracle", repetitions=RUNS, limit=EXAMPLES).asked


def only_first(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    lines = iter(range(SAMPLES))
    return lambda line: change(line) if next(lines) == 0 else line


def damage_first(path: Path, name: str) -> None:
    """Put another letter or digit into a field of the first record, as a flipped bit may, without a new checksum."""
    first, *rest = path.read_bytes().splitlines(keepends=True)
    start = first.index(b'"%s":' % name.encode()) + len(name) + 3
    start += first[start : start + 1] == b'"'
    changed = first[:start] + (b"7" if first[start : start + 1] != b"7" else b"8") + first[start + 1 :]
    assert json.loads(changed) != json.loads(first)
    path.write_bytes(b"".join([changed, *rest]))


def counted(folder: Path) -> tuple[int, int]:
    """Samples that scoring takes, and that comparing takes."""
    return len(read_samples(folder).samples), diff(folder, folder).common


@pytest.mark.parametrize("name", ["key", "fingerprint", "example_id", "repetition", "text", "checksum", "prompt"])
def test_a_byte_that_was_overwritten_costs_one_sample_everywhere_and_it_is_asked_again(
    dataset: Path, folder: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = score(folder).results
    damage_first(folder / "samples.jsonl", name)
    assert counted(folder) == (SAMPLES - 1, SAMPLES - 1)
    assert "line 1 is damaged (of " in caplog.text
    assert again(dataset, folder) == 1
    assert counted(folder) == (SAMPLES, SAMPLES)
    assert score(folder).results.metrics == before.metrics
    assert compact(folder).after == SAMPLES
    assert counted(folder) == (SAMPLES, SAMPLES)
    assert again(dataset, folder) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "0" * 64},
        {"fingerprint": "0" * 64},
        {"example_id": "nobody"},
        {"repetition": RUNS},
        {"repetition": 10**30},
    ],
)
def test_a_record_of_something_else_is_left_out_everywhere_and_its_sample_is_asked_again(
    dataset: Path, folder: Path, wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    change_lines(folder / "samples.jsonl", only_first(lambda line: line | wrong))
    assert counted(folder) == (SAMPLES - 1, SAMPLES - 1)
    assert diff(folder, folder).left_out == (1, 1)
    assert "1 records are not of this run: left out" in caplog.text
    assert again(dataset, folder) == 1
    assert counted(folder) == (SAMPLES, SAMPLES)
    compact(folder)
    assert counted(folder) == (SAMPLES, SAMPLES)
    assert diff(folder, folder).left_out == (1, 1), "tidying deletes no finished record, not even one of another run"
    assert again(dataset, folder) == 0


def test_a_smaller_number_of_runs_loses_no_answer_when_the_logs_are_tidied(dataset: Path, folder: Path) -> None:
    run(dataset, folder, task="relations", model="oracle", repetitions=1, limit=EXAMPLES)
    assert counted(folder) == (EXAMPLES, EXAMPLES)
    compact(folder)
    assert again(dataset, folder) == 0


@pytest.mark.full
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    position=st.floats(0, 1, exclude_max=True),
    over=st.binary(min_size=1, max_size=40),
    file=st.sampled_from(["samples", "inputs"]),
)
def test_bytes_overwritten_anywhere_never_hold_a_run_unfinished(
    dataset: Path, a_run: Path, tmp_path_factory: pytest.TempPathFactory, position: float, over: bytes, file: str
) -> None:
    folder = Path(shutil.copytree(a_run, tmp_path_factory.mktemp("damaged") / "run"))
    path = folder / f"{file}.jsonl"
    whole = bytearray(path.read_bytes())
    start = int(position * len(whole))
    whole[start : start + len(over)] = over
    path.write_bytes(whole)
    before = counted(folder)[0] if file == "samples" else SAMPLES
    assert again(dataset, folder) == SAMPLES - before
    assert counted(folder) == (SAMPLES, SAMPLES)
    assert score(folder).results.coverage.is_complete
    assert {s.record.text for s in read_samples(folder).samples} == {s.record.text for s in read_samples(a_run).samples}


def test_a_run_with_lost_inputs_is_not_scored_but_continues(dataset: Path, folder: Path) -> None:
    (folder / "inputs.jsonl").unlink()
    for use in (score, lambda folder: diff(folder, folder)):
        with pytest.raises(DataError, match=r"inputs\.jsonl: missing.*Fix: start the run again"):
            use(folder)
    assert again(dataset, folder) == 0
    assert counted(folder) == (SAMPLES, SAMPLES)


def test_a_log_of_another_version_is_refused_before_anything_is_written(dataset: Path, folder: Path) -> None:
    lines = (folder / "samples.jsonl").read_bytes().splitlines()
    (folder / "samples.jsonl").unlink()
    bodies = [line.rpartition(b',"checksum":"')[0].replace(b'{"log":2', b'{"log":3', 1) for line in lines]
    later = b"".join(body + b',"checksum":"%08x"}\n' % zlib.crc32(body) for body in bodies)
    (folder / "samples-0.jsonl").write_bytes(later)
    described = (folder / "run.json").read_bytes()
    for use in (score, compact, lambda folder: again(dataset, folder)):
        with pytest.raises(DataError, match=r"is a log of version 3.*Fix: start again with another --out"):
            use(folder)
    assert (folder / "run.json").read_bytes() == described


def claim(folder: Path, **asked: str | None) -> list[AskedInput]:
    """Claim these fingerprints by example id; None for media that cannot be read."""
    examples = SimpleNamespace(examples=[SimpleNamespace(example_id=name) for name in asked])
    entries = [
        AskedInput(print_ or "x", "prompt", "media" if print_ else UNREADABLE, Prompt("", ()))
        for print_ in asked.values()
    ]
    return claim_inputs(folder, examples, entries)


def test_questions_are_written_once_and_another_order_writes_the_same_silently(tmp_path, caplog):
    claim(tmp_path, a="1", b="2")
    written = (tmp_path / INPUTS_FILE).read_bytes()
    claim(tmp_path, b="2", a="1")
    assert (tmp_path / INPUTS_FILE).read_bytes() == written
    assert not caplog.messages
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


def test_fingerprints_of_media_are_added_later_and_kept(tmp_path: Path) -> None:
    claim(tmp_path, a="1", b=None)
    assert read_inputs(tmp_path) == {"a": "1", "b": "x"}
    assert [claimed.fingerprint for claimed in claim(tmp_path, a=None, b="2")] == ["1", "2"]
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


def test_an_example_that_asks_something_else_is_refused_by_name(tmp_path: Path) -> None:
    claim(tmp_path, a="1", b="2")
    with pytest.raises(ConfigError, match=r"b has other images than when this run began\. Fix: "):
        claim(tmp_path, a="1", b="3")
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "damage", [b"{", b"[]\n", b'{"example_id": "b"}\n', b"\xff\n", b'{"example_id": "b", "fingerprint": "2"}\n']
)
def test_a_damaged_file_is_written_again_with_a_warning_that_names_file_and_line(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    claim(tmp_path, a="1")
    path = tmp_path / INPUTS_FILE
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(DataError, match="line 2"):
        read_inputs(tmp_path)
    with caplog.at_level(logging.WARNING):
        claim(tmp_path, a="1", b="2")
    (warning,) = caplog.messages
    assert warning.startswith(f"{path}: line 2: ")
    assert warning.endswith("It is written again from the current inputs")
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


def test_a_file_that_is_too_large_is_not_read_but_written_again_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    claim(tmp_path, a="1")
    monkeypatch.setattr(inputs, "MAX_BYTES", 10)
    with caplog.at_level(logging.WARNING):
        claim(tmp_path, a="1")
    assert "is larger than 10 bytes. It is written again" in caplog.text


def test_an_overwritten_fingerprint_is_reported_as_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    claim(tmp_path, a="1", b="2")
    path = tmp_path / INPUTS_FILE
    path.write_bytes(path.read_bytes().replace(b'"fingerprint":"2"', b'"fingerprint":"3"'))
    with pytest.raises(DataError, match=r"line 2: is damaged .*Fix: start the run again"):
        read_inputs(tmp_path)
    claim(tmp_path, a="1", b="2")
    assert "written again" in caplog.text
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


@given(st.text(), st.text(), st.dictionaries(st.text(), st.none() | st.floats() | st.text()), st.integers(0, 2**70))
def test_a_key_is_the_same_however_its_settings_are_encoded(
    example: str, fingerprint: str, values: dict[str, Any], run: int
) -> None:
    key = sample_keys({"name": values}, values)(example, fingerprint, run)
    assert key == digest(example, fingerprint, {"name": values}, values, run)
