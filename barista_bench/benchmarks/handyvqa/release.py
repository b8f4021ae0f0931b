"""The HanDyVQA release: records checked into questions, where their clips lie, and which frames of them are shown.

A bad record costs that record, and is reported by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from barista_bench.benchmarks.handyvqa.record_files import (
    CATEGORIES,
    RVOS_CATEGORIES,
    AnnotatedRecord,
    ClipRecord,
    ItemRecord,
    RecordInFile,
    read_records,
)
from barista_bench.benchmarks.kinds.masks import damage, union
from barista_bench.errors import DataError, RecordError
from barista_bench.files.reading import confined, name_problem
from barista_bench.media.frame_choice import evenly_spaced_with, in_window, nearest_frame
from barista_bench.media.video.readers import VideoFacts, video_facts
from barista_bench.scene_graph import Problem, Rle, Severity

HALF_WINDOW_S = 2.5
"""Seconds before and after the centre of a clip (paper, section 3: a narration's 5 s)."""


@dataclass(frozen=True, slots=True)
class QuestionClip:
    """The clip of a question.

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
        """The default clip of a record without one: its own folder of frames."""
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


MULTIPLE = frozenset({"objects", "rvos_objects"})
"""Categories whose questions may have several right options."""


@dataclass(frozen=True, slots=True)
class AnnotatedFrame:
    """One frame with the region that answers the question: the union of the right options' masks."""

    moment: Moment
    mask: Rle
    options: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HandyvqaQuestion:
    """One checked record; `correct` are indices of `options`, ascending: those that count as right, maybe none."""

    item_id: str
    category: str
    question: str
    options: tuple[str, ...]
    correct: tuple[int, ...]
    split: str
    clip: QuestionClip | None
    annotated: tuple[AnnotatedFrame, ...]
    file: str
    row: int


class HandyvqaRelease:
    """Annotation files, read and checked at once; media are looked for when they are asked for.

    Args:
        root: a folder of records, or one file of them (see `record_files`).
        videos: below it lie the clips; by default `root`, or the folder that a file lies in.

    Raises:
        DataError: there are no records, or none that can be used.
    """

    def __init__(self, root: str | Path, videos: str | Path | None = None) -> None:
        self.root = Path(root)
        self.videos = Path(videos) if videos is not None else self.root if self.root.is_dir() else self.root.parent
        records, problems = read_records(self.root, ItemRecord)
        questions = checked_questions(records, problems)
        self.problems: Sequence[Problem] = tuple(problems)
        self.questions: Mapping[str, tuple[HandyvqaQuestion, ...]] = {
            category: tuple(question for question in questions if question.category == category)
            for category in CATEGORIES
        }
        if not questions:
            first = f", first: {self.problems[0]}" if self.problems else ""
            raise DataError(f"{self.root}: no usable record{first}. Remedy: correct the files")

    def video_path(self, video_id: str) -> Path:
        """Where a clip lies or would lie. Raises DataError for one outside `videos`."""
        return confined(self.videos, video_id)

    def clip(self, question: HandyvqaQuestion) -> QuestionClip:
        """The clip of a question, looked for by its id where the record names none."""
        return question.clip or find_clip(self.videos, question.category, question.item_id)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Questions by category, of those that have any."""
        return {category: len(questions) for category, questions in self.questions.items() if questions}


open_release = HandyvqaRelease


def checked_questions(records: Sequence[RecordInFile[ItemRecord]], problems: list[Problem]) -> list[HandyvqaQuestion]:
    """The questions of those records that can be used; what is wrong with the others is added to `problems`."""
    questions = []
    for record in records:
        findings: list[_Finding] = []
        try:
            questions.append(_question(record, findings))
        except RecordError as error:
            findings.append(("error", error.key, error.what, error.remedy))
        for severity, key, what, remedy in findings:
            fate = f": {record.item_id} is left out" if severity == "error" else f"; {record.item_id} is kept"
            problems.append(Problem(severity, record.file, record.key_of(key), what + fate, remedy))
    return questions


_Finding = tuple[Severity, str, str, str]
"""How bad, at which key of a record, what is wrong, and the remedy."""


def _question(record: RecordInFile[ItemRecord], findings: list[_Finding]) -> HandyvqaQuestion:
    """A record with what typed decoding cannot see checked. Raises RecordError."""
    content, has_masks = record.content, record.category in RVOS_CATEGORIES
    _check_texts(content, has_masks, findings)
    _check_correct(content, record.category, has_masks, findings)
    # As released, where one right option is asked for the first that is named counts.
    named = content.correct_idx if record.category in MULTIPLE else content.correct_idx[:1]
    return HandyvqaQuestion(
        item_id=record.item_id,
        category=record.category,
        question=(content.question or "").strip(),
        options=tuple(option.strip() for option in content.options),
        correct=tuple(sorted({index for index in named if 0 <= index < len(content.options)})),
        split=content.split,
        clip=None if content.clip is None else _clip(content.clip),
        annotated=_annotated(content) if has_masks else (),
        file=record.file,
        row=record.row,
    )


def _check_texts(content: ItemRecord, has_masks: bool, findings: list[_Finding]) -> None:
    texts = [option.strip().casefold() for option in content.options]
    blank = [f"options[{index}]" for index, text in enumerate(texts) if not text]
    if not (content.question or "").strip():
        blank.insert(0, "question")
    if blank and has_masks:
        raise RecordError(blank[0], "is blank", "write the text")
    findings += [("warning", key, "is blank", "write the text") for key in blank]
    if wrong := name_problem(content.split):
        raise RecordError("split", f"{content.split[:60]!r} is no name ({wrong})", "say test, val or train")
    for index, text in enumerate(texts):
        if text and (first := texts.index(text)) < index:
            findings.append(
                ("warning", f"options[{index}]", f"says what options[{first}] says", "make the options differ")
            )


def _check_correct(content: ItemRecord, category: str, has_masks: bool, findings: list[_Finding]) -> None:
    """Whether the right options can be scored: those of masks must be right, others are as released."""
    faults: list[tuple[str, str]] = []
    indices, count = content.correct_idx, len(content.options)
    beyond = [index for index in indices if not 0 <= index < count]
    distinct = len(set(indices))
    if not indices:
        faults.append(("names no option", "name the right one"))
    if beyond:
        faults.append((f"{beyond[0]} is none of the {count} options", "count from 0"))
    if distinct > 1 and category not in MULTIPLE:
        counted = "" if has_masks else ": the first counts"
        faults.append((f"{distinct} options are right, but {category} asks for one{counted}", "name one"))
    # The released script, too, passes over a question with one right option that names none.
    if faults and (has_masks or (not indices and category not in MULTIPLE)):
        raise RecordError("correct_idx", *faults[0])
    if distinct < len(indices):
        faults.append(("names an option twice: it counts once", "name each once"))
    if distinct == count and not beyond:
        faults.append(("every option is right", "add wrong options"))
    findings += [("warning", "correct_idx", *fault) for fault in faults]


def _clip(clip: ClipRecord) -> QuestionClip:
    name = clip.video if clip.video is not None else clip.frames
    if name is None or (clip.video is not None and clip.frames is not None):
        raise RecordError("clip", "names no video or folder, or both", "give `video` or `frames`")
    if wrong := next((what for part in name.split("/") if (what := name_problem(part))), None):
        what = f"{name[:100]!r} is no path below the videos ({wrong})"
        raise RecordError("clip", what, "give a relative path")
    if clip.fps is not None and clip.video is not None:
        raise RecordError("clip.fps", "a video file has times of its own", "leave fps out")
    if clip.frames is not None and clip.centre_seconds is not None and clip.fps is None:
        raise RecordError("clip.fps", "is missing: a folder of frames has no times", "give fps")
    return QuestionClip(name, clip.frames is not None, clip.centre_seconds, clip.fps)


def _annotated(content: ItemRecord) -> tuple[AnnotatedFrame, ...]:
    sizes = {target.segmentation.size for frame in content.annotated for target in frame.targets}
    if not sizes:
        raise RecordError("annotated", "no frame has a mask", "give annotated frames")
    if len(sizes) > 1:
        raise RecordError("annotated", "masks are of several sizes", "give masks of the video's frame size")
    frames = tuple(_annotated_frames(content, sizes.pop()))
    if len({frame.moment for frame in frames}) < len(frames):
        raise RecordError("annotated", "a frame is annotated twice", "join its targets")
    return frames


def _annotated_frames(content: ItemRecord, size: tuple[int, int]) -> Iterator[AnnotatedFrame]:
    is_untimed = content.clip is not None and content.clip.frames is not None and content.clip.fps is None
    for index, frame in enumerate(content.annotated):
        key = f"annotated[{index}]"
        if (frame.frame is None) == (frame.second is None):
            raise RecordError(key, "names no moment, or two", "give `frame` or `second`")
        if frame.second is not None and is_untimed:
            raise RecordError(f"{key}.second", "a folder of frames has no times", "give `frame`")
        yield _annotated_frame(frame, f"{key}.targets", content.correct_idx, size)


def _annotated_frame(frame: AnnotatedRecord, key: str, correct: Sequence[int], size: tuple[int, int]) -> AnnotatedFrame:
    options = [target.option for target in frame.targets]
    counts = [target.segmentation.counts for target in frame.targets]
    wrong = sorted(set(options) - set(correct))
    if wrong or len(set(options)) < len(options):
        what = f"option {wrong[0]} is not right" if wrong else "an option has two masks"
        raise RecordError(key, what, "give one mask for each right option that is visible")
    if damaged := damage(counts, size):
        raise RecordError(key, f"a mask is damaged ({damaged})", "write it with pycocotools")
    return AnnotatedFrame(Moment(frame.frame, frame.second), union(counts, size), tuple(sorted(options)))
