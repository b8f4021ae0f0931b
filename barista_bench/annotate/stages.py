"""Defines the stages that make tracks and layers from a video; `running` runs them.

    signal -> segments -> keyframes -> proposals -> [a person accepts masks] -> links -> tracks -> review, layers

A stage reads files of the video's folder and writes one file. The stage is repeated if its inputs, model or settings
have changed. So a killed run continues where it stopped, and gives the same files as an uninterrupted run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from barista_bench.annotate.flow_propagation import FlowPropagator
from barista_bench.annotate.geometry import propose_layers
from barista_bench.annotate.grab_cut import GrabCutSegmenter
from barista_bench.annotate.identities import link_segments, propagator_input, segments_of
from barista_bench.annotate.lucas_kanade import LucasKanade
from barista_bench.annotate.project import VideoFiles, read_tracks
from barista_bench.annotate.propagation import CopyNearest, FrameMasks, Propagator, given_masks
from barista_bench.annotate.proposals import (
    Detector,
    ObjectDetector,
    PromptedSegmenter,
    Proposer,
    Segmenter,
    contact_confidence,
)
from barista_bench.annotate.records import (
    AcceptedFile,
    AskedKeyframe,
    KeyframesFile,
    LayersFile,
    LinksFile,
    ProjectRecord,
    PromptsFile,
    ProposalsFile,
    Provenance,
    ReviewFile,
    SegmentsFile,
    SignalFile,
    SignedEdit,
    TrackedMask,
    TrackLine,
)
from barista_bench.annotate.review import doubtful_frames, with_agreement
from barista_bench.annotate.sam_propagation import SamPropagator
from barista_bench.annotate.segments import choose_keyframes, interaction_segments
from barista_bench.core.plugins import load_plugin, plugin_entries
from barista_bench.errors import ConfigError
from barista_bench.files.hashes import file_sha256
from barista_bench.files.reading import bounded_lines
from barista_bench.files.writing import atomic_write
from barista_bench.media.video import FrameReader
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.masks import Rle

_OURS = "barista_bench"
_SEGMENT_FOLDER = "tracks"


@functools.cache
def propagator_of(name: str) -> Propagator:
    """Return the propagator with a name in project.json. Raises ConfigError for an unknown name, and ModelError."""
    kind, _, rest = name.partition(":")
    return cast("Callable[[str], Propagator]", load_plugin("propagators", kind))(rest)


def flow(rest: str) -> Propagator:
    _refuse_rest("propagator flow", rest)
    return FlowPropagator()


def copy_nearest(rest: str) -> Propagator:
    _refuse_rest("propagator copy_nearest", rest)
    return CopyNearest()


def lucas_kanade(rest: str) -> Propagator:
    _refuse_rest("propagator lucas_kanade", rest)
    return LucasKanade()


def sam(rest: str) -> Propagator:
    """Return the propagator `sam:CHECKPOINT`."""
    return SamPropagator.load(_checkpoint("propagator", rest))


@functools.cache
def segmenter_of(name: str) -> Segmenter:
    """Return the segmenter with a name in project.json. Raises ConfigError for an unknown name, and ModelError."""
    kind, _, rest = name.partition(":")
    return cast("Callable[[str], Segmenter]", load_plugin("segmenters", kind))(rest)


def grab_cut(rest: str) -> Segmenter:
    """Return the segmenter `grabcut`."""
    _refuse_rest("segmenter grabcut", rest)
    return GrabCutSegmenter()


def sam_segmenter(rest: str) -> Segmenter:
    """Return the segmenter `sam:CHECKPOINT`."""
    return PromptedSegmenter.load(_checkpoint("segmenter", rest))


@functools.cache
def detector_of(name: str) -> Detector:
    """Return the detector named in project.json: `sam3:CHECKPOINT`, another registered detector, or a checkpoint.

    Raises ModelError.
    """
    kind, _, rest = name.partition(":")
    if kind in plugin_entries("detectors"):
        return cast("Callable[[str], Detector]", load_plugin("detectors", kind))(rest)
    return ObjectDetector.load(name)


def _checkpoint(kind: str, rest: str) -> str:
    if not rest:
        raise ConfigError(f"{kind} sam names no checkpoint. Fix: write sam:CHECKPOINT")
    return rest


def _refuse_rest(name: str, rest: str) -> None:
    if rest:
        raise ConfigError(f"{name}:{rest} is unknown. Fix: write {name.split()[-1]}")


def _propagator(video: VideoFiles) -> Propagator:
    return propagator_of(video.project.settings.propagator)


def _second_propagator(video: VideoFiles) -> Propagator | None:
    name = video.project.settings.second_opinion
    return propagator_of(name) if name else None


def _detector(video: VideoFiles) -> Detector | None:
    name = video.project.settings.detector
    return None if name is None else detector_of(name)


def _segmenter(video: VideoFiles) -> Segmenter | None:
    name = video.project.settings.segmenter
    return None if name is None else segmenter_of(name)


@dataclass(frozen=True)
class AnnotationStage:
    """A stage: its required inputs, its optional inputs, its output, and the function that makes the output."""

    name: str
    writes: type[ProjectRecord]
    needs: tuple[type[ProjectRecord], ...]
    identity_of: Callable[[VideoFiles], ModelIdentity | None]
    """Returns None if the settings turn the stage off."""
    make: Callable[[VideoFiles, Provenance], None]
    reads: tuple[type[ProjectRecord], ...] = ()

    def provenance(self, video: VideoFiles, identity: ModelIdentity) -> Provenance:
        """Return the provenance that the stage's file would have if it were made now."""
        kinds = (*self.needs, *self.reads)
        contents = {
            kind.FILE: file_sha256(video.file(kind), across_processes=True) if video.has(kind) else None
            for kind in kinds
        }
        return Provenance.of(self.name, identity, video.source, contents)

    def state(self, video: VideoFiles) -> str:
        """Return the state of the stage's file: `done`, `stale`, `ready`, `waiting` for a file, or `off`."""
        identity = self.identity_of(video)
        if identity is None:
            return "off"
        if not all(video.has(kind) for kind in self.needs):
            return "waiting"
        if not video.has(self.writes):
            return "ready"
        made_from = _inputs_of(video.file(self.writes))
        return "done" if made_from == self.provenance(video, identity).inputs else "stale"


