"""Finds the progress of a project's video for its card, by a quick look at the video's files without reading masks."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from barista_bench.annotate import records
from barista_bench.annotate.project import file_stamp
from barista_bench.errors import BaristaError, DataError
from barista_bench.files.file_cache import FileStamp
from barista_bench.files.reading import read_bounded
from barista_bench.studio.annotating import draft_name
from barista_bench.studio.workspace import Json

_REMEDY = "open the video: it says what is wrong"
PartT = TypeVar("PartT", bound=msgspec.Struct)


class _Signed(msgspec.Struct):
    """The part of a signal that the home page shows; as in the classes below, masks and confidences are skipped."""

    by: str = ""
    verified: bool = False


class _Mask(msgspec.Struct):
    by: str


class _Keyframe(msgspec.Struct):
    frame: int
    complete: bool
    masks: dict[str, _Mask]


class _Accepted(msgspec.Struct):
    objects: dict[str, str] = {}
    keyframes: list[_Keyframe] = []


class _Layers(msgspec.Struct):
    attributes: list[msgspec.Raw] = []
    relations: list[msgspec.Raw] = []
    activities: list[msgspec.Raw] = []
    process_steps: list[msgspec.Raw] = []

    @property
    def count(self) -> int:
        return sum(map(len, (self.attributes, self.relations, self.activities, self.process_steps)))


class _AcceptedLayers(msgspec.Struct):
    by: str = ""
    layers: _Layers = msgspec.field(default_factory=_Layers)


class _Frame(msgspec.Struct):
    frame: int


class _Frames(msgspec.Struct):
    """The list in one file: stretches of contact, requested keyframes, doubtful frames, or frames of a draft."""

    segments: list[msgspec.Raw] = []
    keyframes: list[_Frame] = []
    frames: list[_Frame] = []
    looked_at: list[int] = []


_FILES = (
    records.SignalFile,
    records.SegmentsFile,
    records.KeyframesFile,
    records.AcceptedFile,
    records.AcceptedLayersFile,
    records.ReviewFile,
    records.TrackLine,
)
"""The files of a video that its card shows, without the person's draft."""


def stamp_of(folder: Path, person: str) -> tuple[FileStamp | None, ...]:
    """Return a stamp that changes with every file that `progress_of` reads."""
    return tuple(file_stamp(folder / name) for name in (*(kind.FILE for kind in _FILES), draft_name(person)))


def progress_of(folder: Path, person: str) -> Json:
    """Return a video's progress and the person's next step; `problem` is set if a file cannot be read."""
    try:
        return _read_progress(folder, person)
    except BaristaError as error:
        return {"problem": str(error), "next": "problem", "by": []}


def _read_progress(folder: Path, person: str) -> Json:
    signal = _read_part(folder, records.SignalFile.FILE, _Signed)
    accepted = _read_part(folder, records.AcceptedFile.FILE, _Accepted)
    layers = _read_part(folder, records.AcceptedLayersFile.FILE, _AcceptedLayers)
    asked_frames = {keyframe.frame for keyframe in _read_part(folder, records.KeyframesFile.FILE, _Frames).keyframes}
    complete_frames = {keyframe.frame for keyframe in accepted.keyframes if keyframe.complete}
    looked_at = set(_read_part(folder, draft_name(person), _Frames).looked_at)
    doubts = _read_part(folder, records.ReviewFile.FILE, _Frames).frames
    doubtful = sum(doubt.frame not in looked_at for doubt in doubts)
    people = {mask.by for keyframe in accepted.keyframes for mask in keyframe.masks.values()}
    people |= {signed.by for signed in (signal if signal.verified else None, layers) if signed and signed.by}
    tracked = (folder / records.TrackLine.FILE).is_file()
    if not signal.verified and not asked_frames and not accepted.keyframes:
        next_step = "contacts"
    elif asked_frames - complete_frames:
        next_step = "keyframes"
    elif not tracked or (signal.verified and not asked_frames):
        next_step = "stages"
    else:
        next_step = "doubtful" if doubtful else "export"
    return {
        "next": next_step,
        "contacts": len(_read_part(folder, records.SegmentsFile.FILE, _Frames).segments),
        "asked": len(asked_frames),
        "done": len(asked_frames & complete_frames) if asked_frames else len(complete_frames),
        "masks": sum(len(keyframe.masks) for keyframe in accepted.keyframes),
        "annotated": sum(bool(keyframe.masks) for keyframe in accepted.keyframes),
        "objects": len(accepted.objects),
        "doubtful": doubtful,
        "layers": layers.layers.count,
        "by": sorted(people),
    }


def _read_part(folder: Path, name: str, kind: type[PartT]) -> PartT:
    """Return the part of one file that the card shows; empty if the file is missing. Raises DataError."""
    path = folder / name
    if not path.is_file():
        return kind()
    content = read_bounded(path, records.MAX_BYTES, remedy=_REMEDY)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Fix: {_REMEDY}") from error
