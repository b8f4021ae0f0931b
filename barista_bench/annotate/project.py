"""Reads and writes an annotation project: a folder whose files hold the complete state.

    project.json, vocabulary.yaml     settings that people may edit, the videos, the controlled vocabulary
    <video>/signal.json ...           files written by `stages` and `decisions`; the records are in `records`

Every file is written completely or not at all, so that a killed command leaves the old file or the new file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from filelock import FileLock, Timeout

from barista_bench.annotate import records
from barista_bench.annotate.identities import Identities
from barista_bench.cluster import map_in_processes
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.file_cache import FileStamp
from barista_bench.files.owned_folders import check_output_path
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.files.reading import read_bounded, read_json_lines
from barista_bench.files.writing import write_whole
from barista_bench.media.video import FrameReader, open_reader
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.media.video.opening import VIDEO_SUFFIXES, track_note
from barista_bench.media.video.pyav_reader import PyavReader
from barista_bench.media.video.remuxing import REENCODE, check_mp4
from barista_bench.scene_graph import domain
from barista_bench.scene_graph.masks import Rle, run_problems
from barista_bench.scene_graph.release import MALFORMED, VIDEO_FILE
from barista_bench.version import __version__

PROJECT_FILE = "project.json"
VOCABULARY_FILE = "vocabulary.yaml"
LOCK_FILE = f"{PROJECT_FILE}.lock"
"""The file stays in the folder; it has no meaning while no process locks it."""
MOST_TRACK_LINE = 2**26
"""Limit of bytes for the masks of one frame."""
_MOST_EDIT = 2**20
"""Limit of bytes for one edit, enough for 500 long names."""
REMAKE = "remove the file and run `barista-bench annotate run` again"
_decode_track = msgspec.json.Decoder(records.TrackLine).decode
RecordT = TypeVar("RecordT", bound=records.ProjectRecord)
Size: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]


class VideoSource(records.ProjectRecord, frozen=True, kw_only=True):
    """A video of a project.

    `file` is relative to the project's folder of videos. Sizes are in displayed pixels. A video with a single frame has
    0 fps.
    """

    file: str
    sha256: str
    width: Size
    height: Size
    frames: Size
    fps: Annotated[float, msgspec.Meta(ge=0)]


class SegmentSettings(records.ProjectRecord, frozen=True, kw_only=True):
    """Settings for making stretches of contact from confidences; durations are in seconds.

    Args:
        threshold: a frame has contact if its filtered confidence is at least this.
        median_s: width of the median filter; 0 turns the filter off. The number of frames is made odd:
            `2 * floor(frames / 2) + 1`.
        shortest_s: shorter stretches do not count as interactions.
        gap_s: stretches with a gap of at most this are joined.
    """

    threshold: float = 0.5
    median_s: Seconds = 0.3
    shortest_s: Seconds = 0.3
    gap_s: Seconds = 0.5


class ProjectSettings(records.ProjectRecord, frozen=True, kw_only=True):
    """The settings that people may change in project.json. After a change, `run` repeats all stages that depend on it.

    Args:
        propagator: `flow`, `copy_nearest`, `lucas_kanade`, `sam:CHECKPOINT`, or a propagator of another
            package.
        second_opinion: a second propagator, or an empty text. Frames on which the two propagators disagree are
            doubtful.
        segments: settings for making segments from the contact signal.
        detector: an open-vocabulary detector of transformers, or `sam3:CHECKPOINT`; null for no detector. It makes a
            first contact signal, and finds objects by words.
        segmenter: makes masks from prompts, in the studio and as proposals, and on keyframes from the detector's boxes.
            It is `grabcut` (needs no weights), `sam:CHECKPOINT` (SAM 2 or 3), or a segmenter of another package; null
            for no segmenter.
        link_threshold: objects of adjacent segments are linked if their masks agree at least this much (0..1).
    """

    propagator: str = "flow"
    second_opinion: str = ""
    segments: SegmentSettings = SegmentSettings()
    detector: str | None = None
    segmenter: str | None = "grabcut"
    link_threshold: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5


class ProjectFile(records.ProjectRecord, frozen=True, kw_only=True):
    """The content of project.json. `lost` has the files that could not be read as a video, with the reason, by name."""

    version: Literal[1] = 1
    made_with: str
    folder: str
    settings: ProjectSettings
    videos: dict[str, VideoSource]
    lost: dict[str, str]


@dataclass(frozen=True)
class Project:
    """An open project."""

    folder: Path
    file: ProjectFile

    @property
    def settings(self) -> ProjectSettings:
        return self.file.settings

    def vocabulary(self) -> domain.Domain:
        """Return the controlled vocabulary. Raises ConfigError if the file is invalid."""
        return domain.load_domain(self.folder / VOCABULARY_FILE)

    def video(self, video_id: str) -> VideoFiles:
        """Return the files of a video. Raises DataError for a video that is not in the project."""
        if video_id not in self.file.videos:
            video_ids = ", ".join(sorted(self.file.videos)[:5])
            raise DataError(f"{self.folder}: no video {video_id!r}. Fix: name one of {video_ids} ...")
        source = self.file.videos[video_id]
        path = confine(Path(self.file.folder), source.file)
        return VideoFiles(self, confine(self.folder, video_id), video_id, source, path)


class VideoFiles(NamedTuple):
    """One video of a project: its folder, its properties, and the path of the video."""

    project: Project
    folder: Path
    video_id: str
    source: VideoSource
    path: Path

    def file(self, kind: type[records.ProjectRecord]) -> Path:
        return self.folder / kind.FILE

    def has(self, kind: type[records.ProjectRecord]) -> bool:
        return self.file(kind).is_file()

    def read(self, kind: type[RecordT]) -> RecordT:
        return records.read_record(self.file(kind), kind)

    def write(self, record: records.ProjectRecord) -> None:
        self.folder.mkdir(exist_ok=True)
        records.write_record(self.file(type(record)), record)

    def accepted(self) -> records.AcceptedFile:
        """Return the masks that people have accepted so far.

        Raises DataError if the file cannot be read, or if a mask does not fit this video.
        """
        if not self.has(records.AcceptedFile):
            return records.AcceptedFile(objects={}, keyframes=[])
        path = self.file(records.AcceptedFile)
        return _read_accepted(path, file_stamp(path), self.source)

    def asked_segments(self) -> dict[int, int]:
        """Return the segment of each frame that people are asked to annotate; empty until keyframes are chosen."""
        if not self.has(records.KeyframesFile):
            return {}
        return {keyframe.frame: keyframe.segment for keyframe in self.read(records.KeyframesFile).keyframes}

    def prompts(self) -> list[records.MaskPrompt]:
        return self.read(records.PromptsFile).prompts if self.has(records.PromptsFile) else []

    def segments(self) -> list[records.Range]:
        return self.read(records.SegmentsFile).segments if self.has(records.SegmentsFile) else []

    def links(self) -> list[records.Boundary]:
        return self.read(records.LinksFile).boundaries if self.has(records.LinksFile) else []

    def accepted_layers(self) -> records.Layers:
        """Return the layers that people have accepted so far."""
        kind = records.AcceptedLayersFile
        return self.read(kind).layers if self.has(kind) else records.Layers()

    def edits(self) -> list[records.SignedEdit]:
        """Return all edits of identities in order, including undone edits."""
        if not self.has(records.SignedEdit):
            return []
        decode = msgspec.json.Decoder(records.SignedEdit).decode
        remedy = "restore the file; edits enter by `barista-bench annotate accept`"
        lines = read_json_lines(self.file(records.SignedEdit), _MOST_EDIT, decode, what="no edit", remedy=remedy)
        return [edit for _, edit in lines]

    def identities(self) -> Identities:
        """Return the identities of the objects in the tracks. Raises DataError for an impossible edit."""
        return Identities(self.accepted(), self.links(), self.edits())

    def tracks(self) -> Iterator[records.TrackLine]:
        """Yield the masks of every frame, in order.

        Raises DataError for invalid tracks, or if there are no tracks yet.
        """
        if not self.has(records.TrackLine):
            remedy = "run `barista-bench annotate run` until it is done"
            raise DataError(f"{self.video_id}: has no tracks yet. Fix: {remedy}")
        return read_tracks(self.file(records.TrackLine), self.source)

    def open(self) -> FrameReader:
        """Open the video's frames. Raises VideoError, or DataError as `check_video` does."""
        self.check_video()
        return open_reader(self.path)

    def check_video(self) -> None:
        """Raise DataError if the video file has changed since the project began.

        The file is read only if its size or time has changed.
        """
        if video_sha256(self.path, across_processes=True) != self.source.sha256:
            remedy = "put the file back, or start a new project"
            raise DataError(f"{self.path}: is not the file that the project was started with. Fix: {remedy}")


