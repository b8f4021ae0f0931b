"""Stills and copies of videos are of the file that is there now."""

import errno
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barista_bench.studio.footage import cache_folder, kept_copy
from tests.releases import document, write_release
from tests.studio.serving import Visitor, visiting
from tests.video_samples import render

STILL = "/media/graph/clip/5.jpg"
PROXY = "/media/graph/clip/proxy.mp4"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    content = document()
    content["video_metadata"][0]["frame_count"] = 40
    root = write_release(tmp_path / "release", "clip", content, video=False)
    render(root / "clip" / "video.mp4", 40)
    return root


@pytest.fixture
def anna(release: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitor]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with visiting(release, out=out) as visitor:
        yield visitor


def with_copy(visitor: Visitor) -> str:
    """The version of the video, once its copy is made."""
    for _ in range(600):
        state = visitor.json("/api/footage?kind=graph&video=clip")
        if state["copy"]["state"] == "done":
            return str(state["version"])
        assert state["copy"]["state"] != "failed", state["copy"]
        time.sleep(0.05)
    raise AssertionError(state)


def test_a_still_is_asked_for_again_and_sent_only_where_the_video_changed(anna: Visitor, release: Path) -> None:
    status, _, headers = anna.answer(STILL)
    assert (status, headers["cache-control"]) == (200, "no-cache")
    assert anna.answer(STILL, If_None_Match=headers["etag"])[:2] == (304, b"")
    render(release / "clip" / "video.mp4", 40, size=(320, 240))
    status, _, changed = anna.answer(STILL, If_None_Match=headers["etag"])
    assert status == 200
    assert changed["etag"] != headers["etag"]


def test_a_video_that_is_replaced_gets_a_copy_of_its_own(anna: Visitor, release: Path) -> None:
    version, copy = with_copy(anna), anna.answer(PROXY)[1]
    render(release / "clip" / "video.mp4", 40, size=(320, 240))
    assert anna.answer(PROXY)[0] == 404
    assert with_copy(anna) != version
    assert anna.answer(PROXY)[1] != copy


def test_a_copy_that_is_gone_or_a_link_is_not_served_and_is_made_again(anna: Visitor, tmp_path: Path) -> None:
    with_copy(anna)
    (copy,) = cache_folder().glob("*.mp4")
    other = tmp_path / "other.mp4"
    other.write_bytes(b"other")
    copy.unlink()
    copy.symlink_to(other)
    assert anna.answer(PROXY)[0] == 404
    with_copy(anna)
    assert anna.answer(PROXY)[0] == 200
    assert not copy.is_symlink()
    assert other.read_bytes() == b"other"


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    old, fresh = tmp_path / ".a.mp4.1-1.partial", tmp_path / ".b.mp4.2-2.partial"
    for path in (old, fresh):
        path.touch()
    os.utime(old, (0, 0))
    kept_copy(render(tmp_path / "video.mp4", 4), tmp_path, lambda fraction: None)
    assert (old.exists(), fresh.exists()) == (False, True)


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_without_space_is_no_fault_of_the_video(tmp_path: Path) -> None:
    video = render(tmp_path / "video.mp4", 40)
    with no_file_larger_than(512), pytest.raises(OSError, match=str(tmp_path / "cache")) as raised:
        kept_copy(video, tmp_path / "cache", lambda fraction: None)
    assert raised.value.errno == errno.EFBIG
    assert not list((tmp_path / "cache").iterdir())
