"""Read the boxes of an answer as the release of BARISTA does."""

from __future__ import annotations

import json
import re
from typing import cast

from barista_bench.benchmarks.kinds.box_answers import released_number, released_pixels
from barista_bench.benchmarks.kinds.boxes import FRACTIONS, NO_BOXES, listed_boxes
from barista_bench.benchmarks.parsing import refuse_unbounded, strip_fence
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Fields, Json, ParseError, Prediction

# A match can begin only at the start of a run of digits. Trying every position of a long run would take quadratic time.
_FOUR_INTEGERS = re.compile(r"(?<!\d)(\d++)" + r"\s*+,\s*+(\d++)" * 3)


@refuse_unbounded
def read_released(text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
    """Return the boxes in the list `bboxes` (else `boxes`) of a JSON object, else one box for every four integers.

    Entries of the list count if they have at least four numbers; the first four are used. `written` holds the boxes as
    the model wrote them.
    """
    body = strip_fence(text, plain_tag=True)
    try:
        answer = json.loads(body)
        entries = listed_boxes(answer) if isinstance(answer, dict) else None
        boxes = [
            [released_number(value, box_format) for value in entry[:4]]
            for entry in entries or ()
            if isinstance(entry, list) and len(entry) >= 4 and all(isinstance(n, int | float) for n in entry[:4])
        ]
    except ValueError:  # no JSON, or a box with NaN
        entries = None
    if entries is None:
        boxes = _read_runs_of_four(body, box_format)
        if not boxes:
            return NO_BOXES
    pixels = [released_pixels(box, inputs, box_format) for box in boxes]
    value: Fields = {"boxes": cast("Json", pixels), "written": cast("Json", boxes)}
    return Prediction(value, dropped=0 if entries is None else len(entries) - len(boxes))


def _read_runs_of_four(body: str, box_format: BoxFormat) -> list[list[float]]:
    if box_format.scale == 1:
        return [[float(number) for number in match.groups()] for match in FRACTIONS.finditer(body)]
    try:
        return [[int(number) for number in match.groups()] for match in _FOUR_INTEGERS.finditer(body)]
    except ValueError as error:  # more digits than Python reads
        raise OverflowError(str(error)) from error
