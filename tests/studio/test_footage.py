"""Stills and copies of videos are of the file that is there now, and samples of a report lead into them."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from barista_bench.api import evaluate
from barista_bench.data.folder import build
from barista_bench.studio.footage import cache_folder, cached_copy
from barista_bench.studio.workspace import open_workspace
from tests.studio.annotating_page import Visited
from tests.studio.serving import Visitor, painted_release, visiting
from tests.video_samples import render

STILL = "/media/graph/clip/5.jpg"
PROXY = "/media/graph/clip/proxy.mp4"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return painted_release(tmp_path / "release", 40)


@pytest.fixture
def anna(release: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitor]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with visiting(release, out=out) as visitor:
        yield visitor


def test_a_still_is_asked_for_again_and_sent_only_where_the_video_changed(anna: Visitor, release: Path) -> None:
    status, _, headers = anna.answer(STILL)
    assert (status, headers["cache-control"]) == (200, "no-cache")
    assert anna.answer(STILL, If_None_Match=headers["etag"])[:2] == (304, b"")
    render(release / "clip" / "video.mp4", 40, size=(320, 240))
    status, _, changed = anna.answer(STILL, If_None_Match=headers["etag"])
    assert status == 200
    assert changed["etag"] != headers["etag"]


def test_a_replaced_video_gets_a_new_copy(anna: Visitor, release: Path) -> None:
    version, copy = anna.with_copies("clip")["version"], anna.answer(PROXY)[1]
    render(release / "clip" / "video.mp4", 40, size=(320, 240))
    assert anna.answer(PROXY)[0] == 404
    assert anna.with_copies("clip")["version"] != version
    assert anna.answer(PROXY)[1] != copy


def test_a_copy_that_is_gone_or_a_link_is_not_served_and_is_made_again(anna: Visitor, tmp_path: Path) -> None:
    anna.with_copies("clip")
    (copy,) = cache_folder().glob("*.mp4")
    other = tmp_path / "other.mp4"
    other.write_bytes(b"other")
    copy.unlink()
    copy.symlink_to(other)
    assert anna.answer(PROXY)[0] == 404
    anna.with_copies("clip")
    assert anna.answer(PROXY)[0] == 200
    assert not copy.is_symlink()
    assert other.read_bytes() == b"other"


def test_old_partial_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    old, fresh = tmp_path / ".a.mp4.1-1.partial", tmp_path / ".b.mp4.2-2.partial"
    for path in (old, fresh):
        path.touch()
    os.utime(old, (0, 0))
    cached_copy(render(tmp_path / "video.mp4", 4), tmp_path, lambda fraction: None)
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
        cached_copy(video, tmp_path / "cache", lambda fraction: None)
    assert raised.value.errno == errno.EFBIG
    assert not list((tmp_path / "cache").iterdir())


@pytest.fixture(scope="module")
def run(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a frozen dataset, which does not say where its videos lie."""
    folder = tmp_path_factory.mktemp("inspected")
    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}
    build(small_release, folder / "data", **settings)
    evaluate(folder / "data", task="relations", model="chance", repetitions=1, out=folder / "runs")
    return folder / "runs"


def test_a_run_brings_the_dataset_that_it_was_made_on(run: Path, small_release: Path, out: Path) -> None:
    workspace = open_workspace([run, small_release], person="anna", out=out)
    assert [folder.resolve() for folder in workspace.datasets] == [(run.parent / "data").resolve()]


def test_every_example_is_known_by_its_video_and_frames(run: Path, small_release: Path, out: Path) -> None:
    with visiting(run, small_release, out=out) as visitor:
        asked = visitor.json("/api/moment?video=v1&frame=10")["asked"]
        assert [entry["task"] for entry in asked] == ["relations"]
        example = visitor.json(f"/api/example?id={asked[0]['id']}")
        assert (example["video"], example["frames"]) == ("v1", [10])
        assert visitor.answer("/api/example?id=none")[0] == 404


@pytest.mark.full
def test_a_sample_of_the_report_leads_to_its_frame_and_question(
    run: Path, small_release: Path, visited: Visited
) -> None:
    with visited(run, small_release) as watched:
        page = watched.page
        page.get_by_role("link", name="Runs", exact=True).click()
        page.get_by_role("link", name="relations", exact=True).first.click()
        page.locator(".tile a").first.click()
        page.get_by_role("link", name="see this moment of the video").click()
        expect(page.locator(".player[data-frame]")).to_be_visible()
        expect(page.locator("details[open] summary").first).to_contain_text("relations")
        page.go_back()
        expect(page.get_by_role("link", name="see this moment of the video")).to_be_visible()
        assert not watched.console


@pytest.mark.full
def test_datasets_with_tasks_of_one_name_are_all_open(
    run: Path, small_release: Path, tmp_path: Path, out: Path
) -> None:
    other = tmp_path / "other"
    build(small_release, other, configs=["relations"], sampling={"frame_step": 7}, cache=False)
    with visiting(run.parent / "data", other, small_release, out=out) as visitor:
        asked = [visitor.json(f"/api/moment?video=v1&frame={frame}")["asked"] for frame in (10, 7)]
    assert [len(questions) for questions in asked] == [1, 1]
