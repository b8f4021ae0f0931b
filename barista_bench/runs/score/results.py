"""Define the schema of a run's `results.json`. The file is checked whenever it is written or read.

This module imports little, since a leaderboard Space loads it (`hub/board.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationInfo,
    computed_field,
    model_validator,
)

from barista_bench.files.reading import Amount, Count, Line, Strict, read_model
from barista_bench.files.text_out import decimal
from barista_bench.files.writing import write_whole
from barista_bench.runs.described import ModelInfo, Wording
from barista_bench.runs.score.comparability import Comparability
from barista_bench.runs.score.costs import Cost
from barista_bench.runs.score.letters import Letters
from barista_bench.runs.score.stopping import StoppedRun

RESULTS_FILE = "results.json"
SCORES_FILE = "scores.jsonl"
"""File with the scores of every sample, next to `RESULTS_FILE`. Both files use the options of the run's start."""
ALL_REASONING = "have all their text in reasoning_content or within think tags"
"""Note on answers that consist only of thoughts. A wrong reasoning parser or wrong think tags cause such answers."""


class RecordedMetrics(Strict, ABC):
    """Scores in a file together with their record. A file whose scores and record contradict each other is refused."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    @abstractmethod
    def comparability(self) -> Comparability:
        """Return the comparability record. It is computed from the other fields, so it cannot contradict them."""

    @model_validator(mode="wrap")
    @classmethod
    def _check_record(cls, content: Any, handler: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:  # noqa: ANN401
        if not isinstance(content, dict):
            return handler(content)
        metrics = handler({name: value for name, value in content.items() if name != "comparability"})
        stored = content.get("comparability")
        if info.mode == "json" and stored != metrics.comparability.model_dump(mode="json"):
            raise ValueError("comparability: does not match the scores beside it")
        return metrics


_PUBLIC_SETTINGS: Final = frozenset(
    {
        *("dtype", "attn_implementation", "quantization", "adapter", "repetition_penalty", "min_pixels", "max_pixels"),
        *("frames_as", "video_times", "box_format", "think_tags", "structured_output", "image_format", "jpeg_quality"),
        *("reasoning", "image_detail", "threshold", "mask_threshold", "prompt_opens_thinking"),
        *("training_videos", "frames", "max_side"),
    }
)


def public_settings(settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the settings of a model that may leave this machine.

    Other settings hold server addresses or the user's own content.
    """
    return {name: value for name, value in settings.items() if name in _PUBLIC_SETTINGS}


class PromptsInfo(Strict):
    """The prompts of the run. `sha256` is the hash of the prompt file."""

    version: Annotated[int, Field(ge=-(2**63), le=2**63)]
    sha256: str
    wording: Wording


class PartInfo(Strict):
    """A chosen part of a set: the choice in words, and the numbers of examples in the part and in the set."""

    words: Line
    asked: Count
    of: Count


class DatasetInfo(Strict):
    """The evaluated examples.

    `content_hash` is the SHA-256 of their frozen lines, `limit` the limit on their number.
    """

    benchmark: str
    task: str
    task_version: Count
    config: str
    split: str
    limit: Count | None
    examples: Count
    content_hash: str
    part: PartInfo | None = None


class MetricValue(Strict):
    """A score over repetitions: its mean, its sample standard deviation, and its value in each scored repetition.

    The deviation is None for a single repetition, or if repetitions were scored over different examples.

    [low, high] is the 95% interval of the mean over resampling units (`resampling`), or None.
    """

    mean: float
    std: Amount | None
    repetitions: list[float]
    low: float | None = None
    high: float | None = None


class SampleCoverage(Strict):
    """Samples by outcome.

    `expected` = examples x repetitions. `scored` leaves out infrastructure errors and samples that were not run yet.
    `answered` counts samples with a readable answer. `dropped` counts entries of these answers that could not be read
    and are left out.
    """

    expected: Count
    scored: Count
    answered: Count
    statuses: dict[str, Count]
    dropped: Count = 0

    @property
    def missing(self) -> int:
        return self.expected - self.scored

    @property
    def is_complete(self) -> bool:
        return not self.missing


BoxFormatText: TypeAlias = Annotated[str, StringConstraints(pattern=r"\A(xyxy|yxyx|xywh)/(pixels|[1-9][0-9]{0,5})\z")]
FEWEST_BOXES = 6
"""Minimum number of answers with boxes, and of boxes, for a note on their format."""


