"""Export our runs as released run folders (docs/upstream/barista.md, "Runs"), by the released rules.

Each repetition of a run gets its own folder, as in the released harness. Data that our records lack gets the release's
defaults: no counted retries, one request at a time, no response ids. For an imported run, the saved original values are
used.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from barista_bench.benchmarks.barista.released_results import ReleasedRecord, common_metrics, task_metrics, task_result
from barista_bench.benchmarks.barista.released_sets import released_record
from barista_bench.core.example import Example
from barista_bench.core.prompt import TextPart
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import check_target, replacing_folder
from barista_bench.files.paths import valid_video_id
from barista_bench.interchange import released_folder
from barista_bench.interchange.released_folder import JsonObject
from barista_bench.judging.judge_folder import read_judge
from barista_bench.judging.judged_run import MISSING, SampleVerdict
from barista_bench.judging.released_verdicts import (
    METHOD,
    SCALE,
    ReleasedScore,
    ReleasedScores,
    mean_score,
    read_released_scores,
)
from barista_bench.judging.scoring import read_judged_run
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.log.sessions import session_seconds
from barista_bench.runs.run_folder import judge_folders
from barista_bench.runs.score.samples import ReadRun, ScoredSample, read_samples
from barista_bench.runs.score.scoring import read_scored

JUDGED_TASKS = frozenset({"referring", "temporal_vqa"})
BOX_TASKS = frozenset({"grounding", "hand_object", "referring"})
_DEFAULTS = {"timeout_sec": 180.0, "max_retries": 3, "vertexai": False}


class JudgeScores(NamedTuple):
    """A judge's scores of all repetitions. Empty without a judge.

    Args:
        judge: name of the judge's model.
        replaced: whether an imported run has another judge than originally, so the saved scores are invalid.
    """

    judge: str = ""
    scores: ReleasedScores = {}  # noqa: RUF012  (never changed)
    replaced: bool = False


class RepetitionFiles:
    """Builds the released files of one repetition, `run`. `contents` holds the files of the imported folder, if any.

    Floats are computed from the exported records, in the order of the records.
    """

    def __init__(
        self, own_run: ReadRun, repetition: int, contents: released_folder.ReleasedContents, judging: JudgeScores
    ) -> None:
        self._own_run, self._repetition, self._contents, self._judging = own_run, repetition, contents, judging
        self._task: Task = own_run.task
        self._model = own_run.description.identity.model
        self._box_format = self._model.box_format.format
        self._samples = [sample for sample in own_run.samples if sample.record.repetition == repetition]

    def folder(self) -> released_folder.ReleasedFolder:
        contents, replaced = self._contents, self._judging.replaced
        config = contents.record(released_folder.CONFIG, self._config())
        if replaced:
            config = config | {"task_params": (config.get("task_params") or {}) | self._judging_params()}
        lines = {
            example.example_id: contents.record(released_folder.EXAMPLES, self._line(example), example.example_id)
            for example in self._own_run.examples.examples
        }
        own_records = [self._prediction(sample, lines[sample.example.example_id]) for sample in self._samples]
        predictions = tuple(
            self._with_scores(contents.record(released_folder.PREDICTIONS, record, record["example_id"]))
            for record in own_records
        )
        own_metrics = self._compute_metrics(own_records, predictions, config)
        metrics = contents.record(released_folder.METRICS, own_metrics)
        # Take scores that we compute, since a file may lack scores, and fields that only the file has.
        runner_metrics = released_folder.RUNNER_METRICS
        shown_metrics = own_metrics | {k: v for k, v in metrics.items() if k in runner_metrics and v is not None}
        source = contents.text(released_folder.EXAMPLES_SOURCE, f"{self._own_run.description.data.path}\n")
        directory = self._contents.text(released_folder.DIRECTORY, str(self._own_run.folder))
        total = _tokens(predictions, "total_tokens")
        summary = released_folder.summary_text(self._task.upstream_name, shown_metrics, directory, total_tokens=total)
        return released_folder.ReleasedFolder(
            config=config,
            examples=tuple(lines.values()),
            examples_source=source,
            predictions=predictions,
            metrics=shown_metrics if replaced else metrics,
            summary=summary if replaced else contents.text(released_folder.SUMMARY, summary),
        )

    def _config(self) -> JsonObject:
        data, generation = self._own_run.description.data, self._own_run.description.identity.generation
        systems = {self._task.prompt(sample.example, self._box_format).system for sample in self._samples}
        return {
            "concurrency": 1,
            "dataset_root": data.absolute_root or data.root or ".",
            "debug_samples": 0,
            "model": {
                "api_key_env": None,
                "api_version": None,
                "base_url": self._model.settings.get("base_url"),
                "location": None,
                "max_output_tokens": generation.get("max_new_tokens"),
                "model": self._model.name,
                "project": None,
                "provider": self._provider,
                "temperature": generation.get("temperature"),
                "thinking_level": generation.get("thinking_level"),
                **_DEFAULTS,
            },
            "output_dir": str(self._own_run.folder.parent),
            "system_prompt": systems.pop() if len(systems) == 1 else "",
            "task": self._task.upstream_name,
            "task_params": self._task_params(),
        }

    @property
    def _provider(self) -> str:
        """Return the provider of an imported run.

        For other runs, derive the provider from the way the model was reached.
        """
        settings = self._model.settings
        return settings.get("provider") or ("openai_compat" if "base_url" in settings else "local")

    def _task_params(self) -> JsonObject:
        if self._task.name in BOX_TASKS:
            boxes = {"bbox_format": self._box_format.order, "bbox_scale": self._box_format.scale}
            return boxes | self._judging_params()
        if self._task.name == "relations":
            # All marks of a set look the same.
            look = cast("dict[str, float]", self._own_run.examples.examples[0].inputs["marks"])
            size = look["font_size"]
            return {
                "mask_alpha": look["mask_alpha"],
                "alpha_segmentation_boundary": look["boundary_alpha"],
                "font_size": int(size) if size.is_integer() else size,
            }
        return self._judging_params()

    def _judging_params(self) -> JsonObject:
        if self._task.name not in JUDGED_TASKS:
            return {}
        judge, scores, _ = self._judging
        criteria = list(dict.fromkeys(name for given in scores.values() for name in given))
        return {"geval_criteria": criteria} | ({"judge_model": judge} if scores and judge != self._model.name else {})

    def _line(self, example: Example) -> JsonObject:
        # A line from a released file already has its sentence.
        is_released = "question" in example.metadata
        return dict(released_record(example, None if is_released else self._task.frozen_question(example)))

    def _prediction(self, sample: ScoredSample, line: JsonObject) -> JsonObject:
        record, example = sample.record, sample.example
        failed = not record.is_finished
        parts = self._task.prompt(example, self._box_format).parts
        return {
            "error": _error(sample),
            "example_id": example.example_id,
            "finish_reason": record.finish_reason,
            "label": line.get("label", example.label),
            "latency_ms": None if failed else record.seconds * 1000,
            "metadata": line.get("metadata", {}),
            "model": self._model.name,
            "prompt_text": "\n".join(part.text for part in parts if isinstance(part, TextPart)),
            "provider": self._provider,
            "provider_response_id": None,
            "raw_text": record.text or "",
            "task_name": self._task.upstream_name,
            "task_result": {} if failed else task_result(self._task, example, sample.prediction, self._box_format),
            "usage": None if failed else _usage(record),
        }

    def _with_scores(self, record: JsonObject) -> JsonObject:
        scores = self._judging.scores.get((record["example_id"], self._repetition))
        if not scores:
            return record
        result = {**(record.get("task_result") or {})}
        result[released_folder.MEAN_SCORE] = mean_score([score for score, _ in scores.values()])
        for name, (score, reason) in scores.items():
            key = f"{released_folder.SCORE_PREFIX}{name}"
            result |= {f"{key}_score": score, f"{key}_reason": reason}
        return record | {"task_result": result}

    def _compute_metrics(
        self, own_records: Sequence[JsonObject], released_records: Sequence[JsonObject], config: JsonObject
    ) -> JsonObject:
        """Return scores from our own computation, since files of other programs may lack scores."""
        examples = {example.example_id: example for example in self._own_run.examples.examples}
        records = [
            ReleasedRecord(
                examples[own_record["example_id"]],
                self._with_scores(own_record)["task_result"],
                own_record["error"],
                released_record.get("latency_ms"),
            )
            for own_record, released_record in zip(own_records, released_records, strict=True)
        ]
        sessions = session_seconds(self._own_run.folder)
        seconds = sum(session.get(stage, 0.0) for session in sessions for stage in ("wait", "generate"))
        return {
            **common_metrics(records),
            **task_metrics(self._task, records, (config.get("task_params") or {}).get("geval_criteria")),
            **_token_totals(released_records),
            "wall_clock_ms": seconds * 1000 / self._own_run.description.repetitions,
            "concurrency": config.get("concurrency"),
        }


def _error(sample: ScoredSample) -> str | None:
    if not sample.record.is_finished:
        error, begin = sample.record.error or "no answer", released_folder.PROVIDER_ERROR
        return error if error.startswith(begin) else f"{begin} {error}"
    return released_folder.UNREADABLE if sample.prediction is None else None


def _token_totals(predictions: Sequence[JsonObject]) -> JsonObject:
    """Return sums over the records that report usage. Empty without such records."""
    if not any(record.get("usage") for record in predictions):
        return {}
    names = ("input_tokens", "output_tokens", "thinking_tokens")
    totals = {f"total_{name}": _tokens(predictions, name) for name in names}
    if not totals["total_thinking_tokens"]:
        del totals["total_thinking_tokens"]
    return totals


def _tokens(predictions: Sequence[JsonObject], name: str) -> int:
    counts = ((record.get("usage") or {}).get(name) or 0 for record in predictions)
    return sum(count for count in counts if 0 <= count <= released_folder.LARGEST)


def _usage(record: SampleRecord) -> JsonObject | None:
    if record.input_tokens is None and record.output_tokens is None:
        return None
    tokens_in, tokens_out = record.input_tokens or 0, record.output_tokens or 0
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


NO_VERDICT = "geval_error: "
"""Prefix of a judge's reason for a missing score."""


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """The exported folders, one per repetition, and the total number of records."""

    folders: tuple[Path, ...]
    task: str
    records: int
    judge: str | None


