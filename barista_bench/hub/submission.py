"""From scored run folders to the rows of a submission, one a task. Everything that may not be published stops here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from barista_bench.benchmarks import get_benchmark, task_class
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.checks import (
    SCALE,
    check_judged,
    check_model,
    check_results,
    interval_of,
    is_floor,
    published,
    task_id,
)
from barista_bench.hub.schemas import (
    Address,
    Commit,
    Date,
    EvalDataset,
    EvalResult,
    EvalResults,
    EvalSource,
    IndexDataset,
    IndexMetric,
    IndexResult,
    IndexSource,
    IndexTask,
    RepoId,
    Strict,
    Text,
    checked,
    valid,
)
from barista_bench.judging.results import MEAN, JudgedResults, read_judged
from barista_bench.running.results import Figure, ModelInfo, Results, read_results
from barista_bench.running.run_folder import CONFIG_FILE, read_run
from barista_bench.task import Task

RESULTS_FILE: Final = "results.json"
JUDGED_PATTERN: Final = "judges/*/results.json"
_PUBLIC_SETTINGS: Final = frozenset(
    {
        *("dtype", "attn_implementation", "quantization", "adapter", "repetition_penalty", "min_pixels", "max_pixels"),
        *("frames_as", "video_fps", "box_format", "think_tags", "structured_output", "image_format", "jpeg_quality"),
        *("max_image_side", "image_detail", "threshold", "mask_threshold", "prompt_opens_thinking"),
    }
)
"""Settings of a model that are published. Others may hold addresses of servers or what the user sent to them."""


class Target(Strict):
    """Where results go and what is said of them. Raises DataError through `checked`, naming the field."""

    model_repo: RepoId
    dataset_repo: RepoId
    dataset_revision: Commit | None = None
    model_name: str | None = None
    date: Date | None = None
    source_url: Address | None = None
    source_name: Text | None = None
    source_user: Text | None = None
    source_org: Text | None = None

    @property
    def source(self) -> EvalSource | None:
        if self.source_url is None:
            if self.source_name or self.source_user or self.source_org:
                raise ConfigError("a source without an address says nothing. Remedy: give --source-url too")
            return None
        return EvalSource(url=self.source_url, name=self.source_name, user=self.source_user, org=self.source_org)


@dataclass(frozen=True, slots=True)
class Row:
    """One task's results, checked. `judged` stands for the run's own figure in tasks that judges score."""

    folder: Path
    task: type[Task]
    results: Results
    judged: JudgedResults | None

    @property
    def figure(self) -> Figure:
        return self.judged.figures[MEAN] if self.judged else self.results.figures[self.results.primary]

    @property
    def metric(self) -> str:
        return "judge_score" if self.judged else self.results.primary

    @property
    def value(self) -> float:
        """0 to 100."""
        return published(self.figure.mean)

    @property
    def task_id(self) -> str:
        """The leaderboard. Other splits and other protocols are not comparable, so they have boards of their own."""
        return task_id(self.results.dataset.task, self.results.dataset.split, self.results.protocol)

    @property
    def complete(self) -> bool:
        judged = self.judged is None or self.judged.coverage.judged == self.judged.coverage.expected
        return self.results.coverage.complete and judged


@dataclass(frozen=True, slots=True)
class Submission:
    """What is published of one model: at least one row, all of one benchmark, at most one a leaderboard."""

    target: Target
    rows: tuple[Row, ...]

    @property
    def benchmark(self) -> str:
        return self.rows[0].results.dataset.benchmark

    def eval_results(self) -> EvalResults:
        """The content of `.eval_results/<benchmark>.yaml`."""
        with valid("submission"):
            return EvalResults([self._entry(row) for row in self.rows])

    def _entry(self, row: Row) -> EvalResult:
        target = self.target
        return EvalResult(
            dataset=EvalDataset(id=target.dataset_repo, task_id=row.task_id, revision=target.dataset_revision),
            value=row.value,
            date=target.date,
            source=target.source,
            notes=notes(row),
        )

    def index_results(self) -> list[IndexResult]:
        """The same as model-index metadata, for readers that know no `.eval_results`."""
        with valid("submission"):
            return [self._indexed(row) for row in self.rows]

    def _indexed(self, row: Row) -> IndexResult:
        target, dataset = self.target, row.results.dataset
        url = target.source_url
        return IndexResult(
            task=IndexTask(type="image-text-to-text", name=row.task_id),
            dataset=IndexDataset(
                type=target.dataset_repo,
                name=f"{self.benchmark.upper()} ({row.task_id})",
                config=dataset.config,
                split=get_benchmark(dataset.benchmark).published_split(dataset.split),
                revision=target.dataset_revision,
            ),
            metrics=[IndexMetric(type=row.metric, value=row.value, name=f"{row.metric} x {SCALE}")],
            source=IndexSource(name=target.source_name or "barista_bench", url=url) if url else None,
        )


def make_submission(
    folders: Sequence[str | Path],
    target: Mapping[str, object] | Target,
    *,
    judge: str | None = None,
    allow_incomplete: bool = False,
    dataset: str | Path | None = None,
) -> Submission:
    """Read scored run folders and check that they may be published together as one model's results.

    Args:
        folders: each with a `results.json`, of `barista-bench score`.
        target: fields of `Target`.
        judge: name of the judge whose figures count, where a run has several.
        allow_incomplete: take runs with samples or verdicts missing; the notes say so.
        dataset: built folder whose examples must be those that were evaluated; None where it is not at hand.

    Raises:
        DataError: a file is missing, broken, contradicts itself or is nothing to publish; names it and the remedy.
        ConfigError: the settings contradict each other.
    """
    if not folders:
        raise ConfigError("no run to submit. Remedy: name scored run folders")
    goal = target if isinstance(target, Target) else checked(Target, dict(target), "submission")
    rows = [_row(Path(folder), judge, allow_incomplete) for folder in folders]
    for row in rows:
        _check_name(row, goal)
        if dataset is not None:
            _check_examples(row, dataset)
    _check_together(rows)
    return Submission(goal, tuple(sorted(rows, key=lambda row: row.task_id)))


def _row(folder: Path, judge: str | None, allow_incomplete: bool) -> Row:
    path = folder / RESULTS_FILE
    where = str(path)
    results = read_results(path)
    check_model(results, where)
    check_results(results, where)
    task = task_class(results.dataset.benchmark, results.dataset.task)
    if (results.dataset.task_version, results.primary) != (task.version, task.primary):
        raise DataError(
            f"{where}: dataset.task_version: was scored as version {results.dataset.task_version} "
            f"({results.primary}), this package has {task.version} ({task.primary}). Remedy: score the run again"
        )
    row = Row(folder, task, results, _judged(folder, results, judge) if is_floor(results) else None)
    if not allow_incomplete:
        _check_complete(row, where)
    return row


def _judged(folder: Path, results: Results, wanted: str | None) -> JudgedResults:
    """The judge's figures that stand for a run whose own are a floor."""
    paths = sorted(folder.glob(JUDGED_PATTERN))
    if not paths:
        raise DataError(
            f"{folder}: {results.primary} counts shared words: a floor, and no number to publish for "
            f"{results.dataset.task}. Remedy: have it judged first: `barista-bench judge {folder} --judge ...`"
        )
    found = {path: read_judged(path) for path in paths}
    if wanted is None and len(paths) > 1:
        # A floor beside one real judge leaves nothing to choose.
        found = {path: one for path, one in found.items() if one.judge.name != "lexical"}
    if wanted is not None:
        found = {path: one for path, one in found.items() if wanted in (one.judge.name, path.parent.name)}
    if len(found) != 1:
        known = ", ".join(sorted(path.parent.name for path in (found or paths)))
        trouble = "has no judge" if wanted is not None and not found else "has several judges"
        raise DataError(f"{folder}: {trouble}{f' {wanted!r}' if wanted else ''}. Remedy: give --judge, one of {known}")
    ((path, judged),) = found.items()
    check_judged(judged, results, str(path))
    return judged


