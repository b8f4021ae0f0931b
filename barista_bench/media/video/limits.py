"""Sizes that are accepted from files, checked before memory is taken for them."""

from barista_bench.errors import VideoError

MAX_SIDE = 8192  # pixels
MAX_PIXELS = 64 * 1024 * 1024  # one RGB frame of this size takes 192 MiB

REMUX = "remux it: ffmpeg -i IN -c copy OUT.mp4 (or re-encode it when that does not help)"


def check_size(name: str, width: int, height: int, remedy: str = REMUX) -> None:
    """Raise VideoError for a frame size (pixels) that is missing or absurd, before memory is taken for it."""
    if width < 1 or height < 1:
        raise VideoError(f"{name}: the header gives no frame size. Remedy: {remedy}")
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        limit = f"{MAX_SIDE} px a side and {MAX_PIXELS // 2**20} Mpx"
        raise VideoError(
            f"{name}: frames of {width}x{height} px exceed the limit of {limit}. Remedy: scale the video down"
        )
