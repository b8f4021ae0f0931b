"""Reading: files and folders that cannot be read at all cost their video, or are refused."""

import json
from pathlib import Path

import pytest

from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph
from tests.releases import document, write_release

BAD_FILES = {
    "invalid JSON": (b"{", "not valid JSON"),
    "empty": (b"", "not valid JSON"),
    "not an object": (b"[1, 2]", "not a JSON object"),
    "binary": (b"\x00\xff\xfe", "not valid JSON"),
    "not a number": (b'{"video_metadata": NaN, }', "not valid JSON"),
    "text that is not UTF-8": (b'{"\xff": 1}', "not valid JSON"),
    "deeply nested": (b"[" * 100_000, "JSON"),
    "an unknown key nested deeply": (json.dumps(document()).encode()[:-1] + b', "x": ' + b"[" * 100_000, "JSON"),
    "no objects": (json.dumps({**document(), "object_id_to_category_id": 3}).encode(), "object_id_to_category_id"),
    "no metadata": (json.dumps({**document(), "video_metadata": []}).encode(), "video_metadata is empty"),
}


@pytest.mark.parametrize(("content", "what"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_costs_its_video_and_no_other(tmp_path: Path, content: bytes, what: str) -> None:
    write_release(tmp_path, "bad", content, video=False)
    write_release(tmp_path, "good", video=False)
    scene = SceneGraph(tmp_path)
    assert [graph.video_id for graph in scene] == ["good"]
    assert len(scene.problems) == 1
    assert what in str(scene.problems[0])
    assert "Fix" in str(scene.problems[0])


@pytest.mark.parametrize("frames", [10**12, 10**30, 0, -1])
def test_an_impossible_number_of_frames_makes_the_video_unreadable(tmp_path: Path, frames: int) -> None:
    content = document()
    content["video_metadata"][0]["frame_count"] = frames
    write_release(tmp_path, "v1", content, video=False)
    with pytest.raises(DataError, match=r"video_metadata\[0\]"):
        SceneGraph(tmp_path)["v1"]


def test_a_missing_annotation_file_is_named_and_a_root_without_videos_refused(tmp_path: Path) -> None:
    write_release(tmp_path, "v1", video=False)
    write_release(tmp_path, "v2")
    (tmp_path / "v2/coco_annotation.json").unlink()
    scene = SceneGraph(tmp_path)
    assert scene.video_ids == ("v1",)
    assert "v2/coco_annotation.json" in str(scene.problems[0])
    with pytest.raises(DataError, match=r"no folder with a coco_annotation\.json"):
        SceneGraph(tmp_path / "v1")
    with pytest.raises(DataError, match="no such folder"):
        SceneGraph(tmp_path / "absent")


def test_links_that_leave_the_root_are_refused(tmp_path: Path) -> None:
    outside = write_release(tmp_path / "outside", "secret", video=False)
    root = write_release(tmp_path / "root", "v1", video=False)
    (root / "linked").symlink_to(outside / "secret")
    write_release(root, "v2", video=False)
    (root / "v2/video.mp4").symlink_to("/etc/passwd")
    scene = SceneGraph(root)
    assert scene.video_ids == ("v1",)
    assert len(scene.problems) == 2


@pytest.mark.parametrize("video_id", ["../../etc", "/etc", "..", "v1/../../x"])
def test_a_video_id_that_leaves_the_root_is_refused(tmp_path: Path, video_id: str) -> None:
    scene = SceneGraph(write_release(tmp_path, video=False))
    for ask in (scene.__getitem__, scene.video_path):
        with pytest.raises(DataError):
            ask(video_id)
