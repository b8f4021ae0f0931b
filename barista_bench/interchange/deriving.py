"""A run of ours as the released harness would have written it, one repetition at a time.

What our records do not say is the release's default: no retries were counted, one request at a time, no ids of
responses. Of an imported run, `kept` then says what it really was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from barista_bench.benchmarks.barista.released_results import (
    ReleasedRecord,
    common_metrics,
    task_metrics,
    task_result,
)
from barista_bench.benchmarks.barista.released_sets import released_record
from barista_bench.core.prompt import BoxFormat, TextPart
from barista_bench.core.task import Example, Status, Task
from barista_bench.interchange.kept import Keeping
from barista_bench.interchange.released_folder import (
    CONFIG,
    DIRECTORY,
    EXAMPLES,
    EXAMPLES_SOURCE,
    LARGEST,
    MEAN_SCORE,
    METRICS,
    PREDICTIONS,
    PROVIDER_ERROR,
    RUNNER_METRICS,
    SCORE_PREFIX,
    SUMMARY,
    UNREADABLE,
    JsonObject,
    ReleasedFolder,
)
from barista_bench.interchange.summary import summary_text
from barista_bench.judging.released_verdicts import ReleasedScore, ReleasedScores, mean_score
from barista_bench.runs.score.samples import ReadRun, ScoredSample
from barista_bench.runs.score.scoring import session_seconds

JUDGED_TASKS = frozenset({"referring", "temporal_vqa"})
BOX_TASKS = frozenset({"grounding", "hand_object", "referring"})
_DEFAULTS = {"timeout_sec": 180.0, "max_retries": 3, "vertexai": False}


class JudgeScores(NamedTuple):
    """Scores of all repetitions; none without a judge.

    Args:
        judge: name of the judge's model.
        replaced: an imported run has another judge than it came with, so that what was kept of its figures no longer
            holds.
    """

    judge: str = ""
    scores: ReleasedScores = {}  # noqa: RUF012  (never changed)
    replaced: bool = False


def released_folder(read: ReadRun, run: int, keeping: Keeping, judging: JudgeScores) -> ReleasedFolder:
    """The released files of one repetition, `run`; `keeping` gives what an imported run was before.

    Floats are those of the records that come out, in their order.
    """
    return _Repetition(read, run, keeping, judging).folder()


class _Repetition:
    def __init__(self, read: ReadRun, run: int, keeping: Keeping, judging: JudgeScores) -> None:
        self._read, self._run, self._keeping, self._judging = read, run, keeping, judging
        self._task: Task = read.task
        self._model = read.described["identity"]["model"]
        self._boxes = BoxFormat(**self._model["box_format"])
        self._samples = [sample for sample in read.samples if sample.record.run == run]

    def folder(self) -> ReleasedFolder:
        keep, replaced = self._keeping, self._judging.replaced
        config = keep.record(CONFIG, self._config())
        params = config.get("task_params") or {}
        if replaced:
            params = params | self._judging_params()
            config = config | {"task_params": params}
        lines = {
            example.example_id: keep.record(EXAMPLES, self._line(example), example.example_id)
            for example in self._read.examples.examples
        }
        made = [self._prediction(sample, lines[sample.example.example_id]) for sample in self._samples]
        predictions = tuple(self._scored(keep.record(PREDICTIONS, record, record["example_id"])) for record in made)
        figures = self._figures(made, predictions, config.get("concurrency"), params.get("geval_criteria"))
        metrics = keep.record(METRICS, figures)
        # Figures that we make, since those of a file may lack anything, and what only the file can say.
        run_figures = {name: metrics[name] for name in metrics if name in RUNNER_METRICS and metrics[name] is not None}
        shown = figures | run_figures
        source = keep.text(EXAMPLES_SOURCE, f"{self._read.described['data']['path']}\n")
        summary = self._summary(predictions, shown)
        return ReleasedFolder(
            config=config,
            examples=tuple(lines.values()),
            examples_source=source,
            predictions=predictions,
            metrics=shown if replaced else metrics,
            summary=summary if replaced else keep.text(SUMMARY, summary),
        )

    def _config(self) -> JsonObject:
        data, generation = self._read.described["data"], self._read.described["identity"]["generation"]
        systems = {self._task.prompt(sample.example, self._boxes).system for sample in self._samples}
        return {
            "concurrency": 1,
            "dataset_root": data.get("absolute_root") or data["root"] or ".",
            "debug_samples": 0,
            "model": {
                "api_key_env": None,
                "api_version": None,
                "base_url": self._model["settings"].get("base_url"),
                "location": None,
                "max_output_tokens": generation.get("max_new_tokens"),
                "model": self._model["name"],
                "project": None,
                "provider": self._provider,
                "temperature": generation.get("temperature"),
                "thinking_level": generation.get("thinking_level"),
                **_DEFAULTS,
            },
            "output_dir": str(self._read.folder.parent),
            "system_prompt": systems.pop() if len(systems) == 1 else "",
            "task": self._task.upstream_name,
            "task_params": self._task_params(),
        }

    @property
    def _provider(self) -> str:
        """As an imported run says it, else by how the model was reached."""
        settings = self._model["settings"]
        return settings.get("provider") or ("openai_compat" if "base_url" in settings else "local")

    def _task_params(self) -> JsonObject:
        if self._task.name in BOX_TASKS:
            boxes: JsonObject = {"bbox_format": self._boxes.order, "bbox_scale": self._boxes.scale}
            return boxes | self._judging_params()
        if self._task.name == "relations":
            # A set has one look for all its marks.
            look = cast("dict[str, float]", self._read.examples.examples[0].inputs["marks"])
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
        params: JsonObject = {
            "geval_criteria": list(dict.fromkeys(name for given in scores.values() for name in given))
        }
        return params | ({"judge_model": judge} if scores and judge != self._model["name"] else {})

    def _line(self, example: Example) -> JsonObject:
        # A line that was read from a released file brings its sentence.
        is_released = "question" in example.metadata
        return dict(released_record(example, None if is_released else self._task.frozen_question(example)))

    def _prediction(self, sample: ScoredSample, line: JsonObject) -> JsonObject:
        record, example = sample.record, sample.example
        failed = record.status is Status.INFRA_ERROR
        parts = self._task.prompt(example, self._boxes).parts
        return {
            "error": _error(sample),
            "example_id": example.example_id,
            "finish_reason": record.finish_reason,
            "label": line.get("label", example.label),
            "latency_ms": None if failed else record.seconds * 1000,
            "metadata": line.get("metadata", {}),
            "model": self._model["name"],
            "prompt_text": "\n".join(part.text for part in parts if isinstance(part, TextPart)),
            "provider": self._provider,
            "provider_response_id": None,
            "raw_text": record.text or "",
            "task_name": self._task.upstream_name,
            "task_result": {} if failed else task_result(self._task, example, sample.prediction, self._boxes),
            "usage": None if failed else _usage(record.input_tokens, record.output_tokens),
        }

    def _scored(self, record: JsonObject) -> JsonObject:
        """With what the judge said."""
        scores = self._judging.scores.get((record["example_id"], self._run))
        return record | {"task_result": (record.get("task_result") or {}) | _score_keys(scores)} if scores else record

    def _figures(
        self,
        made: Sequence[JsonObject],
        released: Sequence[JsonObject],
        concurrency: int | None,
        criteria: Sequence[str] | None,
    ) -> JsonObject:
        """From results that we make: those of a file that others wrote may lack anything."""
        examples = {example.example_id: example for example in self._read.examples.examples}
        records = [
            ReleasedRecord(
                examples[ours["example_id"]], self._scored(ours)["task_result"], ours["error"], theirs.get("latency_ms")
            )
            for ours, theirs in zip(made, released, strict=True)
        ]
        sessions = session_seconds(self._read.folder)
        seconds = sum(session.get(stage, 0.0) for session in sessions for stage in ("wait", "generate"))
        return {
            **common_metrics(records),
            **task_metrics(self._task, records, criteria),
            **_token_totals(released),
            "wall_clock_ms": seconds * 1000 / self._read.described["runs"],
            "concurrency": concurrency,
        }

    def _summary(self, predictions: Sequence[JsonObject], metrics: JsonObject) -> str:
        directory = self._keeping.text(DIRECTORY, str(self._read.folder))
        total = _tokens(predictions, "total_tokens")
        return summary_text(self._task.upstream_name, metrics, directory, total_tokens=total)


def _error(sample: ScoredSample) -> str | None:
    if sample.record.status is Status.INFRA_ERROR:
        error = sample.record.error or "no answer"
        return error if error.startswith(PROVIDER_ERROR) else f"{PROVIDER_ERROR} {error}"
    return UNREADABLE if sample.prediction is None else None


def _token_totals(predictions: Sequence[JsonObject]) -> JsonObject:
    """Sums over the records with any usage; without any there are none."""
    if not any(record.get("usage") for record in predictions):
        return {}
    names = ("input_tokens", "output_tokens", "thinking_tokens")
    totals = {f"total_{name}": _tokens(predictions, name) for name in names}
    if not totals["total_thinking_tokens"]:
        del totals["total_thinking_tokens"]
    return totals


def _tokens(predictions: Sequence[JsonObject], name: str) -> int:
    counts = ((record.get("usage") or {}).get(name) or 0 for record in predictions)
    return sum(count for count in counts if 0 <= count <= LARGEST)


def _usage(input_tokens: int | None, output_tokens: int | None) -> JsonObject | None:
    if input_tokens is None and output_tokens is None:
        return None
    tokens_in, tokens_out = input_tokens or 0, output_tokens or 0
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


def _score_keys(scores: Mapping[str, ReleasedScore]) -> JsonObject:
    keys: JsonObject = {MEAN_SCORE: mean_score([score for score, _ in scores.values()])}
    for name, (score, reason) in scores.items():
        keys |= {f"{SCORE_PREFIX}{name}_score": score, f"{SCORE_PREFIX}{name}_reason": reason}
    return keys
