"""`build`: a release in, a publishable dataset folder out, and the same data in the `datasets` cache."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard, DatasetCardData

from barista_bench import __version__
from barista_bench.builders.barista import (
    CITATION,
    CONFIGS,
    LICENCE,
    NAME,
    TASK_CONFIGS,
    BaristaBuilder,
    graph_digest,
    videos_digest,
)
from barista_bench.builders.frozen import write_frozen
from barista_bench.builders.media import JPEG_QUALITY, LostExample
from barista_bench.builders.rows import FramesMode
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import Problem, SceneGraph
from barista_bench.sources import Source, open_source

MANIFEST = "barista_bench.json"
"""Written last into a finished folder; a folder with anything else in it is never overwritten."""

_FRAMES_NOTE = {
    "frozen": "`images` holds what the model sees, in order: frames as JPEG, overlays as PNG.",
    "linked": "`frames` holds `{video, indices}`, the video's path relative to the data root; "
    "`barista_bench.frames.link_frames` turns it into frames that decode on access.",
}
_CONFIG_NOTES = {
    "relations": "a frame, raw and with numbered masks, and all relations between the numbered objects",
    "graph_frames": "a frame of a video",
    "graph_instances": "one object on one frame: box and mask",
    "graph_attributes": "a range of frames on which an object has an attribute value",
    "graph_relations": "a range of frames on which a relation holds between two objects",
    "graph_activities": "an activity segment",
    "graph_steps": "a process step",
}


@dataclass(frozen=True, slots=True)
class BuiltConfig:
    """One config of the folder. `content_hash` identifies the frozen examples (SHA-256), None for graph tables."""

    name: str
    rows: Mapping[str, int]
    content_hash: str | None = None
    candidates: int | None = None
    skipped: Sequence[str] = ()
    lost: Sequence[LostExample] = ()
    preparations: Mapping[str, int] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Built:
    """What `build` wrote. `problems` are those of the release, `source` says what it was made from."""

    folder: Path
    configs: tuple[BuiltConfig, ...]
    problems: tuple[Problem, ...]
    source: Mapping[str, Any]


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
    progress: bool = False,
) -> Built:
    """Make the dataset folder `out` from a release, and with `cache` the entry that `load_dataset("barista")` finds.

    Args:
        source: data root, or a Hub dataset id such as `ramblr/BARISTA`.
        out: folder to write; an earlier folder of ours is replaced, anything else refused.
        configs: tasks and graph tables to write.
        frames: `frozen` (pixels stored) or `linked` (pixels decoded from the videos on access).
        sampling: overrides of every task's published sampling.
        split_file: JSON with the video ids of `train` and `test`.
        revision: commit of a Hub dataset.
        jpeg_quality: of frozen frames.
        cache: also prepare the `datasets` cache, so that loading works from any folder.
        strict: stop at the first error in the release.
        progress: show progress bars.

    Raises:
        DataError, SourceError, ConfigError: the release, the source or a setting cannot be used.
    """
    unknown = [name for name in configs if name not in CONFIGS]
    if unknown:
        raise ConfigError(f"no config {unknown[0]!r}. Remedy: use some of {', '.join(CONFIGS)}")
    out = Path(out)
    refuse_foreign(out)
    opened = open_source(source, revision=revision)
    graph = SceneGraph(opened.root, strict=strict)
    settings = {
        "source": str(opened.root),
        "sampling": dict(sampling or {}),
        "split_file": split_file,
        "frames": frames,
        "jpeg_quality": jpeg_quality,
    }
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    built, infos = [], DatasetInfosDict()
    splits: dict[str, str] = {}
    with quiet_datasets():
        for name in configs:
            builder, config = _build_config(name, graph, opened, settings, splits, partial, cache, progress)
            splits = builder.splits
            built.append(config)
            infos[name] = builder.info
    problems = (*graph.problems, *(problem for video in graph for problem in video.problems))
    # A local path says nothing to others, and may say too much.
    origin = opened.identity if opened.identity["kind"] == "hub" else {"kind": "local"}
    result = Built(out, tuple(built), problems, origin)
    _write_card(partial, result, infos, frames)
    _write_manifest(partial, result, frames, opened.root)
    if out.exists():
        shutil.rmtree(out)
    os.replace(partial, out)
    return result


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
    if out.exists() and not (out / MANIFEST).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out}: exists and is no dataset folder of ours. Remedy: choose another --out")


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a built folder.

    Raises:
        DataError: the folder is none, or was not finished.
    """
    path = Path(folder) / MANIFEST
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no built dataset here ({error}). Remedy: run `barista-bench build`") from error


