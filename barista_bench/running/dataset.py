"""Examples of a built config with their media, whichever way it holds them."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from barista_bench.builders.card import MANIFEST, read_manifest
from barista_bench.builders.folder import quiet_datasets
from barista_bench.builders.frozen import content_hash
from barista_bench.builders.rows import from_row
from barista_bench.errors import ConfigError, DataError
from barista_bench.frames import LazyFrames
from barista_bench.task import Example, Task

MAX_IMAGE_PIXELS = 64_000_000
"""Pixels of one stored image that are decoded; more is refused, since a small file can claim to be huge."""


@dataclass(frozen=True, slots=True)
class Item:
    """One example and where its media lie. `media_digest` identifies their content without decoding them."""

    example: Example
    media: LazyFrames | tuple[bytes, ...]
    media_digest: str

    def images(self, task: Task) -> tuple[Image.Image, ...]:
        """What the model sees, as RGB images.

        Raises:
            DataError: a frame or an image cannot be decoded.
        """
        if isinstance(self.media, LazyFrames):
            return task.images(self.example, list(self.media.array()))
        return tuple(_decode(data, self.example.example_id) for data in self.media)


class ExampleSet:
    """A config's examples, decoded when asked for. `content_hash` is the SHA-256 of their frozen lines.

    Args:
        data: a folder made by `build`, the name in the `datasets` cache (`barista`), or a Hub dataset id.
        config: the config's name.
        split: `train`, `test`, or `all` for both (what the published numbers use).
        root: folder that linked videos are relative to; None takes the one recorded by `build`.
        limit: only the first so many examples, in the frozen order.

    Raises:
        DataError, ConfigError: there is no such dataset, config or split.
    """

    def __init__(
        self,
        data: str | Path,
        config: str,
        *,
        split: str = "all",
        root: str | Path | None = None,
        limit: int | None = None,
    ) -> None:
        import datasets

        with quiet_datasets():
            try:
                loaded = datasets.load_dataset(str(data), config)
            except (
                ValueError,
                FileNotFoundError,
                ConnectionError,
                datasets.exceptions.DatasetsError,
            ) as error:
                raise DataError(f"{data}: no config {config!r} ({error}). Remedy: run `barista-bench build`") from error
        names = list(loaded) if split == "all" else [split]
        if any(name not in loaded for name in names):
            raise ConfigError(f"{data}/{config}: no split {split!r}. Remedy: use one of all, {', '.join(loaded)}")
        # Arrow rows: nothing is decoded, images stay the bytes that they are.
        rows = datasets.concatenate_datasets([loaded[name] for name in names]).with_format("arrow")
        drawn_order = np.argsort(rows["position"][:].to_numpy(), kind="stable")
        self._rows = rows.select(drawn_order[:limit])
        self.split = split
        self._linked = "frames" in rows.column_names
        self._root = _data_root(data, root) if self._linked else None
        columns = self._rows.remove_columns(["frames" if self._linked else "images"])
        self.examples = tuple(from_row(row) for table in columns.iter(256) for row in table.to_pylist())
        self.content_hash = content_hash(self.examples)

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> Item:
        return self._item(self._rows[index].to_pylist()[0], self.examples[index])

    def __iter__(self) -> Iterator[Item]:
        return (self[index] for index in range(len(self)))

    def _item(self, row: Mapping[str, Any], example: Example) -> Item:
        if self._linked:
            identity = [row["video_sha256"], row["frames"]["indices"], example.inputs]
            digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
            return Item(example, LazyFrames(**row["frames"], root=str(self._root)), digest)
        media = tuple(image["bytes"] for image in row["images"])
        digests = [hashlib.sha256(data).hexdigest() for data in media]
        return Item(example, media, hashlib.sha256(json.dumps(digests).encode()).hexdigest())


def _data_root(data: str | Path, root: str | Path | None) -> Path:
    if root is not None:
        return Path(root)
    if not (Path(data) / MANIFEST).is_file():
        raise ConfigError(f"{data}: its frames are linked to videos. Remedy: say where they lie with --root")
    return Path(os.path.normpath(Path(data).resolve() / read_manifest(data)["data_root"]))


def _decode(data: bytes, example_id: str) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG"))
        if image.width * image.height > MAX_IMAGE_PIXELS:
            raise DataError(f"{example_id}: image of {image.width}x{image.height} pixels refused. Remedy: build again")
        return image.convert("RGB")
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{example_id}: stored image is damaged ({error}). Remedy: build the dataset again") from error
