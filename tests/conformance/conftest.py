from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _forget_copied_modules() -> Iterator[None]:
    """`evaluate` keeps copied scripts in one package that remembers its first folder; each test file gets its own."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        del sys.modules[name]
