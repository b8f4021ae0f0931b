"""A file is read again whenever it may have changed, and only then."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from barista_bench.files import file_cache, hashes
from barista_bench.files.hashes import file_sha256
from barista_bench.media.video import index
from barista_bench.media.video.index import build_index, video_index
from barista_bench.media.video.opening import stamp_of
from tests.video_samples import render

Settle = Callable[[Path], os.stat_result]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Each file that is read, as often as it is."""
    paths, original = list[Path](), hashes.read_sha256

    def counted(path: Path) -> str:
        paths.append(path)
        return original(path)

    monkeypatch.setattr(hashes, "read_sha256", counted)
    return paths


@pytest.fixture
def settle(monkeypatch: pytest.MonkeyPatch) -> Settle:
    """Lets time go by since a file was written; its status."""

    def wait(path: Path) -> os.stat_result:
        status = path.stat()
        monkeypatch.setattr(time, "time_ns", lambda: status.st_ctime_ns + 10**10)
        return status

    return wait


@pytest.fixture
def next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Clears the caches of the process; every file counts as large, and the cache folder is the test's."""
    monkeypatch.setattr(file_cache, "LARGE", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    hashes._sha256_of.cache_clear()
    return hashes._sha256_of.cache_clear


def test_a_hash_is_kept_while_a_file_stays_the_same(tmp_path: Path, hashed: list[Path], settle: Settle) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"first")
    os.utime(path, (2e9, 2e9))  # as a camera says whose clock is wrong
    first = file_sha256(path)
    status = settle(path)
    assert [file_sha256(path) for _ in range(3)] == [first] * 3
    assert len(hashed) == 2  # it had just been written when it was read first
    path.write_bytes(b"other")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as `rsync --inplace --times` leaves it
    assert file_sha256(path) == hashlib.sha256(b"other").hexdigest()


def test_a_file_that_was_just_written_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tick = tmp_path / "file", os.stat(tmp_path)
    monkeypatch.setattr(os, "stat", lambda path: tick)  # a clock of so few ticks that no change shows
    monkeypatch.setattr(time, "time_ns", lambda: tick.st_ctime_ns + 10**9)
    for content in (b"first", b"other"):
        path.write_bytes(content)
        assert file_sha256(path) == hashlib.sha256(content).hexdigest()


def test_the_next_process_reads_a_large_file_again_only_if_it_has_changed(
    tmp_path: Path, hashed: list[Path], settle: Settle, next_process: Callable[[], None]
) -> None:
    path = tmp_path / "video.mp4"
    path.write_bytes(b"first")
    status = settle(path)
    for _ in range(2):
        assert file_sha256(path, across_processes=True) == hashlib.sha256(b"first").hexdigest()
        next_process()
    assert hashed == [path]
    assert file_sha256(path) == hashlib.sha256(b"first").hexdigest()
    assert hashed == [path, path], "what is handed on is read"
    path.write_bytes(b"other")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    settle(path)
    assert file_sha256(path, across_processes=True) == hashlib.sha256(b"other").hexdigest()


def test_the_next_process_knows_the_frames_of_a_large_video_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settle: Settle, next_process: Callable[[], None]
) -> None:
    path = tmp_path / "video.mp4"
    render(path, 20)
    settle(path)
    built = build_index(str(path))
    for _ in range(2):
        video_index.cache_clear()
        found = video_index(stamp_of(path))
        assert all(np.array_equal(getattr(found, name), value) for name, value in vars(built).items())
        monkeypatch.setattr(index, "build_index", None)


def test_the_cache_keeps_the_newest_entries(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.jpg").touch()
        os.utime(tmp_path / f"{number}.jpg", (number, number))
    file_cache.keep_newest(tmp_path, 3)
    assert {path.name for path in tmp_path.iterdir()} == {"2.jpg", "3.jpg", "4.jpg"}
    file_cache.keep_newest(tmp_path, 3)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x92\x95\x01\x01\x01\x01\x01\x01", b"\xff"])
def test_a_damaged_or_read_only_cache_costs_only_time(
    tmp_path: Path, settle: Settle, next_process: Callable[[], None], damage: bytes
) -> None:
    path = tmp_path / "video.mp4"
    path.write_bytes(b"video")
    settle(path)
    expected = file_sha256(path, across_processes=True)
    (entry,) = (tmp_path / "cache/barista_bench/kept").iterdir()
    entry.write_bytes(damage)
    next_process()
    assert file_sha256(path, across_processes=True) == expected
    entry.unlink()
    entry.mkdir()  # in the place where it would be written
    next_process()
    assert file_sha256(path, across_processes=True) == expected


def test_without_a_home_folder_files_are_read_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settle: Settle, next_process: Callable[[], None]
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    path = tmp_path / "video.mp4"
    path.write_bytes(b"video")
    settle(path)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert file_sha256(path, across_processes=True) == hashlib.sha256(b"video").hexdigest()
