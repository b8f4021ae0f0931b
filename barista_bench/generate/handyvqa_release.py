"""Items as a release in HanDyVQA's form: records a category, and the videos that their clips are in."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from barista_bench.benchmarks.handyvqa.masks import union
from barista_bench.benchmarks.handyvqa.record_files import (
    CATEGORIES,
    RVOS_CATEGORIES,
    AnnotatedRecord,
    ClipRecord,
    ItemRecord,
    RunLengths,
    TargetRecord,
)
from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.errors import DataError
from barista_bench.files.writing import write_whole
from barista_bench.generate.drawing import Item
from barista_bench.media.frame_choice import in_window
from barista_bench.media.video.readers import VideoFacts, video_facts
from barista_bench.scene_graph import SceneGraph, VideoGraph


def write_release(items: Sequence[Item], source: SceneGraph, out: Path) -> None:
    """Write `<category>.jsonl` of each category that has items, and the videos whole, below `videos`.

    Raises:
        DataError: a video is missing, or its frames do not lie where its graph has them.
    """
    facts: dict[str, VideoFacts] = {}
    (out / "videos").mkdir()
    for video_id in sorted({item.candidate.video_id for item in items}):
        path = out / _video_name(video_id)
        shutil.copyfile(source.video_path(video_id), path)
        facts[video_id] = video_facts(path)
    lines: dict[str, list[bytes]] = {}
    # By video, so that each graph is read once.
    for item in sorted(items, key=lambda item: item.candidate.video_id):
        category, video_id = item.candidate.subtask, item.candidate.video_id
        record = _record(item, source[video_id], facts[video_id])
        lines.setdefault(category, []).append(msgspec.json.encode(record) + b"\n")
    for category in CATEGORIES:
        if category in lines:
            write_whole(out / f"{category}.jsonl", b"".join(sorted(lines[category])))


def _video_name(video_id: str) -> str:
    return f"videos/{video_id}.mp4"


def _record(item: Item, graph: VideoGraph, facts: VideoFacts) -> ItemRecord:
    candidate = item.candidate
    fps = graph.video.fps or facts.fps
    centre = candidate.frames[0] / fps
    window = in_window(facts, centre, HALF_WINDOW_S)
    if (window.start, window.stop) != candidate.span:
        raise DataError(
            f"{candidate.video_id}: frames {candidate.span} of its graph are {window} in its video, by their times. "
            "Remedy: give the video that was annotated, at a constant rate, and its fps"
        )
    return ItemRecord(
        id=item.id,
        question=candidate.question,
        options=[choice.text for choice in item.choices],
        correct_idx=list(item.correct),
        clip=ClipRecord(video=_video_name(candidate.video_id), centre_seconds=centre),
        annotated=_annotated(item, graph) if candidate.subtask in RVOS_CATEGORIES else [],
    )


def _annotated(item: Item, graph: VideoGraph) -> list[AnnotatedRecord]:
    frames: list[int] = item.candidate.extra["annotated"]
    return [AnnotatedRecord(frame=frame, targets=_targets(item, graph, frame)) for frame in frames]


def _targets(item: Item, graph: VideoGraph, frame: int) -> list[TargetRecord]:
    """The masks of the right options on a frame: each of an object with all its parts."""
    instances = {instance.object.id: instance for instance in graph.instances(frame)}
    masked: list[list[str]] = item.candidate.extra["masked"]
    targets = []
    for option in item.correct:
        ids = masked[item.candidate.right.index(item.choices[option])]
        rles = [graph.rle(instances[object_id]) for object_id in ids if object_id in instances]
        if rles:
            mask = union([rle.counts for rle in rles], rles[0].size)
            targets.append(TargetRecord(option=option, segmentation=RunLengths(size=mask.size, counts=mask.counts)))
    return targets
