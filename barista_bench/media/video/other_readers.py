"""The optional backends. They decode by themselves; the file's own packet index says where they may be trusted.

Measured with torchcodec 0.13 and decord 0.6: both return wrong frames behind an edit list and on streams without exact
seeking (MPEG-TS), and ignore mirrored display; decord also on open GOPs, and it rotates only MP4. Such files are
refused with a VideoError: never a wrong frame.
"""

import importlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from barista_bench.errors import VideoError
from barista_bench.files.text_out import first_line
from barista_bench.media.video.frame_folder import REMUX
from barista_bench.media.video.frame_reader import Deliver, FrameReader

if TYPE_CHECKING:
    import decord
    from torchcodec.decoders._video_decoder import VideoDecoder  # where type checkers find it

_ADVICE = f"use backend='pyav', or {REMUX}"


class _LibraryReader(FrameReader):
    """One decoder of another library, opened when it is first needed."""

    wrong_behind_open_gops: ClassVar[bool]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """See FrameReader. Raises VideoError for a file on which the library is known to return wrong frames."""
        self._decoder: Any = None
        super().__init__(path)
        causes = {
            "an edit list": self.index.edited,
            "no exact seeking in its container": not self.index.seekable,
            "a mirrored display matrix": self.index.orientation.mirrored,
            "open GOPs": self.wrong_behind_open_gops and self.index.open_gop,
        }
        for cause, holds in causes.items():
            if holds:
                text = f"{self.path}: {self.backend} returns wrong frames on a file with {cause}"
                raise VideoError(f"{text}. Remedy: {_ADVICE}")

    def _failed(self, wanted: Sequence[int], error: Exception) -> VideoError:
        frames = ", ".join(str(i) for i in wanted[:5]) + (", ..." if len(wanted) > 5 else "")
        return VideoError(
            f"{self.path}: {self.backend} cannot decode frames {frames} ({first_line(error)}). Remedy: {_ADVICE}"
        )

    def _release(self) -> None:
        self._decoder = None

    def _forget(self) -> None:
        self._decoder = None


class TorchcodecReader(_LibraryReader):
    """Frames through torchcodec in its exact mode. Its frames' times are checked against the file's index."""

    backend: ClassVar[str] = "torchcodec"
    wrong_behind_open_gops: ClassVar[bool] = False

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        try:
            batch = self._open().get_frames_at(list(wanted))
        except (RuntimeError, ValueError, IndexError) as error:
            raise self._failed(wanted, error) from error
        seconds = (self.index.pts * float(self.index.time_base))[list(wanted)]
        late = np.abs(np.asarray(batch.pts_seconds) - seconds) > 1e-4
        if late.any():
            frame = wanted[int(np.flatnonzero(late)[0])]
            raise VideoError(f"{self.path}: torchcodec returns another frame for frame {frame}. Remedy: {_ADVICE}")
        for index, image in zip(wanted, batch.data.numpy(), strict=True):
            deliver(index, image)

    def _open(self) -> "VideoDecoder":
        if self._decoder is None:
            decoders = importlib.import_module("torchcodec.decoders")
            self._decoder = decoders.VideoDecoder(
                self.path, dimension_order="NHWC", seek_mode="exact", num_ffmpeg_threads=0
            )
        return self._decoder


class DecordReader(_LibraryReader):
    """Frames through decord."""

    backend: ClassVar[str] = "decord"
    wrong_behind_open_gops: ClassVar[bool] = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises VideoError for a rotated file that is not MP4."""
        super().__init__(path)
        if self.index.orientation.turns and not self.index.container.startswith("mov"):
            raise VideoError(f"{self.path}: decord rotates only MP4 files. Remedy: {_ADVICE}")

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        import decord

        try:
            images = self._open().get_batch(list(wanted)).asnumpy()
        except (decord.DECORDError, IndexError) as error:
            raise self._failed(wanted, error) from error
        for index, image in zip(wanted, images, strict=True):
            deliver(index, image)

    def _open(self) -> "decord.VideoReader":
        import decord

        if self._decoder is None:
            decord.logging.set_level(decord.logging.QUIET)
            try:
                self._decoder = decord.VideoReader(self.path)
            except (decord.DECORDError, RuntimeError) as error:
                raise self._failed([0], error) from error
            if len(self._decoder) != len(self):
                count = len(self._decoder)
                self._decoder = None
                raise VideoError(
                    f"{self.path}: decord sees {count} frames, the file has {len(self)}. Remedy: {_ADVICE}"
                )
        return self._decoder
