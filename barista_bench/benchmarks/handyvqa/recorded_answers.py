"""Read recorded outputs of other harnesses, from records with a question and a model's answer.

`handyvqa` reads the public result files. `inference.output` is the model's text. `inference.inferred_scores` (or
`inferred_scores`) are a dual encoder's scores, one number per option. As in the released script, scores take precedence
for objects and are ignored for questions with one right option.

`handyvqa_rvos` reads masks. The records identify annotated frames by number. The masks are in the record, `"inference":
{"masks": [{"frame": 37, "rle": {"size": [height, width], "counts": "..."}}]}`, or in pictures `<id>/<frame>.png` or
`<category>/<id>/<frame>.png`. In a picture, every pixel that is not 0 is foreground. `frame` is the annotated frame's
number.

No clip is needed, since frames are only named and never read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from msgspec import Meta
from PIL import Image

from barista_bench.benchmarks import RecordedAnswer, RecordedAnswers
from barista_bench.benchmarks.handyvqa.base_task import HandyvqaTask
from barista_bench.benchmarks.handyvqa.choice_tasks import CHOICE_TASKS, Objects, OptionsTask
from barista_bench.benchmarks.handyvqa.letters import letters
from barista_bench.benchmarks.handyvqa.records import (
    MAX_ANNOTATED,
    MAX_OPTIONS,
    FrameNumber,
    ItemRecord,
    RecordInFile,
    RecordT,
    RunLengths,
)
from barista_bench.benchmarks.handyvqa.release import HandyvqaQuestion, QuestionClip, checked_questions, read_records
from barista_bench.benchmarks.handyvqa.segmentation import MASK_TASKS, SegmentationTask
from barista_bench.benchmarks.kinds.masks import FrameMask, write_masks
from barista_bench.core.example import Example
from barista_bench.errors import DataError
from barista_bench.files.paths import confine
from barista_bench.media.video.frame_folder import check_size
from barista_bench.scene_graph import Problem, Rle, encode_mask

MAX_OUTPUT = 2**20
"""Maximum number of characters of an output."""
MAX_PNG_BYTES = 64 * 2**20
_FRAME = re.compile(r"[0-9]{1,12}")

Scores = Annotated[list[Annotated[float, Meta(ge=-1e300, le=1e300)]], Meta(max_length=MAX_OPTIONS)]
TaskT = TypeVar("TaskT", bound=HandyvqaTask)
_ExampleAnswer = tuple[Example, RecordedAnswer]


class Inference(msgspec.Struct, frozen=True):
    """The answer or the scores of a model. The prompt is not read."""

    output: str | None = None
    inferred_scores: Scores | None = None


class AnsweredRecord(ItemRecord, frozen=True, kw_only=True):
    """A question with a model's output."""

    inference: Inference | None = None
    inferred_scores: Scores | None = None


class NumberedMask(msgspec.Struct, frozen=True):
    """The mask of one frame, which is given by its number."""

    frame: FrameNumber
    rle: RunLengths


class MaskInference(msgspec.Struct, frozen=True):
    """A segmenter's masks."""

    masks: Annotated[list[NumberedMask], Meta(max_length=MAX_ANNOTATED)] | None = None


class SegmentedRecord(ItemRecord, frozen=True, kw_only=True):
    """A question with a segmenter's masks."""

    inference: MaskInference | None = None


def read_outputs(path: Path) -> list[RecordedAnswers]:
    """Return the answers of one model by category, in canonical order. For `path`, see `release.read_records`.

    The name of the file or folder becomes the model's name, since the public files name no model. An unusable record is
    skipped and named in `problems`. Raises DataError if no record can be used.
    """

    def answer_of(
        task: type[OptionsTask], record: RecordInFile[AnsweredRecord], question: HandyvqaQuestion
    ) -> _ExampleAnswer:
        clip = question.clip or QuestionClip.default_of(question.item_id)
        example = task.example(question, clip, (0,), *task.choice_columns(question), is_shown=False)
        return example, _choice_answer(record)

    nothing_found = "no multiple-choice records. Fix: use --format handyvqa_rvos for masks"
    return _by_task(path, AnsweredRecord, CHOICE_TASKS, answer_of, nothing_found)


