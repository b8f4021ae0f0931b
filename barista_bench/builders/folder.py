"""`build`: a release in, a publishable dataset folder out, and the same data in the `datasets` cache."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import datasets
import numpy as np
from datasets.info import DatasetInfosDict

from barista_bench import __version__
from barista_bench.benchmarks import get_task
from barista_bench.builders.barista import CONFIGS, NAME, TASK_CONFIGS, BaristaBuilder, graph_digest, videos_digest
from barista_bench.builders.card import MANIFEST, Built, BuiltConfig, write_card, write_manifest
from barista_bench.builders.frozen import write_frozen
from barista_bench.builders.media import JPEG_QUALITY, LostExample
from barista_bench.builders.plan import Plan, Plans, plan_tasks, task_overrides
from barista_bench.builders.rows import FramesMode
from barista_bench.builders.splits import split_of
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import SceneGraph
from barista_bench.sources import Source, open_source
from barista_bench.task import ProtocolName

log = logging.getLogger(__name__)


def build(
    source: str | Path,
    out: str | Path = "barista",
    *,
    configs: Sequence[str] = CONFIGS,
    frames: FramesMode = "frozen",
    sampling: Mapping[str, Any] | None = None,
    split_file: str | None = None,
    revision: str | None = None,
    jpeg_quality: int = JPEG_QUALITY,
    cache: bool = True,
    strict: bool = False,
    dry_run: bool = False,
    num_proc: int = 1,
    protocol: ProtocolName = "release",
    progress: bool = False,
) -> Built:
    """Make the dataset folder `out` from a release, and with `cache` the entry that `load_dataset("barista")` finds.

    Args:
        source: data root, or a Hub dataset id such as `ramblr/BARISTA`.
        out: folder to write; an earlier folder of ours is replaced, anything else refused.
        configs: tasks and graph tables to write.
        frames: `frozen` (pixels stored) or `linked` (pixels decoded from the videos on access).
        sampling: overrides of the published sampling: `{"limit": 50}` for every task that reads the name,
            `{"relations": {"frame_step": 100}}` for one.
        split_file: JSON with the video ids of `train` and `test`.
        revision: commit of a Hub dataset.
        jpeg_quality: of frozen frames.
        cache: also prepare the `datasets` cache, so that loading works from any folder.
        strict: stop at the first error in the release.
        dry_run: draw the examples and count them, but touch no video and write nothing.
        num_proc: processes that read annotations, and then encode frames; what is written does not depend on them.
        protocol: whose rules the examples follow where the release and the paper differ.
        progress: show progress bars.

    Raises:
        DataError, SourceError, ConfigError: the release, the source or a setting cannot be used.
    """
    unknown = [name for name in configs if name not in CONFIGS]
    if unknown:
        raise ConfigError(f"no config {unknown[0]!r}. Remedy: use some of {', '.join(CONFIGS)}")
    repeated = [name for name, count in Counter(configs).items() if count > 1]
    if repeated:
        raise ConfigError(f"config {repeated[0]!r} is named twice. Remedy: name it once")
    if not 1 <= jpeg_quality <= 100:
        raise ConfigError(f"jpeg_quality is {jpeg_quality}. Remedy: give 1 to 100")
    out = Path(out).absolute()
    tasks = [name for name in configs if name in TASK_CONFIGS]
    overrides = {name: task_overrides(NAME, name, tasks, sampling or {}) for name in tasks}
    refuse_foreign(out)
    opened = open_source(source, revision=revision)
    settings = {"source": str(opened.root), "split_file": split_file, "frames": frames, "jpeg_quality": jpeg_quality}
    settings["protocol"] = protocol
    with TemporaryDirectory() as scratch, quiet_datasets():
        graph = SceneGraph(opened.root, strict=strict)
        plans = _plans(graph, overrides, split_file, num_proc, progress, protocol)
        if dry_run:
            return _result(opened, plans, out, [_drawn(plan) for plan in plans.plans.values()], protocol)
        folder = _fresh_folder_beside(out)
        work = _Work(graph, opened, plans, settings, overrides, folder, Path(scratch), cache, num_proc, progress)
        infos = DatasetInfosDict()
        try:
            made = [work.make(name, infos) for name in configs if name not in plans.empty]
            result = _result(opened, plans, out, made, protocol)
            write_card(folder, result, infos, frames)
            write_manifest(folder, result, frames, opened.root)
            if out.exists():
                shutil.rmtree(out)
            os.replace(folder, out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return result


def _fresh_folder_beside(out: Path) -> Path:
    """A new empty folder on the same disk: moving it into place is then one step."""
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    folder.chmod(0o755)
    return folder


def _plans(
    graph: SceneGraph,
    overrides: Mapping[str, dict[str, Any]],
    split_file: str | None,
    num_proc: int,
    progress: bool,
    protocol: ProtocolName,
) -> Plans:
    """The examples of all chosen tasks, and the split."""
    wanted = []
    for name, changes in overrides.items():
        task = get_task(NAME, name, protocol=protocol)
        wanted.append((task, task.sampling.with_overrides(changes, task.sampling_uses)))
    plans = plan_tasks(graph, wanted, split=partial(split_of, split_file), num_proc=num_proc, progress=progress)
    for name, reason in plans.empty.items():
        log.warning("%s: left out: %s", name, reason)
    return plans


def _result(opened: Source, plans: Plans, out: Path, made: list[BuiltConfig], protocol: ProtocolName) -> Built:
    if not any(config.rows for config in made):
        raise DataError(f"{opened.root}: no example for any of {', '.join(plans.empty)}. Remedy: loosen the sampling")
    # A local path says nothing to others, and may say too much.
    origin = opened.identity if opened.identity["kind"] == "hub" else {"kind": "local"}
    return Built(out, tuple(made), tuple(plans.empty), plans.problems, origin, protocol)


@contextmanager
def quiet_datasets() -> Iterator[None]:
    """`datasets` draws a bar for every split, shard and cast; ours is one a config."""
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


def refuse_foreign(out: Path) -> None:
    """Raise ConfigError where `out` holds anything that `build` did not write."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ConfigError(f"{out}: is a file. Remedy: choose another --out")
    found = {entry.name for entry in out.iterdir()}
    if found and MANIFEST not in found:
        raise ConfigError(f"{out}: exists and is no dataset folder of ours. Remedy: choose another --out")
    foreign = sorted(found - {MANIFEST, "README.md", "frozen", *CONFIGS})
    if foreign:
        raise ConfigError(f"{out}: holds {foreign[0]!r}, which is not ours. Remedy: move it, or choose another --out")


