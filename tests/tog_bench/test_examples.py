"""From a release and its videos to examples: frames, times, reference in pixels, and skipped entries."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from barista_bench.benchmarks.tog_bench import TSTVG, open_release
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, SkippedExample
from barista_bench.media.video import read_frames
from tests.answering import read
from tests.tog_bench.conftest import content

Write = Callable[..., Path]
TASK = TSTVG(options={"matcher": "exact"})


def derive(folder: Path, media: Path, **sampling: Any) -> list[Example | SkippedExample]:
    chosen = TASK.sampling.with_overrides(sampling)
    return list(TASK.examples(open_release(folder, media), chosen))


def examples(folder: Path, media: Path, **sampling: Any) -> list[Example]:
    items = derive(folder, media, **sampling)
    assert all(isinstance(item, Example) for item in items), items
    return [item for item in items if isinstance(item, Example)]


def test_each_task_shows_its_video_every_four_seconds_or_as_its_sampling_says(write: Write, rooms: Path) -> None:
    items = examples(write(content()), rooms)
    assert [e.example_id for e in items] == ["t_stvg:a/0", "t_stvg:b/0", "t_stvg:b/1"]
    for example in items:
        assert [frame.frame_index for frame in example.frames] == [0, 40, 80, 120]
        assert example.inputs["times"] == [0, 4, 8, 12]
        assert (example.metadata["rate"], example.metadata["max_frames"]) == (0.25, None)
        assert example.inputs["duration"] == 13.0
    pixels = read_frames(rooms / "room_a.mp4", [frame.frame_index for frame in items[0].frames])
    assert np.abs(pixels.mean(axis=(1, 2, 3)) - [0, 40, 80, 120]).max() < 3, "each frame's grey is its index"
    example = examples(write(content()), rooms, rate=1, max_frames=5)[0]
    assert example.inputs["times"] == [0, 3, 6, 9, 13]
    assert (example.metadata["rate"], example.metadata["max_frames"]) == (1, 5)


def test_boxes_are_scaled_to_the_size_of_the_video_file(write: Write, rooms: Path) -> None:
    made = content()
    made["tasks"][1]["objects"][0]["boxes"][0]["box"] = [20, 30, 192, 128]
    example = examples(write(made), rooms)[0]
    reference: Any = example.target["objects"]
    assert reference[0]["boxes"][0] == [10, 15, 96, 64]
    assert (example.inputs["frame_width"], example.inputs["frame_height"]) == (96, 64)
    assert (example.evidence["annotated_width"], example.evidence["annotated_height"]) == (192, 128)


def test_metadata_give_kind_number_of_objects_and_objects_on_no_frame(write: Write, rooms: Path) -> None:
    lamp, sink, tap = examples(write(content()), rooms)
    assert (lamp.metadata["kind"], lamp.metadata["objects"], lamp.metadata["unseen_objects"]) == ("explicit", "1", 1)
    assert (sink.metadata["objects"], sink.metadata["unseen_objects"]) == ("2", 0)
    assert sink.metadata["duration_bin"] == "0-30 s"
    assert (sink.metadata["scene"], lamp.metadata["scene"]) == ("Bathroom", "unknown")
    assert sink.evidence["object_ids"] == ["b/0#0", "obj-7"]
    reference: Any = sink.target["objects"]
    assert [(o["category"], o["kind"]) for o in reference] == [("sink", "explicit"), ("faucet", "implicit")]
    assert all(example.metadata["split"] == "test" for example in (lamp, sink, tap))


def test_videos_that_are_missing_damaged_or_of_another_shape_are_skipped_and_counted(
    write: Write, rooms: Path, tmp_path: Path
) -> None:
    folder = write(content())
    media = tmp_path / "media"
    media.mkdir()
    skipped = derive(folder, media)
    assert [isinstance(item, SkippedExample) for item in skipped] == [True] * 3
    shutil.copy(rooms / "room_a.mp4", media)
    (media / "room_b.mp4").write_bytes(b"no video")
    assert [type(item).__name__ for item in derive(folder, media)] == ["Example", "SkippedExample", "SkippedExample"]
    tall = content()
    tall["videos"][1]["height"] = 192
    reason = derive(write(tall), rooms)[0]
    assert isinstance(reason, SkippedExample)
    assert "96x64" in reason.reason
    assert reason.frame.video_id == "room_a"


def test_a_task_that_reaches_past_the_end_of_its_video_is_skipped(write: Write, rooms: Path) -> None:
    made = content()
    made["tasks"][1]["objects"][0]["boxes"][2]["time"] = 20
    first = derive(write(made), rooms)[0]
    assert isinstance(first, SkippedExample)
    assert "20 s" in first.reason


def test_only_the_videos_asked_for_are_read(write: Write, rooms: Path) -> None:
    folder = write(content())
    assert [e.example_id for e in examples(folder, rooms, videos=["room_a"])] == ["t_stvg:a/0"]
    assert not derive(folder, rooms, videos=["room_c"])


def test_a_folder_of_frames_is_a_video_at_the_annotated_rate(write: Write, rooms: Path, tmp_path: Path) -> None:
    made = content()
    made["videos"][0]["id"] = "room_b.frames"
    for task in made["tasks"]:
        task["video"] = task["video"].replace("room_b", "room_b.frames")
    media = tmp_path / "media"
    (media / "room_b.frames").mkdir(parents=True)
    shutil.copy(rooms / "room_a.mp4", media)
    for index in range(131):
        Image.new("RGB", (96, 64), (index,) * 3).save(media / "room_b.frames" / f"{index:06d}.png")
    items = examples(write(made), media)[1]
    assert [frame.frame_index for frame in items.frames] == [0, 40, 80, 120]
    assert items.inputs["times"] == [0, 4, 8, 12]


def test_an_explanation_names_hits_misses_and_inventions(write: Write, rooms: Path) -> None:
    sink = examples(write(content()), rooms)[1]
    answer = json.loads(TASK.reference_answer(sink, BoxFormat()))
    answer["implicit_object"] = ["mirror"]
    rows = TASK.explain(sink, read(TASK, answer, sink)).rows
    assert [row.kind for row in rows] == ["hit", "miss", "wrong"]
    assert "tIoU 1.00, vIoU 1.00" in rows[0].text
    assert "faucet (implicit), 4-8 s, 10-12 s" in rows[1].text
    assert "mirror" in rows[2].text
    assert [row.kind for row in TASK.explain(sink, None).rows] == ["miss", "miss"]


def test_failures_tell_missed_misplaced_mistimed_repeated_and_invented_objects(write: Write, rooms: Path) -> None:
    sink = examples(write(content()), rooms)[1]

    def kinds(**answer: object) -> list[tuple[str, tuple[str, ...]]]:
        return [(f.kind, f.objects) for f in TASK.failures(sink, read(TASK, answer, sink))]

    assert kinds(explicit_object=["sink", "mirror"]) == [
        ("wrong_time", ("b/0#0",)),
        ("loose_box", ("b/0#0",)),
        ("missed", ("obj-7",)),
        ("hallucinated", ()),
    ]
    timed = [{"object": "sink", "start": 0, "end": 8}]
    assert kinds(explicit_object=["sink 1", "sink 2", "faucet"], temporal_grounding={"sink 2": [0, 8]}) == [
        ("loose_box", ("b/0#0",)),
        ("wrong_time", ("obj-7",)),
        ("loose_box", ("obj-7",)),
        ("duplicate", ()),
    ]
    assert ("wrong_time", ("b/0#0",)) not in kinds(explicit_object=["sink"], temporal_grounding=timed)
    assert [f.kind for f in TASK.failures(sink, None)] == ["format"]
    assert TASK.failures(sink, read(TASK, TASK.reference_answer(sink, BoxFormat()), sink)) == ()


def test_overlays_put_boxes_on_the_frames_of_their_times(write: Write, rooms: Path) -> None:
    sink = examples(write(content()), rooms)[1]
    reference = [(o.image, o.box, o.kind, o.label) for o in TASK.overlays(sink, None)]
    assert reference[:3] == [(i, (10, 10, 60, 40), "reference", "sink") for i in (0, 1, 2)]
    assert [row[0] for row in reference[3:]] == [1, 2, 3]
    track = [{"object": "tap", "time": t, "box": [0, 0, 500, 500]} for t in (4.1, 6, "frame 4")]
    prediction = read(TASK, {"explicit_object": "tap", "spatial_tracking": track}, sink)
    answered = [(o.image, o.box, o.label) for o in TASK.overlays(sink, prediction) if o.kind == "predicted"]
    assert answered == [(1, (0, 0, 48, 32), "tap"), (3, (0, 0, 48, 32), "tap")]
    assert TASK.image_captions(sink) == ("frame 1, 0.0 s", "frame 2, 4.0 s", "frame 3, 8.0 s", "frame 4, 12.0 s")


def test_the_prior_knows_only_other_videos(write: Write, rooms: Path) -> None:
    lamp, sink, tap = examples(write(content()), rooms)
    answer = json.loads(TASK.prior_answer(lamp, [sink, tap], BoxFormat()))
    assert answer["explicit_object"] == ["faucet"]
    assert answer["temporal_grounding"] == [{"object": "faucet", "start": 4.0, "end": 12.0}]


def test_the_box_in_the_middle_is_worth_its_overlap_and_no_more(write: Write, rooms: Path) -> None:
    sink = examples(write(content()), rooms)[1]
    metrics = TASK.score(sink, read(TASK, TASK.centre_answer(sink, BoxFormat()), sink))
    assert metrics["T-Acc"] == 1
    both = (60 - 24) * (40 - 16)  # the middle is [24, 16, 72, 48], the sink [10, 10, 60, 40]
    sink_iou = both / (48 * 32 + 50 * 30 - both)
    assert metrics["T-m_vIoU"] == pytest.approx(sink_iou / 2)  # the faucet lies above the middle
