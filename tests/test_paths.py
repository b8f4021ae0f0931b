"""Nothing that a file or a listing names may lead out of the folder it belongs to."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.errors import DataError
from barista_bench.files.paths import confine, valid_video_id


@pytest.mark.parametrize("name", ["v", "P01-02.final", "Kaffee süß", "動画", "a b", "..a", "x" * 255])
def test_ordinary_names_are_video_ids(name):
    assert valid_video_id(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/a", "a\\b", "..\\a", "C:", "C:a", "a\0", "a\nb", "a\x7f", "\udcff", "x" * 256,
     "ü" * 128, "a\u2028b"],
)  # fmt: skip
def test_names_that_could_lead_elsewhere_or_break_a_file_system_are_no_video_ids(name):
    assert not valid_video_id(name)


def test_a_path_below_the_root_is_joined_and_links_inside_of_it_and_to_it_are_followed(tmp_path, monkeypatch):
    (tmp_path / "v").mkdir()
    (tmp_path / "alias").symlink_to("v")
    (tmp_path / "root").symlink_to(".")
    root = tmp_path.resolve()
    assert confine(tmp_path, "v", "video.mp4") == confine(tmp_path, "v/video.mp4") == root / "v" / "video.mp4"
    assert (confine(tmp_path), confine(tmp_path / "root", "v")) == (root, root / "v")
    assert confine(tmp_path, "alias", "video.mp4").parent.name == "alias"
    monkeypatch.chdir(tmp_path)
    assert confine(Path("release"), "v") == root / "release" / "v"


@pytest.mark.parametrize(
    "part", ["..", "v/../../x", "/etc/passwd", "", "v//x", ".", "v\\..\\x", "C:/x", "a\0b", "\udcff"]
)
def test_paths_that_climb_or_are_absolute_are_refused_by_name(tmp_path, part):
    with pytest.raises(DataError, match="is refused because of") as caught:
        confine(tmp_path, part, "video.mp4")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("target", ["folder", "file", "relative", "sibling"])
def test_a_link_out_of_the_root_is_refused(tmp_path, target):
    root, outside = tmp_path / "root", tmp_path / "root2"  # whose name starts like the root's
    (root / "v").mkdir(parents=True)
    outside.mkdir()
    link = root / "w" if target == "folder" else root / "v" / "w"
    link.symlink_to({"file": outside / "secret", "relative": "../../root2"}.get(target, outside))
    with pytest.raises(DataError, match=r"leads outside the folder.*hard link"):
        confine(root, "w/video.mp4" if target == "folder" else "v/w")


def test_a_loop_of_links_is_a_data_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DataError, match="loop"):
        confine(tmp_path, "a", "video.mp4")


def test_the_links_of_a_hub_snapshot_are_followed_into_its_own_blobs_only(tmp_path):
    repo = tmp_path / "hub" / "datasets--org--name"
    snapshot = repo / "snapshots" / ("a" * 40)
    (snapshot / "v").mkdir(parents=True)
    (repo / "blobs").mkdir()
    (repo / "blobs" / "etag").write_text("{}")
    (repo / "elsewhere").write_text("{}")
    (snapshot / "v" / "good").symlink_to("../../../blobs/etag")
    (snapshot / "v" / "bad").symlink_to("../../../elsewhere")
    assert confine(snapshot, "v", "good").read_text() == "{}"
    with pytest.raises(DataError, match="leads outside"):
        confine(snapshot, "v", "bad")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(alphabet="a./\\:C\0\n", max_size=8), min_size=1, max_size=3))
def test_whatever_is_accepted_lies_below_the_root(tmp_path, parts):
    try:
        path = confine(tmp_path, *parts)
    except DataError:
        return
    assert os.path.normpath(path).startswith(str(tmp_path.resolve()) + os.sep)
