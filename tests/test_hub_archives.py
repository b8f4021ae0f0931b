"""Data sets whose videos lie in archives are unpacked into one release, once, or refused as a whole."""

import logging

import pytest

from barista_bench.errors import SourceError
from tests.folders import content, packed
from tests.hub_standin import ANNOTATION, release_files, video_bytes


@pytest.mark.parametrize("name", ["all.zip", "parts/all.tar", "all.tar.gz", "all.tgz"])
@pytest.mark.parametrize("prefix", ["", "data/", "./"])
def test_archives_of_video_folders_are_unpacked_once(hub, opened, caplog, name, prefix):
    caplog.set_level(logging.INFO)
    files = release_files(["v1", "v2"], prefix)
    sha = hub.commit("org/name", {name: packed(name.partition(".")[2], files.items())})
    source = opened(revision=sha)
    source.fetch_videos(["v1", "v2"])
    release = release_files(["v1", "v2"])
    del release["README.md"]
    assert content(source.root) == release
    assert "left 1 members packed that a release does not need, such as README.md" in caplog.text
    hub.requests.clear()
    opened(revision=sha).fetch_videos(["v1"])
    assert hub.requests == []


def test_an_archive_per_video_takes_the_video_s_name(hub, opened):
    files = {
        f"{v}.zip": packed("zip", [("coco_annotation.json", ANNOTATION), ("video.mp4", video_bytes(v))]) for v in "ab"
    }
    source = opened(revision=hub.commit("org/name", files))
    source.fetch_videos(["a", "b"])
    assert (source.root / "b" / "video.mp4").read_bytes() == video_bytes("b")


def test_videos_in_archives_beside_plain_annotations_come_when_needed(hub, opened):
    files = {name: body for name, body in release_files().items() if not name.endswith("mp4")}
    files |= {f"videos/{v}.tar": packed("tar", [(f"{v}/video.mp4", video_bytes(v))]) for v in ("v1", "v2", "v3")}
    source = opened(revision=hub.commit("org/name", files))
    assert not any(path.endswith(".tar") for path in hub.downloads())
    source.fetch_videos(["v2"])
    assert [path for path in hub.downloads() if path.endswith(".tar")] == ["videos/v2.tar"]
    assert (source.root / "v2" / "video.mp4").read_bytes() == video_bytes("v2")


EVIL = "../../../../evil/video.mp4"


@pytest.mark.parametrize(
    ("archives", "said"),
    [
        (
            {f"{n}.zip": [("v1/coco_annotation.json", n.encode())] for n in "ab"},
            r"b.zip: v1/coco_annotation.json is already there with another content",
        ),
        (
            {"all.zip": [("v1/coco_annotation.json", ANNOTATION), (EVIL, b"x")]},
            rf"org/name@.*/all.zip: member '{EVIL}' is refused",
        ),
        ({"all.zip": [("x.txt", b"")]}, r"no archive holds <video_id>/coco_annotation.json: all.zip"),
    ],
    ids=["contradicting", "hostile", "without annotations"],
)
def test_archives_that_make_no_release_are_refused(hub, opened, tmp_path, archives, said):
    files = {name: packed("zip", members) for name, members in archives.items()}
    with pytest.raises(SourceError, match=said):
        opened(revision=hub.commit("org/name", files))
    assert not list(tmp_path.rglob("evil"))
    assert len(archives) > 1 or not list(tmp_path.rglob("coco_annotation.json"))
