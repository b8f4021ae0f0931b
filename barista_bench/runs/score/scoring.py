"""From the sample log to `results.json`: the model is never asked, so scoring again costs nothing."""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec

from barista_bench import __version__
from barista_bench.core.prices import token_cost
from barista_bench.core.task import Json, Status, Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import BaristaError, DataError
from barista_bench.files.writing import replacing
from barista_bench.runs.score.figures import Counted, counted_samples, figure, group_figure, intervals
from barista_bench.runs.score.result_files import claim_result_files, log_options, stored_options
from barista_bench.runs.score.results import (
    Breakdown,
    Coverage,
    DatasetInfo,
    Figure,
    ModelInfo,
    PromptsInfo,
    Results,
    Timing,
    write_results,
)
from barista_bench.runs.score.samples import ReadRun, ScoredSample, read_samples

if TYPE_CHECKING:
    from barista_bench.runs.ask.opening import OpenedTask

log = logging.getLogger(__name__)

SESSIONS_FILES = "sessions*.jsonl"


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """All that a report needs of one run folder."""

    folder: Path
    task: Task
    examples: ExampleSet
    samples: tuple[ScoredSample, ...]
    results: Results
    counted: Counted


def score(
    folder: str | Path,
    *,
    data: str | Path | None = None,
    root: str | Path | None = None,
    options: Mapping[str, object] | None = None,
) -> ScoredRun:
    """Score a run folder: writes `results.json`, and `scores.jsonl` with the figures of every sample.

    Figures by other options than those that the run was started with go beside them (`runs/score/result_files.py`).

    Args:
        folder: made by `run`.
        data: where the dataset lies now, if it is not found where it was (`runs/data_location.py`).
        root: where the videos of a linked set lie now, likewise.
        options: of the task, instead of those that the run was started with; only those that change nothing that
            was asked.

    Raises:
        ConfigError: an option is unknown, or belongs to the run.
        DataError: the folder is no run, the dataset is another one than was run, no sample is finished, or the task's
            primary figure is not defined for those that are.
    """
    scored = _scored(folder, data, root, options)
    results_file, scores_file = claim_result_files(scored.folder, scored.results)
    _write_scores(scored.samples, scores_file)
    write_results(scored.results, results_file)
    return scored


def read_scored(
    folder: str | Path,
    *,
    data: str | Path | None = None,
    root: str | Path | None = None,
    options: Mapping[str, object] | None = None,
) -> ScoredRun:
    """As `score`, but writes nothing. Logs by which options it reads, unless they are the defaults and the only ones.

    Args:
        folder: made by `run`.
        data: where the dataset lies now, if it has moved.
        root: where the videos of a linked set lie now, if they have moved.
        options: as `score` takes them; None for those of the figures that are kept in the folder (`stored_options`).
    """
    scored = _scored(folder, data, root, stored_options(Path(folder)) if options is None else options)
    log_options(scored.folder, scored.results)
    return scored


def _scored(
    folder: str | Path, data: str | Path | None, root: str | Path | None, options: Mapping[str, object] | None
) -> ScoredRun:
    read = read_samples(folder, data=data, root=root, options=options)
    known = sum(map(read.task.has_answer, read.examples.examples))
    # Where all answers are hidden, the task says so itself, and what to do.
    samples = tuple(s for s in read.samples if not known or read.task.has_answer(s.example))
    if 0 < known < len(read.examples):
        log.warning("%s: %d answers are hidden: not scored", folder, len(read.examples) - known)
    if not any(s.record.status is not Status.INFRA_ERROR for s in samples):
        raise DataError(f"{folder}: no finished sample to score. Remedy: start the run again")
    counted = counted_samples(read.task, samples)
    with_scores = {sample.name: sample for group in counted.values() for sample in group.samples}
    samples = tuple(with_scores.get(sample.name, sample) for sample in samples)
    results = _results(read, samples, counted, known)
    if results.primary not in results.figures:
        raise DataError(
            f"{folder}: {results.primary} is not defined for these {results.coverage.scored} samples: too few can be "
            "compared. Remedy: run more examples (without a limit, or with a larger one)"
        )
    return ScoredRun(read.folder, read.task, read.examples, samples, results, counted)


def score_tasks(
    opened: Iterable[OpenedTask], root: str | Path | None = None
) -> tuple[list[ScoredRun], dict[str, BaristaError]]:
    """Score the tasks of a run; and of those that cannot be, why: one that fails costs no other its score."""
    runs, unscored = [], {}
    for asked in opened:
        try:
            runs.append(score(asked.folder, data=asked.data, root=root))
        except BaristaError as error:
            unscored[f"{asked.task.benchmark}/{asked.task.name}"] = error
    return runs, unscored


