"""The behaviour of each image-text-to-text type of transformers, as a tiny checkpoint: the table of
docs/local_models.md.

    python -m tests.models.local_conformance

writes it again.
"""

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import transformers

from barista_bench.errors import ModelError
from barista_bench.models.base import Completion, Failure, Request
from barista_bench.models.local.model import TransformersModel
from tests import checkpoint_zoo
from tests.models.transformers_kit import GREEDY, request_of

PAGE = Path(__file__).parents[2] / "docs" / "local_models.md"
_MARK = "<!-- The table: python -m tests.models.local_conformance -->"
_TEXTS = ("Which hand holds the cup?", "left or right", "milk " * 12, "a jug")
Answer = Completion | Failure
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One type. Counts are of four requests: of one or two images each, and of 0 to 3 images.

    Args:
        answered: of both kinds, how many were answered; the others failed, each with its reason.
        equal: for both kinds, whether the answers are the same at batch 1 and 4 and from plain `generate`.
        together: batches of four stayed; else the check before the first batch ended them.
        reason: why it was not built, or refused when it was loaded.
    """

    model_type: str
    built: bool
    answered: tuple[int, int] = (0, 0)
    equal: tuple[bool, bool] = (True, True)
    together: bool = False
    reason: str | None = None


def requests_with(*images: int) -> list[Request]:
    return [request_of(n, count, text) for n, (count, text) in enumerate(zip(images, _TEXTS, strict=True))]


def examined(model_type: str, folder: Path) -> Row:
    """Builds the type's checkpoint in `folder`, loads it, and asks it in batches, alone, and without this package."""
    try:
        checkpoint = checkpoint_zoo.build(model_type, folder)
    except ValueError as error:
        return Row(model_type, built=False, reason=str(error))
    try:
        model = TransformersModel.load(str(checkpoint), batch_size=4)
    except ModelError as error:
        said, _, remedy = str(error).removeprefix(f"model {checkpoint}: ").partition(". Fix: ")
        return Row(model_type, built=True, reason=said if remedy else f"NO REMEDY: {said}")
    kinds = [requests_with(1, 2, 1, 2), requests_with(1, 3, 2, 0)]
    batches = [_answers(model, requests) for requests in kinds]
    together = model.batch_size == 4
    model.batch_size = 1
    alone = [_answers(model, requests) for requests in kinds]
    return Row(
        model_type,
        built=True,
        answered=_pair(sum(isinstance(answer, Completion) for answer in answers) for answers in alone),
        equal=_pair(
            _texts(in_batch)
            == _texts(single)
            == [_plain(model, r) if isinstance(a, Completion) else None for r, a in zip(requests, single, strict=True)]
            for requests, in_batch, single in zip(kinds, batches, alone, strict=True)
        ),
        together=together,
    )


def _pair(values: Iterable[T]) -> tuple[T, T]:
    first, second = values
    return first, second


def _answers(model: TransformersModel, requests: Sequence[Request]) -> list[Answer]:
    return [answer for [answer] in model.generate(requests, GREEDY)]


def _texts(answers: Sequence[Answer]) -> list[str | None]:
    return [answer.text if isinstance(answer, Completion) else None for answer in answers]


def _plain(model: TransformersModel, request: Request) -> str:
    """The answer of transformers' own `generate`, without our processors of scores, batches and readers."""
    encoder, network = model._engine.encoder, model._engine.model
    inputs = encoder.encode(request).tensors
    made = network.generate(**inputs, max_new_tokens=GREEDY.max_new_tokens, do_sample=False)
    text: str = encoder.tokenizer.decode(made[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return text.lstrip(" ")  # spaces before an answer are no part of it


def written(rows: Sequence[Row]) -> str:
    """The table as Markdown, what answers first."""
    answering = [row for row in rows if row.reason is None]
    refused = [row for row in rows if row.built and row.reason]
    left_out = [row for row in rows if not row.built]
    built = f"{len(rows) - len(left_out)} of {len(rows)} types were built"
    lines = [
        f"transformers {transformers.__version__}, without torchvision: {built}, {len(answering)} of them answer, "
        f"{len(refused)} are refused when they are loaded.",
        "",
        "| type | 1 and 2 images | 0 to 3 images | batches of 4 |",
        "|---|---|---|---|",
        *(
            f"| {row.model_type} | {row.answered[0]} of 4 | {row.answered[1]} of 4 | "
            f"{'together' if row.together else 'one by one'} |"
            for row in answering
        ),
        "",
        "| refused when it is loaded | reason |",
        "|---|---|",
        *(f"| {row.model_type} | {_cell(row.reason)} |" for row in refused),
        "",
        "| not built | reason |",
        "|---|---|",
        *(f"| {row.model_type} | {_cell(row.reason)} |" for row in left_out),
    ]
    return "\n".join(lines) + "\n"


def _cell(reason: str | None) -> str:
    return re.sub(r"([|<>])", r"\\\1", reason or "")


def stated() -> str:
    """The table that the page holds."""
    return PAGE.read_text(encoding="utf-8").partition(f"{_MARK}\n")[2]


def all_rows(folder: Path) -> list[Row]:
    return [examined(model_type, folder / model_type) for model_type in sorted(checkpoint_zoo.TYPES)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        table = written(all_rows(Path(scratch)))
    head = PAGE.read_text(encoding="utf-8").partition(_MARK)[0]
    PAGE.write_text(f"{head}{_MARK}\n{table}", encoding="utf-8")
