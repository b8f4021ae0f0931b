"""Convert released run folders to our run folders, for `score`, `report` and `export run`.

A folder has `predictions.jsonl` and `benchmark_examples.jsonl`. Each folder becomes one repetition of the new folder.
All folders must have the same model, provider, settings, task and examples. The released record of a sample determines
its status:

| the release's record | status here |
|---|---|
| `error` begins with `provider_error: `, or there is no text at all | infra_error |
| `error` begins with `parse_error: `, `finish_reason` names a refusal or a safety block | refused |
| `error` begins with `parse_error: `, `finish_reason` names the token limit | truncated |
| `error` begins with `parse_error: ` | parse_error |
| no error, `finish_reason` names the token limit | truncated, and counts |
| otherwise | ok, or parse_error where our parser cannot read it |

A judge's scores become verdicts in a judge's folder (`judging/released_verdicts.py`). Data without a field in our
samples is saved next to the log (`released_folder.py`). Records keep their order, since the release's scores depend on
it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from barista_bench.benchmarks import get_task, task_class
from barista_bench.core.boxes import FORMATS_BY_ARCHITECTURE, BoxFormat
from barista_bench.core.example import ParseError
from barista_bench.core.guarding import attempt
from barista_bench.core.prompt import PromptTexts, hash_name
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.files.hashes import file_sha256
from barista_bench.files.owned_folders import check_target, replacing_folder
from barista_bench.interchange.exporting import JudgeScores, RepetitionFiles
from barista_bench.interchange.recorded_answers import write_imported
from barista_bench.interchange.released_folder import (
    MEAN_SCORE,
    METRICS,
    PARSE_ERROR,
    PREDICTIONS,
    PROVIDER_ERROR,
    RUNNER_METRICS,
    SCORE_PREFIX,
    KeptFields,
    OriginalContents,
    ReleasedPrediction,
    Usage,
    write_kept_fields,
)
from barista_bench.interchange.released_run import ReleasedRun, check_same, read_released_run
from barista_bench.judging.released_verdicts import ReleasedScore, ReleasedScores, write_released_judge
from barista_bench.models import ModelIdentity
from barista_bench.models.finish_reasons import meaning_of
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.data_location import data_location
from barista_bench.runs.log.inputs import digest, sample_keys
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.run_folder import RunDescription, run_description
from barista_bench.runs.score.samples import read_samples

_KEPT_VERDICT = "our parser reads it; the release's verdict stands, so that scores are the release's"


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """The imported run, and the differences between our and the release's readings and scores. There should be none.

    Args:
        repetitions: number of folders.
        unanswered: number of samples (examples x repetitions) without a record. The coverage shows them as missing.
        judged: number of samples with a judge's scores.
        kept_failures: number of samples that only our parser can read. They stay failures.
        new_failures: number of samples that only the release could read.
        other_results: number of samples whose `task_result` differs from our result for the same answer.
        other_metrics: keys of `metrics.json` whose values differ from our scores of the same records.
        faults: errors that the task's parser raised. These samples keep the release's result.
    """

    folder: Path
    task: str
    repetitions: int
    statuses: Mapping[Status, int]
    unanswered: int
    judged: int
    kept_failures: tuple[str, ...]
    new_failures: tuple[str, ...]
    other_results: tuple[str, ...]
    other_metrics: tuple[str, ...]
    faults: tuple[str, ...]


def import_run(
    folders: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    examples: str | Path | None = None,
    root: str | Path | None = None,
    box_format: BoxFormat | None = None,
    benchmark: str = "barista",
    options: Mapping[str, object] | None = None,
) -> ImportedRun:
    """Make a run folder from folders of the released harness. Each folder becomes a repetition.

    Args:
        folders: folders of the released harness, in the order of the repetitions.
        out: the new folder. It must be missing or empty.
        examples: the frozen file that was run, if a folder lacks `benchmark_examples.jsonl`.
        root: the release. It is needed if the frozen file omits data, and to show pictures in reports.
        box_format: the box format that the prompts requested. None uses the run's settings, or if they do not set it,
            the release's format for the model's architecture.
        options: options of the task.

    Raises:
        DataError: a file is missing or damaged. Or a record is repeated, belongs to no example, or belongs to another
            task or model. The message names the file and the lines.
        ConfigError: `out` is in use, the folders are not runs of the same task and model, or the box format is unknown.
    """
    paths = [Path(folders)] if isinstance(folders, str | Path) else [Path(folder) for folder in folders]
    out = Path(out).absolute()
    if not paths:
        raise ConfigError("no folder to import. Fix: name at least one")
    check_target(out)
    released = [read_released_run(path, examples, root, benchmark) for path in paths]
    first = released[0]
    for other in released[1:]:
        check_same(first, other)
    name = task_class(benchmark, first.predictions[0].task_name).name
    task = get_task(benchmark, name, _prompts(released), options=options)
    task.refuse_others(first.examples)
    importer = _Importer(
        task, released, box_format or first.boxes or format_of_architecture(first.model, first.provider)
    )
    with replacing_folder(out) as partial:
        importer.write(partial, out, root)
    return importer.result(out)


def format_of_architecture(model: str, provider: str | None) -> BoxFormat:
    """Return the release's box format for a model's architecture.

    Raises:
        ConfigError: the release does not cover the architecture.
    """
    for text in (model, provider or ""):
        formats = {
            box_format
            for architecture, box_format in FORMATS_BY_ARCHITECTURE.items()
            if architecture in text.casefold()
        }
        if len(formats) == 1:
            return formats.pop()
    raise ConfigError(
        f"{model} ({provider}): the release has no box format for it. Fix: say how it was asked to write boxes "
        "with --box-format, e.g. yxyx/1000"
    )


def _prompts(released: Sequence[ReleasedRun]) -> PromptTexts:
    """Build a wording for the release's prompts from the texts that were sent."""
    prompt_texts = sorted({record.prompt_text or "" for run in released for record in run.predictions})
    text = "The released harness asked this in its own words: see prompt_text in its predictions.jsonl."
    sha256 = digest(*prompt_texts)
    return PromptTexts(version=0, system="", user=text, sha256=sha256, wording=hash_name("released run", sha256))


