"""Choices and ids that follow from content alone: the same text gives the same answer on every machine."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "mini.barista-bench")


def number(text: str, limit: int) -> int:
    """A whole number in [0, limit) that depends on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % limit


def pick(text: str, options: Sequence[T]) -> T:
    """One of the options, chosen by the text."""
    return options[number(text, len(options))]


def spread(text: str, options: Sequence[T], turn: int) -> T:
    """Like `pick`, but consecutive turns take different options."""
    return options[(number(text, len(options)) + turn) % len(options)]


def stable_id(text: str) -> str:
    """A uuid5 of this kitchen's own namespace."""
    return str(uuid.uuid5(NAMESPACE, text))
