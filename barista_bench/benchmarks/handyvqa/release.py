"""The HanDyVQA release: records checked into questions. A bad record costs that record, and is reported by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from barista_bench.benchmarks.handyvqa.clips import Clip, Moment, find_clip
from barista_bench.benchmarks.handyvqa.masks import damage, union
from barista_bench.benchmarks.handyvqa.records import (
    CATEGORIES,
    RVOS_CATEGORIES,
    AnnotatedRecord,
    Item,
    ItemRecord,
    read_items,
)
from barista_bench.errors import DataError
from barista_bench.files.paths import confined, name_problem
from barista_bench.scene_graph import Problem, Rle
from barista_bench.scene_graph.problems import Severity

MULTIPLE = frozenset({"objects", "rvos_objects"})
"""Categories whose questions may have several right options."""


@dataclass(frozen=True, slots=True)
class AnnotatedFrame:
    """One frame with the region that answers the question: the union of the right options' masks."""

    moment: Moment
    mask: Rle
    options: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One checked record; `correct` are places among `options`, ascending: those that count as right, maybe none."""

    item_id: str
    category: str
    question: str
    options: tuple[str, ...]
    correct: tuple[int, ...]
    split: str
    clip: Clip | None
    annotated: tuple[AnnotatedFrame, ...]
    file: str
    row: int


class HandyvqaRelease:
    """Annotation files, read and checked at once; media are looked for when they are asked for.

    Args:
        root: a folder of records, or one file of them (see `records`).
        videos: below it lie the clips; by default `root`, or the folder that a file lies in.

    Raises:
        DataError: there are no records, or none that can be used.
    """

    def __init__(self, root: str | Path, videos: str | Path | None = None) -> None:
        self.root = Path(root)
        self.videos = Path(videos) if videos is not None else self.root if self.root.is_dir() else self.root.parent
        items, problems = read_items(self.root, ItemRecord)
        questions = checked(items, problems)
        self.problems: Sequence[Problem] = tuple(problems)
        self.questions: Mapping[str, tuple[Question, ...]] = {
            category: tuple(question for question in questions if question.category == category)
            for category in CATEGORIES
        }
        if not questions:
            first = f", first: {self.problems[0]}" if self.problems else ""
            raise DataError(f"{self.root}: no usable record{first}. Remedy: correct the files")

    def video_path(self, video_id: str) -> Path:
        """Where a clip lies or would lie. Raises DataError for one outside `videos`."""
        return confined(self.videos, video_id)

    def clip(self, question: Question) -> Clip:
        """The clip of a question, looked for by its id where the record names none."""
        return question.clip or find_clip(self.videos, question.category, question.item_id)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Questions by category, of those that have any."""
        return {category: len(found) for category, found in self.questions.items() if found}


def open_release(root: Path, videos: Path | None) -> HandyvqaRelease:
    """See `HandyvqaRelease`."""
    return HandyvqaRelease(root, videos)


def checked(items: Sequence[Item[ItemRecord]], problems: list[Problem]) -> list[Question]:
    """The questions of those records that can be used; what is wrong with the others is added to `problems`."""
    checks = _Checks(problems)
    return [question for item in items if (question := checks.question(item))]


def _right(item: Item[ItemRecord]) -> tuple[int, ...]:
    """Places of the options that count as right: as released, the first that is named where one is asked for."""
    record = item.record
    named = record.correct_idx if item.category in MULTIPLE else record.correct_idx[:1]
    return tuple(sorted({place for place in named if 0 <= place < len(record.options)}))


