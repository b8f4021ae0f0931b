"""Dataset rows that point at frames of videos, and decode them only when pixels are asked for.

A published row holds plain data, `{"video": "kitchen/012.mp4", "indices": [0, 24, 48]}`. `link_frames` turns such a
column into `LazyFrames`, with the videos looked for under `root`. Publish the dataset as it was before: the feature
type `VideoFrames` cannot be loaded where this package is not imported.

    dataset = link_frames(load_dataset("org/barista", "relations", split="test"), root="videos")
    frames = dataset[0]["frames"]          # nothing decoded yet
    frames.array()                         # uint8 RGB, shape (3, H, W, 3)
"""

import os
import threading
import warnings
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import numpy as np
import pyarrow as pa
from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict, List, Value, formatting
from datasets.features.features import register_feature
from datasets.table import array_cast
from numpy.typing import DTypeLike, NDArray

from barista_bench.errors import DataError, VideoError
from barista_bench.files.reading import confined
from barista_bench.media.video import read_frames
from barista_bench.media.video.readers import Images

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage

AnyDataset = TypeVar("AnyDataset", Dataset, DatasetDict, IterableDataset, IterableDatasetDict)

_decoded = 0
_count_lock = threading.Lock()
os.register_at_fork(after_in_child=lambda: _renew_lock())


class LazyFrames:
    """Frames of one video, in order, decoded at each request and not kept: hold on to `array()` to use it twice.

    A sequence of images and, for `datasets`, also a mapping of its two fields, so that `map` writes it back as plain
    `video` and `indices` without decoding. Immutable; equal where video, indices and root are equal.
    """

    __slots__ = ("backend", "indices", "root", "video")

    def __init__(self, video: str, indices: Sequence[int], *, root: str | None = None, backend: str = "auto") -> None:
        """`video`: path, relative to `root` where one is given. `indices`: frame numbers from 0. Opens nothing."""
        self.video = video
        self.indices = tuple(int(index) for index in indices)
        self.root = root
        self.backend = backend

    @property
    def path(self) -> str:
        """Path of the video. Raises VideoError where it leads outside the root."""
        return resolve_video(self.video, self.root)

    def array(self) -> Images:
        """Decode all: uint8 RGB, shape (n, H, W, 3), x right, y down. Raises VideoError."""
        return self._decode(self.indices)

    def to_pil(self) -> "list[PilImage]":
        """Decode all into RGB Pillow images. Raises VideoError."""
        from PIL import Image

        return [Image.fromarray(image) for image in self.array()]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("frames are decoded into new memory; copy=False cannot be met")
        return self.array().astype(dtype or np.uint8, copy=False)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Images]:
        return iter(self.array())

    @overload
    def __getitem__(self, key: int) -> Images: ...
    @overload
    def __getitem__(self, key: slice) -> "LazyFrames": ...
    @overload
    def __getitem__(self, key: str) -> str | list[int]: ...
    def __getitem__(self, key: int | slice | str) -> "Images | LazyFrames | str | list[int]":
        """An int decodes that one image (H, W, 3); a slice stays lazy; "video" and "indices" are the fields."""
        if isinstance(key, str):
            return self._fields()[key]
        if isinstance(key, slice):
            return LazyFrames(self.video, self.indices[key], root=self.root, backend=self.backend)
        image: Images = self._decode((self.indices[key],))[0]
        return image

    def keys(self) -> tuple[str, str]:
        """Names of the fields, as a mapping has them."""
        return ("video", "indices")

    def items(self) -> ItemsView[str, str | list[int]]:
        """The two fields, as a mapping has them."""
        return self._fields().items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyFrames) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.indices[:4])) + (", ..." if len(self) > 4 else "")
        return f"LazyFrames({self.video!r}, [{shown}], {len(self)} frames)"

    def _fields(self) -> dict[str, str | list[int]]:
        return {"video": self.video, "indices": list(self.indices)}

    def _key(self) -> tuple[str, tuple[int, ...], str | None]:
        return self.video, self.indices, self.root

    def _decode(self, indices: tuple[int, ...]) -> Images:
        global _decoded
        images = read_frames(self.path, indices, backend=self.backend)
        with _count_lock:
            _decoded += len(indices)
        return images


Mapping.register(LazyFrames)


def resolve_video(video: str, root: str | None) -> str:
    """Absolute path of a video named in data.

    With a root, a relative path that stays inside it once links are followed (see `paths.confined`); without one,
    an absolute path. Raises VideoError.
    """
    if root is None:
        if not os.path.isabs(video):
            raise VideoError(f"{video!r}: a relative path without a root. Remedy: give the videos' folder: root=...")
        return video
    try:
        return str(confined(Path(root), video))
    except DataError as error:
        raise VideoError(f"video {video!r}: {error}") from error


def decode_count() -> int:
    """How many frames `LazyFrames` has decoded in this process."""
    return _decoded


def _renew_lock() -> None:
    global _count_lock
    _count_lock = threading.Lock()


