"""Encode the page's data as JSON: an index that is read at once, and deflated blocks that are read when shown.

The index holds the first screen. Each task has a block with its tables and with each sample's data for galleries and
filters. Each benchmark has a block with the counterparts of its paper's tables. Details of samples (prompt, answers,
reasons) are in separate chunks. Blocks are JSON, deflated (zlib) and encoded as base64. Thousands of samples take a few
megabytes, and the browser reads them only when a sample is opened.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from typing import Any, Final

from barista_bench.core.display import FAILURE_KINDS
from barista_bench.core.example import FrameRef
from barista_bench.core.status import Status
from barista_bench.reporting.analyses import is_unranked
from barista_bench.reporting.pictures import Album, PlacedPicture
from barista_bench.reporting.questions import QUESTIONS
from barista_bench.reporting.report import Report, Section
from barista_bench.reporting.samples import Sample
from barista_bench.tables import Cell, RangedScore, Table, words

CHUNK = 32
"""Number of samples in a chunk."""
STATUSES = (*(str(status) for status in Status), "not_run")
KINDS = tuple(FAILURE_KINDS)
MAX_VALUES = 300
"""A key with more values than this is not a filter."""
MAX_RELATED = 60

Fields = dict[str, Any]


def page_index(report: Report, samples: Sequence[Sample], album: Album) -> Fields:
    """Return the first screen as JSON values: the `PageIndex` of `templates/shapes.d.ts`."""
    counts = [sum(sample.section == number for sample in samples) for number in range(len(report.sections))]
    benchmarks = [section.benchmark for section in report.sections]
    return {
        "title": report.title,
        "provenance": page_value(report.provenance.tables),
        "tabs": [
            {
                "address": f"benchmark-{number}",
                "board": page_value(board),
                "tasks": [index for index, name in enumerate(benchmarks) if name == board.benchmark],
            }
            for number, board in enumerate(report.boards)
        ],
        "tasks": [
            {**_task_entry(report, section), "first": sum(counts[:number]), "count": counts[number]}
            for number, section in enumerate(report.sections)
        ],
        "questions": QUESTIONS,
        "statuses": STATUSES,
        "kinds": KINDS,
        "chunk": CHUNK,
        "bare": sum(number not in album.samples for number in range(len(samples))),
    }


def _task_entry(report: Report, section: Section) -> Fields:
    task = section.runs[0].task
    return {
        "address": section.address,
        "heading": section.heading,
        "name": section.standing.name,
        "about": section.about,
        "answers": page_value(section.answers),
        "primary": words(task.primary),
        "metric": task.primary_note,
        "examples": section.runs[0].results.dataset.examples,
        "labels": section.labels,
        "unranked": [is_unranked(run) for run in section.runs],
        "warnings": section.warnings,
        "scores": section.scores,
        "papers": [number for number, part in enumerate(report.papers) if part.benchmark == section.benchmark],
    }


def page_blocks(report: Report, details: Details, album: Album) -> Iterator[tuple[str, str]]:
    """Yield every block with its id in the page (`TaskBlock`, `AcrossBlock` and others of `templates/shapes.d.ts`)."""
    for number, section in enumerate(report.sections):
        yield f"task-{number}", _block(_task_block(number, section, details.samples, album))
    yield "across", _block({"tables": report.across, "graphs": report.graphs, "left_out": report.left_out})
    for number, part in enumerate(report.papers):
        yield f"paper-{number}", _block(part)
    yield from details.chunks(album)


class Details:
    """The details of samples as JSON. All parts except pictures are encoded once for all attempts to fit the page."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        by_frame: dict[FrameRef, list[int]] = defaultdict(list)
        for number, sample in enumerate(samples):
            for frame in dict.fromkeys(sample.frames):
                by_frame[frame].append(number)
        self._around = [_around_pictures(samples, number, by_frame) for number in range(len(samples))]

    @cached_property
    def chunks_without_pictures(self) -> tuple[tuple[str, str], ...]:
        """Return the `chunks` of a page without pictures."""
        return tuple(self._chunks(Album()))

    def chunks(self, album: Album) -> Iterable[tuple[str, str]]:
        """Yield the details in chunks of `CHUNK` samples, each with its id in the page."""
        return self._chunks(album) if album.samples else self.chunks_without_pictures

    def _chunks(self, album: Album) -> Iterator[tuple[str, str]]:
        for start in range(0, len(self.samples), CHUNK):
            details = []
            for number, (before, after) in enumerate(self._around[start : start + CHUNK], start):
                placed = album.of_sample(number)
                pictures = _json({"pictures": page_value(placed.pictures), "problem": placed.problem})[1:-1]
                details.append(f"{{{before},{pictures},{after}}}")
            yield f"chunk-{start // CHUNK}", _deflate(f"[{','.join(details)}]")


