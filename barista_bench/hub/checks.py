"""Define the rules for the Hub's leaderboard files and for results before publication.

The hub client checks almost nothing, and the server checks only after the upload. So `publish submission` and the
leaderboard both use these checks. This module loads no models or datasets and knows no task, since a Space runs it
(board.py).

Sources: hub-docs `docs/hub/eval-results.md` (`.eval_results/*.yaml`, `eval.yaml`); `huggingface_hub` 2.4,
`_eval_results.py` and `repocard_data.py` (model-index).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self, TypeVar, cast

import yaml
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    RootModel,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from barista_bench.core.leaderboards import RELEASED_RUN, SCALE, task_id
from barista_bench.core.model_names import ALTERED, BASELINES, HUMAN
from barista_bench.errors import DataError
from barista_bench.files.reading import MAX_YAML, first_complaint, load_yaml as read_plain
from barista_bench.files.text_out import first_line
from barista_bench.hub.number_checks import check_judged_numbers, check_numbers, require
from barista_bench.judging.results import MEAN, JudgedResults
from barista_bench.runs.score.comparability import Comparability, differences
from barista_bench.runs.score.results import MetricValue, Results

MAX_FILE: Final = MAX_YAML
"""Maximum bytes of a file that is read."""
MAX_NOTES: Final = 1000
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")

Model = TypeVar("Model", bound=BaseModel)


def _repo_id(value: str) -> str:
    """Check a repository name `namespace/name` by the Hub's own rules."""
    if value.count("/") != 1:
        raise ValueError(f"{value!r} is not a repository: write namespace/name")
    try:
        validate_repo_id(value)
    except HFValidationError as error:
        raise ValueError(first_line(error)) from error
    return value


def _https(value: str) -> str:
    """Check that a web address has no password, and return the address unchanged."""
    parsed = TypeAdapter(HttpUrl).validate_python(value)
    if parsed.scheme != "https":
        raise ValueError(f"{value!r} is not an https address")
    if parsed.username or parsed.password:
        raise ValueError("the address holds a user name or a password")
    return value


def _iso_date(value: str) -> str:
    if not _ISO_DATE.fullmatch(value):
        raise ValueError(f"{value!r} is not an ISO 8601 date, such as 2026-11-21 or 2026-11-21T10:30:00Z")
    datetime.fromisoformat(value)
    return value


RepoId = Annotated[str, AfterValidator(_repo_id)]
TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}$")]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NOTES, strip_whitespace=True)]
Address = Annotated[str, AfterValidator(_https)]
Date = Annotated[str, AfterValidator(_iso_date)]


class HubModel(BaseModel):
    """A schema that refuses unknown fields, texts instead of numbers, and NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=True)


class EvalDataset(HubModel):
    """The benchmark's dataset repository, and the leaderboard in it to which a value belongs."""

    id: RepoId
    task_id: TaskId
    revision: Commit | None = None


class EvalSource(HubModel):
    """The origin of a result. A name without an address is refused, as in the hub client."""

    url: Address
    name: Text | None = None
    user: Text | None = None
    org: Text | None = None


class EvalResult(HubModel):
    """One value on one leaderboard."""

    dataset: EvalDataset
    value: int | float
    verify_token: Text | None = Field(default=None, alias="verifyToken")
    date: Date | None = None
    source: EvalSource | None = None
    notes: Text | None = None

    @property
    def leaderboard(self) -> tuple[str, str]:
        """Return the dataset repository and the leaderboard in it."""
        return self.dataset.id, self.dataset.task_id


class EvalResults(RootModel[Annotated[list[EvalResult], Field(min_length=1, max_length=1000)]]):
    """`.eval_results/<name>.yaml` of a model repository."""

    @model_validator(mode="after")
    def _check_leaderboards(self) -> Self:
        for (dataset, task), count in Counter(entry.leaderboard for entry in self.root).items():
            if count > 1:
                raise ValueError(f"{dataset} has two values for the task {task!r}")
        return self


