"""Defines the files of an annotation project as typed records: readable JSON, with one folder per video.

Frames are counted from 0, and ranges are half-open `[start, end)` in frames. Masks are compressed COCO run lengths of
the video's displayed size. Every file written by a stage records its model, settings and inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.reading import as_utf8, read_bounded
from barista_bench.files.writing import write_whole
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.masks import Rle
from barista_bench.scene_graph.release import MALFORMED, MAX_FRAMES

MAX_BYTES = 2**30
"""Limit of bytes for one file."""
Frame: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MAX_FRAMES)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_FRAMES)]
Range: TypeAlias = tuple[Frame, Count]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Confidence: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
RecordT = TypeVar("RecordT")


class ProjectRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all records: an unknown field is an error.

    `FILE` is the name of the file in a video's folder that holds this record, or one such record per line.
    """

    FILE: ClassVar[str]


class Provenance(ProjectRecord, frozen=True, kw_only=True):
    """The origin of a file: the stage, its model and settings.

    `inputs` is the SHA-256 over the stage, the model, the settings and the files that the stage has read.
    """

    stage: str
    inputs: str
    model: str
    revision: str | None = None
    settings: dict[str, Any] = {}

    @classmethod
    def of(cls, stage: str, identity: ModelIdentity, *inputs: object) -> Provenance:
        """Return the provenance of a stage that reads `inputs`; each input is a JSON value."""
        settings = dict(identity.settings)
        key = digest(stage, identity.name, identity.revision, settings, *inputs)
        return cls(stage=stage, inputs=key, model=identity.name, revision=identity.revision, settings=settings)


class StageFile(ProjectRecord, frozen=True, kw_only=True):
    """Base of the files that only a stage writes."""

    provenance: Provenance


class SignalFile(ProjectRecord, frozen=True, kw_only=True):
    """Contact confidence of each frame, null if not measured. `by` is the person or program that measured it."""

    FILE = "signal.json"
    by: str
    verified: bool
    confidence: list[Confidence | None]
    provenance: Provenance | None = None


class SegmentsFile(StageFile, frozen=True, kw_only=True):
    FILE = "segments.json"
    segments: list[Range]


class AskedKeyframe(ProjectRecord, frozen=True, kw_only=True):
    """A frame that a person is asked to annotate, and the number of its segment."""

    frame: Frame
    segment: int


class KeyframesFile(StageFile, frozen=True, kw_only=True):
    FILE = "keyframes.json"
    keyframes: list[AskedKeyframe]


class PromptPoint(ProjectRecord, frozen=True, kw_only=True):
    """A point in pixels of the displayed frame.

    `inside` is True for a point on the object, False for a point beside it.
    """

    x: float
    y: float
    inside: bool = True