@lru_cache(4)
def _read_accepted(path: Path, stamp: FileStamp | None, source: VideoSource) -> records.AcceptedFile:
    """Read a file once as long as it is unchanged: an hour has 50,000 masks. Callers must not change the result."""
    accepted = records.read_record(path, records.AcceptedFile)
    check_masks((mask.rle for keyframe in accepted.keyframes for mask in keyframe.masks.values()), source, path)
    return accepted


def check_masks(rles: Iterable[Rle], source: VideoSource, path: Path | str, remedy: str = "restore the file") -> None:
    """Raise DataError, with the file's name, for a mask without the video's size, before native code reads it."""
    masks = list(rles)
    for rle in masks:
        if rle.size != (source.height, source.width):
            what = f"a mask of {rle.size[1]}x{rle.size[0]} px, the video has {source.width}x{source.height}"
            raise DataError(f"{path}: {what}. Fix: {remedy}")
    for problem in run_problems([rle.counts for rle in masks], source.height * source.width):
        if problem:
            raise DataError(f"{path}: a mask's counts are not run lengths: {problem}. Fix: {remedy}")


def read_tracks(path: Path, source: VideoSource) -> Iterator[records.TrackLine]:
    """Yield all lines after the first, which is the provenance.

    Raises DataError with the line for an invalid line or mask.
    """
    lines = read_json_lines(path, MOST_TRACK_LINE, bytes, what="no frame of tracks", remedy=REMAKE)
    next(lines, None)
    for number, line in lines:
        yield decode_track(line, f"{path}: line {number}", source)


