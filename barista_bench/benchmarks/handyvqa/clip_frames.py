"""Where the clip of a question lies, and which of its frames are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barista_bench.errors import DataError
from barista_bench.files.paths import confined
from barista_bench.media.frame_choice import evenly_spaced_with, in_window, nearest_frame
from barista_bench.media.video.readers import VideoFacts, video_facts

HALF_WINDOW_S = 2.5
"""Seconds before and after the centre of a clip (paper, section 3: a narration's 5 s)."""


@dataclass(frozen=True, slots=True)
class QuestionClip:
    """What is shown for a question.

    Args:
        video: file or folder of frames below the media's root, parts joined by "/"; it is the example's video id.
        is_folder: whether it is a folder of frames.
        centre_s: seconds in the video around which the clip lies; None for all of it.
        fps: frames a second of a folder, where it is known.
    """

    video: str
    is_folder: bool
    centre_s: float | None = None
    fps: float | None = None

    @classmethod
    def unnamed(cls, item_id: str) -> QuestionClip:
        """What a record without a clip has by default: its own folder of frames."""
        return cls(f"{item_id}_frames", True)


@dataclass(frozen=True, slots=True)
class Moment:
    """One frame, by its number or by its second."""

    frame: int | None
    second: float | None


@dataclass(frozen=True, slots=True)
class ClipFrames:
    """The frames chosen of one clip: `indices` in order, `annotated` those that must be shown, as given."""

    indices: tuple[int, ...]
    annotated: tuple[int, ...]
    facts: VideoFacts


def find_clip(videos: Path, category: str, item_id: str) -> QuestionClip:
    """The clip of a record that names none: the folder `<id>_frames`, else `<id>.mp4`, below `videos` or a folder of
    it called after the category. Where neither exists, the first name: it is then reported as missing.
    """
    for name, is_folder in ((f"{item_id}_frames", True), (f"{item_id}.mp4", False)):
        for parts in ((name,), (category, name)):
            path = confined(videos, *parts)
            if path.is_dir() if is_folder else path.is_file():
                return QuestionClip("/".join(parts), is_folder)
    return QuestionClip.unnamed(item_id)


def choose_frames(path: Path, clip: QuestionClip, count: int, annotated: Sequence[Moment] = ()) -> ClipFrames:
    """`count` frames of a clip in equal steps, first and last included, with the annotated ones among them.

    Raises:
        DataError: the clip is missing or damaged, or it lacks an annotated frame; names it.
    """
    if not (path.is_dir() if clip.is_folder else path.is_file()):
        kind = "folder of frames" if clip.is_folder else "video"
        raise DataError(f"{path}: no such {kind}. Remedy: fetch it, or name the folder that holds it with --videos")
    facts = video_facts(path, fps=clip.fps)
    window = range(facts.frame_count) if clip.centre_s is None else in_window(facts, clip.centre_s, HALF_WINDOW_S)
    frames = [_frame(facts, moment) for moment in annotated]
    for frame in frames:
        if frame not in window:
            raise DataError(
                f"{path}: the annotated frame {frame} is outside of the clip, {window.start} to {window.stop - 1}. "
                "Remedy: check that annotations and video match"
            )
    offsets = evenly_spaced_with(len(window), count, [frame - window.start for frame in frames])
    return ClipFrames(tuple(window[offset] for offset in offsets), tuple(frames), facts)


def _frame(facts: VideoFacts, moment: Moment) -> int:
    if moment.frame is not None:
        return moment.frame
    assert moment.second is not None  # the release has checked that there is one of the two
    return nearest_frame(facts, moment.second)
