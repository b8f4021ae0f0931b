"""The `datasets` builder that all benchmarks share: frozen example sets, a config for each task."""

from __future__ import annotations

import hashlib
import json
import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import datasets
from tqdm import tqdm

from barista_bench import __version__
from barista_bench.benchmarks import get_task
from barista_bench.core.benchmark import Benchmark
from barista_bench.core.sampling import Sampling
from barista_bench.core.task import ProtocolName, Task
from barista_bench.data.media import JPEG_QUALITY, LostExample, render_rows
from barista_bench.data.plan import Plan
from barista_bench.data.rows import FramesMode, row_features

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

Part = tuple[str, str]
"""A split and a video: what work is divided by."""


@dataclass
class BenchmarkConfig(datasets.BuilderConfig):
    """Settings of one config.

    Args:
        source: the release: for BARISTA a folder of `<video_id>/{coco_annotation.json, video.mp4}`, for other
            benchmarks the folder of their annotations.
        videos: folder of the media, where they do not lie below `source`.
        frames: `frozen` stores what the model sees; `linked` stores {video, indices}, decoded on access.
        sampling: overrides of the task's published sampling, e.g. {"frame_step": 100}.
        split_file: JSON file with the video ids of `train` and `test`; None derives the split. BARISTA alone.
        jpeg_quality: of frozen frames, Pillow's scale.
        protocol: whose rules the examples follow where the release and the paper differ.
    """

    source: str | None = None
    videos: str | None = None
    frames: FramesMode = "frozen"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    split_file: str | None = None
    jpeg_quality: int = JPEG_QUALITY
    protocol: ProtocolName = "release"

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """As in `datasets`, where it tells cache entries apart; a release that was changed since has another id."""
        named = [Path(path) for path in (self.source, self.videos, self.split_file) if path]
        if named:
            config_kwargs = {**config_kwargs, "files": _stated(named)}
        return str(super().create_config_id(config_kwargs, custom_features))


def _stated(named: Sequence[Path]) -> str:
    """SHA-256 over names, sizes and times of change of files, and of those below folders."""
    digest = hashlib.sha256()
    for top in named:
        for path in [top, *sorted(top.rglob("*"))]:
            if path.is_file():
                state = path.stat()
                digest.update(f"{path.relative_to(top)} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


class TaskBuilder(datasets.ArrowBasedBuilder):
    """Frozen example sets of one benchmark.

    Work is divided by video (`num_proc`, streaming); into how many parts changes no row. `plan` is drawn when first
    asked for, and after `download_and_prepare` `lost` lists the examples whose frames could not be made, in the order
    of the plan: they are in no split.
    """

    VERSION = datasets.Version(__version__)
    BUILDER_CONFIG_CLASS = BenchmarkConfig
    config: BenchmarkConfig
    benchmark: Benchmark
    progress = False
    """Whether rendering shows a progress bar."""
    _plan: Plan | None = None
    _notes: Path | None = None
    """Where each part of the work leaves its lost examples: with `num_proc` it is done by copies of this object."""

    @abstractmethod
    def draw_plan(self, task: Task, sampling: Sampling) -> Plan:
        """The examples of the config, from its source."""

    @abstractmethod
    def video_path(self, video_id: str) -> Path:
        """Where a video lies."""

    @property
    def is_task(self) -> bool:
        return self.config.name in self.benchmark.task_names

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            task = get_task(self.benchmark.name, self.config.name, protocol=self.config.protocol)
            sampling = task.sampling.with_overrides(self.config.sampling, task.sampling_uses)
            self._plan = self.draw_plan(task, sampling)
        return self._plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self._plan = plan

    @property
    def lost(self) -> list[LostExample]:
        return self.__dict__.setdefault("_lost", [])

    def download_and_prepare(self, *args: object, **kwargs: object) -> None:
        """As in `datasets`; with `num_proc` on several processes. Fills `lost`."""
        with TemporaryDirectory() as notes:
            self._notes = Path(notes)
            try:
                super().download_and_prepare(*args, **kwargs)
            finally:
                self._notes = None
            lines = [line for note in Path(notes).iterdir() for line in note.read_text(encoding="utf-8").splitlines()]
        lost = [LostExample(**json.loads(line)) for line in lines]
        if lost:
            place = {example.example_id: position for position, example in enumerate(self.plan.examples)}
            self.lost.extend(sorted(lost, key=lambda one: place[one.example_id]))

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=f"{self.benchmark.title}: {self.benchmark.description}",
            features=self._features(),
            homepage=self.benchmark.homepage,
            license=self.benchmark.licence,
            citation=self.benchmark.citation,
        )

    def _features(self) -> datasets.Features:
        task = get_task(self.benchmark.name, self.config.name, protocol=self.config.protocol)
        return row_features(task, self.config.frames)

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        parts = self.plan.parts
        splits = sorted({split for split, _ in parts}, key=_split_order)
        return [
            datasets.SplitGenerator(name, gen_kwargs={"parts": [part for part in parts if part[0] == name]})
            for name in splits
        ]

    def _generate_tables(self, parts: list[Part]) -> Iterator[tuple[int, pa.Table]]:
        return enumerate(self._task_tables(parts))

    def _task_tables(self, parts: list[Part]) -> Iterator[pa.Table]:
        """One row a table: a row with its pictures is megabytes."""
        import pyarrow as pa

        lost: list[LostExample] = []
        plan, features, wanted = self.plan, self.info.features, set(parts)
        chosen = [item for item in enumerate(plan.examples) if plan.part_of(item[1]) in wanted]
        rendered = render_rows(self.video_path, plan.task, chosen, self.config.frames, self.config.jpeg_quality)
        for row in tqdm(rendered, self.config.name, len(chosen), unit="example", disable=not self.progress):
            if isinstance(row, LostExample):
                log.warning("%s: left out: %s", row.example_id, row.reason)
                lost.append(row)
            else:
                yield pa.Table.from_pylist([features.encode_example(row)], schema=features.arrow_schema)
        if self._notes and lost:
            lines = (json.dumps(asdict(one)) + "\n" for one in lost)
            # Parts of the work have no split and video in common.
            name = hashlib.sha256(json.dumps(parts[0]).encode()).hexdigest()
            (self._notes / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


_KNOWN_ORDER = ("train", "validation", "dev", "test")


def _split_order(name: str) -> tuple[int, str]:
    return (_KNOWN_ORDER.index(name) if name in _KNOWN_ORDER else len(_KNOWN_ORDER), name)
