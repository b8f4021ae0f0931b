"""The default reader: exact by construction, and fast where frames are few or in groups.

Frames wanted are grouped by the keyframe that they start from. Each group takes one seek; packets that
nothing refers to are not decoded unless they are wanted; decoding stops at the last wanted packet. Every
frame delivered has been matched by its presentation time. A frame that does not come out is looked for from
earlier keyframes, then by decoding the whole file in order; then VideoError.

One group is decoded by two frame threads. Several groups are shared out to two decoders of one thread each: no
work is lost in filling and draining frame threads.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import ClassVar

import numpy as np
from av.video.frame import VideoFrame

from barista_bench.errors import VideoError
from barista_bench.media.video.frame_folder import REMUX
from barista_bench.media.video.frame_reader import Deliver, FrameReader
from barista_bench.media.video.index import AV_ERRORS, VideoIndex, open_video, reason

_THREADS = 2  # more frame threads delay the first frame
_ALONE = 0  # lane of the decoder with frame threads; lanes 1, 2 have one thread each
_EARLIER = 2  # keyframes to step back before the whole file is decoded


class _Decoder:
    """One open file: packets in, frames out."""

    def __init__(self, name: str, index: VideoIndex, threads: int) -> None:
        self.index = index
        self.container, self.stream = open_video(name, threads=threads, probe=not index.seekable)
        self.context = self.stream.codec_context
        self.position = 0  # of `forward`: the next frame's index
        self._in_order: Iterator[VideoFrame] | None = None

    def run(self, key: int, wanted_pts: set[int]) -> Iterator[VideoFrame]:
        """Decode from keyframe `key` until all `wanted` times are submitted; yield what comes out, in any order."""
        index, context = self.index, self.context
        key_pts = int(index.key_pts[key])
        self.container.seek(int(index.key_seek[key]), stream=self.stream, backward=True, any_frame=False)
        n_left, started = len(wanted_pts), False
        for packet in self.container.demux(self.stream):
            if packet.pts is None:
                break
            if not started:
                if packet.is_keyframe and packet.pts > key_pts:
                    return  # the seek went too far
                started = packet.pts == key_pts
                if not started:
                    continue
            hit = packet.pts in wanted_pts
            if index.droppable:
                context.skip_frame = "DEFAULT" if hit else "NONREF"
            yield from context.decode(packet)
            n_left -= hit
            if not n_left:
                break
        yield from context.decode(None)

    def forward(self) -> Iterator[tuple[int, VideoFrame]]:
        """All frames in order with their index, going on where the last call stopped."""
        if self._in_order is None:
            self._in_order = self.container.decode(self.stream)
        for frame in self._in_order:
            self.position += 1
            yield self.position - 1, frame

    def close(self) -> None:
        self.container.close()


class PyavReader(FrameReader):
    """Exact frames through PyAV (FFmpeg). See FrameReader."""

    backend: ClassVar[str] = "pyav"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """See FrameReader. Decoders are opened when they are first needed."""
        self._decoders: dict[int, _Decoder] = {}  # by lane
        super().__init__(path)

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        if not self.index.seekable:
            self._deliver_in_order(wanted, deliver)
            return
        groups = [
            (start, {int(self.index.pts[i]): i for i in group})
            for start, group in groupby(wanted, key=lambda i: int(self.index.start[i]))
        ]
        if len(groups) == 1:
            self._deliver_group(_ALONE, *groups[0], deliver)
            return
        queue = SimpleQueue[tuple[int, dict[int, int]]]()
        for pair in groups:
            queue.put(pair)

        def work(lane: int) -> None:
            with suppress(Empty):
                while True:
                    self._deliver_group(lane, *queue.get_nowait(), deliver)

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(work, range(_ALONE + 1, _ALONE + 1 + _THREADS)))  # raises what a worker raised

    def _deliver_group(self, lane: int, start: int, group: dict[int, int], deliver: Deliver) -> None:
        """Deliver the frames {pts: index} that are reached from keyframe `start`."""
        cause = "it does not appear when decoding from any keyframe"
        for key in range(start, max(start - _EARLIER, 0) - 1, -1):
            try:
                for frame in self._open(lane).run(key, set(group)):
                    if frame.is_corrupt:  # so are the frames that refer to it, unmarked
                        break
                    if frame.pts in group:
                        self._hand_over(frame, group.pop(frame.pts), deliver)
            except AV_ERRORS as error:
                cause = reason(error)
                self._close(lane)
            if not group:
                return
        self._deliver_by_time(group, deliver, cause)

    def _deliver_by_time(self, group: dict[int, int], deliver: Deliver, cause: str) -> None:
        """The last resort: decode the file from its first packet, nothing skipped."""
        sound = True  # false from a corrupt frame to the next keyframe
        try:
            container, stream = open_video(self.path, threads=_THREADS, probe=True)
            with container:
                for frame in container.decode(stream):
                    sound = not frame.is_corrupt and (sound or frame.key_frame)
                    if frame.pts in group and sound:
                        self._hand_over(frame, group.pop(frame.pts), deliver)
                    if not group:
                        return
        except AV_ERRORS as error:
            cause = reason(error)
        frame_names = ", ".join(str(i) for i in sorted(group.values()))
        raise VideoError(f"{self.path}: frame {frame_names} cannot be decoded ({cause}). Remedy: {REMUX}")

    def _deliver_in_order(self, wanted: Sequence[int], deliver: Deliver) -> None:
        """For streams that cannot seek exactly: count the frames from the start, or on from where we are."""
        decoder = self._open(_ALONE)
        if decoder.position > wanted[0]:
            self._close(_ALONE)
            decoder = self._open(_ALONE)
        undelivered = set(wanted)
        try:
            for index, frame in decoder.forward():
                if index in undelivered and not frame.is_corrupt:
                    expected = int(self.index.pts[index])
                    if frame.pts not in (None, expected):
                        what = f"frame {index} comes at {frame.pts}, not at {expected} ticks"
                        raise VideoError(f"{self.path}: {what}. Remedy: {REMUX}")
                    self._hand_over(frame, index, deliver)
                    undelivered.remove(index)
                if not undelivered:
                    return
        except AV_ERRORS as error:
            self._close(_ALONE)
            text = f"{self.path}: frame {min(undelivered)} cannot be decoded ({reason(error)}). Remedy: {REMUX}"
            raise VideoError(text) from error
        raise VideoError(f"{self.path}: frame {min(undelivered)} does not appear in a second pass. Remedy: {REMUX}")

    def _hand_over(self, frame: VideoFrame, index: int, deliver: Deliver) -> None:
        deliver(index, self.index.orientation.apply(np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)))

    def _open(self, lane: int) -> _Decoder:
        if lane not in self._decoders:
            self._decoders[lane] = _Decoder(self.path, self.index, _THREADS if lane == _ALONE else 1)
        return self._decoders[lane]

    def _close(self, lane: int) -> None:
        self._decoders.pop(lane).close()

    def _release(self) -> None:
        for lane in list(self._decoders):
            self._close(lane)

    def _forget(self) -> None:
        self._decoders = {}  # the parent's dict is left as it is: see `_after_fork`
