"""Examples of T-STVG: the frames that a task shows, and its truth in pixels of the video as it lies there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from barista_bench.benchmarks.tog_bench.annotations import ObjectRecord, VideoRecord
from barista_bench.benchmarks.tog_bench.columns import (
    InstructionEvidence,
    InstructionInputs,
    InstructionMetadata,
    RequiredObject,
    RequiredObjects,
    snapped,
)
from barista_bench.benchmarks.tog_bench.release import BEYOND, FiledTask, TogRelease
from barista_bench.benchmarks.tog_bench.scores import count_group, duration_bin
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Example, FrameRef, SkippedExample
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import at_rate, evenly_spaced
from barista_bench.media.video.facts import VideoFacts, video_facts

BENCHMARK, TASK = "tog_bench", "t_stvg"
SHAPE_TOLERANCE = 0.01
"""Relative difference of aspect ratios up to which boxes are scaled to a video of another size."""


def release_examples(release: TogRelease, sampling: Sampling) -> Iterator[Example | SkippedExample]:
    """One a task, by video and then in the order of the files.

    Raises:
        DataError: `sampling.videos` names a video that the release lacks.
    """
    absent = sorted(set(sampling.videos or ()) - set(release.facts))
    if absent:
        known = f"choose one of its {len(release.facts)} videos"
        raise DataError(f"{release.root}: no video {absent[0]!r}. Remedy: {known}")
    for video_id, tasks in groupby(release.tasks, key=lambda filed: filed.task.video):
        if sampling.videos is not None and video_id not in sampling.videos:
            continue
        record = release.facts[video_id]
        try:
            facts = _facts(release, record)
            frames = sampled_frames(facts, sampling)
        except DataError as error:
            yield from (SkippedExample(FrameRef(video_id, 0), f"{filed.task.id}: {error}") for filed in tasks)
            continue
        for filed in tasks:
            yield _example(filed, record, facts, frames, sampling)


def sampled_frames(facts: VideoFacts, sampling: Sampling) -> tuple[int, ...]:
    """Frames at `sampling.rate`, thinned evenly to `max_frames` where there is such a limit."""
    frames = at_rate(facts, sampling.rate or facts.fps)
    if sampling.max_frames is None:
        return frames
    return tuple(frames[index] for index in evenly_spaced(len(frames), sampling.max_frames))


def _facts(release: TogRelease, record: VideoRecord) -> VideoFacts:
    """Facts of the video on disk. Raises DataError where it is missing, damaged, or of another shape."""
    path = release.video_path(record.id)
    facts = video_facts(path, fps=record.fps if path.is_dir() else None)
    stretch = facts.width * record.height / (facts.height * record.width)
    if abs(stretch - 1) > SHAPE_TOLERANCE:
        sizes = f"{facts.width}x{facts.height}, and its boxes are drawn on {record.width}x{record.height}"
        raise DataError(f"{path}: is {sizes}. Remedy: use the video that was annotated, uncropped and unturned")
    return facts


def _example(
    filed: FiledTask, record: VideoRecord, facts: VideoFacts, frames: tuple[int, ...], sampling: Sampling
) -> Example | SkippedExample:
    task = filed.task
    last = max(max(box.time for box in item.boxes) for item in task.objects)
    if last > facts.duration + BEYOND:
        reason = f"{task.id}: has boxes up to {last:g} s, and the video ends at {facts.duration:.1f} s"
        return SkippedExample(FrameRef(task.video, 0), reason)
    times = [round(float(facts.seconds[frame]), 3) for frame in frames]
    wide, high = facts.width / record.width, facts.height / record.height
    objects = [_required_object(item, task.kind, wide, high) for item in task.objects]
    seen = [any(snapped(box.time, times) in times for box in item.boxes) for item in task.objects]
    return Example(
        example_id=f"{TASK}:{task.id}",
        benchmark=BENCHMARK,
        task=TASK,
        label=task.kind,
        frames=tuple(FrameRef(task.video, frame) for frame in frames),
        inputs=InstructionInputs(
            instruction=task.instruction.strip(),
            times=times,
            frame_width=facts.width,
            frame_height=facts.height,
            duration=round(facts.duration, 3),
        ).write(),
        target=RequiredObjects(objects).write(),
        metadata=InstructionMetadata(
            split="test",
            kind=task.kind,
            objects=count_group(len(objects)),
            object_count=len(objects),
            unseen_objects=seen.count(False),
            categories=sorted({item.category for item in task.objects}),
            scene=record.scene or "unknown",
            duration_bin=duration_bin(facts.duration),
            rate=sampling.rate or facts.fps,
            max_frames=sampling.max_frames,
        ).write(),
        evidence=InstructionEvidence(
            object_ids=[item.id or f"{task.id}#{number}" for number, item in enumerate(task.objects)],
            file=filed.file,
            row=filed.row,
            annotated_width=record.width,
            annotated_height=record.height,
        ).write(),
    )


def _required_object(item: ObjectRecord, task_kind: str, wide: float, high: float) -> RequiredObject:
    """An object of the target, its boxes scaled to the video's size."""
    return RequiredObject(
        category=item.category,
        kind=item.kind or task_kind,
        synonyms=list(item.synonyms),
        intervals=[[start, end] for start, end in item.intervals],
        times=[box.time for box in item.boxes],
        boxes=[[x0 * wide, y0 * high, x1 * wide, y1 * high] for x0, y0, x1, y1 in (box.box for box in item.boxes)],
    )
