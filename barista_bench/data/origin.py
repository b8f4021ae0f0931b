"""What `build` reads: the opened release of one benchmark, whichever way it is laid out."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from barista_bench.benchmarks import get_benchmark
from barista_bench.core.benchmark import Benchmark
from barista_bench.core.deriving import GraphTask, Release, Sampling
from barista_bench.core.task import Task
from barista_bench.data.media import file_sha256
from barista_bench.data.plan import Plans, plan_release, plan_tasks
from barista_bench.data.sources import open_source
from barista_bench.data.splits import split_of
from barista_bench.data.tables import GRAPH_TABLES
from barista_bench.errors import ConfigError, SourceError
from barista_bench.files.paths import confined
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.release import ANNOTATION_FILE

SampledTasks = Sequence[tuple[Task, Sampling]]


class Origin(ABC):
    """An opened release.

    `roots` are the folders that nothing published may name, `media` the one that video files are named from, and
    `identity` tells the card where the release came from.
    """

    roots: tuple[Path, ...]
    media: Path
    identity: Mapping[str, str | None]

    def __init__(self, benchmark: str) -> None:
        self._name = benchmark  # not the record: builders travel to other processes, and its functions may not

    @property
    def benchmark(self) -> Benchmark:
        return get_benchmark(self._name)

    @abstractmethod
    def plans(self, sampled: SampledTasks, *, num_proc: int = 1, progress: bool = False) -> Plans:
        """The examples of the tasks, drawn."""

    @abstractmethod
    def video_path(self, video_id: str) -> Path:
        """The file of a video, or its folder of frames."""

    def fetch(self, video_ids: Iterable[str], *, progress: bool) -> None:
        """Download the videos, where the release is on the Hub."""
        return

    def table_identity(self) -> list[object]:
        """What the tables of a scene graph are made of."""
        raise ConfigError(f"{self.benchmark.name} has no tables. Remedy: name its tasks")


class GraphOrigin(Origin):
    """A scene graph: BARISTA, from a folder or the Hub."""

    def __init__(
        self, benchmark: str, source: str | Path, *, revision: str | None, strict: bool, split_file: str | None
    ) -> None:
        super().__init__(benchmark)
        self._source = open_source(source, revision=revision)
        self.graph = SceneGraph(self._source.root, strict=strict)
        self.roots, self.media, self.identity = (self.graph.root,), self._source.root, self._source.identity
        self._split = partial(split_of, split_file)

    @cached_property
    def splits(self) -> dict[str, str]:
        """Video id to split; reads the whole release, unless `plans` has."""
        return self._split({video.video_id: video.preparation for video in self.graph})

    def plans(self, sampled: SampledTasks, *, num_proc: int = 1, progress: bool = False) -> Plans:
        tasks = [(task, sampling) for task, sampling in sampled if isinstance(task, GraphTask)]
        plans = plan_tasks(self.graph, tasks, split=self._split, num_proc=num_proc, progress=progress)
        self.splits = plans.splits
        return plans

    def video_path(self, video_id: str) -> Path:
        return self.graph.video_path(video_id)

    def fetch(self, video_ids: Iterable[str], *, progress: bool) -> None:
        # Without a callback the hub client shows bars of its own.
        self._source.ensure_videos(video_ids, None if progress else lambda present, total: None)

    def table_identity(self) -> list[object]:
        digest = hashlib.sha256()
        for video_id in self.graph.video_ids:
            digest.update(f"{video_id} {file_sha256(confined(self.graph.root, video_id, ANNOTATION_FILE))}\n".encode())
        return [self.splits, digest.hexdigest()]


class ReleaseOrigin(Origin):
    """Annotation files of a benchmark, with its media below the same folder or another; the user has fetched both."""

    def __init__(self, benchmark: str, release: Release, source: str | Path) -> None:
        super().__init__(benchmark)
        self.release = release
        self.roots, self.media = (release.videos, release.root), release.videos
        self.identity = {"kind": "local", "id": str(source), "sha": None, "requested_revision": None}

    def plans(self, sampled: SampledTasks, *, num_proc: int = 1, progress: bool = False) -> Plans:
        return plan_release(self.release, sampled, progress=progress)

    def video_path(self, video_id: str) -> Path:
        return self.release.video_path(video_id)


def open_origin(
    name: str,
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
    benchmark = get_benchmark(name)
    if benchmark.open_release is None:
        if videos is not None:
            raise ConfigError(f"{name}: its videos lie beside the annotations. Remedy: leave videos out")
        return GraphOrigin(name, source, revision=revision, strict=strict, split_file=split_file)
    for setting, value in (("revision", revision), ("split_file", split_file), ("strict", strict or None)):
        if value is not None:
            raise ConfigError(f"{name} takes no {setting}. Remedy: leave it out")
    for folder in (source, videos):
        if folder is not None and not Path(folder).exists():
            raise SourceError(
                f"{folder}: does not exist. Remedy: fetch the release ({benchmark.homepage}) and name its folder"
            )
    return ReleaseOrigin(name, benchmark.open_release(Path(source), Path(videos) if videos else None), source)


def config_names_of(name: str) -> tuple[str, ...]:
    """All configs of a benchmark: its tasks, and the tables of a scene graph."""
    benchmark = get_benchmark(name)
    return (*benchmark.task_names, *(GRAPH_TABLES if benchmark.open_release is None else ()))
