"""One question and one answer: Example, Prediction, Status.

An example reads from left to right: `inputs` is all that the model and the parser may see, `target` is what scoring
compares with, `metadata` is what analysis groups by, `evidence` leads back into the scene graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Fields: TypeAlias = dict[str, "Json"]


class Status(StrEnum):
    """What became of one sample. Only infrastructure errors are tried again; see `Task.counts_provider_errors`."""

    OK = "ok"
    PARSE_ERROR = "parse_error"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    INFRA_ERROR = "infra_error"


@dataclass(frozen=True, slots=True)
class FrameRef:
    """One frame of one video; `frame_index` counts from 0."""

    video_id: str
    frame_index: int


@dataclass(frozen=True, slots=True)
class Example:
    """One question, complete: JSON values only, so that it reads from and writes to every format without loss."""

    example_id: str
    benchmark: str
    task: str
    label: str
    frames: tuple[FrameRef, ...]
    inputs: Fields
    target: Fields
    metadata: Fields = field(default_factory=dict)
    evidence: Fields = field(default_factory=dict)

    @property
    def video_id(self) -> str:
        return self.frames[0].video_id


@dataclass(frozen=True, slots=True)
class ParseError:
    """The answer could not be read. Not an exception: a model that answers badly is an outcome to count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """A parsed answer. `dropped` counts entries of it that the task's rules left out as invalid."""

    value: Fields
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Scored:
    """One sample as a metric sees it: `prediction` is None where there is no readable answer."""

    example: Example
    prediction: Prediction | None


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """A candidate that could not become an example, and why; it is counted and reported."""

    frame: FrameRef
    reason: str


def evidence_objects(example: Example) -> tuple[str, ...]:
    """Ids of the annotated objects that an example is about; empty where its evidence names none."""
    ids = example.evidence.get("object_ids")
    return tuple(str(name) for name in ids if name) if isinstance(ids, list | tuple) else ()


def content_seed(*parts: str | int) -> int:
    """A 63-bit seed made from content, the same on every machine and in every order of work."""
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