class _IndexedModel(BaseModel):
    """A model in a card's `model-index`. Further fields and entries of other programs are preserved."""

    model_config = ConfigDict(extra="allow")

    name: str
    results: list[dict[str, object]]


class DataFiles(BaseModel):
    """Files of one split, as a pattern relative to the dataset's root."""

    model_config = ConfigDict(extra="forbid")

    split: str
    path: str


class CardConfig(BaseModel):
    model_config = ConfigDict(extra="allow")

    config_name: str
    data_files: Annotated[list[DataFiles], Field(min_length=1)]


class DatasetCardMetadata(BaseModel):
    """The required metadata of a published dataset's card."""

    model_config = ConfigDict(extra="allow")

    license: str
    pretty_name: str
    language: list[str]
    task_categories: list[str]
    size_categories: list[str]
    annotations_creators: list[str]
    source_datasets: list[str]
    configs: Annotated[list[CardConfig], Field(min_length=1)]


class SpaceCardMetadata(BaseModel):
    """The required metadata of a published Space's card. Spaces with other SDKs have no program to check."""

    model_config = ConfigDict(extra="allow")

    title: str
    sdk: Literal["gradio"]
    app_file: str
    tags: list[str] = []


def read_eval_results(text: str | bytes, where: str) -> EvalResults:
    """Check the text of a `.eval_results/*.yaml` file. Raises a DataError that names `where` and the field."""
    return check_schema(EvalResults, load_yaml(text, where), where)


def read_model_index(content: object, where: str) -> list[dict[str, Any]]:
    """Check the parts of a card's `model-index` that must be valid before an entry is added. Raises DataError."""
    check_schema(RootModel[Annotated[list[_IndexedModel], Field(min_length=1)]], content, where)
    return cast("list[dict[str, Any]]", content)


def load_yaml(text: str | bytes, where: str) -> object:
    """Read plain YAML like `load_yaml` in `files.reading`. Raises DataError."""
    return read_plain(text, where, error=DataError, remedy="correct or delete it")


def check_schema(schema: type[Model], content: object, where: str) -> Model:
    """Return `content` as an instance of `schema`.

    Raises a DataError that names the first invalid field and its fault.
    """
    with validation(where):
        return schema.model_validate(content)


@contextmanager
def validation(where: str) -> Iterator[None]:
    """Turn a refused value into a DataError that names the field. Use as a context around the creation of a model."""
    try:
        yield
    except ValidationError as error:
        raise DataError(f"{where}: {first_complaint(error)}. Fix: correct that field") from error


def dump_yaml(content: Mapping[str, object] | Sequence[object]) -> str:
    """Write YAML in the given order. Texts that look like dates or numbers are quoted."""
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)


DIGITS: Final = 2
"""Decimals of published values. A published value is `SCALE` times the score."""
FLOOR: Final = "lexical"
"""Name of the judge that counts shared words, and prefix of scores that count them. Such scores are not published."""
OFFLINE_JUDGES: Final = frozenset({FLOOR, "oracle", "tiny"})
SELF_REPORTED: Final = "self-reported"
"""Mark of every entry. Scores are checked against logs, but nothing proves that a model gave the answers."""
_SCORE: Final = "score the run again"
_JUDGE: Final = "run `barista-bench judge` again"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_results(results: Results, where: str) -> None:
    """Refuse results that contradict themselves.

    Raises:
        DataError: the examples' content hash is malformed, or `check_numbers` fails.
    """
    is_hash = _SHA256.fullmatch(results.dataset.content_hash) is not None
    require(is_hash, f"{where}: dataset.content_hash: is not a SHA-256", _SCORE)
    require(results.stopped is None, f"{where}: stopped early, and has no score", "start the run without --until")
    part = results.dataset.part
    require(part is None, f"{where}: dataset.part: is a part of the set, which has no rank", "run the whole set")
    check_numbers(results, where)


