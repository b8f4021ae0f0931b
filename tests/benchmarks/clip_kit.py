"""Clips for the tests of what changes within them, and the changes that are detected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barista_bench.benchmarks.barista.change_detection import Change, detect_changes
from barista_bench.benchmarks.barista.clips import ClipView
from barista_bench.benchmarks.barista.temporal_vqa import TemporalSampling
from barista_bench.scene_graph import SceneGraph, VideoGraph
from tests.releases import document, span, write_release

SAMPLING = TemporalSampling(frames=6, spacing=4)
KEYFRAMES = (0, 4, 8, 12, 16, 20)


def graph(root: Path, content: dict[str, Any]) -> VideoGraph:
    return SceneGraph(write_release(root, content=content, video=False))["v1"]


def detected(root: Path, content: dict[str, Any]) -> dict[Any, list[Change]]:
    return detect_changes(ClipView(graph(root, content), KEYFRAMES))


def changes(root: Path, content: dict[str, Any], category: str) -> list[Change]:
    return detected(root, content).get(category, [])


def quiet() -> dict[str, Any]:
    """The small document with nothing that could change."""
    return {**document(), "attributes": [], "relations": [], "activities": []}


def activity(name: str, start: int, end: int, class_id: str | None = "a") -> dict[str, Any]:
    return {"image_range": span(start, end), "activity_class_id": class_id, "display_name": name}
