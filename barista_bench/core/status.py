"""Define the outcome of a sample. This module imports little, since a leaderboard Space imports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """The outcome of one sample.

    A log has the model's outcome; scoring finds out whether an answer can be read. `truncated_thinking` means that the
    output was cut off within the reasoning, before any answer. `infra_error` means that no answer arrived (see
    `Task.counts_provider_errors`), and `task_error` that the code of the task raised. Samples with one of the last two
    statuses and without an answer are asked again.
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
        """Whether the model caused the status. Other statuses do not count against the model."""
        return self not in (Status.INFRA_ERROR, Status.TASK_ERROR)


RARE_STATUSES = frozenset({Status.TRUNCATED_THINKING, Status.TASK_ERROR})
"""Statuses that are shown only if a sample has them."""


def status_counts(statuses: Iterable[str]) -> dict[str, int]:
    """Return the number of samples of each status, including zeros. `RARE_STATUSES` are counted only if they occur."""
    counts = Counter(str(status) for status in statuses)
    return {str(status): counts[status] for status in Status if counts[status] or status not in RARE_STATUSES}
