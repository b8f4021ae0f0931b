"""The validator looks at records, masks and videos, and names each problem once."""

import json
import re
import shutil
from pathlib import Path

import av
import pytest
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.generate.generator import pool_candidates
from barista_bench.generate.tog_bench.family import ToGBenchFamily
from barista_bench.scene_graph import SceneGraph, scene_graph, validate
from barista_bench.scene_graph.domain import load_domain
from tests.releases import BUTTON, document, segmentation, span, write_release, write_video


def messages(root: Path, **options: int) -> list[str]:
    return [str(problem) for problem in validate(root, **options).problems]


def test_a_healthy_release_has_no_problem(small_release: Path, small_kitchen: Path) -> None:
    report = validate(small_release)
    assert report.problems == ()
    assert [video.instances for video in report.videos] == [170] * 6
    assert validate(small_kitchen).problems == ()


def test_real_clips_have_no_problem(real_release: Path) -> None:
    assert validate(real_release).problems == ()


def test_boxes_that_have_nothing_to_do_with_their_masks_are_named(tmp_path: Path) -> None:
    """All but the machine's, which takes up half of the frame in either direction: a box of twice its sides is odd."""
    content = document()
    for annotation in content["annotations"]:
        annotation["bbox"] = [0, 0, 96, 64]
    texts = messages(write_release(tmp_path, content=content))
    assert len(texts) == 170
    assert all("warning" in m and "is not that of its mask" in m and ".bbox: box [0.0, 0.0, 96.0" in m for m in texts)


@pytest.mark.parametrize(
    ("box", "odd"),
    [
        ([4, 4, 40, 50], False),
        ([3.5, 3.2, 41, 51], False),
        ([4, 4, 40, 26], False),
        ([4, 4, 40, 24], True),
        ([50, 4, 40, 50], True),
        ([44, 54, -40, -50], True),
        ([4, 4, 0, 0], True),
    ],
)
def test_a_box_is_odd_below_half_of_an_iou(tmp_path: Path, box: list[float], odd: bool) -> None:
    content = document()
    content["annotations"][0]["bbox"] = box
    texts = messages(write_release(tmp_path, content=content))
    assert any("annotations[0].bbox" in m and "is not that of its mask" in m for m in texts) == odd


def test_a_polygon_is_compared_with_its_box_too_and_the_box_of_a_tiny_object_may_be_rounded(tmp_path: Path) -> None:
    content = document()
    next(a for a in content["annotations"] if a["object_id"] == BUTTON)["bbox"] = [9, 9, 6, 6]
    content["annotations"][0]["segmentation"] = [[4, 4, 44, 4, 44, 54, 4, 54]]
    content["annotations"][1]["segmentation"] = [[4, 4, 44, 4, 44, 54, 4, 54]]
    (text,) = messages(write_release(tmp_path, content=content))
    assert "annotations[1].bbox: box [50.0, 30.0, 20.0, 20.0] is not that of its mask, [4.0, 4.0, 40.0, 50.0]" in text


def test_repeated_keys_are_named(tmp_path: Path) -> None:
    text = json.dumps(document())
    for once, twice in (
        ('"o-cup": "c-coffee cup"', '"o-cup": "c-button", "o-cup": "c-coffee cup"'),
        ('"relations": [', '"relations": [], "relations": ['),
        ('"bbox": [50', '"bbox": [0, 0, 1, 1], "bbox": [50'),
    ):
        assert once in text
        text = text.replace(once, twice)
    texts = messages(write_release(tmp_path, content=text.encode()))
    assert [m.split("key ")[1].split(":")[0] for m in texts] == [
        "'bbox' stands twice in 40 object(s)",
        "'o-cup' stands twice in 1 object(s)",
        "'relations' stands twice in 1 object(s)",
    ]


def test_of_damaged_masks_the_others_boxes_are_still_compared(tmp_path: Path) -> None:
    content = document()
    content["annotations"][0]["segmentation"] = {"counts": "garbage~~~", "size": [64, 96]}
    content["annotations"][1]["bbox"] = [0, 0, 96, 64]
    content["annotations"][2]["bbox"] = [float("nan"), 0, 1, 1]
    content["annotations"][3]["bbox"] = [0, 0, 96, 64]
    texts = messages(write_release(tmp_path, content=content))
    assert [m.partition("annotations[")[2][0] for m in texts] == ["2", "0", "1", "3"]


def test_masks_are_checked(tmp_path: Path) -> None:
    content = document()
    content["annotations"][0]["segmentation"] = segmentation((0, 0, 0, 0))
    content["annotations"][5]["segmentation"]["counts"] = "garbage~~~"
    content["annotations"][6]["segmentation"] = {"counts": "0", "size": [1, 1]}
    del content["annotations"][7]["segmentation"]
    del content["annotations"][8]["bbox"]
    texts = messages(write_release(tmp_path, content=content))
    # Annotations of one object share their mask in the document, so more than one is damaged.
    assert any("annotations[0].segmentation: the mask has no pixel" in m for m in texts)
    assert any("annotations[5].segmentation: mask counts" in m and "characters outside" in m for m in texts)
    assert any("annotations[6].segmentation: mask size" in m and "is not the frame's" in m for m in texts)
    assert any("annotations[7].segmentation: missing" in m for m in texts)
    assert any("annotations[8].bbox: no box" in m and m.startswith("warning") for m in texts)


