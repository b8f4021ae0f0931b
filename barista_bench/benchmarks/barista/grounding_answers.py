"""How BARISTA's released code reads an answer to phrase grounding."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import cast

from barista_bench.benchmarks.barista.common import released_body, within_bounds
from barista_bench.benchmarks.kinds.box_answers import released_number, released_pixels
from barista_bench.benchmarks.kinds.boxes import FRACTIONS, NO_BOXES, listed_boxes
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Fields, Json, ParseError, Prediction

# A match can begin only where a run of digits does: looking for it inside of long runs would take quadratic time.
_FOUR_INTEGERS = re.compile(r"(?<!\d)(\d++)" + r"\s*+,\s*+(\d++)" * 3)


@within_bounds
def read_released(text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
    """Boxes of a JSON object's list `bboxes` (else `boxes`), else every four runs of digits; `written` as answered."""
    body = released_body(text)
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    listed = listed_boxes(answer) if isinstance(answer, dict) else None
    written = None if listed is None else _written_boxes(listed, box_format)
    dropped = len(listed) - len(written) if listed is not None and written is not None else 0
    if written is None:
        written = _runs_of_four(body, box_format)
        if not written:
            return NO_BOXES
    pixels = [released_pixels(box, inputs, box_format) for box in written]
    return Prediction({"boxes": cast("Json", pixels), "written": cast("Json", written)}, dropped)


def _written_boxes(listed: Sequence[object], box_format: BoxFormat) -> list[list[float]] | None:
    """The entries that are lists of four numbers or more, by their first four; None where one of those is no number."""
    entries = [entry for entry in listed if isinstance(entry, list) and len(entry) >= 4]
    try:
        return [
            [released_number(value, box_format) for value in entry[:4]]
            for entry in entries
            if all(isinstance(value, int | float) for value in entry[:4])
        ]
    except ValueError:  # NaN
        return None


def _runs_of_four(body: str, box_format: BoxFormat) -> list[list[float]]:
    if box_format.scale == 1:
        return [[float(number) for number in match.groups()] for match in FRACTIONS.finditer(body)]
    try:
        return [[int(number) for number in match.groups()] for match in _FOUR_INTEGERS.finditer(body)]
    except ValueError as error:  # more digits than Python reads
        raise OverflowError(str(error)) from error
