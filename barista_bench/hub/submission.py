"""Build submissions from scored run folders, with a row per task. Refuse data that must not be published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel

from barista_bench.benchmarks import get_benchmark
from barista_bench.core.leaderboards import SCALE
from barista_bench.core.plugins import plugin_entries
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.text_out import shared_name
from barista_bench.hub import checks
from barista_bench.hub.rows import SubmissionRow, read_row
from barista_bench.hub.settings import SubmissionTarget
from barista_bench.judging.results import JudgedResults
from barista_bench.runs.described import ModelInfo
from barista_bench.runs.run_folder import JUDGES
from barista_bench.runs.score.costs import Cost
from barista_bench.runs.score.results import RESULTS_FILE, Results, public_settings

IndexResult: TypeAlias = Mapping[str, Any]
"""One result as model-index metadata, as `huggingface_hub.model_index_to_eval_results` reads it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The published results of one model on one benchmark: at least one row, and at most one row per leaderboard."""

    target: SubmissionTarget
    rows: tuple[SubmissionRow, ...]

    @property
    def benchmark(self) -> str:
        return self.rows[0].results.dataset.benchmark

    def eval_results(self) -> checks.EvalResults:
        """Return the content of `.eval_results/<benchmark>.yaml`."""
        target = self.target
        with checks.validation("submission"):
            return checks.EvalResults(
                [
                    checks.EvalResult(
                        dataset=checks.EvalDataset(
                            id=target.dataset_repo, task_id=row.task_id, revision=target.dataset_revision
                        ),
                        value=row.value,
                        date=target.date,
                        source=target.source,
                        notes=result_notes(row),
                    )
                    for row in self.rows
                ]
            )

    def index_result(self, row: SubmissionRow) -> IndexResult:
        """Return a row as model-index metadata, for programs that do not read `.eval_results`."""
        target, dataset = self.target, row.results.dataset
        split = get_benchmark(dataset.benchmark).published_split(dataset.split)
        result: dict[str, Any] = {
            "task": {"type": "image-text-to-text", "name": row.task_id},
            "dataset": {
                "type": target.dataset_repo,
                "name": f"{self.benchmark.upper()} ({row.task_id})",
                "config": dataset.config,
                "split": split,
            },
            "metrics": [{"type": row.metric, "value": row.value, "name": f"{row.metric} x {SCALE}"}],
        }
        if target.dataset_revision:
            result["dataset"]["revision"] = target.dataset_revision
        if target.source_url:
            result["source"] = {"name": target.source_name or "barista_bench", "url": target.source_url}
        return result


def make_submission(
    folders: Sequence[str | Path],
    target: Mapping[str, object] | SubmissionTarget,
    *,
    judge: str | None = None,
    allow_incomplete: bool = False,
    data: str | Path | None = None,
    root: str | Path | None = None,
    dataset: str | Path | None = None,
    adapter: str | None = None,
) -> Submission:
    """Compute a model's results again from its runs, and check that they may be published together.

    Args:
        folders: run folders. Their results must match their logs. Nothing is written there.
        target: fields of `SubmissionTarget`.
        judge, data, root, dataset, adapter: see `read_row`.
        allow_incomplete: whether to accept runs with missing samples or verdicts, and runs under a limit. The notes
            then say so.

    Raises:
        DataError: a file is missing or invalid, the log, scores and dataset disagree, or there is nothing to publish.
            The message names the file, the field and the remedy.
        ConfigError: the settings contradict each other.
    """
    if not folders:
        raise ConfigError("no run to submit. Fix: name scored run folders")
    if not isinstance(target, SubmissionTarget):
        target = checks.check_schema(SubmissionTarget, dict(target), "submission")
    rows = [
        read_row(Path(folder), judge=judge, data=data, root=root, dataset=dataset, adapter=adapter)
        for folder in folders
    ]
    return submission_of(rows, target, allow_incomplete=allow_incomplete)


def submission_of(
    rows: Sequence[SubmissionRow], target: SubmissionTarget, *, allow_incomplete: bool = False
) -> Submission:
    """Combine rows into one submission. Raises DataError like `make_submission`."""
    for row in rows:
        where = str(row.folder / RESULTS_FILE)
        checks.check_model(row.results, where)
        checks.check_results(row.results, where)
        if row.judged is not None:
            checks.check_judged(row.judged, row.results, str(row.folder / JUDGES))
        if not allow_incomplete:
            for gap, remedy in row.gaps.items():
                raise DataError(f"{where}: {gap}. Fix: {remedy}, or say --allow-incomplete")
        _check_name(row, target)
        for name, value in row.results.changed_options.items():
            # An encoder in a local folder is private. Its path cannot be part of a leaderboard's name.
            if isinstance(value, str) and shared_name(value) != value:
                raise DataError(
                    f"{where}: options.{name}: {value!r} is a path of this machine. "
                    f"Fix: run with --option {name}=org/name, as it is called on the Hub"
                )
    _check_together(rows)
    return Submission(target, tuple(sorted(rows, key=lambda row: row.task_id)))


def _check_name(row: SubmissionRow, target: SubmissionTarget) -> None:
    """Check that the run's model is the model that the submission names."""
    run = row.results.model.name
    kind, _, rest = run.partition(":")
    plain = rest if kind in plugin_entries("models") else run
    expected = target.model_name or target.model_repo
    if expected.casefold() not in (run.casefold(), plain.casefold()):
        raise DataError(
            f"{row.folder / RESULTS_FILE}: model.name: is {run!r}, not {expected!r}. "
            "Fix: give the model's own --model-repo, or the model's name in the run with --model-name"
        )