def check_model(results: Results, where: str) -> None:
    """Refuse results that do not come from a real model. Raises DataError."""
    name = results.model.name
    require(
        name.partition(":")[0] not in ALTERED and not {"ablation", "aid", "view"} & results.model.settings.keys(),
        f"{where}: model.name: {name!r} sees less than the task shows, or is told more: a diagnosis, no result of the "
        "model",
        "submit the run of the model itself",
    )
    require(
        not name.startswith(f"{HUMAN}:"),
        f"{where}: model.name: {name!r} is a person, whom reports show beside models and no leaderboard ranks",
        "submit the run of a model",
    )
    require(
        name not in BASELINES, f"{where}: model.name: {name!r} is a baseline, no model", "submit the run of a model"
    )
    require(
        not results.trained_on,
        f"{where}: trained_on: the model was trained on {results.trained_on} of these videos: never ranked",
        "run it on videos that it has not seen, such as --split test",
    )


def check_judged(judged: JudgedResults, results: Results, where: str) -> None:
    """Refuse judged results without verdicts, or with verdicts on answers that are not in `results`.

    Raises DataError.
    """
    require(
        judged.judge.name not in OFFLINE_JUDGES,
        f"{where}: judge.name: {judged.judge.name!r} reads no answer: a floor or a test, and no number to publish",
        "judge the run with a language model: `barista-bench judge RUN --judge ...`",
    )
    require(judged.stopped is None, f"{where}: the judge stopped early, and gave no score", _JUDGE)
    differing = differences(judged.answers, results.comparability)
    differences_text = "; ".join(f"{name}: {values}" for name, values in differing.items())
    require(not differing, f"{where}: answers: differ from the run's answers ({differences_text})", _JUDGE)
    for field, judged_value, run_value in (
        ("model", judged.model, results.model.name),
        ("model_revision", judged.model_revision, results.model.revision),
        ("repetitions", judged.repetitions, results.repetitions),
        ("dataset", judged.dataset, results.dataset),
    ):
        complaint = f"{where}: {field}: {judged_value!r:.200} were judged, but the run has {run_value!r:.200}"
        require(judged_value == run_value, complaint, _JUDGE)
    may_come_along = judged.answers.wording.startswith(RELEASED_RUN)
    require(judged.method != "released" or may_come_along, f"{where}: method: no verdicts came with this run", _JUDGE)
    require(MEAN in judged.metrics, f"{where}: metrics: no usable verdict", _JUDGE)
    check_judged_numbers(judged, results, where)


def count_open_verdicts(judged: JudgedResults) -> int:
    """Count the verdicts that were not requested yet or failed. The release's protocol uses the remaining verdicts."""
    verdicts = judged.coverage.verdicts
    return verdicts.get("missing", 0) + verdicts.get("infra_error", 0)


def judged_fraction(judged: JudgedResults) -> float:
    """Return the judged fraction, from 0 to 1: the lower of the fractions of answers and of verdicts."""
    verdicts = sum(judged.coverage.verdicts.values())
    return min(judged.coverage.fraction, 1 - count_open_verdicts(judged) / verdicts if verdicts else 1.0)


def is_floor(results: Results) -> bool:
    """Return whether the primary metric only counts shared words. A judge's score then replaces it."""
    return results.primary.startswith(f"{FLOOR}_")


def interval_of(metric: MetricValue) -> tuple[float, float] | None:
    """Return the 95% interval of a score, or None."""
    low, high = metric.low, metric.high
    return None if low is None or high is None else (low, high)


def round_for_publication(metric: float) -> float:
    """Convert a score to its published form.

    >>> round_for_publication(0.53412)
    53.41
    """
    return round(metric * SCALE, DIGITS)


def leaderboard_name(record: Comparability) -> str:
    """Return the name of the leaderboard for scores with this record (see `task_id`)."""
    return task_id(
        record.task, record.split, record.protocol, record.wording, options=record.options_in_words, limit=record.limit
    )
