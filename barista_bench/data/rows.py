"""Convert examples to `datasets` rows and back, and open the rows of a built config. Pictures are read only on access.

Common columns: position (in the sampled order, over all splits), example_id, benchmark, task, task_version, label,
video_id, video_sha256, frame_indices, frame_seconds (seconds after the video's first frame; null if no time is known),
inputs, target, metadata, evidence. Linked sets add `frames`: {video: path relative to the data root, indices}, to be
cast to `VideoFrames`. Frozen sets add `images`, the model's input as encoded pictures (JPEG for frames, PNG for
overlays). For programs without this package, frozen sets also add the question of a run with default options
(`question_columns`). Examples are not made from these columns or from times, so neither wording nor files are part of a
set's identity.

Scoring and reporting read no pictures. So the Parquet files of a folder that `build` made are read column by column.
`datasets` is used only for pictures, since it copies a set into its cache before it returns a row. Files are not
trusted: only the columns of examples are read, within a size limit.
"""

from __future__ import annotations

import glob
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks import get_benchmark, task_class
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example, FrameRef
from barista_bench.core.frozen_lines import MAX_FRAMES
from barista_bench.core.task import Task
from barista_bench.data.dataset_cache import (
    load_cached,
    reading_datasets,
    refuse_uncached_name,
    refuse_unknown_name,
    warn_of_other_entries,
)
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import DATASET

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features

FramesMode = Literal["frozen", "linked"]
MAX_COLUMNS = 2**29
"""Maximum number of bytes, before compression, of all columns except pictures: a hundred times the published sets."""
_SHARD = re.compile(r"(.+)-(\d+)-of-(\d+)\.parquet")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FIELDS = ("example_id", "benchmark", "task", "label", "inputs", "target", "metadata", "evidence")
"""Fields of an example that have a column of the same name."""
_COLUMNS = {
    *(*_FIELDS, "position", "task_version", "video_id", "video_sha256", "frame_indices", "frame_seconds", "frames")
}
"""All columns except pictures."""


def row_features(task: Task, frames: FramesMode) -> Features:
    from datasets import Features, Image, List, Value

    text, number = Value("string"), Value("int32")
    linked_columns = {"frames": {"video": text, "indices": List(number)}}
    frozen_columns = {
        "images": List(Image()),
        "messages": List({"role": text, "content": List({"type": text, "text": text})}),
        **dict.fromkeys(("answer", "prompt_set", "box_format"), text),
    }
    features = task.features()
    features["metadata"] = {**features["metadata"], **dict.fromkeys(task.example_options, text)}
    return Features(
        {
            "position": number,
            **dict.fromkeys(("example_id", "benchmark", "task"), text),
            "task_version": number,
            **dict.fromkeys(("label", "video_id", "video_sha256"), text),
            "frame_indices": List(number),
            "frame_seconds": List(Value("float64")),
            **(linked_columns if frames == "linked" else frozen_columns),
            **features,
        }
    )


def to_row(
    example: Example, position: int, video_sha256: str, seconds: NDArray[np.float64] | None = None
) -> dict[str, Any]:
    """Return the columns common to frozen and linked sets.

    Args:
        seconds: seconds of each frame of the video after the first frame; None, or NaN, if no time is known.
    """
    indices = [frame.frame_index for frame in example.frames]
    moments = None
    if seconds is not None and max(indices) < len(seconds) and not np.isnan(seconds[indices]).any():
        moments = seconds[indices].tolist()
    return {
        **{name: getattr(example, name) for name in _FIELDS},
        "position": position,
        "task_version": task_class(example.benchmark, example.task).version,
        "video_id": example.video_id,
        "video_sha256": video_sha256,
        "frame_indices": indices,
        "frame_seconds": moments,
    }


def question_columns(task: Task, example: Example) -> dict[str, Any]:
    """Return the example's first question, and the oracle's answer, which is None if the reference is hidden.

    `prompt_set` names the wording, and `box_format` the form of boxes in question and answer. For a task with follow-up
    questions (`follow_up`), the answer belongs to the last question.
    """
    return {
        "messages": task.prompt(example, DEFAULT_BOX_FORMAT).messages(),
        "answer": task.reference_answer(example, DEFAULT_BOX_FORMAT) if task.has_answer(example) else None,
        "prompt_set": task.prompts.wording,
        "box_format": str(DEFAULT_BOX_FORMAT),
    }


def linked_frames(example: Example) -> dict[str, Any]:
    """Return the `frames` column of a linked set."""
    video = get_benchmark(example.benchmark).video_file(example.video_id)
    return {"video": video, "indices": [frame.frame_index for frame in example.frames]}


class BuiltRow(msgspec.Struct):
    """The columns of a row from which its example is made."""

    example_id: str
    benchmark: str
    task: str
    label: str
    video_id: str
    frame_indices: Annotated[list[int], msgspec.Meta(min_length=1, max_length=MAX_FRAMES)]
    inputs: dict[str, Any]
    target: dict[str, Any]
    metadata: dict[str, Any]
    evidence: dict[str, Any]


