"""What all BARISTA tasks share: prompt files, and metadata that analysis groups by."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import yaml

from barista_bench.errors import ConfigError
from barista_bench.scene_graph import VideoGraph
from barista_bench.task import Fields

if TYPE_CHECKING:
    from datasets import Features


@cache
def prompt_texts(task: str) -> dict[str, str]:
    """The wording of a task: `system` and `user` templates of `prompts/<task>.yaml`."""
    text = resources.files(__package__).joinpath("prompts", f"{task}.yaml").read_text(encoding="utf-8")
    loaded = yaml.safe_load(text)
    missing = {"system", "user"} - set(loaded)
    if missing:
        raise ConfigError(f"prompts/{task}.yaml has no {sorted(missing)[0]!r}. Remedy: add it")
    return {key: loaded[key] for key in ("system", "user")}


def fill(template: str, **values: str) -> str:
    """Put values for `{name}` into a template. Other braces stand: prompts show JSON.

    >>> fill('{"a": {x}}', x="1")
    '{"a": 1}'
    """
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def frame_metadata(graph: VideoGraph, frame: int) -> Fields:
    """The metadata of an example at one frame. `split` is filled in by the builder, which sees all videos."""
    return {
        "preparation": graph.preparation,
        "split": "",
        "activities": [segment.name for segment in graph.activities(frame)],
        "steps": [segment.name for segment in graph.steps(frame)],
        "device": graph.video.recording_device_type or "unknown",
        "frame_count": graph.frame_count,
        "fps": graph.video.fps or 0.0,
    }


def metadata_features() -> Features:
    """`datasets` features of `frame_metadata`."""
    from datasets import Features, List, Value

    return Features(
        {
            "preparation": Value("string"),
            "split": Value("string"),
            "activities": List(Value("string")),
            "steps": List(Value("string")),
            "device": Value("string"),
            "frame_count": Value("int64"),
            "fps": Value("float64"),
        }
    )
