"""The outcome of a sample. Light: a leaderboard Space reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """The outcome of one sample.

    A log says what the model did; whether an answer can be read is found when it is scored. `truncated_thinking`: cut
    off within the thoughts, before any answer. `infra_error`: nobody answered (see `Task.counts_provider_errors`).
    `task_error`: the code of the task raised. Samples of these two that have no answer are asked again.
    """

    OK = "ok"
    PARSE_ERROR = "parse_error"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    TRUNCATED_THINKING = "truncated_thinking"
    INFRA_ERROR = "infra_error"
    TASK_ERROR = "task_error"

    @property
    def is_outcome(self) -> bool:
        """Whether the model did it; else there is nothing that could be held against the model."""
        return self not in (Status.INFRA_ERROR, Status.TASK_ERROR)


RARE_STATUSES = frozenset({Status.TRUNCATED_THINKING, Status.TASK_ERROR})
"""Statuses that are named only where a sample has them."""


def status_counts(statuses: Iterable[str]) -> dict[str, int]:
    """The number of samples of each status, zeros included; of `RARE_STATUSES` only where there is one."""
    counts = Counter(str(status) for status in statuses)
    return {str(status): counts[status] for status in Status if counts[status] or status not in RARE_STATUSES}
