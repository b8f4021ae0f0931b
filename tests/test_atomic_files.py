import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barista_bench.files import writing
from barista_bench.files.writing import atomic_write, place_file, write_whole


def test_a_file_is_replaced_at_the_end_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_whole(path, "old")
    with atomic_write(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_durable_file_is_on_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    synced = []
    monkeypatch.setattr(writing, "sync", lambda what: synced.append((what.name, path.exists())))
    with atomic_write(path, durable=True) as partial:
        partial.write_text("new")
    assert synced == [(partial.name, False), (tmp_path.name, True)]


def test_an_error_leaves_the_file_as_it_was_and_no_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_whole(path, b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as partial:
        1 / partial.write_text("")
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "results.json", "text")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_placed_file_is_a_link_or_copy_and_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin, linked, copied = (tmp_path / name for name in ("origin", "linked", "copied"))
    origin.write_bytes(b"frames")
    place_file(origin, linked)
    assert linked.samefile(origin)

    def no_links(*_: object) -> None:
        raise OSError("no hard links here")

    monkeypatch.setattr("os.link", no_links)
    place_file(origin, copied)
    assert copied.read_bytes() == b"frames"
    assert not copied.samefile(origin)
    monkeypatch.undo()
    with pytest.raises(FileExistsError):
        place_file(origin, copied)
    assert sorted(tmp_path.iterdir()) == [copied, linked, origin]


def test_threads_that_write_one_file_leave_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "draft.json"
    contents = [json.dumps([number] * 20_000 * (number + 1)) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda turn: write_whole(path, contents[turn % 4]), range(80)))
    assert path.read_text() in contents
    assert list(tmp_path.iterdir()) == [path]
