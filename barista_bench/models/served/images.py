"""Images as a served model gets them: data URLs, and a rule of thumb for how many tokens they cost."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Literal

from PIL import Image

from barista_bench.errors import ConfigError

ImageFormat = Literal["jpeg", "png"]

_TILE = 512  # pixels
_TOKENS_PER_TILE, _TOKENS_PER_IMAGE = 170, 85
_LONG_SIDE, _SHORT_SIDE = 2048, 768  # what an image is shrunk to before it is cut into tiles


@dataclass(frozen=True, slots=True)
class ImageEncoding:
    """How images are sent. All of it changes answers a little, so all of it is part of a model's identity.

    Args:
        format: `jpeg`, or `png` for exactly the pixels of the data.
        quality: of a JPEG, 1 to 100. 75 is Pillow's default, which the released harness sends.
        max_side: images are shrunk so that no side is longer, in pixels; None for never.

    Raises:
        ConfigError: a value is out of range.
    """

    format: ImageFormat = "jpeg"
    quality: int = 75
    max_side: int | None = None

    def __post_init__(self) -> None:
        if self.format not in ("jpeg", "png"):
            raise ConfigError(f"image_format is {self.format!r}. Remedy: use jpeg or png")
        if not 1 <= self.quality <= 100:
            raise ConfigError(f"jpeg_quality is {self.quality}. Remedy: give a whole number from 1 to 100")
        if self.max_side is not None and self.max_side < 16:
            raise ConfigError(f"max_image_side is {self.max_side}. Remedy: give 16 pixels or more")

    def sent_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """(width, height) in pixels after shrinking; the shape is kept up to rounding."""
        if self.max_side is None or max(size) <= self.max_side:
            return size
        factor = self.max_side / max(size)
        return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))

    def encode(self, image: Image.Image) -> bytes:
        """The file that is sent."""
        size = self.sent_size(image.size)
        shrunk = image if size == image.size else image.resize(size, Image.Resampling.LANCZOS)
        rgb = shrunk if shrunk.mode == "RGB" else shrunk.convert("RGB")
        file = io.BytesIO()
        if self.format == "png":
            rgb.save(file, "PNG", compress_level=1)  # pixels are the same at every level
        else:
            rgb.save(file, "JPEG", quality=self.quality)
        return file.getvalue()

    def data_url(self, image: Image.Image) -> str:
        """The image as `data:image/...;base64,...`."""
        return f"data:image/{self.format};base64,{base64.b64encode(self.encode(image)).decode('ascii')}"


def estimated_image_tokens(size: tuple[int, int]) -> int:
    """Tokens of one image of (width, height) pixels, by the rule that OpenAI publishes for GPT-4o at high detail.

    The image is shrunk into 2048 x 2048, then until its short side is 768 at the most, and every 512-pixel tile that
    it touches counts 170 tokens, over 85 for the image. Other models count otherwise: it is an estimate.

    >>> estimated_image_tokens((1920, 1080))
    1105
    """
    width, height = size
    factor = min(1.0, _LONG_SIDE / max(width, height), _SHORT_SIDE / min(width, height))
    tiles = [-(-max(1, round(side * factor)) // _TILE) for side in (width, height)]
    return _TOKENS_PER_IMAGE + _TOKENS_PER_TILE * tiles[0] * tiles[1]
