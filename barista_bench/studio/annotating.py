"""The pages to annotate and review a video: accepted annotations, proposals, and a person's decisions about them.

Decisions enter only through `annotate.decisions.accept`. Work that is not yet accepted is a draft: decisions in the
same format. The complete draft is saved in the person's file in the video's folder, so that a killed process loses
nothing.

A click on "Accept keyframe" becomes a stored decision in four files:

1. `static/frame_panel.js`: `acceptFrame`, which the button calls.
2. `static/annotation.js`: `acceptFrame` makes decisions of the frame's masks, and `handIn` sends them to
   `/api/project/accept`. (`server.py` calls the function that `AnnotationRoutes.writes` names for the path.)
3. `AnnotationRoutes._accept`, here, refuses decisions on an older state of the video, and names the person.
4. `annotate/decisions.py`: `accept` checks the decisions, and writes `accepted.json` in the video's folder.

"looks right" on a doubtful frame is part of the draft: `looksRight` of `static/annotate.js`, `save` of `annotation.js`,
`static/draft_keeper.js`, and `_keep_draft` here.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from barista_bench.annotate import records
from barista_bench.annotate.decisions import Decisions, accept
from barista_bench.annotate.identities import Identities
from barista_bench.annotate.project import REMAKE, Project, VideoFiles, check_masks, file_stamp, open_project, writing
from barista_bench.annotate.records import Layers, decode_record, digest, read_record, write_record
from barista_bench.annotate.running import missing_masks, run_video
from barista_bench.annotate.stages import AFTER_MASKS, BEFORE_MASKS
from barista_bench.annotate.track_index import TrackIndex
from barista_bench.errors import DataError
from barista_bench.files.file_cache import FileStamp
from barista_bench.scene_graph.coverage import frame_ranges
from barista_bench.scene_graph.masks import Rle
from barista_bench.studio.adjudicating import OtherAnnotator, annotator_agreement, other_annotators, others_videos
from barista_bench.studio.exploring import FrameRange, display_names
from barista_bench.studio.workspace import BackgroundWork, ConflictError, Json, Routes, Workspace, whole_number

log = logging.getLogger(__name__)

_FILES = (records.AcceptedFile, records.LinksFile, records.SignedEdit, records.AcceptedLayersFile, records.SignalFile)
_OFFER_FILES = (records.ProposalsFile, records.LayersFile, records.DescribedFile)
_DECISION_FILES = (records.AcceptedFile, records.SignedEdit, records.AcceptedLayersFile, records.PromptsFile)


class Draft(records.ProjectRecord, frozen=True, kw_only=True):
    """Work that a person has not accepted yet, and the doubtful frames that the person has seen.

    Revisions are consecutive. A page with an outdated `revision` must not replace the draft, unless the page wrote the
    last revision itself and the reply was lost. Revision 0 replaces any draft.
    """

    by: str = ""
    revision: int = 0
    page: str = ""
    decisions: Decisions
    looked_at: tuple[records.Frame, ...] = ()


class SeenDecisions(Decisions, frozen=True, kw_only=True):
    """Decisions, and the `version` of the video on which they are based; null means that any version will do."""

    seen: str | None = None


@dataclass(frozen=True)
class AnnotatedVideo:
    """Decisions about a video, and proposals for it, as its files were at `stamp`."""

    stamp: tuple[FileStamp | None, ...]
    keyframes: Mapping[int, records.AcceptedKeyframe]
    identities: Identities
    suggestions: Mapping[int, list[Json]]
    offered_layers: list[Json]
    offered_contacts: list[Json]

    def accepted_as(self, name: str, frame: int) -> str:
        """Return the id under which a tracked object's mask is accepted on a frame."""
        on_frame = self.keyframes[frame].masks if frame in self.keyframes else {}
        candidates = (*on_frame, name, *sorted(self.identities.categories))
        return next((accepted_id for accepted_id in candidates if self.identities.of(accepted_id, frame) == name), name)


