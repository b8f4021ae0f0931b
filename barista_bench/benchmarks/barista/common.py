"""What all BARISTA tasks share: their prompt folder, and metadata that analysis groups by."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from barista_bench.graph_task import Candidate
from barista_bench.scene_graph import VideoGraph
from barista_bench.task import Fields, Sampling

if TYPE_CHECKING:
    from datasets import Features

PROMPT_PACKAGE = "barista_bench.benchmarks.barista"


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


def capped(candidates: Sequence[Candidate], sampling: Sampling) -> Iterator[Candidate]:
    """At most `per_class` candidates of each group, drawn by the released seed, in their old order."""
    groups: dict[str, list[int]] = defaultdict(list)
    for position, candidate in enumerate(candidates):
        groups[candidate.group].append(position)
    kept: list[int] = []
    for group, positions in groups.items():
        if sampling.per_class is not None:
            random.Random(f"{sampling.seed}:{group}").shuffle(positions)  # noqa: S311  (the released seed)
        kept += positions[: sampling.per_class]
    yield from (candidates[position] for position in sorted(kept))
