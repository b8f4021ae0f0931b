"""The benchmark's files to items: a bad record costs itself, a bad row of its evidence that row.

Two kinds of records are known: samples as the project page shows them (`qid`, `media_id`, ...), and the page's quiz
items (`group`, `subtask`, `video`, ...).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TypeAlias, TypeVar, get_args

from barista_bench.benchmarks.clock_times import read_seconds
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
from barista_bench.benchmarks.parsing import is_text
from barista_bench.core.boxes import four_numbers
from barista_bench.errors import RecordError
from barista_bench.files.reading import bounded_bytes, valid_video_id
from barista_bench.files.text_out import printable
from barista_bench.scene_graph import ProblemLog

MAX_BYTES = 2**28
"""Largest file that is read; the whole benchmark has some ten megabytes."""
MAX_TEXT = 20_000
"""Characters of any one text."""
MAX_ROWS = 10_000
"""Rows of one list of evidence."""
MAX_CHOICES = 26
MAX_COORDINATE = 1e6
_LABEL = re.compile(r"[A-Z]")
_QID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}")
_SPAN = re.compile(r"\s*[–—-]\s*")
_KNOWN = frozenset(
    {
        *("qid", "media_id", "source", "big_category_en", "sub_category_en", "question", "choices", "answer"),
        *("reasoning", "evidence", "split"),
    }
)
_EVIDENCE = frozenset({"target_objects", "timestamps", "bboxes", "relations", "focus_times", "focused_bboxes", "graph"})

Record: TypeAlias = "Mapping[str, object]"
RowT = TypeVar("RowT")


def read_records(path: Path, log: ProblemLog) -> Iterator[tuple[str, object]]:
    """The records of a JSON or JSONL file with their places; what is no JSON is logged."""
    try:
        text = bounded_bytes(path, MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        log.error("", f"cannot be read ({printable(str(error))[:200]})", "give a UTF-8 file within the bound")
        return
    if path.suffix.lower() == ".jsonl":
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield from _decoded(line, f"line {number}", log)
        return
    for _, value in _decoded(text, "", log):
        yield from _listed(value)


def _decoded(text: str, key: str, log: ProblemLog) -> Iterator[tuple[str, object]]:
    try:
        yield key, json.loads(text)
    except (ValueError, RecursionError) as error:
        cause = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        log.error(key, f"is no JSON ({cause}); it is left out", "correct it")


def _listed(value: object) -> Iterator[tuple[str, object]]:
    """The records of a JSON value: a list, one record, or an object whose only list is meant."""
    if isinstance(value, dict) and "question" not in value:
        lists = [(name, inner) for name, inner in value.items() if isinstance(inner, list)]
        if len(lists) == 1:
            name, value = lists[0]
            yield from ((f"{printable(str(name)[:100])}[{index}]", record) for index, record in enumerate(lists[0][1]))
            return
    if isinstance(value, list):
        yield from ((f"[{index}]", record) for index, record in enumerate(value))
    else:
        yield "record", value


class RecordReader:
    """Reads the records of one file; `log` collects what is wrong with them.

    Args:
        log: of the file.
        split: what the file's name says; None where it says nothing. Items without an answer are `test` then.
    """

    def __init__(self, log: ProblemLog, split: Split | None = None) -> None:
        self.log = log
        self.split = split
        self.unknown: Counter[str] = Counter()

    def read(self, record: object, key: str) -> CotItem | None:
        """The item of one record, or None with a problem logged."""
        try:
            if not isinstance(record, dict):
                raise RecordError("", f"is {kind(record)}", "give one JSON object a question")
            return self._item(record, key)
        except RecordError as error:
            where = f"{key}.{error.key}" if error.key else key
            self.log.error(where, f"{error.what}; the question is left out", error.remedy)
            return None

    def report_unknown(self) -> None:
        """One warning for each key that the schema does not have, however many records have it."""
        for name, count in sorted(self.unknown.items()):
            self.log.warning(name, f"stands in {count} records and is not read", "leave it out, or tell us what it is")

    def _item(self, record: Record, key: str) -> CotItem:
        """A quiz item has no id: it is called by its video."""
        is_quiz = "video" in record and "qid" not in record
        names = ("video", "subtask", "group") if is_quiz else ("media_id", "sub_category_en", "big_category_en")
        media_name, subtask_name, group_name = names
        stated = _text(record, media_name)
        media_id = _media_id(PurePosixPath(stated).stem if is_quiz else stated, media_name)
        answer, split = self._answer(record)
        if is_quiz:
            times = self._times(_SPAN.split(_text(record, "timestamps")), f"{key}.timestamps")
            evidence = ItemEvidence(timestamps=times)
        else:
            self.unknown.update(printable(str(name)[:100]) for name in record if name not in _KNOWN)
            self._check_source(record, media_id, key)
            evidence = self._evidence(record.get("evidence"), f"{key}.evidence")
        return CotItem(
            qid=media_id if is_quiz else _qid(record),
            media_id=media_id,
            split=split,
            subtask=self._subtask(record, key, subtask_name, group_name),
            question=_text(record, "question"),
            choices=_choices(record, answer),
            answer=answer,
            reasoning=self._reasoning(record, key, answer),
            evidence=evidence,
        )

    def _answer(self, record: Record) -> tuple[str | None, Split]:
        answer = record.get("answer")
        if answer is not None and not (isinstance(answer, str) and _LABEL.fullmatch(answer.strip())):
            raise RecordError("answer", f"is {kind(answer)}", "give the letter of the right choice, or null")
        letter = str(answer).strip() if answer is not None else None
        stated = record.get("split", self.split)
        if stated not in ("dev", "test", None):
            raise RecordError("split", f"is {kind(stated)}", "give dev or test")
        split: Split = "test" if stated == "test" or (stated is None and letter is None) else "dev"
        if split == "dev" and letter is None:
            raise RecordError("answer", "is missing in the split dev", "give it, or say split test")
        return letter, split

    def _subtask(self, record: Record, key: str, name: str, group_key: str) -> Subtask:
        stated = _text(record, name)
        subtask = subtask_called(stated)
        if subtask is None:
            raise RecordError(name, f"{stated[:80]!r} is no subtask", "use one of the twelve names of the paper")
        group = record.get(group_key)
        if group is not None and (not isinstance(group, str) or group_called(group) != subtask.group):
            self.log.warning(
                f"{key}.{group_key}", f"is not the group of {subtask.code}; the subtask counts", "correct it"
            )
        return subtask

    def _check_source(self, record: Record, media_id: str, key: str) -> None:
        source = record.get("source")
        if source is not None and source != media_file(media_id):
            self.log.warning(f"{key}.source", f"is not {media_file(media_id)!r}, where we look", "put the video there")

    def _reasoning(self, record: Record, key: str, answer: str | None) -> tuple[str, ...]:
        steps = record.get("reasoning")
        if isinstance(steps, str):
            steps = [steps]
        elif isinstance(steps, dict):
            steps = [steps[name] for name in sorted(steps, key=_step_order)]
        if steps is None:
            steps = []
        if not isinstance(steps, list) or not all(is_text(step) and len(step) <= MAX_TEXT for step in steps):
            raise RecordError("reasoning", f"is {kind(record.get('reasoning'))}", "give step1, step2, ... as texts")
        texts = tuple(" ".join(step.split()) for step in steps[:MAX_ROWS] if step.strip())
        if answer is not None and not texts:
            self.log.warning(f"{key}.reasoning", "is empty: judges are given no reference", "give the steps")
        return texts

    def _evidence(self, value: object, key: str) -> ItemEvidence:
        if value is None:
            return ItemEvidence()
        if not isinstance(value, dict):
            raise RecordError("evidence", f"is {kind(value)}", "give an object of lists")
        self.unknown.update(f"evidence.{printable(str(name)[:100])}" for name in value if name not in _EVIDENCE)
        objects = list(self._rows(value, "target_objects", key, _target))
        return ItemEvidence(
            object_ids=list(dict.fromkeys(target.object_id for target in objects if target.object_id)),
            objects=objects,
            timestamps=self._times(_list(value, "timestamps"), f"{key}.timestamps"),
            focus_times=self._times(_list(value, "focus_times"), f"{key}.focus_times"),
            boxes=list(self._rows(value, "bboxes", key, _box)),
            focused_boxes=list(self._rows(value, "focused_bboxes", key, _box)),
            relations=list(self._rows(value, "relations", key, _relation)),
            graph=list(self._rows(value, "graph", key, _graph_fact)),
        )

    def _times(self, values: list[object] | list[str], key: str) -> list[float]:
        times = []
        for index, value in enumerate(values):
            seconds = read_seconds(value)
            if seconds is None:
                self.log.warning(f"{key}[{index}]", f"{kind(value)} is no time; it is left out", "write MM:SS.ss")
            else:
                times.append(seconds)
        return times

    def _rows(self, evidence: Record, name: str, key: str, read: Callable[[Record], RowT]) -> Iterator[RowT]:
        for index, row in enumerate(_list(evidence, name)):
            try:
                if not isinstance(row, dict):
                    raise RecordError("", f"is {kind(row)}", "give an object")
                yield read(row)
            except RecordError as error:
                where = f"{key}.{name}[{index}]" + (f".{error.key}" if error.key else "")
                self.log.warning(where, f"{error.what}; the row is left out", error.remedy)


def media_file(media_id: str) -> str:
    """Where a video lies below the root of the media."""
    return f"media/{media_id}.mp4"


def kind(value: object) -> str:
    """The kind of a value, in few characters: a small file can spell a huge one."""
    return repr(value)[:60] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    if not is_text(value) or not value.strip() or len(value) > MAX_TEXT:
        raise RecordError(name, f"is {kind(value)}", f"give text of up to {MAX_TEXT} characters")
    return value.strip()


def _qid(record: Record) -> str:
    qid = _text(record, "qid")
    if not _QID.fullmatch(qid):
        raise RecordError("qid", f"{qid[:60]!r} is no id", "use letters, digits, dots, dashes and underscores")
    return qid


def _media_id(media_id: str, key: str) -> str:
    if not valid_video_id(media_id) or not valid_video_id(f"{media_id}.mp4"):
        raise RecordError(key, f"{media_id[:60]!r} cannot be the name of a file", "give a plain name")
    return media_id


def _choices(record: Record, answer: str | None) -> dict[str, str]:
    choices = record.get("choices")
    if not isinstance(choices, dict) or not 2 <= len(choices) <= MAX_CHOICES:
        raise RecordError("choices", f"is {kind(choices)}", f"give 2 to {MAX_CHOICES} texts by letter")
    for label in choices:
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            raise RecordError("choices", f"{kind(label)} is no letter", "use A, B, C, ...")
    texts = {label: _text(choices, label) for label in sorted(choices)}
    if answer is not None and answer not in texts:
        raise RecordError("answer", f"{answer} is none of the choices", f"give one of {', '.join(texts)}")
    return texts


def _step_order(name: object) -> tuple[int, str]:
    """step2 before step10."""
    digits = re.search(r"\d{1,9}", str(name))
    return (int(digits[0]) if digits else 0, str(name))


def _list(record: Record, name: str) -> list[object]:
    value = record.get(name, [])
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MAX_ROWS:
        raise RecordError(f"evidence.{name}", f"is {kind(value)}", f"give a list of up to {MAX_ROWS} rows")
    return value


def _object_id(row: Record) -> str:
    value = row.get("distinct_id")
    if isinstance(value, bool) or not isinstance(value, int | str) or len(str(value)) > 100:
        raise RecordError("distinct_id", f"is {kind(value)}", "give a number")
    return str(value)


def _target(row: Record) -> TargetObject:
    return TargetObject("" if row.get("distinct_id") is None else _object_id(row), _text(row, "label"))


def _box(row: Record) -> TimedBox:
    time = read_seconds(row.get("time"))
    if time is None:
        raise RecordError("time", f"is {kind(row.get('time'))}", "write MM:SS.ss")
    return TimedBox(_object_id(row), time, _corners(row.get("bbox")))


def _corners(value: object) -> list[float]:
    """[x0, y0, x1, y1] with x0 < x1 and y0 < y1. Raises RecordError."""
    numbers = four_numbers(value, MAX_COORDINATE)
    if numbers is None:
        raise RecordError("bbox", f"is {kind(value)}", "give four numbers: x0, y0, x1, y1 in pixels")
    x0, y0, x1, y1 = numbers
    if not (x0 < x1 and y0 < y1):
        raise RecordError("bbox", f"{numbers} has no area", "give x0 < x1 and y0 < y1")
    return [x0, y0, x1, y1]


def _relation(row: Record) -> DatedRelation:
    given = row.get("time", [])
    if not isinstance(given, list) or len(given) > 2:
        raise RecordError("time", f"is {kind(given)}", "give [start] or [start, end]")
    times = [read_seconds(value) for value in given]
    start, end = (times[0], times[-1]) if times else (None, None)
    if None in times or (start is not None and end is not None and end < start):
        raise RecordError("time", f"is {kind(given)}", "write MM:SS.ss, the start first")
    return DatedRelation(_text(row, "subject_name"), _text(row, "predicate"), _text(row, "object_name"), start, end)


def _graph_fact(row: Record) -> GraphFact:
    fact = _relation(row)
    if fact.predicate not in get_args(GraphPredicate):
        raise RecordError("predicate", f"is {kind(fact.predicate)}", f"use {', '.join(get_args(GraphPredicate))}")
    if fact.start is None or fact.end is None:
        raise RecordError("time", "is missing", "give [start, end]")
    holds = row.get("holds")
    if not isinstance(holds, bool):
        raise RecordError("holds", f"is {kind(holds)}", "give true or false")
    return GraphFact(fact.subject, fact.predicate, fact.object, fact.start, fact.end, holds, _text(row, "text"))
