"""Text from models, servers and files as it may be shown on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""One line: printable characters as they are, all others escaped, so that none of them commands a terminal.

    >>> print(printable("caf\u00e9\x1b[2J\nerror: none"))
    café\x1b[2J\nerror: none
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def first_line(error: BaseException) -> str:
    r"""The first line of an error's text, without its full stop; the error's name where it has no text.

    >>> first_line(OSError("No config.json here.\nSee the documentation.")), first_line(MemoryError())
    ('No config.json here', 'MemoryError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
