"""Frames and images of items of several tasks are the same with and without a shared store."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.task import FrameRef
from barista_bench.data.dataset import ExampleSet, LoadedExample, open_examples
from barista_bench.data.folder import build
from barista_bench.data.shared_frames import FrameStore, StageClock, size_of_images
from barista_bench.runs.ask.prefetch import decode_ahead

TASKS = ("relations", "grounding", "hand_object", "referring")


@pytest.fixture(scope="session")
def both_folders(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same examples of several tasks, with frames stored and with frames linked."""
    out = tmp_path_factory.mktemp("both")
    sampling = {"limit": 10}
    return {
        mode: build(small_release, out / mode, configs=TASKS, sampling=sampling, frames=mode, cache=False).folder
        for mode in ("frozen", "linked")
    }


class Asked(NamedTuple):
    task: str
    examples: ExampleSet
    index: int

    @property
    def item(self) -> LoadedExample:
        return self.examples[self.index]

    @property
    def frames(self) -> tuple[FrameRef, ...]:
        return self.examples.examples[self.index].frames


def asked_of(folder: Path) -> list[Asked]:
    """What a run over all tasks asks, by video and frame."""
    sets = {task: open_examples(folder, "barista", task) for task in TASKS}
    asked = [Asked(task, examples, index) for task, examples in sets.items() for index in range(len(examples))]
    return sorted(asked, key=lambda request: (request.frames[0].video_id, request.frames[0].frame_index))


@pytest.mark.parametrize(("mode", "workers"), [("frozen", 3), ("linked", 3)])
def test_items_of_several_tasks_look_the_same_with_and_without_a_store(both_folders, mode, workers):
    asked = asked_of(both_folders[mode])
    tasks = {name: get_task("barista", name) for name in TASKS}
    plain = [[image.tobytes() for image in request.item.images(tasks[request.task])] for request in asked]
    clock = StageClock()
    store = FrameStore(clock=clock)
    store.plan(frame for request in asked for frame in request.frames)
    ready = decode_ahead(
        asked,
        lambda request: request.item.images(tasks[request.task], store, clock),
        workers=workers,
        max_items=8,
        max_bytes=10**9,
        size_of=size_of_images,
        group_of=lambda request: request.frames[0].video_id,
    )
    assert [[image.tobytes() for image in images] for _, images in ready] == plain
    frames = Counter(frame for request in asked for frame in request.frames)
    assert max(frames.values()) > 1, "tasks share frames here, or this test shows nothing"
    assert store.cache.made < sum(frames.values())
    if mode == "linked":
        assert store.cache.made == len(frames)
        assert clock.seconds["prepare"] > 0
    assert clock.seconds["decode"] > 0