def _check_together(rows: Sequence[SubmissionRow]) -> None:
    first_row = rows[0]
    folders: dict[str, Path] = {}
    for row in rows:
        if row.task_id in folders:
            raise DataError(
                f"{row.folder}: {row.task_id} is in {folders[row.task_id]} already. Fix: choose one of the runs"
            )
        folders[row.task_id] = row.folder
        if row.results.dataset.benchmark != first_row.results.dataset.benchmark:
            raise DataError(
                f"{row.folder}: is of {row.results.dataset.benchmark}, {first_row.folder} of "
                f"{first_row.results.dataset.benchmark}. Fix: submit each benchmark separately"
            )
        for field in ("name", "revision", "settings"):
            value, first_value = getattr(row.results.model, field), getattr(first_row.results.model, field)
            if value != first_value:
                raise DataError(
                    f"{row.folder / RESULTS_FILE}: model.{field}: differs from {first_row.folder / RESULTS_FILE}: one "
                    "submission is of one model. Fix: submit them apart, or run both alike"
                )


def result_notes(row: SubmissionRow) -> str:
    """Return notes beside a value: its source, interval, runs, coverage, judge, protocol, wording and examples."""
    results, coverage = row.results, row.results.coverage
    parts = [f"INCOMPLETE: {', '.join(row.gaps)}"] if row.gaps else []
    if results.protocol != "release":
        parts.append(f"NON-RELEASE PROTOCOL {results.protocol}")
    parts.append(checks.SELF_REPORTED)
    interval = checks.interval_of(row.metric_value)
    if interval:
        low, high = (checks.round_for_publication(value) for value in interval)
        parts.append(f"95% interval {low:g} to {high:g}")
    spread = row.metric_value.std
    parts.append(
        f"{results.repetitions} repetition(s)"
        + (f", sd {checks.round_for_publication(spread):g}" if spread is not None else "")
    )
    parts.append(f"{coverage.scored}/{coverage.expected} samples scored, {coverage.answered} answered")
    if row.judged:
        judged = row.judged
        parts.append(
            f"mean of {', '.join(judged.rubric.criteria)[:200]} by {_public_name(judged.judge.name)}, "
            f"{judged.verdicts_per_answer} verdict(s), rubric {judged.rubric.sha256[:12]} ({judged.rubric.wording}), "
            f"{judged.coverage.judged}/{judged.coverage.expected} answers judged"
        )
    else:
        parts.append(f"{row.metric} x {SCALE}")
    parts.append(f"protocol {results.protocol}, split {results.dataset.split}, wording {results.prompts.wording}")
    if results.model.name.startswith("predictions:"):
        parts.append("answers from a predictions file")
    parts.append(f"examples sha256:{results.dataset.content_hash}")
    parts.append(f"barista_bench {results.barista_bench}, task version {results.dataset.task_version}")
    return "; ".join(parts)


def public_results(row: SubmissionRow, target: SubmissionTarget) -> Results:
    """Return the `results.json` of a results dataset. It has the model's public name, and no addresses or prices."""
    model = row.results.model
    settings = public_settings(model.settings)
    public = ModelInfo(name=target.model_repo, box_format=model.box_format, revision=model.revision, settings=settings)
    timing = row.results.timing
    unpriced = timing.model_copy(update={"cost": None, "costs": _without_prices(timing.costs)})
    return row.results.model_copy(update={"model": public, "timing": unpriced})


def public_judged(row: SubmissionRow, target: SubmissionTarget) -> JudgedResults | None:
    """Return the judge's part of `public_results`."""
    if row.judged is None:
        return None
    judge = row.judged.judge
    settings = public_settings(judge.settings)
    public = judge.model_copy(update={"name": _public_name(judge.name), "settings": settings})
    unpriced = {"cost": None, "costs": _without_prices(row.judged.costs)}
    return row.judged.model_copy(update={"model": target.model_repo, "judge": public, **unpriced})


def _without_prices(costs: Mapping[str, Cost]) -> dict[str, Cost]:
    return {name: cost for name, cost in costs.items() if name != "dollars"}


def _public_name(name: str) -> str:
    """Return a judge's name without the path of a local folder."""
    local = name.startswith(("/", "~", ".")) or "\\" in name
    return (name.replace("\\", "/").rstrip("/").rpartition("/")[2] if local else name)[:100]


def as_json(model: BaseModel) -> bytes:
    """Encode a pydantic model in the format of `results.json`."""
    return (json.dumps(model.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n").encode()