def decode_track(line: bytes, where: str, source: VideoSource) -> records.TrackLine:
    """Decode a line of tracks.jsonl and check its masks. Raises a DataError that begins with `where`."""
    try:
        decoded = _decode_track(line)
    except MALFORMED as error:
        raise DataError(f"{where}: no frame of tracks ({error}). Fix: {REMAKE}") from error
    size = (source.height, source.width)
    check_masks((Rle(mask.counts, size) for mask in decoded.masks.values()), source, where, REMAKE)
    return decoded


def start_project(
    folder: Path, videos: Path, vocabulary: Path | None = None, *, propagator: str = "flow", num_proc: int = 1
) -> Project:
    """Create a project of all videos in a folder: `NAME.mp4` and the like, or `NAME/video.mp4` as in a release.

    Args:
        folder: a new or empty folder.
        vocabulary: a domain file; None for coffee making. The file is copied into the project.
        propagator: see `ProjectSettings`.
        num_proc: the number of processes.

    Raises:
        ConfigError: the folder already contains a project, or the vocabulary is invalid.
        DataError: the folder has no video. Unreadable videos raise no error, but are listed as lost.
    """
    target = check_output_path(folder)
    if (target / PROJECT_FILE).exists():
        raise ConfigError(f"{folder}: already contains a project. Fix: run it, or choose another folder")
    packaged = resources.files(domain.__package__).joinpath("domain.yaml")
    remedy = "name a domain file"
    words = read_bounded(vocabulary, domain.MAX_BYTES, remedy=remedy) if vocabulary else packaged.read_bytes()
    names = list(_video_files(videos))
    if not names:
        raise DataError(f"{videos}: no video in it. Fix: name the folder of the .mp4 files, or of a release")
    sources: dict[str, VideoSource] = {}
    lost: dict[str, str] = {}
    for (video_id, file), outcome in zip(
        names, map_in_processes(partial(_probe_video, videos), [file for _, file in names], num_proc), strict=True
    ):
        if isinstance(outcome, str):
            lost[file] = outcome
        elif video_id in sources:
            lost[file] = f"another video is called {video_id!r} already"
        else:
            sources[video_id] = outcome
    if not sources:
        raise DataError(f"{videos}: no video can be read: {next(iter(lost.values()))}")
    target.mkdir(parents=True, exist_ok=True)
    write_whole(target / VOCABULARY_FILE, words)
    domain.load_domain(target / VOCABULARY_FILE)
    state = ProjectFile(
        made_with=__version__,
        folder=str(videos.resolve()),
        settings=ProjectSettings(propagator=propagator),
        videos=sources,
        lost=lost,
    )
    records.write_record(target / PROJECT_FILE, state)
    return Project(target, state)


