"""What `build` reads: the release of one benchmark, opened, whichever way it is laid out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from barista_bench.benchmarks import get_benchmark
from barista_bench.core.benchmark import Benchmark
from barista_bench.core.graph_task import GraphTask
from barista_bench.core.release_task import Release
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Task
from barista_bench.data.graph_builder import NAME, BaristaBuilder, PreparedBaristaBuilder, graph_digest
from barista_bench.data.plan import Plans, plan_release, plan_tasks
from barista_bench.data.release_builder import ReleaseBuilder
from barista_bench.data.sources import Source, open_source
from barista_bench.data.splits import split_of
from barista_bench.data.tables import GRAPH_TABLES
from barista_bench.data.task_builder import TaskBuilder
from barista_bench.errors import ConfigError, SourceError
from barista_bench.scene_graph import SceneGraph

Wanted = Sequence[tuple[Task, Sampling]]


class Origin(ABC):
    """An opened release.

    `roots` are the folders whose names are nobody else's business; `media` is the one that video files are named from,
    and `identity` says in the card where the release came from.
    """

    benchmark: Benchmark
    roots: tuple[Path, ...]
    media: Path
    identity: Mapping[str, str | None]

    @abstractmethod
    def plans(self, wanted: Wanted, *, num_proc: int, progress: bool) -> Plans:
        """The examples of the tasks, drawn."""

    @abstractmethod
    def video_path(self, video_id: str) -> Path:
        """Where a video lies."""

    @abstractmethod
    def fetch(self, video_ids: Iterable[str], *, progress: bool) -> None:
        """Bring the videos here, where they can be fetched."""

    @abstractmethod
    def table_identity(self, plans: Plans) -> list[object]:
        """What configs that are no tasks are made of."""

    @abstractmethod
    def equip(self, builder: TaskBuilder, plans: Plans) -> None:
        """Hand the opened release to a builder of `builder_class`."""

    builder_class: ClassVar[type[TaskBuilder]]


class GraphOrigin(Origin):
    """A scene graph: BARISTA, from a folder or the Hub."""

    builder_class = PreparedBaristaBuilder

    def __init__(self, source: str | Path, *, revision: str | None, strict: bool, split_file: str | None) -> None:
        self.benchmark = get_benchmark(NAME)
        self._source: Source = open_source(source, revision=revision)
        self.graph = SceneGraph(self._source.root, strict=strict)
        self.roots, self.media, self.identity = (self.graph.root,), self._source.root, self._source.identity
        self._split_file = split_file

    def plans(self, wanted: Wanted, *, num_proc: int, progress: bool) -> Plans:
        split = partial(split_of, self._split_file)
        tasks = [(task, sampling) for task, sampling in wanted if isinstance(task, GraphTask)]
        return plan_tasks(self.graph, tasks, split=split, num_proc=num_proc, progress=progress)

    def video_path(self, video_id: str) -> Path:
        return self.graph.video_path(video_id)

    def fetch(self, video_ids: Iterable[str], *, progress: bool) -> None:
        # Without a callback the hub client shows bars of its own.
        self._source.ensure_videos(video_ids, None if progress else lambda present, total: None)

    def table_identity(self, plans: Plans) -> list[object]:
        return [plans.splits, graph_digest(self.graph)]

    def equip(self, builder: TaskBuilder, plans: Plans) -> None:
        assert isinstance(builder, BaristaBuilder)
        builder.graph, builder.splits = self.graph, plans.splits


class ReleaseOrigin(Origin):
    """Annotation files of a benchmark, with its media below the same folder or another."""

    builder_class = ReleaseBuilder

    def __init__(self, benchmark: Benchmark, source: str | Path, videos: str | Path | None) -> None:
        if benchmark.open_release is None:
            raise ConfigError(f"{benchmark.name}: is derived from a scene graph. Remedy: build it as such")
        for folder in (source, videos):
            if folder is not None and not Path(folder).exists():
                raise SourceError(
                    f"{folder}: does not exist. Remedy: fetch the release ({benchmark.homepage}) and name its folder"
                )
        self.benchmark = benchmark
        self.release: Release = benchmark.open_release(Path(source), Path(videos) if videos else None)
        self.roots, self.media = (self.release.videos, self.release.root), self.release.videos
        self.identity = {"kind": "local", "id": str(source), "sha": None, "requested_revision": None}

    def plans(self, wanted: Wanted, *, num_proc: int, progress: bool) -> Plans:
        return plan_release(self.release, wanted, progress=progress)

    def video_path(self, video_id: str) -> Path:
        return self.release.video_path(video_id)

    def fetch(self, video_ids: Iterable[str], *, progress: bool) -> None:
        """Media of these benchmarks have many owners: whoever uses them has fetched them."""

    def table_identity(self, plans: Plans) -> list[object]:
        raise ConfigError(f"{self.benchmark.name} has no tables. Remedy: name its tasks")

    def equip(self, builder: TaskBuilder, plans: Plans) -> None:
        assert isinstance(builder, ReleaseBuilder)
        builder.release = self.release


def open_origin(
    benchmark: str,
    source: str | Path,
    *,
    videos: str | Path | None = None,
    revision: str | None = None,
    strict: bool = False,
    split_file: str | None = None,
) -> Origin:
    """The release of a benchmark at `source`; the other arguments are those of `build`.

    Raises:
        SourceError, DataError: there is none.
        ConfigError: the benchmark is unknown, or takes no such setting.
    """
    found = get_benchmark(benchmark)
    if found.open_release is None:
        if videos is not None:
            raise ConfigError(f"{benchmark}: its videos lie beside the annotations. Remedy: leave videos out")
        return GraphOrigin(source, revision=revision, strict=strict, split_file=split_file)
    for name, value in (("revision", revision), ("split_file", split_file), ("strict", strict or None)):
        if value is not None:
            raise ConfigError(f"{benchmark} takes no {name}. Remedy: leave it out")
    return ReleaseOrigin(found, source, videos)


def config_names_of(benchmark: str) -> tuple[str, ...]:
    """All configs of a benchmark: its tasks, and the tables of a scene graph."""
    names = get_benchmark(benchmark).task_names
    return (*names, *GRAPH_TABLES) if benchmark == NAME else names