def export_run(
    run: str | Path,
    out: str | Path,
    *,
    judge: str | None = None,
    data: str | Path | None = None,
    root: str | Path | None = None,
) -> ExportedRun:
    """Write a run folder in the released layout.

    A single repetition is written to `out`. Several repetitions get one folder each in `out`. An imported run is
    exported as it was. Samples of our runs that were never asked have no records.

    Args:
        judge: the folder below RUN/judges with the scores. None uses the judge of the imported run, or the only judge.

    Raises:
        ConfigError: `out` is in use, the run has another benchmark or protocol or is a part of a set, or several judges
            require a choice.
        DataError: the folder is not a run, or the dataset is not the dataset that was run.
    """
    out = Path(out).absolute()
    check_target(out)
    own_run = read_samples(run, data=data, root=root)
    _refuse_other_rules(own_run)
    kept_fields = released_folder.read_kept_fields(own_run.folder)
    judging = _read_judge_scores(own_run, _judge_folder(own_run, judge), data, root, is_imported=bool(kept_fields))
    repetitions = sorted({sample.record.repetition for sample in own_run.samples})
    folders = [
        RepetitionFiles(own_run, index, released_folder.RestoredContents(kept_fields, index), judging).folder()
        for index in repetitions
    ]
    if len(repetitions) == 1:
        names = ["."]
    else:  # folders keep their names from before the import, if the names are distinct
        imported = [source.folder for source in own_run.description.imported]
        is_usable = len(set(imported)) == len(imported) > 1 and all(map(valid_video_id, imported))
        names = [imported[index] if is_usable else f"repetition_{index}" for index in repetitions]
    with replacing_folder(out) as partial:
        for name, folder in zip(names, folders, strict=True):
            (partial / name).mkdir(exist_ok=True)
            folder.write(partial / name)
    return ExportedRun(
        tuple(out / name for name in names),
        own_run.task.name,
        sum(len(folder.predictions) for folder in folders),
        judging.judge if judging.scores else None,
    )


