"""Scenes for the tests of phrase grounding, and the questions about them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barista_bench.benchmarks.barista.grounding import Grounding, GroundingSampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.options import Sampling
from tests import answering
from tests.releases import document, span

TASK = Grounding()
GRID = BoxFormat()
EVERY_FRAME = GroundingSampling()
CUP2, CUP3 = "o-cup2", "o-cup3"

Content = dict[str, Any]


def derive(root: Path, sampling: Sampling = EVERY_FRAME) -> list[Example]:
    return answering.derived(TASK, root, sampling)


def derived(tmp_path: Path, content: Content, sampling: Sampling = EVERY_FRAME) -> list[Example]:
    return answering.derived(TASK, tmp_path, sampling, content)


def phrases(examples: Mapping[str, Example]) -> dict[str, object]:
    """Category to phrase."""
    return {category: example.inputs["phrase"] for category, example in examples.items()}


def scene(**sections: Any) -> Content:
    """The usual document with other attributes, relations, ... and with a second and a third cup on all frames."""
    content = document()
    mask = content["annotations"][0]["segmentation"]
    for number, name in enumerate((CUP2, CUP3)):
        content["object_id_to_category_id"][name] = "c-coffee cup"
        content["annotations"] += [
            {"image_id": i, "object_id": name, "bbox": [10.0 + 20 * number, 40.0, 16.0, 8.0], "segmentation": mask}
            for i in range(40)
        ]
    return content | sections


def color(item: str, value: str, start: int = 0, end: int = 40) -> Content:
    return {"object_id": item, "attribute_type": "color", "value": value, "image_ranges": [span(start, end)]}
