"""Shows the answers that the open runs gave to an example, beside the example's reference."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from cachetools import LRUCache

from barista_bench.core.example import Example
from barista_bench.core.status import Status
from barista_bench.errors import BaristaError
from barista_bench.files.file_cache import FileStamp
from barista_bench.runs.log.sample_log import SampleRecord, log_files
from barista_bench.runs.log_reader import run_records
from barista_bench.runs.run_folder import RunDescription, read_run
from barista_bench.runs.score.labels import Start, start_labels
from barista_bench.runs.score.samples import run_task
from barista_bench.studio.people import explained_rows
from barista_bench.studio.workspace import Json, Workspace

log = logging.getLogger(__name__)
_MOST_RUNS = 64
"""Maximum number of runs whose answers are in memory."""

_Answers = Mapping[str, Sequence[SampleRecord]]
"""Maps the id of an example to its answers, in the order of repetitions."""


class GivenAnswers:
    """The answers of the open runs.

    The log of a run is read when one of its examples is shown, and again if it has changed. A run that cannot be read
    has no answers; the studio's log names this run.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._lock = threading.Lock()
        self._runs = [(folder, described) for folder in workspace.runs if (described := _read_description(folder))]
        self._labels = start_labels(
            [
                Start(folder, run.name, run.identity.model, run.identity.benchmark, run.identity.task)
                for folder, run in self._runs
            ]
        )
        self._held: LRUCache[tuple[Path, tuple[FileStamp, ...]], _Answers] = LRUCache(_MOST_RUNS)

    def to(self, example: Example) -> list[Json]:
        """Return the first answer of each run to an example; `repetitions` is the run's number of answers to it."""
        shown = []
        with self._lock:
            for folder, run in self._runs:
                if (run.identity.benchmark, run.identity.task) != (example.benchmark, example.task):
                    continue
                if records := self._answers_of(folder, run).get(example.example_id):
                    shown.append(
                        {"model": self._labels[folder], "repetitions": len(records), **_shown(run, example, records[0])}
                    )
        return shown

    def _answers_of(self, folder: Path, run: RunDescription) -> _Answers:
        key = folder, tuple(map(FileStamp.of, log_files(folder)))
        if key not in self._held:
            answers: dict[str, list[SampleRecord]] = defaultdict(list)
            try:
                with run_records(folder, run) as reader:
                    for record in sorted(reader, key=lambda record: record.repetition):
                        answers[record.example_id].append(record)
            except BaristaError as error:
                log.warning("%s: its answers are not shown: %s", folder, error)
            self._held[key] = dict(answers)
        return self._held[key]


def _shown(run: RunDescription, example: Example, record: SampleRecord) -> Json:
    """Return an answer as written; if the task can determine them, also its right, wrong and missing parts."""
    text, rows, is_json = record.text or record.error or "", list[tuple[str, str]](), False
    try:
        task = run_task(run, {})
        is_json = task.answer_schema(example) is not None
        if record.status is Status.OK:
            rows = explained_rows(task, example, record.text, run.identity.model.box_format.format)
    except BaristaError as error:
        log.warning("%s: an answer is not explained: %s", example.example_id, error)
    return {"status": record.status, "text": text, "rows": rows, "is_json": is_json}


def _read_description(folder: Path) -> RunDescription | None:
    try:
        return read_run(folder)
    except BaristaError as error:
        log.warning("%s: its answers are not shown: %s", folder, error)
        return None
