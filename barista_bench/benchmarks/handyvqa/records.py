"""Define the records in the files of a HanDyVQA release, with the limits of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from barista_bench.benchmarks.release_records import MAX_RECORD

TEST = "test"
"""The split of records that name none."""
MAX_OPTIONS = 1000
"""Maximum number of options. The benchmark has 5 to 11, and answers can name only the first 26, by letters."""
MAX_ANNOTATED = 1000
"""Maximum number of annotated frames of one clip; the benchmark has about three."""

Text = Annotated[str, Meta(min_length=1, max_length=10_000)]
Line = Annotated[str, Meta(max_length=10_000)]
Index = Annotated[int, Meta(ge=0, lt=MAX_OPTIONS)]
AnyIndex = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
FrameNumber = Annotated[int, Meta(ge=0, lt=2**40)]
Second = Annotated[float, Meta(ge=0, le=10**7)]


class ClipRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A clip: the part of a video within 2.5 s of `centre_seconds`, or a complete video or folder of frames.

    `fps` is needed for a folder from which `centre_seconds` selects a part.
    """

    video: Text | None = None
    frames: Text | None = None
    centre_seconds: Second | None = None
    fps: Annotated[float, Meta(gt=0, le=1000)] | None = None


class RunLengths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compressed COCO run lengths; `size` is [height, width] in pixels."""

    size: tuple[Annotated[int, Meta(ge=1, le=8192)], Annotated[int, Meta(ge=1, le=8192)]]
    counts: Annotated[str, Meta(min_length=1, max_length=MAX_RECORD)]


class TargetRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mask of one right option on one frame."""

    option: Index
    segmentation: RunLengths


class AnnotatedRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One annotated frame, by its number in the video or folder, or by its second. No targets: nothing is visible."""

    frame: FrameNumber | None = None
    second: Second | None = None
    targets: Annotated[list[TargetRecord], Meta(max_length=MAX_OPTIONS)] = []


class ItemRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One question. Other keys are ignored: the public files also contain a model's output."""

    # The released script scores records with any texts and right options. Two public records have a blank option.
    question: Line | None = None
    options: Annotated[list[Line], Meta(min_length=1, max_length=MAX_OPTIONS)]
    correct_idx: Annotated[list[AnyIndex], Meta(max_length=MAX_OPTIONS)]
    id: Text | None = None
    category: str | None = None
    clip: ClipRecord | None = None
    split: Text = TEST
    scenario: Text | None = None
    annotated: Annotated[list[AnnotatedRecord], Meta(max_length=MAX_ANNOTATED)] = []


RecordT = TypeVar("RecordT", bound=ItemRecord)
RecordT_co = TypeVar("RecordT_co", bound=ItemRecord, covariant=True)


@dataclass(frozen=True, slots=True)
class RecordInFile(Generic[RecordT_co]):
    """One record and its place: `file` relative to the folder that is read, `key` in the file, and `row` from 0.

    `is_released` means that the record contains a model's output. Every public file of the benchmark contains such an
    output. Users' questions do not.
    """

    item_id: str
    category: str
    content: RecordT_co
    file: str
    key: str
    row: int
    is_released: bool
