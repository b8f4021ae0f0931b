"""`results.json`: one a run, checked against this schema whenever it is written or read.

Light on purpose: a leaderboard Space reads this file (`hub/board.py`).
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

RESULTS_FILE = "results.json"
SCORES_FILE = "scores.jsonl"
"""Figures of every sample, beside `RESULTS_FILE`. Both are of the options that the run was started with."""
ALL_REASONING = "have all their text in reasoning_content or within think tags"
"""The note on answers that hold thoughts only, as a wrong reasoning parser or think tag makes them."""


class RecordedFigures(Strict, ABC):
    """Figures in a file with their record beside them: a file in which the two contradict each other is refused."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    @abstractmethod
    def comparability(self) -> Comparability:
        """The record of comparability, made of the other fields, so that it cannot say anything else."""

    @model_validator(mode="wrap")
    @classmethod
    def _check_record(cls, content: Any, handler: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:  # noqa: ANN401
        if not isinstance(content, dict):
            return handler(content)
        figures = handler({name: value for name, value in content.items() if name != "comparability"})
        stored = content.get("comparability")
        if info.mode == "json" and stored != figures.comparability.model_dump(mode="json"):
            raise ValueError("comparability: is not that of the figures beside it")
        return figures


_PUBLIC_SETTINGS: Final = frozenset(
    {
        *("dtype", "attn_implementation", "quantization", "adapter", "repetition_penalty", "min_pixels", "max_pixels"),
        *("frames_as", "video_times", "box_format", "think_tags", "structured_output", "image_format", "jpeg_quality"),
        *("reasoning", "max_image_side", "image_detail", "threshold", "mask_threshold", "prompt_opens_thinking"),
        "training_videos",
    }
)


def public_settings(settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The settings of a model that may leave this machine. Others hold addresses of servers, or what the user sent."""
    return {name: value for name, value in settings.items() if name in _PUBLIC_SETTINGS}


class PromptsInfo(Strict):
    """The prompts that were asked; `sha256` is of the prompt file."""

    version: Annotated[int, Field(ge=-(2**63), le=2**63)]
    sha256: str
    wording: Wording


class DatasetInfo(Strict):
    """`content_hash` is the SHA-256 of the evaluated examples' frozen lines; `limit` what the run was cut to."""

    benchmark: str
    task: str
    task_version: Count
    config: str
    split: str
    limit: Count | None
    examples: Count
    content_hash: str


class Figure(Strict):
    """A figure over runs: mean, sample standard deviation, and the value of each run that has scored samples.

    There is no deviation (None) of one run, nor where the runs were scored over different examples.

    [low, high] is the 95% interval of the mean over resampling units (`resampling`); None where there is none.
    """

    mean: float
    std: Amount | None
    runs: list[float]
    low: float | None = None
    high: float | None = None


class SampleCoverage(Strict):
    """Samples by what became of them. `expected` = examples x runs; `scored` leaves out infrastructure errors and
    samples not yet run; `answered` are those with a readable answer. `dropped` counts the entries of these answers that
    could not be read and are left out."""

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
"""Answers with boxes, or boxes, below which nothing is said of them."""


class BoxFit(Strict):
    """How the boxes of up to 200 answers fit the reference as they are read, and a format in which they fit far better.

    `mean_best_iou` is over the fewer of true and answered boxes. `without_area` are those narrower or lower than a
    pixel, `outside` those that reach out of the frame.
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
        """One clause on boxes that are not written as they are read, with what to do; empty where they fit."""
        if self.better_format is not None and self.better_iou is not None:
            return (
                f"its boxes are read as {self.format} (mean best IoU {self.mean_best_iou:.2f}) and fit far better as "
                f"{self.better_format} ({self.better_iou:.2f}). "
                f"Remedy: run again with --box-format {self.better_format}"
            )
        for count, what in ((self.without_area, "have no area"), (self.outside, "reach out of the frame")):
            if self.boxes >= FEWEST_BOXES and count > self.boxes / 2:
                return (
                    f"{count} of {self.boxes} boxes {what}, read as {self.format}, and no known format fits them. "
                    "Remedy: look at some answers, and name the format that the model writes with --box-format"
                )
        return ""


class Breakdown(Strict):
    """The primary figure for the examples that share a metadata value."""

    examples: Count
    figure: Figure


class Timing(Strict):
    """Seconds by stage over all sessions of the run, and tokens; the only part that differs between equal runs.

    Rates are over the seconds that generation took or stood still, summed over processes. `cost` is in US dollars,
    and None where no prices were given. The tokens and the cost here count what the log does not say as 0; `costs`, by
    `COST_NAMES`, leave it out, and have no entry where it says nothing.
    """

    sessions: Count
    seconds: dict[str, Amount]
    input_tokens: Count
    output_tokens: Count
    samples_per_second: Amount | None = None
    output_tokens_per_second: Amount | None = None
    cost: Amount | None = None
    costs: dict[str, Cost] = Field(default_factory=dict)


class Results(RecordedFigures):
    """The results.json that `score` writes: a run's figures, their coverage, and the conditions they hold under."""

    schema_version: Literal[2] = 2
    barista_bench: Line
    protocol: Literal["release", "paper"]
    options: dict[str, JsonValue] = Field(default_factory=dict, description="the task's options")
    changed_options: dict[str, JsonValue] = Field(default_factory=dict, description="those other than its defaults")
    model: ModelInfo
    dataset: DatasetInfo
    prompts: PromptsInfo
    generation: dict[str, JsonValue]
    runs: Count
    trained_on: Count = Field(default=0, description="videos of these examples that the model was trained on")
    coverage: SampleCoverage
    notes: dict[str, Count] = Field(default_factory=dict, description="what is odd about answers that count: how many")
    box_fit: BoxFit | None = None
    primary: str
    figures: dict[str, Figure]
    breakdowns: dict[str, dict[str, Breakdown]] = Field(description="metadata key -> value -> primary figure")
    details: list[dict[str, JsonValue]] = Field(description="the task's whole aggregate, one entry a run")
    versions: dict[Line, Line]
    timing: Timing

    @computed_field  # type: ignore[prop-decorator]
    @property
    def comparability(self) -> Comparability:
        """The conditions that another figure must share to stand in one rank with these."""
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
    def primary_figure(self) -> Figure | None:
        """The figure that ranks; None where the run has none of that name."""
        return self.figures.get(self.primary)

    @property
    def notes_in_words(self) -> list[str]:
        """One clause for each of the notes: "2 answers ended with 'odd'", and one on boxes that are read wrongly."""
        counts = {note: f"{count} answer{'s' * (count != 1)}" for note, count in self.notes.items()}
        all_thoughts = "is in reasoning_content or within think tags"
        return [
            f"all text of {count} {all_thoughts}" if note == ALL_REASONING else f"{count} {note}"
            for note, count in counts.items()
        ] + ([self.box_fit.in_words] if self.box_fit is not None and self.box_fit.in_words else [])

    @property
    def circumstances(self) -> dict[str, JsonValue]:
        """Circumstances shown beside the figures that keep nobody from a rank: decoding, boxes, engine, runs."""
        box_format = self.model.box_format
        return {
            **self.generation,
            **self.model.settings,
            "box order": box_format.order,
            "box scale": box_format.scale or "pixels",
            "runs": self.runs,
        }


def tie_spread(results: Results) -> str:
    """The range of the primary figure over orders of the examples, where all confidences are tied.

    That is so of a mean average precision of answers without confidences (`constant_scores` and `tie_spread` of
    `metrics/mean_ap`). Empty for every other figure, where a run has scores that differ, and where no order of the
    examples changes a digit that is shown.
    """
    spreads: list[Mapping[str, Any]] = []
    for entry in results.details:
        by_figure = entry.get("tie_spread")
        spread = by_figure.get(results.primary) if isinstance(by_figure, dict) else None
        if entry.get("constant_scores") and isinstance(spread, dict):
            spreads.append(spread)
    if not spreads or len(spreads) < len(results.details):
        return ""
    low, lower = (f"{min(spread[name] for spread in spreads):.3f}" for name in ("min", "lower"))
    high, upper = (f"{max(spread[name] for spread in spreads):.3f}" for name in ("max", "upper"))
    if lower == upper:
        return ""
    return f"{low} to {high} over random orders, {lower} to {upper} at the most"


def summary_line(results: Results, label: str = "") -> str:
    """One line: the primary figure, its spread, the coverage, what the order of the examples decides, odd answers.

    `label` is what the model is called beside others; by default its own name.
    """
    figure, coverage = results.figures[results.primary], results.coverage
    std = f" ± {decimal(figure.std)}" if figure.std is not None else ""
    statuses = ", ".join(f"{name} {count}" for name, count in coverage.statuses.items() if count)
    incomplete = "" if coverage.is_complete else " INCOMPLETE"
    incomplete += f" TRAINED ON {results.trained_on} OF ITS VIDEOS: NO RANK" if results.trained_on else ""
    options = f", {words}" if (words := results.comparability.options_in_words) else ""
    dropped = f", {coverage.dropped} entries dropped" if coverage.dropped else ""
    spread = tie_spread(results)
    order = f"; all scores are equal, so that the order of the examples decides: {spread}" if spread else ""
    return (
        f"{results.dataset.benchmark}/{results.dataset.task}, {label or results.model.label}: "
        f"{results.primary} {decimal(figure.mean)}{std} over {len(figure.runs)} run(s), "
        f"{coverage.answered}/{coverage.expected} answered ({statuses}){dropped}{incomplete}, "
        f"wording {results.prompts.wording}{options}{order}{''.join(f'; {note}' for note in results.notes_in_words)}"
    )


def write_results(results: RecordedFigures, path: Path) -> None:
    write_whole(path, results.model_dump_json(indent=1) + "\n")


def read_results(path: str | Path) -> Results:
    """Read and check.

    Raises:
        DataError: the file is missing, too large, or breaks the schema; names the field.
    """
    return read_model(path, Results, what="no results here", remedy="run `barista-bench score`")
