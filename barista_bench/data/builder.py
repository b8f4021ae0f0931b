"""Define the `datasets` builder of every benchmark: one config per task, and one per table of a scene graph."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tqdm import tqdm

from barista_bench.benchmarks import Benchmark, get_benchmark, get_task
from barista_bench.cluster import RayCluster
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.data.frozen import lines_sha256
from barista_bench.data.manifest import LostExample
from barista_bench.data.origin import GraphOrigin, Origin, open_origin
from barista_bench.data.plan import PlannedSet
from barista_bench.data.rows import FramesMode, linked_frames, question_columns, row_features, to_row
from barista_bench.data.stored_images import JPEG_QUALITY, encode_image
from barista_bench.data.tables import table_features, video_table
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.video import FrameReader, open_reader
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.scene_graph.release import read_terms
from barista_bench.version import __version__

log = logging.getLogger(__name__)

BATCH = 8
"""Number of examples whose frames are decoded together: enough to decode forward instead of seeking, few enough for
memory.
"""
BATCH_BYTES = 5 * 2**26
"""Maximum number of bytes of frames decoded together: 53 frames at 1080p. Frames of a larger example are decoded one by
one.
"""
VideoExamples = tuple[str, list[tuple[int, Example]]]
"""A video's id, and the video's examples with their positions in the plan."""
Part = tuple[str, str]
"""A split and a video: the unit into which work is divided."""
_SPLIT_ORDER = ("train", "validation", "dev", "test")
"""Splits that come first, in this order; others follow by name."""


@dataclass
class BenchmarkConfig(datasets.BuilderConfig):
    """Settings of one config, as in `build`. `sampling` and `options` apply only to this config's task."""

    source: str | None = None
    videos: str | None = None
    frames: FramesMode = "frozen"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    split_file: str | None = None
    jpeg_quality: int = JPEG_QUALITY
    options: Mapping[str, Any] = field(default_factory=dict)

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: datasets.Features | None = None) -> str:
        """Return the name of the cache entry, as in `datasets`. A release with changed files gets a new name."""
        inputs = [Path(path) for path in (self.source, self.videos, self.split_file) if path]
        if inputs:
            files = ((top, path) for top in inputs for path in [top, *sorted(top.rglob("*"))] if path.is_file())
            states = ((path.relative_to(top), path.stat()) for top, path in files)
            lines = (f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in states)
            config_kwargs = {**config_kwargs, "files": lines_sha256(lines)}
        return str(super().create_config_id(config_kwargs, custom_features))


