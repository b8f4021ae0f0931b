"""Define `build`, which makes a publishable dataset folder from a release, and stores the data in the
`datasets` cache.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import logging
import math
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets
import msgspec
import multiprocess
import numpy as np
import pyarrow.parquet as pq
from datasets.info import DatasetInfosDict

from barista_bench.benchmarks import find_task, get_benchmark, task_class, task_options
from barista_bench.cluster import RayCluster, cluster_of, new_processes_end
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.settings import check_settings
from barista_bench.data.builder import BenchmarkBuilder
from barista_bench.data.dataset_cache import VIDEOS_NOTE, link_plain_name, quiet_datasets, warn_of_other_entries
from barista_bench.data.frozen import frozen_line, lines_sha256, write_frozen, write_released
from barista_bench.data.hub_files import write_hub_files
from barista_bench.data.manifest import BuiltConfig, BuiltDataset, LostExample, write_card, write_manifest
from barista_bench.data.origin import Origin, config_names_of, open_origin
from barista_bench.data.plan import PlannedSet, PlannedSets, task_overrides
from barista_bench.data.settings import BuildSettings
from barista_bench.errors import ConfigError, DataError, nearest_of
from barista_bench.files.owned_folders import DATASET, FolderKind, check_target, refuse_inside, replacing_folder
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.version import __version__

log = logging.getLogger(__name__)

MAX_SHARD_BYTES = 500 * 10**6
"""Maximum number of bytes of one file of a task. Pictures are stored unchanged, so files are not larger on disk."""
FEWEST_SHARDS = 4
_DIGITS = 16
"""Number of digits of the content hash in an id. `datasets` keeps settings of up to 32 characters readable in names."""


def build(source: str | Path, out: str | Path | None = None, **settings: Any) -> BuiltDataset:  # noqa: ANN401
    """Make the dataset folder `out` from a release, and with `cache` also the entry that `load_dataset(benchmark)`
    finds.

    Args:
        source: data root, or a Hub dataset id such as `ramblr/BARISTA`. For other benchmarks, the folder of the
            annotations.
        out: folder to write. It may replace an earlier dataset, but no folder with other files. By default, its name is
            the benchmark's name.
        settings: fields of `BuildSettings`, e.g. `configs=["relations"]`, `frames="linked"`, `sampling={"limit": 50}`
            for every task with this setting, or `sampling={"relations": {"frame_step": 100}}` for one.

    Raises:
        DataError, SourceError, ConfigError: the release, the source or a setting cannot be used.
        ClusterError: the cluster cannot be used.
    """
    chosen = check_settings(BuildSettings, {**settings, "source": source, "out": out})
    benchmark, options = chosen.benchmark, chosen.task_options
    known_configs = config_names_of(benchmark)
    configs = chosen.configs or known_configs
    _check_settings(chosen, configs, known_configs)
    folder = Path(out or benchmark).absolute()
    tasks = [name for name in configs if name in get_benchmark(benchmark).task_names]
    overrides = {name: task_overrides(benchmark, name, tasks, chosen.sampling) for name in tasks}
    option_values = task_options([task_class(benchmark, name) for name in tasks], options)
    kind = DATASET if chosen.layout == "ours" else None
    if not chosen.dry_run:
        refuse_inside(folder, source, chosen.videos)
        check_target(folder, kind)
    split_file = str(chosen.split_file) if chosen.split_file else None
    origin = open_origin(
        benchmark, source, videos=chosen.videos, revision=chosen.revision, strict=chosen.strict, split_file=split_file
    )
    work_settings = {"split_file": split_file, "frames": chosen.frames, "jpeg_quality": chosen.jpeg_quality}
    work_settings |= {"source": str(origin.roots[-1]), "videos": str(chosen.videos) if chosen.videos else None}
    cluster = cluster_of(chosen.cluster, chosen.num_proc, origin.roots)
    with TemporaryDirectory() as scratch, quiet_datasets():
        plans = _plans(origin, overrides, chosen, cluster, option_values)
        make_result = partial(_result, origin, plans, folder, protocol=str(options.get("protocol", "release")))
        if chosen.dry_run or chosen.layout == "release":
            described = [_describe(plan) for plan in plans.by_task.values()]
            if not chosen.dry_run:
                _write_released(plans, folder, kind)
            return make_result(described, plans.empty, plans.lost_videos)
        with replacing_folder(folder, kind) as new:
            cache_dir = None if chosen.cache else Path(scratch)
            work = _Work(
                origin, plans, work_settings, overrides, new, cache_dir, chosen.num_proc, cluster, chosen.progress
            )
            infos = DatasetInfosDict()
            made = [work.make(name, infos) for name in configs if name not in plans.empty]
            built_configs = [config for config in made if config]
            result = make_result(built_configs, work.empty, work.lost_videos)
            write_card(new, result, infos, chosen.frames)
            write_manifest(new, result, chosen.frames, origin.media)
            # Linked videos stay on this machine, and tables without tasks are no benchmark.
            if chosen.frames == "frozen" and any(config.content_hash for config in built_configs):
                write_hub_files(new, result)
    if chosen.cache:
        warn_of_other_entries(benchmark, [config.name for config in built_configs])
    return result


def _write_released(plans: PlannedSets, folder: Path, kind: FolderKind | None) -> None:
    with replacing_folder(folder, kind) as new:
        for plan in plans.by_task.values():
            write_released(plan.task, plan.sampling, plan.examples, new)


def _check_settings(settings: BuildSettings, configs: Sequence[str], known_configs: Sequence[str]) -> None:
    unknown = [name for name in configs if name not in known_configs]
    if unknown:
        remedy = f"{nearest_of(unknown[0], known_configs)}, with --configs"
        raise ConfigError(f"no config {unknown[0]!r}. Fix: {remedy}")
    repeated = [name for name, count in Counter(configs).items() if count > 1]
    if repeated:
        raise ConfigError(f"config {repeated[0]!r} is named twice. Fix: name it once")
    if settings.prompts is not None and settings.layout != "release":
        raise ConfigError("prompts are frozen only in the layout release. Fix: give them to run, or leave them out")


def _plans(
    origin: Origin,
    overrides: Mapping[str, dict[str, Any]],
    settings: BuildSettings,
    cluster: RayCluster | None,
    options: Sequence[Mapping[str, object]],
) -> PlannedSets:
    """Return the examples of all chosen tasks, and the split of each video."""
    sampled_tasks = []
    for (name, changes), values in zip(overrides.items(), options, strict=True):
        spec = find_task(origin.benchmark, name)
        texts = None if settings.prompts is None else spec.read_wording(settings.prompts)
        task = spec.kind(texts, options=values)
        sampled_tasks.append((task, task.sampling.with_overrides(changes)))
    plans = origin.plans(sampled_tasks, num_proc=settings.num_proc, cluster=cluster, progress=settings.progress)
    for name, reason in plans.empty.items():
        log.warning("%s: left out: %s", name, reason)
    return plans


def _result(
    origin: Origin,
    plans: PlannedSets,
    out: Path,
    configs: list[BuiltConfig],
    empty: Mapping[str, DataError],
    lost_videos: Sequence[str],
    *,
    protocol: str,
) -> BuiltDataset:
    if not configs or (plans.by_task and not any(config.content_hash for config in configs)):  # only tables remain
        reason = next((reason for name, reason in empty.items() if name in plans.by_task), next(iter(empty.values())))
        if plans.by_task or len(empty) == 1:
            raise reason
        raise DataError(f"no example for any of {', '.join(empty)}. Fix: loosen the sampling. First: {reason}")
    # A local path is useless to others, and may reveal too much.
    source: dict[str, Any] = dict(origin.identity) if origin.identity["kind"] == "hub" else {"kind": "local"}
    if origin.terms:
        source["terms"] = msgspec.to_builtins(origin.terms)
    name = origin.benchmark.name
    return BuiltDataset(
        out, tuple(configs), tuple(empty), plans.problems, source, protocol, name, tuple(sorted(lost_videos))
    )


@dataclasses.dataclass(slots=True)
class _Work:
    """The shared state of building all configs."""

    origin: Origin
    plans: PlannedSets
    settings: dict[str, Any]
    overrides: dict[str, dict[str, Any]]
    folder: Path
    cache_dir: Path | None
    """The folder where `datasets` prepares entries; None for the cache of `datasets`."""
    num_proc: int
    cluster: RayCluster | None
    progress: bool
    empty: dict[str, DataError] = dataclasses.field(init=False)
    """The configs without rows, with the reasons."""
    _has_rows: dict[str, bool] = dataclasses.field(default_factory=dict)
    """Whether at least one example of a video was made, by video id."""

    def __post_init__(self) -> None:
        self.empty = dict(self.plans.empty)

    @property
    def lost_videos(self) -> list[str]:
        """Return the ids of videos that cannot be used, or whose examples were all lost."""
        return [*self.plans.lost_videos, *(video_id for video_id, is_made in self._has_rows.items() if not is_made)]

    def make(self, name: str, infos: DatasetInfosDict) -> BuiltConfig | None:
        """Prepare and export one config. If it has no rows, note the reason in `empty` and return None."""
        builder = self._entry_builder(name)
        rows = _export(builder, self.folder / name)
        lost_ids = {example.example_id for example in builder.lost}
        for example in builder.plan.examples if builder.is_task else ():
            is_made = example.example_id not in lost_ids
            self._has_rows[example.video_id] = self._has_rows.get(example.video_id, False) or is_made
        if not any(rows.values()):
            shutil.rmtree(self.folder / name)
            why = f"every example was lost, first: {builder.lost[0].reason}" if builder.lost else "the release has none"
            self.empty[name] = DataError(f"{name}: {why}")
            log.warning("%s: left out: %s", name, why)
            return None
        infos[name] = _info(builder, self.folder / name)
        if not builder.is_task:
            return BuiltConfig(name, rows)
        (self.folder / "frozen").mkdir(exist_ok=True)
        write_frozen(builder.plan.examples, self.folder / "frozen" / f"{name}.jsonl")
        # Reasons name files, but published data must not show where the release is on this machine.
        lost = [LostExample(example.example_id, self._without_roots(example.reason)) for example in builder.lost]
        described = _describe(builder.plan)
        skipped = [self._without_roots(reason) for reason in described.skipped]
        return dataclasses.replace(described, rows=rows, lost=lost, skipped=skipped)

    def _without_roots(self, text: str) -> str:
        """Remove the release's folders, in any spelling, from the text. Longer paths go first, since they may contain
        others.
        """
        names = {str(path) for root in self.origin.roots for path in (root, root.absolute(), root.resolve())}
        for root in sorted(names, key=len, reverse=True):
            text = re.sub(rf"(?<![\w./-]){re.escape(root)}{os.sep}", "", text)
            if os.path.isabs(root):
                text = re.sub(rf"(?<![\w./-]){re.escape(root)}(?![\w./-])", "the release", text)
        return text

    def _entry_builder(self, name: str) -> BenchmarkBuilder:
        """Prepare the entry that `load_dataset(benchmark, name, entry=entry)` finds."""
        identity: list[Any] = [__version__, name, {k: self.settings[k] for k in ("frames", "jpeg_quality")}]
        plan = self.plans.by_task.get(name)
        if plan:
            self.origin.fetch(plan.video_ids, progress=self.progress)
            videos = ((video_id, self.origin.video_path(video_id)) for video_id in sorted(plan.video_ids))
            lines = (f"{video_id} {video_sha256(path) if path.exists() else 'missing'}" for video_id, path in videos)
            identity += [lines_sha256(map(frozen_line, plan.examples)), lines_sha256(lines)]
            if self.settings["frames"] == "frozen":
                # Rows hold questions.
                identity += [plan.task.prompts.sha256, plan.task.protocol, str(DEFAULT_BOX_FORMAT)]
        else:
            identity += self.origin.table_identity()
        content_hash = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        entry = f"{self.settings['frames']}-{content_hash[:_DIGITS]}"
        builder = BenchmarkBuilder(
            cache_dir=str(self.cache_dir) if self.cache_dir else None,
            dataset_name=self.origin.benchmark.name,
            config_name=name,
            hash=entry,
            config_id=datasets.BuilderConfig(name).create_config_id({"entry": entry}),  # the name behind `entry=`
            sampling=self.overrides.get(name, {}),
            options=plan.task.chosen if plan else {},
            **self.settings,
        )
        builder.origin, builder.cluster, builder.progress = self.origin, self.cluster, self.progress
        if plan:
            builder.plan = plan
        _prepare(builder, self.num_proc)
        if plan and self.settings["frames"] == "linked":
            (Path(builder.cache_dir) / VIDEOS_NOTE).write_bytes(os.fsencode(self.origin.media.resolve()))
        if not self.cache_dir:
            link_plain_name(Path(builder.cache_dir), name)
        return builder


def _describe(plan: PlannedSet) -> BuiltConfig:
    return BuiltConfig(
        name=plan.task.name,
        rows=dict(plan.counts("split")),
        content_hash=plan.content_hash,
        candidates=plan.candidates,
        skipped=[f"{s.frame.video_id}:{s.frame.frame_index}: {s.text}" for s in plan.skipped],
        groups={key: dict(plan.counts(key)) for key in plan.task.breakdown_keys if key != "split"},
        labels=plan.labels(),
        sampling=dataclasses.asdict(plan.sampling),
    )


def _prepare(builder: BenchmarkBuilder, num_proc: int) -> None:
    """Prepare the cache entry, and save the list of lost examples beside it."""
    try:
        with new_processes_end(multiprocess.active_children):
            builder.download_and_prepare(num_proc=num_proc if num_proc > 1 else None)
    except multiprocess.TimeoutError as error:  # `datasets` raises it while it handles an interruption
        raise error.__context__ or error from None
    # A split may have lost all its examples. `datasets` writes such a split but cannot read it.
    for split in [name for name, info in builder.info.splits.items() if not info.num_examples]:
        del builder.info.splits[split]
        builder.info.write_to_directory(builder.cache_dir)
    notes = Path(builder.cache_dir) / "lost_examples.json"
    if builder.is_task:
        if builder.lost or not notes.exists():
            notes.write_text(json.dumps([dataclasses.asdict(lost) for lost in builder.lost]), encoding="utf-8")
        else:
            builder.lost.extend(LostExample(**lost) for lost in json.loads(notes.read_text(encoding="utf-8")))


def _export(builder: BenchmarkBuilder, folder: Path) -> dict[str, int]:
    """Write Parquet shards with the Hub's names.

    Graph tables get one shard per video, so that you can fetch a single video.

    A reader's workers and processes share the shards between them.
    """
    folder.mkdir()
    rows = {}
    for split, dataset in builder.as_dataset().items() if builder.info.splits else ():
        if builder.is_task:
            shards = _shards(dataset)
        else:
            ids = np.asarray(dataset.with_format("numpy")["video_id"][:]) if len(dataset) else np.array([])
            starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(dataset)]
            shards = [dataset.select(range(low, high)) for low, high in itertools.pairwise(starts)]
        for index, shard in enumerate(shards):
            shard.to_parquet(folder / f"{split}-{index:05d}-of-{len(shards):05d}.parquet")
        rows[str(split)] = len(dataset)
    return rows


def _shards(dataset: datasets.Dataset) -> list[datasets.Dataset]:
    """Return contiguous pieces of at most `MAX_SHARD_BYTES`. There are at least `FEWEST_SHARDS`, or one per row."""
    count = max(min(FEWEST_SHARDS, len(dataset)), math.ceil(dataset.data.nbytes / MAX_SHARD_BYTES))
    while True:
        shards = [dataset.shard(count, index) for index in range(count)]
        if count >= len(dataset) or all(shard.data.nbytes <= MAX_SHARD_BYTES for shard in shards):
            return shards
        count += 1


def _info(builder: BenchmarkBuilder, folder: Path) -> datasets.DatasetInfo:
    """Return the card's entry for a config. Sizes are file sizes, since `datasets` counts bytes by parts of the
    work.
    """
    info = builder.info.copy()
    splits = info.splits or {}
    for name, split in splits.items():
        files = [pq.read_metadata(path) for path in folder.glob(f"{name}-*.parquet")]
        split.num_bytes = sum(file.row_group(i).total_byte_size for file in files for i in range(file.num_row_groups))
    info.dataset_size = sum(split.num_bytes for split in splits.values())
    info.download_size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    return info
