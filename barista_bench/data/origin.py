"""Open the source of `build`: the release of one benchmark, in any layout, with its split.

The videos of a scene graph are split 80/20 into train and test, stratified by preparation type (paper, section 3.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import Benchmark, get_benchmark
from barista_bench.cluster import RayCluster
from barista_bench.core.deriving import GraphTask, Release
from barista_bench.core.example import content_seed
from barista_bench.core.options import Sampling
from barista_bench.core.task import Task
from barista_bench.data.frozen import lines_sha256
from barista_bench.data.plan import PlannedSets, plan_release, plan_tasks
from barista_bench.data.source import open_source
from barista_bench.data.tables import GRAPH_TABLES
from barista_bench.errors import ConfigError, DataError, SourceError
from barista_bench.files.hashes import file_sha256
from barista_bench.files.paths import confine
from barista_bench.files.reading import read_bounded_json
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.release import ANNOTATION_FILE, Terms, read_terms

TRAIN, TEST = "train", "test"
SPLITS = (TRAIN, TEST)
_TEST_FRACTION = 0.2
MAX_SPLIT_FILE = 2**26
"""Maximum number of bytes of a split file."""
_SPLIT_REMEDY = 'write {"train": [ids], "test": [ids]}'
SampledTasks = Sequence[tuple[Task, Sampling]]


class Origin(ABC):
    """An opened release.

    `roots` are the folders whose names must not be published. Video files are named relative to `media`. `identity`
    describes the release's source for the card. `terms` are the terms of the release, if they differ from the
    benchmark's.
    """

    roots: tuple[Path, ...]
    media: Path
    identity: Mapping[str, str | None]
    terms: Terms | None = None

    def __init__(self, benchmark: str) -> None:
        self._name = benchmark  # only the name, since a benchmark's functions cannot be sent to other processes

    @property
    def benchmark(self) -> Benchmark:
        return get_benchmark(self._name)

    @abstractmethod
    def plans(
        self, tasks: SampledTasks, *, num_proc: int = 1, cluster: RayCluster | None = None, progress: bool = False
    ) -> PlannedSets:
        """Sample the frozen sets of the tasks."""

    @abstractmethod
    def video_path(self, video_id: str) -> Path:
        """Return the file of a video, or its folder of frames."""

    def fetch(self, video_ids: Iterable[str], *, progress: bool) -> None:
        """Download the videos, if the release is on the Hub."""
        return

    def table_identity(self) -> list[object]:
        """Return the identity of a scene graph's tables."""
        raise ConfigError(f"{self.benchmark.name} has no tables. Fix: name its tasks")


class GraphOrigin(Origin):
    """A release of scene graphs: BARISTA, from a folder or the Hub."""

    def __init__(
        self, benchmark: str, source: str | Path, *, revision: str | None, strict: bool, split_file: str | None
    ) -> None:
        super().__init__(benchmark)
        self._source = open_source(source, revision=revision)
        self.graph = SceneGraph(self._source.root, strict=strict)
        self.roots, self.media, self.identity = (self.graph.root,), self._source.root, self._source.identity
        self.terms = read_terms(self.graph.root)
        self._split_file = split_file

    @cached_property
    def splits(self) -> dict[str, str]:
        """Return the split of each video id. This reads the complete release, unless `plans` has already read it."""
        return self._split({video.video_id: video.preparation for video in self.graph}, ())

    def _split(self, preparations: Mapping[str, str], config_videos: Sequence[frozenset[str]]) -> dict[str, str]:
        if self._split_file:
            return load_splits(self._split_file, tuple(preparations))
        return split_videos(preparations, config_videos)

    def plans(
        self, tasks: SampledTasks, *, num_proc: int = 1, cluster: RayCluster | None = None, progress: bool = False
    ) -> PlannedSets:
        pairs = [(task, sampling) for task, sampling in tasks if isinstance(task, GraphTask)]
        plans = plan_tasks(self.graph, pairs, split=self._split, num_proc=num_proc, cluster=cluster, progress=progress)
        self.splits = plans.splits
        return plans

    def video_path(self, video_id: str) -> Path:
        return self.graph.video_path(video_id)

    def fetch(self, video_ids: Iterable[str], *, progress: bool) -> None:
        self._source.fetch_videos(video_ids, quiet=not progress)

    def table_identity(self) -> list[object]:
        return [self.splits, self._annotations_sha256]

    @cached_property
    def _annotations_sha256(self) -> str:
        names = self.graph.video_ids
        return lines_sha256(f"{name} {file_sha256(confine(self.graph.root, name, ANNOTATION_FILE))}" for name in names)


