"""Define the BARISTA release format, `<root>/<video_id>/{coco_annotation.json, video.mp4}`, as typed records.

These structures mirror the file one to one, including field names. The release has these conventions. Boxes are `[x, y,
width, height]` in pixels. Frame indices (`image_id`) count from 0. Masks are COCO run-length encodings of size
`[height, width]`. `object_id_to_category_id` has the categories of objects, not their annotations. Ranges are
`image_id_start`, `image_id_end`. This package reads ranges as half-open, unless a task says otherwise.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import yaml

from barista_bench.errors import DataError
from barista_bench.files.reading import load_yaml, read_bounded
from barista_bench.files.writing import write_whole

_REPLACEMENTS = {token: b'{"no number":"%s"}' % token for token in (b"NaN", b"Infinity", b"-Infinity")}
"""JSON that no typed field accepts, for numbers that are not finite."""
_NON_FINITE = re.compile(rb"NaN|Infinity|-Infinity")
_ESCAPED = re.compile(rb"\\.", re.DOTALL)

TERMS_FILE = "terms.yaml"
_MAX_TERMS = 2**20

ANNOTATION_FILE = "coco_annotation.json"
VIDEO_FILE = "video.mp4"

_CLASSES = uuid.uuid5(uuid.NAMESPACE_DNS, "mini.barista-bench")

MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Errors that msgspec raises for bytes that are not JSON, not UTF-8, nested too deeply, or of another type."""

MAX_FRAMES = 1_000_000
"""Maximum number of frames that a video may claim (over 9 hours at 30 fps). A video that claims more is refused."""
MAX_SIDE = 8192
"""Maximum number of pixels that a side of a video may claim."""
MAX_TEXT = 1000
"""Maximum number of characters of a name, a value or an id; the release has at most 60. Examples repeat these texts
thousands of times."""

FrameNumber = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
RangeEnd = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Coordinate = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] | float
PixelCount = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIDE)]
Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]


