"""Masks that somebody else's segmenter made, beside the records that they answer.

The folder holds annotation records (`rvos_objects.jsonl`, ...: see `records`) whose annotated frames are named by
number. The masks of a record stand in it,
`"inference": {"masks": [{"frame": 37, "rle": {"size": [height, width], "counts": "..."}}]}`, or as pictures in
`<id>/<frame>.png` or `<category>/<id>/<frame>.png`, where every pixel that is not 0 is foreground. `frame` is the
annotated frame's number. No clip is needed.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from PIL import Image

from barista_bench.benchmarks.handyvqa.clips import Clip
from barista_bench.benchmarks.handyvqa.mask_answers import FrameMask, written_masks
from barista_bench.benchmarks.handyvqa.outputs import model_name, refuse
from barista_bench.benchmarks.handyvqa.records import (
    MAX_ANNOTATED,
    RVOS_CATEGORIES,
    FrameNumber,
    Item,
    ItemRecord,
    RunLengths,
    read_items,
)
from barista_bench.benchmarks.handyvqa.release import Question, checked
from barista_bench.benchmarks.handyvqa.rvos import RvosObjects, RvosParts, Segmentation
from barista_bench.core.benchmark import RecordedAnswer, RecordedAnswers
from barista_bench.core.task import Example, Json
from barista_bench.errors import DataError
from barista_bench.files.paths import confined
from barista_bench.media.video.limits import check_size
from barista_bench.scene_graph import Problem, Rle, encode_mask

MAX_PNG_BYTES = 64 * 2**20
_FRAME = re.compile(r"[0-9]{1,12}")

TASKS: dict[str, type[Segmentation]] = {task.name: task for task in (RvosObjects, RvosParts)}


class SaidMask(msgspec.Struct, frozen=True):
    """The mask of one frame, by the frame's number."""

    frame: FrameNumber
    rle: RunLengths


class MaskInference(msgspec.Struct, frozen=True):
    """What a segmenter said."""

    masks: Annotated[list[SaidMask], Meta(max_length=MAX_ANNOTATED)] | None = None


class SegmentedRecord(ItemRecord, frozen=True, kw_only=True):
    """A question with a segmenter's masks."""

    inference: MaskInference | None = None


def read_mask_outputs(path: Path) -> list[RecordedAnswers]:
    """The masks of one segmenter by category, in canonical order.

    Raises:
        DataError: no record can be used. One that cannot be used costs itself, and is named in `problems`; a damaged
            picture costs its sample, which then says so.
    """
    items, problems = read_items(path, SegmentedRecord)
    questions = checked(items, problems)
    by_id = {(item.category, item.item_id): item for item in items}
    folder = path if path.is_dir() else path.parent
    found = []
    for category in RVOS_CATEGORIES:
        asked = [question for question in questions if question.category == category]
        if asked:
            examples, answers = [], []
            for question in asked:
                try:
                    examples.append(_example(question, path))
                except DataError as error:
                    what, remedy = f"{question.item_id}: {error}", "give its frames by number"
                    problems.append(Problem("error", path.name, question.item_id, what, remedy))
                    continue
                answers.append(_readable(by_id[category, question.item_id], question, folder))
            if examples:
                found.append(RecordedAnswers(model_name(path), TASKS[category], tuple(examples), tuple(answers)))
    if not found:
        refuse(path, problems)
        raise DataError(f"{path}: no records of {' or '.join(RVOS_CATEGORIES)}. Remedy: put them beside the masks")
    return [replace(found[0], problems=tuple(problems)), *found[1:]]


def _readable(item: Item[SegmentedRecord], question: Question, folder: Path) -> RecordedAnswer:
    try:
        return _answer(item, question, folder)
    except DataError as error:
        return RecordedAnswer(question.item_id, 0, None, str(error))


def _frames(question: Question) -> list[int]:
    """The numbers of the annotated frames."""
    return [annotated.moment.frame for annotated in question.annotated if annotated.moment.frame is not None]


def _example(question: Question, path: Path) -> Example:
    frames = _frames(question)
    if len(frames) < len(question.annotated):
        raise DataError(
            f"{path}: {question.item_id}: an annotated frame is named by its second. Remedy: give its number, `frame`"
        )
    order = sorted(frames)
    task, clip = TASKS[question.category], question.clip or Clip(f"{question.item_id}_frames", True)
    inputs, target = task.fields(question, [order.index(frame) for frame in frames], len(frames))
    return task.made(question, clip, order, inputs, target, is_shown=False)


def _answer(item: Item[SegmentedRecord], question: Question, folder: Path) -> RecordedAnswer:
    said = item.record.inference
    if said is not None and said.masks is not None:
        masks = [FrameMask(mask.frame, Rle(counts=mask.rle.counts, size=mask.rle.size)) for mask in said.masks]
    else:
        pictures = _pictures(folder, question)
        if pictures is None:
            error = f"{item.file}: {question.item_id}: no inference.masks and no folder of pictures"
            return RecordedAnswer(question.item_id, 0, None, error)
        masks = [FrameMask(frame, read_png(path)) for frame, path in pictures]
    order = sorted(_frames(question))
    named = [FrameMask(order.index(frame), mask) for frame, mask in masks if frame in order]
    answer: dict[str, Json] = {"masks": written_masks(named)}
    return RecordedAnswer(question.item_id, 0, json.dumps(answer))


def _pictures(folder: Path, question: Question) -> list[tuple[int, Path]] | None:
    """(frame number, file) of a question's pictures; None where it has no folder."""
    for parts in ((question.item_id,), (question.category, question.item_id)):
        place = confined(folder, *parts)
        if place.is_dir():
            names = sorted(path.name for path in place.glob("*.png") if _FRAME.fullmatch(path.stem))
            return [(int(Path(name).stem), confined(folder, *parts, name)) for name in names]
    return None


def read_png(path: Path) -> Rle:
    """A mask out of a picture: a pixel is foreground where any channel but alpha, or the palette's index, is not 0.

    Raises:
        DataError: it is no PNG, damaged, or too large.
    """
    remedy = "Remedy: write it again"
    try:
        if path.stat().st_size > MAX_PNG_BYTES:
            raise DataError(f"{path}: is larger than {MAX_PNG_BYTES // 2**20} MiB. {remedy}")
        with Image.open(path, formats=("PNG",)) as image:
            check_size(str(path), image.width, image.height, remedy)
            pixels = np.asarray(image) != 0
            alpha = image.mode in ("LA", "RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: is no picture ({error}). {remedy}") from error
    if pixels.ndim == 3:
        pixels = (pixels[..., :-1] if alpha else pixels).any(axis=2)
    return encode_mask(pixels)
