"""`datasets` builders of BARISTA: a config for each task, and one for each table of the scene graph."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import datasets

from barista_bench.benchmarks import get_benchmark
from barista_bench.core.benchmark import Benchmark
from barista_bench.core.graph_task import GraphTask
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Task
from barista_bench.data.media import file_sha256
from barista_bench.data.plan import Plan, plan_tasks, preparations
from barista_bench.data.splits import SPLITS, split_of
from barista_bench.data.tables import GRAPH_TABLES, table_features, video_table
from barista_bench.data.task_builder import BenchmarkConfig, Part, TaskBuilder
from barista_bench.errors import ConfigError
from barista_bench.files.paths import confined
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.release import ANNOTATION_FILE

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "barista"


class BaristaBuilder(TaskBuilder):
    """All configs of BARISTA: frozen example sets and tables of the scene graph, `train` and `test` by video."""

    BUILDER_CONFIGS = [  # noqa: RUF012  (their convention)
        BenchmarkConfig(name=name) for name in (*get_benchmark(NAME).task_names, *GRAPH_TABLES)
    ]
    _graph: SceneGraph | None = None
    _splits: dict[str, str] | None = None

    @property
    def benchmark(self) -> Benchmark:  # type: ignore[override]
        return get_benchmark(NAME)

    @property
    def graph(self) -> SceneGraph:
        if self._graph is None:
            if not self.config.source:
                raise ConfigError(f"{self.config.name}: no source. Remedy: pass source=<data root>")
            self._graph = SceneGraph(self.config.source)
        return self._graph

    @graph.setter
    def graph(self, graph: SceneGraph) -> None:
        self._graph = graph

    @property
    def splits(self) -> dict[str, str]:
        """Video id to split. Found by reading the whole release, so that one builder may hand it to the next."""
        if self._splits is None:
            self._splits = split_of(self.config.split_file, preparations(self.graph))
        return self._splits

    @splits.setter
    def splits(self, splits: dict[str, str]) -> None:
        self._splits = splits

    def draw_plan(self, task: Task, sampling: Sampling) -> Plan:
        assert isinstance(task, GraphTask)
        found = plan_tasks(self.graph, [(task, sampling)], split=partial(split_of, self.config.split_file))
        if found.empty:
            raise found.empty[task.name]
        self._splits = found.splits
        return found.plans[task.name]

    def video_path(self, video_id: str) -> Path:
        return self.graph.video_path(video_id)

    def _features(self) -> datasets.Features:
        return super()._features() if self.is_task else table_features(self.config.name)

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        if self.is_task:
            return super()._split_generators(dl_manager)
        videos = {name: [(name, video) for video, split in self.splits.items() if split == name] for name in SPLITS}
        return [datasets.SplitGenerator(name, gen_kwargs={"parts": parts}) for name, parts in videos.items() if parts]

    def _generate_tables(self, parts: list[Part]) -> Iterator[tuple[int, pa.Table]]:
        return super()._generate_tables(parts) if self.is_task else enumerate(self._graph_tables(parts))

    def _graph_tables(self, parts: list[Part]) -> Iterator[pa.Table]:
        for _, video_id in parts:
            yield video_table(self.config.name, self.graph[video_id])


class PreparedBaristaBuilder(BaristaBuilder):
    """Takes any settings under a config's plain name, which `datasets` refuses while it knows the config."""

    BUILDER_CONFIGS = []  # noqa: RUF012  (datasets' own convention)


def graph_digest(graph: SceneGraph) -> str:
    """SHA-256 over all annotation files."""
    digest = hashlib.sha256()
    for video_id in graph.video_ids:
        digest.update(f"{video_id} {file_sha256(confined(graph.root, video_id, ANNOTATION_FILE))}\n".encode())
    return digest.hexdigest()
