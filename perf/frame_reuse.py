"""Frames shared between tasks, and frames decoded ahead: what a run over six linked tasks saves.

    python perf/frame_reuse.py [--quick] [--source RELEASE]

All six tasks of one release (a scripted kitchen in `perf/data/`, unless another is given), their frames linked. First
the same images are made in several ways, round robin, best of k: each must equal the first in every pixel. Then the
best way feeds a model that sleeps for each batch as long as its images take to make: the fraction of the time that the
model waits, without and with threads that decode ahead.
"""

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.core.task import Example, Task
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.folder import build
from barista_bench.data.shared_frames import FrameStore, StageClock, size_of_images
from barista_bench.media.lazy_frames import decode_count
from barista_bench.media.video import close_readers
from barista_bench.mini import write_kitchen
from barista_bench.runs.ask.prefetch import decode_ahead

DATA = Path(__file__).parent / "data"
BATCH = 8
MEMORY = 512 * 2**20
Images = tuple[Image.Image, ...]


class Asked(NamedTuple):
    """One example of one task."""

    task: Task
    examples: ExampleSet
    index: int

    @property
    def example(self) -> Example:
        return self.examples.examples[self.index]

    def images(self, store: FrameStore | None, clock: StageClock | None = None) -> Images:
        return self.examples[self.index].images(self.task, store, clock)


def kitchen(quick: bool) -> Path:
    """A scripted kitchen, rendered on first use."""
    out = DATA / ("kitchen_quick" if quick else "kitchen")
    if not out.is_dir():
        size = (320, 180) if quick else (1280, 720)
        write_kitchen(out, videos=3, width=size[0], height=size[1], seconds=(4, 5) if quick else (15, 20))
    return out


def asked_of(source: Path, folder: Path, limit: int) -> list[Asked]:
    """All examples of six tasks, task by task in the order of the frozen sets."""
    sampling = {"limit": limit, "referring": {"frame_step": 10}, "relations": {"frame_step": 10}}
    made = build(
        source, folder, configs=get_benchmark("barista").task_names, sampling=sampling, frames="linked", cache=False
    )
    sets = [open_examples(folder, "barista", config.name, root=source) for config in made.configs]
    tasks = [get_task("barista", config.name) for config in made.configs]
    return [Asked(task, examples, i) for task, examples in zip(tasks, sets, strict=True) for i in range(len(examples))]


def by_frame(asked: list[Asked]) -> list[Asked]:
    """In the order in which a run asks: by video, then frame."""
    return sorted(
        asked, key=lambda request: (request.example.video_id, min(f.frame_index for f in request.example.frames))
    )


def planned(asked: list[Asked]) -> FrameStore:
    """A store that knows what will be asked for."""
    store = FrameStore(max_bytes=MEMORY)
    store.plan(frame for request in asked for frame in request.example.frames)
    return store


def digest(pairs: Iterator[tuple[Asked, Images]]) -> str:
    """Of all images by example, in whatever order they come."""
    request = {
        asked_for.example.example_id: hashlib.sha256(b"".join(image.tobytes() for image in images)).hexdigest()
        for asked_for, images in pairs
    }
    return hashlib.sha256("".join(f"{name}{request[name]}" for name in sorted(request)).encode()).hexdigest()


def ahead(asked: list[Asked], store: FrameStore, workers: int) -> Iterator[tuple[Asked, Images]]:
    return decode_ahead(
        asked,
        lambda request: request.images(store),
        workers=workers,
        max_items=2 * BATCH,
        max_bytes=2**30,
        size_of=size_of_images,
        group_of=lambda request: request.example.video_id,
    )


def inline(asked: list[Asked], store: FrameStore | None) -> Iterator[tuple[Asked, Images]]:
    return ((request, request.images(store)) for request in asked)


def ways(asked: list[Asked]) -> dict[str, Callable[[], Iterator[tuple[Asked, Images]]]]:
    """Ways to make all images."""
    ordered = by_frame(asked)
    return {
        "task by task, as drawn": lambda: inline(asked, None),
        "by video and frame": lambda: inline(ordered, None),
        "... with the store": lambda: inline(ordered, FrameStore(max_bytes=MEMORY)),
        "... which knows the plan": lambda: inline(ordered, planned(ordered)),
        "... and two threads": lambda: ahead(ordered, planned(ordered), 2),
    }


def compare_reuse(asked: list[Asked], rounds: int) -> float:
    """Print the first table; returns the seconds of one batch with store and plan."""
    calls = ways(asked)
    spent: dict[str, list[float]] = {name: [] for name in calls}
    decoded: dict[str, int] = {}
    digests: dict[str, str] = {}
    for timed in [False] + [True] * rounds:
        for name, call in calls.items():
            close_readers()
            before, begun = decode_count(), time.perf_counter()
            if timed:
                for _ in call():
                    pass
                spent[name].append(time.perf_counter() - begun)
            else:
                digests[name] = digest(call())
            decoded[name] = decode_count() - before
    first = next(iter(calls))
    wanted = {(frame.video_id, frame.frame_index) for request in asked for frame in request.example.frames}
    frames = sum(len(request.example.frames) for request in asked)
    print(f"{len(asked)} examples, {frames} frames, {len(wanted)} distinct\n")
    print("| images of six tasks | frames decoded | x faster | pixels |\n|:--|--:|--:|:--|")
    for name in calls:
        equal = "equal" if digests[name] == digests[first] else "WRONG"
        print(f"| {name} | {decoded[name]} | {min(spent[first]) / min(spent[name]):.2f} | {equal} |")
    return min(spent["... which knows the plan"]) * BATCH / len(asked)


def compare_waiting(asked: list[Asked], batch_seconds: float) -> None:
    """Print the second table: fraction of the time that a model waits for its images."""
    ordered = by_frame(asked)
    print(
        "\n| model's time for a batch, x the images' | waits: nothing ahead | 1 thread | 2 threads |\n|--:|--:|--:|--:|"
    )
    for factor in (0.5, 1.0, 2.0):
        fractions = [share_waiting(ordered, workers, factor * batch_seconds) for workers in (0, 1, 2)]
        print(f"| {factor} | " + " | ".join(f"{fraction:.0%}" for fraction in fractions) + " |")


def share_waiting(asked: list[Asked], workers: int, seconds: float) -> float:
    """Fraction of a run's time in which a model, which takes `seconds` for a batch, waits for images."""
    close_readers()
    store, clock = planned(asked), StageClock()
    with clock("total"), closing(ahead(asked, store, workers) if workers else inline(asked, store)) as ready:  # type: ignore[type-var]
        while True:
            with clock("wait"):
                batch = list(islice(ready, BATCH))
            if not batch:
                break
            with clock("generate"):
                time.sleep(seconds)
    return clock.seconds["wait"] / clock.seconds["total"]


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small kitchen, few examples, one round")
    parser.add_argument("--source", type=Path, help="a release in place of the kitchen")
    arguments = parser.parse_args()
    source = arguments.source or kitchen(arguments.quick)
    with tempfile.TemporaryDirectory() as scratch:
        asked = asked_of(source, Path(scratch) / "linked", 6 if arguments.quick else 24)
        compare_waiting(asked, compare_reuse(asked, 1 if arguments.quick else 2))


if __name__ == "__main__":
    main()
