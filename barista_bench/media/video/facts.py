"""What sampling must know of a video before a frame of it is decoded: how many frames, of what size, and when."""

import math
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import ConfigError
from barista_bench.media.video.container import stamp_of
from barista_bench.media.video.index import video_index


@dataclass(frozen=True, slots=True, eq=False)
class VideoFacts:
    """One video, or one folder of frames.

    Args:
        path: absolute; for error messages.
        frame_count: n.
        fps: mean frames a second; 0.0 where no time is known (a folder of images), or where there is one frame.
        width: of the displayed frames, in pixels.
        height: likewise.
        seconds: (n,) presentation time of each frame after the first one; NaN where no time is known.
    """

    path: str
    frame_count: int
    fps: float
    width: int
    height: int
    seconds: NDArray[np.float64]

    @property
    def timed(self) -> bool:
        """Whether the times of the frames are known."""
        return not np.isnan(self.seconds[0])

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last; NaN where no time is known."""
        return float(self.seconds[-1])


def video_facts(path: str | os.PathLike[str], *, fps: float | None = None) -> VideoFacts:
    """Facts of a video file or of a folder of frames. Reads packets or image headers, decodes no pixel.

    The index behind it is kept for the videos used last in this process, and is the readers' own.

    Args:
        fps: frames a second of a folder of images, where the annotations give it; frame i then stands at i / fps.
            A video file knows its own times, and refuses it.

    Raises:
        VideoError: the video cannot be used; names the file.
        ConfigError: `fps` is not a positive number, or given for a video file.
    """
    stamp = stamp_of(path)
    index = video_index(stamp)
    seconds, known = index.seconds, index.fps
    if fps is not None:
        if not (math.isfinite(fps) and fps > 0):
            raise ConfigError(f"{stamp.path}: fps is {fps}. Remedy: give a positive number")
        if index.time_base:
            raise ConfigError(f"{stamp.path}: a video file has times of its own. Remedy: leave fps out")
        seconds, known = np.arange(len(index.pts)) / fps, float(fps)
    seconds.setflags(write=False)
    width, height = index.size
    return VideoFacts(stamp.path, len(index.pts), known, width, height, seconds)
