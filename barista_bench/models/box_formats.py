"""Finds the box format of a model: from its checkpoint if possible, else from its architecture."""

from __future__ import annotations

from pathlib import Path

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, FORMATS_BY_ARCHITECTURE, BoxFormat
from barista_bench.core.training_videos import VIDEOS_FILE, TrainingVideos


def box_format_of(model_type: str) -> BoxFormat:
    """Return the box format of an architecture; for an unknown architecture, the package's default."""
    return next(
        (fmt for start, fmt in FORMATS_BY_ARCHITECTURE.items() if model_type.startswith(start)), DEFAULT_BOX_FORMAT
    )


def checkpoint_videos(name: str) -> TrainingVideos | None:
    """Return the training videos listed in a checkpoint's folder; None without a list, and for a model on the Hub.

    Raises DataError if the record is broken.
    """
    folder = Path(name).expanduser()
    return TrainingVideos.read(folder) if (folder / VIDEOS_FILE).is_file() else None


def box_format_of_checkpoint(name: str, model_type: str) -> BoxFormat:
    """Return the box format named in a checkpoint, else the box format of its architecture."""
    training = checkpoint_videos(name)
    format_text = training.box_format if training else None
    return BoxFormat.parse(format_text) if format_text else box_format_of(model_type)
