"""The validator looks at records, masks and videos, and names each problem once."""

from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.scene_graph import validate
from tests.releases import document, write_release, write_video


def messages(root: Path, **options: int) -> list[str]:
    return [str(problem) for problem in validate(root, **options).problems]


def test_a_healthy_release_has_no_problem(small_release: Path) -> None:
    found = validate(small_release)
    assert found.problems == ()
    assert [video.instances for video in found.videos] == [170] * 6


def test_real_clips_have_no_errors(real_release: Path) -> None:
    assert validate(real_release).errors == 0


def test_masks_are_checked(tmp_path: Path) -> None:
    content = document()
    content["annotations"][5]["segmentation"]["counts"] = "garbage~~~"
    content["annotations"][6]["segmentation"] = {"counts": "0", "size": [1, 1]}
    del content["annotations"][7]["segmentation"]
    del content["annotations"][8]["bbox"]
    found = messages(write_release(tmp_path, content=content))
    # Annotations of one object share their mask in the document, so more than one is damaged.
    assert any("annotations[5].segmentation.counts" in m and "characters outside" in m for m in found)
    assert any("annotations[6].segmentation.size" in m and "is not the frame's" in m for m in found)
    assert any("annotations[7].segmentation: missing" in m for m in found)
    assert any("annotations[8].bbox: no box" in m and m.startswith("warning") for m in found)


def test_a_missing_video_is_named(tmp_path: Path) -> None:
    write_release(tmp_path, video=False)
    assert [m for m in messages(tmp_path) if "v1/video.mp4: missing" in m]


@pytest.mark.parametrize("size", [0, 40, 900])
def test_a_truncated_video_is_named(tmp_path: Path, size: int) -> None:
    write_release(tmp_path)
    path = tmp_path / "v1/video.mp4"
    path.write_bytes(path.read_bytes()[:size])
    found = messages(tmp_path)
    assert len(found) == 1
    assert "v1/video.mp4" in found[0]
    assert "Remedy" in found[0]


def test_a_video_that_does_not_match_its_annotation_is_named(tmp_path: Path) -> None:
    write_release(tmp_path)
    write_video(tmp_path / "v1/video.mp4", frames=30, size=(128, 64))
    found = messages(tmp_path)
    assert any("holds 30 frames where the annotation says 40" in m for m in found)
    assert any("is 128x64 where the annotation says 96x64" in m for m in found)


def test_two_processes_find_the_same(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_release(tmp_path, name, video=name != "b")
    write_release(tmp_path, "d", b"{")
    assert messages(tmp_path, num_proc=2) == messages(tmp_path)


@pytest.mark.parametrize("damaged", [0, 84, 169])
def test_one_damaged_mask_among_healthy_ones_is_found_where_it_is(tmp_path: Path, damaged: int) -> None:
    """All masks of a healthy form are checked together; what is wrong with one must not be laid on another."""
    content = document()
    segmentation = content["annotations"][damaged]["segmentation"]
    content["annotations"][damaged]["segmentation"] = {**segmentation, "counts": segmentation["counts"] + "1"}
    found = messages(write_release(tmp_path, content=content, video=False))
    assert len(found) == 2, "and the video is missing"
    assert f"annotations[{damaged}].segmentation.counts" in found[0]
