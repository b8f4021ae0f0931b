"""Read the HanDyVQA release: typed records from files, checked questions, and the places of their clips.

The benchmark's public repository has one JSON file per item, `<category>/<category>_0007.json`, with the keys
`question`, `options`, `correct_idx` (from 0) and, if a model has answered, `inference`. The annotation files are not
public. So that there is only one layout, this module accepts the public files unchanged, optional keys
(docs/handyvqa.md), and many records in one file. A bad record is left out and reported by name; all other records stay
usable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from barista_bench.benchmarks.graph_evidence import read_graph_evidence
from barista_bench.benchmarks.handyvqa.records import ClipRecord, ItemRecord, RecordInFile, RecordT
from barista_bench.benchmarks.kinds.masks import mask_fault, unite_masks
from barista_bench.benchmarks.release_records import (
    GRAPH_EVIDENCE_FILE,
    AnnotationRelease,
    PlacedRecord,
    convert_record,
    elements,
    field_path,
    keep_first,
    media_folder,
    no_records_error,
    read_each,
    read_values,
)
from barista_bench.errors import DataError, RecordError
from barista_bench.files.paths import confine, name_problem
from barista_bench.media.video.frame_folder import natural_key
from barista_bench.scene_graph import Problem, ProblemLog, Rle

MCQ_CATEGORIES = ("action", "process", "location", "state", "parts", "objects")
RVOS_CATEGORIES = ("rvos_objects", "rvos_parts")
CATEGORIES = MCQ_CATEGORIES + RVOS_CATEGORIES

MAX_ITEMS = 200_000
"""Maximum number of records of one category; the benchmark has 2,000."""
HALF_WINDOW_S = 2.5
"""Seconds before and after the centre of a clip (paper, section 3: 5 s for a narration)."""


@dataclass(frozen=True, slots=True)
class QuestionClip:
    """The clip of a question.

    Args:
        video: file or folder of frames below the media's root, with "/" between parts. This is the example's video id.
        is_folder: True for a folder of frames.
        centre_s: second of the video at the centre of the clip; None for the complete video.
        fps: frames per second of a folder, if known.
    """

    video: str
    is_folder: bool
    centre_s: float | None = None
    fps: float | None = None

    @classmethod
    def default_of(cls, item_id: str) -> QuestionClip:
        """Return the default clip for a record without a clip: the folder of frames with the record's id."""
        return cls(f"{item_id}_frames", True)


@dataclass(frozen=True, slots=True)
class AnnotatedMoment:
    """The moment of an annotated frame: the frame's number, or its second."""

    frame: int | None
    second: float | None


MULTIPLE = frozenset({"objects", "rvos_objects"})
"""Categories whose questions may have several right options."""


@dataclass(frozen=True, slots=True)
class AnnotatedFrame:
    """One frame with the region of the right answer, which is the union of the right options' masks."""

    moment: AnnotatedMoment
    mask: Rle
    options: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HandyvqaQuestion:
    """One checked record. `correct` has the ascending indices of the right `options`; it may be empty."""

    item_id: str
    category: str
    question: str
    options: tuple[str, ...]
    correct: tuple[int, ...]
    split: str
    scenario: str | None
    clip: QuestionClip | None
    annotated: tuple[AnnotatedFrame, ...]
    file: str
    row: int
    is_released: bool


