"""Uses the answers of another program like a model: `--model predictions:FILE`.

Use it for systems that this package cannot load (CaRe-Ego, a detector in a container, your own harness). The file is
JSON Lines in UTF-8; docs/predictions.md describes it with examples. The first line is a header, and each other line
holds one answer. The answer is either `answer`, the text that a model would write, or `value`, the answer as JSON. The
task's parser reads both exactly as it reads a model's answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.hashes import file_sha256
from barista_bench.files.reading import bounded_lines
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request

log = logging.getLogger(__name__)

FORMAT = "barista_bench.predictions/1"
MAX_LINE = 4 * 2**20
"""Limit of bytes per line."""
MAX_FILE = 2**30
"""Limit of bytes per file, since its answers are held in memory."""
MAX_NAMED = 5
"""Limit of unknown examples that a warning names."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
SeedsOf = Callable[[str, int], Collection[int]]
"""Maps (example id, repetition) to the sample's seeds. A task that asks in several steps has one seed per step."""


class PredictionHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The header in the first line of a file.

    Args:
        box_format: how boxes are written: `xyxy`, `yxyx` or `xywh`, then the coordinate at the far side of an image,
            e.g. `xyxy/pixels`, `yxyx/1000`, `xyxy/1`. Not needed if the loader receives a format, or if no answer has a
            box.
        model: the program that made the answers; by default the name of the file.
    """

    format: Literal["barista_bench.predictions/1"]
    box_format: str | None = None
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class PredictionRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One answer, as `answer` or `value` (a JSON object or array). Without `repetition` (from 0), it holds for all."""

    example_id: Name
    answer: str | None = None
    value: msgspec.Raw = msgspec.Raw()
    repetition: Annotated[int, msgspec.Meta(ge=0, lt=10_000)] | None = None


_HEADER = msgspec.json.Decoder(PredictionHeader)
_ROW = msgspec.json.Decoder(PredictionRow)
_FIELDS = "example_id, one of answer (text) and value (object or array), and optionally repetition"

Answers = dict[str, dict[int | None, str]]
"""Maps example id and repetition (None for every repetition) to the text of the answer."""


class PredictionsModel:
    """Looks up the answers to requests in a file, by example id.

    A missing answer is a `Failure`, so that coverage shows it.

    `identity.revision` is the SHA-256 of the file, so a file with other answers is another model.
    """

    def __init__(
        self, identity: ModelIdentity, answers: Answers, box_format: BoxFormat, seeds_of: SeedsOf | None = None
    ) -> None:
        self.identity, self.box_format, self.batch_size = identity, box_format, 64
        self.unknown: tuple[str, ...] = ()
        """Ids in the file that belong to no example of the run, sorted."""
        self._answers, self._seeds_of = answers, seeds_of

    @classmethod
    def load(
        cls,
        path: str | Path,
        example_ids: Collection[str] | None = None,
        *,
        box_format: BoxFormat | None = None,
        has_boxes: Callable[[], bool] = lambda: True,
        seeds_of: SeedsOf | None = None,
    ) -> Self:
        """Read and check a file.

        Args:
            example_ids: the ids of the examples that will be asked. Answers to other examples are skipped with a
                warning. It is an error if no answer is left.
            box_format: how boxes are written, if the file's header does not name a format.
            has_boxes: returns True if answers to these examples contain boxes. It is called only if the box format is
                unknown.
            seeds_of: returns the seeds of each repetition; needed only if lines of the file name repetitions.

        Raises:
            DataError: the file cannot be read, a line is too long or has another format, an example has two answers, or
                no answer belongs to an example of the run. The message names the line.
            ConfigError: there are boxes without a box format, the header and `box_format` differ, or lines name
                repetitions and `seeds_of` is missing.
        """
        path = Path(path)
        header, answers, revision = _read_file(path)
        box_format = _box_format(path, header, box_format, has_boxes)
        if seeds_of is None and any(None not in by_repetition for by_repetition in answers.values()):
            raise ConfigError(f"{path}: its lines name repetitions. Fix: leave `repetition` out, or give seeds_of")
        name = header.model if header and header.model else path.name
        model = cls(ModelIdentity(f"predictions:{name}", revision), answers, box_format, seeds_of)
        if example_ids is None or not (unknown := sorted(answers.keys() - set(example_ids))):
            return model
        model.unknown, examples_named = tuple(unknown), ", ".join(unknown[:MAX_NAMED])
        if len(unknown) == len(answers):
            raise DataError(
                f"{path}: none of its {len(unknown)} examples is in the run, e.g. {examples_named}. "
                "Fix: use the ids of the dataset's example_id column"
            )
        log.warning("%s: %d examples are not in the run: left out, e.g. %s", path, len(unknown), examples_named)
        for example_id in unknown:
            del answers[example_id]
        return model

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        return [[self._answer(request.request_id, seed) for seed in request.seeds] for request in requests]

    def _answer(self, example_id: str, seed: int) -> Completion | Failure:
        by_repetition = self._answers.get(example_id)
        if by_repetition is None:
            return Failure(f"no prediction for {example_id} in {self.identity.name}")
        for repetition, text in by_repetition.items():
            if repetition is None or (self._seeds_of is not None and seed in self._seeds_of(example_id, repetition)):
                return Completion(text)
        known_repetitions = ", ".join(
            str(repetition)
            for repetition in sorted(repetition for repetition in by_repetition if repetition is not None)
        )
        return Failure(
            f"no prediction for this repetition of {example_id} in {self.identity.name}; it has {known_repetitions}"
        )


