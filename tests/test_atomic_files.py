from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.atomic_files import replacing, write_whole


def test_a_file_is_replaced_at_the_end_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_whole(path, "old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_whole(path, b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as partial:
        1 / partial.write_text("")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_an_error_and_no_empty_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "results.json", "text")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "results.json", "\ud800")
    assert not list(tmp_path.iterdir())
