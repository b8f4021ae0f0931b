"""Samples of two run folders side by side, matched by example and repetition, in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import DataError
from barista_bench.runs.log.log_reader import digest_array
from barista_bench.runs.log.run_records import repetition_digest
from barista_bench.runs.log.sample_log import whole_lines


@dataclass(frozen=True, slots=True)
class Match:
    """Rows of both sides: those that belong together, in the order of the first side, and those without a partner."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    only_first: list[int]
    only_second: list[int]

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.first.tolist(), self.second.tolist(), strict=True)


def match_rows(first: NDArray[np.bytes_], second: NDArray[np.bytes_]) -> Match:
    """Join two arrays of distinct ids."""
    _, rows_first, rows_second = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    order = np.argsort(rows_first)
    return Match(
        rows_first[order],
        rows_second[order],
        np.setdiff1d(np.arange(len(first)), rows_first, assume_unique=True).tolist(),
        np.setdiff1d(np.arange(len(second)), rows_second, assume_unique=True).tolist(),
    )


class ScoreLine(msgspec.Struct, frozen=True, gc=False):
    example_id: str
    run: int
    scores: dict[str, float | None] | None = None


class ScoreLines:
    """`scores.jsonl`: ids of its lines, (n,), distinct, and each line when it is asked for."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._decoder = msgspec.json.Decoder(ScoreLine)
        digests, offsets = bytearray(), array("q")
        for number, (offset, text) in enumerate(whole_lines(file), start=1):
            line = self._decoded(text, number)
            digests += repetition_digest(line.example_id, line.run)
            offsets.append(offset)
        _, kept = np.unique(digest_array(digests), return_index=True)
        kept.sort()
        self.ids = digest_array(digests)[kept]
        self._offsets = np.frombuffer(offsets, dtype=np.int64)[kept]

    def _decoded(self, text: bytes, number: int) -> ScoreLine:
        try:
            return self._decoder.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise DataError(f"{self._path}: line {number}: {error}. Remedy: score the run again") from error

    def line(self, row: int) -> ScoreLine:
        self._file.seek(int(self._offsets[row]))
        return self._decoder.decode(self._file.readline())
