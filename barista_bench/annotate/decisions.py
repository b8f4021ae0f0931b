"""Adds people's decisions to a project, from a file that has one or several of these parts.

    {"video": "clip", "by": "anna", "when": "2026-01-31", "seconds": 40,
     "confidence": [0.1, null, ...] or "contacts": [[30, 90], ...],
     "prompts": [{"frame": 60, "category": "spoon", "box": [10, 20, 90, 60], "points": [{"x": 40, "y": 30}]},
                 {"frame": 60, "category": "lid", "words": "white lid"}],
     "objects": {"cup-1": "coffee cup"},
     "keyframes": [{"frame": 60, "complete": true,
                    "masks": {"cup-1": {"size": [360, 640], "counts": "..."}},
                    "proposals": {"spoon-1": "1f0c9d2a"},
                    "attributes": [{"object": "cup-1", "type": "state", "value": "empty"}]}],
     "layers": {"attributes": [], "relations": [], "activities": [], "process_steps": []},
     "withdrawn": [90],
     "edits": [{"edit": "merge", "into": "cup-1", "objects": ["cup-2"]}]}

Decisions enter a project in no other way. Masks may also be COCO polygons, or ids of proposals. Layers replace the
layers accepted earlier, and prompts replace earlier prompts on the same frames. Masks of a complete keyframe replace
the masks of its frame; masks of other keyframes are added to them. For withdrawn frames, all accepted annotations are
removed. Everything is checked before the first file is written.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from barista_bench.annotate.identities import Identities
from barista_bench.annotate.project import VOCABULARY_FILE, Project, VideoFiles, check_masks, writing
from barista_bench.annotate.records import (
    MAX_BYTES,
    AcceptedFile,
    AcceptedKeyframe,
    AcceptedLayersFile,
    AcceptedMask,
    Confidence,
    Edit,
    Frame,
    KeyframeAttribute,
    Layers,
    MaskPrompt,
    Name,
    ProjectRecord,
    PromptsFile,
    Proposal,
    ProposalsFile,
    Range,
    SignalFile,
    SignedEdit,
    decode_record,
)
from barista_bench.errors import DataError
from barista_bench.files.reading import as_utf8, read_bounded
from barista_bench.files.writing import write_whole
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import MaskTracks, Rle, parse_segmentations
from barista_bench.scene_graph.video_graph import UNNAMED

_FORMAT = "see docs/your_own_videos.md for the format"


class DecidedKeyframe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decisions about a keyframe. `proposals` maps an object to the id in proposals.json of its mask."""

    frame: Frame
    complete: bool = True
    masks: dict[Name, msgspec.Raw] = {}
    proposals: dict[Name, str] = {}
    attributes: list[KeyframeAttribute] = []