class ReleaseOrigin(Origin):
    """Annotation files of a benchmark, with media below the same or another folder. You must fetch both yourself."""

    def __init__(self, benchmark: str, release: Release, source: str | Path) -> None:
        super().__init__(benchmark)
        self.release, self.terms = release, read_terms(Path(source))
        self.roots, self.media = (release.videos, release.root), release.videos
        self.identity = {"kind": "local", "id": str(source), "sha": None, "requested_revision": None}

    def plans(
        self, tasks: SampledTasks, *, num_proc: int = 1, cluster: RayCluster | None = None, progress: bool = False
    ) -> PlannedSets:
        return plan_release(self.release, tasks, progress=progress)

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
    """Open the release of a benchmark at `source`. Other arguments are as in `build`.

    Raises:
        SourceError, DataError: there is no release.
        ConfigError: the benchmark is unknown, or does not support a setting.
    """
    benchmark = get_benchmark(name)
    if benchmark.open_release is None:
        if videos is not None:
            raise ConfigError(f"{name}: its videos lie beside the annotations. Fix: leave videos out")
        return GraphOrigin(name, source, revision=revision, strict=strict, split_file=split_file)
    for setting, value in (("revision", revision), ("split_file", split_file), ("strict", strict or None)):
        if value is not None:
            raise ConfigError(f"{name} takes no {setting}. Fix: leave it out")
    for folder in (source, videos):
        if folder is not None and not Path(folder).exists():
            raise SourceError(
                f"{folder}: does not exist. Fix: fetch the release ({benchmark.homepage}) and name its folder"
            )
    return ReleaseOrigin(name, benchmark.open_release(Path(source), Path(videos) if videos else None), source)


def config_names_of(name: str) -> tuple[str, ...]:
    """Return all configs of a benchmark: its tasks, and the tables of a scene graph."""
    benchmark = get_benchmark(name)
    return (*benchmark.task_names, *(GRAPH_TABLES if benchmark.open_release is None else ()))


def split_videos(preparations: Mapping[str, str], config_videos: Sequence[frozenset[str]] = ()) -> dict[str, str]:
    """Return the split of each video id.

    The split depends only on ids, preparations and `config_videos`, not on the order of these.

    A fifth of all videos are test videos, distributed over the preparation types by largest remainder. Every type with
    at least two videos gets a test video.

    Args:
        config_videos: the videos of each config. If a config has several videos but no test video, one of them becomes
            a test video.

    >>> split_videos({"a": "capsule", "b": "capsule", "c": "capsule"})
    {'a': 'test', 'b': 'train', 'c': 'train'}
    >>> split_videos({"a": "capsule", "b": "capsule", "c": "capsule"}, [frozenset("bc")])
    {'a': 'test', 'b': 'test', 'c': 'train'}
    """
    strata: dict[str, list[str]] = defaultdict(list)
    for video_id in sorted(preparations):
        strata[preparations[video_id]].append(video_id)
    test_ids: set[str] = set()
    for stratum, count in _test_counts({k: len(v) for k, v in strata.items()}).items():
        test_ids.update(_in_test_order(strata[stratum])[:count])
    for videos in sorted(config_videos, key=sorted):
        if len(videos) > 1 and not videos & test_ids:
            test_ids.add(_in_test_order(videos)[0])
    return {video_id: TEST if video_id in test_ids else TRAIN for video_id in sorted(preparations)}


def _in_test_order(videos: Iterable[str]) -> list[str]:
    """Return the videos in the order in which they become test videos."""
    return sorted(videos, key=lambda video_id: (content_seed("split", 42, video_id), video_id))


def load_splits(path: str | Path, video_ids: tuple[str, ...]) -> dict[str, str]:
    """Read a split from a JSON file `{"train": [video ids], "test": [video ids]}`.

    Raises:
        DataError: the file has another shape, or a video of the data is in neither split or in both.
    """
    content: Any = read_bounded_json(path, MAX_SPLIT_FILE, what="no split file", remedy=_SPLIT_REMEDY)
    try:
        splits = {name: [str(video) for video in content[name]] for name in SPLITS}
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: no split file ({error!r}). Fix: {_SPLIT_REMEDY}") from error
    in_both = set(splits[TRAIN]) & set(splits[TEST])
    if in_both:
        raise DataError(f"{path}: {sorted(in_both)[0]!r} is in both splits. Fix: keep it in one")
    split_of = {video: name for name, videos in splits.items() for video in videos}
    absent = [video for video in video_ids if video not in split_of]
    if absent:
        raise DataError(f"{path}: video {absent[0]!r} is in no split. Fix: add it")
    return {video: split_of[video] for video in video_ids}


def _test_counts(sizes: Mapping[str, int]) -> dict[str, int]:
    total = round(_TEST_FRACTION * sum(sizes.values()))
    exact = {name: _TEST_FRACTION * size for name, size in sizes.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(sizes, key=lambda name: (counts[name] - exact[name], name))
    for name in by_remainder[: max(0, total - sum(counts.values()))]:
        counts[name] += 1
    return {name: max(count, int(sizes[name] >= 2)) for name, count in counts.items()}
