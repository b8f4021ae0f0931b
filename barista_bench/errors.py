"""The exceptions of this package. Each message names the file, field or example, what is wrong, and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from importlib.util import find_spec

_FULL_STOPS = re.compile(r"\.{2,}(?= Fix:)")


def with_remedy(problem: str, remedy: str) -> str:
    """A message in two sentences, of which the first may end in one already.

    >>> with_remedy("it is closed", "open it"), with_remedy("It is closed.", "open it")
    ('it is closed. Fix: open it', 'It is closed. Fix: open it')
    """
    return one_full_stop(f"{problem}. Fix: {remedy}")


def one_full_stop(message: str) -> str:
    """The message with one full stop before its remedy, where what it quotes ends in one; an ellipsis stays one.

    >>> one_full_stop("the server says: Not now.. Fix: wait"), one_full_stop("the text ab.... Fix: cut it")
    ('the server says: Not now. Fix: wait', 'the text ab... Fix: cut it')
    """
    return _FULL_STOPS.sub(lambda stops: "." if len(stops[0]) == 2 else "...", message)


def flag_of(name: str) -> str:
    """The flag of a setting.

    >>> flag_of("max_new_tokens")
    '--max-new-tokens'
    """
    return f"--{name.replace('_', '-')}"


class BaristaError(Exception):
    """Base class: everything that this package raises on purpose derives from it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_full_stop(message))


class DataError(BaristaError):
    """An annotation file, a video or a dataset folder cannot be used as it is."""


class VideoError(DataError):
    """A video, or one frame of it, cannot be decoded. Names the file, the frame index and the cause."""


class RecordError(DataError):
    """A record of an annotation file cannot be used: `key` is where in it, `what` is wrong, and the `remedy`."""

    def __init__(self, key: str, what: str, remedy: str) -> None:
        super().__init__(with_remedy(f"{key}: {what}", remedy))
        self.key, self.what, self.remedy = key, what, remedy


class SourceError(BaristaError):
    """A release cannot be fetched or unpacked."""


class ConfigError(BaristaError):
    """A setting is unknown or contradicts another one."""


class ClusterError(BaristaError):
    """No cluster can be reached, a node lacks what it needs, or too many were lost."""


class BudgetError(BaristaError):
    """The next request could take more than may be spent. All that was answered is logged; a higher bound goes on."""


class TaskError(BaristaError):
    """A method of a task raised what its contract does not let it raise. Names task, method, example and cause."""


class ModelError(BaristaError):
    """A model cannot be loaded, or it cannot do what is asked of it."""


def require_extra(purpose: str, *libraries: str, extra: str) -> None:
    """Raise ModelError, with the command that installs them, unless all libraries of an extra are installed."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        raise ModelError(f"{purpose} needs {', '.join(missing)}. Fix: {install_command(extra)}")


def install_command(extra: str) -> str:
    """The command that installs the libraries of an extra."""
    return f"pip install 'barista_bench[{extra}]'"


def nearest_of(name: object, names: Iterable[str]) -> str:
    """A remedy for a name that is unknown: the nearest one that is known, and all of them.

    >>> nearest_of("groundng", ["relations", "grounding"])
    'did you mean grounding? There are relations, grounding'
    >>> nearest_of("tea", ["relations"])
    'use one of relations'
    """
    known = list(names)
    close_names = difflib.get_close_matches(str(name)[:200], known, n=1)
    hint = f"did you mean {close_names[0]}? There are" if close_names else "use one of"
    return f"{hint} {', '.join(known)}"
