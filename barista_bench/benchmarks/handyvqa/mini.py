"""A small release in HanDyVQA's form out of a mini kitchen: every layout of records and every kind of clip occurs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import islice, zip_longest
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

from barista_bench.benchmarks.handyvqa.masks import union
from barista_bench.benchmarks.handyvqa.mini_questions import QUESTIONS, AskedClip, fps_of
from barista_bench.benchmarks.handyvqa.record_files import RVOS_CATEGORIES
from barista_bench.core.task import Fields, Json
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.media.video import open_reader
from barista_bench.mini.cutting import cut_clip
from barista_bench.scene_graph import SceneGraph

PER_CATEGORY = 6
FOLDER_STEP = 6
"""Every sixth frame of a clip goes into its folder."""
ANNOTATED = 3
"""Annotated frames of one clip."""


def write_mini(kitchen: Path, out: Path) -> None:
    """Write the annotation files and clips into a new or an empty folder.

    Clips are, in turn, videos with a centre and folders of frames; one a category is a cut video that no record names.

    Raises:
        DataError: the kitchen cannot be read, or `out` holds something.
    """
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise DataError(f"{out}: is not empty. Remedy: name a new folder")
    graph = SceneGraph(kitchen)
    videos = list(graph)  # kept: a graph lets go of all but a few
    for category, ask in QUESTIONS.items():
        # The first question of every video, then the second of every video, ...
        in_turn = (asked for round_ in zip_longest(*map(ask, videos)) for asked in round_ if asked is not None)
        usable = (
            asked for asked in in_turn if category not in RVOS_CATEGORIES or _seen(asked, asked.span[::FOLDER_STEP])
        )
        chosen = islice(usable, PER_CATEGORY)
        records = [_record(graph, out, category, number, asked) for number, asked in enumerate(chosen)]
        _write(out, category, records)


def _write(out: Path, category: str, records: Sequence[Fields]) -> None:
    """One file an item, a list, or a line an item: the three forms that can be read."""
    if category == "action":
        (out / category).mkdir()
        for record in records:
            (out / category / f"{record['id']}.json").write_bytes(msgspec.json.encode(record))
    elif category == "process":
        (out / f"{category}.json").write_bytes(msgspec.json.encode(records))
    else:
        (out / f"{category}.jsonl").write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))


def _record(graph: SceneGraph, out: Path, category: str, number: int, asked: AskedClip) -> Fields:
    item_id = f"{category}_{number:04d}"
    record: Fields = {
        "id": item_id,
        "question": asked.question,
        "options": list(asked.options),
        "correct_idx": list(asked.correct),
        "split": "train" if number % PER_CATEGORY == PER_CATEGORY - 1 else "test",
    }
    source, fps = graph.video_path(asked.video.video_id), fps_of(asked.video)
    has_masks = category in RVOS_CATEGORIES
    in_video, shown = number % 2 == 0, asked.span
    if number == 2 and not has_masks:
        width, height = (side // 4 * 2 for side in (asked.video.video.width, asked.video.video.height))
        cut_clip(source, out / f"{item_id}.mp4", shown.start, shown.stop, size=(width, height))
    elif in_video:
        name = f"videos/{asked.video.video_id}.mp4"
        (out / name).parent.mkdir(exist_ok=True)
        if not (out / name).exists():
            shutil.copyfile(source, out / name)
        record["clip"] = {"video": name, "centre_seconds": asked.centre / fps}
    else:
        shown = shown[::FOLDER_STEP]
        _write_frames(source, shown, out / f"{item_id}_frames")
    if has_masks:
        seen = _seen(asked, shown)
        annotated: list[Json] = []
        for frame in (seen[at] for at in evenly_spaced(len(seen), ANNOTATED)):
            by_second: Fields = {"second": frame / fps}
            by_number: Fields = {"frame": frame if in_video else shown.index(frame)}
            annotated.append({**(by_second if number % 4 == 0 else by_number), "targets": _targets(asked, frame)})
        record["annotated"] = annotated
    return record


def _seen(asked: AskedClip, shown: range) -> list[int]:
    """The frames on which something of the answer is seen."""
    answering = {object_id for ids in asked.objects for object_id in ids}
    return [frame for frame in shown if answering & set(asked.video.boxes(frame))]


def _targets(asked: AskedClip, frame: int) -> list[Json]:
    """The masks of the right options on a frame, without those that are not seen."""
    instances = {instance.object.id: instance for instance in asked.video.instances(frame)}
    targets: list[Json] = []
    for option, ids in zip(asked.correct, asked.objects, strict=True):
        rles = [asked.video.rle(instances[object_id]) for object_id in ids if object_id in instances]
        if rles:
            mask = union([rle.counts for rle in rles], rles[0].size)
            targets.append({"option": option, "segmentation": {"size": list(mask.size), "counts": mask.counts}})
    return targets


def _write_frames(source: Path, frames: range, folder: Path) -> None:
    folder.mkdir()
    with open_reader(source) as reader:
        for number, picture in enumerate(reader.read(frames)):
            Image.fromarray(np.asarray(picture)).save(folder / f"{number:06d}.jpg", quality=90)
