"""Frames by index out of 1080p H.264, with B-frames and without: this package beside decord and torchcodec.

    python perf/frame_access.py [--quick]        a 10 s video, few requests, one round

Every reader stays open and answers the same requests in turn (round robin); the best of k rounds counts. Frames of
this package must equal a sequential decode byte for byte; those of the others, whose colour conversion differs, must
show the right frame. torchcodec runs exact, with 1 thread and with as many as FFmpeg likes.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from timeit import repeat

import av
import decord
import numpy as np
import typer
from numpy.typing import NDArray
from sample_video import sample_video
from torchcodec.decoders import VideoDecoder

from barista_bench.media.video import open_reader
from barista_bench.media.video.index import build_index

Images = NDArray[np.uint8]
Read = Callable[[list[int]], Images]
Row = tuple[str, dict[str, float], dict[str, str]]
"""A pattern, and by reader: best seconds per request, and right / asked frames."""

OURS = "barista_bench"
_THIN = 8  # each 8th pixel of each 8th row is compared for the other readers
_NEAR = 4.0  # mean difference of grey levels that another colour conversion may make


def requests(count: int, quick: bool) -> dict[str, list[list[int]]]:
    """Frame indices per access pattern, for a video of `count` frames."""
    rng = np.random.default_rng(3)
    times = 4 if quick else 10

    def clips(frames: int, step: int) -> list[list[int]]:
        starts = rng.integers(0, count - (frames - 1) * step, times)
        return [[int(start) + k * step for k in range(frames)] for start in starts]

    many = 20 if quick else 100
    spread = np.sort(rng.choice(count, many, replace=False)).tolist()
    return {
        "1 random frame": clips(1, 1),
        "4 frames over 2 s": clips(4, 20),
        "6 frames, 24 apart": clips(6, 24),
        f"{many} sorted frames": [spread],
    }


def open_decord(path: str) -> Read:
    reader = decord.VideoReader(path)
    return lambda indices: reader.get_batch(indices).asnumpy()


def open_torchcodec(path: str, threads: int) -> Read:
    decoder = VideoDecoder(path, dimension_order="NHWC", seek_mode="exact", num_ffmpeg_threads=threads)
    return lambda indices: decoder.get_frames_at(indices).data.numpy()


PEERS: dict[str, Callable[[str], Read]] = {
    "decord": open_decord,
    "torchcodec, 1 thread": lambda path: open_torchcodec(path, 1),
    "torchcodec, auto": lambda path: open_torchcodec(path, 0),
}
"""A function per reader that opens a video, and returns a function that reads frames (n, H, W, 3)."""


def reference(path: Path, wanted: set[int]) -> dict[int, Images]:
    """The wanted frames from one sequential decode."""
    frames: dict[int, Images] = {}
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        for index, frame in enumerate(container.decode(video=0)):
            if index in wanted:
                frames[index] = np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
    return frames


def check(name: str, images: Images, asked: list[int], true: dict[int, Images]) -> int:
    """How many frames are right. See the module's text."""
    pairs = [(image, true[index]) for image, index in zip(images, asked, strict=True)]
    if name == OURS:
        return sum(np.array_equal(image, frame) for image, frame in pairs)
    thin = [image[::_THIN, ::_THIN].astype(int) - frame[::_THIN, ::_THIN] for image, frame in pairs]
    return sum(float(np.abs(difference).mean()) < _NEAR for difference in thin)


def measure(path: Path, quick: bool) -> Iterator[Row]:
    """Yield a row for opening the video, and one for each pattern."""
    rounds = 1 if quick else 3
    openers = {OURS: build_index, **PEERS}  # without the cache of `open_reader`
    yield (
        "open",
        {n: min(repeat(lambda o=o: o(str(path)), number=1, repeat=rounds + 2)) for n, o in openers.items()},
        {},
    )
    calls = {OURS: open_reader(path).read, **{name: opener(str(path)) for name, opener in PEERS.items()}}
    count = build_index(str(path)).pts.size
    for pattern, asked in requests(count, quick).items():
        true = reference(path, {index for request in asked for index in request})
        times: dict[str, list[float]] = {name: [] for name in calls}
        right = dict.fromkeys(calls, 0)
        for turn in range(rounds):
            for name, read in calls.items():
                spent = 0.0
                for request in asked:
                    begin = time.perf_counter()
                    images = read(request)
                    spent += time.perf_counter() - begin
                    right[name] += check(name, images, request, true) if turn == 0 else 0
                times[name].append(spent / len(asked))
        total = sum(map(len, asked))
        best = {name: min(values) for name, values in times.items()}
        yield pattern, best, {name: f"{right[name]}/{total}" for name in calls}


def show(title: str, table: list[Row]) -> None:
    """Print a Markdown table: ms, and how many times slower than this package; right frames in brackets."""
    names = list(table[0][1])
    print(f"\n{title}\n\n| pattern | " + " | ".join(names) + " |\n|:--|" + "--:|" * len(names))
    for pattern, best, right in table:
        cells = [f"{best[n] * 1e3:.1f} ms ({best[n] / best[OURS]:.2f}x) {right.get(n, '')}".strip() for n in names]
        print(f"| {pattern} | " + " | ".join(cells) + " |")


def main(quick: bool = False) -> None:
    for gop, b_frames in ((30, 3),) if quick else ((30, 3), (250, 3), (30, 0)):
        path = sample_video(10 if quick else 60, gop, b_frames)
        show(f"Frame access, {path.name}", list(measure(path, quick)))


if __name__ == "__main__":
    typer.run(main)
