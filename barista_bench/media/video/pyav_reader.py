"""The default reader, which is exact by design, and fast for a few frames or groups of frames.

Requested frames are grouped by the keyframe where their decoding starts. The reader seeks once per group. If no other
frame depends on a packet, the packet is decoded only when its frame is requested. Decoding stops at the last requested
packet. Every delivered frame is identified by its presentation time. If a frame is not found, the reader tries earlier
keyframes, then decodes the complete file in order, then raises VideoError.

Two decoders share the groups. Each decoder has one thread, because a decoder with frame threads may return a picture
before another thread reports that the picture is damaged.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import groupby
from queue import Empty, SimpleQueue
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from barista_bench.errors import VideoError
from barista_bench.media.video.frame_folder import REMUX
from barista_bench.media.video.frame_reader import Deliver, FrameReader
from barista_bench.media.video.index import VideoIndex
from barista_bench.media.video.opening import AV_ERRORS, error_line, open_video

Take: TypeAlias = Callable[[VideoFrame, int], None]
"""Function that receives a decoded frame and its index."""
_LANES = 2  # number of decoders that work at the same time
_EARLIER = 2  # number of keyframes to step back before the whole file is decoded
_MOST_REORDERED = 16
"""Maximum number of pictures that a decoder holds back to reorder them for display, as H.264 and HEVC allow."""


def checked_frames(
    frames: Iterable[VideoFrame], context: VideoCodecContext, positions: Mapping[int, int] = MappingProxyType({})
) -> Iterator[tuple[VideoFrame, bool]]:
    """Yield frames in order of display, each with True if it is certainly free of known damage.

    A damaged picture spoils all pictures that are decoded after it, up to the next keyframe. Spoiled pictures may be
    displayed before the damaged picture. So a frame is held back until as many further frames have arrived as the
    decoder may reorder.

    Args:
        positions: maps each presentation time to its position in the order of decoding. Frames without a position may
            come after the damage.
    """
    held: deque[tuple[VideoFrame, bool]] = deque()
    damaged_at = math.inf
    for frame in frames:
        if frame.is_corrupt:
            damaged_at = min(damaged_at, positions.get(_time(frame), -1))
            held = deque((e, is_sound and positions.get(_time(e), math.inf) < damaged_at) for e, is_sound in held)
        elif frame.key_frame:
            damaged_at = math.inf
        held.append((frame, damaged_at == math.inf or positions.get(_time(frame), math.inf) < damaged_at))
        while len(held) > (_MOST_REORDERED if context.has_b_frames else 0):
            yield held.popleft()
    yield from held


def _time(frame: VideoFrame) -> int:
    return -1 if frame.pts is None else frame.pts


class _Decoder:
    """One open file: it takes packets and returns frames."""

    def __init__(self, name: str, index: VideoIndex) -> None:
        self.index = index
        self.container, self.stream = open_video(name, probe=not index.seekable)
        self.context = self.stream.codec_context
        self.position = 0  # the index of the next frame in `forward`
        # For `run`: the position of each packet in the order of decoding, by presentation time.
        self.positions: dict[int, int] = {}
        self._in_order: Iterator[tuple[VideoFrame, bool]] | None = None

    def run(self, key: int, wanted_pts: set[int]) -> Iterator[VideoFrame]:
        """Decode from keyframe `key` until the packets of all `wanted_pts` are sent; yield the frames in any order."""
        index, context = self.index, self.context
        key_pts = int(index.key_pts[key])
        self.container.seek(int(index.key_seek[key]), stream=self.stream, backward=True, any_frame=False)
        n_left, started = len(wanted_pts), False
        self.positions.clear()
        for packet in self.container.demux(self.stream):
            if packet.pts is None:
                break
            if not started:
                if packet.is_keyframe and packet.pts > key_pts:
                    return  # the seek landed too late
                started = packet.pts == key_pts
                if not started:
                    continue
            self.positions[packet.pts] = len(self.positions)
            hit = packet.pts in wanted_pts
            if index.droppable:
                context.skip_frame = "DEFAULT" if hit else "NONREF"
            yield from context.decode(packet)
            n_left -= hit
            if not n_left:
                break
        yield from context.decode(None)

    def forward(self) -> Iterator[tuple[int, VideoFrame, bool]]:
        """Yield all frames in order, each with its index and True if undamaged; continue after the last call."""
        if self._in_order is None:
            self._in_order = checked_frames(self.container.decode(self.stream), self.context)
        for frame, is_sound in self._in_order:
            self.position += 1
            yield self.position - 1, frame, is_sound

    def close(self) -> None:
        self.container.close()


class PyavReader(FrameReader):
    """Reads exact frames through PyAV (FFmpeg); see FrameReader."""

    backend: ClassVar[str] = "pyav"

    _decoders: dict[int, _Decoder]

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        if not self.index.seekable:
            self._deliver_in_order(wanted, deliver)
            return
        groups = self._groups(wanted)
        if len(groups) == 1:
            self._deliver_group(0, *groups[0], deliver)
            return
        queue = SimpleQueue[tuple[int, dict[int, int]]]()
        for pair in groups:
            queue.put(pair)

        def work(lane: int) -> None:
            with suppress(Empty):
                while True:
                    self._deliver_group(lane, *queue.get_nowait(), deliver)

        with ThreadPoolExecutor(_LANES) as pool:
            list(pool.map(work, range(_LANES)))  # raises the error of a worker

    def undecodable(self) -> list[int]:
        """Return the indices of frames that `read` refuses, in order.

        The file is decoded once, and damaged parts up to four times. Frames are not converted to pixels.
        """
        if not self.index.seekable:
            decoder, sound = _Decoder(self.path, self.index), set[int]()
            with suppress(*AV_ERRORS):
                sound.update(index for index, _, is_sound in decoder.forward() if is_sound)
            decoder.close()
            return sorted(set(range(len(self))) - sound)
        left: dict[int, int] = {}
        for start, group in self._groups(range(len(self))):
            self._find_group(0, start, group, lambda frame, index: None)
            left |= group
        if left:
            self._find_by_time(left, lambda frame, index: None)
        return sorted(left.values())

    def _groups(self, wanted: Sequence[int]) -> list[tuple[int, dict[int, int]]]:
        """Return groups {pts: index} of the wanted frames, by the keyframe where their decoding starts."""
        return [
            (start, {int(self.index.pts[i]): i for i in group})
            for start, group in groupby(wanted, key=lambda i: int(self.index.start[i]))
        ]

    def _deliver_group(self, lane: int, start: int, group: dict[int, int], deliver: Deliver) -> None:
        take = partial(self._hand_over, deliver=deliver)
        cause = self._find_group(lane, start, group, take)
        if group:
            cause = self._find_by_time(group, take) or cause
        if group:
            frame_names = ", ".join(str(i) for i in sorted(group.values()))
            raise VideoError(f"{self.path}: frame {frame_names} cannot be decoded ({cause}). Fix: {REMUX}")

    def _find_group(self, lane: int, start: int, group: dict[int, int], take: Take) -> str:
        """Take the frames that decode from the group's keyframe or an earlier one; return why others may be missing."""
        cause = "it does not appear when decoding from any keyframe"
        for key in range(start, max(start - _EARLIER, 0) - 1, -1):
            is_first = key > 0
            try:
                decoder = self._open(lane)
                for frame, is_sound in checked_frames(decoder.run(key, set(group)), decoder.context, decoder.positions):
                    if not is_sound:
                        break
                    # In gradual intra refresh, a "keyframe" needs frames before it: decoding from it does not return
                    # the frame itself.
                    if is_first and frame.pts != self.index.key_pts[key]:
                        break
                    is_first = False
                    if frame.pts in group:
                        take(frame, group.pop(frame.pts))
            except AV_ERRORS as error:
                cause = error_line(error)
                self._close(lane)
            if not group:
                break
        return cause

    def _find_by_time(self, group: dict[int, int], take: Take) -> str | None:
        """As a last resort, decode the file from its first packet without skipping; return the reason of an error."""
        try:
            container, stream = open_video(self.path, probe=True)
            with container:
                for frame, is_sound in checked_frames(container.decode(stream), stream.codec_context):
                    if frame.pts in group and is_sound:
                        take(frame, group.pop(frame.pts))
                    if not group:
                        break
        except AV_ERRORS as error:
            return error_line(error)
        return None

    def _deliver_in_order(self, wanted: Sequence[int], deliver: Deliver) -> None:
        """Read streams without exact seeking by counting frames from the start, or from the current position."""
        decoder = self._open(0)
        if decoder.position > wanted[0]:
            self._close(0)
            decoder = self._open(0)
        undelivered = set(wanted)
        try:
            for index, frame, is_sound in decoder.forward():
                if index in undelivered and not is_sound:
                    what = f"frame {index} is damaged, or made from a damaged one"
                    raise VideoError(f"{self.path}: {what}. Fix: {REMUX}")
                if index in undelivered:
                    expected = int(self.index.pts[index])
                    if self.index.stamped and frame.pts != expected:
                        what = f"frame {index} comes at {frame.pts}, not at {expected} ticks"
                        raise VideoError(f"{self.path}: {what}. Fix: {REMUX}")
                    self._hand_over(frame, index, deliver=deliver)
                    undelivered.remove(index)
                if not undelivered:
                    return
        except AV_ERRORS as error:
            self._close(0)
            text = f"{self.path}: frame {min(undelivered)} cannot be decoded ({error_line(error)}). Fix: {REMUX}"
            raise VideoError(text) from error
        raise VideoError(f"{self.path}: frame {min(undelivered)} does not appear in a second pass. Fix: {REMUX}")

    def _hand_over(self, frame: VideoFrame, index: int, *, deliver: Deliver) -> None:
        deliver(index, self.index.orientation.apply(np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)))

    def _open(self, lane: int) -> _Decoder:
        if lane not in self._decoders:
            self._decoders[lane] = _Decoder(self.path, self.index)
        return self._decoders[lane]

    def _close(self, lane: int) -> None:
        self._decoders.pop(lane).close()

    def _release(self) -> None:
        for lane in list(self._decoders):
            self._close(lane)