def read_mask_outputs(path: Path) -> list[RecordedAnswers]:
    """Return the masks of one segmenter by category, in canonical order.

    The function works as `read_outputs` does. The sample of a damaged picture has no answer and names the fault.
    """
    folder = path if path.is_dir() else path.parent

    def answer_of(
        task: type[SegmentationTask], record: RecordInFile[SegmentedRecord], question: HandyvqaQuestion
    ) -> _ExampleAnswer:
        frames = [each.moment.frame for each in question.annotated if each.moment.frame is not None]
        if len(frames) < len(question.annotated):
            what = f"{path}: {question.item_id}: an annotated frame is named by its second"
            raise DataError(f"{what}. Fix: give its number, `frame`")
        clip, indices = question.clip or QuestionClip.default_of(question.item_id), sorted(frames)
        example = task.example(question, clip, indices, *task.mask_columns(question, frames, indices), is_shown=False)
        try:
            masks = _masks(record, question, folder)
        except DataError as error:
            return example, RecordedAnswer(question.item_id, 0, None, str(error))
        text = write_masks([FrameMask(indices.index(frame), mask) for frame, mask in masks if frame in indices])
        return example, RecordedAnswer(question.item_id, 0, text)

    names = " or ".join(task.name for task in MASK_TASKS)
    nothing_found = f"no records of {names}. Fix: put them beside the masks"
    return _by_task(path, SegmentedRecord, MASK_TASKS, answer_of, nothing_found)


def _by_task(
    path: Path,
    record_type: type[RecordT],
    tasks: Sequence[type[TaskT]],
    answer_of: Callable[[type[TaskT], RecordInFile[RecordT], HandyvqaQuestion], _ExampleAnswer],
    nothing_found: str,
) -> list[RecordedAnswers]:
    records, problems = read_records(path, record_type)
    questions = checked_questions(records, problems)
    by_id = {(record.category, record.item_id): record for record in records}
    model = path.resolve().stem if path.is_file() else path.resolve().name
    by_task = []
    for task in tasks:
        pairs = []
        for question in questions:
            if question.category == task.name:
                try:
                    pairs.append(answer_of(task, by_id[task.name, question.item_id], question))
                except DataError as error:
                    what, remedy = f"{question.item_id}: {error}", "give its frames by number"
                    problems.append(Problem("error", path.name, question.item_id, what, remedy))
        if pairs:
            examples, answers = zip(*pairs, strict=True)
            by_task.append(RecordedAnswers(model, task, examples, answers))
    if not by_task:
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise DataError(
                f"{path}: {len(errors)} records cannot be used, and no other, first: {errors[0]}. Fix: correct them"
            )
        raise DataError(f"{path}: {nothing_found}")
    return [replace(by_task[0], problems=tuple(problems)), *by_task[1:]]


def _choice_answer(record: RecordInFile[AnsweredRecord]) -> RecordedAnswer:
    item, where = record.content, f"{record.file}: {record.item_id}"
    inference = item.inference or Inference()
    scores = item.inferred_scores or inference.inferred_scores
    if scores is not None and record.category == Objects.name:
        if len(scores) != len(item.options):
            what = f"{len(scores)} inferred_scores for {len(item.options)} options"
            return RecordedAnswer(record.item_id, 0, None, f"{where}: {what}. Fix: give one an option")
        # Unlike `write_scores`, this keeps every digit, since rounding would make ties.
        scores_field = {"scores": dict(zip(letters(len(scores)), scores, strict=True))}
        return RecordedAnswer(record.item_id, 0, msgspec.json.encode(scores_field).decode())
    if inference.output is None:
        return RecordedAnswer(record.item_id, 0, None, f"{where}: no inference.output. Fix: ask again")
    return RecordedAnswer(record.item_id, 0, inference.output[:MAX_OUTPUT])


def _masks(record: RecordInFile[SegmentedRecord], question: HandyvqaQuestion, folder: Path) -> list[FrameMask]:
    """Return the masks by frame number, from the record or its folder of pictures. Raises DataError if both are
    missing.
    """
    inference = record.content.inference
    if inference is not None and inference.masks is not None:
        return [FrameMask(each.frame, Rle(counts=each.rle.counts, size=each.rle.size)) for each in inference.masks]
    for parts in ((question.item_id,), (question.category, question.item_id)):
        pictures = confine(folder, *parts)
        if pictures.is_dir():
            names = sorted(path.name for path in pictures.glob("*.png") if _FRAME.fullmatch(path.stem))
            return [FrameMask(int(Path(name).stem), read_png(confine(folder, *parts, name))) for name in names]
    raise DataError(
        f"{record.file}: {question.item_id}: no inference.masks and no folder of pictures. Fix: give either"
    )


def read_png(path: Path) -> Rle:
    """Read a mask from a picture.

    A pixel is foreground if any channel except alpha, or the palette index, is not 0.

    Raises DataError if the file is no PNG, is damaged, or is too large.
    """
    remedy = "Fix: write it again"
    try:
        if path.stat().st_size > MAX_PNG_BYTES:
            raise DataError(f"{path}: is larger than {MAX_PNG_BYTES // 2**20} MiB. {remedy}")
        with Image.open(path, formats=("PNG",)) as image:
            check_size(str(path), image.width, image.height, remedy)
            pixels = np.asarray(image) != 0
            has_alpha = image.mode in ("LA", "RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: is not a picture ({error}). {remedy}") from error
    if pixels.ndim == 3:
        pixels = (pixels[..., :-1] if has_alpha else pixels).any(axis=2)
    return encode_mask(pixels)
