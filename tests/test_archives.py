"""Archives are unpacked whole or not at all, only the release's files, and never outside their folder."""

import gzip
import logging
import shutil
import stat
import struct
import tarfile
import threading
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.data import archives
from barista_bench.data.archives import archive_stem, is_archive, unpack_release
from barista_bench.errors import SourceError
from tests.folders import content, packed
from tests.hub_standin import ANNOTATION, release_files, video_bytes

GOOD = {"v1/coco_annotation.json": b"{}", "v1/video.mp4": b"film"}


def make(tmp_path, kind, members):
    path = tmp_path / "in" / f"all.{kind}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(packed(kind, members))
    return path


def unpack(archive, tmp_path):
    target = tmp_path / "out" / "all"
    unpack_release(archive, target, name=archive.name)
    return content(target)


def assert_nothing_written(tmp_path):
    assert list((tmp_path / "out").rglob("*")) == []
    assert sorted(path.name for path in tmp_path.iterdir()) in (["in", "out"], ["in"])


KINDS = pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tgz"])


@KINDS
def test_the_two_files_of_each_video_are_unpacked_once_and_nothing_else(tmp_path, kind):
    extra = {"README.md": b"#", "v1/notes.txt": b"n", "__MACOSX/v1/._video.mp4": b"m"}
    archive = make(tmp_path, kind, [*GOOD.items(), *extra.items()])
    assert unpack(archive, tmp_path) == GOOD
    archive.write_bytes(b"no longer an archive")
    assert unpack(archive, tmp_path) == GOOD, "what is unpacked already is left alone"


def test_folders_prefixes_and_top_level_files_are_understood(tmp_path):
    members = [("data/", b""), ("data/v1/", b""), ("data/v1/video.mp4", b"1"), ("./x//v2/video.mp4", b"2")]
    assert unpack(make(tmp_path, "zip", members), tmp_path) == {"v1/video.mp4": b"1", "v2/video.mp4": b"2"}
    unpack_release(make(tmp_path, "tar", [("./video.mp4", b"7")]), tmp_path / "out" / "v7", name="parts/v7.tar")
    assert (tmp_path / "out/v7/v7/video.mp4").read_bytes() == b"7"


def test_archives_are_known_by_their_suffix():
    assert all(is_archive(name) for name in ("a.zip", "x/a.TAR", "a.tar.gz", "a.tgz"))
    assert not any(is_archive(name) for name in ("a.mp4", "zip", "a.zip.txt", "a.tar.xz"))
    assert archive_stem("x/v.1.tar.gz") == "v.1"


def tar_of(name, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return packed("tar", [*GOOD.items(), (info, b"")])


def zip_of(mode):
    info = zipfile.ZipInfo("v2/video.mp4")
    info.external_attr = (mode | 0o777) << 16
    return packed("zip", [*GOOD.items(), (info, b"/etc/passwd")])


def sparse():
    info = tarfile.TarInfo("v2/video.mp4")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 20)}
    return packed("tar", [*GOOD.items(), (info, b"1\n0\n0\n".ljust(512, b"\0"))])


IGNORED = {
    **{f"tar {kind!r}": tar_of("v2/video.mp4", kind) for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)},
    "a device": tar_of("v2/video.mp4", tarfile.BLKTYPE),
    "link to a folder": tar_of("v2", tarfile.SYMTYPE),
    "link in a zip": zip_of(stat.S_IFLNK),
    "pipe in a zip": zip_of(stat.S_IFIFO),
    "sparse": sparse(),
    **{
        f"{name!r} in a {kind}": packed(kind, [*GOOD.items(), (name, b"evil")])
        for name in ("../harmless.txt", "/etc/passwd", "v1\\..\\video.mp4")
        for kind in ("zip", "tar")
    },
}


def archive_of(body, tmp_path):
    archive = tmp_path / "in" / ("all.zip" if body.startswith(b"PK") else "all.tar.gz" if body[0] == 31 else "all.tar")
    archive.parent.mkdir()
    archive.write_bytes(body)
    return archive