@dataclasses.dataclass(slots=True)
class _Work:
    """What building one config after the other shares."""

    graph: SceneGraph
    opened: Source
    plans: Plans
    settings: dict[str, Any]
    overrides: dict[str, dict[str, Any]]
    folder: Path
    scratch: Path
    """Where `datasets` may keep what nobody wants."""
    cache: bool
    num_proc: int
    progress: bool

    def make(self, name: str, infos: DatasetInfosDict) -> BuiltConfig:
        """Prepare and export one config."""
        builder = self._prepared(name)
        rows = _export(builder, self.folder / name)
        if not any(rows.values()):
            raise DataError(f"{name}: every example was lost, first: {builder.lost[0].reason}")
        infos[name] = builder.info
        if not builder.is_task:
            return BuiltConfig(name, rows)
        (self.folder / "frozen").mkdir(exist_ok=True)
        write_frozen(builder.plan.examples, self.folder / "frozen" / f"{name}.jsonl")
        # Reasons name files; where the release lies on this machine is nobody else's business.
        root = f"{self.graph.root}{os.sep}"
        lost = [LostExample(one.example_id, one.reason.replace(root, "")) for one in builder.lost]
        return dataclasses.replace(_drawn(builder.plan), rows=rows, lost=lost)

    def _prepared(self, name: str) -> BaristaBuilder:
        identity: list[Any] = [__version__, name, {k: self.settings[k] for k in ("frames", "jpeg_quality")}]
        plan = self.plans.plans.get(name)
        if plan:
            # Without a callback the hub client shows bars of its own.
            quiet = None if self.progress else lambda present, total: None
            self.opened.ensure_videos(plan.video_ids, quiet)
            identity += [plan.content_hash, videos_digest(self.graph, plan.video_ids)]
        else:
            identity += [self.plans.splits, graph_digest(self.graph)]
        content_hash = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
        builder = self._builder(name, None if self.cache else self.scratch, content_hash)
        if plan:
            builder.plan = plan
        _prepare(builder, self.num_proc, self.progress)
        return builder

    def _builder(self, name: str, cache_dir: Path | None, content_hash: str) -> BaristaBuilder:
        """It prepares the cache entry that `load_dataset("barista", name)` finds."""
        builder = _PreparedBuilder(
            cache_dir=str(cache_dir) if cache_dir else None,
            dataset_name=NAME,
            config_name=name,
            hash=content_hash,
            # The settings are in the hash already; as part of the id they would hide the entry from load_dataset.
            config_id=name,
            sampling=self.overrides.get(name, {}),
            **self.settings,
        )
        builder.graph = self.graph
        builder.splits = self.plans.splits
        return builder


