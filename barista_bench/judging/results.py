"""Define the schema of a judge's `results.json`. The file is checked whenever it is written or read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, computed_field

from barista_bench.files.reading import Amount, Count, Line, Strict, read_model
from barista_bench.runs.described import Wording, model_label
from barista_bench.runs.score.comparability import Comparability, JudgeRecord
from barista_bench.runs.score.costs import Cost
from barista_bench.runs.score.results import DatasetInfo, MetricValue, RecordedMetrics
from barista_bench.runs.score.stopping import StoppedRun

MEAN = "mean"
"""Name of the score over all criteria. The score on a criterion has the criterion's name."""


class JudgeInfo(Strict):
    name: str
    revision: str | None
    settings: dict[str, JsonValue]

    @property
    def label(self) -> str:
        return model_label(self.name, self.settings)


class RubricInfo(Strict):
    """The rubric. `wording` names its origin, as for prompts. It is empty if verdicts came with an imported run."""

    version: int
    sha256: str
    wording: Wording | Literal[""]
    criteria: list[str]


class JudgedCoverage(Strict):
    """The number of answers, and the number of answers with verdicts.

    `expected` = examples x repetitions. `finished` leaves out infrastructure errors of the model. `answered` counts
    answers that could be judged. `judged` counts answers with a usable verdict, on every criterion by the paper's
    protocol, or on any criterion by the release's protocol. The mean is over the judged answers. `verdicts` counts
    verdicts by status: several per answer and criterion. Those with the status `missing` were not requested yet.
    """

    expected: Count
    finished: Count
    answered: Count
    judged: Count
    verdicts: dict[str, Count]

    @property
    def fraction(self) -> float:
        return self.judged / self.expected if self.expected else 0.0


class CategoryMetrics(Strict):
    """Scores of the examples that share a label. `judged` and `expected` count samples."""

    examples: Count
    expected: Count
    judged: Count
    metrics: dict[str, MetricValue]


class JudgedResults(RecordedMetrics):
    """The results of one judge on one run. Scores leave missing verdicts out.

    Scores range from 0 to 1 unless `tops` names another maximum. G-Eval scores are the judge's scores divided by
    `scale`. Each score has its 95% interval, like the scores of the run itself (`resampling`).
    """

    schema_version: Literal[2] = 2
    barista_bench: Line
    method: Literal["g-eval", "reasoning", "released"]
    scale: Amount = Field(default=10.0, description="the highest score of a verdict; the lowest is 0")
    tops: dict[str, Amount] = Field(default_factory=dict, description="metrics that do not end at 1: where they end")
    judge: JudgeInfo
    generation: dict[str, JsonValue]
    rubric: RubricInfo
    prompt_sha256: str
    steps: Literal["given", "generate"]
    steps_sha256: str
    verdicts_per_answer: Count
    model: str = Field(description="the model that was judged")
    model_revision: str | None
    answers: Comparability = Field(description="what was asked of the model, and how its answers were read")
    dataset: DatasetInfo
    repetitions: Count
    coverage: JudgedCoverage
    scoring: dict[str, Count] = Field(description="usable verdicts: weighted, inferred (among them), plain")
    metrics: dict[str, MetricValue] = Field(
        description="mean and each criterion: mean over repetitions; absent without verdicts"
    )
    sd_of_verdicts: dict[str, Amount | None] = Field(
        description="standard deviation of verdicts on the same answer, pooled"
    )
    per_category: dict[str, CategoryMetrics]
    breakdowns: dict[str, dict[str, CategoryMetrics]] = Field(
        default_factory=dict, description="by key of the examples' metadata, then by its value; judges of reasons only"
    )
    input_tokens: Count
    output_tokens: Count
    cost: Amount | None = Field(description="US dollars, None without prices")
    costs: dict[str, Cost] = Field(default_factory=dict, description="of verdicts, by COST_NAMES, as of runs")
    stopped: StoppedRun | None = Field(default=None, description="a decision instead of metrics: it stopped early")

    @property
    def is_held(self) -> bool:
        """Return whether replies were constrained to the form's JSON Schema."""
        return self.judge.settings.get("structured_output") is True

    @computed_field  # type: ignore[prop-decorator]
    @property
    def comparability(self) -> Comparability:
        """Return the comparability record of the answers, with the judge's part."""
        judge = JudgeRecord(
            name=self.judge.name,
            revision=self.judge.revision,
            method=self.method,
            rubric=self.rubric.sha256,
            prompt=self.prompt_sha256,
            # A judge that generates its steps generates them for each run. So they are part of the noise in its
            # verdicts.
            steps=self.steps_sha256 if self.steps == "given" else self.steps,
            generation=self.generation,
            held=self.is_held,
        )
        return self.answers.model_copy(update={"judge": judge})


def read_judged(path: str | Path) -> JudgedResults:
    """Return a judge's results.

    Raises DataError if the file is missing, too large or breaks the schema. The message names the field.
    """
    return read_model(path, JudgedResults, what="no judged results", remedy="run `barista-bench judge`")
