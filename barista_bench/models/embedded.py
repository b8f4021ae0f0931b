"""Checkpoints that come with the package: trained by `scripts/train_kitchen.py` on toy kitchens alone."""

from __future__ import annotations

from pathlib import Path

from barista_bench.core.model_names import EMBEDDED


def checkpoint_of(name: str) -> str:
    """The folder of an embedded checkpoint; any other name as it is."""
    return str(Path(__file__).parent / "checkpoints" / name) if name in EMBEDDED else name
