"""The exceptions of this package. Each message names the file, field or example, the fault, and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from importlib.util import find_spec

_FULL_STOPS = re.compile(r"\.{2,}(?= Fix:)")


def with_remedy(problem: str, remedy: str) -> str:
    """Join a problem and a remedy to a message. The problem may already end in a full stop.

    >>> with_remedy("it is closed", "open it"), with_remedy("It is closed.", "open it")
    ('it is closed. Fix: open it', 'It is closed. Fix: open it')
    """
    return one_full_stop(f"{problem}. Fix: {remedy}")


def one_full_stop(message: str) -> str:
    """Remove a doubled full stop before the remedy, as after a quoted sentence. An ellipsis keeps its three stops.

    >>> one_full_stop("the server says: Not now.. Fix: wait"), one_full_stop("the text ab.... Fix: cut it")
    ('the server says: Not now. Fix: wait', 'the text ab... Fix: cut it')
    """
    return _FULL_STOPS.sub(lambda stops: "." if len(stops[0]) == 2 else "...", message)


def flag_of(name: str) -> str:
    """Return the command-line flag of a setting.

    >>> flag_of("max_new_tokens")
    '--max-new-tokens'
    """
    return f"--{name.replace('_', '-')}"


class BaristaError(Exception):
    """Base class of all errors that this package raises on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_full_stop(message))


class DataError(BaristaError):
    """An annotation file, a video or a dataset folder cannot be used."""


class VideoError(DataError):
    """A video or one of its frames cannot be decoded. The message names the file, the frame index and the cause."""


class RecordError(DataError):
    """A record of an annotation file cannot be used. `key` is the place, `what` the fault, and `remedy` the remedy."""

    def __init__(self, key: str, what: str, remedy: str) -> None:
        super().__init__(with_remedy(f"{key}: {what}", remedy))
        self.key, self.what, self.remedy = key, what, remedy


class SourceError(BaristaError):
    """A release cannot be fetched or unpacked."""


class ConfigError(BaristaError):
    """A setting is unknown or contradicts another setting."""


class ClusterError(BaristaError):
    """No cluster can be reached, a node lacks a requirement, or too many nodes were lost."""


class BudgetError(BaristaError):
    """The next request could exceed the spending limit.

    All answers so far are logged. A higher limit resumes the work.
    """


class TaskError(BaristaError):
    """A task's method raised an unexpected error. The message names the task, the method, the example and the cause."""


class ModelError(BaristaError):
    """A model cannot be loaded, or cannot do the requested work."""


def require_extra(purpose: str, *libraries: str, extra: str) -> None:
    """Raise ModelError if a library of an extra is missing. The message names the command to install the extra."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise ModelError(f"{purpose} needs {', '.join(missing)}. Fix: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs the libraries of an extra."""
    return f"pip install 'barista_bench[{extra}]'"


def nearest_of(name: object, names: Iterable[str]) -> str:
    """Return a remedy for an unknown name: the nearest known name, and all known names.

    >>> nearest_of("groundng", ["relations", "grounding"])
    'did you mean grounding? There are relations, grounding'
    >>> nearest_of("tea", ["relations"])
    'use one of relations'
    """
    known = list(names)
    close_names = difflib.get_close_matches(str(name)[:200], known, n=1)
    hint = f"did you mean {close_names[0]}? There are" if close_names else "use one of"
    return f"{hint} {', '.join(known)}"
