"""Open the examples of a dataset with their media, in any form."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from barista_bench.benchmarks import get_benchmark, task_class
from barista_bench.core.example import Example
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.guarding import guard
from barista_bench.core.task import Task
from barista_bench.data.arrow_values import Texts, json_values
from barista_bench.data.dataset_cache import reading_datasets, refuse_unknown_name
from barista_bench.data.frozen import content_hash, read_frozen, refuse_other_version
from barista_bench.data.loaded_example import LinkedMedia, LoadedExample
from barista_bench.data.manifest import MANIFEST, read_manifest
from barista_bench.data.rows import EXAMPLE_COLUMNS, from_row, hash_by_video, hash_columns, local_splits, open_rows
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.media.video.readers import video_facts

MAX_SECOND = 1e8
"""Maximum number of seconds of a video that a row may claim: three years."""
ROWS_AT_ONCE = 1000
"""Number of rows that are converted to examples at once."""


class ExampleSet(ABC):
    """Examples with their media.

    `content_hash` is the SHA-256 of the examples' frozen lines, and `split` is the selected split.

    `is_linked` is True if the media are frames of video files, and False if they are stored pictures. `place` is the
    folder that `build` wrote; it need not exist, and is None for a frozen file.
    """

    is_linked = True
    place: Path | None = None

    def __init__(self, examples: Sequence[Example], split: str) -> None:
        self.examples = tuple(examples)
        self.split = split
        repeated = [name for name, count in Counter(e.example_id for e in self.examples).items() if count > 1]
        if repeated:
            raise DataError(f"example {repeated[0]!r} appears in the dataset twice. Fix: build it again")
        self.content_hash = content_hash(self.examples)

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[LoadedExample]:
        return (self[index] for index in range(len(self)))

    @abstractmethod
    def __getitem__(self, index: int) -> LoadedExample:
        """Return the example at `index` of `examples`. The media are read but not decoded."""

    def media_digest(self, index: int, *, linked: bool) -> str:
        """Return `LoadedExample.media_digest` of the example as it would be in a linked or in a frozen set.

        Raises:
            DataError: the media cannot be read, or this set is linked and `linked` is False.
        """
        if linked == self.is_linked:
            return self[index].media_digest
        if not linked:
            raise DataError("a linked set holds no pictures. Fix: build it with --frames frozen")
        example = self.examples[index]
        return _linked_digest(self._hashes[example.video_id], [frame.frame_index for frame in example.frames], example)

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return self.video_hashes()

    def frame_times(self, index: int, task: Task) -> FrameTimes | None:
        """Return the times of the example's images, from the example or else from its media; None if neither has times.

        `core/frame_times.py` describes the way of these times to a model.

        Raises:
            DataError: the media cannot be read.
            TaskError: the task raised.
        """
        example = self.examples[index]
        with guard(task, "frame_times", example):
            times, image_frames = task.frame_times(example), task.image_frames(example)
        times = times or self.media_times(index)
        return times and times.of_images(image_frames)

    @abstractmethod
    def media_times(self, index: int) -> FrameTimes | None:
        """Return the times of the example's frames, as its media give them."""

    @abstractmethod
    def video_hashes(self) -> dict[str, str]:
        """Return the SHA-256 of each video of the examples, by video id. Raises DataError if a video is missing."""


def open_examples(
    data: str | Path,
    benchmark: str,
    config: str,
    *,
    split: str = "all",
    root: str | Path | None = None,
    limit: int | None = None,
    fetch: bool = True,
) -> ExampleSet:
    """Open the examples of a dataset.

    Args:
        data: a folder made by `build`, the name in the `datasets` cache (`barista`), a Hub dataset id, or a frozen
            JSONL file (ours or the release's), which needs `root`.
        benchmark: the benchmark's name.
        config: the config's name.
        split: such as `train` or `test`, or `all` for all splits, which the published scores use.
        root: folder of the videos of a frozen file or a linked set; None uses the folder recorded by `build`.
        limit: number of examples to open, from the first in the frozen order.
        fetch: whether a request to the Hub for `data`, and a search in a folder that `build` did not make, are allowed.
            Use False if `data` comes from a run folder, which may be untrusted.

    Raises:
        DataError, ConfigError: there is no such dataset, config or split.
    """
    if Path(data).suffix == ".jsonl" and Path(data).is_file():
        return FrozenExamples(Path(data), benchmark, config, split, root, limit)
    return BuiltExamples(data, benchmark, config, split, root, limit, fetch=fetch)