def _check_complete(row: Row, where: str) -> None:
    coverage = row.results.coverage
    if not coverage.complete:
        raise DataError(
            f"{where}: coverage: {coverage.scored} of {coverage.expected} samples are scored. "
            "Remedy: finish the run and score it, or say --allow-incomplete"
        )
    if row.judged and not row.complete:
        raise DataError(
            f"{where}: judges: {row.judged.coverage.judged} of {row.judged.coverage.expected} answers are judged. "
            "Remedy: finish `barista-bench judge`, or say --allow-incomplete"
        )
    limit = _limit(row.folder)
    if limit is not None:
        raise DataError(
            f"{row.folder / CONFIG_FILE}: data.limit: only {limit} examples were asked. "
            "Remedy: run without --limit, or say --allow-incomplete"
        )


def _limit(folder: Path) -> int | None:
    """How many examples the run was cut to; None for all, or where the results lie without their run."""
    return read_run(folder)["data"].get("limit") if (folder / CONFIG_FILE).exists() else None


def _check_name(row: Row, target: Target) -> None:
    """The model that was run must be the one that the results are said to be of."""
    run = row.results.model.name
    plain = run.partition(":")[2] if run.partition(":")[0] in ("sam3", "served", "predictions") else run
    expected = target.model_name or target.model_repo
    if expected.casefold() not in (run.casefold(), plain.casefold()):
        raise DataError(
            f"{row.folder / RESULTS_FILE}: model.name: is {run!r}, not {expected!r}. "
            "Remedy: give the model's own --model-repo, or say with --model-name what it was called in the run"
        )