class BoxFit(Strict):
    """How well the boxes of up to 200 answers fit the reference, and a format in which they fit far better, if any.

    `mean_best_iou` is the mean over the true boxes or the answered boxes, whichever are fewer. `without_area` counts
    boxes with a width or height under a pixel. `outside` counts boxes that extend beyond the frame.
    """

    format: BoxFormatText
    answers: Count
    mean_best_iou: Amount
    boxes: Count
    without_area: Count
    outside: Count
    better_format: BoxFormatText | None
    better_iou: Amount | None

    @property
    def in_words(self) -> str:
        """Return a clause with a remedy if boxes are read in the wrong format, or an empty string."""
        if self.better_format is not None and self.better_iou is not None:
            return (
                f"its boxes are read as {self.format} (mean best IoU {self.mean_best_iou:.2f}) and fit far better as "
                f"{self.better_format} ({self.better_iou:.2f}). "
                f"Fix: read the log again, `score --box-format {self.better_format}`; later runs take the flag too"
            )
        for count, what in ((self.without_area, "have no area"), (self.outside, "reach out of the frame")):
            if self.boxes >= FEWEST_BOXES and count > self.boxes / 2:
                return (
                    f"{count} of {self.boxes} boxes {what}, read as {self.format}, and no known format fits them. "
                    "Fix: look at some answers, and name the format that the model writes with --box-format"
                )
        return ""


class Breakdown(Strict):
    """The primary metric over the examples that share a metadata value."""

    examples: Count
    metric: MetricValue


class Timing(Strict):
    """Seconds per stage over all sessions of the run, and tokens. Only this part differs between equal runs.

    Rates are per second of generation, including waits, summed over processes. `cost` is in US dollars, or None without
    prices. The tokens and `cost` count values that the log lacks as 0. `costs`, by `COST_NAMES`, leaves missing values
    out and has no entry for a cost that the log lacks.
    """

    sessions: Count
    seconds: dict[str, Amount]
    input_tokens: Count
    output_tokens: Count
    samples_per_second: Amount | None = None
    output_tokens_per_second: Amount | None = None
    cost: Amount | None = None
    costs: dict[str, Cost] = Field(default_factory=dict)


class Results(RecordedMetrics):
    """The content of `results.json`: a run's scores, their coverage, and their conditions."""

    schema_version: Literal[2] = 2
    barista_bench: Line
    protocol: Literal["release", "paper"]
    options: dict[str, JsonValue] = Field(default_factory=dict, description="the task's options")
    changed_options: dict[str, JsonValue] = Field(default_factory=dict, description="those other than its defaults")
    reading: dict[str, Annotated[str, StringConstraints(max_length=200)]] = Field(
        default_factory=dict, description="how answers are read, where it differs from the setting of the run"
    )
    model: ModelInfo
    dataset: DatasetInfo
    prompts: PromptsInfo
    generation: dict[str, JsonValue]
    repetitions: Count
    trained_on: Count = Field(default=0, description="videos of these examples that the model was trained on")
    coverage: SampleCoverage
    notes: dict[str, Count] = Field(default_factory=dict, description="what is odd about answers that count: how many")
    box_fit: BoxFit | None = None
    letters: Letters | None = None
    stopped: StoppedRun | None = Field(default=None, description="a decision instead of metrics: the run stopped early")
    primary: str
    metrics: dict[str, MetricValue]
    breakdowns: dict[str, dict[str, Breakdown]] = Field(description="metadata key -> value -> primary metric")
    details: list[dict[str, JsonValue]] = Field(description="the task's whole aggregate, one entry a run")
    versions: dict[Line, Line]
    timing: Timing

    @computed_field  # type: ignore[prop-decorator]
    @property
    def comparability(self) -> Comparability:
        """Return the conditions that another score must share to be ranked with this score."""
        dataset = self.dataset
        return Comparability(
            benchmark=dataset.benchmark,
            task=dataset.task,
            task_version=dataset.task_version,
            protocol=self.protocol,
            wording=self.prompts.wording,
            options=self.changed_options,
            split=dataset.split,
            limit=dataset.limit,
            content_hash=dataset.content_hash,
            held=self.model.settings.get("structured_output") is True,
        )

    @property
    def reading_in_words(self) -> str:
        """Return how the log was read again, e.g. `box_format yxyx/1000`. Empty for the run's own reading."""
        return ", ".join(f"{name} {value}" for name, value in self.reading.items())

    @property
    def primary_metric(self) -> MetricValue | None:
        """Return the score of the primary metric, or None if the run lacks this score."""
        return self.metrics.get(self.primary)

    @property
    def notes_in_words(self) -> list[str]:
        """Return one clause per note, e.g. "2 answers ended with 'odd'", and one clause per sign of a wrong setting."""
        counts = {note: f"{count} answer{'s' * (count != 1)}" for note, count in self.notes.items()}
        all_thoughts = "is in reasoning_content or within think tags"
        notes = [
            f"all text of {count} {all_thoughts}" if note == ALL_REASONING else f"{count} {note}"
            for note, count in counts.items()
        ]
        coverage = self.coverage
        if self.notes.get(ALL_REASONING, 0) > coverage.scored / 2:
            notes.append(
                "most answers have no text but their thoughts. Fix: turn off the server's reasoning parser, or name "
                "the model's tags; `score --think-tags OPENING,CLOSING` reads the log again"
            )
        if coverage.dropped and coverage.dropped >= coverage.answered / 2:
            notes.append(
                f"{coverage.dropped} entries of {coverage.answered} answers could not be read and count as absent. "
                "Fix: look at some answers: the prompt asks for another form"
            )
        return notes + [sign.in_words for sign in (self.box_fit, self.letters) if sign is not None and sign.in_words]

    @property
    def circumstances(self) -> dict[str, JsonValue]:
        """Return circumstances that are shown with scores but do not prevent a rank: decoding, boxes, engine,
        repetitions.
        """
        box_format = self.model.box_format
        return {
            **self.generation,
            **self.model.settings,
            "box order": box_format.order,
            "box scale": box_format.scale or "pixels",
            "repetitions": self.repetitions,
            "log read again by": self.reading_in_words or None,
        }


