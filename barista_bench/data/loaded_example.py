"""One example with media that are not yet decoded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.core.example import Example
from barista_bench.core.guarding import guard
from barista_bench.core.task import Task
from barista_bench.data.shared_frames import FrameStore, StageClock
from barista_bench.data.stored_images import encode_image, open_image
from barista_bench.errors import DataError
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.media.video.frame_folder import video_sha256


@dataclass(frozen=True, slots=True)
class LoadedExample:
    """One example with media that are not yet decoded. `media_digest` identifies the media's content without
    decoding.
    """

    example: Example
    media: LinkedMedia | tuple[bytes, ...]
    media_digest: str

    def images(
        self, task: Task, store: FrameStore | None = None, clock: StageClock | None = None
    ) -> tuple[Image.Image, ...]:
        """Return the images that the model sees, as RGB images that the caller may change.

        Args:
            store: caches decoded frames for other examples, and its clock measures `decode`. With None, all frames are
                decoded.
            clock: measures `prepare`, the stage in which the task makes images from frames. Stored images need no such
                stage.

        Raises:
            DataError: a frame or an image cannot be decoded, or the video differs from the video in the dataset.
            TaskError: the task cannot make images from the frames.
        """
        store = store or FrameStore(max_bytes=0)
        clock = clock or StageClock()
        if isinstance(self.media, LinkedMedia):
            frames = self.media.frames(store, self.example.video_id)
            with clock("prepare"), guard(task, "images", self.example):
                return task.displayed_images(self.example, task.images(self.example, frames))
        images = store.images(self.media, self.example.example_id, self.example.frames)
        with guard(task, "images", self.example):
            return task.displayed_images(self.example, images)

    def pictures(self, task: Task, store: FrameStore, clock: StageClock) -> Pictures:
        """Return the images that the model sees, for models that pass on files. Stored images are not decoded.

        Raises:
            DataError: as `images`.
        """
        if isinstance(self.media, LinkedMedia):
            frames = self.media.frames(store, self.example.video_id)
            with clock("prepare"):
                with guard(task, "images", self.example):
                    task_images = task.images(self.example, frames)
                    displayed = task.displayed_images(self.example, task_images)
                is_overlay = {id(image): place >= len(frames) for place, image in enumerate(task_images)}
                files = tuple(
                    encode_image(image, overlay=is_overlay[id(image)]) if id(image) in is_overlay else None
                    for image in displayed
                )
            return Pictures(displayed, files)
        decoded_later = [open_image(data, self.example.example_id) for data in self.media]
        file_of = {id(image): data for image, data in zip(decoded_later, self.media, strict=True)}
        with guard(task, "images", self.example):
            displayed = task.displayed_images(self.example, decoded_later)
        return Pictures(displayed, tuple(file_of.get(id(image)) for image in displayed))


class Pictures(NamedTuple):
    """The pictures of a request.

    `files` has the JPEG or PNG of each picture that is shown as a frozen set stores it, and None for other pictures.

    Pictures with a file are decoded when their pixels are accessed.
    """

    images: tuple[Image.Image, ...]
    files: tuple[bytes | None, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkedMedia:
    """Frames of a video file, and the SHA-256 that the file must have."""

    lazy: LazyFrames
    sha256: str

    def frames(self, store: FrameStore, video_id: str) -> list[NDArray[np.uint8]]:
        """Return read-only uint8 RGB frames, each (height, width, 3). Raises DataError, see `LoadedExample.images`."""
        path = Path(self.lazy.path)
        with store.clock("decode"):
            sha256 = video_sha256(path)
        if sha256 != self.sha256:
            raise DataError(
                f"{path}: is another video (SHA-256 {sha256[:12]}) than the dataset was made from "
                f"({self.sha256[:12]}). Fix: fetch that one, or build the dataset again"
            )
        return store.frames(self.lazy, video_id)