def _refuse_other_rules(own_run: ReadRun) -> None:
    if own_run.task.benchmark != "barista":
        raise ConfigError(
            f"{own_run.folder}: is a run of {own_run.task.benchmark}. Fix: export runs of barista, whose release it is"
        )
    if own_run.description.data.part is not None:
        raise ConfigError(f"{own_run.folder}: is a part of a set. Fix: export a run of the whole set")
    if own_run.task.follows_paper:
        raise ConfigError(
            f"{own_run.folder}: follows the paper's protocol, the layout has the released rules' scores. "
            "Fix: run or import with --protocol release"
        )


def _judge_folder(own_run: ReadRun, judge: str | None) -> Path | None:
    folders = {folder.name: folder for folder in judge_folders(own_run.folder)}
    if own_run.task.name not in JUDGED_TASKS or (judge is None and not folders):
        if judge is not None:
            raise ConfigError(f"{own_run.folder}: no judge scores {own_run.task.name} there. Fix: leave --judge out")
        return None
    if judge is not None:
        if judge not in folders:
            raise ConfigError(f"{own_run.folder}: has no judge {judge!r}. Fix: name one of {', '.join(folders)}")
        return folders[judge]
    released = [folder for folder in folders.values() if read_judge(folder).identity["method"] == METHOD]
    candidates = released or list(folders.values())
    if len(candidates) > 1:
        raise ConfigError(
            f"{own_run.folder}: has {len(candidates)} judges, a released folder holds one. "
            f"Fix: say with --judge which: {', '.join(folders)}"
        )
    return candidates[0]


