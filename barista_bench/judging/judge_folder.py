"""The folder of one judge of a run.

<run>/judges/<judge>-<digest>/judge.json       the judge, its rubric, prompt and settings
                              steps.json       evaluation steps, if the judge generated them
                              verdicts.jsonl   one line per verdict: log, cache and resume
                              results.json     the scores
                              scores.jsonl     one line per sample, criterion and verdict
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.core.example import Fields
from barista_bench.errors import DataError
from barista_bench.files.writing import write_whole
from barista_bench.judging.answers import REASONING, form_id
from barista_bench.judging.verdicts import GEVAL_FORM, REASONING_FORM, ReplyForm
from barista_bench.models import GenerationConfig
from barista_bench.runs.ask.replies import keys_of_repetitions
from barista_bench.runs.described import Prices
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.run_folder import JUDGE_FILE

VERDICTS_FILE = "verdicts.jsonl"


class JudgeDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `judge.json`.

    `identity` determines the folder's name. With the steps, it determines every verdict's key.
    """

    identity: dict[str, Any]
    generation: dict[str, Any]
    steps: dict[str, tuple[str, ...]]
    verdicts_per_answer: int
    rubric: dict[str, Any]
    prompt: dict[str, Any]
    barista_bench: str
    prices: Prices = Prices()
    note: str = ""

    @property
    def schema(self) -> Fields:
        """Return the JSON Schema of a reply.

        The identity of a judge that this package constrains to the schema contains `reason_length`.
        """
        return self.form.schema(self.identity.get("reason_length"))

    @property
    def form(self) -> ReplyForm:
        return REASONING_FORM if self.identity["method"] == REASONING else GEVAL_FORM

    @property
    def criteria(self) -> list[str]:
        return [criterion["name"] for criterion in self.rubric["criteria"]]

    @property
    def config(self) -> GenerationConfig:
        return GenerationConfig(**{**self.generation, "stop": tuple(self.generation["stop"])})


def verdict_keys(description: JudgeDescription) -> Callable[[str, str], dict[int, str]]:
    """Return a function of an answer's item and a criterion. It maps repetitions to the keys of verdicts in the log."""
    form, verdicts_per_answer = description.form, range(description.verdicts_per_answer)
    if form is REASONING_FORM:
        fields = ("model", "reason_length")
        identity = {name: description.identity[name] for name in fields if name in description.identity}
        identity["prompt"] = description.prompt["sha256"]
        verdicts_per_answer = range(1)  # regardless of the file
    else:
        identity = {**description.identity, "steps": digest(description.steps)}
    return lambda item, criterion: keys_of_repetitions(
        form_id(form, item, criterion), identity, description.generation, verdicts_per_answer
    )


def read_judge(folder: str | Path) -> JudgeDescription:
    """Return the description in a judge's folder. Raises DataError if the folder is not a judge's folder."""
    path = Path(folder) / JUDGE_FILE
    try:
        return msgspec.json.decode(
            path.read_bytes(), type=JudgeDescription, dec_hook=lambda _, value: Prices.model_validate(value)
        )
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise DataError(f"{path}: no judge's description ({error}). Fix: run `barista-bench judge`") from error


def judge_folder_name(name: str, identity: dict[str, Any], generation: dict[str, Any]) -> str:
    """Return the judge's name, in characters that folder names allow, with a digest of its identity and settings."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-60:] or "judge"
    return f"{slug}-{digest(identity, generation)[:10]}"


def write_json(path: Path, content: object) -> None:
    encoded = msgspec.json.encode(content, order="deterministic", enc_hook=Prices.model_dump)
    write_whole(path, msgspec.json.format(encoded, indent=1) + b"\n")
