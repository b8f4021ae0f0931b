"""Make the pictures of a request, decoded or as files, and measure their size in memory."""

from __future__ import annotations

from barista_bench.core.task import Task
from barista_bench.data.loaded_example import LoadedExample, Pictures
from barista_bench.data.shared_frames import FrameStore, StageClock, size_of_images
from barista_bench.errors import DataError, TaskError
from barista_bench.models import Model
from barista_bench.models.base import sends_files

AHEAD_BYTES = 1024 * 2**20
"""Limit in bytes for decoded images that wait for the model."""
PictureError = DataError | TaskError
"""Why an example has no pictures: its media cannot be read, or the task cannot make the pictures."""


def pictures_for(
    model: Model, loaded: LoadedExample, task: Task, store: FrameStore, clock: StageClock | None = None
) -> Pictures:
    """Return the images of an example, decoded or as files, whichever the model takes. Raises DataError."""
    if sends_files(model):
        return loaded.pictures(task, store, clock or StageClock())
    return Pictures(loaded.images(task, store, clock))


def decoded_size(pictures: Pictures | PictureError) -> int:
    """Return the bytes of a request's images in memory, or 0 if decoding failed."""
    if not isinstance(pictures, Pictures):
        return 0
    pairs = zip(pictures.images, pictures.files or (None,) * len(pictures.images), strict=True)
    return sum(size_of_images([image]) if file is None else len(file) for image, file in pairs)