def track_notes(project: Project) -> list[str]:
    """Return a note with the used track for each video whose default video track is another. Raises VideoError."""
    paths = [project.video(video_id).path for video_id in sorted(project.file.videos)]
    return [f"{path}: {note}" for path in paths if (note := track_note(str(path)))]


def open_project(folder: Path) -> Project:
    """Open a project. Raises DataError if the folder has no project."""
    return Project(folder, records.read_record(folder / PROJECT_FILE, ProjectFile))


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Lock the project for writing by this process, until the end of the block or of the process.

    Raises ConfigError if another process writes the project.
    """
    try:
        with FileLock(folder / LOCK_FILE, timeout=0):
            yield
    except Timeout as error:
        raise ConfigError(f"{folder}: another process works on this project. Fix: wait until it is done") from error


def _video_files(videos: Path) -> Iterator[tuple[str, str]]:
    """Yield id and path (relative to the folder) of each file that looks like a video, sorted by path."""
    if not videos.is_dir():
        raise DataError(f"{videos}: no such folder. Fix: name the folder of the videos")
    for path in sorted(chain(videos.iterdir(), videos.glob(f"*/{VIDEO_FILE}"))):
        if path.is_file() and path.suffix.casefold() in VIDEO_SUFFIXES:
            is_release = path.parent != videos
            yield (path.parent.name if is_release else path.stem), path.relative_to(videos).as_posix()


def other_files(videos: Path) -> list[str]:
    """Return the sorted names of the visible files in a folder of videos that do not have the suffix of a video."""
    return sorted(
        path.name
        for path in videos.iterdir()
        if path.is_file() and not path.name.startswith(".") and path.suffix.casefold() not in VIDEO_SUFFIXES
    )


def _probe_video(videos: Path, file: str) -> VideoSource | str:
    """Return a video's properties, or the reason why the video cannot be used."""
    try:
        path = confine(videos, file)
        name = path.stem if path.parent == videos.resolve() else path.parent.name
        if not valid_video_id(name) or name.startswith("."):
            raise DataError(f"{name!r} is not a usable name for a video. Fix: rename the file")
        check_mp4(path)  # an export writes MP4
        with PyavReader(path) as frames:
            if damaged := frames.undecodable():
                what = f"{len(damaged)} of {len(frames)} frames cannot be decoded, the first is {damaged[0]}"
                raise DataError(f"{path}: {what}. Fix: {REENCODE}")
            sha256, (width, height) = video_sha256(path, across_processes=True), frames.size
            count, fps = len(frames), frames.fps
            return VideoSource(file=file, sha256=sha256, width=width, height=height, frames=count, fps=fps)
    except DataError as error:
        return str(error)


def file_stamp(path: Path) -> FileStamp | None:
    """Return a stamp that changes when a file is replaced; None without the file."""
    return FileStamp.of(path) if path.is_file() else None