@pytest.mark.parametrize("body", IGNORED.values(), ids=IGNORED)
def test_only_plain_files_of_a_release_reach_the_disk(tmp_path, body):
    assert unpack(archive_of(body, tmp_path), tmp_path) == GOOD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("name", ["/tmp/v1/video.mp4", "C:/v1/video.mp4", "../v1/video.mp4", "a/../v1/video.mp4"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_video_is_in_its_own_folder_wherever_its_path_leads(tmp_path, kind, name):
    assert unpack(make(tmp_path, kind, [(name, b"film")]), tmp_path) == {"v1/video.mp4": b"film"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


HOSTILE_NAMES = [
    ("../video.mp4", "'..' is not a name"),
    ("v\n1/video.mp4", "control character"),
    ("x" * 256 + "/video.mp4", "longer than 255 bytes"),
]


@KINDS
@pytest.mark.parametrize(("name", "reason"), HOSTILE_NAMES)
def test_a_name_that_no_folder_can_have_condemns_the_archive(tmp_path, kind, name, reason):
    archive = make(tmp_path, kind, [*GOOD.items(), (name, b"evil")])
    with pytest.raises(SourceError, match="is refused") as caught:
        unpack(archive, tmp_path)
    message = str(caught.value)
    assert all(said in message for said in (archive.name, repr(name)[1:30], reason, "unpack it yourself"))
    assert_nothing_written(tmp_path)


def encrypted():
    body = bytearray(packed("zip", [("v1/video.mp4", b"x")]))
    body[body.index(b"PK\x01\x02") + 8] |= 1
    return bytes(body)


def huge_header():
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    return gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))


def negative_size(kind):
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, -tarfile.BLOCKSIZE  # the next member would be this one again
    return packed("tar", GOOD.items())[: 4 * tarfile.BLOCKSIZE] + info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


def lying():
    whole = packed("zip", [("v1/video.mp4", bytes(1 << 20))])
    return whole.replace(struct.pack("<L", 1 << 20), struct.pack("<L", 100))


HOSTILE = {
    "encrypted": (encrypted(), "cannot be unpacked"),
    "wrong size": (lying(), "cannot be unpacked"),
    "huge header": (huge_header(), "a header claims"),
    "negative size": (negative_size(tarfile.REGTYPE), "a header claims a negative size"),
    "sparse, negative size": (negative_size(tarfile.GNUTYPE_SPARSE), "a header claims a negative size"),
}


@pytest.mark.parametrize(("body", "what"), HOSTILE.values(), ids=HOSTILE)
def test_an_archive_that_cannot_be_read_is_refused(tmp_path, body, what):
    with pytest.raises(SourceError, match=what):
        unpack(archive_of(body, tmp_path), tmp_path)
    assert_nothing_written(tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@KINDS
@pytest.mark.parametrize("again", ["v1/video.mp4", "V1/video.mp4", "other/v1/video.mp4", "./v1//video.mp4"])
def test_two_files_of_one_video_are_refused(tmp_path, kind, again):
    with pytest.raises(SourceError, match=r"holds video.mp4 of the video '[vV]1' twice"):
        unpack(make(tmp_path, kind, [*GOOD.items(), (again, b"other")]), tmp_path)
    assert_nothing_written(tmp_path)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("name", ["v1/video.mp4", "ignored.bin"])
def test_a_bomb_is_refused_before_it_goes_off(tmp_path, kind, name, monkeypatch):
    monkeypatch.setattr(archives, "_RATIO_FREE_BYTES", 1 << 20)
    archive = make(tmp_path, kind, [(name, bytes(20 << 20))])
    with pytest.raises(SourceError, match="above 200 to 1"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)


@pytest.mark.parametrize("kind", [b"Z", tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME])
def test_archive_members_that_are_not_files_count_in_the_ratio(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(archives, "_RATIO_FREE_BYTES", 1 << 20)
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 8 << 20
    body = info.tobuf(tarfile.GNU_FORMAT) + b"a" * info.size + packed("tar", GOOD.items())
    with pytest.raises(SourceError, match=r"member '.{1,300}' is refused: .*above 200 to 1"):
        unpack(archive_of(gzip.compress(body), tmp_path), tmp_path)
    assert_nothing_written(tmp_path)


def test_a_full_disk_is_named_before_writing(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=3)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SourceError, match=r"needs 4 bytes, and 3 are free\. Fix: free some space"):
        unpack(make(tmp_path, "zip", GOOD.items()), tmp_path)
    assert_nothing_written(tmp_path)


@KINDS
def test_a_damaged_archive_says_how_to_fetch_it_again(tmp_path, kind):
    archive = make(tmp_path, kind, [("v1/video.mp4", bytes(range(256)) * 400)])
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(SourceError, match=r"cannot be unpacked .*delete .* and fetch it again"):
        unpack(archive, tmp_path)
    archive.write_bytes(b"<html>not found</html>" * 50)
    with pytest.raises(SourceError, match="cannot be unpacked"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)


def test_two_threads_that_unpack_the_same_archive_agree(tmp_path):
    archive = make(tmp_path, "zip", GOOD.items())
    errors = []

    def work():
        try:
            unpack(archive, tmp_path)
        except (SourceError, OSError) as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert unpack(archive, tmp_path) == GOOD
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["all"]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), kind=st.sampled_from(["zip", "tar", "tar.gz"]))
def test_damaged_archives_raise_our_error_and_write_only_into_their_folder(tmp_path_factory, data, kind):
    tmp_path = tmp_path_factory.mktemp("fuzz")
    archive = make(tmp_path, kind, GOOD.items())
    body = bytearray(archive.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    archive.write_bytes(bytes(body))
    try:
        unpack(archive, tmp_path)
    except SourceError:
        assert_nothing_written(tmp_path)
    else:
        assert {p.name for p in (tmp_path / "out" / "all").glob("*/*")} <= {"coco_annotation.json", "video.mp4"}


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


def test_archives_of_videos_are_fetched_only_when_they_are_needed(hub, opened):
    files = {name: body for name, body in release_files().items() if not name.endswith("mp4")}
    files |= {f"videos/{v}.tar": packed("tar", [(f"{v}/video.mp4", video_bytes(v))]) for v in ("v1", "v2", "v3")}
    source = opened(revision=hub.commit("org/name", files))
    assert not any(path.endswith(".tar") for path in hub.downloads())
    source.fetch_videos(["v2"])
    assert [path for path in hub.downloads() if path.endswith(".tar")] == ["videos/v2.tar"]
    assert (source.root / "v2" / "video.mp4").read_bytes() == video_bytes("v2")


EVIL = "../../../../evil/../video.mp4"


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
