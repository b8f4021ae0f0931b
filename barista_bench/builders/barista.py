"""`datasets` builders of BARISTA: a config for each task, and one for each table of the scene graph."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import datasets
from tqdm import tqdm

from barista_bench import __version__
from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.builders.media import JPEG_QUALITY, LostExample, file_sha256, render_rows
from barista_bench.builders.plan import Plan, plan_tasks, preparations
from barista_bench.builders.rows import FramesMode, row_features
from barista_bench.builders.splits import SPLITS, split_of
from barista_bench.builders.tables import GRAPH_TABLES, table_features, video_table
from barista_bench.errors import ConfigError
from barista_bench.paths import confined
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.release import ANNOTATION_FILE
from barista_bench.task import ProtocolName

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

NAME = "barista"
TASK_CONFIGS = tuple(task.name for task in BENCHMARKS[NAME])
CONFIGS = (*TASK_CONFIGS, *GRAPH_TABLES)
LICENCE = "cc-by-nc-4.0"
HOMEPAGE = "https://arxiv.org/abs/2605.12074"
CITATION = """@article{barista2026,
  title   = {BARISTA: A Multi-Task Egocentric Benchmark for Compositional Visual Understanding},
  journal = {arXiv preprint arXiv:2605.12074},
  year    = {2026}
}"""


@dataclass
class BaristaConfig(datasets.BuilderConfig):
    """Settings of one config.

    Args:
        source: data root, a folder of `<video_id>/{coco_annotation.json, video.mp4}`.
        frames: `frozen` stores what the model sees; `linked` stores {video, indices}, decoded on access.
        sampling: overrides of the task's published sampling, e.g. {"frame_step": 100}.
        split_file: JSON file with the video ids of `train` and `test`; None derives the split.
        jpeg_quality: of frozen frames, Pillow's scale.
        protocol: whose rules the examples follow where the release and the paper differ.
    """

    source: str | None = None
    frames: FramesMode = "frozen"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    split_file: str | None = None
    jpeg_quality: int = JPEG_QUALITY
    protocol: ProtocolName = "release"


class BaristaBuilder(datasets.ArrowBasedBuilder):
    """All configs of BARISTA: frozen example sets and tables of the scene graph, `train` and `test` by video.

    Work is divided by video (`num_proc`, streaming); into how many parts changes no row. For a task, `plan` is drawn
    when first asked for, and after `download_and_prepare` `lost` lists the examples whose frames could not be made, in
    the order of the plan: they are in no split.
    """

    VERSION = datasets.Version(__version__)
    BUILDER_CONFIG_CLASS = BaristaConfig
    BUILDER_CONFIGS = [BaristaConfig(name=name) for name in CONFIGS]  # noqa: RUF012  (their convention)
    config: BaristaConfig
    progress = False
    """Whether rendering shows a progress bar."""
    _graph: SceneGraph | None = None
    _plan: Plan | None = None
    _splits: dict[str, str] | None = None
    _notes: Path | None = None
    """Where each part of the work leaves its lost examples: with `num_proc` it is done by copies of this object."""

    @property
    def is_task(self) -> bool:
        return self.config.name in TASK_CONFIGS

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
    def plan(self) -> Plan:
        if self._plan is None:
            task = get_task(NAME, self.config.name, protocol=self.config.protocol)
            sampling = task.sampling.with_overrides(self.config.sampling, task.sampling_uses)
            found = plan_tasks(self.graph, [(task, sampling)], split=partial(split_of, self.config.split_file))
            if found.empty:
                raise found.empty[task.name]
            self._plan, self._splits = found.plans[task.name], found.splits
        return self._plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self._plan = plan

    @property
    def lost(self) -> list[LostExample]:
        return self.__dict__.setdefault("_lost", [])

    @property
    def splits(self) -> dict[str, str]:
        """Video id to split. Found by reading the whole release, so that one builder may hand it to the next."""
        if self._splits is None:
            self._splits = split_of(self.config.split_file, preparations(self.graph))
        return self._splits

    @splits.setter
    def splits(self, splits: dict[str, str]) -> None:
        self._splits = splits

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
        if self.is_task:
            features = row_features(get_task(NAME, self.config.name, protocol=self.config.protocol), self.config.frames)
        else:
            features = table_features(self.config.name)
        return datasets.DatasetInfo(
            description="BARISTA: egocentric coffee making with a scene graph on every frame.",
            features=features,
            homepage=HOMEPAGE,
            license=LICENCE,
            citation=CITATION,
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        used = self.plan.video_ids if self.is_task else tuple(self.splits)
        splits = self.splits
        videos = {name: [video for video in used if splits[video] == name] for name in SPLITS}
        return [datasets.SplitGenerator(name, gen_kwargs={"videos": ids}) for name, ids in videos.items() if ids]

    def _generate_tables(self, videos: list[str]) -> Iterator[tuple[int, pa.Table]]:
        return enumerate(self._task_tables(videos) if self.is_task else self._graph_tables(videos))

    def _graph_tables(self, videos: list[str]) -> Iterator[pa.Table]:
        for video_id in videos:
            yield video_table(self.config.name, self.graph[video_id])

    def _task_tables(self, videos: list[str]) -> Iterator[pa.Table]:
        """One row a table: a row with its pictures is megabytes."""
        import pyarrow as pa

        lost: list[LostExample] = []

        plan, features = self.plan, self.info.features
        chosen = [item for item in enumerate(plan.examples) if item[1].video_id in set(videos)]
        rendered = render_rows(self.graph, plan.task, chosen, self.config.frames, self.config.jpeg_quality)
        for row in tqdm(rendered, self.config.name, len(chosen), unit="example", disable=not self.progress):
            if isinstance(row, LostExample):
                log.warning("%s: left out: %s", row.example_id, row.reason)
                lost.append(row)
            else:
                yield pa.Table.from_pylist([features.encode_example(row)], schema=features.arrow_schema)
        if self._notes and lost:
            lines = (json.dumps(asdict(one)) + "\n" for one in lost)
            # Parts of the work have no video in common.
            (self._notes / f"{videos[0]}.jsonl").write_text("".join(lines), encoding="utf-8")


def videos_digest(graph: SceneGraph, video_ids: tuple[str, ...]) -> str:
    """SHA-256 over ids and contents of video files; a missing file counts as such."""
    digest = hashlib.sha256()
    for video_id in sorted(video_ids):
        path = graph.video_path(video_id)
        digest.update(f"{video_id} {file_sha256(path) if path.is_file() else 'missing'}\n".encode())
    return digest.hexdigest()


def graph_digest(graph: SceneGraph) -> str:
    """SHA-256 over all annotation files."""
    digest = hashlib.sha256()
    for video_id in graph.video_ids:
        digest.update(f"{video_id} {file_sha256(confined(graph.root, video_id, ANNOTATION_FILE))}\n".encode())
    return digest.hexdigest()
