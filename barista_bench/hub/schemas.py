"""The Hub's leaderboard files as schemas. The hub client checks next to nothing, and the server only after the upload.

Sources: hub-docs `docs/hub/eval-results.md` (`.eval_results/*.yaml`, `eval.yaml`); `huggingface_hub` 2.4,
`_eval_results.py` and `repocard_data.py` (model-index).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, Final, Self, TypeVar, cast

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

from barista_bench.errors import DataError
from barista_bench.files.bounded import MAX_YAML, first_complaint
from barista_bench.files.bounded import load_yaml as read_plain
from barista_bench.files.text_out import first_line

MAX_FILE: Final = MAX_YAML
"""Bytes of a file that is read."""
MAX_NOTES: Final = 1000
FRAMEWORK: Final = "barista-bench"
"""Our name in `evaluation_framework`. The Hub keeps a list of these: it must be entered there once."""
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")

Model = TypeVar("Model", bound=BaseModel)


def _repo_id(value: str) -> str:
    """`namespace/name`, by the Hub's own rules."""
    if value.count("/") != 1:
        raise ValueError(f"{value!r} is no repository: write namespace/name")
    try:
        validate_repo_id(value)
    except HFValidationError as error:
        raise ValueError(first_line(error)) from error
    return value


def _https(value: str) -> str:
    """A web address without a password, kept as it was written."""
    parsed = TypeAdapter(HttpUrl).validate_python(value)
    if parsed.scheme != "https":
        raise ValueError(f"{value!r} is not an https address")
    if parsed.username or parsed.password:
        raise ValueError("the address holds a user name or a password")
    return value


def _iso_date(value: str) -> str:
    if not _ISO_DATE.fullmatch(value):
        raise ValueError(f"{value!r} is no ISO 8601 date, such as 2026-11-21 or 2026-11-21T10:30:00Z")
    datetime.fromisoformat(value)
    return value


RepoId = Annotated[str, AfterValidator(_repo_id)]
TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}$")]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NOTES, strip_whitespace=True)]
Address = Annotated[str, AfterValidator(_https)]
Date = Annotated[str, AfterValidator(_iso_date)]


class HubModel(BaseModel):
    """Nothing unknown, no text for a number, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=True)


class EvalDataset(HubModel):
    """The benchmark's dataset repository, and the leaderboard in it that the value is for."""

    id: RepoId
    task_id: TaskId
    revision: Commit | None = None


class EvalSource(HubModel):
    """Where the result comes from. A name without an address is refused, as by the hub client."""

    url: Address
    name: Text | None = None
    user: Text | None = None
    org: Text | None = None


class EvalResult(HubModel):
    """One value for one leaderboard."""

    dataset: EvalDataset
    value: int | float
    verify_token: Text | None = Field(default=None, alias="verifyToken")
    date: Date | None = None
    source: EvalSource | None = None
    notes: Text | None = None

    @property
    def leaderboard(self) -> tuple[str, str]:
        """Dataset repository and leaderboard in it."""
        return self.dataset.id, self.dataset.task_id


class EvalResults(RootModel[Annotated[list[EvalResult], Field(min_length=1, max_length=1000)]]):
    """`.eval_results/<name>.yaml` of a model repository."""

    @model_validator(mode="after")
    def _one_value_a_leaderboard(self) -> Self:
        for (dataset, task), count in Counter(entry.leaderboard for entry in self.root).items():
            if count > 1:
                raise ValueError(f"{dataset} has two values for the task {task!r}")
        return self


class _IndexedModel(BaseModel):
    """Somebody else's entries are kept whatever they hold beside what is named here."""

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
    """What the card of a published dataset must say."""

    model_config = ConfigDict(extra="allow")

    license: str
    pretty_name: str
    language: list[str]
    task_categories: list[str]
    configs: Annotated[list[CardConfig], Field(min_length=1)]


def read_eval_results(text: str | bytes, where: str) -> EvalResults:
    """Check the text of a `.eval_results/*.yaml`. Raises DataError: names `where` and the field."""
    return checked(EvalResults, load_yaml(text, where), where)


def read_model_index(content: object, where: str) -> list[dict[str, Any]]:
    """Check as much of a card's `model-index` as must hold to add to it. Raises DataError."""
    checked(RootModel[Annotated[list[_IndexedModel], Field(min_length=1)]], content, where)
    return cast("list[dict[str, Any]]", content)


def load_yaml(text: str | bytes, where: str) -> object:
    """Plain YAML, as `load_yaml` reads it. Raises DataError."""
    return read_plain(text, where, error=DataError, remedy="mend or delete it")


def checked(schema: type[Model], content: object, where: str) -> Model:
    """`content` as `schema`. Raises DataError: names the first field that is wrong, and what is wrong with it."""
    with valid(where):
        return schema.model_validate(content)


@contextmanager
def valid(where: str) -> Iterator[None]:
    """Where models are made: what they refuse becomes a DataError that names the field."""
    try:
        yield
    except ValidationError as error:
        raise DataError(f"{where}: {first_complaint(error)}. Remedy: correct that field") from error


def dump_yaml(content: Mapping[str, object] | Sequence[object]) -> str:
    """YAML in the order given. Texts that look like dates or numbers come out quoted."""
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)


def as_plain(model: BaseModel) -> Any:  # noqa: ANN401  (a list or a mapping, as the schema says)
    """Without fields that are not set, under the names of the file."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
