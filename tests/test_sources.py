"""A release comes from a folder or from the Hub: at a fixed commit, only the needed files, despite failures."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barista_bench.data.source import open_source
from barista_bench.errors import ConfigError, SourceError
from tests.folders import content
from tests.hub_standin import release_files, video_bytes


def write(root, files):
    for name, body in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return root


@pytest.mark.parametrize("kind", [str, Path])
def test_a_local_folder_is_opened_where_it_is(tmp_path, kind):
    root = write(tmp_path / "release", release_files())
    source = open_source(kind(root))
    assert source.root == root.resolve()
    assert source.identity["kind"] == "local"
    assert source.identity["id"] == str(root.resolve())
    source.fetch_videos(["v1"])
    assert content(root) == release_files()


def test_a_folder_that_looks_like_a_hub_id_wins_over_the_hub_and_has_no_revisions(tmp_path, monkeypatch):
    write(tmp_path / "org" / "name", release_files())
    monkeypatch.chdir(tmp_path)
    assert open_source("org/name").root == tmp_path.resolve() / "org" / "name"
    with pytest.raises(ConfigError, match=r"leave the revision out"):
        open_source(Path("org/name"), revision="main")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"does not exist\. Fix: give the release's folder"):
        open_source(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=r"is not a folder"):
        open_source(str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"coco_annotation.json": b"{}"}, r"one video\. Fix: give the folder above it"),
        ({"data/v1/coco_annotation.json": b"{}"}, r"one level below\. Fix: give .*data$"),
        ({"videos.zip": b""}, r"archives such as videos.zip\. Fix: unpack them first"),
        ({"x.txt": b""}, r"\. Fix: give the folder that holds one folder per video"),
    ],
)
def test_the_message_about_a_folder_without_a_release_names_the_expected_files_and_the_fix(tmp_path, files, hint):
    write(tmp_path, files)
    with pytest.raises(SourceError, match=r"holds no <video_id>/coco_annotation.json.*" + hint):
        open_source(tmp_path)


def test_only_annotations_come_at_first_and_only_needed_videos_later_and_once(hub, opened):
    sha = hub.commit("org/name", release_files())
    source = opened(revision=sha)
    assert sorted(hub.downloads()) == [f"v{i}/coco_annotation.json" for i in (1, 2, 3)]
    assert source.identity == {"kind": "hub", "id": "org/name", "sha": sha, "requested_revision": sha}
    source.fetch_videos(["v2"])
    assert hub.downloads()[3:] == ["v2/video.mp4"]
    assert (source.root / "v2" / "video.mp4").read_bytes() == video_bytes("v2")
    assert not (source.root / "v1" / "video.mp4").exists()
    assert not any(path.is_symlink() for path in source.root.rglob("*"))
    hub.requests.clear()
    opened(revision=sha).fetch_videos(["v2"])
    assert hub.requests == [], "nothing is asked twice of a pinned commit"


def test_a_file_is_stored_once_where_hard_links_exist_and_else_copied(hub, opened, tmp_path, monkeypatch):
    source = opened(revision=hub.commit("org/name", release_files()))
    source.fetch_videos(["v1"])
    size = len(video_bytes("v1"))
    stored = [path.stat() for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size == size]
    assert len({stat.st_ino for stat in stored}) == 1

    def refuse(*args, **kwargs):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    source.fetch_videos(["v2"])
    assert (source.root / "v2" / "video.mp4").read_bytes() == video_bytes("v2")


def test_a_revision_pins_the_read_files_after_the_branch_has_moved(hub, opened):
    old = hub.commit("org/name", release_files(["v1"]))
    new = hub.commit("org/name", release_files(["v1", "v2"]))
    assert [p.name for p in sorted(opened(revision=old).root.iterdir())] == ["v1"]
    assert [p.name for p in sorted(opened(revision=new).root.iterdir())] == ["v1", "v2"]


@pytest.mark.parametrize(("revision", "said"), [(None, "--revision {sha}"), ("v1.0", "the revision v1.0 may move")])
def test_the_newest_commit_of_a_branch_or_tag_is_used_named_and_recorded(hub, opened, caplog, revision, said):
    hub.commit("org/name", release_files(["v1"]))
    sha = hub.commit("org/name", release_files(["v1", "v2"]), ref=revision or "main")
    assert opened(revision=revision).identity == {
        "kind": "hub", "id": "org/name", "sha": sha, "requested_revision": revision,
    }  # fmt: skip
    assert said.format(sha=sha) in caplog.text


@pytest.mark.parametrize("prefix", ["data/", "a/b/c/"])
def test_videos_below_a_sub_folder_are_found(hub, opened, prefix):
    source = opened(revision=hub.commit("org/name", release_files(prefix=prefix)))
    source.fetch_videos(["v1", "v3"])
    assert sorted(p.name for p in source.root.iterdir()) == ["v1", "v2", "v3"]
    assert (source.root / "v3" / "video.mp4").read_bytes() == video_bytes("v3")


def test_splits_in_two_folders_become_one_release_unless_both_hold_a_video(hub, opened):
    files = release_files(["v1"], "train/") | release_files(["v2"], "test/")
    source = opened(revision=hub.commit("org/name", files))
    source.fetch_videos(["v1", "v2"])
    release = release_files(["v1", "v2"])
    del release["README.md"]
    assert content(source.root) == release
    files |= release_files(["v1"], "test/")
    with pytest.raises(SourceError, match=r"'v1' is there twice, as test/v1.* and train/v1"):
        opened(revision=hub.commit("org/name", files))


def test_names_with_pattern_characters_fetch_only_themselves(hub, opened):
    source = opened(revision=hub.commit("org/name", release_files(["v[12]", "v1", "v*", "vx"])))
    source.fetch_videos(["v[12]", "v*"])
    fetched = [path for path in hub.downloads() if path.endswith("mp4")]
    assert sorted(fetched) == ["v*/video.mp4", "v[12]/video.mp4"]
    assert (source.root / "v[12]" / "video.mp4").read_bytes() == video_bytes("v[12]")


def test_an_unknown_video_and_one_that_the_cache_has_lost_are_named(hub, opened, tmp_path, monkeypatch):
    source = opened(revision=hub.commit("org/name", release_files()))
    for name in ("v9", "../v1", ""):
        with pytest.raises(SourceError, match=r"has no video .*Fix: choose among v1, v2, v3"):
            source.fetch_videos(["v1", name])
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *args, **options: str(tmp_path))
    with pytest.raises(SourceError, match=r"v2/video.mp4: .*is missing .* run it again"):
        source.fetch_videos(["v2"])


def test_a_video_that_the_data_set_lacks_is_named_and_costs_no_other(hub, opened, caplog):
    files = release_files()
    del files["v2/video.mp4"]
    source = opened(revision=hub.commit("org/name", files))
    source.fetch_videos(["v1", "v2"])
    assert "holds no video.mp4 of v2" in caplog.text
    assert (source.root / "v1" / "video.mp4").is_file()


def test_a_hostile_listing_is_refused(hub, opened, tmp_path):
    with pytest.raises(SourceError):
        opened(revision=hub.commit("org/name", {"x/../../../evil/coco_annotation.json": b"{}"}))
    with pytest.raises(SourceError, match=r"is not a name for a folder"):
        opened(revision=hub.commit("org/name", {"..\\evil/coco_annotation.json": b"{}"}))
    assert not list(tmp_path.rglob("coco_annotation.json"))


@pytest.mark.full
def test_a_download_that_breaks_midway_continues_where_it_stopped(hub, opened, monkeypatch):
    # The client keeps whole chunks (10 MiB by default) of the bytes it had read.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    source = opened(revision=hub.commit("org/name", release_files()))
    hub.drop_after["v1/video.mp4"] = 5000
    source.fetch_videos(["v1"])
    asked = [r for r in hub.requests if r.method == "GET" and r.path.endswith("v1/video.mp4")]
    assert [r.range for r in asked] == [None, "bytes=5000-"]
    assert (source.root / "v1" / "video.mp4").read_bytes() == video_bytes("v1")


def test_after_a_failure_the_second_call_fetches_only_missing_files(hub, opened, tmp_path):
    source = opened(revision=hub.commit("org/name", release_files()))
    hub.fail_with["v2/video.mp4"] = 500
    with pytest.raises(SourceError, match=r"downloading the videos v1, v2, v3 failed .*run it again"):
        source.fetch_videos(["v1", "v2", "v3"])
    assert not (source.root / "v2" / "video.mp4").exists()
    del hub.fail_with["v2/video.mp4"]
    first = hub.downloads()
    blobs = {path.read_bytes() for path in (tmp_path / "cache/hub").rglob("blobs/*")}
    finished = [f"{v}/video.mp4" for v in ("v1", "v3") if video_bytes(v) in blobs]
    source.fetch_videos(["v1", "v2", "v3"])
    again = hub.downloads()[len(first) :]
    assert "v2/video.mp4" in again
    assert not (set(again) & set(finished))
    assert {p.parent.name for p in source.root.glob("*/video.mp4")} == {"v1", "v2", "v3"}


KILLED = """
import sys
from barista_bench.data.source import open_source
source = open_source("org/name", revision=sys.argv[1], cache_dir=sys.argv[2], endpoint=sys.argv[3])
source.fetch_videos(["v1", "v2"])
"""


@pytest.mark.full
def test_after_the_process_is_killed_midway_the_next_one_finishes(hub, opened, tmp_path):
    sha = hub.commit("org/name", release_files())
    hub.stall_after["v2/video.mp4"] = 100
    command = [sys.executable, "-c", KILLED, sha, str(tmp_path / "cache"), hub.endpoint]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not (len(hub.downloads()) == 5 and any(tmp_path.glob("cache/hub/*/snapshots/*/v1/video.mp4"))):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the other video does not finish"
            time.sleep(0.05)
        process.kill()
    assert "v2/video.mp4" in hub.downloads()
    hub.stall_after.clear()
    hub.requests.clear()
    source = opened(revision=sha)
    source.fetch_videos(["v1", "v2"])
    assert hub.downloads() == ["v2/video.mp4"]
    assert (source.root / "v2" / "video.mp4").read_bytes() == video_bytes("v2")


def test_a_refusal_of_the_hub_is_explained(hub, opened):
    with pytest.raises(SourceError, match=r"org/none: no such data set is on the Hub.*no folder .*check the name"):
        opened("org/none")
    hub.commit("org/name", {"README.md": b""})
    for revision in ("v9", "0" * 40):
        with pytest.raises(SourceError, match=r"no such revision\. Fix: give a commit, branch or tag"):
            opened(revision=revision)
    with pytest.raises(SourceError, match=r"neither <video_id>/coco_annotation.json nor an archive .*README.md"):
        opened()
    hub.gated.add("org/name")
    with pytest.raises(SourceError, match=r"accept its terms at https://huggingface.co/datasets/org/name"):
        opened()


def test_an_unreachable_hub_is_a_source_error(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # between the client's retries
    with pytest.raises(SourceError, match=r"org/name: listing the files"):
        open_source("org/name", revision="a" * 40, cache_dir=tmp_path, endpoint="http://127.0.0.1:9")


def test_offline_a_cached_commit_works_and_an_unpinned_one_names_the_cached_ones(hub, opened, monkeypatch):
    sha = hub.commit("org/name", release_files())
    opened(revision=sha).fetch_videos(["v1"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.requests.clear()
    source = opened(revision=sha)
    source.fetch_videos(["v1"])
    with pytest.raises(SourceError, match=r"HF_HUB_OFFLINE"):
        source.fetch_videos(["v2"])
    with pytest.raises(SourceError, match=rf"in the cache: {sha}.*pin a revision"):
        opened()
    assert hub.requests == []