class AnnotationRoutes(Routes):
    """Requests about the first opened project. It has one writer: a decision waits until the running stages end."""

    def __init__(self, workspace: Workspace, project: Project) -> None:
        self._workspace, self._project, self.folder = workspace, project, project.folder
        self._tracks = TrackIndex()
        self._videos: dict[str, AnnotatedVideo] = {}
        self._runs: dict[str, BackgroundWork] = {}
        self._lock, self._turn, self._drafts = threading.Lock(), threading.Lock(), threading.Lock()
        self.reads = {
            "/api/project": lambda query: self._video_state(self._video(query["video"])),
            "/api/project/frame": lambda query: self._frame(self._video(query["video"]), whole_number(query, "frame")),
            "/api/project/progress": self._progress,
            "/api/agreement": lambda query: annotator_agreement((project, *workspace.compared), query["video"]),
        }
        self.writes = {
            "/api/project/accept": self._accept,
            "/api/project/draft": self._keep_draft,
            "/api/project/run": self._run_stages,
        }

    def _video(self, video_id: str) -> VideoFiles:
        """Return the present entry of a video in project.json, which people may edit at any time. Raises DataError."""
        return open_project(self._project.folder).video(video_id)

    def _video_state(self, video: VideoFiles) -> Json:
        video.check_video()
        annotated, missing = self._read(video), missing_masks(video)
        with self._drafts:
            draft, draft_problem = self._stored_draft(video)
        stages = BEFORE_MASKS if missing else (*BEFORE_MASKS, *AFTER_MASKS)
        categories, names = annotated.identities.categories, display_names(annotated.identities.categories)
        domain = video.project.vocabulary()
        hands: Iterator[str] = (name for names in domain.hands.values() for name in names)
        return {
            "version": _version(video),
            "width": video.source.width,
            "height": video.source.height,
            "missing": missing,
            "can_run": any(stage.state(video) in ("ready", "stale") for stage in stages),
            "contacts": _contacts(video) if _is_signed(video) else None,
            "offered_contacts": annotated.offered_contacts,
            "asked": sorted(video.asked_segments()),
            "accepted": [{"frame": k.frame, "complete": k.complete} for k in annotated.keyframes.values()],
            "objects": [{"id": item, "category": categories[item], "name": names[item]} for item in names],
            "edits": video.edits(),
            "layers": video.accepted_layers(),
            "offered_layers": annotated.offered_layers,
            "doubts": video.read(records.ReviewFile).frames if video.has(records.ReviewFile) else [],
            "has_segmenter": video.project.settings.segmenter is not None,
            "vocabulary": {
                "categories": sorted({*domain.categories, *hands}),
                "attributes": {kind: sorted(words.values) for kind, words in domain.attributes.items()},
                "relations": {domain.contact_type: sorted(domain.contacts), domain.place_type: sorted(domain.places)},
            },
            "draft": draft,
            "draft_problem": draft_problem,
            "export": shlex.join(["barista-bench", "annotate", "export", str(video.project.folder), "--out", "graphs"]),
        }

    def _frame(self, video: VideoFiles, number: int) -> Json:
        """Return a frame's masks: accepted masks, masks of the tracks, and offered masks.

        `object` is an object's id in the tracks, and `accepted_as` is its id in decisions.
        """
        if number >= video.source.frames:
            remedy = f"it has {video.source.frames}, counted from 0"
            raise DataError(f"{video.video_id}: no frame {number}. Fix: {remedy}")
        annotated, track = self._read(video), self._tracks.line(video, number)
        keyframe = annotated.keyframes.get(number)
        size = (video.source.height, video.source.width)
        return {
            "accepted": None
            if keyframe is None
            else [
                {"object": annotated.identities.of(name, number), "accepted_as": name, "mask": mask.rle, "by": mask.by}
                for name, mask in keyframe.masks.items()
            ],
            "tracks": [
                {"object": name, "accepted_as": annotated.accepted_as(name, number), "mask": Rle(mask.counts, size)}
                for name, mask in (track.masks.items() if track else ())
            ],
            "suggestions": annotated.suggestions.get(number, []),
        }

    def _read(self, video: VideoFiles) -> AnnotatedVideo:
        compared = others_videos(video, self._workspace.compared)
        kinds = (*_FILES, *_OFFER_FILES)
        stamp = tuple(file_stamp(files.file(kind)) for files in (video, *compared.values()) for kind in kinds)
        with self._lock:
            annotated = self._videos.get(video.video_id)
            if annotated is None or annotated.stamp != stamp:
                annotated = self._videos[video.video_id] = _read_files(video, other_annotators(video, compared), stamp)
            return annotated

    def _accept(self, body: bytes) -> Json:
        """Accept decisions in the name of the person who started the studio, and start the stages that follow.

        The name in the body is ignored.
        """
        decisions = decode_record(body, SeenDecisions, "decisions")
        video = self._video(decisions.video)
        video.check_video()
        with self._turn:
            if decisions.seen not in (None, _version(video)):
                remedy = "look at it as it is now, and decide again"
                raise ConflictError(
                    f"{video.video_id}: its decisions have changed since this page read them. Fix: {remedy}"
                )
            files = accept(video.project, msgspec.structs.replace(decisions, by=self._workspace.person))
        self._start_stages(video)
        return {"files": files}

    def _run_stages(self, body: bytes) -> Json:
        self._start_stages(self._video(decode_record(body, Decisions, "run").video))
        return {}

    def _start_stages(self, video: VideoFiles) -> None:
        """Run all stages whose inputs exist, unless this is already scheduled."""
        with self._lock:
            work = self._runs.get(video.video_id)
            if work is None or work.state not in ("waiting", "running"):
                self._runs[video.video_id] = BackgroundWork(lambda work: self._make_stages(video, work), self._turn)

    def _make_stages(self, video: VideoFiles, work: BackgroundWork) -> None:
        folder = video.project.folder
        with writing(folder):
            outcome = run_video(folder, video.video_id, lambda stage: setattr(work, "step", stage))
        if outcome.problem:
            raise DataError(outcome.problem)

    def _progress(self, query: Mapping[str, str]) -> Json:
        work = self._runs.get(query["video"])
        return work.progress if work else {"state": "none"}

    def _keep_draft(self, body: bytes) -> Json:
        draft = decode_record(body, Draft, "draft")
        video = self._video(draft.decisions.video)
        video.folder.mkdir(exist_ok=True)
        with self._drafts:
            stored, _ = self._stored_draft(video)
            is_next = draft.revision in (0, stored.revision + 1 if stored else 1)
            if not is_next and not (stored and draft.page and stored.page == draft.page):
                remedy = "close one of the two, and reload the other"
                raise ConflictError(f"{video.video_id}: your draft of it was changed in another page. Fix: {remedy}")
            write_record(self._draft_file(video), msgspec.structs.replace(draft, by=self._workspace.person))
        return {}

    def _stored_draft(self, video: VideoFiles) -> tuple[Draft | None, str]:
        """Return the person's draft. An unreadable draft is moved aside, and the reason is returned."""
        path = self._draft_file(video)
        if not path.is_file():
            return None, ""
        try:
            return read_record(path, Draft), ""
        except DataError as error:
            broken = path.replace(path.with_name(f"{path.name}.broken"))
            log.warning("%s: set aside: %s", broken, error)
            return None, f"your draft cannot be read, and lies in {broken} now ({error})"

    def _draft_file(self, video: VideoFiles) -> Path:
        return video.folder / draft_name(self._workspace.person)