class BenchmarkBuilder(datasets.ArrowBasedBuilder):
    """All configs of the benchmark that the dataset is named after.

    Work is divided by video (`num_proc`, streaming), and the number of parts changes no row. Unless you set `origin`
    and `plan` first, `origin` is opened and `plan` is sampled on first use. After `download_and_prepare`, `lost` lists,
    in the order of the plan, the examples whose frames could not be made. These examples are in no split.
    """

    VERSION = datasets.Version(__version__)
    BUILDER_CONFIG_CLASS = BenchmarkConfig
    BUILDER_CONFIGS: list[BenchmarkConfig] = []  # noqa: RUF012  (datasets' convention: any config, with any settings)
    config: BenchmarkConfig
    cluster: RayCluster | None = None
    """The cluster whose nodes make the rows; None if this process makes them."""
    progress = False
    """Whether rendering shows a progress bar."""
    _notes: Path | None = None
    """The folder where each part of the work notes lost examples. With `num_proc`, copies of this object do the
    work.
    """

    @property
    def benchmark(self) -> Benchmark:
        return get_benchmark(str(self.dataset_name))

    @property
    def is_task(self) -> bool:
        return self.config.name in self.benchmark.task_names

    @cached_property
    def origin(self) -> Origin:
        config = self.config
        if not config.source:
            raise ConfigError(f"{config.name}: no source. Fix: pass source=<folder of the release>")
        # A Path: only `build` fetches from the Hub.
        source = Path(config.source)
        return open_origin(self.benchmark.name, source, videos=config.videos, split_file=config.split_file)

    @cached_property
    def plan(self) -> PlannedSet:
        sampling = self._task.sampling.with_overrides(self.config.sampling)
        plans = self.origin.plans([(self._task, sampling)])
        if plans.empty:
            raise plans.empty[self._task.name]
        return plans.by_task[self._task.name]

    @property
    def _task(self) -> Task:
        return get_task(self.benchmark.name, self.config.name, options=self.config.options)

    @cached_property
    def lost(self) -> list[LostExample]:
        return []

    def download_and_prepare(self, *args: object, **kwargs: object) -> None:
        """Prepare the rows as `datasets` does, with `num_proc` in several processes, and fill `lost`."""
        with TemporaryDirectory() as notes:
            self._notes = Path(notes)
            try:
                super().download_and_prepare(*args, **kwargs)
            finally:
                self._notes = None
            lines = [line for note in Path(notes).iterdir() for line in note.read_text(encoding="utf-8").splitlines()]
        lost = [LostExample(**json.loads(line)) for line in lines]
        if lost:
            positions = {example.example_id: position for position, example in enumerate(self.plan.examples)}
            self.lost.extend(sorted(lost, key=lambda example: positions[example.example_id]))

    def _info(self) -> datasets.DatasetInfo:
        terms = read_terms(Path(self.config.source)) if self.config.source else None
        return datasets.DatasetInfo(
            description=f"{self.benchmark.title}: {self.benchmark.description}",
            features=row_features(self._task, self.config.frames) if self.is_task else table_features(self.config.name),
            homepage=self.benchmark.homepage,
            license=terms.licence if terms else self.benchmark.licence,
            citation=terms.citation if terms else self.benchmark.citation,
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        if self.is_task:
            parts: Sequence[Part] = self.plan.parts
        else:
            assert isinstance(self.origin, GraphOrigin)
            parts = [(split, video_id) for video_id, split in self.origin.splits.items()]
        splits = {split for split, _ in parts}
        names = [*(name for name in _SPLIT_ORDER if name in splits), *sorted(splits.difference(_SPLIT_ORDER))]
        return [
            datasets.SplitGenerator(name, gen_kwargs={"parts": [part for part in parts if part[0] == name]})
            for name in names
        ]

    def _generate_tables(self, parts: list[Part]) -> Iterator[tuple[int, pa.Table]]:
        if self.is_task:
            return enumerate(self._task_tables(parts))
        assert isinstance(self.origin, GraphOrigin)
        table = partial(video_table, self.config.name, self.origin.graph)
        video_ids = [video_id for _, video_id in parts]
        return enumerate(self.cluster.map(table, video_ids) if self.cluster else map(table, video_ids))

    def _task_tables(self, parts: list[Part]) -> Iterator[pa.Table]:
        """Yield tables of one row each, since a row with pictures has megabytes."""
        lost: list[LostExample] = []
        plan, features, wanted_parts = self.plan, self.info.features, set(parts)
        schema = features.arrow_schema  # each access makes the schema from the features again
        planned = [item for item in enumerate(plan.examples) if plan.part_of(item[1]) in wanted_parts]
        render = partial(render_video, self.origin.video_path, plan.task, self.config.frames, self.config.jpeg_quality)
        videos = group_by_video(planned)
        rendered = self.cluster.stream(render, videos) if self.cluster else chain.from_iterable(map(render, videos))
        for row in tqdm(rendered, self.config.name, len(planned), unit="example", disable=not self.progress):
            if isinstance(row, LostExample):
                log.warning("%s: left out: %s", row.example_id, row.reason)
                lost.append(row)
            else:
                yield pa.Table.from_pylist([features.encode_example(row)], schema=schema)
        if self._notes and lost:
            lines = (json.dumps(asdict(example)) + "\n" for example in lost)
            # No two parts of the work share a split and a video.
            name = hashlib.sha256(json.dumps(parts[0]).encode()).hexdigest()
            (self._notes / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def group_by_video(examples: Iterable[tuple[int, Example]]) -> list[VideoExamples]:
    """Return (position, example) pairs by video, sorted by video id rather than by the sample, so that parts can be
    joined.
    """
    groups: dict[str, list[tuple[int, Example]]] = {}
    for position, example in examples:
        groups.setdefault(example.video_id, []).append((position, example))
    return sorted(groups.items())


def render_video(
    video_path: Callable[[str], Path], task: Task, mode: FramesMode, jpeg_quality: int, video: VideoExamples
) -> Iterator[dict[str, Any] | LostExample]:
    """Yield the rows of a video's examples with media, in order of frames. `video_path` maps a video id to a file."""
    video_id, examples = video
    try:
        yield from _rows(video_path(video_id), task, examples, mode, jpeg_quality)
    except DataError as error:
        yield from (LostExample(example.example_id, str(error)) for _, example in examples)


def _rows(
    path: Path, task: Task, examples: Sequence[tuple[int, Example]], mode: FramesMode, jpeg_quality: int
) -> Iterator[dict[str, Any] | LostExample]:
    """Yield rows from one pass over the video. Examples are processed in order of frames, a few at a time."""
    sha256 = video_sha256(path)
    ordered = iter(sorted(examples, key=lambda item: (item[1].frames[0].frame_index, item[0])))
    with open_reader(path) as reader:
        seconds, most = reader.seconds, max(len(example.frames) for _, example in examples)
        length = min(BATCH, max(1, BATCH_BYTES // (most * _frame_bytes(reader))))
        while batch := list(islice(ordered, length)):
            decoded_frames = {} if mode == "linked" else _decode_ahead(reader, [example for _, example in batch])
            for position, example in batch:
                row = to_row(example, position, sha256, seconds)
                try:
                    if mode == "linked":
                        late = [f.frame_index for f in example.frames if f.frame_index >= len(reader)]
                        if late:
                            end = f"is past the end ({len(reader)} frames). Fix: fetch the right video"
                            raise DataError(f"{path}: frame {late[0]} {end}")
                        row["frames"] = linked_frames(example)
                    else:
                        row["images"] = _images(reader, decoded_frames, task, example, jpeg_quality)
                        row |= question_columns(task, example)
                except DataError as error:
                    yield LostExample(example.example_id, str(error))
                else:
                    yield row


def _decode_ahead(reader: FrameReader, examples: Sequence[Example]) -> dict[int, NDArray[np.uint8]]:
    """Return the frames of a batch by index.

    The result is empty if there are too many frames for memory, or if a frame cannot be decoded. Each example is then
    tried separately.
    """
    wanted = sorted({frame.frame_index for example in examples for frame in example.frames})
    if len(wanted) * _frame_bytes(reader) > BATCH_BYTES:
        return {}
    try:
        return dict(zip(wanted, reader.read(wanted), strict=True))
    except DataError:
        return {}


def _frame_bytes(reader: FrameReader) -> int:
    width, height = reader.size
    return 3 * width * height


def _images(
    reader: FrameReader, decoded_frames: dict[int, NDArray[np.uint8]], task: Task, example: Example, jpeg_quality: int
) -> list[dict[str, Any]]:
    indices = [frame.frame_index for frame in example.frames]
    # Frames are decoded one by one if the task shows them unchanged and no picture needs another frame.
    groups = [[index] for index in indices] if type(task).images is Task.images else [indices]
    images = []
    for group in groups:
        frames = [decoded_frames[index] for index in group] if decoded_frames else list(reader.read(group))
        images += [
            {"bytes": encode_image(image, overlay=position >= len(frames), jpeg_quality=jpeg_quality), "path": None}
            for position, image in enumerate(task.images(example, frames))
        ]
    return images
