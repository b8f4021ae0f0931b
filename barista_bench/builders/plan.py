"""Which examples a config will hold: drawn from the graph, joined with the split, hashed. No frame is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from barista_bench.benchmarks import get_task
from barista_bench.builders.frozen import content_hash
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import SceneGraph
from barista_bench.task import Example, Sampling, SkippedExample, Task


class NoExamples(DataError):
    """The release has no candidate for a task under this sampling."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A frozen set before its frames are added.

    Args:
        examples: in the order drawn; the split of each stands in its metadata.
        skipped: candidates that the data make impossible.
        candidates: examples there were before shuffling and cutting.
        content_hash: SHA-256 of the frozen lines.
    """

    task: Task
    sampling: Sampling
    examples: tuple[Example, ...]
    skipped: tuple[SkippedExample, ...]
    candidates: int
    content_hash: str

    @property
    def video_ids(self) -> tuple[str, ...]:
        return tuple(sorted({frame.video_id for example in self.examples for frame in example.frames}))

    def counts(self, key: str) -> Counter[str]:
        """Examples by a metadata key, e.g. `preparation` or `split`."""
        return Counter(str(example.metadata.get(key)) for example in self.examples)

    def labels(self) -> dict[str, int]:
        """Examples by label, most frequent first."""
        return dict(Counter(example.label for example in self.examples).most_common())


def plan_task(graph: SceneGraph, task: Task, sampling: Sampling, splits: Mapping[str, str]) -> Plan:
    """Draw a task's frozen set.

    Raises:
        NoExamples: no candidate fits the sampling.
    """
    found: list[Example] = []
    skipped: list[SkippedExample] = []
    for candidate in task.examples(graph, sampling):
        if isinstance(candidate, SkippedExample):
            skipped.append(candidate)
        elif not sampling.splits or splits[candidate.video_id] in sampling.splits:
            metadata = {**candidate.metadata, "split": splits[candidate.video_id]}
            found.append(replace(candidate, metadata=metadata))
    if not found:
        reasons = f"; {len(skipped)} were skipped, first: {skipped[0].reason}" if skipped else ""
        raise NoExamples(
            f"{graph.root}: no example for {task.benchmark}/{task.name} with {sampling}{reasons}. "
            "Remedy: loosen the sampling, or check the release with `barista-bench validate`"
        )
    drawn = tuple(sampling.draw(found))
    return Plan(task, sampling, drawn, tuple(skipped), len(found), content_hash(drawn))


def preparations(graph: SceneGraph) -> dict[str, str]:
    """Video id to preparation type for every usable video."""
    return {video.video_id: video.preparation for video in graph}


def task_overrides(benchmark: str, name: str, chosen: Sequence[str], sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides of one task: those under its own name, and those of all tasks whose name it reads.

    Raises:
        ConfigError: a name is read by none of the chosen tasks.
    """
    reads = {task: Sampling.COMMON | get_task(benchmark, task).sampling_uses for task in chosen}
    shared = {key: value for key, value in sampling.items() if key not in chosen}
    for key in shared:
        if not any(key in names for names in reads.values()):
            known = sorted(set().union(*reads.values()))
            raise ConfigError(f"sampling has no {key!r}. Remedy: use one of {', '.join(known)}, or a task's name")
    own = sampling.get(name, {})
    if not isinstance(own, Mapping):
        raise ConfigError(f"sampling of {name} is {own!r}. Remedy: give name and value, e.g. {name}.limit=50")
    return {**{key: value for key, value in shared.items() if key in reads[name]}, **own}
