"""Fence untrusted text in prompts.

Text of a model or a dataset is fenced, so that it can neither leave its place nor imitate the prompt. The text becomes
one line of JSON. Everything except plain letters, digits and ordinary punctuation is written as `\\uXXXX`. This covers
control and invisible characters, look-alikes of other scripts, and the characters of chat templates, tags, code fences
and JSON objects. The line is placed between markers that contain its digest, which the text itself cannot contain.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

MAX_TEXT = 20_000
"""Maximum number of characters shown of one field; a note counts the rest."""

_STRUCTURAL = re.compile(r"[<>{}\[\]|`#]")


def fence_material(fields: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the markers, and the material as one line of JSON.

    >>> name, line = fence_material({"answer": "a <b> cup"})
    >>> line, name.startswith("MATERIAL-")
    ('{"answer": "a \\\\u003cb\\\\u003e cup"}', True)
    """
    parts = []
    for name, text in fields.items():
        excerpt = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} (... {len(text) - MAX_TEXT} more characters)"
        escaped = json.dumps(excerpt, ensure_ascii=True).replace("\x7f", "\\u007f")
        parts.append(f'"{name}": ' + _STRUCTURAL.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped))
    line = f"{{{', '.join(parts)}}}"
    return f"MATERIAL-{hashlib.sha256(line.encode()).hexdigest()[:16]}", line