EXAMPLE_COLUMNS = {*BuiltRow.__struct_fields__, "task_version"}
"""All columns that opening an example reads."""


def from_row(row: Mapping[str, Any]) -> Example:
    """Return the example of a row. Raises ValueError if a column is missing or has another type."""
    built = msgspec.convert(row, BuiltRow)
    frames = tuple(FrameRef(built.video_id, index) for index in built.frame_indices)
    return Example(frames=frames, **{name: getattr(built, name) for name in _FIELDS})


class BuiltRows:
    """The rows of a built config.

    `columns` has all columns except pictures, with one row per example, in the sampled order.

    Args:
        columns: columns of every stored row, including linked frames.
        order: places of the rows, in the sampled order.
        open_pictures: opens the stored rows with their `images`, in Arrow format.
    """

    def __init__(self, columns: pa.Table, order: pa.UInt64Array, open_pictures: Callable[[], datasets.Dataset]) -> None:
        self.columns, self._places = columns.take(order), order.to_pylist()
        self.is_linked = "frames" in columns.column_names
        self._open, self._lock = open_pictures, Lock()
        self._pictures: datasets.Dataset | None = None

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        """Return one row with its media, which are not decoded.

        Raises:
            DataError: the rows cannot be opened or have changed.
        """
        row: Mapping[str, Any] = self.columns.slice(index, 1).to_pylist()[0]
        if self.is_linked:
            return row
        with self._lock:  # several threads fetch frames
            if self._pictures is None:
                self._pictures = self._open()
        if "images" not in self._pictures.column_names:
            raise DataError(f"{row['example_id']}: neither images nor frames. Fix: build the dataset again")
        place = self._places[index]
        picture_rows = self._pictures[place].to_pylist() if place < len(self._pictures) else []
        if not picture_rows or picture_rows[0].get("example_id") != row["example_id"]:
            raise DataError(f"{row['example_id']}: the dataset was changed while it was read. Fix: start again")
        return {**row, "images": picture_rows[0]["images"]}


def open_rows(data: str | Path, config: str, split: str, limit: int | None, *, fetch: bool = True) -> BuiltRows:
    """Open the rows of a folder that `build` made, of a name in the `datasets` cache or, with `fetch`, of a Hub
    dataset.

    Raises:
        DataError, ConfigError: there is no such dataset, config or split.
    """
    where = f"{data}/{config}"
    if not (Path(data) / DATASET.manifest).is_file():
        stored_rows = _load_rows(data, config, split, fetch=fetch)
        columns = stored_rows.select_columns([name for name in stored_rows.column_names if name in _COLUMNS])[:]
        order = _sampled_order(columns, where)[:limit]
        return BuiltRows(columns, order, lambda: stored_rows)
    files = _split_files(Path(data), config, split)
    columns = _read_columns(files, where)
    order = _sampled_order(columns, where)[:limit]
    return BuiltRows(columns, order, lambda: _open_pictures(files, where))


def local_splits(folder: Path) -> dict[str, set[str]]:
    """Return the splits of each config of a folder that `build` made."""
    folders = (path for path in sorted(folder.iterdir()) if path.is_dir())
    return {path.name: splits for path in folders if (splits := {split for split, _ in _shards(path)})}


