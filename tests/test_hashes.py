"""A file is hashed anew whenever it may have changed, and else not."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.files import hashes
from barista_bench.files.hashes import file_sha256

Settle = Callable[[Path], os.stat_result]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Each file that is read, as often as it is."""
    paths, original = list[Path](), hashes.read_sha256
    monkeypatch.setattr(hashes, "read_sha256", lambda path: paths.append(path) or original(path))
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
    """Forgets what a process forgets; every file is a large one, and the cache is the test's."""
    monkeypatch.setattr(hashes, "_LARGE", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    hashes._kept_sha256.cache_clear()
    return hashes._kept_sha256.cache_clear


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
    monkeypatch.setattr(Path, "stat", lambda path: tick)  # a clock of so few ticks that no change shows
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


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"stamp":[1],"sha256":"0"}', b"\xff"])
def test_a_cache_that_is_damaged_or_cannot_be_written_costs_time_alone(
    tmp_path: Path, settle: Settle, next_process: Callable[[], None], damage: bytes
) -> None:
    path = tmp_path / "video.mp4"
    path.write_bytes(b"video")
    settle(path)
    expected = file_sha256(path, across_processes=True)
    (entry,) = (tmp_path / "cache/barista_bench/hashes").iterdir()
    entry.write_bytes(damage)
    next_process()
    assert file_sha256(path, across_processes=True) == expected
    entry.unlink()
    entry.mkdir()  # in the place where it would be written
    next_process()
    assert file_sha256(path, across_processes=True) == expected