class MaskPrompt(ProjectRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A request for a mask proposal: words, a box (left, top, right, bottom), points, or a box and points.

    `object` is the id of the intended object, if this object exists already.
    """

    frame: Frame
    category: Name
    object: Name | None = None
    box: tuple[float, float, float, float] | None = None
    points: list[PromptPoint] = []
    words: Name | None = None


class PromptsFile(ProjectRecord, frozen=True, kw_only=True):
    FILE = "prompts.json"
    prompts: list[MaskPrompt]


ProposalOrigin: TypeAlias = Literal["prompted", "words", "detected", "carried"]


class Proposal(ProjectRecord, frozen=True, kw_only=True):
    """A mask that is not accepted yet. `object` is the known object that the mask probably shows."""

    id: str
    category: str
    object: str | None
    origin: ProposalOrigin
    rle: Rle
    confidence: Confidence


class KeyframeProposals(ProjectRecord, frozen=True, kw_only=True):
    frame: Frame
    proposals: list[Proposal]
    earlier: dict[str, str]
    """Categories of the objects that were accepted earlier in the segment, by id; reuse the ids of visible objects."""


class ProposalsFile(StageFile, frozen=True, kw_only=True):
    FILE = "proposals.json"
    verified: Literal[False] = False
    keyframes: list[KeyframeProposals]


class AcceptedMask(ProjectRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A mask accepted by the person `by`, at `when` if known. An empty mask means that the object is not visible."""

    rle: Rle
    by: str
    when: str | None = None


class KeyframeAttribute(ProjectRecord, frozen=True, kw_only=True):
    object: Name
    type: Name
    value: Name


class AcceptedKeyframe(ProjectRecord, frozen=True, kw_only=True):
    """Accepted masks of a keyframe. `complete`: objects without a mask are absent; otherwise they are unknown."""

    frame: Frame
    complete: bool
    masks: dict[Name, AcceptedMask]
    attributes: list[KeyframeAttribute] = []


class AcceptedFile(ProjectRecord, frozen=True, kw_only=True):
    """All accepted masks. `objects` has the category of each object by its id.

    `corrections` are masks that replaced another mask, or that were not requested.
    """

    FILE = "accepted.json"
    objects: dict[Name, Name]
    keyframes: list[AcceptedKeyframe]
    corrections: int = 0
    seconds: float = 0.0


class Boundary(ProjectRecord, frozen=True, kw_only=True):
    """Two adjacent segments: the compared data, and which of the later objects are earlier objects."""

    inputs: str
    links: dict[str, str]


class LinksFile(StageFile, frozen=True, kw_only=True):
    FILE = "links.json"
    boundaries: list[Boundary]


class TrackedMask(ProjectRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A mask. `agreement` is its IoU with the mask of the project's second propagator, or 1 if there is none."""

    counts: str
    confidence: Confidence
    agreement: Confidence = 1.0


class TrackLine(ProjectRecord, frozen=True, kw_only=True):
    """One frame of tracks.jsonl. The first line of that file is the provenance."""

    FILE = "tracks.jsonl"
    frame: Frame
    masks: dict[str, TrackedMask]


class Doubt(ProjectRecord, frozen=True, kw_only=True):
    """How doubtful an object is on a frame, 0..1.

    `vanishes` and `appears` refer only to places away from the picture's edge.
    """

    frame: Frame
    object: str
    doubt: Confidence
    why: Literal["low confidence", "propagators disagree", "area changes", "vanishes", "appears"]


class ReviewFile(StageFile, frozen=True, kw_only=True):
    """The frames to check, the most doubtful first; a frame has one entry."""

    FILE = "review.json"
    frames: list[Doubt]


Claim: TypeAlias = tuple[tuple[str, ...], str, str]
"""The objects of a statement (one for an attribute; source and target for a relation), its type and its value."""


class LayerAttribute(ProjectRecord, frozen=True, kw_only=True):
    object: Name
    type: Name
    value: Name
    ranges: list[Range]

    @property
    def objects(self) -> tuple[str, ...]:
        return (self.object,)


class LayerRelation(ProjectRecord, frozen=True, kw_only=True):
    source: Name
    target: Name
    type: Name
    value: Name
    ranges: list[Range]

    @property
    def objects(self) -> tuple[str, ...]:
        return self.source, self.target


class LayerSegment(ProjectRecord, frozen=True, kw_only=True):
    name: Name
    range: Range


class Layers(ProjectRecord, frozen=True, kw_only=True):
    """Statements about objects and frames, in addition to masks."""

    attributes: list[LayerAttribute] = []
    relations: list[LayerRelation] = []
    activities: list[LayerSegment] = []
    process_steps: list[LayerSegment] = []

    @property
    def claims(self) -> list[LayerAttribute | LayerRelation]:
        return [*self.attributes, *self.relations]

    @classmethod
    def of(cls, ranges: Mapping[Claim, list[Range]], activities: Sequence[LayerSegment] = ()) -> Layers:
        """Return the layers, sorted, from claims and the ranges in which they hold."""
        attributes, relations = [], []
        for (objects, kind, value), spans in sorted(ranges.items()):
            if len(objects) == 1:
                attributes.append(LayerAttribute(object=objects[0], type=kind, value=value, ranges=spans))
            else:
                source, target = objects
                relations.append(LayerRelation(source=source, target=target, type=kind, value=value, ranges=spans))
        return cls(attributes=attributes, relations=relations, activities=list(activities))


class LayersFile(StageFile, frozen=True, kw_only=True):
    """Proposals from geometry, and statements of keyframes carried forward; a person must accept them."""

    FILE = "layers.json"
    verified: Literal[False] = False
    layers: Layers


class DescribedFile(LayersFile, frozen=True, kw_only=True):
    """Proposals by a model.

    `answers` are the model's texts by question. `unusable` counts the answers, and the claims in answers, that refer to
    nothing in the question.
    """

    FILE = "described.json"
    answers: dict[str, str]
    unusable: int


class AcceptedLayersFile(ProjectRecord, frozen=True, kw_only=True):
    FILE = "accepted_layers.json"
    by: str
    when: str | None = None
    layers: Layers


class Merge(ProjectRecord, frozen=True, kw_only=True, tag_field="edit", tag="merge"):
    """The tracks `objects` show the same object as the track `into`."""

    into: Name
    objects: Annotated[list[Name], msgspec.Meta(max_length=500)]


class Split(ProjectRecord, frozen=True, kw_only=True, tag_field="edit", tag="split"):
    """From keyframe `frame` on, `object` becomes `new`, with the same category."""

    object: Name
    frame: Frame
    new: Name


class Rename(ProjectRecord, frozen=True, kw_only=True, tag_field="edit", tag="rename"):
    """Changes the category of `object`."""

    object: Name
    category: Name


class Undo(ProjectRecord, frozen=True, kw_only=True, tag_field="edit", tag="undo"):
    """Cancels the edit at a line of edits.jsonl; lines are counted from 1."""

    line: Annotated[int, msgspec.Meta(ge=1)]


Edit: TypeAlias = Merge | Split | Rename | Undo


class SignedEdit(ProjectRecord, frozen=True, kw_only=True):
    FILE = "edits.jsonl"
    by: str
    edit: Edit


def digest(*values: object) -> str:
    """Return the SHA-256 of JSON values and bytes, in order."""
    total = hashlib.sha256()
    for value in values:
        content = value if isinstance(value, bytes) else msgspec.json.encode(value, order="deterministic")
        total.update(f"{len(content)}\n".encode() + content)
    return total.hexdigest()


def decode_record(content: bytes, kind: type[RecordT], where: str) -> RecordT:
    """Decode JSON as a record. Raises DataError with the field if the JSON is invalid."""
    try:
        return msgspec.json.decode(as_utf8(content, where), type=kind)
    except MALFORMED as error:
        raise DataError(f"{where}: {error}. Fix: see docs/your_own_videos.md for the format") from error


def read_record(path: Path, kind: type[RecordT]) -> RecordT:
    """Read a file as a record. Raises DataError with the file and the field."""
    remedy = "run `barista-bench annotate status` to see what the project holds"
    return decode_record(read_bounded(path, MAX_BYTES, remedy=remedy), kind, str(path))


def write_record(path: Path, record: ProjectRecord) -> None:
    """Write a record as indented JSON, completely or not at all."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
