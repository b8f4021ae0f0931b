"""`datasets` builders of benchmarks whose questions stand in annotation files: a config for each task."""

from __future__ import annotations

from pathlib import Path

from barista_bench.benchmarks import get_benchmark
from barista_bench.core.benchmark import Benchmark
from barista_bench.core.release_task import Release
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import Task
from barista_bench.data.plan import Plan, plan_release
from barista_bench.data.task_builder import BenchmarkConfig, TaskBuilder
from barista_bench.errors import ConfigError


class ReleaseBuilder(TaskBuilder):
    """All configs of the benchmark that is called as the dataset; splits are those that its examples name."""

    BUILDER_CONFIGS: list[BenchmarkConfig] = []  # noqa: RUF012  (datasets' own convention: any config, with any settings)
    _release: Release | None = None

    @property
    def benchmark(self) -> Benchmark:  # type: ignore[override]
        return get_benchmark(str(self.dataset_name))

    @property
    def release(self) -> Release:
        if self._release is None:
            if not self.config.source:
                raise ConfigError(f"{self.config.name}: no source. Remedy: pass source=<folder of the annotations>")
            if self.benchmark.open_release is None:
                raise ConfigError(f"{self.benchmark.name}: has no annotation files of its own. Remedy: use its builder")
            videos = Path(self.config.videos) if self.config.videos else None
            self._release = self.benchmark.open_release(Path(self.config.source), videos)
        return self._release

    @release.setter
    def release(self, release: Release) -> None:
        self._release = release

    def draw_plan(self, task: Task, sampling: Sampling) -> Plan:
        found = plan_release(self.release, [(task, sampling)])
        if found.empty:
            raise found.empty[task.name]
        return found.plans[task.name]

    def video_path(self, video_id: str) -> Path:
        return self.release.video_path(video_id)
