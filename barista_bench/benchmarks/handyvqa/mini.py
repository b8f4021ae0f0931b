"""A small release in HanDyVQA's form out of a mini kitchen: every layout of records and every kind of clip occurs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

from barista_bench.benchmarks.handyvqa.masks import union
from barista_bench.benchmarks.handyvqa.mini_questions import QUESTIONS, Asked, fps_of
from barista_bench.benchmarks.handyvqa.record_files import RVOS_CATEGORIES
from barista_bench.core.task import Fields, Json
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.media.video import open_reader
from barista_bench.mini.cutting import cut_clip
from barista_bench.scene_graph import Rle, SceneGraph

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
        found = _in_turn([ask(video) for video in videos])
        if category in RVOS_CATEGORIES:
            found = (one for one in found if _seen(one, one.span[::FOLDER_STEP]))
        asked = islice(found, PER_CATEGORY)
        records = [_record(graph, out, category, place, one) for place, one in enumerate(asked)]
        _write(out, category, records)


def _in_turn(found: Iterable[Iterator[Asked]]) -> Iterator[Asked]:
    """The first of every video, then the second, ..."""
    for asked in zip_longest(*found):
        yield from (one for one in asked if one is not None)


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


def _record(graph: SceneGraph, out: Path, category: str, place: int, asked: Asked) -> Fields:
    item_id = f"{category}_{place:04d}"
    record: Fields = {
        "id": item_id,
        "question": asked.question,
        "options": list(asked.options),
        "correct_idx": list(asked.correct),
        "split": "train" if place % PER_CATEGORY == PER_CATEGORY - 1 else "test",
    }
    source, fps = graph.video_path(asked.video.video_id), fps_of(asked.video)
    is_masked = category in RVOS_CATEGORIES
    kind = 2 if place == 2 and not is_masked else place % 2
    if kind == 0:
        name = f"videos/{asked.video.video_id}.mp4"
        _copy(source, out / name)
        record["clip"] = {"video": name, "centre_seconds": asked.centre / fps}
        shown = asked.span
    elif kind == 1:
        shown = asked.span[::FOLDER_STEP]
        _write_frames(source, shown, out / f"{item_id}_frames")
    else:
        shown = asked.span
        size = tuple(side // 4 * 2 for side in (asked.video.video.width, asked.video.video.height))
        cut_clip(source, out / f"{item_id}.mp4", shown.start, shown.stop, size=(size[0], size[1]))
    if is_masked:
        by_second = kind == 0 and place % 4 == 0
        record["annotated"] = [
            {
                **({"second": frame / fps} if by_second else {"frame": frame if kind == 0 else shown.index(frame)}),
                "targets": _targets(asked, frame),
            }
            for frame in _annotated_frames(asked, shown)
        ]
    return record


def _seen(asked: Asked, shown: range) -> list[int]:
    """The frames on which something of the answer is seen."""
    wanted = {object_id for ids in asked.objects for object_id in ids}
    return [frame for frame in shown if wanted & set(asked.video.boxes(frame))]


def _annotated_frames(asked: Asked, shown: range) -> list[int]:
    """A few frames, evenly spread over those on which something of the answer is seen."""
    seen = _seen(asked, shown)
    return [seen[place] for place in evenly_spaced(len(seen), ANNOTATED)]


def _targets(asked: Asked, frame: int) -> list[Json]:
    """The masks of the right options on a frame, without those that are not seen."""
    instances = {instance.object.id: instance for instance in asked.video.instances(frame)}
    targets: list[Json] = []
    for option, ids in zip(asked.correct, asked.objects, strict=True):
        masks = [asked.video.rle(instances[object_id]) for object_id in ids if object_id in instances]
        if masks:
            mask: Rle = union([one.counts for one in masks], masks[0].size)
            targets.append({"option": option, "segmentation": {"size": list(mask.size), "counts": mask.counts}})
    return targets


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    if not target.exists():
        shutil.copyfile(source, target)


def _write_frames(source: Path, frames: range, folder: Path) -> None:
    folder.mkdir()
    with open_reader(source) as reader:
        for place, picture in enumerate(reader.read(frames)):
            Image.fromarray(np.asarray(picture)).save(folder / f"{place:06d}.jpg", quality=90)
