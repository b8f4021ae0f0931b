"""Which samples a run folder holds an answer to: what a start need not ask."""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from barista_bench.runs.log.sample_log import all_records, claimed_digest, digest_array

_DIGEST_BYTES = 16


class FinishedSamples:
    """`sample_digest` of finished samples; 24 bytes each, so that a million of them weigh 24 MB."""

    def __init__(self, digests: Iterable[bytes]) -> None:
        ordered = np.unique(digest_array(b"".join(digests)))
        self._digests = ordered.tobytes()
        self._heads = array("Q", ordered.view(">u8")[::2].astype("=u8").tobytes())

    def __contains__(self, digest: bytes) -> bool:
        head = int.from_bytes(digest[:8], "big")
        place = bisect.bisect_left(self._heads, head)
        while place < len(self._heads) and self._heads[place] == head:
            start = place * _DIGEST_BYTES
            if self._digests[start : start + _DIGEST_BYTES] == digest:
                return True
            place += 1
        return False

    def __len__(self) -> int:
        return len(self._heads)


def finished_samples(folder: str | Path) -> FinishedSamples:
    """All finished samples of a run folder. Reads line by line; no text stays in memory."""
    digests = bytearray()
    for record in all_records(folder):
        if record.finished:
            digests += claimed_digest(record)
    return FinishedSamples([bytes(digests)])