@dataclass(slots=True)
class HandyvqaRelease(AnnotationRelease):
    """Annotation files, read and checked. `questions` has the questions by category."""

    questions: Mapping[str, tuple[HandyvqaQuestion, ...]]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of questions of each category that has questions."""
        return {category: len(questions) for category, questions in self.questions.items() if questions}


def open_release(root: Path, videos: Path | None = None) -> HandyvqaRelease:
    """Read a folder or a file of records (see `read_records`). Raises DataError if no record can be used."""
    records, problems = read_records(root, ItemRecord)
    questions = checked_questions(records, problems)
    if not questions:
        raise no_records_error(root, "HanDyVQA record", problems)
    by_category = {name: tuple(each for each in questions if each.category == name) for name in CATEGORIES}
    rows = read_graph_evidence(root, problems)
    return HandyvqaRelease(root, media_folder(root, videos), tuple(problems), by_category, graph_rows=rows)


@dataclass(frozen=True, slots=True)
class _RecordFile:
    """One file. `category` is None if each record names its own category."""

    path: Path
    name: str
    category: str | None
    is_single: bool = False


def read_records(root: Path, record_type: type[RecordT]) -> tuple[list[RecordInFile[RecordT]], list[Problem]]:
    """Return all records below a folder, or of one file, sorted by category and id.

    An unreadable record is left out.

    Below a folder, these files count: `<category>/*.json` (one record each), `<category>.json` (a list),
    `<category>.jsonl`, and other `*.jsonl` files whose records name their `category`. Raises DataError if there is no
    such file, or if there is too much data.
    """
    by_id: dict[tuple[str, str], RecordInFile[RecordT]] = {}
    problems: list[Problem] = []
    for file in _record_files(root):
        log = ProblemLog(file.name)
        values = (
            part
            for placed in read_values(file.path, log)
            for part in ([placed] if placed.key or file.is_single else elements(placed.value, log))
        )
        for _, record in read_each(values, partial(_read_record, file, record_type), log, "it is left out"):
            keep_first(by_id, (record.category, record.item_id), record, log, field_path(record.key, "id"))
        problems += log
        if len(by_id) > MAX_ITEMS * len(CATEGORIES):
            raise DataError(f"{root}: more than {MAX_ITEMS} records a category. Fix: name the right folder")
    order = {category: index for index, category in enumerate(CATEGORIES)}
    return sorted(by_id.values(), key=lambda record: (order[record.category], natural_key(record.item_id))), problems


def _record_files(root: Path) -> list[_RecordFile]:
    if root.is_file():
        category = root.stem if root.stem in CATEGORIES else None
        return [_RecordFile(root, root.name, category, root.suffix == ".json" and category is None)]
    if not root.is_dir():
        raise DataError(f"{root}: no such file or folder. Fix: name the folder of the annotation files")
    files: list[_RecordFile] = []
    for category in CATEGORIES:
        names = sorted((path.name for path in (root / category).glob("*.json")), key=natural_key)
        files += [_RecordFile(confine(root, category, name), f"{category}/{name}", category, True) for name in names]
        for name in (f"{category}.json", f"{category}.jsonl"):
            if (root / name).is_file():
                files.append(_RecordFile(confine(root, name), name, category))
    category_files = {GRAPH_EVIDENCE_FILE, *(file.name for file in files)}
    others = sorted(path.name for path in root.glob("*.jsonl") if path.name not in category_files)
    files += [_RecordFile(confine(root, name), name, None) for name in others]
    if not files:
        raise DataError(
            f"{root}: no HanDyVQA records. Fix: give a folder with <category>/*.json, <category>.json or *.jsonl; "
            f"the categories are {', '.join(CATEGORIES)}"
        )
    return files


def _read_record(file: _RecordFile, record_type: type[RecordT], placed: PlacedRecord) -> RecordInFile[RecordT]:
    """Return the record of a value. Raises RecordError."""
    content = convert_record(placed.value, record_type)
    category = file.category if content.category is None else content.category
    if category not in CATEGORIES or file.category not in (category, None):
        among = f", among {file.category!r}" if file.category else ""
        remedy = f"name one of {', '.join(CATEGORIES)}, or move the record"
        raise RecordError("category", f"is {content.category!r:.60}{among}", remedy)
    item_id = content.id or (Path(file.name).stem if file.is_single else f"{category}_{placed.row:04d}")
    if wrong := name_problem(item_id):
        raise RecordError("id", f"{item_id[:60]!r} is not a name ({wrong})", "use letters, digits and _")
    is_released = isinstance(placed.value, dict) and "inference" in placed.value
    return RecordInFile(item_id, category, content, file.name, placed.key, placed.row, is_released)


def checked_questions(records: Sequence[RecordInFile[ItemRecord]], problems: list[Problem]) -> list[HandyvqaQuestion]:
    """Return the questions of usable records. Faults of other records are added to `problems`."""
    questions = []
    for record in records:
        log = ProblemLog(record.file)
        try:
            questions.append(_checked_question(record, log))
        except RecordError as broken:
            what = f"{broken.what}: {record.item_id} is left out"
            log.error(field_path(record.key, broken.key), what, broken.remedy)
        problems += log
    return questions


def _checked_question(record: RecordInFile[ItemRecord], log: ProblemLog) -> HandyvqaQuestion:
    """Return the question of a record, with checks beyond typed decoding. Raises RecordError."""
    content, has_masks = record.content, record.category in RVOS_CATEGORIES
    for key, what, remedy in chain(_odd_texts(content, has_masks), _odd_indices(content, record.category, has_masks)):
        log.warning(field_path(record.key, key), f"{what}; {record.item_id} is kept", remedy)
    # As in the release, if a question has one right option, the first named option counts.
    indices = content.correct_idx if record.category in MULTIPLE else content.correct_idx[:1]
    return HandyvqaQuestion(
        item_id=record.item_id,
        category=record.category,
        question=(content.question or "").strip(),
        options=tuple(option.strip() for option in content.options),
        correct=tuple(sorted({index for index in indices if 0 <= index < len(content.options)})),
        split=content.split,
        scenario=content.scenario,
        clip=None if content.clip is None else _checked_clip(content.clip),
        annotated=_annotated_frames(content) if has_masks else (),
        file=record.file,
        row=record.row,
        is_released=record.is_released,
    )


def _odd_texts(content: ItemRecord, has_masks: bool) -> Iterator[tuple[str, str, str]]:
    """Yield key, oddity and remedy of unusual texts. Raises RecordError for unusable texts."""
    texts = [option.strip().casefold() for option in content.options]
    pairs = [("question", (content.question or "").strip()), *((f"options[{i}]", text) for i, text in enumerate(texts))]
    blank_keys = [key for key, text in pairs if not text]
    if blank_keys and has_masks:
        raise RecordError(blank_keys[0], "is blank", "write the text")
    yield from ((key, "is blank", "write the text") for key in blank_keys)
    if wrong := name_problem(content.split):
        raise RecordError("split", f"{content.split[:60]!r} is not a name ({wrong})", "say test, val or train")
    for index, text in enumerate(texts):
        if text and (first := texts.index(text)) < index:
            yield f"options[{index}]", f"says what options[{first}] says", "make the options differ"


def _odd_indices(content: ItemRecord, category: str, has_masks: bool) -> Iterator[tuple[str, str, str]]:
    """Yield key, oddity and remedy for unusual right options.

    Raises RecordError for missing, unknown or too many right options if there are masks. Without masks, only a missing
    option raises, and only if the category asks for one.
    """
    faults: list[tuple[str, str]] = []
    indices, count = content.correct_idx, len(content.options)
    out_of_range = [index for index in indices if not 0 <= index < count]
    distinct = len(set(indices))
    if not indices:
        faults.append(("names no option", "name the right one"))
    if out_of_range:
        faults.append((f"{out_of_range[0]} is not one of the {count} options", "count from 0"))
    if distinct > 1 and category not in MULTIPLE:
        consequence = "" if has_masks else ": the first counts"
        faults.append((f"{distinct} options are right, but {category} asks for one{consequence}", "name one"))
    # The released script also skips a question of this kind that names no right option.
    if faults and (has_masks or (not indices and category not in MULTIPLE)):
        raise RecordError("correct_idx", *faults[0])
    if distinct < len(indices):
        faults.append(("names an option twice: it counts once", "name each once"))
    if distinct == count and not out_of_range:
        faults.append(("every option is right", "add wrong options"))
    yield from (("correct_idx", *fault) for fault in faults)


def _checked_clip(clip: ClipRecord) -> QuestionClip:
    name = clip.video if clip.video is not None else clip.frames
    if name is None or (clip.video is not None and clip.frames is not None):
        raise RecordError("clip", "names no video or folder, or both", "give `video` or `frames`")
    if wrong := next((what for part in name.split("/") if (what := name_problem(part))), None):
        what = f"{name[:100]!r} is not a path below the videos ({wrong})"
        raise RecordError("clip", what, "give a relative path")
    if clip.fps is not None and clip.video is not None:
        raise RecordError("clip.fps", "a video file contains its times", "leave out fps")
    if clip.frames is not None and clip.centre_seconds is not None and clip.fps is None:
        raise RecordError("clip.fps", "is missing: a folder of frames has no times", "give fps")
    return QuestionClip(name, clip.frames is not None, clip.centre_seconds, clip.fps)


def _annotated_frames(content: ItemRecord) -> tuple[AnnotatedFrame, ...]:
    sizes = {target.segmentation.size for frame in content.annotated for target in frame.targets}
    if not sizes:
        raise RecordError("annotated", "no frame has a mask", "give annotated frames")
    if len(sizes) > 1:
        raise RecordError("annotated", "masks are of several sizes", "give masks of the video's frame size")
    (size,) = sizes
    is_untimed = content.clip is not None and content.clip.frames is not None and content.clip.fps is None
    frames = []
    for index, frame in enumerate(content.annotated):
        key = f"annotated[{index}]"
        if (frame.frame is None) == (frame.second is None):
            raise RecordError(key, "names no moment, or two", "give `frame` or `second`")
        if frame.second is not None and is_untimed:
            raise RecordError(f"{key}.second", "a folder of frames has no times", "give `frame`")
        options = [target.option for target in frame.targets]
        counts = [target.segmentation.counts for target in frame.targets]
        wrong_options = sorted(set(options) - set(content.correct_idx))
        if wrong_options or len(set(options)) < len(options):
            what = f"option {wrong_options[0]} is not right" if wrong_options else "an option has two masks"
            raise RecordError(f"{key}.targets", what, "give one mask for each right option that is visible")
        if fault := mask_fault(counts, size):
            raise RecordError(f"{key}.targets", f"a mask is damaged ({fault})", "write it with pycocotools")
        moment = AnnotatedMoment(frame.frame, frame.second)
        frames.append(AnnotatedFrame(moment, unite_masks(counts, size), tuple(sorted(options))))
    if len({frame.moment for frame in frames}) < len(frames):
        raise RecordError("annotated", "a frame is annotated twice", "join its targets")
    return tuple(frames)