class _Importer:
    """Converts records to samples and writes the run folder."""

    def __init__(self, task: Task, released: Sequence[ReleasedRun], box_format: BoxFormat) -> None:
        self.task, self.released, self.box_format, self.first = task, released, box_format, released[0]
        settings: dict[str, str | int | float | bool | None] = {"provider": self.first.provider, "harness": "released"}
        self.model = ModelIdentity(self.first.model, settings=settings)
        self.key_of = sample_keys(asdict(self.model), self.first.generation)
        self.examples = {example.example_id: example for example in self.first.examples}
        self.statuses: Counter[Status] = Counter()
        self.scores = _judge_scores(released)
        self.kept_failures: list[str] = []
        self.new_failures: list[str] = []
        self.differences: list[KeptFields] = []

    def write(self, folder: Path, out: Path, root: str | Path | None) -> None:
        """Write the run folder. The caller moves it to `out` later."""
        records = [
            self._sample_record(prediction, repetition)
            for repetition, run in enumerate(self.released)
            for prediction in run.predictions
        ]
        described = self._description({record.fingerprint for record in records}, out, root)
        write_imported(folder, described, self.first.examples, records)
        with Shard().file(folder, "sessions").open("w", encoding="utf-8") as file:
            for run in self.released:
                latency = sum(prediction.latency_ms or 0.0 for prediction in run.predictions) / 1000
                # Requests may have run in parallel, so their times give no total seconds and no rates.
                file.write(json.dumps({"seconds": {"latency": latency}}) + "\n")
        if self.scores:
            write_released_judge(folder, self.first.judge, self.first.provider, self.scores)
        if self.task.protocol != "release":
            return
        # Make the released files again from the new folder, and save the differences from the originals.
        own_run, judging = read_samples(folder), JudgeScores(self.first.judge, self.scores)
        for repetition, run in enumerate(self.released):
            contents = OriginalContents(run.original, repetition)
            RepetitionFiles(own_run, repetition, contents, judging).folder()
            self.differences += contents.differences
        write_kept_fields(self.differences, folder)

    def result(self, folder: Path) -> ImportedRun:
        results = [e.example_id for e in self.differences if e.file == PREDICTIONS and "task_result" in e.values]
        metrics = {name for e in self.differences if e.file == METRICS for name in (*e.values, *e.absent)}
        return ImportedRun(
            folder=folder,
            task=self.task.name,
            repetitions=len(self.released),
            statuses=dict(self.statuses),
            unanswered=len(self.examples) * len(self.released) - self.statuses.total(),
            judged=len(self.scores),
            kept_failures=tuple(self.kept_failures),
            new_failures=tuple(self.new_failures),
            other_results=tuple(results),
            other_metrics=tuple(sorted(metrics - RUNNER_METRICS)),
            faults=tuple(self.task.faults),
        )

    def _description(self, fingerprints: set[str], out: Path, root: str | Path | None) -> RunDescription:
        """Return the content of `run.json`. Its field `imported` describes the origin."""
        return run_description(
            out,
            self.task,
            content_hash=self.first.content_hash,
            prompts_hash=digest(sorted(fingerprints)),
            model=self.model,
            box_format=self.box_format,
            generation=self.first.generation,
            repetitions=len(self.released),
            data=data_location(out, None, root, None),
            imported=[
                {
                    "folder": run.folder.name,
                    "predictions_sha256": file_sha256(run.folder / PREDICTIONS),
                    "thinking_tokens": sum((p.usage and p.usage.thinking_tokens) or 0 for p in run.predictions),
                }
                for run in self.released
            ],
        )

    def _sample_record(self, prediction: ReleasedPrediction, repetition: int) -> SampleRecord:
        status, reason = self._status(prediction)
        self.statuses[status] += 1
        prompt, example_id = prediction.prompt_text or "", prediction.example_id
        fingerprint = digest("imported", self.task.benchmark, self.task.name, self.task.version, example_id, prompt)
        usage = prediction.usage or Usage()
        is_kept = reason == _KEPT_VERDICT
        return SampleRecord(
            key=self.key_of(example_id, fingerprint, repetition),
            fingerprint=fingerprint,
            example_id=example_id,
            repetition=repetition,
            status=status,
            text=None if status is Status.INFRA_ERROR or is_kept else prediction.raw_text or "",
            finish_reason=prediction.finish_reason,
            error=f"{prediction.error} ({reason})" if is_kept else reason,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            seconds=(prediction.latency_ms or 0.0) / 1000,
            prompt=digest(prompt) if prompt else "",
        )

    def _status(self, prediction: ReleasedPrediction) -> tuple[Status, str | None]:
        """Return the status and its reason.

        `_KEPT_VERDICT` means that the text must be omitted to preserve the status.
        """
        ending, error = meaning_of(prediction.finish_reason), prediction.error or ""
        unread = error.startswith(PARSE_ERROR)
        if error.startswith(PROVIDER_ERROR) or (prediction.raw_text is None and not unread):
            return Status.INFRA_ERROR, error or "the record holds no text"
        if unread and ending == "filtered":
            return Status.REFUSED, error
        task, example, text = self.task, self.examples[prediction.example_id], prediction.raw_text or ""
        parsed = attempt(task, "parse", example, lambda: task.parse(text, example.inputs, self.box_format), None)
        failed = Status.TRUNCATED if ending == "length" else Status.PARSE_ERROR
        if isinstance(parsed, ParseError):
            if not unread:
                self.new_failures.append(prediction.example_id)
            return failed, error or parsed.reason
        if unread:
            self.kept_failures.append(prediction.example_id)
            return failed, _KEPT_VERDICT
        is_cut = ending == "length"
        return (Status.TRUNCATED, f"finish_reason {prediction.finish_reason}") if is_cut else (Status.OK, None)


def _judge_scores(released: Sequence[ReleasedRun]) -> ReleasedScores:
    scores: dict[tuple[str, int], dict[str, ReleasedScore]] = {}
    for repetition, run in enumerate(released):
        for prediction in run.predictions:
            result = prediction.task_result or {}
            for key, score in result.items():
                if key.startswith(SCORE_PREFIX) and key.endswith("_score") and key != MEAN_SCORE:
                    name = key.removesuffix("_score")
                    released_score = ReleasedScore(score, str(result.get(f"{name}_reason", "")))
                    sample = scores.setdefault((prediction.example_id, repetition), {})
                    sample[name.removeprefix(SCORE_PREFIX)] = released_score
    return scores