# ---------------------------------------------------------------- the stages


def _detect(video: VideoFiles, provenance: Provenance) -> None:
    detector = _detector(video)
    assert detector is not None
    with video.open() as frames:
        confidence = list(contact_confidence(detector, frames, video.project.vocabulary()))
    video.write(SignalFile(by=provenance.model, verified=False, confidence=confidence, provenance=provenance))


def _signal_identity(video: VideoFiles) -> ModelIdentity | None:
    by_person = video.has(SignalFile) and video.read(SignalFile).verified
    detector = None if by_person else _detector(video)
    return detector.identity if detector and detector.finds_objects else None


def _segment(video: VideoFiles, provenance: Provenance) -> None:
    confidence = np.array(video.read(SignalFile).confidence, dtype=np.float64)  # null becomes NaN
    ranges = interaction_segments(confidence, video.source.fps, video.project.settings.segments)
    video.write(SegmentsFile(provenance=provenance, segments=ranges))


def _choose(video: VideoFiles, provenance: Provenance) -> None:
    ranges, source = video.segments(), video.source
    keyframes = []
    for frame in choose_keyframes(ranges, source.frames, _propagator(video).reach(source.fps)):
        # The last contact segment that has begun; frames before the first segment belong to the first segment.
        segment = max(0, sum(start <= frame for start, _ in ranges) - 1)
        keyframes.append(AskedKeyframe(frame=frame, segment=segment))
    video.write(KeyframesFile(provenance=provenance, keyframes=keyframes))


