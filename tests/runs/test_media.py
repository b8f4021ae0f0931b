"""Frames and images that tasks share: decoded once, equal in every pixel, within bounds."""

import io
import os
import random
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from PIL import Image

from barista_bench.core.example import FrameRef
from barista_bench.data import shared_frames as media, stored_images
from barista_bench.data.shared_frames import FrameStore, StageClock, size_of_images
from barista_bench.data.stored_images import decode_image
from barista_bench.errors import DataError, VideoError
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.media.video import close_readers
from barista_bench.runs.ask.prefetch import decode_ahead
from tests.video_samples import HEIGHT, WIDTH, X264, decode_in_order, render

FRAMES = 120
FRAME_BYTES = WIDTH * HEIGHT * 3


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos of 120 frames with different pictures and keyframes every 24 and 60 frames."""
    folder = tmp_path_factory.mktemp("store")
    render(folder / "a.mp4")
    render(folder / "b.mp4", options=X264 | {"g": "60", "crf": "30"})
    return folder


@pytest.fixture(scope="session")
def reference(root: Path) -> dict[str, list[NDArray[np.uint8]]]:
    return {name: decode_in_order(root / f"{name}.mp4") for name in ("a", "b")}


@pytest.fixture(autouse=True)
def _no_readers_kept() -> Iterator[None]:
    yield
    close_readers()


def lazy(root: Path, video: str, indices: list[int]) -> LazyFrames:
    return LazyFrames(f"{video}.mp4", indices, root=str(root))


def refs(video: str, indices: list[int]) -> list[FrameRef]:
    return [FrameRef(video, index) for index in indices]


def jpeg(seed: int, size: tuple[int, int] = (64, 48)) -> bytes:
    buffer = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(noise).save(buffer, "JPEG")
    return buffer.getvalue()


def open_videos() -> int:
    """Videos that this process has open."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the listing's own
            continue
    return sum(link.endswith(".mp4") for link in links)


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files with /proc")

REQUESTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, FRAMES - 1), min_size=1, max_size=5)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(REQUESTS, st.sampled_from([0, 3 * FRAME_BYTES, 10**9]), st.integers(1, 4), st.booleans(), st.booleans())
def test_pixels_are_the_same_with_any_cache_plan_order_and_number_of_workers(
    root: Path,
    reference: dict[str, list[NDArray[np.uint8]]],
    requests: list[tuple[str, list[int]]],
    max_bytes: int,
    workers: int,
    planned: bool,
    ordered: bool,
) -> None:
    if ordered:
        requests = sorted(requests)
    store = FrameStore(max_bytes=max_bytes)
    if planned:
        store.plan(frame for video, indices in requests for frame in refs(video, indices))
    ready = decode_ahead(
        requests,
        lambda request: store.frames(lazy(root, *request), request[0]),
        workers=workers,
        max_items=4,
        max_bytes=10**9,
        size_of=lambda frames: sum(frame.nbytes for frame in frames),
        group_of=lambda request: request[0],
    )
    for (video, indices), frames in ready:
        assert len(frames) == len(indices)
        for index, frame in zip(indices, frames, strict=True):
            assert frame.tobytes() == reference[video][index].tobytes()
    assert store.cache.held_bytes <= max_bytes


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_frame_is_decoded_once_for_all_that_want_it(
    root: Path, workers: int, decode_count: Callable[[], int]
) -> None:
    rng = random.Random(3)
    requests = sorted((rng.choice("ab"), sorted(rng.choices(range(FRAMES), k=3))) for _ in range(60))
    wanted = {frame for video, indices in requests for frame in refs(video, indices)}
    store = FrameStore()
    store.plan(frame for video, indices in requests for frame in refs(video, indices))
    before = decode_count()
    ready = decode_ahead(
        requests,
        lambda request: store.frames(lazy(root, *request), request[0]),
        workers=workers,
        max_items=16,
        max_bytes=10**9,
        size_of=lambda frames: 1,
        group_of=lambda request: request[0],
    )
    assert len(list(ready)) == 60
    assert decode_count() - before == len(wanted) == store.cache.made_count


