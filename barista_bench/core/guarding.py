"""Guard the calls of tasks, whose code may come from anyone. An error is one failure and affects nothing else.

`guard` turns an error into a `TaskError`, which names task, method and example. The caller decides the consequence: a
request fails, a sample is counted as `task_error`, or a set has no scores. `attempt` is for output that shows people
many samples, such as a report or an analysis. It returns a replacement and adds the failure to the task's `faults`. A
command raises these faults when it ends (`raise_faults`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeVar

from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.errors import BaristaError, TaskError

log = logging.getLogger(__name__)
ReturnT = TypeVar("ReturnT")
OtherT = TypeVar("OtherT")
Method = Literal[
    "prompt", "follow_up", "images", "frame_times", "request_inputs", "answer_schema", "choices",
    "parse", "has_answer", "statistics", "explain", "failures", "overlays", "image_captions", "facets", "show_to_judge",
    "reference_answer", "random_answer", "prior_answer", "centre_answer", "first_mask_answer", "resampling_unit",
    "asked_facts",
]  # fmt: skip
_REFUSING_METHODS: Final = frozenset(
    {"prompt", "images", "statistics", "reference_answer", "prior_answer", "centre_answer", "first_mask_answer"}
)
"""Methods that may raise a BaristaError: something that the user gave or asked for cannot be used."""


@contextmanager
def guard(task: Task, method: Method, about: Example | str) -> Iterator[None]:
    """Guard the call of one method of a task, about an example or another subject `about`.

    Raises TaskError if the method raises.
    """
    try:
        yield
    except Exception as error:  # a task may raise anything: this is the only place that handles it
        if method in _REFUSING_METHODS and isinstance(error, BaristaError):
            raise
        where = about.example_id if isinstance(about, Example) else about
        cause = f"{type(error).__name__}: {error}".removesuffix(": ").rstrip(".")
        raise TaskError(
            f"{task.benchmark}/{task.name}: {method} raised {cause[:500]} for {where}. Fix: correct the task "
            f"({type(task).__name__}.{method}) and start the same command again; no answer is lost"
        ) from error


def unit_of(task: Task, example: Example) -> str:
    """Return the `Task.resampling_unit` of an example. Raises TaskError."""
    with guard(task, "resampling_unit", example):
        return task.resampling_unit(example)


def attempt(
    task: Task, method: Method, example: Example, call: Callable[[], ReturnT], otherwise: OtherT
) -> ReturnT | OtherT:
    """Return the result of a method. If the method raises, note a fault of the task and return `otherwise`."""
    try:
        with guard(task, method, example):
            return call()
    except TaskError as error:
        note_fault(task, str(error))
        return otherwise


def note_fault(task: Task, message: str) -> None:
    """Add a failure to the task's `faults`. The first failure is also logged."""
    if not task.faults:
        log.error("%s", message)
    task.faults[message] = None


def raise_faults(faults: Iterable[str]) -> None:
    """Raise failures of tasks as one TaskError, which names the first failure and counts the others.

    Without failures, nothing is raised.
    """
    first, *others = dict.fromkeys(faults) or [""]
    if first:
        raise TaskError(first + (f" (and {len(others)} more failures of tasks)" if others else ""))
