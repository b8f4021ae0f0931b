"""Adds frames to examples: each video is opened once, each wanted frame decoded once."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from barista_bench.builders.rows import FramesMode, link, to_row
from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph
from barista_bench.task import Example, Task
from barista_bench.video import open_reader

JPEG_QUALITY = 75
"""What the released harness sends: Pillow's default quality at native resolution (upstream.md 1.3)."""


@dataclass(frozen=True, slots=True)
class LostExample:
    """An example whose frames or images cannot be made."""

    example_id: str
    reason: str


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def render_rows(
    graph: SceneGraph,
    task: Task,
    examples: Sequence[tuple[int, Example]],
    mode: FramesMode,
    jpeg_quality: int,
) -> Iterator[dict[str, Any] | LostExample]:
    """Rows of (position, example) pairs with their media, a video at a time, in the given order within each video."""
    by_video: dict[str, list[tuple[int, Example]]] = {}
    for position, example in examples:
        by_video.setdefault(example.video_id, []).append((position, example))
    for video_id, group in by_video.items():
        try:
            path = graph.video_path(video_id)
            if not path.is_file():
                raise DataError(f"{path}: missing. Remedy: fetch the video")
            yield from _render_video(path, task, group, mode, jpeg_quality)
        except DataError as error:
            yield from (LostExample(example.example_id, str(error)) for _, example in group)


def _render_video(
    path: Path, task: Task, examples: Sequence[tuple[int, Example]], mode: FramesMode, jpeg_quality: int
) -> Iterator[dict[str, Any] | LostExample]:
    digest = file_sha256(path)
    with open_reader(path) as reader:
        for position, example in examples:
            row = to_row(example, position, digest)
            try:
                if mode == "linked":
                    _check_indices(example, len(reader), path)
                    row["frames"] = link(example)
                else:
                    frames = reader.read([frame.frame_index for frame in example.frames])
                    images = task.images(example, list(frames))
                    row["images"] = [
                        encode_image(image, overlay=index >= len(frames), jpeg_quality=jpeg_quality)
                        for index, image in enumerate(images)
                    ]
            except DataError as error:
                yield LostExample(example.example_id, str(error))
            else:
                yield row


def encode_image(image: Image.Image, *, overlay: bool, jpeg_quality: int) -> dict[str, Any]:
    """A frame as JPEG, an overlay as PNG (its thin outlines and numbers do not survive JPEG)."""
    buffer = io.BytesIO()
    if overlay:
        image.save(buffer, "PNG", compress_level=6)
    else:
        image.save(buffer, "JPEG", quality=jpeg_quality)
    return {"bytes": buffer.getvalue(), "path": None}


def _check_indices(example: Example, length: int, path: Path) -> None:
    late = [frame.frame_index for frame in example.frames if frame.frame_index >= length]
    if late:
        raise DataError(f"{path}: frame {late[0]} is past the end ({length} frames). Remedy: fetch the right video")
