"""Fail on turns of phrase that `tool.plain_english` in pyproject.toml bans from package, docs and scripts."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def hits() -> Iterator[str]:
    """Yield `FILE:LINE: "turn"` for each banned turn."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["plain_english"]
    banned = re.compile(rf"\b(?:{'|'.join(map(re.escape, settings['banned']))})\b", re.IGNORECASE)
    for pattern in settings["files"]:
        for path in sorted(ROOT.glob(pattern)):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                for match in banned.finditer(line):
                    yield f'{path.relative_to(ROOT).as_posix()}:{number}: "{match[0]}"'


if __name__ == "__main__":
    found = list(hits())
    if found:
        sys.exit("\n".join([*found, "Fix: write the sentence in plain words (CONTRIBUTING.md)"]))
