"""Answers as the released parsers read them (docs/upstream/barista.md), for `protocol="release"`.

They are strict in some places and generous in others: a fence counts only where its first line ends right after a plain
tag, an entry that is not valid rejects a list of interactions but not one of relations, numbers may be texts.
Where the released run stops, at a number without bounds or at nesting too deep, the answer cannot be read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import wraps
from itertools import chain
from math import isfinite
from typing import ParamSpec, cast

from barista_bench.benchmarks.barista.box_answers import read_pixels
from barista_bench.benchmarks.barista.grounding_answers import FRACTIONS
from barista_bench.benchmarks.barista.interactions import BoxedInteraction, BoxedInteractions
from barista_bench.benchmarks.barista.marked_relations import MarkedRelation, relations_answer
from barista_bench.benchmarks.parsing import MAX_ANSWER, json_arrays
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Fields, Json, ParseError, Prediction
from barista_bench.metrics.interaction_f1.inputs import HAND_TYPES

LARGEST = 3e38
"""Pixels; beyond it a coordinate has no single precision, in which mean average precision is computed."""

_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
# A match can begin only where a run of digits does: looking for it inside of long runs would take quadratic time.
_FOUR_INTEGERS = re.compile(r"(?<!\d)(\d++)" + r"\s*+,\s*+(\d++)" * 3)
_ANSWER = re.compile(r"\b(?:final\s+)?answer\s*:\s*", re.IGNORECASE)
_BEFORE_CHOICE = re.compile(
    r"(?:answer\s*+:\s*+)?(?:<CHOICE_ID>\s*+)?<?(?:CHOICE_ID[_:\s]*+|CHOICE_)?\s*+", re.IGNORECASE
)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_TAG = re.compile(r"<CHOICE_ID[_:\s]++([A-Za-z0-9_-]++)\s*+>", re.IGNORECASE)

_Arguments = ParamSpec("_Arguments")


def _within_bounds(
    read: Callable[_Arguments, Prediction | ParseError],
) -> Callable[_Arguments, Prediction | ParseError]:
    """The reader, for which a number or nesting that Python cannot hold makes an answer unreadable."""

    @wraps(read)
    def reader(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Prediction | ParseError:
        try:
            return read(*args, **kwargs)
        except (OverflowError, RecursionError):
            return ParseError("the answer holds a number, or nesting, without bounds")

    return reader


def body_of(text: str) -> str:
    r"""The body of the first fenced block where there is one, else the text; white space around it removed.

    >>> body_of("So: ```json\n[1]\n``` Bye."), body_of("```json \n[1]\n```")
    ('[1]', '```json \n[1]\n```')
    """
    text = text[:MAX_ANSWER].strip()
    fence = _FENCE.search(text)
    return fence[1].strip() if fence else text


def array_in(body: str) -> list[object] | None:
    """The body as a JSON list; None where it is anything else."""
    try:
        array_alone = json.loads(body)
    except ValueError:
        return None
    return array_alone if isinstance(array_alone, list) else None


@_within_bounds
def read_boxes(text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
    """Boxes of a JSON object's list `bboxes` (else `boxes`), else every four runs of digits; `written` as answered."""
    body = body_of(text)
    listed = _listed(body)
    written = None if listed is None else _listed_boxes(listed, boxes)
    dropped = len(listed) - len(written) if listed is not None and written is not None else 0
    if written is None:
        written = _runs_of_four(body, boxes)
        if not written:
            return ParseError("the answer holds neither a JSON object with bboxes nor four numbers in a row")
    pixels = [_pixels(box, inputs, boxes) for box in written]
    return Prediction({"boxes": cast("Json", pixels), "written": cast("Json", written)}, dropped)


def _listed(body: str) -> list[object] | None:
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    listed = answer["bboxes"] if "bboxes" in answer else answer.get("boxes")
    return listed if isinstance(listed, list) else None


def _listed_boxes(listed: Sequence[object], boxes: BoxFormat) -> list[list[float]] | None:
    """The entries that are lists of four numbers or more, by their first four; None where one of those is no number."""
    entries = [entry for entry in listed if isinstance(entry, list) and len(entry) >= 4]
    try:
        return [
            [_coordinate(value, boxes) for value in entry[:4]]
            for entry in entries
            if all(isinstance(value, int | float) for value in entry[:4])
        ]
    except ValueError:  # NaN
        return None


def _runs_of_four(body: str, boxes: BoxFormat) -> list[list[float]]:
    if boxes.scale == 1:
        return [[float(number) for number in match.groups()] for match in FRACTIONS.finditer(body)]
    try:
        return [[int(number) for number in match.groups()] for match in _FOUR_INTEGERS.finditer(body)]
    except ValueError as error:  # more digits than Python reads
        raise OverflowError(str(error)) from error


