"""Marks and parts of prompts beside the released code's."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, features

from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.benchmarks.barista.relation_answers import mark_order
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.prompt import TextPart
from barista_bench.data.frozen import read_frozen
from barista_bench.data.stored_images import encode_image
from barista_bench.media.set_of_mark import Mark, draw_marks
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph, VideoGraph
from tests.conftest import Compared

TASKS = {task.upstream_name: task.name for task in BENCHMARKS["barista"].tasks}


def base(kind: str, video: VideoGraph, index: int, root: Path) -> NDArray[np.uint8]:
    width, height = video.video.width, video.video.height
    if kind == "half":
        return np.full((height // 2, width // 2, 3), (90, 120, 150), np.uint8)
    if kind == "ramp":
        y, x = np.mgrid[0:height, 0:width]
        return np.stack([(x // 4) % 256, (y // 2) % 256, ((x + y) // 8) % 256], -1).astype(np.uint8)
    with open_reader(root / video.video_id / "video.mp4") as reader:
        return reader.read([index])[0]


def test_marks_are_the_released_ones_pixel_for_pixel(golden: Path, real_release: Path, compared: Compared) -> None:
    versions = json.loads((golden / "versions.json").read_text())
    if (Image.__version__, features.version("freetype2")) != (versions["pillow"], versions["freetype"]):
        pytest.skip("another Pillow or FreeType draws other numbers than the pack's")
    graph = SceneGraph(real_release)
    for drawn in json.loads((golden / "marks" / "index.json").read_text()):
        video, index = graph[drawn["video_id"]], drawn["frame_index"]
        frame = base(drawn["base"], video, index, real_release)
        if drawn["base"] == "frame" and hashlib.sha256(frame.tobytes()).hexdigest() != drawn["base_rgb_sha256"]:
            continue  # decoders may differ; the marks painted over equal frames are compared
        instances = mark_order(video, index)
        assert [item.object.id for item in instances] == [item["object_id"] for item in drawn["objects"]]
        marks = [Mark(mark, video.mask(item)) for mark, item in enumerate(instances, start=1)]
        options = drawn["options"]
        marked = draw_marks(
            frame,
            marks,
            (video.video.width, video.video.height),
            mask_alpha=options["mask_alpha"],
            boundary_alpha=options["alpha_segmentation_boundary"],
            font_size=options["font_size"],
        )
        assert hashlib.sha256(np.asarray(marked).tobytes()).hexdigest() == drawn["marked_rgb_sha256"], drawn["file"]
        compared("relations", f"images with marks over a {drawn['base']}, every pixel", 1)


@pytest.mark.parametrize("upstream", TASKS)
@pytest.mark.full
def test_prompts_have_the_released_parts(upstream: str, golden: Path, real_release: Path, compared: Compared) -> None:
    task = get_task("barista", TASKS[upstream])
    for asked in json.loads((golden / "prompts" / f"{upstream}.json").read_text()):
        example = example_of(golden, real_release, upstream, asked)
        prompt = task.prompt(example, BoxFormat(asked["bbox_format"] or "xyxy", 1000))
        system, *user = asked["parts"]
        assert (system["kind"], bool(prompt.system)) == ("text", True)
        kinds = ["text" if isinstance(part, TextPart) else "image" for part in prompt.parts]
        assert kinds == [part["kind"] for part in user]
        compared(task.name, "prompts, kind and order of all parts", 1)
        with open_reader(real_release / example.video_id / "video.mp4") as reader:
            frames = list(reader.read([frame.frame_index for frame in example.frames]))
        images = task.images(example, frames)
        for image, part in zip(images, [part for part in user if part["kind"] == "image"], strict=True):
            assert list(image.size) == part["size"]
            compared(task.name, "images of prompts, number and size", 1)
            overlay = part["mime"] == "image/png"
            encoded = encode_image(image, overlay=overlay)
            if hashlib.sha256(encoded).hexdigest() == part["encoded_sha256"]:
                compared(task.name, "images of prompts, every byte", 1)


def example_of(golden: Path, root: Path, upstream: str, asked: dict[str, Any]) -> Example:
    """The frozen example that was asked: sets of other settings have the same ids with other frames."""
    frames = sum(part["kind"] == "image" for part in asked["parts"]) - (upstream == "relation_extraction")
    for file in sorted((golden / "frozen").glob(f"*/{upstream}.jsonl")):
        if "tricky" not in file.parent.name and asked["example_id"] in file.read_text():
            for example in read_frozen(file, root=root):
                if (example.example_id, len(example.frames)) == (asked["example_id"], frames):
                    return example
    raise AssertionError(asked["example_id"])
