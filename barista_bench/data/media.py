"""Adds frames to examples: each video is opened once, each wanted frame decoded once."""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.core.task import Example, Task
from barista_bench.data.manifest import LostExample
from barista_bench.data.rows import FramesMode, link, to_row
from barista_bench.errors import DataError
from barista_bench.media.video import FrameReader, open_reader
from barista_bench.media.video.frame_folder import folder_sha256

JPEG_QUALITY = 75
"""What the released harness sends: Pillow's default quality at native resolution (docs/upstream/barista.md)."""
BATCH = 8
"""Examples whose frames are decoded together: enough to go forward instead of seeking, few enough to hold."""


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, or over a folder of frames, read once as long as size and time of change stay the same."""
    if path.is_dir():
        return folder_sha256(path)
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _sha256(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def render_rows(
    video_path: Callable[[str], Path],
    task: Task,
    examples: Sequence[tuple[int, Example]],
    mode: FramesMode,
    jpeg_quality: int,
) -> Iterator[dict[str, Any] | LostExample]:
    """Rows of (position, example) pairs with their media: by video id, within a video in order of frames.

    The order is that of the videos, not of the draw, so that parts made apart fit together. `video_path` says where
    a video lies, by its id.
    """
    by_video: dict[str, list[tuple[int, Example]]] = {}
    for position, example in examples:
        by_video.setdefault(example.video_id, []).append((position, example))
    for video_id, group in sorted(by_video.items()):
        try:
            path = video_path(video_id)
            if not path.exists():
                raise DataError(f"{path}: missing. Remedy: fetch the video")
            yield from _render_video(path, task, group, mode, jpeg_quality)
        except DataError as error:
            yield from (LostExample(example.example_id, str(error)) for _, example in group)


def _render_video(
    path: Path, task: Task, examples: Sequence[tuple[int, Example]], mode: FramesMode, jpeg_quality: int
) -> Iterator[dict[str, Any] | LostExample]:
    """Walks through the video once: examples in order of their frames, a few at a time."""
    digest = file_sha256(path)
    in_order = iter(sorted(examples, key=lambda item: (item[1].frames[0].frame_index, item[0])))
    with open_reader(path) as reader:
        while batch := list(islice(in_order, BATCH)):
            decoded = {} if mode == "linked" else _decode_ahead(reader, [example for _, example in batch])
            for position, example in batch:
                row = to_row(example, position, digest)
                try:
                    if mode == "linked":
                        late = [f.frame_index for f in example.frames if f.frame_index >= len(reader)]
                        if late:
                            end = f"is past the end ({len(reader)} frames). Remedy: fetch the right video"
                            raise DataError(f"{path}: frame {late[0]} {end}")
                        row["frames"] = link(example)
                    else:
                        row["images"] = _images(reader, decoded, task, example, jpeg_quality)
                except DataError as error:
                    yield LostExample(example.example_id, str(error))
                else:
                    yield row


def _decode_ahead(reader: FrameReader, examples: Sequence[Example]) -> dict[int, NDArray[np.uint8]]:
    """The frames of a batch by index; nothing if one of them cannot be decoded, so that each is tried alone."""
    wanted = sorted({frame.frame_index for example in examples for frame in example.frames})
    try:
        return dict(zip(wanted, reader.read(wanted), strict=True))
    except DataError:
        return {}


def _images(
    reader: FrameReader, decoded: dict[int, NDArray[np.uint8]], task: Task, example: Example, jpeg_quality: int
) -> list[dict[str, Any]]:
    indices = [frame.frame_index for frame in example.frames]
    frames = [decoded[index] for index in indices] if decoded else list(reader.read(indices))
    return [
        encode_image(image, overlay=position >= len(frames), jpeg_quality=jpeg_quality)
        for position, image in enumerate(task.images(example, frames))
    ]


def encode_image(image: Image.Image, *, overlay: bool, jpeg_quality: int) -> dict[str, Any]:
    """A frame as JPEG, an overlay as PNG (its thin outlines and numbers do not survive JPEG)."""
    buffer = io.BytesIO()
    if overlay:
        image.save(buffer, "PNG", compress_level=6)
    else:
        image.save(buffer, "JPEG", quality=jpeg_quality)
    return {"bytes": buffer.getvalue(), "path": None}