def _read_file(path: Path) -> tuple[PredictionHeader | None, Answers, str]:
    header: PredictionHeader | None = None
    answers: Answers = {}
    try:
        for number, line in bounded_lines(path, MAX_LINE, max_file=MAX_FILE):
            if number == 1 and (header := _header(path, line)) is not None:
                continue
            _add_answer(path, number, _row(path, number, line), answers)
        digest = file_sha256(path)
    except OSError as error:
        remedy = "give a file of predictions, one answer a line, in files of up to 1 GiB"
        raise DataError(f"{path}: cannot be read ({error.strerror}). Fix: {remedy}") from error
    if not answers:
        raise DataError(f"{path}: holds no predictions. Fix: write one line an answer, with {_FIELDS}")
    return header, answers, digest


def _header(path: Path, line: bytes) -> PredictionHeader | None:
    """Return the header in a first line, an object with `format`; None if the first line is an answer."""
    try:
        first_value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None  # it is then read as an answer, and refused with its line number
    if not isinstance(first_value, Mapping) or "format" not in first_value:
        return None
    try:
        return _HEADER.decode(line)
    except msgspec.MsgspecError as error:
        raise DataError(f'{path}: line 1: {error}. Fix: write {{"format": "{FORMAT}", "box_format": ...}}') from error


def _row(path: Path, number: int, line: bytes) -> PredictionRow:
    try:
        line.decode("utf-8")  # the decoder does not check the encoding of raw fields
        row = _ROW.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path}: line {number}: {error}. Fix: write {_FIELDS}") from error
    value = bytes(row.value)
    if (row.answer is None) != bool(value):
        raise DataError(f"{path}: line {number}: needs either answer or value. Fix: write {_FIELDS}")
    if value and value[:1] not in (b"{", b"["):
        raise DataError(f"{path}: line {number}: value is not an object or array. Fix: give text as answer")
    return row


def _add_answer(path: Path, number: int, row: PredictionRow, answers: Answers) -> None:
    by_repetition = answers.setdefault(row.example_id, {})
    # With one answer for all repetitions and one for a single repetition, it would be unclear which of them counts.
    if by_repetition and (row.repetition in by_repetition or row.repetition is None or None in by_repetition):
        raise DataError(f"{path}: line {number}: {row.example_id} is answered twice. Fix: one line an example and run")
    by_repetition[row.repetition] = row.answer if row.answer is not None else bytes(row.value).decode("utf-8")


def _box_format(
    path: Path, header: PredictionHeader | None, run_format: BoxFormat | None, has_boxes: Callable[[], bool]
) -> BoxFormat:
    """Return the box format that header and caller agree on; without boxes, the format does not matter."""
    header_text = header.box_format if header else None
    if header_text is None:
        if run_format is None and has_boxes():
            example = f'{{"format": "{FORMAT}", "box_format": "xyxy/pixels"}}'
            raise ConfigError(
                f"{path}: the format of its boxes is unknown. Fix: begin the file with {example}, "
                "or say --box-format xyxy/pixels"
            )
        return run_format or DEFAULT_BOX_FORMAT
    try:
        header_format = BoxFormat.parse(header_text)
    except ValueError as error:
        remedy = "write e.g. xyxy/pixels, yxyx/1000 or xyxy/1"
        raise DataError(f"{path}: line 1: box_format {header_text[:20]!r} is unknown. Fix: {remedy}") from error
    if run_format is not None and run_format != header_format:
        raise ConfigError(f"{path}: its header has boxes {header_text}, but the run differs. Fix: give one format")
    return header_format