def page_value(value: Any) -> Any:  # noqa: ANN401  (whatever the blocks hold)
    """Convert records to JSON objects.

    Fields with default values are left out, and numbers that JSON lacks become None.

    A cell becomes its text. A table to draw becomes numbers.

    >>> page_value([Cell("a"), Cell(0.5, warn=True), float("nan")])
    [{'text': 'a'}, {'text': '0.500', 'warn': True}, None]
    """
    if value is None or type(value) in (str, int):  # most values
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [page_value(item) for item in value]
    if isinstance(value, Mapping):
        return {key: page_value(item) for key, item in value.items()}
    if is_dataclass(value):
        fields = {
            name: page_value(item)
            for name, default in _defaults(value.__class__)
            if (item := getattr(value, name)) != default  # the value of a missing attribute is MISSING
        }
        if isinstance(value, Cell):
            return {"text": value.text, **fields}
        if isinstance(value, Table) and value.drawn in ("line", "bar"):
            return {**fields, "chart": _chart(value)}
        return fields
    return value


@cache
def _defaults(cls: type) -> list[tuple[str, object]]:
    """Return each field of a dataclass with its default."""
    return [(field.name, field.default) for field in fields(cls) if (cls, field.name) not in _NOT_IN_PAGES]


_NOT_IN_PAGES = {(Cell, "value"), (Table, "drawn"), (Table, "unranked")}


def _chart(table: Table) -> Fields:
    """Return a drawn table's series as points, each [x, y] or [x, y, low, high]."""
    series = [
        {
            "name": name,
            "points": [
                [x, *(page_value(y) if isinstance(y, RangedScore) else [page_value(y)])] for x, y in points.items()
            ],
        }
        for name, points in table.series.items()
    ]
    x_column, *y_columns = table.columns
    axes = {"x": x_column.name, "y": y_columns[0].group if y_columns else ""}
    return {"title": table.title.removesuffix(": the numbers"), **axes, "series": series, "kind": table.drawn}


_json: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
"""Writes ASCII, so that lone surrogates of a broken tokenizer are preserved."""


def _deflate(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _block(content: object) -> str:
    return _deflate(_json(page_value(content)))


def _task_block(number: int, section: Section, samples: Sequence[Sample], album: Album) -> Fields:
    places = [index for index, sample in enumerate(samples) if sample.section == number]
    return {
        **{name: getattr(section, name) for name in ("facts", "metrics", "breakdowns", "failures", "others")},
        "samples": [_sample_row(samples[index], album.of_sample(index).pictures) for index in places],
        "filters": _filters([samples[index] for index in places]),
    }


def _sample_row(sample: Sample, pictures: Sequence[PlacedPicture]) -> list[Any]:
    """Return [id, label, frames in words, number of the first picture or None, pictures, models].

    A model is [mean score or None, statuses of its repetitions as numbers, kinds of failure as numbers].
    """
    models = []
    for model in sample.models:
        mean = model.means[0] if model.means else None
        codes = [STATUSES.index(answer.status) for answer in model.answers]
        kinds = dict.fromkeys(KINDS.index(kind) for answer in model.answers for kind in answer.failures)
        models.append([None if mean is None else round(mean, 4), codes or [STATUSES.index("not_run")], list(kinds)])
    first = pictures[0].file if pictures else None
    return [sample.example_id, sample.label, sample.where, first, len(pictures), models]


def _filters(samples: Sequence[Sample]) -> list[Fields]:
    """Return the values of each key and, for each sample, the numbers of its values."""
    filters = []
    for key in dict.fromkeys(name for sample in samples for name in sample.groups):
        values = sorted({value for sample in samples for value in sample.groups.get(key, ())}, key=_sort_key)
        if 1 < len(values) <= MAX_VALUES:
            number = {value: rank for rank, value in enumerate(values)}
            codes = [[number[value] for value in sample.groups.get(key, ())] for sample in samples]
            if any(code != codes[0] for code in codes):  # a list that all samples share distinguishes no samples
                filters.append({"key": key, "values": values, "codes": codes})
    return filters


def _sort_key(value: str) -> tuple[bool, float, str]:
    """Sort numbers by size and before words."""
    digits = value.removeprefix("-")
    return (False, float(value), value) if digits.isascii() and digits.isdigit() else (True, 0.0, value)


def _around_pictures(
    samples: Sequence[Sample], number: int, by_frame: Mapping[FrameRef, Sequence[int]]
) -> tuple[str, str]:
    """Return the JSON of a sample's details in two parts, before and after its pictures, without the braces."""
    sample = samples[number]
    related = sorted({other for frame in sample.frames for other in by_frame[frame]} - {number})[:MAX_RELATED]
    names = ("captions", "boxes", "question", "prompt", "reference", "metadata", "evidence")
    before = {name: getattr(sample, name) for name in names}
    after = {
        "models": [page_value(model.answers) for model in sample.models],
        "related": [[samples[other].section, samples[other].example_id, samples[other].label] for other in related],
    }
    return _json(before)[1:-1], _json(after)[1:-1]
