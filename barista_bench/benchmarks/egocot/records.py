"""Reads the benchmark's records into typed structs, and makes questions from them.

A bad record is left out. A bad row of evidence is left out, and its record is kept. Two kinds of records are supported:
samples as the project page shows them (`qid`, `media_id`, ...), and the page's quiz items (`group`, `subtask`, `video`,
...).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from barista_bench.benchmarks.egocot.items import (
    CotItem,
    DatedRelation,
    GraphFact,
    GraphPredicate,
    ItemEvidence,
    Split,
    Subtask,
    TargetObject,
    TimedBox,
    group_called,
    subtask_called,
)
from barista_bench.benchmarks.kinds.spans import read_seconds
from barista_bench.benchmarks.release_records import PlacedRecord, convert_record, elements, kind_of, read_each
from barista_bench.errors import RecordError
from barista_bench.files.paths import valid_video_id
from barista_bench.files.text_out import make_printable
from barista_bench.scene_graph import ProblemLog

_FORMAT = "give it as the project page does (docs/egocot.md)"
_SPAN = re.compile(r"\s*[–—-]\s*")

Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=20_000)]
Letter: TypeAlias = Annotated[str, Meta(pattern=r"\A[A-Z]\Z")]
Clock: TypeAlias = float | Annotated[str, Meta(max_length=64)]
"""Seconds, or MM:SS.ss."""
Coordinate: TypeAlias = Annotated[float, Meta(ge=-1e6, le=1e6)]
ObjectId: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | Annotated[str, Meta(max_length=100)]
Rows: TypeAlias = Annotated[list[object], Meta(max_length=10_000)] | None
RowT = TypeVar("RowT")
StructT = TypeVar("StructT", bound=msgspec.Struct)


class TargetRow(msgspec.Struct):
    """An object that the question is about."""

    label: Text
    distinct_id: ObjectId | None = None

    def to_evidence(self) -> TargetObject:
        return TargetObject("" if self.distinct_id is None else str(self.distinct_id), self.label)


class BoxRow(msgspec.Struct):
    """The box of one object at one time, in pixels of the medium."""

    distinct_id: ObjectId
    time: Clock
    bbox: tuple[Coordinate, Coordinate, Coordinate, Coordinate]

    def to_evidence(self) -> TimedBox:
        x0, y0, x1, y1 = self.bbox
        if not (x0 < x1 and y0 < y1):
            raise RecordError("bbox", f"{[*self.bbox]} has no area", "give x0 < x1 and y0 < y1")
        return TimedBox(str(self.distinct_id), checked_seconds(self.time, "time"), [*self.bbox])


class RelationRow(msgspec.Struct):
    """A relation of one thing to another: undated, at a time, or during a range."""

    subject_name: Text
    predicate: Text
    object_name: Text
    time: Annotated[list[Clock], Meta(max_length=2)] = []

    def to_evidence(self) -> DatedRelation:
        span = _checked_span(self.time) if self.time else (None, None)
        return DatedRelation(self.subject_name, self.predicate, self.object_name, *span)


class GraphRow(msgspec.Struct):
    """A fact of a scene graph. `GraphFact` describes the fields."""

    subject_name: Text
    predicate: GraphPredicate
    object_name: Text
    time: Annotated[list[Clock], Meta(min_length=1, max_length=2)]
    holds: bool
    text: Text

    def to_evidence(self) -> GraphFact:
        span = _checked_span(self.time)
        return GraphFact(self.subject_name, self.predicate, self.object_name, *span, self.holds, self.text)


class EvidenceRecord(msgspec.Struct):
    """Lists of rows. Each row is read separately. Only generated releases have `graph`."""

    target_objects: Rows = None
    timestamps: Rows = None
    bboxes: Rows = None
    relations: Rows = None
    focus_times: Rows = None
    focused_bboxes: Rows = None
    graph: Rows = None


class QuestionRecord(msgspec.Struct, kw_only=True):
    """The fields that both kinds of records have for a question."""

    question: Text
    choices: Annotated[dict[Letter, Text], Meta(min_length=2, max_length=26)]
    answer: str | None = None
    split: Split | UnsetType | None = UNSET
    reasoning: object = None


class SampleOfPage(QuestionRecord, kw_only=True):
    """A sample as the project page shows it. Faults of its group or source do not lose the sample."""

    qid: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}\Z")]
    media_id: Text
    sub_category_en: Text
    big_category_en: object = None
    source: object = None
    evidence: EvidenceRecord | None = None


class QuizItem(QuestionRecord, kw_only=True):
    """An item of the page's quiz. It has no id, so the id is the name of its video."""

    video: Text
    subtask: Text
    timestamps: Text
    group: object = None


