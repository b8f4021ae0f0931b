"""What a run asks is written down once; another dataset is refused, and a damaged file is written anew, loudly."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from barista_bench.core.prompt import Prompt
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.log import asked
from barista_bench.runs.log.asked import (
    INPUTS_FILE,
    UNREADABLE,
    AskedInput,
    claim_inputs,
    digest,
    read_inputs,
    sample_keys,
)


def claim(folder: Path, **asked: str | None) -> list[AskedInput]:
    """Claim these fingerprints by example id; None for media that cannot be read."""
    examples = SimpleNamespace(examples=[SimpleNamespace(example_id=name) for name in asked])
    entries = [
        AskedInput(print_ or "x", "prompt", "media" if print_ else UNREADABLE, Prompt("", ()))
        for print_ in asked.values()
    ]
    return claim_inputs(folder, examples, entries)


def test_what_is_asked_is_written_once_and_another_order_writes_the_same_without_a_word(tmp_path, caplog):
    claim(tmp_path, a="1", b="2")
    written = (tmp_path / INPUTS_FILE).read_bytes()
    claim(tmp_path, b="2", a="1")
    assert (tmp_path / INPUTS_FILE).read_bytes() == written
    assert not caplog.messages
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


def test_media_that_became_readable_are_added_and_those_that_went_away_are_remembered(tmp_path: Path) -> None:
    claim(tmp_path, a="1", b=None)
    assert read_inputs(tmp_path) == {"a": "1", "b": "x"}
    claim(tmp_path, a=None, b="2")
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


def test_an_example_that_asks_something_else_is_refused_by_name(tmp_path: Path) -> None:
    claim(tmp_path, a="1", b="2")
    with pytest.raises(ConfigError, match=r"b has other images than when this run began\. Remedy: "):
        claim(tmp_path, a="1", b="3")
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    "damage", [b"{", b"[]\n", b'{"example_id": "b"}\n', b"\xff\n", b'{"example_id": "b", "fingerprint": "2"}\n']
)
def test_a_damaged_file_is_written_anew_with_a_warning_that_names_file_and_line(damage, tmp_path, caplog):
    claim(tmp_path, a="1")
    path = tmp_path / INPUTS_FILE
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(DataError, match="line 2"):
        read_inputs(tmp_path)
    with caplog.at_level(logging.WARNING):
        claim(tmp_path, a="1", b="2")
    (warning,) = caplog.messages
    assert warning.startswith(f"{path}: line 2: ")
    assert warning.endswith("It is written anew, from what is asked now")
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


def test_a_file_that_is_too_large_is_not_read_but_written_anew_with_a_warning(tmp_path, monkeypatch, caplog):
    claim(tmp_path, a="1")
    monkeypatch.setattr(asked, "MAX_BYTES", 10)
    with caplog.at_level(logging.WARNING):
        claim(tmp_path, a="1")
    assert "is larger than 10 bytes. It is written anew" in caplog.text


def test_what_was_asked_is_what_a_run_goes_on_with_while_media_cannot_be_read(tmp_path: Path) -> None:
    claim(tmp_path, a="1", b="2")
    assert [claimed.fingerprint for claimed in claim(tmp_path, a=None, b="2")] == ["1", "2"]


def test_a_fingerprint_that_was_overwritten_is_damage_and_another_s_is_not_taken_for_it(tmp_path, caplog):
    claim(tmp_path, a="1", b="2")
    path = tmp_path / INPUTS_FILE
    path.write_bytes(path.read_bytes().replace(b'"fingerprint":"2"', b'"fingerprint":"3"'))
    with pytest.raises(DataError, match=r"line 2: is damaged .*Remedy: start the run again"):
        read_inputs(tmp_path)
    claim(tmp_path, a="1", b="2")
    assert "written anew" in caplog.text
    assert read_inputs(tmp_path) == {"a": "1", "b": "2"}


@given(st.text(), st.text(), st.dictionaries(st.text(), st.none() | st.floats() | st.text()), st.integers(0, 2**70))
def test_a_key_is_the_same_however_its_settings_are_encoded(example, fingerprint, values, run):
    key = sample_keys({"name": values}, values)(example, fingerprint, run)
    assert key == digest(example, fingerprint, {"name": values}, values, run)