def _results(read: ReadRun, samples: Sequence[ScoredSample], counted: Counted, known: int) -> Results:
    """Of those samples whose truth is known, of `known` examples."""
    described, task = read.described, read.task
    identity = described["identity"]
    scored = [s for s in samples if s.counts]
    details = [group.clustered.statistics.published() for group in counted.values()]
    statuses = Counter(str(s.record.status) for s in samples)
    return Results(
        barista_bench=__version__,
        protocol=described["protocol"],
        options=dict(task.chosen),
        changed_options={name: value for name, value in task.chosen.items() if value != task.options[name].default},
        model=ModelInfo(**identity["model"]),
        dataset=DatasetInfo(
            benchmark=task.benchmark,
            task=task.name,
            task_version=task.version,
            config=task.name,
            split=identity["split"],
            limit=described["data"]["limit"],
            examples=known,
            content_hash=read.examples.content_hash,
        ),
        generation=identity["generation"],
        runs=described["runs"],
        coverage=Coverage(
            expected=known * described["runs"],
            scored=sum(s.record.status is not Status.INFRA_ERROR for s in samples),
            answered=sum(s.prediction is not None for s in scored),
            statuses={str(status): statuses[str(status)] for status in Status},
        ),
        prompts=PromptsInfo(version=task.prompts.version, sha256=task.prompts.sha256, wording=task.prompts.wording),
        primary=task.primary,
        figures=_figures(counted, details),
        breakdowns={key: _breakdown(task, scored, counted, key) for key in task.breakdown_keys},
        details=cast("Any", details),
        versions=described["versions"],
        timing=_timing(read.folder, samples, described.get("prices", {})),
    )


def _figures(counted: Counted, details: Sequence[Mapping[str, Json]]) -> dict[str, Figure]:
    """Every number that all repetitions have, with its interval over videos where the task can tell one."""
    # A spread over repetitions says something of the model only where all of them answered the same examples.
    asked = {frozenset(sample.example.example_id for sample in group.samples) for group in counted.values()}
    by_name = intervals(counted)
    return {
        name: figure([cast("float", detail[name]) for detail in details], by_name.get(name), is_even=len(asked) <= 1)
        for name, value in details[0].items()
        if isinstance(value, float) and all(name in detail for detail in details)
    }


def _breakdown(task: Task, samples: Sequence[ScoredSample], counted: Counted, key: str) -> dict[str, Breakdown]:
    """By value; without those of which a repetition has no such figure."""
    groups: dict[str, list[ScoredSample]] = defaultdict(list)
    for sample in samples:
        groups[str(sample.example.metadata.get(key))].append(sample)
    return {
        value: Breakdown(examples=len({sample.example.example_id for sample in groups[value]}), figure=primary)
        for value in sorted(groups)
        if (primary := group_figure(task, counted, groups[value])) is not None
    }


def _timing(folder: Path, samples: Sequence[ScoredSample], prices: Mapping[str, float | None]) -> Timing:
    sessions = session_seconds(folder)
    seconds: Counter[str] = Counter()
    for session in sessions:
        seconds.update(session)
    tokens_in = sum(s.record.input_tokens or 0 for s in samples)
    tokens_out = sum(s.record.output_tokens or 0 for s in samples)
    busy = seconds["wait"] + seconds["generate"]
    return Timing(
        sessions=len(sessions),
        seconds={name: round(value, 3) for name, value in sorted(seconds.items())},
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        samples_per_second=round(len(samples) / busy, 3) if busy > 1e-6 else None,
        output_tokens_per_second=round(tokens_out / busy, 3) if busy > 1e-6 else None,
        cost=token_cost(tokens_in, tokens_out, prices.get("input"), prices.get("output")),
    )


def session_seconds(folder: Path) -> list[dict[str, float]]:
    """Seconds by stage of every start of a run."""
    return [line for path in sorted(folder.glob(SESSIONS_FILES)) for line in _sessions(path)]


def _sessions(path: Path) -> list[dict[str, float]]:
    """Seconds by stage of each session. A damaged line costs its seconds, and is named."""
    sessions = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            sessions.append(msgspec.json.decode(line, type=_SessionLine).seconds)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            log.warning("%s: line %d is no session: its seconds are missing", path, number)
    return sessions


class _SessionLine(msgspec.Struct):
    seconds: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1e9)]]


def _write_scores(samples: Sequence[ScoredSample], path: Path) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        for sample in samples:
            line = {
                "example_id": sample.example.example_id,
                "video_id": sample.example.video_id,
                "run": sample.record.run,
                "status": sample.record.status,
                "scores": sample.scores if sample.counts else None,
            }
            file.write(json.dumps(line, sort_keys=True) + "\n")
