"""What every model checks of a request before it looks at it."""

from __future__ import annotations

from barista_bench.core.prompt import ImagePart
from barista_bench.models.base import Request


def check_images(request: Request) -> None:
    """Raise ValueError, naming the request, unless its prompt places each image exactly once."""
    placed = sorted(part.index for part in request.prompt.parts if isinstance(part, ImagePart))
    if placed != list(range(len(request.images))):
        raise ValueError(
            f"request {request.request_id}: the prompt places images {placed}, but {len(request.images)} images came; "
            "place each image exactly once"
        )
