"""Files of others are read within bounds, and what is wrong with one is named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import (
    bounded_lines,
    read_bounded,
    read_bounded_json,
    read_bounded_text,
    read_json_lines,
)

MOST = 20
READERS: list[Callable[[Path], object]] = [
    lambda path: read_bounded(path, MOST, what="no list", remedy="write one"),
    lambda path: read_bounded_text(path, MOST, what="no list", remedy="write one"),
    lambda path: read_bounded_json(path, MOST, what="no list", remedy="write one"),
    lambda path: list(read_json_lines(path, MOST, json.loads, what="no list", remedy="write one")),
]


@pytest.mark.parametrize("read", READERS)
def test_what_is_missing_a_folder_or_too_large_is_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    with pytest.raises(DataError, match=r"list\.json: no list \(No such file.*\)\. Fix: write one$"):
        read(path)
    with pytest.raises(DataError, match=rf"{tmp_path.name}: no list \(Is a directory\)\. Fix: write one$"):
        read(tmp_path)
    path.write_bytes(b"1" * MOST)
    read(path)
    path.write_bytes(b"1" * (MOST + 1))
    with pytest.raises(DataError, match=r"list\.json: no list \(.*er than 20 bytes\)\. Fix: write one$"):
        read(path)


@pytest.mark.parametrize("read", READERS[1:])
def test_bytes_that_are_no_utf8_are_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_bytes(b'"a\xff\xfe"')
    with pytest.raises(DataError, match=r"list\.json: .*no list \(.*invalid start byte.*\)\. Fix: write one$"):
        read(path)
    with pytest.raises(ConfigError, match=r"cannot be read \(No such file"):  # as the caller says
        read_bounded(tmp_path / "x", MOST, remedy="write one", error=ConfigError)


@pytest.mark.parametrize("text", ["{", "", "[" * 50_000, "1" * 5_000])
def test_what_is_no_json_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"list\.json: no list \(.+\)\. Fix: write one$"):
        read_bounded_json(path, 10**5, what="no list", remedy="write one")


@given(st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), max_size=30)))
def test_lines_keep_numbers_whatever_becomes_of_others(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    written = [(text + "\n").encode() for text in texts]
    path.write_bytes(b"".join(written))
    expected = [(number, line) for number, line in enumerate(written, start=1) if line.strip()]
    cut = [(number, line[: MOST + 1]) for number, line in expected]
    assert list(bounded_lines(path, MOST, overlong="cut")) == cut
    assert list(bounded_lines(path, max(map(len, written), default=0))) == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2" * 50, r"no number \(line 3 is longer than 20 bytes\)"),
        ("{", r"line 3: no number \(Expecting property name"),
    ],
)
def test_a_line_that_is_no_record_or_too_long_is_refused_by_its_number(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"1\n\n{line}\n3\n")
    records = read_json_lines(path, MOST, json.loads, what="no number", remedy="write shorter ones")
    assert next(records) == (1, 1)
    with pytest.raises(DataError, match=rf"x\.jsonl: {said}.*\. Fix: write shorter ones$"):
        next(records)


def test_a_file_of_lines_can_be_bounded_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("1\n2\n")
    assert len(list(bounded_lines(path, MOST, max_file=4))) == 2
    with pytest.raises(OSError, match="is larger than 3 bytes"):
        next(bounded_lines(path, MOST, max_file=3))