def config_names(data: str | Path) -> tuple[str, ...]:
    """Return the configs of a dataset.

    Raises:
        ConfigError: `data` is a file, since a file has only one task.
        DataError: there is no such dataset.
    """
    import datasets

    if Path(data).is_file():
        raise ConfigError(f"{data}: is a file of one task. Fix: name the task with --task")
    if (Path(data) / MANIFEST).is_file():
        return tuple(local_splits(Path(data)))
    refuse_unknown_name(data)
    with reading_datasets(f"{data}: no dataset here", "run `barista-bench build`"):
        return tuple(datasets.get_dataset_config_names(str(data)))


class FrozenExamples(ExampleSet):
    """Examples of a frozen JSONL file. Frames are decoded from the videos below `root`.

    Without `root`, you can score the examples but not run a model.
    """

    def __init__(
        self, path: Path, benchmark: str, config: str, split: str, root: str | Path | None, limit: int | None
    ) -> None:
        examples = list(read_frozen(path, benchmark, root=root))
        if examples and examples[0].task != config:
            raise ConfigError(f"{path}: holds {examples[0].task}, not {config}. Fix: say --task {examples[0].task}")
        if split != "all":
            examples = [example for example in examples if example.metadata.get("split") == split]
        if not examples:
            raise ConfigError(f"{path}: no example of split {split!r}. Fix: use --split all")
        super().__init__(examples[:limit], split)
        self.path, self.root = path, root

    def __getitem__(self, index: int) -> LoadedExample:
        example = self.examples[index]
        if self.root is None:
            raise ConfigError(f"{self.path}: its videos are needed. Fix: say with --root where they lie")
        file = get_benchmark(example.benchmark).video_file(example.video_id)
        lazy = LazyFrames(file, [frame.frame_index for frame in example.frames], root=str(self.root))
        return _with_linked_media(example, lazy, video_sha256(Path(lazy.path)))

    def media_times(self, index: int) -> FrameTimes | None:
        example, media = self.examples[index], self[index].media
        assert isinstance(media, LinkedMedia)
        facts, indices = video_facts(media.lazy.path), [frame.frame_index for frame in example.frames]
        if not facts.has_times or max(indices) >= facts.frame_count:
            return None
        return FrameTimes.of_seconds(indices, facts.seconds[indices].tolist())

    def video_hashes(self) -> dict[str, str]:
        if self.root is None:
            raise DataError(f"{self.path}: its videos are needed. Fix: say with --root where they lie")
        videos = {example.video_id: get_benchmark(example.benchmark).video_file for example in self.examples}
        return {name: video_sha256(Path(self.root) / file(name)) for name, file in videos.items()}


class BuiltExamples(ExampleSet):
    """Examples of a built config, in a folder, an entry of the `datasets` cache, or a Hub dataset."""

    def __init__(
        self,
        data: str | Path,
        benchmark: str,
        config: str,
        split: str,
        root: str | Path | None,
        limit: int | None,
        *,
        fetch: bool = True,
    ) -> None:
        self._rows, self._where = open_rows(data, config, split, limit, fetch=fetch), f"{data}/{config}"
        self.place = Path(data)
        self.is_linked = self._rows.is_linked
        self._root = _video_root(data, root) if self.is_linked else None
        super().__init__(list(_examples(data, self._rows.columns, (benchmark, config))), split)
        self._rows.columns = self._rows.columns.drop_columns(["inputs", "target", "metadata", "evidence"])
        pa.default_memory_pool().release_unused()

    def __getitem__(self, index: int) -> LoadedExample:
        row, example = self._rows[index], self.examples[index]
        if self._rows.is_linked:
            lazy = _lazy_frames(row.get("frames"), example, str(self._root))
            if not isinstance(sha256 := row.get("video_sha256"), str):
                raise DataError(f"{example.example_id}: video_sha256 is missing. Fix: build the dataset again")
            return _with_linked_media(example, lazy, sha256)
        images = row["images"] if isinstance(row["images"], list) else []
        files = [image.get("bytes") if isinstance(image, dict) else None for image in images]
        media = tuple(content for content in files if isinstance(content, bytes) and content)
        if not media or len(media) < len(images):
            raise DataError(f"{example.example_id}: a picture is missing. Fix: build the dataset again")
        digests = [hashlib.sha256(data).hexdigest() for data in media]
        return LoadedExample(example, media, hashlib.sha256(json.dumps(digests).encode()).hexdigest())

    def media_times(self, index: int) -> FrameTimes | None:
        if "frame_seconds" not in self._rows.columns.column_names:  # true if another program made the set
            return None
        example, seconds = self.examples[index], self._rows.columns["frame_seconds"][index].as_py()
        if seconds is None:
            return None
        try:
            moments = msgspec.convert(seconds, list[Annotated[float, msgspec.Meta(ge=0, lt=MAX_SECOND)]])
            return FrameTimes.of_seconds([frame.frame_index for frame in example.frames], moments)
        except ValueError as error:
            complaint = f"{example.example_id}: frame_seconds are no times of its frames ({error})"
            raise DataError(f"{complaint}. Fix: build the dataset again") from error

    def video_hashes(self) -> dict[str, str]:
        return hash_by_video(hash_columns(self._rows.columns, self._where), self._where)


