"""Pictures are sent as stored, are the same for all tasks, and are kept while a later request needs them."""

import base64
import io
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from PIL import Image

from barista_bench.benchmarks import get_task
from barista_bench.core.example import FrameRef
from barista_bench.core.settings import check_settings
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.loaded_example import LoadedExample
from barista_bench.data.shared_frames import FrameStore, StageClock, size_of_images
from barista_bench.data.stored_images import encode_image, open_image
from barista_bench.errors import DataError
from barista_bench.models import Request
from barista_bench.models.ablations import ablate
from barista_bench.models.base import sends_files
from barista_bench.models.served.model import ServedModel
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.prefetch import decode_ahead
from barista_bench.runs.ask.runner import run_config
from tests.conftest import MadeOnce
from tests.served_standin import ServedStandIn
from tests.six_tasks import build_tasks


def sent_pictures(server: ServedStandIn) -> Counter[bytes]:
    parts = [part for call in server.calls for turn in call.body["messages"] for part in content(turn)]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    for url in urls:
        kind = "png" if base64.b64decode(url.partition(",")[2]).startswith(b"\x89PNG") else "jpeg"
        assert url.startswith(f"data:image/{kind};base64,")
    return Counter(base64.b64decode(url.partition(",")[2]) for url in urls)


def content(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return turn["content"] if isinstance(turn["content"], list) else []


def stored_pictures(folder: Path) -> Counter[bytes]:
    """The pictures of the first examples of `THREE`."""
    files = [file for task in THREE for file in sorted(folder.glob(f"{task}/*.parquet"))]
    rows = [row for file in files for row in pq.read_table(file, columns=["position", "images"]).to_pylist()]
    return Counter(image["bytes"] for row in rows if row["position"] < FIRST for image in row["images"])


THREE = ["grounding", "relations", "temporal_vqa"]
"""Of one frame, of a frame and an overlay, of several frames."""
FIRST = 3


@pytest.fixture(scope="session")
def linked(six_release: Path, made_once: MadeOnce) -> Path:
    """The same set with frames decoded on access."""
    return made_once("six/linked/barista", lambda out: build_tasks(six_release, out, frames="linked"))


def ask(data: Path, out: Path, server: ServedStandIn, **settings: object) -> None:
    config = {
        "data": str(data),
        "out": out,
        "model": "served:m",
        "base_url": server.url,
        "repetitions": 1,
        "limit": FIRST,
    }
    config["task"] = THREE
    asked = check_settings(RunConfig, {**config, "api_key_env": None, **settings})
    run_config(asked, open_tasks(asked))


def test_every_request_of_three_tasks_carries_the_bytes_that_the_dataset_stores(
    six_tasks: Path, tmp_path: Path
) -> None:
    with ServedStandIn() as server:
        ask(six_tasks, tmp_path, server)
    assert sent_pictures(server) == stored_pictures(six_tasks)


def test_another_format_quality_or_size_is_encoded_again(six_tasks: Path, tmp_path: Path) -> None:
    for number, changed in enumerate(({"image_format": "png"}, {"jpeg_quality": 30}, {"max_side": 32})):
        with ServedStandIn() as server:
            ask(six_tasks, tmp_path / str(number), server, limit=1, **changed)
        sent = sent_pictures(server)
        assert sent
        assert not sent.keys() & stored_pictures(six_tasks).keys()
        sides = {max(Image.open(io.BytesIO(data)).size) for data in sent}
        assert (max(sides) == 32) == ("max_side" in changed)


def test_a_linked_set_sends_the_pictures_of_a_frozen_one(linked: Path, six_tasks: Path, tmp_path: Path) -> None:
    with ServedStandIn() as server:
        ask(linked, tmp_path, server)
    assert sent_pictures(server) == stored_pictures(six_tasks)


def test_local_models_see_the_pixels_of_the_stored_bytes(six_tasks: Path) -> None:
    task = get_task("barista", "relations")
    for loaded in open_examples(six_tasks, "barista", "relations"):
        for image, data in zip(loaded.images(task), loaded.media, strict=True):
            assert image.tobytes() == Image.open(io.BytesIO(data)).convert("RGB").tobytes()


def test_an_ablation_keeps_files_beside_their_pictures() -> None:
    model = ServedModel.load("m", base_url="http://127.0.0.1:9/v1", api_key_env=None)
    assert all(sends_files(ablate(model, name)) for name in ("text_only", "first_frame", "shuffled_frames"))
    pictures = tuple(Image.new("RGB", (8, 8), (shade, 0, 0)) for shade in range(4))
    files = tuple(encode_image(picture, overlay=True) for picture in pictures)
    request = Request("r", None, pictures, files=files)  # type: ignore[arg-type]
    kept = request.with_images([2, 0])
    assert kept.files == (files[2], files[0])
    assert kept.images == (pictures[2], pictures[0])


@pytest.mark.parametrize("overlay", [False, True])
def test_a_damaged_file_is_found_before_it_is_sent(overlay: bool) -> None:
    data = encode_image(Image.effect_noise((64, 64), 90).convert("RGB"), overlay=overlay)
    assert open_image(data, "e").size == (64, 64)
    for damaged in (data[:-40], b"GIF89a" + data, b"", data[: len(data) // 2]):
        with pytest.raises(DataError, match=r"e: stored image is damaged .*Fix"):
            open_image(damaged, "e")


def test_a_picture_is_kept_only_while_the_plan_holds_another_use_of_its_frame() -> None:
    shared, alone = FrameRef("v", 1), FrameRef("v", 2)
    pictures = {frame: Image.new("RGB", (16, 16), (100 * frame.frame_index, 9, 9)) for frame in (shared, alone)}
    data = {frame: encode_image(picture, overlay=False) for frame, picture in pictures.items()}
    overlay = encode_image(Image.new("RGB", (16, 16)), overlay=True)
    with FrameStore() as store:
        store.plan([shared, alone, shared])
        store.images([data[shared], overlay], "a", [shared])
        assert store.cache.held_bytes == 16 * 16 * 4
        store.images([data[alone], overlay], "b", [alone])
        assert store.cache.held_bytes == 16 * 16 * 4
        store.images([data[shared]], "c", [shared])
        assert store.cache.held_bytes == 0
        assert store.cache.made_count == 4  # two frames, and an overlay twice


TASKS = ("relations", "grounding", "hand_object", "referring")


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
    """The requests of a run over ten examples of each task, by video and frame."""
    sets = {task: open_examples(folder, "barista", task) for task in TASKS}
    asked = [Asked(task, examples, index) for task, examples in sets.items() for index in range(10)]
    return sorted(asked, key=lambda request: (request.frames[0].video_id, request.frames[0].frame_index))


@pytest.mark.parametrize("mode", ["frozen", "linked"])
def test_items_of_several_tasks_look_the_same_with_and_without_a_store(
    mode: str, six_tasks: Path, linked: Path
) -> None:
    asked = asked_of(six_tasks if mode == "frozen" else linked)
    tasks = {name: get_task("barista", name) for name in TASKS}
    plain = [[image.tobytes() for image in request.item.images(tasks[request.task])] for request in asked]
    clock = StageClock()
    store = FrameStore(clock=clock)
    store.plan(frame for request in asked for frame in request.frames)
    ready = decode_ahead(
        asked,
        lambda request: request.item.images(tasks[request.task], store, clock),
        workers=3,
        max_items=8,
        max_bytes=10**9,
        size_of=size_of_images,
        group_of=lambda request: request.frames[0].video_id,
    )
    assert [[image.tobytes() for image in images] for _, images in ready] == plain
    frames = Counter(frame for request in asked for frame in request.frames)
    assert max(frames.values()) > 1, "tasks share frames here, or this test shows nothing"
    assert store.cache.made_count < sum(frames.values())
    if mode == "linked":
        assert store.cache.made_count == len(frames)
        assert clock.seconds["prepare"] > 0
    assert clock.seconds["decode"] > 0
