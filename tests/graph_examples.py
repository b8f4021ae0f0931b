"""The plain composition of what `data.plan` does for all tasks at once."""

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

from barista_bench.core.deriving import Candidate, GraphTask
from barista_bench.core.example import Example, SkippedExample
from barista_bench.core.options import Sampling
from barista_bench.scene_graph import SceneGraph


@cache
def opened(release: Path) -> SceneGraph:
    """A release that no test changes, read once."""
    return SceneGraph(release)


def graph_examples(task: GraphTask, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
    """All examples in canonical order (video id, then frame), before shuffling; skipped ones come first.

    Raises:
        DataError: `sampling.videos` names a video that the graph lacks.
    """
    sampling.refuse_unknown_videos(graph)
    vocabulary = tuple(dict.fromkeys(word for video in graph for word in task.vocabulary(video, sampling)))
    sampled = (video for video in graph if sampling.is_selected(video))
    items = [item for video in sampled for item in task.candidates(video, sampling)]
    yield from (item for item in items if isinstance(item, SkippedExample))
    candidates = [item for item in items if isinstance(item, Candidate)]
    selected = list(task.select(candidates, vocabulary, sampling))
    yield from (item for item in selected if isinstance(item, SkippedExample))
    kept = (item for item in selected if isinstance(item, Candidate))
    for video_id, group in groupby(kept, key=lambda candidate: candidate.video_id):
        yield from task.build(graph[video_id], list(group), vocabulary, sampling)
