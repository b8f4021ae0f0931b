"""Text from models, servers and files as it may be shown on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""One line: printable characters as they are, all others escaped, so that none of them commands a terminal.

    >>> print(printable("caf\u00e9\x1b[2J\nerror: none"))
    café\x1b[2J\nerror: none
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