def test_frames_handed_out_are_read_only_for_good(root: Path) -> None:
    store = FrameStore()
    for indices in ([3], [3, 40, 41]):
        for frame in store.frames(lazy(root, "a", indices), "a"):
            assert not frame.flags.writeable
            with pytest.raises(ValueError, match="WRITEABLE"):
                frame.setflags(write=True)
            with pytest.raises(ValueError, match="read-only"):
                frame[0, 0] = 0


def test_a_frame_kept_does_not_keep_those_that_were_decoded_with_it(root: Path) -> None:
    store = FrameStore()
    for frame in store.frames(lazy(root, "a", [3, 40, 41]), "a"):
        owner = frame
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        assert owner.nbytes == FRAME_BYTES


def test_a_plan_drops_every_frame_after_its_last_use(root: Path) -> None:
    requests = [[0, 10], [10, 20], [20, 20], [30], [10]]
    store = FrameStore()
    store.plan(frame for indices in requests for frame in refs("a", indices))
    for indices in requests:
        store.frames(lazy(root, "a", indices), "a")
    assert (store.cache.made_count, store.cache.held_bytes) == (4, 0)


def test_planned_frames_on_the_way_are_decoded_in_one_go(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[int]] = []
    read = LazyFrames.array

    def recording(self: LazyFrames) -> NDArray[np.uint8]:
        batches.append(list(self.indices))
        return read(self)

    monkeypatch.setattr(LazyFrames, "array", recording)
    store = FrameStore()
    store.plan(refs("a", [2, 5, 23, 24, 30]) + refs("b", [7]))
    for index in (2, 5, 23, 24, 30):
        store.frames(lazy(root, "a", [index]), "a")
    # Keyframes are 24 frames apart.
    assert batches == [[2, 5, 23], [24, 30]]


def test_frames_decoded_ahead_keep_to_their_share_of_the_memory(root: Path) -> None:
    for max_bytes, expected in ((8 * FRAME_BYTES, 2), (10**9, 1 + media.MAX_ON_THE_WAY), (0, 1)):
        store = FrameStore(max_bytes=max_bytes)
        store.plan(refs("b", list(range(50))))
        store.frames(lazy(root, "b", [0]), "b")
        assert store.cache.made_count == expected


def test_a_frame_on_the_way_that_cannot_be_decoded_costs_the_others_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, reference: dict[str, list[NDArray[np.uint8]]]
) -> None:
    read = LazyFrames.array

    def broken(self: LazyFrames) -> NDArray[np.uint8]:
        if 9 in self.indices:
            raise VideoError("a.mp4: frame 9 cannot be decoded")
        return read(self)

    monkeypatch.setattr(LazyFrames, "array", broken)
    store = FrameStore()
    store.plan(refs("a", [8, 9, 10]))
    assert np.array_equal(store.frames(lazy(root, "a", [8]), "a")[0], reference["a"][8])
    with pytest.raises(VideoError, match="frame 9"):
        store.frames(lazy(root, "a", [9]), "a")
    assert np.array_equal(store.frames(lazy(root, "a", [10]), "a")[0], reference["a"][10])


def test_a_planned_index_past_the_end_does_no_harm(root: Path) -> None:
    store = FrameStore()
    store.plan(refs("a", [118, 119, 120, 10**9]))
    assert len(store.frames(lazy(root, "a", [118, 119]), "a")) == 2
    with pytest.raises(VideoError, match="no frame 120"):
        store.frames(lazy(root, "a", [120]), "a")


