"""Encode and decode the images of frozen sets."""

from __future__ import annotations

import io

from PIL import Image

from barista_bench.errors import DataError

MAX_IMAGE_PIXELS = 64_000_000
"""Maximum number of pixels of one stored image. Larger images are refused, since a small file can claim to be huge."""


JPEG_QUALITY = 75
"""The quality of frozen frames, as in the released harness. It is Pillow's default (docs/upstream/barista.md)."""


_JPEG_END = b"\xff\xd9"


def decode_image(data: bytes, name: str) -> Image.Image:
    """Return a stored JPEG or PNG as RGB. Raises DataError, naming `name`, if it is damaged or too large."""
    try:
        image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG"))
        _refuse_large(image, name)
        return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _damage_error(name, error) from error


def _refuse_large(image: Image.Image, name: str) -> None:
    if image.width * image.height > MAX_IMAGE_PIXELS:
        raise DataError(f"{name}: image of {image.width}x{image.height} pixels refused. Fix: build again")


def _damage_error(name: str, cause: object) -> DataError:
    return DataError(f"{name}: stored image is damaged ({cause}). Fix: build the dataset again")


def open_image(data: bytes, name: str) -> Image.Image:
    """Open a stored JPEG or PNG. Its structure is checked now; pixels are decoded on access.

    Raises:
        DataError: as `decode_image`.
    """
    try:
        Image.open(io.BytesIO(data), formats=("JPEG", "PNG")).verify()  # for a PNG, this checks the checksums
        image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _damage_error(name, error) from error
    if image.format == "JPEG" and not data.rstrip(b"\0").endswith(_JPEG_END):
        raise _damage_error(name, "it ends too early")
    _refuse_large(image, name)
    return image


def encode_image(image: Image.Image, *, overlay: bool, jpeg_quality: int = JPEG_QUALITY) -> bytes:
    """Encode an image for frozen sets: a frame as JPEG, an overlay as PNG, since JPEG blurs thin outlines."""
    buffer = io.BytesIO()
    if overlay:
        image.save(buffer, "PNG", compress_level=6)
    else:
        image.save(buffer, "JPEG", quality=jpeg_quality)
    return buffer.getvalue()
