"""The paper's tables 2 and 3 of a set of questions: sizes of questions, and how annotated regions move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import dist
from statistics import fmean
from typing import NamedTuple

import numpy as np
from pycocotools import mask as coco_mask

from barista_bench.benchmarks.handyvqa.choice_tasks import OptionsInputs, RightOptions
from barista_bench.benchmarks.handyvqa.release import MCQ_CATEGORIES, RVOS_CATEGORIES
from barista_bench.benchmarks.handyvqa.segmentation import SegmentationTarget
from barista_bench.core.task import Example
from barista_bench.scene_graph import Rle, decode_mask
from barista_bench.tables import Table, Value

Examples = Mapping[str, Sequence[Example]]
"""By task."""


class RegionMove(NamedTuple):
    """From one annotated frame to the next: pixels that the centroid moves, and IoU of the two masks."""

    shift: float
    iou: float


def set_tables(examples: Examples) -> list[Table]:
    """Tables 2 and 3 of what is there."""
    return [table for table in (_questions(examples), _regions(examples)) if table.rows]


def _questions(examples: Examples) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name in MCQ_CATEGORIES:
        asked = [OptionsInputs.of(example).options for example in examples.get(name, ())]
        right = [len(RightOptions.of(example).correct) for example in examples.get(name, ())]
        words = [len(option.split()) for options in asked for option in options]
        if asked:
            rows.append((name, len(asked), fmean(map(len, asked)), fmean(right), fmean(words)))
    columns = ("category", "questions", "options", "right options", "words")
    return Table.of("Table 2: questions", columns, rows, "Means a question; words are those of an option.")


def _regions(examples: Examples) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name in RVOS_CATEGORIES:
        clips = [_masks(example) for example in examples.get(name, ())]
        moves = [move for masks in clips for pair in pairwise(masks) if (move := region_move(*pair))]
        if clips:
            shift, iou = map(fmean, zip(*moves, strict=True)) if moves else (None, None)
            rows.append((name, sum(map(len, clips)), fmean(map(len, clips)), shift, iou))
    note = "From each annotated frame to the next; pairs with an empty mask are left out."
    columns = ("category", "frames", "frames a question", "centroid shift (px)", "IoU with the next")
    return Table.of("Table 3: annotated regions", columns, rows, note)


def _masks(example: Example) -> list[Rle]:
    masks = sorted(SegmentationTarget.of(example).masks, key=lambda mask: mask.frame)
    return [Rle(counts=mask.rle.counts, size=(mask.rle.size[0], mask.rle.size[1])) for mask in masks]


def region_move(first: Rle, second: Rle) -> RegionMove | None:
    """How a region moves between two frames of one size; None where either mask is empty."""
    centroids = [np.argwhere(decode_mask(mask)) for mask in (first, second)]
    if not all(map(len, centroids)):
        return None
    pair = [{"size": list(mask.size), "counts": mask.counts.encode("ascii")} for mask in (first, second)]
    iou = float(coco_mask.iou([pair[0]], [pair[1]], [0])[0, 0])
    return RegionMove(dist(*(pixels.mean(axis=0).tolist() for pixels in centroids)), iou)