def _propose(video: VideoFiles, provenance: Provenance) -> None:
    proposer = Proposer(video.project.vocabulary(), _propagator(video), _segmenter(video), _detector(video))
    video.write(ProposalsFile(provenance=provenance, keyframes=proposer.proposals(video)))


def _proposals_identity(video: VideoFiles) -> ModelIdentity | None:
    """Return the identity of the models that make proposals; None if there are no questions or no models."""
    accepted = {keyframe.frame for keyframe in video.accepted().keyframes}
    is_waiting = bool(video.asked_segments().keys() - accepted)
    if not video.has(PromptsFile) and not (is_waiting and ((_segmenter(video) and _detector(video)) or accepted)):
        return None
    models = {"segmenter": _segmenter(video), "detector": _detector(video), "propagator": _propagator(video)}
    settings: dict[str, str | int | float | bool | None] = {}
    for kind, model in models.items():
        if model is not None:
            settings |= {kind: model.identity.name, f"{kind}_revision": model.identity.revision}
    return ModelIdentity(_OURS, None, settings)


def _link(video: VideoFiles, provenance: Provenance) -> None:
    with video.open() as frames:
        boundaries = link_segments(
            segments_of(video.accepted(), video.asked_segments()),
            video.accepted(),
            frames,
            _propagator(video),
            threshold=video.project.settings.link_threshold,
            video=video.source.sha256,
            earlier=video.links(),
        )
    video.write(LinksFile(provenance=provenance, boundaries=boundaries))


def _track(video: VideoFiles, provenance: Provenance) -> None:
    """Propagate each segment over all frames up to the next segment's first keyframe, which is also a condition."""
    segments, identities = segments_of(video.accepted(), video.asked_segments()), video.identities()
    propagator, second = _propagator(video), _second_propagator(video)
    folder = video.folder / _SEGMENT_FOLDER
    folder.mkdir(exist_ok=True)
    parts: list[tuple[Path, range]] = []
    with video.open() as frames:
        for segment, following in pairwise([*segments, None]):
            assert segment is not None
            start = segment.keyframes[0].frame if parts else 0
            end = following.keyframes[0].frame if following else len(frames)
            keyframes = [*segment.keyframes, *(following.keyframes[:1] if following else [])]
            inputs = propagator_input(keyframes, identities, video.source.height, video.source.width)
            span = range(start, min(end + 1, len(frames)))
            key = Provenance.of("segment", _tracks_identity(video), video.source, sorted(inputs.items()), span.stop)
            path = folder / f"{segment.number:04d}.jsonl"
            if _inputs_of(path) != key.inputs:
                lines = _track_lines(propagator, frames, inputs, span)
                second_lines = _track_lines(second, frames, inputs, span) if second else None
                _write_tracks(path, key, with_agreement(lines, second_lines, frames.size) if second_lines else lines)
            parts.append((path, range(start, end)))
    lines = (line for path, span in parts for line in read_tracks(path, video.source) if line.frame in span)
    _write_tracks(video.file(TrackLine), provenance, lines)
    for path in set(folder.glob("*.jsonl")) - {path for path, _ in parts}:
        path.unlink()


def _track_lines(
    propagator: Propagator, frames: FrameReader, inputs: dict[int, dict[str, Rle]], span: range
) -> Iterator[TrackLine]:
    from_elsewhere = (FrameMasks(frame, given_masks(inputs[frame])) for frame in span)
    for frame, masks in from_elsewhere if set(span) <= inputs.keys() else propagator.propagate(frames, inputs, span):
        rows = {
            name: TrackedMask(counts=mask.rle.counts, confidence=round(min(max(mask.confidence, 0.0), 1.0), 4))
            for name, mask in masks.items()
        }
        yield TrackLine(frame=frame, masks=rows)


