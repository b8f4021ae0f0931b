"""The stages from a video to its tracks and layers; `running` runs them.

    signal -> segments -> keyframes -> proposals -> [a person accepts masks] -> links -> tracks -> review, layers

A stage reads files of the video's folder and writes one. It is made again when what it reads, its model or its settings
have changed since; so a run that was killed goes on where it stopped, and gives the same files as one that was not.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec

from barista_bench.annotate.detection import Detector, contact_confidence, load_detector
from barista_bench.annotate.flow_propagation import FlowPropagator
from barista_bench.annotate.geometry import bootstrap_layers
from barista_bench.annotate.identities import Identities, KeyframeGroup, conditioning, link_segments, segments_of
from barista_bench.annotate.project import (
    ACCEPTED,
    EDITS,
    KEYFRAMES,
    LAYERS,
    LINKS,
    PROMPTS,
    PROPOSALS,
    REVIEW,
    SEGMENTS,
    SIGNAL,
    TRACKS,
    Project,
    VideoFiles,
    read_tracks,
)
from barista_bench.annotate.propagation import CopyNearest, FrameMasks, LinearBox, Propagator, given_masks
from barista_bench.annotate.proposals import PromptedSegmenter, Proposer
from barista_bench.annotate.records import (
    AskedKeyframe,
    KeyframesFile,
    LayersFile,
    LinksFile,
    ProposalsFile,
    Provenance,
    ReviewFile,
    SegmentsFile,
    SignalFile,
    TrackLine,
    TrackMask,
)
from barista_bench.annotate.review import doubtful_frames
from barista_bench.annotate.sam_propagation import SamPropagator
from barista_bench.annotate.segments import choose_keyframes, interaction_segments
from barista_bench.errors import ConfigError
from barista_bench.files.reading import bounded_lines
from barista_bench.files.writing import replacing
from barista_bench.media.video import FrameReader
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.masks import Rle

_OURS = "barista_bench"
_SEGMENT_FOLDER = "tracks"


_detector = functools.cache(load_detector)
_segmenter = functools.cache(PromptedSegmenter.load)


@functools.cache
def propagator_of(name: str) -> Propagator:
    """The propagator of a name in project.json. Raises ConfigError for an unknown one, ModelError."""
    kind, _, checkpoint = name.partition(":")
    if kind == "sam" and checkpoint:
        return SamPropagator.load(checkpoint)
    known: dict[str, Callable[[], Propagator]] = {
        "flow": FlowPropagator,
        "flow+colour": partial(FlowPropagator, colour=True),
        "copy_nearest": CopyNearest,
        "linear_box": LinearBox,
    }
    if name not in known:
        raise ConfigError(f"propagator {name!r} is unknown. Remedy: give {', '.join(known)} or sam:CHECKPOINT")
    return known[name]()


class Work:
    """What the stages of one video share."""

    def __init__(self, project: Project, video: VideoFiles) -> None:
        self.project = project
        self.video = video

    @functools.cached_property
    def propagator(self) -> Propagator:
        return propagator_of(self.project.settings.propagator)

    @property
    def detector(self) -> Detector | None:
        name = self.project.settings.detector
        return None if name is None else _detector(name)

    @property
    def segmenter(self) -> PromptedSegmenter | None:
        name = self.project.settings.segmenter
        return None if name is None else _segmenter(name)

    def identities(self) -> Identities:
        boundaries = self.video.read(LINKS, LinksFile).boundaries
        return Identities(self.video.accepted(), boundaries, self.video.edits())

    def segments(self) -> list[KeyframeGroup]:
        return segments_of(self.video.accepted(), self.video.asked())


@dataclass(frozen=True)
class AnnotationStage:
    """What a stage needs, may read besides, and writes; what makes it, and the making itself."""

    name: str
    writes: str
    needs: tuple[str, ...]
    made_by: Callable[[Work], ModelIdentity | None]
    """None where the settings do not ask for the stage."""
    make: Callable[[Work, Provenance], None]
    reads: tuple[str, ...] = ()

    def provenance(self, work: Work, identity: ModelIdentity) -> Provenance:
        """What the file would be made from now."""
        contents = {name: _content(work.video.folder / name) for name in (*self.needs, *self.reads)}
        return Provenance.of(self.name, identity, work.video.source, contents)

    def state(self, work: Work) -> str:
        """`done`, `stale`, `ready`, `waiting` for a file, or `off`."""
        identity = self.made_by(work)
        if identity is None:
            return "off"
        if not all(work.video.has(name) for name in self.needs):
            return "waiting"
        if not work.video.has(self.writes):
            return "ready"
        made_from = _made_from(work.video.folder / self.writes)
        return "done" if made_from == self.provenance(work, identity).inputs else "stale"


# ---------------------------------------------------------------- the stages


def _detect(work: Work, provenance: Provenance) -> None:
    domain, detector = work.project.vocabulary(), work.detector
    assert detector is not None
    with work.video.open() as frames:
        confidence = list(contact_confidence(detector, frames, domain))
    work.video.write(
        SIGNAL, SignalFile(by=provenance.model, verified=False, confidence=confidence, provenance=provenance)
    )


def _detecting(work: Work) -> ModelIdentity | None:
    by_person = work.video.has(SIGNAL) and work.video.read(SIGNAL, SignalFile).verified
    return None if by_person or work.detector is None else work.detector.identity


def _segment(work: Work, provenance: Provenance) -> None:
    signal = work.video.read(SIGNAL, SignalFile)
    confidence = [float("nan") if value is None else value for value in signal.confidence]
    settings = msgspec.structs.asdict(work.project.settings.segments)
    ranges = interaction_segments(confidence, work.video.source.fps, **settings)
    work.video.write(SEGMENTS, SegmentsFile(provenance=provenance, segments=ranges))


def _choose(work: Work, provenance: Provenance) -> None:
    ranges = work.video.read(SEGMENTS, SegmentsFile).segments
    source = work.video.source
    chosen = choose_keyframes(ranges, source.frames, work.propagator.reach(source.fps))
    asked = [AskedKeyframe(frame=frame, segment=_segment_of(frame, ranges)) for frame in chosen]
    work.video.write(KEYFRAMES, KeyframesFile(provenance=provenance, keyframes=asked))


def _segment_of(frame: int, ranges: Sequence[tuple[int, int]]) -> int:
    """The number of the last contact segment that has begun; what lies before the first one belongs to it."""
    return max(0, sum(start <= frame for start, _ in ranges) - 1)


def _propose(work: Work, provenance: Provenance) -> None:
    proposer = Proposer(work.project.vocabulary(), work.propagator, work.segmenter, work.detector)
    keyframes = proposer.proposals(work.video)
    work.video.write(PROPOSALS, ProposalsFile(provenance=provenance, keyframes=keyframes))


def _proposing(work: Work) -> ModelIdentity | None:
    """None where there is nothing to ask, or nothing to be asked."""
    accepted = {keyframe.frame for keyframe in work.video.accepted().keyframes}
    is_waiting = bool(work.video.asked().keys() - accepted)
    if not work.video.has(PROMPTS) and not (is_waiting and (work.segmenter or accepted)):
        return None
    models = {"segmenter": work.segmenter, "detector": work.detector, "propagator": work.propagator}
    settings: dict[str, str | int | float | bool | None] = {}
    for kind, model in models.items():
        if model is not None:
            settings |= {kind: model.identity.name, f"{kind}_revision": model.identity.revision}
    return ModelIdentity(_OURS, None, settings)


def _link(work: Work, provenance: Provenance) -> None:
    video = work.video
    earlier = video.read(LINKS, LinksFile).boundaries if video.has(LINKS) else []
    with video.open() as frames:
        boundaries = link_segments(
            work.segments(),
            video.accepted(),
            frames,
            work.propagator,
            threshold=work.project.settings.link_threshold,
            video=video.source.sha256,
            earlier=earlier,
        )
    video.write(LINKS, LinksFile(provenance=provenance, boundaries=boundaries))


def _track(work: Work, provenance: Provenance) -> None:
    """Each segment over all frames up to the first keyframe of the next one, which it is conditioned on as well."""
    video, segments, identities = work.video, work.segments(), work.identities()
    folder = video.folder / _SEGMENT_FOLDER
    folder.mkdir(exist_ok=True)
    parts: list[tuple[Path, range]] = []
    with video.open() as frames:
        for segment, following in pairwise([*segments, None]):
            assert segment is not None
            start = segment.keyframes[0].frame if parts else 0
            end = following.keyframes[0].frame if following else len(frames)
            keyframes = [*segment.keyframes, *(following.keyframes[:1] if following else [])]
            given = conditioning(keyframes, identities, video.source.height, video.source.width)
            span = range(start, min(end + 1, len(frames)))
            key = Provenance.of("segment", work.propagator.identity, video.source, sorted(given.items()), span.stop)
            path = folder / f"{segment.number:04d}.jsonl"
            if _made_from(path) != key.inputs:
                _write_tracks(path, key, _propagated(work.propagator, frames, given, span))
            parts.append((path, range(start, end)))
    lines = (line for path, span in parts for line in read_tracks(path, video.source) if line.frame in span)
    _write_tracks(video.folder / TRACKS, provenance, lines)
    for path in set(folder.glob("*.jsonl")) - {path for path, _ in parts}:
        path.unlink()


def _propagated(
    propagator: Propagator, frames: FrameReader, given: dict[int, dict[str, Rle]], span: range
) -> Iterator[TrackLine]:
    if set(span) <= given.keys():  # masks made elsewhere, on every frame
        results = (FrameMasks(frame, given_masks(given[frame])) for frame in span)
    else:
        results = (result for result in propagator.propagate(frames, given, span))
    for frame, masks in results:
        rows = {
            name: TrackMask(counts=mask.rle.counts, confidence=round(min(max(mask.confidence, 0.0), 1.0), 4))
            for name, mask in masks.items()
        }
        yield TrackLine(frame=frame, masks=rows)


def _write_tracks(path: Path, provenance: Provenance, lines: Iterator[TrackLine]) -> None:
    with replacing(path) as partial_path, partial_path.open("wb") as file:
        file.write(msgspec.json.encode(provenance) + b"\n")
        for line in lines:
            file.write(msgspec.json.encode(line) + b"\n")


def _review(work: Work, provenance: Provenance) -> None:
    source = work.video.source
    given = {keyframe.frame for keyframe in work.video.accepted().keyframes}
    frames = doubtful_frames(work.video.tracks(), given, source.width, source.height, source.fps)
    work.video.write(REVIEW, ReviewFile(provenance=provenance, frames=frames))


def _lay(work: Work, provenance: Provenance) -> None:
    source, identities = work.video.source, work.identities()
    layers = bootstrap_layers(
        work.video.tracks(),
        [identities.renamed(keyframe) for keyframe in work.video.accepted().keyframes],
        identities.categories,
        work.project.vocabulary(),
        (source.height, source.width),
        source.fps,
    )
    work.video.write(LAYERS, LayersFile(provenance=provenance, layers=layers))


def _ours(work: Work) -> ModelIdentity:
    return ModelIdentity(_OURS)


def _segmenting(work: Work) -> ModelIdentity:
    return ModelIdentity(_OURS, None, msgspec.structs.asdict(work.project.settings.segments))


def _choosing(work: Work) -> ModelIdentity:
    return ModelIdentity(_OURS, None, {"reach": work.propagator.reach(work.video.source.fps)})


def _linking(work: Work) -> ModelIdentity:
    identity = work.propagator.identity
    settings = {**identity.settings, "threshold": work.project.settings.link_threshold}
    return ModelIdentity(identity.name, identity.revision, settings)


def _tracking(work: Work) -> ModelIdentity:
    return work.propagator.identity


BEFORE_MASKS = (
    AnnotationStage("signal", SIGNAL, (), _detecting, _detect),
    AnnotationStage("segments", SEGMENTS, (SIGNAL,), _segmenting, _segment),
    AnnotationStage("keyframes", KEYFRAMES, (SEGMENTS,), _choosing, _choose),
    AnnotationStage("proposals", PROPOSALS, (KEYFRAMES,), _proposing, _propose, reads=(ACCEPTED, PROMPTS)),
)
AFTER_MASKS = (
    AnnotationStage("links", LINKS, (ACCEPTED,), _linking, _link, reads=(KEYFRAMES,)),
    AnnotationStage("tracks", TRACKS, (ACCEPTED, LINKS), _tracking, _track, reads=(KEYFRAMES, EDITS)),
    AnnotationStage("review", REVIEW, (TRACKS, ACCEPTED), _ours, _review),
    AnnotationStage("layers", LAYERS, (TRACKS, ACCEPTED, LINKS), _ours, _lay, reads=(EDITS,)),
)


def _content(path: Path) -> str | None:
    """SHA-256 of a file, None where there is none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Header(msgspec.Struct):
    provenance: Provenance | None = None


def _made_from(path: Path) -> str | None:
    """The digest of what a stage's file was made from; None for a file that is not there or cannot be read."""
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