def _drawn(plan: Plan) -> BuiltConfig:
    return BuiltConfig(
        name=plan.task.name,
        rows=dict(plan.counts("split")),
        content_hash=plan.content_hash,
        candidates=plan.candidates,
        skipped=[f"{s.frame.video_id}:{s.frame.frame_index}: {s.reason}" for s in plan.skipped],
        preparations=dict(plan.counts("preparation")),
        labels=plan.labels(),
        sampling=dataclasses.asdict(plan.sampling),
    )


class _PreparedBuilder(BaristaBuilder):
    """Takes any settings under a config's plain name, which `datasets` refuses while it knows the config."""

    BUILDER_CONFIGS = []  # noqa: RUF012  (datasets' own convention)


def _prepare(builder: BaristaBuilder, num_proc: int, progress: bool) -> None:
    """Prepare the cache entry. Lost examples are part of what was made, so they are kept beside it."""
    builder.progress = progress
    builder.download_and_prepare(num_proc=num_proc if num_proc > 1 else None)
    # A split that lost all its examples: `datasets` writes it, but cannot read it.
    for split in [name for name, info in builder.info.splits.items() if not info.num_examples]:
        del builder.info.splits[split]
        builder.info.write_to_directory(builder.cache_dir)
    notes = Path(builder.cache_dir) / "lost_examples.json"
    if builder.is_task:
        if builder.lost or not notes.exists():
            notes.write_text(json.dumps([dataclasses.asdict(lost) for lost in builder.lost]), encoding="utf-8")
        else:
            builder.lost.extend(LostExample(**lost) for lost in json.loads(notes.read_text(encoding="utf-8")))
    os.utime(builder.cache_dir)  # load_dataset takes the entry that was touched last


def _export(builder: BaristaBuilder, folder: Path) -> dict[str, int]:
    """Parquet shards, named as the Hub names them; graph tables get a shard a video, so that one can be fetched."""
    folder.mkdir()
    rows = {}
    for split, dataset in builder.as_dataset().items() if builder.info.splits else ():
        shards = [dataset] if builder.is_task else _by_video(dataset)
        for index, shard in enumerate(shards):
            shard.to_parquet(folder / f"{split}-{index:05d}-of-{len(shards):05d}.parquet")
        rows[str(split)] = len(dataset)
    return rows


def _by_video(dataset: datasets.Dataset) -> list[datasets.Dataset]:
    """Contiguous pieces of equal `video_id`; tables are written a video at a time."""
    ids = np.asarray(dataset.with_format("numpy")["video_id"][:]) if len(dataset) else np.array([])
    starts = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(dataset)]
    return [dataset.select(range(low, high)) for low, high in itertools.pairwise(starts)]
