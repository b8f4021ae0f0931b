"""Handle NaN and Infinity, which Python's `json` writes although they are not JSON."""

from __future__ import annotations

import re

_REPLACEMENTS = {token: b'{"no number":"%s"}' % token for token in (b"NaN", b"Infinity", b"-Infinity")}
"""JSON that no typed field accepts, for numbers that are not finite."""
_NON_FINITE = re.compile(rb"NaN|Infinity|-Infinity")
_ESCAPED = re.compile(rb"\\.", re.DOTALL)


def replace_non_finite(data: bytes) -> bytes:
    """Replace NaN, Infinity and -Infinity outside strings by JSON that no typed field accepts."""
    pieces, in_string, end = [], False, 0
    for match in _NON_FINITE.finditer(data):
        before = data[end : match.start()]
        in_string ^= _ESCAPED.sub(b"", before).count(b'"') % 2 == 1
        pieces += [before, match[0] if in_string else _REPLACEMENTS[match[0]]]
        end = match.end()
    return b"".join([*pieces, data[end:]])


def restore_non_finite(data: bytes) -> bytes:
    """Undo `replace_non_finite` in untyped content, which is masks and unknown fields."""
    for token, replacement in _REPLACEMENTS.items():
        data = data.replace(replacement, token)
    return data