def tie_spread(results: Results) -> str:
    """Return the range of the primary score over all orders of the examples, if all confidences are equal.

    The range applies to the mean average precision of answers without confidences (`constant_scores` and `tie_spread`
    of `metrics/mean_ap`). The text is empty for every other metric, if a repetition has different confidences, and if
    no order changes a digit that is shown.
    """
    spreads: list[Mapping[str, Any]] = []
    for entry in results.details:
        by_metric = entry.get("tie_spread")
        spread = by_metric.get(results.primary) if isinstance(by_metric, dict) else None
        if entry.get("constant_scores") and isinstance(spread, dict):
            spreads.append(spread)
    if not spreads or len(spreads) < len(results.details):
        return ""
    low, lower = (f"{min(spread[name] for spread in spreads):.3f}" for name in ("min", "lower"))
    high, upper = (f"{max(spread[name] for spread in spreads):.3f}" for name in ("max", "upper"))
    if lower == upper:
        return ""
    return f"{low} to {high} over random orders, {lower} to {upper} at most"


def summary_line(results: Results, label: str = "") -> str:
    """Return a line with the primary score, its spread, the coverage, the effect of the example order, and odd answers.

    `label` is the model's label in comparisons. The default is its own name.
    """
    if results.stopped is not None:
        return stopped_line(results, label or results.model.label)
    metric, coverage = results.metrics[results.primary], results.coverage
    std = f" ± {decimal(metric.std)}" if metric.std is not None else ""
    statuses = ", ".join(f"{name} {count}" for name, count in coverage.statuses.items() if count)
    incomplete = _partial(results)
    incomplete += "" if coverage.is_complete else " INCOMPLETE"
    incomplete += f" TRAINED ON {results.trained_on} OF ITS VIDEOS: NO RANK" if results.trained_on else ""
    options = f", {words}" if (words := results.comparability.options_in_words) else ""
    options += f", log read again by {results.reading_in_words}" if results.reading else ""
    dropped = f", {coverage.dropped} entries dropped" if coverage.dropped else ""
    spread = tie_spread(results)
    order = f"; all scores are equal, so that the order of the examples decides: {spread}" if spread else ""
    return (
        f"{results.dataset.benchmark}/{results.dataset.task}, {label or results.model.label}: "
        f"{results.primary} {decimal(metric.mean)}{std} over {len(metric.repetitions)} repetition(s), "
        f"{coverage.answered}/{coverage.expected} answered ({statuses}){dropped}{incomplete}, "
        f"wording {results.prompts.wording}{options}{order}{''.join(f'; {note}' for note in results.notes_in_words)}"
    )


def stopped_line(results: Results, label: str) -> str:
    """Return a line on a run that stopped early. It has the interval and the decision, and no score."""
    stopped, coverage = results.stopped, results.coverage
    assert stopped is not None
    level = f"{100 * (1 - stopped.alpha / stopped.tasks):.3g}%"
    return (
        f"{results.dataset.benchmark}/{results.dataset.task}, {label}: STOPPED EARLY, no score: {results.primary} "
        f"{stopped.bounds} ({level}, at any time); {stopped.sentence(label)}; "
        f"{coverage.answered}/{coverage.expected} answered{_partial(results)}"
    )


def _partial(results: Results) -> str:
    """Describe the part of a set that was asked. Empty for a whole set."""
    part = results.dataset.part
    return f" PARTIAL: {part.asked} OF {part.of} EXAMPLES ({part.words})" if part else ""


def write_results(results: RecordedMetrics, path: Path) -> None:
    write_whole(path, results.model_dump_json(indent=1) + "\n")


def read_results(path: str | Path) -> Results:
    """Read and check `results.json`.

    Raises:
        DataError: the file is missing, too large, or breaks the schema. The message names the field.
    """
    return read_model(path, Results, what="no results here", remedy="run `barista-bench score`")