def _write_tracks(path: Path, provenance: Provenance, lines: Iterator[TrackLine]) -> None:
    with atomic_write(path) as partial_path, partial_path.open("wb") as file:
        file.write(msgspec.json.encode(provenance) + b"\n")
        for line in lines:
            file.write(msgspec.json.encode(line) + b"\n")


def _review(video: VideoFiles, provenance: Provenance) -> None:
    source = video.source
    annotated = {keyframe.frame for keyframe in video.accepted().keyframes}
    frames = doubtful_frames(video.tracks(), annotated, source.width, source.height, source.fps)
    video.write(ReviewFile(provenance=provenance, frames=frames))


def _make_layers(video: VideoFiles, provenance: Provenance) -> None:
    source, identities = video.source, video.identities()
    layers = propose_layers(
        video.tracks(),
        [identities.rename(keyframe) for keyframe in video.accepted().keyframes],
        identities.categories,
        video.project.vocabulary(),
        (source.height, source.width),
        source.fps,
    )
    video.write(LayersFile(provenance=provenance, layers=layers))


def _own_identity(video: VideoFiles) -> ModelIdentity:
    return ModelIdentity(_OURS)


def _segments_identity(video: VideoFiles) -> ModelIdentity:
    return ModelIdentity(_OURS, None, msgspec.structs.asdict(video.project.settings.segments))


def _keyframes_identity(video: VideoFiles) -> ModelIdentity:
    return ModelIdentity(_OURS, None, {"reach": _propagator(video).reach(video.source.fps)})


def _links_identity(video: VideoFiles) -> ModelIdentity:
    identity = _propagator(video).identity
    settings = {**identity.settings, "threshold": video.project.settings.link_threshold}
    return ModelIdentity(identity.name, identity.revision, settings)


def _tracks_identity(video: VideoFiles) -> ModelIdentity:
    identity, second = _propagator(video).identity, _second_propagator(video)
    if second is None:
        return identity
    opinion = {"second_opinion": second.identity.name, "second_opinion_revision": second.identity.revision}
    return ModelIdentity(identity.name, identity.revision, {**identity.settings, **opinion})


BEFORE_MASKS = (
    AnnotationStage("signal", SignalFile, (), _signal_identity, _detect),
    AnnotationStage("segments", SegmentsFile, (SignalFile,), _segments_identity, _segment),
    AnnotationStage("keyframes", KeyframesFile, (SegmentsFile,), _keyframes_identity, _choose),
    AnnotationStage(
        "proposals", ProposalsFile, (KeyframesFile,), _proposals_identity, _propose, (AcceptedFile, PromptsFile)
    ),
)
AFTER_MASKS = (
    AnnotationStage("links", LinksFile, (AcceptedFile,), _links_identity, _link, (KeyframesFile,)),
    AnnotationStage(
        "tracks", TrackLine, (AcceptedFile, LinksFile), _tracks_identity, _track, (KeyframesFile, SignedEdit)
    ),
    AnnotationStage("review", ReviewFile, (TrackLine, AcceptedFile), _own_identity, _review),
    AnnotationStage(
        "layers", LayersFile, (TrackLine, AcceptedFile, LinksFile), _own_identity, _make_layers, (SignedEdit,)
    ),
)


class _Header(msgspec.Struct):
    provenance: Provenance | None = None


def _inputs_of(path: Path) -> str | None:
    """Return the digest of the inputs in a stage's file; None if the file is missing or cannot be read."""
    if not path.is_file():
        return None
    try:
        if path.suffix == ".jsonl":
            _, line = next(bounded_lines(path, 2**16))
            return msgspec.json.decode(line, type=Provenance).inputs
        provenance = msgspec.json.decode(path.read_bytes(), type=_Header).provenance
    except (OSError, StopIteration, msgspec.MsgspecError):
        return None
    return provenance.inputs if provenance else None
