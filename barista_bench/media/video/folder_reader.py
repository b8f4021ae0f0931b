"""Frames out of a folder of images, by the same interface as those of a video."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from barista_bench.errors import VideoError
from barista_bench.media.video.base import Deliver, FrameReader
from barista_bench.media.video.frame_folder import frame_files, read_image


class FolderReader(FrameReader):
    """Frame i is the folder's i-th image (see `frame_folder`). Frames a second and times are not known."""

    backend: ClassVar[str] = "images"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """See FrameReader. Lists the folder and reads the headers of its images."""
        self._files: tuple[Path, ...] = ()
        super().__init__(path)
        self._files = frame_files(self.path)
        if len(self._files) != len(self):
            raise VideoError(f"{self.path}: the folder changed while it was opened. Remedy: open it again")

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        for index in wanted:
            deliver(index, read_image(self._files[index]))

    def _release(self) -> None:
        """No image stays open."""

    def _forget(self) -> None:
        """No decoder is inherited."""
