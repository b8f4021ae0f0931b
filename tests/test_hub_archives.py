"""Data sets whose videos lie in archives are unpacked into one release, once, or refused as a whole."""

import io
import logging
import tarfile
import zipfile

import pytest

from barista_bench.data.origin import open_source
from barista_bench.errors import SourceError
from tests.hub_standin import ANNOTATION, HubStandIn, release_files, video_bytes


@pytest.fixture
def hub():
    with HubStandIn() as server:
        yield server


@pytest.fixture
def opened(hub, tmp_path):
    """Open org/name of the stand-in, with a cache of this test."""

    def open_it(source="org/name", **options):
        return open_source(source, cache_dir=tmp_path / "cache", endpoint=hub.endpoint, **options)

    return open_it


def content(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def packed_zip(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return buffer.getvalue()


def packed_tar(files, mode="w"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, body in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return buffer.getvalue()


PACKERS = {
    "all.zip": packed_zip,
    "parts/all.tar": packed_tar,
    "all.tar.gz": lambda files: packed_tar(files, "w:gz"),
    "all.tgz": lambda files: packed_tar(files, "w:gz"),
}


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("prefix", ["", "data/", "./"])
def test_archives_of_video_folders_are_unpacked_once(hub, opened, caplog, name, prefix):
    caplog.set_level(logging.INFO)
    sha = hub.commit("org/name", {name: PACKERS[name](release_files(["v1", "v2"], prefix))})
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
    files = {f"{v}.zip": packed_zip({"coco_annotation.json": ANNOTATION, "video.mp4": video_bytes(v)}) for v in "ab"}
    source = opened(revision=hub.commit("org/name", files))
    source.fetch_videos(["a", "b"])
    assert (source.root / "b" / "video.mp4").read_bytes() == video_bytes("b")


def test_videos_in_archives_beside_plain_annotations_come_when_needed(hub, opened):
    files = {name: body for name, body in release_files().items() if not name.endswith("mp4")}
    files |= {f"videos/{v}.tar": packed_tar({f"{v}/video.mp4": video_bytes(v)}) for v in ("v1", "v2", "v3")}
    source = opened(revision=hub.commit("org/name", files))
    assert not any(path.endswith(".tar") for path in hub.downloads())
    source.fetch_videos(["v2"])
    assert [path for path in hub.downloads() if path.endswith(".tar")] == ["videos/v2.tar"]
    assert (source.root / "v2" / "video.mp4").read_bytes() == video_bytes("v2")


def test_two_archives_with_different_contents_of_one_video_are_refused(hub, opened):
    files = {f"{n}.zip": packed_zip({"v1/coco_annotation.json": n.encode()}) for n in "ab"}
    with pytest.raises(SourceError, match=r"b.zip: v1/coco_annotation.json is already there with another content"):
        opened(revision=hub.commit("org/name", files))


def test_a_hostile_archive_leaves_nothing_in_the_release(hub, opened, tmp_path):
    files = {"v1/coco_annotation.json": ANNOTATION, "../../../../evil/video.mp4": b"x"}
    with pytest.raises(SourceError, match=r"org/name@.*/all.zip: member '../../../../evil/video.mp4' is refused"):
        opened(revision=hub.commit("org/name", {"all.zip": packed_zip(files)}))
    assert not list(tmp_path.rglob("coco_annotation.json"))
    assert not list(tmp_path.rglob("evil"))


def test_archives_without_annotations_say_so(hub, opened):
    with pytest.raises(SourceError, match=r"no archive holds <video_id>/coco_annotation.json: all.zip"):
        opened(revision=hub.commit("org/name", {"all.zip": packed_zip({"x.txt": b""})}))