class RecordReader:
    """Reads the records of one file.

    `log` collects faults, and `unknown` counts the keys that the schema lacks. `split` comes from the file's name. It
    is None if the name has no split; then items without an answer belong to `test`.
    """

    def __init__(self, log: ProblemLog, split: Split | None = None) -> None:
        self.log = log
        self.split = split
        self.unknown: Counter[str] = Counter()

    def read(self, placed: PlacedRecord) -> CotItem:
        """Return the item of one record. Raises RecordError."""
        key, content = placed.key, strip_texts(placed.value)
        if not isinstance(content, dict):
            raise RecordError("", f"is {kind_of(content)}", "give one JSON object a question")
        if "video" in content and "qid" not in content:
            quiz = convert_record(content, QuizItem, _FORMAT)
            media_id = checked_media_id(PurePosixPath(quiz.video).stem, "video")
            subtask = self._subtask(quiz.subtask, "subtask", quiz.group, f"{key}.group")
            evidence = ItemEvidence(timestamps=self._times([*_SPAN.split(quiz.timestamps)], f"{key}.timestamps"))
            return self._item(quiz, media_id, media_id, subtask, evidence, key)
        sample = convert_record(content, SampleOfPage, _FORMAT)
        media_id, group = checked_media_id(sample.media_id, "media_id"), sample.big_category_en
        subtask = self._subtask(sample.sub_category_en, "sub_category_en", group, f"{key}.big_category_en")
        for prefix, fields, struct in (
            ("", content, SampleOfPage),
            ("evidence.", content.get("evidence"), EvidenceRecord),
        ):
            names = (str(name) for name in fields or () if name not in struct.__struct_fields__)
            self.unknown.update(prefix + make_printable(name[:100]) for name in names)
        if sample.source is not None and sample.source != media_file(media_id):
            self.log.warning(f"{key}.source", f"is not {media_file(media_id)!r}, where we look", "put the video there")
        evidence = self._evidence(sample.evidence, f"{key}.evidence") if sample.evidence else ItemEvidence()
        return self._item(sample, sample.qid, media_id, subtask, evidence, key)

    def _item(
        self, record: QuestionRecord, qid: str, media_id: str, subtask: Subtask, evidence: ItemEvidence, key: str
    ) -> CotItem:
        answer = record.answer
        if answer is not None and answer not in record.choices:
            letters = ", ".join(sorted(record.choices))
            raise RecordError(
                "answer", f"{kind_of(answer)} is not one of the choices", f"give one of {letters}, or null"
            )
        split: Split | None = self.split if record.split is UNSET else record.split
        if split == "dev" and answer is None:
            raise RecordError("answer", "is missing in the split dev", "give it, or say split test")
        split = split or ("test" if answer is None else "dev")
        reasoning = _steps(record.reasoning)
        if answer is not None and not reasoning:
            self.log.warning(f"{key}.reasoning", "is empty: judges are given no reference", "give the steps")
        choices = dict(sorted(record.choices.items()))
        return CotItem(qid, media_id, split, subtask, record.question, choices, answer, reasoning, evidence)

    def _subtask(self, name: str, name_key: str, group: object, group_place: str) -> Subtask:
        subtask = subtask_called(name)
        if subtask is None:
            raise RecordError(name_key, f"{kind_of(name)} is not a subtask", "use one of the twelve names of the paper")
        if group is not None and (not isinstance(group, str) or group_called(group) != subtask.group):
            self.log.warning(group_place, f"is not the group of {subtask.code}; the subtask counts", "correct it")
        return subtask

    def _evidence(self, record: EvidenceRecord, key: str) -> ItemEvidence:
        objects = self._rows(record.target_objects, f"{key}.target_objects", TargetRow, TargetRow.to_evidence)
        return ItemEvidence(
            object_ids=list(dict.fromkeys(target.object_id for target in objects if target.object_id)),
            objects=objects,
            timestamps=self._times(record.timestamps, f"{key}.timestamps"),
            focus_times=self._times(record.focus_times, f"{key}.focus_times"),
            boxes=self._rows(record.bboxes, f"{key}.bboxes", BoxRow, BoxRow.to_evidence),
            focused_boxes=self._rows(record.focused_bboxes, f"{key}.focused_bboxes", BoxRow, BoxRow.to_evidence),
            relations=self._rows(record.relations, f"{key}.relations", RelationRow, RelationRow.to_evidence),
            graph_facts=self._rows(record.graph, f"{key}.graph", GraphRow, GraphRow.to_evidence),
        )

    def _rows(self, values: Rows, key: str, row_type: type[StructT], read: Callable[[StructT], RowT]) -> list[RowT]:
        return self._read_rows(values, key, lambda placed: read(convert_record(placed.value, row_type, _FORMAT)))

    def _times(self, values: Rows, key: str) -> list[float]:
        return self._read_rows(values, key, lambda placed: checked_seconds(placed.value, ""))

    def _read_rows(self, values: Rows, key: str, read: Callable[[PlacedRecord], RowT]) -> list[RowT]:
        rows = read_each(elements(values or [], self.log, key), read, self.log, "it is left out", "warning")
        return [row for _, row in rows]