class ReleaseRecord(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Base of all records. Decoding refuses unknown fields; reading then keeps and reports them."""


class ReleaseVideo(ReleaseRecord):
    """Element 0 of `video_metadata`: frame size in pixels, number of frames, frames per second, device."""

    width: PixelCount
    height: PixelCount
    frame_count: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAMES)]
    fps: float | None = None
    length_in_ms: float | None = None
    recording_device_type: Text | None = None
    recording_device_version: Text | None = None


class ReleaseCategory(ReleaseRecord):
    id: Text
    name: Text


class ReleaseAnnotation(ReleaseRecord, gc=False):
    """One object on one frame. `segmentation` stays undecoded JSON until a mask is requested.

    A file has tens of thousands of annotations. No annotation can be part of a cycle, so the garbage collector skips
    annotations.
    """

    image_id: FrameNumber
    object_id: Text
    bbox: tuple[Coordinate, Coordinate, Coordinate, Coordinate] | None = None
    segmentation: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ReleaseRange(ReleaseRecord):
    """Frames [start, end). Either may lie outside the video: only the frames inside count."""

    image_id_start: RangeEnd
    image_id_end: RangeEnd


class ReleaseAttribute(ReleaseRecord):
    object_id: Text
    attribute_type: Text
    value: Text
    image_ranges: list[ReleaseRange]


class ReleaseRelation(ReleaseRecord):
    source_object_id: Text
    target_object_id: Text
    relation_type: Text
    value: Text
    image_ranges: list[ReleaseRange]


class ReleaseSegment(ReleaseRecord):
    """An activity or a process step. A null `activity_class_id` marks a segment that the release itself skips."""

    image_range: ReleaseRange
    activity_class_id: Text | None
    display_name: Text


Layer: TypeAlias = Literal["attributes", "relations", "activities", "process_steps"]
"""The sections that contain facts rather than visible objects."""


class ReleaseCoverage(ReleaseRecord):
    """Parts of a video that are annotated completely, if not all are. The release itself has no such record.

    Outside these frames, things and facts may also be annotated, but a missing annotation is no evidence of absence.

    Args:
        frames: frames on which objects are annotated at all.
        categories: category name -> frames on which every visible object of the category is annotated.
        hands: object id -> frames on which everything that the hand touches is recorded.
        layers: the frames over which a section is complete.
    """

    frames: list[ReleaseRange]
    categories: dict[Text, list[ReleaseRange]] = {}
    hands: dict[Text, list[ReleaseRange]] = {}
    layers: dict[Layer, list[ReleaseRange]] = {}


class ReleaseFile(ReleaseRecord):
    """One complete `coco_annotation.json`; without `coverage` its annotations are complete."""

    video_metadata: list[ReleaseVideo]
    categories: list[ReleaseCategory]
    object_id_to_category_id: dict[Text, Text]
    annotations: list[ReleaseAnnotation]
    attributes: list[ReleaseAttribute] = []
    relations: list[ReleaseRelation] = []
    activities: list[ReleaseSegment] = []
    process_steps: list[ReleaseSegment] = []
    coverage: ReleaseCoverage | None = None


def rle_segmentation(size: tuple[int, int], counts: str) -> msgspec.Raw:
    """Return a compressed COCO run-length encoding as JSON for `ReleaseAnnotation.segmentation`."""
    record: dict[str, Any] = {"counts": counts, "size": list(size)}
    return msgspec.Raw(msgspec.json.encode(record))


def tidy_name(text: str) -> str:
    """Return a name without repeated spaces and without spaces at its ends. Names are compared in this form.

    >>> tidy_name(" Right  Hand ")
    'Right Hand'
    """
    return " ".join(text.split())


def class_id(kind: Literal["category", "activity", "step"], name: str) -> str:
    """Return the id of a category, an activity or a process step.

    Equal names have the same id, so that graphs can be joined.
    """
    return str(uuid.uuid5(_CLASSES, f"{kind}:{name}"))


def encode(release: ReleaseFile) -> bytes:
    """Return the file's bytes. They are deterministic, with keys in the order of the format and with empty sections."""
    sections = {name: getattr(release, name) for name in release.__struct_fields__}
    if release.coverage is None:
        del sections["coverage"]
    return msgspec.json.encode(sections)


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `terms.yaml`. This file is beside the folders of videos, and in everything made from these videos.

    Args:
        title: title of the data, for people.
        licence: identifier of the licence on the Hub. Derived data are published under this licence or not at all.
        licence_note: scope of the licence in one sentence.
        citation: BibTeX.
        homepage: source of the data.
    """

    title: str
    licence: str
    licence_note: str
    citation: str
    homepage: str


def read_terms(folder: Path) -> Terms | None:
    """Read the terms in a folder; None if there are none. Raises DataError for an invalid file."""
    path, remedy = folder / TERMS_FILE, "import the graphs again"
    if not path.is_file():
        return None
    try:
        content = read_bounded(path, _MAX_TERMS, remedy=remedy)
        return msgspec.convert(load_yaml(content, str(path), error=DataError), Terms)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}. Fix: {remedy}") from error


def write_terms(folder: Path, terms: Terms) -> None:
    """Write `terms.yaml` in a folder."""
    content = yaml.safe_dump(msgspec.to_builtins(terms), sort_keys=False, allow_unicode=True, width=1000)
    write_whole(folder / TERMS_FILE, content.encode())


def replace_non_finite(data: bytes) -> bytes:
    """Replace NaN, Infinity and -Infinity outside strings by JSON that no typed field accepts."""
    pieces, in_string, end = [], False, 0
    for match in _NON_FINITE.finditer(data):
        before = data[end : match.start()]
        in_string ^= _ESCAPED.sub(b"", before).count(b'"') % 2 == 1
        pieces += [before, match[0] if in_string else _REPLACEMENTS[match[0]]]
        end = match.end()
    return b"".join([*pieces, data[end:]])


def restore_non_finite(data: bytes) -> bytes:
    """Undo `replace_non_finite` in untyped content, which is masks and unknown fields."""
    for token, replacement in _REPLACEMENTS.items():
        data = data.replace(replacement, token)
    return data