def _read_judge_scores(
    own_run: ReadRun, folder: Path | None, data: str | Path | None, root: str | Path | None, *, is_imported: bool
) -> JudgeScores:
    """Return the judge's scores by sample and criterion."""
    if folder is None:
        return JudgeScores()
    described = read_judge(folder)
    judge = described.identity["model"]["name"]
    if described.identity["method"] == METHOD:
        return JudgeScores(judge, read_released_scores(folder))
    judged = read_judged_run(read_scored(own_run.folder, data=data, root=root, options={}), folder)
    scores = {sample: given for sample, verdicts in judged.verdicts.items() if (given := _released_scores(verdicts))}
    return JudgeScores(judge, scores, replaced=is_imported and bool(scores))


def _released_scores(verdicts: Sequence[SampleVerdict]) -> dict[str, ReleasedScore]:
    """Map each criterion to the mean of its draws and the first draw's reason.

    Criteria without requested verdicts are left out.
    """
    scores: dict[str, ReleasedScore] = {}
    for criterion in dict.fromkeys(verdict.criterion for verdict in verdicts):
        answered_verdicts = [v for v in verdicts if v.criterion == criterion and v.status != MISSING]
        usable = [(verdict.score / SCALE, verdict.text) for verdict in answered_verdicts if verdict.score is not None]
        if usable:
            scores[criterion] = ReleasedScore(statistics.fmean(fraction for fraction, _ in usable), usable[0][1])
        elif answered_verdicts:
            scores[criterion] = ReleasedScore(None, f"{NO_VERDICT}{answered_verdicts[0].text}")
    return scores