def _build_config(
    name: str,
    graph: SceneGraph,
    opened: Source,
    settings: dict[str, Any],
    splits: dict[str, str],
    folder: Path,
    cache: bool,
    progress: bool,
) -> tuple[BaristaBuilder, BuiltConfig]:
    """Prepare and export one config. `splits` is empty for the first one, whose builder then derives it."""
    draft = _make_builder(name, folder / ".draft", None, settings)
    draft.graph = graph
    if splits:
        draft.splits = splits
    identity: list[Any] = [
        __version__,
        name,
        {k: v for k, v in settings.items() if k not in ("source", "split_file")},
    ]
    if draft.is_task:
        # Without a callback the hub client shows bars of its own.
        opened.ensure_videos(draft.plan.video_ids, None if progress else lambda present, total: None)
        identity += [draft.plan.content_hash, videos_digest(graph, draft.plan.video_ids)]
    else:
        identity += [draft.splits, graph_digest(graph)]
    content_hash = hashlib.sha256(json.dumps(identity, sort_keys=True, default=list).encode()).hexdigest()
    builder = _make_builder(name, None if cache else folder / ".draft", content_hash[:32], settings)
    builder.graph, builder.splits = graph, draft.splits
    if builder.is_task:
        builder.plan = draft.plan
    _prepare(builder, progress)
    rows = _export(builder, folder / name)
    if not any(rows.values()):
        raise DataError(f"{name}: every example was lost, first: {builder.lost[0].reason}")
    shutil.rmtree(folder / ".draft", ignore_errors=True)
    if not builder.is_task:
        return builder, BuiltConfig(name, rows)
    plan = builder.plan
    (folder / "frozen").mkdir(exist_ok=True)
    write_frozen(plan.examples, folder / "frozen" / f"{name}.jsonl")
    config = BuiltConfig(
        name=name,
        rows=rows,
        content_hash=plan.content_hash,
        candidates=plan.candidates,
        skipped=[f"{s.frame.video_id}:{s.frame.frame_index}: {s.reason}" for s in plan.skipped],
        lost=builder.lost,
        preparations=dict(plan.counts("preparation")),
        sampling=dataclasses.asdict(plan.sampling),
    )
    return builder, config


class _PreparedBuilder(BaristaBuilder):
    """Takes any settings under a config's plain name, which `datasets` refuses while it knows the config."""

    BUILDER_CONFIGS = []  # noqa: RUF012  (datasets' own convention)


def _make_builder(
    config: str, cache_dir: Path | None, content_hash: str | None, settings: dict[str, Any]
) -> BaristaBuilder:
    """With `content_hash` it prepares the cache entry that `load_dataset("barista", config)` finds."""
    return _PreparedBuilder(
        cache_dir=str(cache_dir) if cache_dir else None,
        dataset_name=NAME,
        config_name=config,
        hash=content_hash,
        # The settings are in the hash already; as part of the id they would hide the entry from load_dataset.
        config_id=config,
        **settings,
    )


def _prepare(builder: BaristaBuilder, progress: bool) -> None:
    """Prepare the cache entry. Lost examples are part of what was made, so they are kept beside it."""
    builder.progress = progress
    builder.download_and_prepare()
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


def _write_card(folder: Path, built: Built, infos: DatasetInfosDict, frames: FramesMode) -> None:
    data = DatasetCardData(
        license=LICENCE,
        pretty_name="BARISTA",
        task_categories=["image-text-to-text", "visual-question-answering"],
        language=["en"],
        tags=["egocentric", "video", "scene-graph", "benchmark"],
    )
    infos.to_dataset_card_data(data)
    MetadataConfigs(
        {
            config.name: {
                "data_files": [{"split": split, "path": f"{config.name}/{split}-*"} for split in config.rows],
                **({"default": True} if config.name == TASK_CONFIGS[0] else {}),
            }
            for config in built.configs
        }
    ).to_dataset_card_data(data)
    body = resources.files("barista_bench.dataset_cards").joinpath("barista.md").read_text(encoding="utf-8")
    for name, value in _card_values(built, frames).items():
        body = body.replace(f"{{{name}}}", value)
    DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{body}").save(folder / "README.md")


def _card_values(built: Built, frames: FramesMode) -> dict[str, str]:
    tasks = [config for config in built.configs if config.content_hash]
    source = built.source
    return {
        "config_table": "\n".join(f"| `{config.name}` | {_CONFIG_NOTES[config.name]} |" for config in built.configs),
        "frames_note": _FRAMES_NOTE[frames],
        "version": __version__,
        "source": f"`{source['id']}` at `{source['sha']}`" if source["kind"] == "hub" else "a local release folder",
        "protocol": "release",
        "provenance_table": "\n".join(
            f"| `{c.name}` | {sum(c.rows.values())} | {c.candidates} | {len(c.skipped) + len(c.lost)} "
            f"| {', '.join(f'{k}={v}' for k, v in c.sampling.items() if v is not None)} | `{c.content_hash}` |"
            for c in tasks
        ),
        "citation": CITATION,
    }


def _write_manifest(folder: Path, built: Built, frames: FramesMode, root: Path) -> None:
    """Last file of all: its presence says that the folder is complete."""
    counts = Counter(problem.severity for problem in built.problems)
    manifest = {
        "version": __version__,
        "protocol": "release",
        "frames": frames,
        "source": dict(built.source),
        "data_root": os.path.relpath(root.resolve(), built.folder.resolve()) if frames == "linked" else None,
        "problems": {"errors": counts["error"], "warnings": counts["warning"]},
        "configs": [dataclasses.asdict(config) for config in built.configs],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