def draft_name(person: str) -> str:
    """Return the name of a person's draft in a video's folder."""
    return f"draft-{digest(person)[:16]}.json"


def _version(video: VideoFiles) -> str:
    """Return a stamp that changes with each decision: of the files that decisions change, and of signed contacts."""
    kinds = (*_DECISION_FILES, records.SignalFile) if _is_signed(video) else _DECISION_FILES
    return digest([file_stamp(video.file(kind)) for kind in kinds])


def _is_signed(video: VideoFiles) -> bool:
    return video.has(records.SignalFile) and video.read(records.SignalFile).verified


def _read_files(
    video: VideoFiles, annotators: Sequence[OtherAnnotator], stamp: tuple[FileStamp | None, ...]
) -> AnnotatedVideo:
    identities = video.identities()
    suggestions: dict[int, list[Json]] = {}
    proposed = video.read(records.ProposalsFile).keyframes if video.has(records.ProposalsFile) else []
    rles = [proposal.rle for entry in proposed for proposal in entry.proposals]
    check_masks(rles, video.source, video.file(records.ProposalsFile), REMAKE)
    for entry in proposed:
        suggestions[entry.frame] = [_suggestion(p.object, p.category, p.origin, p.rle) for p in entry.proposals]
    layers, contacts = list(_proposed_layers(video)), []
    if video.has(records.SignalFile) and not (signal := video.read(records.SignalFile)).verified:
        contacts.append({"origin": signal.by, "ranges": _contacts(video)})
    for annotator in annotators:
        for frame, name, category, rle in annotator.masks():
            suggestions.setdefault(frame, []).append(_suggestion(name, category, annotator.origin, rle))
        layers.append((annotator.origin, annotator.layers()))
        contacts.append({"origin": annotator.origin, "ranges": _contacts(annotator.video)})
    return AnnotatedVideo(
        stamp=stamp,
        keyframes={keyframe.frame: keyframe for keyframe in video.accepted().keyframes},
        identities=identities,
        suggestions=suggestions,
        offered_layers=[
            {"origin": origin, "layers": _about_known_objects(said, identities)} for origin, said in layers
        ],
        offered_contacts=contacts,
    )


def _proposed_layers(video: VideoFiles) -> Iterator[tuple[str, Layers]]:
    if video.has(records.LayersFile):
        yield "geometry", video.read(records.LayersFile).layers
    if video.has(records.DescribedFile):
        yield "model", video.read(records.DescribedFile).layers


def _suggestion(name: str | None, category: str, origin: str, rle: Rle) -> Json:
    return {"object": name, "category": category, "origin": origin, "mask": rle}


def _contacts(video: VideoFiles) -> list[FrameRange]:
    """Return the ranges where the unfiltered confidence reaches the project's threshold."""
    if not video.has(records.SignalFile):
        return []
    confidence = np.array(video.read(records.SignalFile).confidence, dtype=np.float64)  # null becomes NaN
    return frame_ranges(np.flatnonzero(confidence >= video.project.settings.segments.threshold))


def _about_known_objects(layers: Layers, identities: Identities) -> Layers:
    """Return only the statements about objects that the project has."""
    object_ids = identities.categories.keys()
    return msgspec.structs.replace(
        layers,
        attributes=[entry for entry in layers.attributes if object_ids >= set(entry.objects)],
        relations=[entry for entry in layers.relations if object_ids >= set(entry.objects)],
    )
