"""Cache values computed from an example or a set of examples: many answers are compared with these values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, update_wrapper
from typing import Any, TypeVar, TypeVarTuple

from barista_bench.core.example import Example

MAX_SETS = 256
"""Maximum number of sets of examples with cached values: more than a benchmark has videos."""
SubjectT = TypeVar("SubjectT")
ConstantsT = TypeVarTuple("ConstantsT")
ValueT = TypeVar("ValueT")


def remember(make: Callable[[SubjectT, *ConstantsT], ValueT]) -> Callable[[SubjectT, *ConstantsT], ValueT]:
    """Cache a function of an example or a tuple of examples, and of hashable constants.

    The value of an example lives as long as the example. The value of a set lives until `MAX_SETS` other sets were
    used. Values are shared and must not be changed. A list of examples may change, so for a list the function is called
    every time.
    """
    of_set = lru_cache(MAX_SETS)(lambda same, *constants: make(same.subject, *constants))

    def recall(subject: SubjectT, /, *constants: *ConstantsT) -> ValueT:
        if isinstance(subject, Example):
            if (make, constants) not in subject.cache:
                subject.cache[make, constants] = make(subject, *constants)
            value: ValueT = subject.cache[make, constants]
            return value
        return of_set(_Same(subject), *constants) if isinstance(subject, tuple) else make(subject, *constants)

    update_wrapper(recall, make)
    return recall


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """A key for a subject without a hash. It equals only keys of the same object."""

    subject: Any

    def __hash__(self) -> int:
        return id(self.subject)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.subject is self.subject