def media_file(media_id: str) -> str:
    """Return the path of a video below the root of the media."""
    return f"media/{media_id}.mp4"


def strip_texts(value: object) -> object:
    """Return the content without outer white space around its texts."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return {name: strip_texts(inner) for name, inner in value.items()}
    return [strip_texts(inner) for inner in value] if isinstance(value, list) else value


def checked_seconds(value: object, key: str) -> float:
    seconds = read_seconds(value)
    if seconds is None:
        raise RecordError(key, f"{kind_of(value)} is no time", "write MM:SS.ss")
    return seconds


def _checked_span(times: list[Clock]) -> tuple[float, float]:
    start, end = checked_seconds(times[0], "time"), checked_seconds(times[-1], "time")
    if end < start:
        raise RecordError("time", "ends before it starts", "give the start first")
    return start, end


def checked_media_id(media_id: str, key: str) -> str:
    if not valid_video_id(media_id) or not valid_video_id(f"{media_id}.mp4"):
        raise RecordError(key, f"{kind_of(media_id)} cannot be the name of a file", "give a plain name")
    return media_id


class StepTexts(msgspec.Struct):
    """The steps of the reference reasoning, in order."""

    reasoning: Annotated[list[Annotated[str, Meta(max_length=20_000)]], Meta(max_length=10_000)]


def _steps(reasoning: object) -> tuple[str, ...]:
    """Return the steps of reasoning from one text, a list of texts, or an object of step1, ..., step10, by number."""
    steps = [] if reasoning is None else [reasoning] if isinstance(reasoning, str) else reasoning
    if isinstance(steps, dict):
        steps = [steps[name] for name in sorted(steps, key=_step_order)]
    texts = convert_record({"reasoning": steps}, StepTexts, "give step1, step2, ... as texts").reasoning
    return tuple(" ".join(text.split()) for text in texts if text)


def _step_order(name: object) -> tuple[int, str]:
    digits = re.search(r"\d{1,9}", str(name))
    return (int(digits[0]) if digits else 0, str(name))
