"""What is read of the released files, and of which kind it must be; all else is carried and never looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from barista_bench.errors import DataError
from barista_bench.interchange.layout import CONFIG, METRICS, PREDICTIONS

LARGEST = 2**53
"""Up to here sums are exact; nothing that is counted or timed here is larger."""
Number = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]

StructT = TypeVar("StructT", bound=msgspec.Struct)


class Usage(msgspec.Struct):
    """A server may say anything: sums leave out what is no usual count."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    total_tokens: int | None = None


class Answered(msgspec.Struct, kw_only=True):
    """What a record of `predictions.jsonl` says of the answer."""

    raw_text: str | None = None
    error: str | None = None
    latency_ms: Number | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    prompt_text: str | None = None
    task_result: dict[str, Any] | None = None


class Predicted(Answered, kw_only=True):
    """A whole record."""

    example_id: str
    task_name: str
    model: str
    provider: str | None = None


class ModelSettings(msgspec.Struct):
    temperature: Number | None = None
    max_output_tokens: Count | None = None
    thinking_level: str | Number | None = None


class TaskParams(msgspec.Struct):
    """The release's defaults stand where a run says nothing else."""

    bbox_format: Literal["xyxy", "yxyx"] = "yxyx"
    bbox_scale: Annotated[int, msgspec.Meta(ge=1, le=10**6)] | None = 1000
    judge_model: str | None = None
    geval_criteria: list[str] | None = None


class Settings(msgspec.Struct):
    """`run_config.json`."""

    model: ModelSettings | None = None
    task_params: TaskParams | None = None
    concurrency: Count | None = None


class RunnerMetrics(msgspec.Struct):
    """What `metrics.json` tells of the run, not of the answers."""

    wall_clock_ms: Number | None = None
    concurrency: Count | None = None
    resumed_examples: Count | None = None
    debug_frames_saved: Count | None = None
    total_input_tokens: Count | None = None
    total_output_tokens: Count | None = None
    total_thinking_tokens: Count | None = None


RUNNER_METRICS = frozenset(RunnerMetrics.__struct_fields__)
KINDS: dict[str, type[msgspec.Struct]] = {CONFIG: Settings, METRICS: RunnerMetrics, PREDICTIONS: Answered}
"""By file; of one that is not here nothing is looked at."""


def checked(values: Mapping[str, Any], kind: type[StructT], where: object) -> StructT:
    """Values as their kind.

    Raises:
        DataError: they are of another; names the field.
    """
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {str(error).replace('$.', '')}. Remedy: correct it") from error