def _examples(data: str | Path, columns: pa.Table, task_key: tuple[str, str]) -> Iterator[Example]:
    """Yield rows as examples of a benchmark and task (`task_key`). Every row is checked.

    Raises:
        DataError: a row is broken, or belongs to another benchmark or task.
    """
    task = task_class(*task_key)
    for number, row in enumerate(_json_rows(data, columns)):
        try:
            example = from_row(row)
        except ValueError as error:
            raise _broken_row(data, number, row.get("example_id"), error) from error
        if (example.benchmark, example.task) != task_key:
            raise DataError(
                f"{data}: row {number} ({example.example_id!r}) is of {example.benchmark}/{example.task}, not of "
                f"{'/'.join(task_key)}. Fix: name the benchmark and the task that this dataset is of"
            )
        try:
            refuse_other_version(row.get("task_version"), task)
        except DataError as error:
            raise DataError(f"{data}: {error}") from error
        yield example


def _json_rows(data: str | Path, columns: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield, for each row, the columns that make an example. Raises DataError for values that JSON does not have."""
    example_columns = columns.select([name for name in columns.column_names if name in EXAMPLE_COLUMNS])
    texts: Texts = {}
    rows_before = 0
    for batch in example_columns.to_batches(max_chunksize=ROWS_AT_ONCE):
        try:
            yield from json_values(batch.to_struct_array(), texts)
        except (TypeError, ValueError, OverflowError, pa.ArrowException):
            for number in range(batch.num_rows):  # find the broken row
                try:
                    json_values(batch.slice(number, 1).to_struct_array(), texts)
                except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
                    raise _broken_row(data, rows_before + number, _name_in(batch, number), error) from error
            raise
        rows_before += batch.num_rows


def _name_in(batch: pa.RecordBatch, number: int) -> object:
    """Return the id of a broken row, if the id can be read."""
    try:
        return batch.column("example_id")[number].as_py()
    except (KeyError, ValueError):
        return None


def _broken_row(data: str | Path, number: int, name: object, error: Exception) -> DataError:
    return DataError(f"{data}: row {number} ({name!r}): {error}. Fix: build the dataset again")


def _lazy_frames(frames: object, example: Example, root: str) -> LazyFrames:
    """Return the frames to which a row of a linked set refers."""
    indices = frames.get("indices") if isinstance(frames, dict) else None
    if not isinstance(frames, dict) or set(frames) != {"video", "indices"} or not isinstance(frames["video"], str):
        raise DataError(f"{example.example_id}: frames is not a video with indices. Fix: build the dataset again")
    if indices != [frame.frame_index for frame in example.frames]:
        raise DataError(f"{example.example_id}: frames and frame_indices differ. Fix: build the dataset again")
    return LazyFrames(frames["video"], indices, root=root)


def _with_linked_media(example: Example, lazy: LazyFrames, sha256: str) -> LoadedExample:
    """Return an example of a linked set."""
    return LoadedExample(example, LinkedMedia(lazy, sha256), _linked_digest(sha256, lazy.indices, example))


def _linked_digest(sha256: str, indices: Sequence[int], example: Example) -> str:
    """Return the digest of an example's pixels, which depend on the video's bytes, the frame indices and the drawn
    inputs.
    """
    identity = [sha256, list(indices), example.inputs]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def recorded_root(data: str | Path) -> Path | None:
    """Return the folder of the videos from which linked frames were built; None if it is not recorded.

    Raises DataError if `data` is not a built folder.
    """
    recorded = read_manifest(data).get("data_root")
    if not isinstance(recorded, str) or "\0" in recorded:
        return None
    return Path(os.path.normpath(Path(data).resolve() / recorded))


def _video_root(data: str | Path, root: str | Path | None) -> Path:
    if root is not None:
        return Path(root)
    if not (Path(data) / MANIFEST).is_file():
        raise ConfigError(f"{data}: its frames are linked to videos. Fix: say where they lie with --root")
    recorded = recorded_root(data)
    if recorded is None:
        raise ConfigError(f"{data}: does not say where its videos lie. Fix: say so with --root")
    return recorded
