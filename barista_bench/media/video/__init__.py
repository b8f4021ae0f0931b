"""Reads exact frames of a video by index: the result is the requested frame or a VideoError, never another frame.

    from barista_bench.media.video import open_reader, read_frames

    frames = read_frames("clip.mp4", [0, 12, 12, 3])  # uint8 RGB, shape (4, H, W, 3), in the order asked
    with open_reader("clip.mp4") as reader:
        len(reader), reader.size, reader.fps  # frames, (width, height) in pixels, frames per second

Frame `i` is the i-th frame that a player shows, in presentation order, from 0. Edit lists and display rotation are
applied, so images have the orientation that players show; x runs right and y runs down.

There are two backends. `pyav`, the choice of `auto`, is always exact. `decord` is optional; if decord returns wrong
frames for a file, the file is refused with a VideoError. Every backend reads a folder of images (`000000.jpg`, ...)
like a video; see `frame_folder`.
"""

from barista_bench.media.video.frame_reader import FrameIndexError, FrameReader
from barista_bench.media.video.readers import BACKENDS, VideoFacts, close_readers, open_reader, read_frames, video_facts

__all__ = ["BACKENDS", "FrameIndexError", "FrameReader", "VideoFacts", "close_readers", "open_reader", "read_frames"]
__all__ += ["video_facts"]
