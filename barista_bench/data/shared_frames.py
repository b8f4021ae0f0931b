"""Share decoded frames and images between the tasks of a run. Each is made once and cached within a limit of bytes."""

from __future__ import annotations

import bisect
import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Generic, Literal, Self, TypeAlias, TypeVar, cast, get_args

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray
from PIL import Image

from barista_bench.core.example import FrameRef
from barista_bench.data.stored_images import decode_image
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.media.video import close_readers
from barista_bench.media.video.index import VideoIndex, video_index
from barista_bench.media.video.opening import Stamp, stamp_of

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class SharedCache(Generic[KeyT, ValueT]):
    """A cache of values that threads share. The least recently used values are dropped first.

    If one thread is making a value, other threads wait for it, so no value is made twice.

    Args:
        max_bytes: size limit. With 0, nothing is cached, but threads that request the same value at once still share
            it.
        size_of: returns the size of a value in bytes.

    Raises:
        ConfigError: `max_bytes` is negative.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[ValueT], int]) -> None:
        if max_bytes < 0:
            raise ConfigError(f"a cache of {max_bytes} bytes. Fix: give 0 (keep nothing) or more")
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._lru: LRUCache[KeyT, ValueT] = LRUCache(max_bytes, size_of)
        # None means a failure: a thread that waited tries again, and gets a separate error.
        self._futures: dict[KeyT, Future[ValueT | None]] = {}
        self.made_count = 0
        """Values made so far."""

    @property
    def held_bytes(self) -> int:
        """Return the size in bytes of all values in the cache."""
        with self._lock:
            return int(self._lru.currsize)

    def get(
        self,
        keys: Iterable[KeyT],
        make: Callable[[list[KeyT], list[KeyT]], Mapping[KeyT, ValueT]],
        *,
        candidates: Callable[[Sequence[KeyT]], Sequence[KeyT]] = lambda _: (),
    ) -> dict[KeyT, ValueT]:
        """Return the values of `keys`.

        Args:
            keys: keys of the requested values.
            make: makes values. It gets the keys to make, and further keys that are worth making on the way. It must
                return values for all keys of the first kind, and may omit the second kind. Its errors are raised here.
            candidates: returns further keys, best first, for the keys to make. Keys in the cache or in progress are
                skipped. It is called while the cache is locked, so it must neither block nor call the cache.
        """
        values: dict[KeyT, ValueT] = {}
        wanted = list(dict.fromkeys(keys))
        while missing := [key for key in wanted if key not in values]:
            with self._lock:
                cached = {key: self._lru[key] for key in missing if key in self._lru}
                awaited = {key: self._futures[key] for key in missing if key in self._futures}
                own_keys = [key for key in missing if key not in cached and key not in awaited]
                extras = list(dict.fromkeys(candidates(own_keys))) if own_keys else []
                extras = [
                    key for key in extras if not any(key in held for held in (own_keys, self._lru, self._futures))
                ]
                self._futures |= {key: Future() for key in (*own_keys, *extras)}
            values |= cached
            if own_keys:
                values |= self._make(own_keys, extras, make)
            # A thread does its own work first, so that two threads that need each other's values do not block each
            # other.
            for key, future in awaited.items():
                value = future.result()
                if value is not None:
                    values[key] = value
        return values

    def discard(self, keys: Iterable[KeyT]) -> None:
        """Drop values that are no longer needed from the cache."""
        with self._lock:
            for key in keys:
                self._lru.pop(key, None)

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._lru.clear()

    def _make(
        self, own_keys: list[KeyT], extras: list[KeyT], make: Callable[[list[KeyT], list[KeyT]], Mapping[KeyT, ValueT]]
    ) -> dict[KeyT, ValueT]:
        values: Mapping[KeyT, ValueT] = {}
        try:
            values = make(own_keys, extras)
            return {key: values[key] for key in own_keys}
        finally:  # also after an interrupt, since other threads would wait forever
            with self._lock:
                futures = {key: self._futures.pop(key) for key in (*own_keys, *extras)}
                fitting = {key: value for key, value in values.items() if self._lru.getsizeof(value) <= self.max_bytes}
                self._lru.update(fitting)
                self.made_count += len(values)
            for key, future in futures.items():
                future.set_result(values.get(key))


MAX_EXAMPLE_BYTES = 4 * 2**30
"""Maximum number of bytes of the decoded frames of one example: 690 frames at 1080p fit."""
_LIMIT = f"{MAX_EXAMPLE_BYTES / 2**30:.0f} GiB"
MAX_ON_THE_WAY = 8
"""Maximum number of further planned frames that are decoded with the frames of one example. Decoding starts at a
keyframe, and a skipped frame takes nearly as long as a cached frame."""

Frame = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _FrameKey:
    """The key of one frame of one version of a file."""

    stamp: Stamp
    index: int


_Key = _FrameKey | bytes
_Value = Frame | Image.Image


Stage: TypeAlias = Literal["load", "decode", "prepare", "wait", "generate", "judge", "total"]


class StageClock:
    """A clock for the stages of a run. It is safe to use from any thread.

        clock = StageClock()
        with clock("decode"): ...
        clock.seconds["decode"]

    Seconds add up over threads that work at the same time. Stages are independent: the time of a stage inside another
    stage counts in both.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = dict.fromkeys(get_args(Stage), 0.0)

    @contextmanager
    def __call__(self, stage: Stage) -> Iterator[None]:
        """Add the time of the block to `stage`, even if the block raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(stage, time.perf_counter() - start)

    def add(self, stage: Stage, seconds: float) -> None:
        """Add seconds that were measured elsewhere."""
        with self._lock:
            self._seconds[stage] += seconds

    @property
    def seconds(self) -> dict[str, float]:
        """Return the seconds by stage, without blocks that have not ended."""
        with self._lock:
            return dict(self._seconds)


class FrameStore:
    """Caches frames by video file and index, and stored images by SHA-256. It is safe to use from any thread.

    Each thread has its own reader for one video at a time. The reader closes when the thread moves to another video or
    ends. A frame that two threads need at once is decoded once.

    Args:
        max_bytes: size limit; 0 caches nothing.
        clock: measures `decode`.

    Raises:
        ConfigError: `max_bytes` is negative.
    """

    def __init__(self, *, max_bytes: int = 512 * 2**20, clock: StageClock | None = None) -> None:
        self.clock = clock or StageClock()
        self.cache: SharedCache[_Key, _Value] = SharedCache(max_bytes, _size_of)
        self._thread = threading.local()
        self._plan_lock = threading.Lock()
        self._uses: Counter[FrameRef] = Counter()
        self._planned: dict[str, list[int]] = {}

    def plan(self, frames: Iterable[FrameRef]) -> None:
        """Announce the frames that will be requested, one entry per use. The new plan replaces an earlier plan.

        With a plan, planned frames on the way to a later frame are decoded together with it, and a frame is dropped
        after its last use. The plan changes no pixel, and frames outside it remain available.
        """
        uses = Counter(frames)
        planned: dict[str, list[int]] = {}
        for frame in sorted(uses, key=lambda frame: (frame.video_id, frame.frame_index)):
            planned.setdefault(frame.video_id, []).append(frame.frame_index)
        with self._plan_lock:
            self._uses, self._planned = uses, planned

    def frames(self, lazy: LazyFrames, video_id: str) -> list[Frame]:
        """Return frames of a video in the order of `lazy.indices`: read-only uint8 RGB, each (height, width, 3).

        Raises:
            VideoError: a frame cannot be decoded, or there is no such frame.
            DataError: the frames together take too much memory.
        """
        stamp = stamp_of(lazy.path)
        index = self._index(stamp)
        width, height = index.size
        _check_bytes(stamp.path, len(lazy.indices), width, height)

        def make(own_keys: list[_Key], extras: list[_Key]) -> Mapping[_Key, _Value]:
            try:
                return self._decode(lazy, stamp, own_keys + extras)
            except DataError:
                if not extras:
                    raise
                return self._decode(lazy, stamp, own_keys)

        keys = [_FrameKey(stamp, frame) for frame in lazy.indices]
        try:
            frames = self.cache.get(keys, make, candidates=lambda new: self._passed_frames(video_id, stamp, index, new))
        finally:
            # Uses are counted at the end, so that the last user drops the frame.
            self.cache.discard([_FrameKey(stamp, frame) for frame in self._count_uses(video_id, lazy.indices)])
        # These are views of read-only arrays, so callers cannot make them writable again.
        return [cast("Frame", frames[key]).view() for key in keys]

    def images(self, stored: Sequence[bytes], name: str, frames: Sequence[FrameRef] = ()) -> tuple[Image.Image, ...]:
        """Return the stored JPEGs and PNGs of one example as RGB images that the caller may change. `name` is for
        errors.

        `frames` are the frames shown by the first images. Such an image stays cached while the plan has another use of
        its frame. Other images, such as marks over a frame, differ between examples.

        Raises:
            DataError: an image is damaged or larger than `MAX_IMAGE_PIXELS`, or the images together take too much
            memory.
        """
        images: list[Image.Image] = []
        for data, frame in zip_longest(stored, frames[: len(stored)]):
            images.append(self._image(data, name, frame))
            if size_of_images(images) > MAX_EXAMPLE_BYTES:
                raise DataError(f"{name}: its images take more than {_LIMIT}. Fix: build with fewer frames")
        return tuple(images)

    def _image(self, data: bytes, name: str, frame: FrameRef | None) -> Image.Image:
        key = hashlib.sha256(data).digest()

        def make(own_keys: list[_Key], extras: list[_Key]) -> Mapping[_Key, _Value]:
            del own_keys, extras
            with self.clock("decode"):
                return {key: decode_image(data, name)}

        image = cast("Image.Image", self.cache.get([key], make)[key]).copy()
        if frame is None or self._count_uses(frame.video_id, [frame.frame_index]):
            self.cache.discard([key])
        return image

    def close(self) -> None:
        """Empty the cache, and close the calling thread's reader. Readers of other threads close when those threads
        end.
        """
        self.cache.clear()
        self._thread.path = None
        close_readers()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _index(self, stamp: Stamp) -> VideoIndex:
        # The calling thread's reader of another video is closed: work goes from video to video
        if getattr(self._thread, "path", stamp.path) not in (None, stamp.path):
            close_readers()
        self._thread.path = stamp.path
        with self.clock("decode"):
            return video_index(stamp)

    def _decode(self, lazy: LazyFrames, stamp: Stamp, keys: Sequence[_Key]) -> dict[_Key, _Value]:
        indices = sorted(key.index for key in keys if isinstance(key, _FrameKey))
        with self.clock("decode"):
            images = LazyFrames(lazy.video, indices, root=lazy.root, backend=lazy.backend).array()
        images.setflags(write=False)
        frames: dict[_Key, _Value] = {}
        for index, image in zip(indices, images, strict=True):
            copied = image.copy() if len(indices) > 1 else image  # a view would keep the larger array alive
            copied.setflags(write=False)
            frames[_FrameKey(stamp, index)] = copied
        return frames

    def _count_uses(self, video_id: str, indices: Sequence[int]) -> list[int]:
        """Count uses of planned frames, and return the planned frames that were used for the last time."""
        with self._plan_lock:
            planned = [frame for index in set(indices) if (frame := FrameRef(video_id, index)) in self._uses]
            for frame in planned:
                self._uses[frame] -= indices.count(frame.frame_index)
            return [frame.frame_index for frame in planned if self._uses[frame] <= 0]

    def _passed_frames(self, video_id: str, stamp: Stamp, index: VideoIndex, own_keys: Sequence[_Key]) -> list[_Key]:
        """Return planned frames that decoding passes anyway: frames after the first of `own_keys`, from the same
        keyframes.
        """
        count = len(index.pts)
        indices = [key.index for key in own_keys if isinstance(key, _FrameKey) and 0 <= key.index < count]
        width, height = index.size
        most = min(MAX_ON_THE_WAY, self.cache.max_bytes // 8 // (3 * width * height))
        if not indices or not most:
            return []
        keyframes = {int(index.start[frame]) for frame in indices}
        extras: list[_Key] = []
        with self._plan_lock:
            planned = self._planned.get(video_id, [])
            for frame in planned[bisect.bisect_right(planned, min(indices)) :]:
                if len(extras) == most or frame >= count or int(index.start[frame]) > max(keyframes):
                    break
                key = _FrameKey(stamp, frame)
                if int(index.start[frame]) in keyframes and self._uses[FrameRef(video_id, frame)] > 0:
                    extras.append(key)
        return extras


def size_of_images(images: Iterable[Image.Image]) -> int:
    """Return the number of bytes that RGB images take in memory. Pillow uses four bytes per pixel."""
    return sum(4 * image.width * image.height for image in images)


def _size_of(value: _Value) -> int:
    return size_of_images([value]) if isinstance(value, Image.Image) else value.nbytes


def _check_bytes(name: str, count: int, width: int, height: int) -> None:
    size = 3 * width * height * count
    if size > MAX_EXAMPLE_BYTES:
        raise DataError(
            f"{name}: {count} frames of {width}x{height} in one example take {size / 2**30:.1f} GiB, more than "
            f"{_LIMIT}. Fix: ask for fewer frames"
        )
