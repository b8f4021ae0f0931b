"""Which frames of a clip are shown, of all kinds of clips, and what becomes of absent ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barista_bench.benchmarks.handyvqa import Action, RvosParts
from barista_bench.benchmarks.handyvqa.release import open_release
from barista_bench.core.example import Example, SkippedExample
from tests.handyvqa.made import HEIGHT, WIDTH, examples_of, record, rectangle, target, write_folder, write_lines
from tests.releases import write_video

MASK = rectangle(10, 10, 40, 30)


def indices(item: Example | SkippedExample) -> list[int]:
    assert isinstance(item, Example), item
    return [frame.frame_index for frame in item.frames]


def derive(root: Path, *records: dict[str, Any], frames: int = 16, **more: Any) -> list[Example | SkippedExample]:
    write_lines(root / "action.jsonl", records)
    return examples_of(Action(), open_release(root, None), frames=frames, **more)


def test_a_folder_named_after_the_record_is_its_clip(tmp_path: Path) -> None:
    write_folder(tmp_path / "action_0000_frames", 31)
    (example,) = derive(tmp_path, record())
    assert indices(example) == list(range(0, 31, 2))
    assert example.video_id == "action_0000_frames"
    assert example.metadata == {
        "split": "test",
        "category": "action",
        "scenario": None,
        "n_options": 5,
        "n_correct": 1,
        "n_frames": 16,
        "centre_seconds": None,
    }
    assert example.evidence == {"file": "action.jsonl", "row": 0, "graph": None, "visibility": None, "facts": None}


@pytest.mark.parametrize("name", ["action_0000.mp4", "action/action_0000.mp4"])
def test_a_video_named_after_the_record_is_its_clip(tmp_path: Path, name: str) -> None:
    (tmp_path / "action").mkdir()
    write_video(tmp_path / name, frames=5)
    (example,) = derive(tmp_path, record())
    assert indices(example) == [0, 1, 2, 3, 4]  # fewer than 16: all of them
    assert example.video_id == name


def test_a_clip_is_five_seconds_around_its_centre(tmp_path: Path) -> None:
    write_video(tmp_path / "long.mp4", frames=240)  # 8 s at 30 a second
    clip = {"video": "long.mp4", "centre_seconds": 4.0}
    (example,) = derive(tmp_path, record(clip=clip), frames=2)
    assert indices(example) == [45, 195]  # 1.5 s and 6.5 s
    early = {"video": "long.mp4", "centre_seconds": 1.0}
    (example,) = derive(tmp_path, record(clip=early), frames=3)
    assert indices(example) == [0, 52, 105]  # cut at the start of the video


def test_a_window_of_a_folder_goes_by_its_rate(tmp_path: Path) -> None:
    write_folder(tmp_path / "frames", 20)
    clip = {"frames": "frames", "centre_seconds": 5.0, "fps": 2.0}
    (example,) = derive(tmp_path, record(clip=clip), frames=3)
    assert indices(example) == [5, 10, 15]


def test_an_absent_or_damaged_clip_is_skipped_by_name_and_never_scored(tmp_path: Path) -> None:
    (tmp_path / "c_frames").mkdir()
    (tmp_path / "c_frames/000000.png").write_bytes(b"no picture")
    (tmp_path / "d.mp4").write_bytes(b"no video")
    late = {"video": "e.mp4", "centre_seconds": 60.0}
    write_video(tmp_path / "e.mp4", frames=10)
    write_folder(tmp_path / "f_frames", 3)
    items = derive(tmp_path, record("a"), record("c"), record("d"), record("e", clip=late), record("f"))
    *skipped, good = items
    assert indices(good) == [0, 1, 2]
    reasons = [item.text for item in skipped if isinstance(item, SkippedExample)]
    assert len(reasons) == 4
    for item_id, reason, wanted in zip("acde", reasons, ("a_frames", "000000.png", "d.mp4", "e.mp4"), strict=True):
        assert reason.startswith(f"{item_id}: ")
        assert wanted in reason
    assert "--videos" in reasons[0]


def test_a_clip_that_is_a_link_out_of_the_media_is_skipped(tmp_path: Path) -> None:
    write_folder(tmp_path / "outside", 3)
    write_folder(tmp_path / "media/b_frames", 3)
    (tmp_path / "media/a_frames").symlink_to(tmp_path / "outside")
    write_lines(tmp_path / "annotations/action.jsonl", [record("a"), record("b")])
    skipped, good = examples_of(Action(), open_release(tmp_path / "annotations", tmp_path / "media"))
    assert isinstance(skipped, SkippedExample)
    assert "leads outside" in skipped.reason
    assert indices(good) == [0, 1, 2]


def test_examples_come_by_id_and_can_be_chosen_by_video_and_split(tmp_path: Path) -> None:
    for name in ("action_2", "action_10", "action_1"):
        write_folder(tmp_path / f"{name}_frames", 2)
    records = [record("action_10"), record("action_1", split="train"), record("action_2")]
    for sampling, names in (
        ({}, ["action_1", "action_2", "action_10"]),
        ({"videos": ["action_2_frames"]}, ["action_2"]),
        ({"splits": ["train"]}, ["action_1"]),
    ):
        items = derive(tmp_path, *records, **sampling)
        assert [item.example_id for item in items if isinstance(item, Example)] == names


def segmented(root: Path, *moments: dict[str, Any], clip: dict[str, Any] | None = None) -> Example | SkippedExample:
    annotated = [{**moment, "targets": [target(1, MASK)]} for moment in moments]
    write_lines(root / "rvos_parts.jsonl", [record("parts_0000", annotated=annotated, clip=clip)])
    (item,) = examples_of(RvosParts(), open_release(root, None))
    return item


def test_annotated_frames_are_always_shown_and_seconds_are_of_the_whole_video(tmp_path: Path) -> None:
    write_folder(tmp_path / "parts_0000_frames", 100, (WIDTH, HEIGHT))
    of_folder = segmented(tmp_path, {"frame": 50}, {"frame": 1}, {"frame": 98})
    write_video(tmp_path / "long.mp4", frames=240, size=(WIDTH, HEIGHT))
    clip = {"video": "long.mp4", "centre_seconds": 4.0}
    of_video = segmented(tmp_path, {"second": 3.0}, {"frame": 123}, clip=clip)
    for item, annotated in ((of_folder, [1, 50, 98]), (of_video, [90, 123])):
        assert len(indices(item)) == 16
        assert isinstance(item, Example)
        assert [indices(item)[place] for place in item.inputs["frames"]] == annotated  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("moments", "size", "reason"),
    [
        ([{"frame": 20}], (WIDTH, HEIGHT), "the annotated frame 20 is outside of the clip, 0 to 19"),
        ([{"frame": 3}], (WIDTH, HEIGHT + 2), "its frames are 96x66 px, the masks 96x64"),
        ([{"frame": index} for index in range(17)], (WIDTH, HEIGHT), "17 frames must be shown, but only 16"),
    ],
)
def test_annotations_that_do_not_fit_the_clip_are_skipped(
    tmp_path: Path, moments: list[dict[str, int]], size: tuple[int, int], reason: str
) -> None:
    write_folder(tmp_path / "parts_0000_frames", 20, size)
    item = segmented(tmp_path, *moments)
    assert isinstance(item, SkippedExample)
    assert reason in item.reason


def test_max_side_scales_images_down_and_never_up(tmp_path: Path) -> None:
    write_folder(tmp_path / "action_0000_frames", 3)
    (example,) = derive(tmp_path, record())
    assert isinstance(example, Example)
    frames = [np.full((HEIGHT, WIDTH, 3), 10 * index, np.uint8) for index in range(3)]
    for side, size in ((48, (48, 32)), (None, (WIDTH, HEIGHT)), (500, (WIDTH, HEIGHT))):
        task = Action(options={"max_side": side})
        shown = task.displayed_images(example, task.images(example, frames))
        assert {image.size for image in shown} == {size}
        assert [image.getpixel((0, 0)) for image in shown] == [(0,) * 3, (10,) * 3, (20,) * 3]
