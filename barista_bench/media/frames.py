"""Links dataset rows to frames of videos, and decodes the frames only when pixels are needed.

A published row holds plain data, `{"video": "kitchen/012.mp4", "indices": [0, 24, 48]}`. `link_frames` turns a column
of such rows into `LazyFrames` of the videos in the folder `root`. Publish the dataset in its plain form: a dataset with
the feature type `VideoFrames` can be loaded only if this package is imported.

    dataset = link_frames(load_dataset("org/barista", "relations", split="test"), root="videos")
    frames = dataset[0]["frames"]          # nothing decoded yet
    frames.array()                         # uint8 RGB, shape (3, H, W, 3)
"""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict, List, Value, formatting
from datasets.features.features import register_feature
from datasets.table import array_cast

from barista_bench.errors import DataError
from barista_bench.media.lazy_frames import LazyFrames

AnyDataset = TypeVar("AnyDataset", Dataset, DatasetDict, IterableDataset, IterableDatasetDict)


@dataclass
class VideoFrames:
    """Feature of a `datasets` column that is stored as {video: string, indices: list<int32>} and read as `LazyFrames`.

    `root` is the folder of the videos, and `backend` a backend of barista_bench.media.video. With `decode=False`,
    reading gives the plain struct. A column that `map` creates has this type only if you pass `features=` to `map`.
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
        """Return the plain fields of a `LazyFrames` or of a mapping {video, indices}. Raises DataError."""
        try:
            return {"video": str(value["video"]), "indices": [int(index) for index in value["indices"]]}
        except (KeyError, TypeError, ValueError, IndexError) as error:
            text = f"{value!r} is not a reference to frames ({error})"
            raise DataError(f"{text}. Fix: give {{'video': path, 'indices': [frame numbers]}}") from error

    def decode_example(
        self, value: Mapping[str, Any] | LazyFrames | None, token_per_repo_id: object = None
    ) -> LazyFrames | None:
        """Return the lazy frames of a stored struct, without opening a file."""
        del token_per_repo_id  # required by the interface of `datasets`
        if value is None or isinstance(value, LazyFrames):
            return value
        indices = value["indices"] if value["indices"] is not None else []
        return LazyFrames(value["video"], indices, root=self.root, backend=self.backend)

    def cast_storage(self, storage: pa.StructArray) -> pa.StructArray:
        """Cast a struct with the two fields, in any order and integer width, to this feature's Arrow storage.

        Raises DataError.
        """
        if not pa.types.is_struct(storage.type) or {f.name for f in storage.type} != {"video", "indices"}:
            raise DataError(
                f"a column of type {storage.type} cannot be linked. Fix: give it the fields video and indices"
            )
        fields = [array_cast(storage.field(name), self.pa_type.field(name).type) for name in ("video", "indices")]
        return pa.StructArray.from_arrays(fields, fields=list(self.pa_type), mask=storage.is_null())

    def flatten(self) -> "VideoFrames | dict[str, Value | List]":
        """Return the form of this column in `Dataset.flatten`."""
        return self if self.decode else plain_feature()


# The warning says that registering features is experimental; tests cover the parts that we use.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)
    register_feature(VideoFrames, "VideoFrames")


class _AsPictures:
    """Makes a tensor format treat frames like stored pictures: channel-first in torch, and uint8 in all formats."""

    def _recursive_tensorize(self, value: object) -> object:
        pictures = value.to_pil() if isinstance(value, LazyFrames) else value
        return super()._recursive_tensorize(pictures)  # type: ignore[misc]


for _name in ("torch", "numpy"):  # a library that is not installed has no formatter
    if _name in formatting._FORMAT_TYPES:
        _formatter = formatting._FORMAT_TYPES[_name]
        formatting._FORMAT_TYPES[_name] = type(_formatter.__name__, (_AsPictures, _formatter), {})


def plain_feature() -> dict[str, Value | List]:
    """Return the feature that replaces `VideoFrames` in published files."""
    return {"video": Value("string"), "indices": List(Value("int32"))}


def link_frames(
    dataset: AnyDataset, column: str = "frames", *, root: str | os.PathLike[str] | None = None, backend: str = "auto"
) -> AnyDataset:
    """Read a column of {video, indices} structs, or of lists of these structs, as `LazyFrames`; nothing is decoded.

    Relative paths of videos are resolved under `root` and must stay inside it. Raises DataError if the column is
    missing or has another type.
    """
    feature = VideoFrames(root=None if root is None else os.fspath(root), backend=backend)
    features = _features(dataset)
    if column not in features:
        raise DataError(f"no column {column!r} to link. Fix: choose one of {', '.join(features)}")
    return dataset.cast_column(column, _linked_feature(features[column], feature, column))


def _features(dataset: Dataset | DatasetDict | IterableDataset | IterableDatasetDict) -> Features:
    if isinstance(dataset, dict):
        dataset = next(iter(dataset.values()))
    if dataset.features is None:
        raise DataError("a stream whose features are unknown cannot be linked. Fix: give it features=")
    return dataset.features


def _linked_feature(feature: object, target: VideoFrames, column: str) -> VideoFrames | List:
    if isinstance(feature, List):
        return List(_linked_feature(feature.feature, target, column), length=feature.length)
    if isinstance(feature, VideoFrames) or (isinstance(feature, dict) and set(feature) == {"video", "indices"}):
        return target
    raise DataError(f"column {column!r} is {feature}. Fix: name a column with {{video, indices}}")