def test_a_replaced_file_is_decoded_again(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    store = FrameStore()
    seen = []
    for name in ("a", "b"):
        shutil.copy(root / f"{name}.mp4", path)
        seen.append(store.frames(lazy(tmp_path, "a", [50]), "a")[0])
    assert store.cache.made_count == 2
    assert not np.array_equal(*seen)


def test_frames_of_one_example_beyond_the_memory_bound_are_refused_before_they_are_decoded(
    root: Path, monkeypatch: pytest.MonkeyPatch, decode_count: Callable[[], int]
) -> None:
    monkeypatch.setattr(media, "MAX_EXAMPLE_BYTES", 3 * FRAME_BYTES)
    before = decode_count()
    with pytest.raises(DataError, match="4 frames of 192x96"):
        FrameStore().frames(lazy(root, "a", [1, 2, 3, 3]), "a")
    assert decode_count() == before


@needs_proc
def test_a_thread_has_one_video_open_and_closes_it_before_the_next(root: Path) -> None:
    store = FrameStore()
    before = open_videos()
    with ThreadPoolExecutor(1) as pool:
        # Frames of two keyframes open one decoder a lane, of one keyframe another.
        open_after_a = pool.submit(lambda: (store.frames(lazy(root, "a", [5]), "a"), open_videos())[1]).result()
        open_after_b = pool.submit(lambda: (store.frames(lazy(root, "b", [5]), "b"), open_videos())[1]).result()
        assert open_after_a == open_after_b == before + 1
    assert open_videos() == before, "the thread has ended"


@needs_proc
def test_no_video_stays_open_after_work_ahead_has_ended(root: Path) -> None:
    store = FrameStore()
    before = open_videos()
    requests = [(video, [index]) for video in "ab" for index in range(0, 120, 10)]
    for _ in decode_ahead(
        requests,
        lambda request: store.frames(lazy(root, *request), request[0]),
        workers=3,
        max_items=8,
        max_bytes=10**9,
        size_of=lambda frames: 1,
    ):
        assert open_videos() <= before + 3
    assert open_videos() == before


def test_closing_frees_memory_and_the_store_can_be_used_again(root: Path) -> None:
    with FrameStore() as store:
        store.frames(lazy(root, "a", [1]), "a")
        assert store.cache.held_bytes == FRAME_BYTES
    assert store.cache.held_bytes == 0
    assert len(store.frames(lazy(root, "a", [1]), "a")) == 1


def test_decoding_is_timed_and_reuse_decodes_nothing(root: Path) -> None:
    clock = StageClock()
    store = FrameStore(clock=clock)
    for _ in range(3):
        store.frames(lazy(root, "a", [1, 50]), "a")
    shown = FrameRef("a", 7)
    store.plan([shown] * 3)
    store.images([jpeg(0), jpeg(0)], "x", [shown, shown])
    assert store.cache.made_count == 3
    assert clock.seconds["decode"] > 0


def test_a_stored_image_of_two_examples_is_decoded_once_and_drawings_are_not_shared() -> None:
    store, shown = FrameStore(), FrameRef("v", 1)
    store.plan([shown] * 3)
    data = jpeg(1)
    (first,) = store.images([data], "x", [shown])
    expected = first.tobytes()
    first.paste((255, 0, 0), (0, 0, 64, 48))
    (second,) = store.images([bytes(data)], "y", [shown])
    assert second.tobytes() == expected == Image.open(io.BytesIO(data)).convert("RGB").tobytes()
    assert store.cache.made_count == 1
    assert store.cache.held_bytes == size_of_images([second]) == 4 * 64 * 48


def test_stored_images_make_room_within_the_bound() -> None:
    store, frames = FrameStore(max_bytes=2 * 4 * 64 * 48), [FrameRef("v", seed) for seed in range(3)]
    store.plan(frames * 3)
    for seed in (0, 1, 2, 0):
        store.images([jpeg(seed)], "x", [frames[seed]])
    assert store.cache.made_count == 4
    assert store.cache.held_bytes <= 2 * 4 * 64 * 48


def test_a_damaged_image_is_named_by_each_example_that_has_it() -> None:
    store = FrameStore()
    data = jpeg(1)[:200]
    for name in ("x", "y"):
        with pytest.raises(DataError, match=f"{name}: stored image is damaged"):
            store.images([data], name)
    assert store.cache.held_bytes == 0


def test_an_image_that_claims_to_be_huge_is_refused_undecoded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(jpeg(1))
    start = data.index(b"\xff\xc0") + 5
    data[start : start + 4] = b"\xff\xff\xff\xff"  # 65535 x 65535
    with pytest.raises(DataError, match="x: "):
        decode_image(bytes(data), "x")
    monkeypatch.setattr(stored_images, "MAX_IMAGE_PIXELS", 64 * 48 - 1)
    with pytest.raises(DataError, match="x: image of 64x48 pixels refused"):
        decode_image(jpeg(1), "x")


def test_images_of_one_example_beyond_the_memory_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_EXAMPLE_BYTES", 2 * 4 * 64 * 48)
    store = FrameStore()
    assert len(store.images([jpeg(0), jpeg(0)], "x")) == 2
    with pytest.raises(DataError, match="x: its images take more"):
        store.images([jpeg(0)] * 3, "x")
