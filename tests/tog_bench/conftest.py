import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barista_bench.data.folder import build
from barista_bench.generate.generator import generate
from barista_bench.media.encoding import encode_video
from barista_bench.mini import write_kitchen
from tests.conftest import MadeOnce

Content = dict[str, Any]


def box(time: float, *corners: float) -> Content:
    return {"time": time, "box": list(corners)}


def content() -> Content:
    """Two videos and three tasks in our format."""
    sink = {
        "category": "sink",
        "intervals": [[0, 8]],
        "boxes": [box(t, 10, 10, 60, 40) for t in range(9)],
        "kind": "explicit",
    }
    tap = {
        "category": "faucet",
        "synonyms": ["tap"],
        "intervals": [[4.0, 8.0], [10, 12]],
        "boxes": [box(t, 30, 0, 40.5, 12) for t in (4, 5, 6, 7, 8, 10, 11, 12)],
        "id": "obj-7",
    }
    lamp = {"category": "lamp", "intervals": [[5, 7]], "boxes": [box(t, 0, 0, 9, 9) for t in (5, 6, 7)]}
    return {
        "format": "tog_bench",
        "version": 1,
        "videos": [
            {"id": "room_b", "width": 96, "height": 64, "fps": 10, "frame_count": 131, "scene": "Bathroom"},
            {"id": "room_a", "width": 192, "height": 128},
        ],
        "tasks": [
            {
                "id": "b/0",
                "video": "room_b",
                "instruction": "Fill it.",
                "kind": "implicit",
                "objects": [sink, deepcopy(tap)],
            },
            {
                "id": "a/0",
                "video": "room_a",
                "instruction": "Switch on the lamp.",
                "kind": "explicit",
                "objects": [lamp],
            },
            {"id": "b/1", "video": "room_b", "instruction": "Wash the cup.", "kind": "implicit", "objects": [tap]},
        ],
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes annotation files into one folder and returns it."""

    def written(value: object, name: str = "annotations.json", **more: object) -> Path:
        folder = tmp_path / "release"
        folder.mkdir(exist_ok=True)
        text = value if isinstance(value, str) else json.dumps(value)
        (folder / name).write_text(text, encoding="utf-8")
        return folder

    return written


@pytest.fixture(scope="session")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`room_a` and `room_b`: 13.1 s at 10 frames a second, 96x64; each frame's grey says its index."""
    folder = tmp_path_factory.mktemp("rooms")
    for name in ("room_a", "room_b"):
        grey = (np.full((64, 96, 3), index, np.uint8) for index in range(131))
        encode_video(folder / f"{name}.mp4", grey, size=(96, 64), fps=10)
    return folder


@pytest.fixture(scope="session")
def kitchen(made_once: MadeOnce) -> Path:
    """A scripted kitchen with one video of each preparation type."""
    settings = {"videos": 3, "width": 160, "height": 90, "seconds": (14, 16), "num_proc": 1}
    return made_once("tog/kitchen", lambda folder: write_kitchen(folder, **settings))


@pytest.fixture(scope="session")
def mini(kitchen: Path, made_once: MadeOnce) -> Path:
    """The tasks that are generated of it."""

    def make(folder: Path) -> None:
        generate(kitchen, folder, ["tog_bench"], per_subtask=20)

    return made_once("tog/generated", make) / "tog_bench"


@pytest.fixture(scope="session")
def dataset(mini: Path, made_once: MadeOnce) -> Path:
    return made_once("built/tog_bench", lambda out: build(mini, out, benchmark="tog_bench", cache=False))
