"""Scenes for the tests of referring, and the questions about them."""

from pathlib import Path
from typing import Any

from barista_bench.benchmarks.barista.referring import Referring, ReferringSampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.options import Sampling
from tests import answering
from tests.releases import FRAMES, segmentation, span

TASK = Referring()
BOXES = BoxFormat()
DENSE = ReferringSampling(frame_step=4)


def derive(root: Path, sampling: Sampling = DENSE, task: Referring = TASK) -> list[Example]:
    return answering.derived(task, root, sampling)


def derive_from(tmp_path: Path, content: dict[str, Any], sampling: Sampling = DENSE) -> list[Example]:
    return answering.derived(TASK, tmp_path, sampling, content)


def add_object(content: dict[str, Any], name: str, category: str, box: tuple[int, int, int, int], **more: str) -> None:
    """An object seen on all frames, with attributes `more`."""
    if all(c["name"] != category for c in content["categories"]):
        content["categories"].append({"id": f"c-{category}", "name": category})
    content["object_id_to_category_id"][name] = f"c-{category}"
    mask = segmentation(box)
    content["annotations"] += [
        {"image_id": f, "object_id": name, "bbox": list(map(float, box)), "segmentation": mask} for f in range(FRAMES)
    ]
    content["attributes"] += [
        {"object_id": name, "attribute_type": kind, "value": value, "image_ranges": [span(0, FRAMES)]}
        for kind, value in more.items()
    ]


def of_object(examples: list[Example], name: str, frame: int = 12) -> Example:
    (example,) = (e for e in examples if e.example_id.endswith(f":frame_{frame}:obj_{name}"))
    return example
