"""Libraries that a measurement compares with, or one line that says how to get them."""

from __future__ import annotations

import importlib
from types import ModuleType


def import_needed(module: str) -> ModuleType:
    """The module, imported. Exits where it cannot be: these scripts are run by hand."""
    try:
        return importlib.import_module(module)
    except (ImportError, OSError, RuntimeError) as error:  # torchcodec: RuntimeError without FFmpeg's libraries
        remedy = "`make perf` makes an environment that has it; torchcodec also needs FFmpeg (`apt-get install ffmpeg`)"
        raise SystemExit(f"{module} cannot be imported: {str(error).splitlines()[0]}. Fix: {remedy}") from error