class _Checks:
    """What typed decoding cannot see, one record at a time; findings go to `problems`."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems

    def question(self, item: Item[ItemRecord]) -> Question | None:
        record = item.record
        if not (self._texts(item) and self._correct(item)):
            return None
        clip = None
        if record.clip is not None:
            clip = self._clip(item)
            if clip is None:
                return None
        annotated = self._annotated(item)
        if annotated is None:
            return None
        return Question(
            item_id=item.item_id,
            category=item.category,
            question=(record.question or "").strip(),
            options=tuple(option.strip() for option in record.options),
            correct=_right(item),
            split=record.split,
            clip=clip,
            annotated=annotated,
            file=item.file,
            row=item.row,
        )

    def _error(self, item: Item[ItemRecord], name: str, what: str, remedy: str) -> None:
        self._add("error", item, name, f"{what}: {item.item_id} is left out", remedy)

    def _warning(self, item: Item[ItemRecord], name: str, what: str, remedy: str) -> None:
        self._add("warning", item, name, f"{what}; {item.item_id} is kept", remedy)

    def _add(self, severity: Severity, item: Item[ItemRecord], name: str, what: str, remedy: str) -> None:
        key = f"{item.key}.{name}" if item.key else name
        self.problems.append(Problem(severity, item.file, key, what, remedy))

    def _texts(self, item: Item[ItemRecord]) -> bool:
        record = item.record
        blank = [f"options[{place}]" for place, option in enumerate(record.options) if not option.strip()]
        if not (record.question or "").strip():
            blank.insert(0, "question")
        if blank and item.category in RVOS_CATEGORIES:
            self._error(item, blank[0], "is blank", "write the text")
            return False
        for name in blank:
            self._warning(item, name, "is blank", "write the text")
        wrong = name_problem(record.split)
        if wrong:
            self._error(item, "split", f"{record.split[:60]!r} is no name ({wrong})", "say test, val or train")
            return False
        texts = [option.strip().casefold() for option in record.options]
        for place, text in enumerate(texts):
            if text and text in texts[:place]:
                what = f"says what options[{texts.index(text)}] says"
                self._warning(item, f"options[{place}]", what, "make the options differ")
        return True

    def _correct(self, item: Item[ItemRecord]) -> bool:
        """Whether a record's right options can be scored: those of masks must be right, others are as released."""
        places, count = item.record.correct_idx, len(item.record.options)
        strangers = [place for place in places if not 0 <= place < count]
        several = len(set(places))
        faults: list[tuple[str, str]] = []
        if not places:
            faults.append(("names no option", "name the right one"))
        if strangers:
            faults.append((f"{strangers[0]} is none of the {count} options", "count from 0"))
        if several > 1 and item.category not in MULTIPLE:
            counted = "" if item.category in RVOS_CATEGORIES else ": the first counts"
            faults.append((f"{several} options are right, but {item.category} asks for one{counted}", "name one"))
        # The released script, too, passes over a question with one right option that names none.
        if faults and (item.category in RVOS_CATEGORIES or (not places and item.category not in MULTIPLE)):
            self._error(item, "correct_idx", *faults[0])
            return False
        if several < len(places):
            faults.append(("names an option twice: it counts once", "name each once"))
        if several == count and not strangers:
            faults.append(("every option is right", "add wrong options"))
        for what, remedy in faults:
            self._warning(item, "correct_idx", what, remedy)
        return True

    def _clip(self, item: Item[ItemRecord]) -> Clip | None:
        clip = item.record.clip
        assert clip is not None
        name = clip.video if clip.video is not None else clip.frames
        if name is None or (clip.video is not None and clip.frames is not None):
            self._error(item, "clip", "names no video or folder, or both", "give `video` or `frames`")
        elif any(wrong := name_problem(part) for part in name.split("/")):
            self._error(item, "clip", f"{name[:100]!r} is no path below the videos ({wrong})", "give a relative path")
        elif clip.fps is not None and clip.video is not None:
            self._error(item, "clip.fps", "a video file has times of its own", "leave fps out")
        elif clip.frames is not None and clip.centre_seconds is not None and clip.fps is None:
            self._error(item, "clip.fps", "is missing: a folder of frames has no times", "give fps")
        else:
            return Clip(name, clip.frames is not None, clip.centre_seconds, clip.fps)
        return None

    def _annotated(self, item: Item[ItemRecord]) -> tuple[AnnotatedFrame, ...] | None:
        """The annotated frames of a record; None where it cannot be used."""
        frames = item.record.annotated
        if item.category not in RVOS_CATEGORIES:
            return ()
        if not frames:
            self._error(item, "annotated", "no frame has a mask", "give annotated frames")
            return None
        sizes = {target.segmentation.size for frame in frames for target in frame.targets}
        if len(sizes) != 1:
            what = "masks are of several sizes" if sizes else "no frame has a mask"
            self._error(item, "annotated", what, "give masks of the video's frame size")
            return None
        size = sizes.pop()
        found = [self._frame(item, place, frame, size) for place, frame in enumerate(frames)]
        usable = tuple(frame for frame in found if frame is not None)
        moments = [frame.moment for frame in usable]
        if len(set(moments)) < len(moments):
            self._error(item, "annotated", "a frame is annotated twice", "join its targets")
            return None
        return usable if len(usable) == len(found) else None

    def _frame(
        self, item: Item[ItemRecord], place: int, frame: AnnotatedRecord, size: tuple[int, int]
    ) -> AnnotatedFrame | None:
        name = f"annotated[{place}]"
        if (frame.frame is None) == (frame.second is None):
            self._error(item, name, "names no moment, or two", "give `frame` or `second`")
            return None
        if frame.second is not None and item.record.clip and item.record.clip.frames and item.record.clip.fps is None:
            self._error(item, f"{name}.second", "a folder of frames has no times", "give `frame`")
            return None
        options = [target.option for target in frame.targets]
        foreign = sorted(set(options) - set(item.record.correct_idx))
        if foreign or len(set(options)) < len(options):
            what = f"option {foreign[0]} is not right" if foreign else "an option has two masks"
            self._error(item, f"{name}.targets", what, "give one mask for each right option that is visible")
            return None
        masks = [target.segmentation for target in frame.targets]
        wrong = damage([mask.counts for mask in masks], size)
        if wrong:
            self._error(item, f"{name}.targets", f"a mask is damaged ({wrong})", "write it with pycocotools")
            return None
        return AnnotatedFrame(
            Moment(frame.frame, frame.second), union([mask.counts for mask in masks], size), tuple(sorted(options))
        )
