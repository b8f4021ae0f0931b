"""Archives are unpacked whole or not at all, only the release's files, and never outside their folder."""

import gzip
import io
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

GOOD = {"v1/coco_annotation.json": b"{}", "v1/video.mp4": b"film"}


def zip_file(path, members):
    """members: (name or ZipInfo, body)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, body in members:
            package.writestr(name, body)
    return path


def tar_file(path, members, mode="w"):
    """members: (TarInfo or name, body)."""
    with tarfile.open(path, mode) as package:
        for name, body in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(body)
            package.addfile(info, io.BytesIO(body))
    return path


def make(tmp_path, kind, members):
    path = tmp_path / "in" / f"all.{kind}"
    path.parent.mkdir(exist_ok=True)
    return zip_file(path, members) if kind == "zip" else tar_file(path, members, "w:gz" if "gz" in kind else "w")


def unpack(archive, tmp_path):
    target = tmp_path / "out" / "all"
    unpack_release(archive, target, name=archive.name)
    return {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}


def assert_nothing_written(tmp_path):
    assert list((tmp_path / "out").rglob("*")) == []
    assert sorted(path.name for path in tmp_path.iterdir()) in (["in", "out"], ["in"])


KINDS = pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tgz"])


@KINDS
def test_the_two_files_of_each_video_are_unpacked_and_nothing_else(tmp_path, kind):
    extra = {"README.md": b"#", "v1/notes.txt": b"n", "__MACOSX/v1/._video.mp4": b"m"}
    archive = make(tmp_path, kind, [*GOOD.items(), *extra.items()])
    assert unpack(archive, tmp_path) == GOOD


@KINDS
def test_what_is_unpacked_already_is_left_alone(tmp_path, kind):
    archive = make(tmp_path, kind, GOOD.items())
    unpack(archive, tmp_path)
    archive.write_bytes(b"no longer an archive")
    assert unpack(archive, tmp_path) == GOOD


def test_folders_prefixes_and_top_level_files_are_understood(tmp_path):
    members = [("data/", b""), ("data/v1/", b""), ("data/v1/video.mp4", b"1"), ("./x//v2/video.mp4", b"2")]
    assert unpack(make(tmp_path, "zip", members), tmp_path) == {"v1/video.mp4": b"1", "v2/video.mp4": b"2"}
    other = tar_file(tmp_path / "in" / "v7.tar", [("./video.mp4", b"7")])
    unpack_release(other, tmp_path / "out" / "v7", name="parts/v7.tar")
    assert (tmp_path / "out/v7/v7/video.mp4").read_bytes() == b"7"


def test_archives_are_known_by_their_suffix():
    assert all(is_archive(name) for name in ("a.zip", "x/a.TAR", "a.tar.gz", "a.tgz"))
    assert not any(is_archive(name) for name in ("a.mp4", "zip", "a.zip.txt", "a.tar.xz"))
    assert archive_stem("x/v.1.tar.gz") == "v.1"


HOSTILE_NAMES = [
    ("../video.mp4", "'..' is not a name"),
    ("v1/../../../video.mp4", "'..' is not a name"),
    ("/tmp/v1/video.mp4", "its path is absolute"),
    ("C:/v1/video.mp4", "drive letter"),
    ("v1\\..\\..\\video.mp4", "path separator"),
    ("v\n1/video.mp4", "control character"),
    ("x" * 256 + "/video.mp4", "longer than 255 bytes"),
    ("../harmless.txt", "'..' is not a name"),
]


@KINDS
@pytest.mark.parametrize(("name", "reason"), HOSTILE_NAMES)
def test_a_path_that_leads_elsewhere_condemns_the_archive(tmp_path, kind, name, reason):
    archive = make(tmp_path, kind, [*GOOD.items(), (name, b"evil")])
    with pytest.raises(SourceError, match="is refused") as caught:
        unpack(archive, tmp_path)
    message = str(caught.value)
    assert archive.name in message
    assert repr(name)[1:30] in message
    assert reason in message
    assert "unpack it yourself" in message
    assert_nothing_written(tmp_path)


def test_a_zip_name_with_a_nul_byte_is_refused(tmp_path):
    archive = make(tmp_path, "zip", [("v1/video.mp4XY", b"x")])
    archive.write_bytes(archive.read_bytes().replace(b"mp4XY", b"mp4\0Y"))
    with pytest.raises(SourceError, match="control character"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "a symbolic link to '/etc/passwd'"),
        (tarfile.LNKTYPE, "a hard link to '/etc/passwd'"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a device"),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind, what):
    info = tarfile.TarInfo("v1/video.mp4")
    info.type, info.linkname = kind, "/etc/passwd"
    archive = make(tmp_path, "tar", [("v1/coco_annotation.json", b"{}"), (info, b"")])
    with pytest.raises(SourceError, match=f"'v1/video.mp4' is refused: it is {what}"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)


def test_a_link_to_a_folder_cannot_redirect_a_later_file(tmp_path):
    link = tarfile.TarInfo("v1")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    with pytest.raises(SourceError, match="'v1' is refused: it is a symbolic link"):
        unpack(make(tmp_path, "tar", [(link, b""), ("v1/video.mp4", b"evil")]), tmp_path)
    assert_nothing_written(tmp_path)


@pytest.mark.parametrize(("mode", "what"), [(stat.S_IFLNK, "a symbolic link"), (stat.S_IFIFO, "a device")])
def test_links_and_devices_in_a_zip_are_refused(tmp_path, mode, what):
    info = zipfile.ZipInfo("v1/video.mp4")
    info.external_attr = (mode | 0o777) << 16
    with pytest.raises(SourceError, match=f"it is {what}"):
        unpack(make(tmp_path, "zip", [(info, b"/etc/passwd")]), tmp_path)
    assert_nothing_written(tmp_path)


def test_an_encrypted_zip_member_is_refused(tmp_path):
    archive = make(tmp_path, "zip", [("v1/video.mp4", b"x")])
    body = bytearray(archive.read_bytes())
    body[body.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(bytes(body))
    with pytest.raises(SourceError, match="an encrypted file"):
        unpack(archive, tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@KINDS
@pytest.mark.parametrize(
    ("again", "reason"),
    [
        ("v1/video.mp4", "an earlier member has the same name"),
        ("V1/Video.MP4", "an earlier member has the same name"),
        ("other/v1/video.mp4", "holds video.mp4 of the video 'v1' twice"),
        ("./v1//video.mp4", "an earlier member has the same name"),
    ],
)
def test_names_that_collide_are_refused(tmp_path, kind, again, reason):
    with pytest.raises(SourceError, match=reason):
        unpack(make(tmp_path, kind, [*GOOD.items(), (again, b"other")]), tmp_path)
    assert_nothing_written(tmp_path)


@KINDS
def test_too_many_members_or_bytes_are_refused(tmp_path, kind, monkeypatch):
    archive = make(tmp_path, kind, GOOD.items())
    with monkeypatch.context() as patch:
        patch.setattr(archives, "MAX_MEMBERS", 1)
        with pytest.raises(SourceError, match=r"more than 1 members\. Remedy: if you trust"):
            unpack(archive, tmp_path)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    monkeypatch.setattr(archives, "MAX_BYTES", 5)
    with pytest.raises(SourceError, match=r"unpacks to 6 bytes, above 5\. Remedy: if you trust"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)
    monkeypatch.setattr(archives, "MAX_BYTES", 6)
    assert unpack(archive, tmp_path) == GOOD


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("name", ["v1/video.mp4", "ignored.bin"])
def test_a_bomb_is_refused_before_it_goes_off(tmp_path, kind, name, monkeypatch):
    monkeypatch.setattr(archives, "_RATIO_FREE_BYTES", 1 << 20)
    archive = make(tmp_path, kind, [(name, bytes(20 << 20))])
    with pytest.raises(SourceError, match="above 200 to 1"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path):
    archive = make(tmp_path, "zip", [("v1/video.mp4", bytes(1 << 20))])
    body = archive.read_bytes().replace(struct.pack("<L", 1 << 20), struct.pack("<L", 100))
    archive.write_bytes(body)
    with pytest.raises(SourceError, match=r"cannot be unpacked|claims 100"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)


def test_a_tar_header_that_claims_a_huge_record_is_not_read_into_memory(tmp_path):
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    archive = tmp_path / "in" / "all.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)))
    with pytest.raises(SourceError, match="a header claims"):
        unpack(archive, tmp_path)


def test_a_sparse_tar_member_is_refused(tmp_path):
    info = tarfile.TarInfo("v1/video.mp4")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 40)}
    archive = tmp_path / "in" / "all.tar"
    archive.parent.mkdir()
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as package:
        body = b"1\n0\n0\n".ljust(512, b"\0")
        info.size = len(body)
        package.addfile(info, io.BytesIO(body))
    with pytest.raises(SourceError, match=r"a sparse file|cannot be unpacked"):
        unpack(archive, tmp_path)
    assert_nothing_written(tmp_path)


def test_a_full_disk_is_named_before_writing(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=3)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SourceError, match=r"needs 4 bytes, and 3 are free\. Remedy: free some space"):
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
def test_damaged_bytes_never_raise_anything_else_nor_write_elsewhere(tmp_path_factory, data, kind):
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
