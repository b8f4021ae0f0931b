"""How a model writes boxes: as its checkpoint says, else as its family does."""

from __future__ import annotations

from pathlib import Path

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, FAMILY_FORMATS, BoxFormat
from barista_bench.core.training_videos import VIDEOS_FILE, TrainingVideos


def box_format_of(model_type: str) -> BoxFormat:
    """The box format of a family; the package's default where the family is unknown."""
    return next((fmt for start, fmt in FAMILY_FORMATS.items() if model_type.startswith(start)), DEFAULT_BOX_FORMAT)


def checkpoint_videos(name: str) -> TrainingVideos | None:
    """The videos that a checkpoint's folder says it was trained on; None for one that does not say, and of a Hub id.

    Raises DataError where the record is broken.
    """
    folder = Path(name).expanduser()
    return TrainingVideos.read(folder) if (folder / VIDEOS_FILE).is_file() else None


def box_format_of_checkpoint(name: str, model_type: str) -> BoxFormat:
    """The box format that a checkpoint was trained to write, if it says so, else that of its family."""
    training = checkpoint_videos(name)
    format_text = training.box_format if training else None
    return BoxFormat.parse(format_text) if format_text else box_format_of(model_type)