def _coordinate(value: object, boxes: BoxFormat) -> float:
    """A number of an answer, or a text that is one; whole unless the model writes fractions.

    Raises:
        TypeError, ValueError: it is no number.
        OverflowError: it is none that can be held.
    """
    number = float(cast("float", value))
    return number if boxes.scale == 1 and isfinite(number) else round(number)


def _pixels(box: Sequence[float], inputs: Fields, boxes: BoxFormat) -> list[float]:
    pixels = read_pixels(box, inputs, boxes)
    if not all(abs(value) <= LARGEST for value in pixels):
        raise OverflowError("a coordinate has no single precision")
    return pixels


@_within_bounds
def read_interactions(text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
    """The whole answer as a JSON list, else the first list in it of which every entry is an interaction.

    An empty list says that there is none. `written` are the interactions as answered.
    """
    body = body_of(text)
    array_alone = array_in(body)
    for entries in json_arrays(body, nested=True) if array_alone is None else [array_alone]:
        written = [_interaction(entry, boxes) for entry in entries]
        if None not in written:
            valid = [entry for entry in written if entry is not None]
            pixels = BoxedInteractions([_in_pixels(entry, inputs, boxes) for entry in valid])
            return Prediction({**pixels.write(), "written": [entry.write() for entry in valid]})
    return ParseError("the answer holds no JSON array of valid interactions")


def _interaction(entry: object, boxes: BoxFormat) -> BoxedInteraction | None:
    if not isinstance(entry, dict):
        return None
    hands, target, hand_type = (entry.get(name) for name in ("hand_boxes", "object_box", "hand_type"))
    if not isinstance(hands, list) or not hands or hand_type not in HAND_TYPES:
        return None
    listed = [*hands, target]
    if not all(isinstance(box, list) and len(box) == 4 for box in listed):
        return None
    try:
        numbers = [[_coordinate(value, boxes) for value in cast("list[object]", box)] for box in listed]
    except (TypeError, ValueError):
        return None
    return BoxedInteraction(numbers[:-1], numbers[-1], str(hand_type))


def _in_pixels(entry: BoxedInteraction, inputs: Fields, boxes: BoxFormat) -> BoxedInteraction:
    hands = [_pixels(box, inputs, boxes) for box in entry.hand_boxes]
    return BoxedInteraction(hands, _pixels(entry.object_box, inputs, boxes), entry.hand_type)


@_within_bounds
def read_relations(text: str) -> Prediction | ParseError:
    """The whole answer as a JSON list, else the first list in it that is empty or has a valid entry; others go."""
    body = body_of(text)
    array_alone = array_in(body)
    if array_alone is not None:
        return _relations(array_alone)
    for entries in json_arrays(body, nested=True):
        prediction = _relations(entries)
        if prediction.value["relations"] or not entries:
            return prediction
    return ParseError("the answer holds no JSON array of relations")


def _relations(entries: Sequence[object]) -> Prediction:
    return relations_answer(entries, _relation)


def _relation(entry: Mapping[str, object]) -> MarkedRelation | None:
    """Numbers as `int` makes them of numbers and texts, types and values as text whatever they are."""
    source, target, kind, value = (entry.get(name) for name in MarkedRelation.__struct_fields__)
    if source is None or target is None or kind is None or value is None:
        return None
    try:
        ends = [int(cast("int", end)) for end in (source, target)]
    except (TypeError, ValueError):
        return None
    return MarkedRelation(ends[0], ends[1], _as_text(kind), _as_text(value))


def _as_text(value: object) -> str:
    """As `str` writes it; halves of a character, which no file can hold, are spelled out."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def read_choice(text: str, choices: Container[str]) -> Prediction | ParseError:
    """The last `answer:` right after which one of the choices stands, else the last tag `<CHOICE_ID_x>` with one."""
    text = text[-MAX_ANSWER:]
    tokens = (_token(text, match.end()) for match in reversed(list(_ANSWER.finditer(text))))
    for token in chain(tokens, reversed(_TAG.findall(text))):
        if token.upper() in choices:
            return Prediction({"choice_id": token.upper()})
    return ParseError("no line `ANSWER: <letter>` names one of the choices")


def _token(text: str, position: int) -> str:
    """The word that stands at a position, but for what the prompt's own placeholder may leave before it."""
    before = _BEFORE_CHOICE.match(text, position)
    token = _TOKEN.match(text, before.end() if before else position)
    return token[0] if token else ""