@pytest.mark.parametrize("size", [None, 0, 40, 900])
def test_a_missing_or_truncated_video_is_named(tmp_path: Path, size: int | None) -> None:
    path = write_release(tmp_path, video=size is not None) / "v1/video.mp4"
    if size is not None:
        path.write_bytes(path.read_bytes()[:size])
    (text,) = messages(tmp_path)
    assert ("v1/video.mp4: missing" if size is None else "v1/video.mp4") in text
    assert "Fix" in text


def test_a_video_that_does_not_match_its_annotation_is_named(tmp_path: Path) -> None:
    write_release(tmp_path)
    write_video(tmp_path / "v1/video.mp4", frames=30, size=(128, 64))
    texts = messages(tmp_path)
    assert any("holds 30 frames where the annotation says 40" in m for m in texts)
    assert any("is 128x64 where the annotation says 96x64" in m for m in texts)


def test_two_processes_find_the_same(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_release(tmp_path, name, video=name != "b")
    write_release(tmp_path, "d", b"{")
    assert messages(tmp_path, num_proc=2) == messages(tmp_path)


def test_the_work_a_video_does_not_grow_with_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 videos took 30 microseconds of CPU a mask beside 22 at 50: each looked for all the others again."""
    looked: list[Path] = []
    find = scene_graph._find_videos

    def noted(root: Path) -> object:
        looked.append(root)
        return find(root)

    monkeypatch.setattr(scene_graph, "_find_videos", noted)
    for name in ("a", "b", "c"):
        write_release(tmp_path, name, video=False)
    assert len(validate(tmp_path).videos) == 3
    assert looked == [tmp_path]
    looked.clear()
    pool_candidates(SceneGraph(tmp_path), {"tog_bench": ToGBenchFamily(load_domain())}, per_subtask=1, seed=0)
    assert looked == [tmp_path]


@pytest.mark.parametrize("damaged", [0, 84, 169])
def test_one_damaged_mask_among_healthy_ones_is_found_where_it_is(tmp_path: Path, damaged: int) -> None:
    """All masks of a valid form are checked together; an error of one must not be reported for another."""
    content = document()
    segmentation = content["annotations"][damaged]["segmentation"]
    content["annotations"][damaged]["segmentation"] = {**segmentation, "counts": segmentation["counts"] + "1"}
    texts = messages(write_release(tmp_path, content=content, video=False))
    assert len(texts) == 2, "and the video is missing"
    assert f"annotations[{damaged}].segmentation: mask counts" in texts[0]


def test_validation_decodes_every_frame_on_request(small_release: Path, tmp_path: Path) -> None:
    root = tmp_path / "release"
    shutil.copytree(small_release, root)
    path = sorted(root.glob("*/video.mp4"))[0]
    with av.open(str(path)) as container:
        packets = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]
    place, size = packets[len(packets) // 2]
    data = bytearray(path.read_bytes())
    data[place + 4 : place + size] = bytes(size - 4)  # an empty picture
    path.write_bytes(data)
    (problem,) = (problem for problem in validate(root, decode=True).problems if path.parent.name in str(problem))
    assert re.search(r"\d+ of \d+ frames cannot be decoded: \d+", str(problem))
    assert "Fix: fetch the video again" in str(problem)


def test_the_message_about_a_wrong_record_names_the_expected_keys_and_types(tmp_path: Path) -> None:
    content = document()
    content["relations"][0]["image_ranges"] = [{"start": 0, "end": 4}]
    content["annotations"][0]["bbox"] = [1, 2, 3]
    texts = messages(write_release(tmp_path, content=content))
    (box,) = [text for text in texts if "annotations[0].bbox" in text]
    (span,) = [text for text in texts if "relations[0].image_ranges[0]" in text]
    assert '{"image_id": integer, "object_id": text, "bbox"?: [number, number, number, number] or null' in box
    assert '"image_ranges": [{"image_id_start": integer, "image_id_end": integer}, ...]}' in span


@pytest.mark.parametrize("section", ["attributes", "relations", "activities", "process_steps"])
def test_a_missing_section_is_named_unless_coverage_lists_the_complete_sections(tmp_path: Path, section: str) -> None:
    content = document()
    del content[section]
    (text,) = messages(write_release(tmp_path, content=content))
    assert text.startswith(f"warning: v1/coco_annotation.json: {section}: the section is missing")
    content["coverage"] = {"frames": [span(0, 40)]}
    assert messages(write_release(tmp_path, content=content)) == []


def test_ids_that_are_numbers_are_read_as_text(tmp_path: Path) -> None:
    content = document()
    content["categories"][1]["id"] = 2
    content["object_id_to_category_id"] = {**content["object_id_to_category_id"], "o-cup": 2, "7": 2}
    content["annotations"][0]["object_id"] = 7
    report = validate(write_release(tmp_path, content=content))
    assert report.errors == 0
    assert report.videos[0].instances == 170
    assert any("the id is a number: read as text" in str(problem) for problem in report.problems)


def test_one_mistake_a_hundred_times_is_one_line_with_a_count(tmp_path: Path) -> None:
    content = document()
    content["relations"] += [
        {**content["relations"][0], "source_object_id": f"o-{index}", "value": "on"} for index in range(100)
    ]
    content["relations"] += [{"image_ranges": [{"start": index}]} for index in range(100)]
    done = CliRunner().invoke(app, ["validate", str(write_release(tmp_path, content=content)), "--no-progress"])
    assert done.exit_code == 1
    lines = [line for line in done.output.splitlines() if "error: " in line]
    assert len(lines) == 2
    assert all("(and 99 more like it)" in line for line in lines)
    assert "200 errors, 0 warnings" in done.output
    assert "docs/graph_format.md" in done.output
    assert "graph.schema.json" in done.output.replace("\n", "")