@dataclass
class VideoFrames:
    """Feature of a `datasets` column: stored as {video: string, indices: list<int32>}, read as `LazyFrames`.

    `root`: folder of the videos. `backend`: see barista_bench.media.video. `decode=False` leaves the plain struct.
    A column that `map` creates is of this type only where `map` is given `features=`.
    """

    root: str | None = None
    backend: str = "auto"
    decode: bool = True
    id: str | None = field(default=None, repr=False)
    dtype: ClassVar[str] = "barista_bench.media.frames.LazyFrames"
    pa_type: ClassVar[pa.StructType] = pa.struct({"video": pa.string(), "indices": pa.list_(pa.int32())})
    _type: str = field(default="VideoFrames", init=False, repr=False)

    def __post_init__(self) -> None:
        if self.root is not None:
            self.root = os.path.abspath(os.fspath(self.root))

    def __call__(self) -> pa.StructType:
        return self.pa_type

    def encode_example(self, value: Mapping[str, Any] | LazyFrames) -> dict[str, str | list[int]]:
        """Plain fields of a `LazyFrames` or of a mapping {video, indices}. Raises DataError."""
        try:
            return {"video": str(value["video"]), "indices": [int(index) for index in value["indices"]]}
        except (KeyError, TypeError, ValueError, IndexError) as error:
            text = f"{value!r} is no reference to frames ({error})"
            raise DataError(f"{text}. Remedy: give {{'video': path, 'indices': [frame numbers]}}") from error

    def decode_example(
        self, value: Mapping[str, Any] | LazyFrames | None, token_per_repo_id: object = None
    ) -> LazyFrames | None:
        """The lazy frames of a stored struct; opens nothing."""
        del token_per_repo_id  # part of the interface of `datasets`
        if value is None or isinstance(value, LazyFrames):
            return value
        indices = value["indices"] if value["indices"] is not None else []
        return LazyFrames(value["video"], indices, root=self.root, backend=self.backend)

    def cast_storage(self, storage: pa.StructArray) -> pa.StructArray:
        """Arrow storage of a struct with the two fields, in any order and of any integer width. Raises DataError."""
        if not pa.types.is_struct(storage.type) or {f.name for f in storage.type} != {"video", "indices"}:
            raise DataError(
                f"a column of type {storage.type} cannot be linked. Remedy: give it the fields video and indices"
            )
        fields = [array_cast(storage.field(name), self.pa_type.field(name).type) for name in ("video", "indices")]
        return pa.StructArray.from_arrays(fields, fields=list(self.pa_type), mask=storage.is_null())

    def flatten(self) -> "VideoFrames | dict[str, Value | List]":
        """What the column becomes in `Dataset.flatten`."""
        return self if self.decode else plain_feature()


with warnings.catch_warnings():  # it says that registering features is experimental; tests hold what we use of it
    warnings.simplefilter("ignore", UserWarning)
    register_feature(VideoFrames, "VideoFrames")


class _AsPictures:
    """Makes a tensor format take frames as it takes stored pictures: torch has them channel-first, all keep uint8."""

    def _recursive_tensorize(self, value: object) -> object:
        pictures = value.to_pil() if isinstance(value, LazyFrames) else value
        return super()._recursive_tensorize(pictures)  # type: ignore[misc]


for _name in ("torch", "numpy"):  # of libraries that are not installed there is none
    if _name in formatting._FORMAT_TYPES:
        _formatter = formatting._FORMAT_TYPES[_name]
        formatting._FORMAT_TYPES[_name] = type(_formatter.__name__, (_AsPictures, _formatter), {})


def plain_feature() -> dict[str, Value | List]:
    """The feature that published files hold in place of `VideoFrames`."""
    return {"video": Value("string"), "indices": List(Value("int32"))}


def link_frames(
    dataset: AnyDataset,
    column: str = "frames",
    *,
    root: str | os.PathLike[str] | None = None,
    backend: str = "auto",
) -> AnyDataset:
    """Read a column of {video, indices} structs, or of lists of them, as `LazyFrames`. Decodes nothing.

    Relative paths of videos are looked for under `root` and must stay inside it. Raises DataError where the
    column is missing or of another type.
    """
    feature = VideoFrames(root=None if root is None else os.fspath(root), backend=backend)
    features = _features(dataset)
    if column not in features:
        raise DataError(f"no column {column!r} to link. Remedy: choose one of {', '.join(features)}")
    return dataset.cast_column(column, _linked(features[column], feature, column))


def _features(dataset: Dataset | DatasetDict | IterableDataset | IterableDatasetDict) -> Features:
    if isinstance(dataset, dict):
        dataset = next(iter(dataset.values()))
    if dataset.features is None:
        raise DataError("a stream whose features are unknown cannot be linked. Remedy: give it features=")
    return dataset.features


def _linked(feature: object, target: VideoFrames, column: str) -> VideoFrames | List:
    if isinstance(feature, List):
        return List(_linked(feature.feature, target, column), length=feature.length)
    if isinstance(feature, VideoFrames) or (isinstance(feature, dict) and set(feature) == {"video", "indices"}):
        return target
    raise DataError(f"column {column!r} is {feature}. Remedy: link one that holds {{video, indices}}")
