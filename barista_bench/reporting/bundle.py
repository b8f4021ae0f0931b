"""The samples as the page holds them: a light index that is read at once, and compressed details read when shown.

The index has what lists and filters need. Details (prompt, answers, reasons) lie in chunks of JSON, deflated, as
base64: thousands of samples are a few megabytes that the browser does not touch until somebody looks at one.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from barista_bench.core.task import Status
from barista_bench.reporting.pictures import Album
from barista_bench.reporting.samples import ModelAnswers, Sample, ShownAnswer

CHUNK = 32
"""Samples of one chunk."""
STATUSES = (*(str(status) for status in Status), "not_run")
MAX_VALUES = 300
"""A metadata key with more values than this is no filter."""

Fields = dict[str, Any]
_ANSWER = tuple(field.name for field in fields(ShownAnswer))


def index(samples: Sequence[Sample], sections: Sequence[Fields], album: Album) -> Fields:
    """What lists and filters need.

    Samples are rows [section, id, label, frames, models, pictures]; frames are [video, frame] with videos by number;
    models are [mean score or None, statuses of the runs by number]; pictures say whether there are any. `meta` has
    each metadata key with its values and, by sample, the numbers of those that the sample has.
    """
    videos = {name: number for number, name in enumerate(sorted({f.video_id for s in samples for f in s.frames}))}
    return {
        "sections": list(sections),
        "statuses": STATUSES,
        "videos": list(videos),
        "meta": _meta(samples),
        "chunk": CHUNK,
        "samples": [
            [
                sample.section,
                sample.example_id,
                sample.label,
                [[videos[frame.video_id], frame.frame_index] for frame in sample.frames],
                [_outcome(model) for model in sample.models],
                int(bool(album.of_sample(number).pictures)),
            ]
            for number, sample in enumerate(samples)
        ],
    }


def chunks(samples: Sequence[Sample], album: Album) -> Iterator[str]:
    """The details of the samples, `CHUNK` a piece, each deflated (zlib) JSON as base64."""
    for start in range(0, len(samples), CHUNK):
        block = [
            _details(sample, album, start + offset) for offset, sample in enumerate(samples[start : start + CHUNK])
        ]
        yield base64.b64encode(zlib.compress(_json(block), 9)).decode()


def _json(value: object) -> bytes:
    """ASCII: lone surrogates of a broken tokenizer stay what they are. JSON has no NaN, nor has this."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _meta(samples: Sequence[Sample]) -> list[Fields]:
    filters = []
    for key in dict.fromkeys(name for sample in samples for name in sample.groups):
        values = sorted({value for sample in samples for value in sample.groups.get(key, ())}, key=_natural)
        if 1 < len(values) <= MAX_VALUES:
            number = {value: place for place, value in enumerate(values)}
            codes = [[number[value] for value in sample.groups.get(key, ())] for sample in samples]
            if any(code != codes[0] for code in codes):  # a list that all samples have tells none from another
                filters.append({"key": key, "values": values, "codes": codes})
    return filters


def _natural(value: str) -> tuple[bool, float, str]:
    """Numbers by size and before words."""
    number = value.removeprefix("-")
    return (False, float(value), value) if number.isascii() and number.isdigit() else (True, 0.0, value)


def _outcome(model: ModelAnswers) -> list[Any]:
    mean = model.means[0] if model.means else None
    codes = [STATUSES.index(answer.status) for answer in model.answers]
    return [None if mean is None else round(mean, 4), codes or [STATUSES.index("not_run")]]


def _details(sample: Sample, album: Album, number: int) -> Fields:
    shown = album.of_sample(number)
    return {
        "where": sample.where,
        "captions": sample.captions,
        "boxes": sample.boxes,
        "prompt": sample.prompt,
        "truth": sample.truth,
        "metadata": sample.metadata,
        "evidence": sample.evidence,
        "pictures": [asdict(picture) for picture in shown.pictures],
        "problem": shown.problem,
        "models": [[_answer(answer) for answer in model.answers] for model in sample.models],
    }


def _answer(answer: ShownAnswer) -> Mapping[str, Any]:
    shown = {name: getattr(answer, name) for name in _ANSWER}  # not `asdict`, which copies as deep as it goes
    return {**shown, "rows": [[row.verdict, row.text] for row in answer.rows]}