class Decisions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The decisions of one file; a graph or tracks can be converted to this form."""

    video: Name
    by: str | None = None
    when: str | None = None
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e7)] = 0.0
    confidence: list[Confidence | None] | None = None
    contacts: list[Range] | None = None
    prompts: list[MaskPrompt] = []
    objects: dict[Name, Name] = {}
    keyframes: list[DecidedKeyframe] = []
    withdrawn: list[Frame] = []
    layers: Layers | None = None
    edits: list[Edit] = []


def read_decisions(path: Path) -> Decisions:
    """Read decisions from a JSON file, or confidences from a CSV file.

    The CSV file is named after its video, and has the columns `frame` and `confidence`. Raises
    DataError, which names the file and the field or line.
    """
    content = read_bounded(path, MAX_BYTES, remedy="name the file of decisions")
    if path.suffix.casefold() == ".csv":
        return Decisions(video=path.stem, confidence=_confidences(content, path))
    return decode_record(content, Decisions, str(path))


def decisions_of_tracks(tracks: MaskTracks) -> Decisions:
    """Return masks from other tools as decisions about each frame that the masks annotate."""
    keyframes = [
        DecidedKeyframe(
            frame=frame,
            complete=frame not in tracks.incomplete,
            masks={name: raw_mask(rle) for name, rle in sorted(masks.items())},
        )
        for frame, masks in sorted(tracks.masks.items())
    ]
    return Decisions(video=tracks.video_id, objects=dict(tracks.categories), keyframes=keyframes)


def raw_mask(rle: Rle) -> msgspec.Raw:
    """Return a mask as in a file of decisions."""
    return msgspec.Raw(msgspec.json.encode(rle))


def keep_accepted(decisions: Decisions, accepted: AcceptedFile) -> tuple[Decisions, int]:
    """Return decisions that remove no accepted mask.

    If a complete keyframe lacks a mask that was accepted earlier, this mask is added to the keyframe.

    Returns:
        The decisions, and the number of added masks.
    """
    former = {keyframe.frame: keyframe for keyframe in accepted.keyframes}
    keyframes, count = [], 0
    for keyframe in decisions.keyframes:
        masks = former[keyframe.frame].masks if keyframe.frame in former and keyframe.complete else {}
        named = {*keyframe.masks, *keyframe.proposals}
        kept = {name: raw_mask(mask.rle) for name, mask in masks.items() if name not in named}
        keyframes.append(msgspec.structs.replace(keyframe, masks={**keyframe.masks, **kept}))
        count += len(kept)
    names = {name for keyframe in keyframes for name in keyframe.masks}
    objects = {name: category for name, category in accepted.objects.items() if name in names}
    return msgspec.structs.replace(decisions, keyframes=keyframes, objects={**objects, **decisions.objects}), count


def _confidences(content: bytes, path: Path) -> list[float | None]:
    by_frame: dict[int, float] = {}
    try:
        for row in csv.DictReader(io.StringIO(as_utf8(content, str(path)).decode())):
            frame, confidence = int(row["frame"]), float(row["confidence"] or "nan")
            if frame < 0 or not (math.isnan(confidence) or 0 <= confidence <= 1):
                raise ValueError(f"frame {frame} has the confidence {confidence}")
            by_frame[frame] = confidence
        last_frame = max(by_frame)
        if last_frame > 2 * len(by_frame) + 1000:
            raise ValueError(f"frame {last_frame} of {len(by_frame)} rows")
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        remedy = "give columns frame (from 0) and confidence (0..1, or empty)"
        raise DataError(f"{path}: no confidences ({error}). Fix: {remedy}") from error
    values = [by_frame.get(frame, math.nan) for frame in range(last_frame + 1)]
    return [None if math.isnan(value) else value for value in values]


def accept(project: Project, decisions: Decisions, by: str | None = None) -> list[str]:
    """Check decisions and write them. Writing the same decisions again changes nothing, except that edits are repeated.

    Args:
        by: the person, if the file does not name one.

    Returns:
        The files written.

    Raises:
        DataError: the decisions are invalid, and nothing was written. The message names the video, the field and the
            remedy.
        ConfigError: another process writes the project.
    """
    with writing(project.folder):
        return _accept(project, decisions, by)


def _accept(project: Project, decisions: Decisions, by: str | None) -> list[str]:
    video, domain = project.video(decisions.video), project.vocabulary()
    who = decisions.by or by
    if not who or not who.strip():
        raise DataError(f"{decisions.video}: no person is named. Fix: name the person in `by`, or with --by")
    signal = _signal_file(decisions, video, who)
    records: list[ProjectRecord] = [signal] if signal else []
    if decisions.prompts:
        records.append(_prompts_file(decisions.prompts, video, domain))
    accepted = video.accepted()
    if decisions.keyframes or decisions.objects or decisions.withdrawn:
        accepted = _accepted_file(decisions, video, domain, accepted, who)
        records.append(accepted)
    edits = [*video.edits(), *(SignedEdit(by=who, edit=edit) for edit in decisions.edits)]
    try:
        categories = Identities(accepted, [], edits).categories
    except DataError as error:
        raise DataError(f"{video.video_id}: {error}") from error
    if decisions.layers is not None:
        _check_layers(decisions.layers, video, categories)
        records.append(AcceptedLayersFile(by=who, when=decisions.when, layers=decisions.layers))
    for record in records:
        video.write(record)
    if decisions.edits:
        video.folder.mkdir(exist_ok=True)
        write_whole(video.file(SignedEdit), b"".join(msgspec.json.encode(edit) + b"\n" for edit in edits))
    return [*(record.FILE for record in records), *([SignedEdit.FILE] if decisions.edits else [])]


def _signal_file(decisions: Decisions, video: VideoFiles, who: str) -> SignalFile | None:
    count = video.source.frames
    if decisions.confidence is not None:
        if len(decisions.confidence) != count:
            what = f"{len(decisions.confidence)} confidences for {count} frames"
            raise DataError(f"{video.video_id}: {what}. Fix: give one a frame, null where nothing was measured")
        return SignalFile(by=who, verified=True, confidence=decisions.confidence)
    if decisions.contacts is None:
        return None
    confidence: list[float | None] = [0.0] * count
    for start, end in decisions.contacts:
        _check_range(video, "contacts", (start, end))
        confidence[start:end] = [1.0] * (end - start)
    return SignalFile(by=who, verified=True, confidence=confidence)


def _accepted_file(
    decisions: Decisions, video: VideoFiles, domain: Domain, earlier: AcceptedFile, who: str
) -> AcceptedFile:
    chosen_proposals = {keyframe.frame: _chosen_proposals(keyframe, video) for keyframe in decisions.keyframes}
    proposed = {name: proposal.category for masks in chosen_proposals.values() for name, proposal in masks.items()}
    objects = {**proposed, **earlier.objects, **decisions.objects}
    for name, category in objects.items():
        _check_category(category, video, f"objects.{name}", domain)
    by_frame = {k.frame: k for k in earlier.keyframes if k.frame not in decisions.withdrawn}
    asked_frames, corrections = video.asked_segments(), earlier.corrections
    for keyframe in decisions.keyframes:
        masks = _masks(keyframe, video, objects)
        masks |= {name: proposal.rle for name, proposal in chosen_proposals[keyframe.frame].items()}
        fresh = {name: AcceptedMask(rle=rle, by=who, when=decisions.when) for name, rle in masks.items()}
        former = by_frame.get(keyframe.frame)
        former_masks = former.masks if former else {}
        replaced = sum(name in former_masks and former_masks[name].rle != mask.rle for name, mask in fresh.items())
        corrections += replaced if former or keyframe.frame in asked_frames else len(fresh) * bool(asked_frames)
        remaining_masks = {name: mask for name, mask in former_masks.items() if not keyframe.complete}
        by_frame[keyframe.frame] = AcceptedKeyframe(
            frame=keyframe.frame,
            complete=keyframe.complete or (former is not None and former.complete),
            masks=dict(sorted({**remaining_masks, **fresh}.items())),
            attributes=keyframe.attributes or (former.attributes if former else []),
        )
    return AcceptedFile(
        objects=dict(sorted(objects.items())),
        keyframes=[by_frame[frame] for frame in sorted(by_frame)],
        corrections=corrections,
        seconds=earlier.seconds + decisions.seconds,
    )


def _check_category(category: str, video: VideoFiles, key: str, domain: Domain) -> None:
    if category not in domain.categories and domain.side(category) is None and category != UNNAMED:
        remedy = f"use one of the vocabulary's, or let its curator add it to {VOCABULARY_FILE}"
        raise DataError(f"{video.video_id}: {key}: no category {category!r}. Fix: {remedy}")


def _prompts_file(prompts: Sequence[MaskPrompt], video: VideoFiles, domain: Domain) -> PromptsFile:
    source = video.source
    for prompt in prompts:
        key = f"prompts: frame {prompt.frame}"
        _check_category(prompt.category, video, key, domain)
        corners = [prompt.box[:2], prompt.box[2:]] if prompt.box else []
        places = [*corners, *((point.x, point.y) for point in prompt.points)]
        is_inside = all(0 <= x <= source.width and 0 <= y <= source.height for x, y in places)
        is_box = prompt.box is None or (prompt.box[0] < prompt.box[2] and prompt.box[1] < prompt.box[3])
        is_one = (prompt.words is None) == bool(places)
        if prompt.frame >= source.frames or not (is_inside and is_box and is_one):
            remedy = f"give words, or a box and points within {source.width}x{source.height} px, frames from 0"
            raise DataError(f"{video.video_id}: {key}: cannot be asked of {source.frames} frames. Fix: {remedy}")
    frames = {prompt.frame for prompt in prompts}
    other_prompts = [prompt for prompt in video.prompts() if prompt.frame not in frames]
    return PromptsFile(prompts=sorted([*other_prompts, *prompts], key=lambda prompt: prompt.frame))


def _chosen_proposals(keyframe: DecidedKeyframe, video: VideoFiles) -> dict[str, Proposal]:
    if not keyframe.proposals:
        return {}
    keyframes = video.read(ProposalsFile).keyframes if video.has(ProposalsFile) else []
    by_id = {item.id: item for entry in keyframes if entry.frame == keyframe.frame for item in entry.proposals}
    for name, proposal_id in keyframe.proposals.items():
        if proposal_id not in by_id:
            what = f"keyframe {keyframe.frame}: no proposal {proposal_id!r} for {name!r}"
            raise DataError(f"{video.video_id}: {what}. Fix: see {ProposalsFile.FILE} of the video")
    proposals = {name: by_id[proposal_id] for name, proposal_id in keyframe.proposals.items()}
    check_masks((item.rle for item in proposals.values()), video.source, video.file(ProposalsFile))
    return proposals


def _masks(keyframe: DecidedKeyframe, video: VideoFiles, objects: Mapping[str, str]) -> dict[str, Rle]:
    key = f"{video.video_id}: keyframe {keyframe.frame}"
    if keyframe.frame >= video.source.frames:
        raise DataError(f"{key}: the video has {video.source.frames} frames. Fix: count frames from 0")
    mentioned = [*keyframe.masks, *(attribute.object for attribute in keyframe.attributes)]
    unknown = [name for name in mentioned if name not in objects]
    if unknown:
        raise DataError(f"{key}: {unknown[0]!r} has no category. Fix: name it in `objects`")
    parsed = parse_segmentations(list(keyframe.masks.values()), video.source.height, video.source.width)
    masks: dict[str, Rle] = {}
    for name, rle in zip(keyframe.masks, parsed, strict=True):
        if isinstance(rle, str):
            raise DataError(f"{key}: the mask of {name!r}: {rle}. Fix: {_FORMAT}")
        masks[name] = rle
    return masks


def _check_layers(layers: Layers, video: VideoFiles, categories: Mapping[str, str]) -> None:
    for entry in layers.claims:
        for name in entry.objects:
            if name not in categories:
                raise DataError(f"{video.video_id}: layers: {name!r} is not an object. Fix: name it in `objects`")
        for span in entry.ranges:
            _check_range(video, f"layers: {entry.objects[0]!r}", span)
    for segment in (*layers.activities, *layers.process_steps):
        _check_range(video, f"layers: {segment.name!r}", segment.range)


def _check_range(video: VideoFiles, key: str, span: Range) -> None:
    if not span[0] < span[1] <= video.source.frames:
        remedy = f"give [start, end) within 0 and {video.source.frames}"
        raise DataError(f"{video.video_id}: {key}: {list(span)} is not a range of frames. Fix: {remedy}")
