"""A batch as the `evaluate` module keeps it until it computes: one side's checked columns as bytes, and back.

Numbers are kept as they lie in memory: as JSON, writing and reading them takes longer than scoring.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np

from .inputs import Column, IouType

_ARRAYS = ("counts", "failed", "boxes", "scores", "label")


def packed(columns: Mapping[IouType, Column]) -> bytes:
    """The texts, as JSON, and then each array, in the .npy format.

    >>> column = Column(np.array([1]), np.array([False]), np.ones((1, 4)), None, None, np.array([0]), ["cup"])
    >>> copy = unpacked(packed({"bbox": column}))["bbox"]
    >>> copy.boxes.tolist(), copy.scores, copy.names
    ([[1.0, 1.0, 1.0, 1.0]], None, ['cup'])
    """
    arrays = {kind: [name for name in _ARRAYS if getattr(column, name) is not None] for kind, column in columns.items()}
    texts = {
        kind: {"arrays": arrays[kind], "names": column.names, "masks": _as_text(column.masks)}
        for kind, column in columns.items()
    }
    file = BytesIO()
    np.save(file, np.frombuffer(json.dumps(texts).encode(), np.uint8), allow_pickle=False)
    for kind, column in columns.items():
        for name in arrays[kind]:
            np.save(file, getattr(column, name), allow_pickle=False)
    return file.getvalue()


def unpacked(data: bytes) -> dict[IouType, Column]:
    """The packed texts and arrays."""
    file = BytesIO(data)
    columns = json.loads(np.load(file, allow_pickle=False).tobytes())
    nothing = dict.fromkeys(_ARRAYS)
    return {
        kind: Column(
            **nothing | {name: np.load(file, allow_pickle=False) for name in texts["arrays"]},
            names=texts["names"],
            masks=_as_masks(texts["masks"]),
        )
        for kind, texts in columns.items()
    }


def _as_text(masks: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    return None if masks is None else [mask | {"counts": mask["counts"].decode("ascii")} for mask in masks]


def _as_masks(texts: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    return None if texts is None else [text | {"counts": text["counts"].encode("ascii")} for text in texts]