def _check_examples(row: Row, folder: str | Path) -> None:
    from barista_bench.running.dataset import open_examples

    told = row.results.dataset
    found = open_examples(folder, told.benchmark, told.config, split=told.split).content_hash
    if found != told.content_hash:
        raise DataError(
            f"{row.folder / RESULTS_FILE}: dataset.content_hash: other examples ({told.content_hash[:12]}) were "
            f"evaluated than those of {folder} ({found[:12]}). Remedy: run on that dataset, or name the other one"
        )


def _check_together(rows: Sequence[Row]) -> None:
    first = rows[0]
    seen: dict[str, Path] = {}
    for row in rows:
        if row.task_id in seen:
            raise DataError(
                f"{row.folder}: {row.task_id} stands in {seen[row.task_id]} already. Remedy: choose one of the runs"
            )
        seen[row.task_id] = row.folder
        if row.results.dataset.benchmark != first.results.dataset.benchmark:
            raise DataError(
                f"{row.folder}: is of {row.results.dataset.benchmark}, {first.folder} of "
                f"{first.results.dataset.benchmark}. Remedy: submit each benchmark by itself"
            )
        for what in ("name", "revision", "settings"):
            mine, other = getattr(row.results.model, what), getattr(first.results.model, what)
            if mine != other:
                raise DataError(
                    f"{row.folder / RESULTS_FILE}: model.{what}: differs from {first.folder / RESULTS_FILE}: one "
                    "submission is of one model. Remedy: submit them apart, or run both alike"
                )


def notes(row: Row) -> str:
    """What stands beside a value: interval, runs, coverage, protocol, judge, examples, how it was made."""
    results, coverage = row.results, row.results.coverage
    parts = [] if row.complete and _limit(row.folder) is None else [f"INCOMPLETE: {_missing(row)}"]
    if results.protocol != "release":
        parts.append(f"NON-RELEASE PROTOCOL {results.protocol}")
    interval = interval_of(row.figure)
    if interval:
        low, high = (published(value) for value in interval)
        parts.append(f"95% interval {low:g} to {high:g}")
    spread = row.figure.std
    parts.append(f"{results.runs} run(s)" + (f", sd {published(spread):g}" if spread is not None else ""))
    parts.append(f"{coverage.scored}/{coverage.expected} samples scored, {coverage.answered} answered")
    if row.judged:
        judged = row.judged
        parts.append(
            f"mean of {', '.join(judged.rubric.criteria)[:200]} by {_public_name(judged.judge.name)}, "
            f"{judged.draws} draw(s), rubric {judged.rubric.sha256[:12]}, "
            f"{judged.coverage.judged}/{judged.coverage.expected} answers judged"
        )
    else:
        parts.append(f"{row.metric} x {SCALE}")
    parts.append(f"protocol {results.protocol}, split {results.dataset.split}")
    if results.model.name.startswith("predictions:"):
        parts.append("answers from a predictions file")
    parts.append(f"examples sha256:{results.dataset.content_hash}")
    parts.append(f"barista_bench {results.barista_bench}, task version {results.dataset.task_version}")
    return "; ".join(parts)


def _missing(row: Row) -> str:
    coverage, limit = row.results.coverage, _limit(row.folder)
    found = []
    if not coverage.complete:
        found.append(f"{coverage.expected - coverage.scored} of {coverage.expected} samples missing")
    if row.judged and row.judged.coverage.judged < row.judged.coverage.expected:
        unjudged = row.judged.coverage.expected - row.judged.coverage.judged
        found.append(f"{unjudged} of {row.judged.coverage.expected} answers not judged")
    if limit is not None:
        found.append(f"cut to {limit} examples")
    return ", ".join(found)


def public_results(row: Row, target: Target) -> Results:
    """`results.json` for a results dataset: under the model's public name, without addresses and prices."""
    model = row.results.model
    settings = {name: value for name, value in model.settings.items() if name in _PUBLIC_SETTINGS}
    public = ModelInfo(name=target.model_repo, box_format=model.box_format, revision=model.revision, settings=settings)
    return row.results.model_copy(
        update={"model": public, "timing": row.results.timing.model_copy(update={"cost": None})}
    )


def public_judged(row: Row, target: Target) -> JudgedResults | None:
    """The judge's part of `public_results`."""
    if row.judged is None:
        return None
    judge = row.judged.judge
    settings = {name: value for name, value in judge.settings.items() if name in _PUBLIC_SETTINGS}
    return row.judged.model_copy(
        update={
            "model": target.model_repo,
            "judge": judge.model_copy(update={"name": _public_name(judge.name), "settings": settings}),
            "cost": None,
        }
    )


def _public_name(name: str) -> str:
    """A judge's name without the folder of this machine that it lies in."""
    local = name.startswith(("/", "~", ".")) or "\\" in name
    return (name.replace("\\", "/").rstrip("/").rpartition("/")[2] if local else name)[:100]


def as_json(model: BaseModel) -> bytes:
    """As `results.json` is written."""
    return (json.dumps(model.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n").encode()