def video_hashes(folder: Path, configs: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Return the SHA-256 of each video by split and video id.

    `configs` are configs of a folder that `build` made; by default all.

    Raises:
        DataError: there is no such folder or config, a row names no video, or a video has two hashes.
    """
    pairs: dict[str, list[tuple[object, object]]] = defaultdict(list)
    tables = [(config, split) for config in configs or local_splits(folder) for split, _ in _shards(folder / config)]
    if not tables:
        raise DataError(f"{folder}: no rows of {', '.join(configs) or 'any config'}. Fix: run `barista-bench build`")
    for config, split in dict.fromkeys(tables):
        columns = _read_columns(_split_files(folder, config, split), f"{folder}/{config}")
        if "example_id" in columns.column_names:  # graph tables have no hashes, since examples list their videos
            pairs[split] += hash_columns(columns, f"{folder}/{config}")
    return {split: hash_by_video(split_pairs, str(folder)) for split, split_pairs in pairs.items()}


def hash_columns(columns: pa.Table, where: str) -> Iterator[tuple[object, object]]:
    """Return the unchecked id and SHA-256 of the video of each row. Raises DataError if there is no such column."""
    names = ("video_id", "video_sha256")
    if missing := set(names).difference(columns.column_names):
        raise DataError(f"{where}: has no column {min(missing)}. Fix: build the dataset again")
    return zip(*(columns[name].to_pylist() for name in names), strict=True)


def hash_by_video(pairs: Iterable[tuple[object, object]], where: str) -> dict[str, str]:
    """Return the SHA-256 of each video. Raises DataError if a video has no hash or two hashes."""
    hashes: dict[str, str] = {}
    for video, sha256 in pairs:
        is_hash = isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None
        if not isinstance(video, str) or not is_hash or hashes.setdefault(video, str(sha256)) != sha256:
            complaint = f"video_sha256: video {video!r} has no SHA-256 in a row, or two"
            raise DataError(f"{where}: {complaint}. Fix: build the dataset again")
    return hashes


def _shards(folder: Path) -> list[tuple[str, Path]]:
    """Return each split and file, sorted by file name. Raises DataError if a file of a split is missing."""
    shards: list[tuple[str, Path]] = []
    numbers: dict[tuple[str, int], set[int]] = defaultdict(set)
    for path in sorted(folder.glob("*.parquet")):
        if match := _SHARD.fullmatch(path.name):
            shards.append((match[1], path))
            numbers[match[1], int(match[3])].add(int(match[2]))
    for (split, count), present in numbers.items():
        if present != set(range(count)):
            raise DataError(f"{folder}: {len(present)} of {count} files of {split} are here. Fix: fetch them all")
    return shards


def _split_files(folder: Path, config: str, split: str) -> list[Path]:
    """Return the Parquet files of one split or of all splits."""
    shards = _shards(folder / config)
    if not shards:
        raise DataError(f"{folder}: no config {config!r}. Fix: run `barista-bench build`")
    _refuse_unknown_split(f"{folder}/{config}", split, list(dict.fromkeys(name for name, _ in shards)))
    return [path for name, path in shards if split in ("all", name)]


def _read_columns(files: Sequence[Path], where: str) -> pa.Table:
    """Return every available column of `_COLUMNS`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables, size = [], 0
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                names = [name for name in file.schema_arrow.names if name in _COLUMNS]
                if len(set(names)) < len(names):
                    raise DataError(f"{path}: has a column twice. Fix: build the dataset again")
                size += _size(file, names)
                if size > MAX_COLUMNS:
                    raise DataError(f"{where}: over {MAX_COLUMNS} bytes without pictures. Fix: build fewer examples")
                tables.append(file.read(names, use_threads=False))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise DataError(f"{path}: cannot be read ({error}). Fix: build the dataset again") from error
    try:
        return pa.concat_tables(tables)
    except pa.ArrowException as error:
        raise DataError(f"{where}: its files differ ({error}). Fix: build it again") from error


def _size(file: pq.ParquetFile, names: Collection[str]) -> int:
    """Return the size in bytes of these columns before compression."""
    groups = (file.metadata.row_group(index) for index in range(file.metadata.num_row_groups))
    return sum(
        column.total_uncompressed_size
        for group in groups
        for column in (group.column(index) for index in range(group.num_columns))
        if column.path_in_schema.partition(".")[0] in names
    )


def _sampled_order(columns: pa.Table, where: str) -> pa.UInt64Array:
    """Return the places of the rows, sorted by position in the sampled order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "position" not in columns.column_names:
        raise DataError(
            f"{where}: has no column position. Fix: name a dataset that `build` wrote; it makes one of a release"
        )
    positions = columns["position"]
    if not pa.types.is_integer(positions.type) or positions.null_count:
        raise DataError(f"{where}: position is {positions.type}, or missing in a row. Fix: build it again")
    return pc.array_sort_indices(positions.combine_chunks())  # equal positions keep their order


def _open_pictures(files: Sequence[Path], where: str) -> datasets.Dataset:
    """Open the ids and pictures of these files, in order and in Arrow format, in which images stay encoded.

    This opens the files, not the folder with its card. For a folder, `datasets` could return cached data of other files
    that look the same.
    """
    import datasets

    names = [glob.escape(str(path.resolve())) for path in files]
    with reading_datasets(f"{where}: its pictures cannot be read", "build it again"):
        return datasets.Dataset.from_parquet(names).with_format("arrow")


def _load_rows(data: str | Path, config: str, split: str, *, fetch: bool) -> datasets.Dataset:
    """Load rows of the `datasets` cache or the Hub in Arrow format. Nothing is decoded, and images stay bytes."""
    import datasets

    if fetch:
        refuse_unknown_name(data)
    with reading_datasets(f"{data}: no config {config!r}", "run `barista-bench build`"):
        if not fetch:
            refuse_uncached_name(str(data))
        if not Path(data).exists():
            warn_of_other_entries(str(data), [config])
        loaded = datasets.load_dataset(str(data), config) if fetch else load_cached(str(data), config)
    _refuse_unknown_split(f"{data}/{config}", split, list(loaded))
    names = list(loaded) if split == "all" else [split]
    return datasets.concatenate_datasets([loaded[name] for name in names]).with_format("arrow")


def _refuse_unknown_split(where: str, split: str, splits: list[str]) -> None:
    if split != "all" and split not in splits:
        raise ConfigError(f"{where}: no split {split!r}. Fix: use --split all, or one of {', '.join(splits)}")
