"""Reads a folder of images as a video, and checks the sizes of frames, also for video files.

Frames are the folder's JPEG, PNG and WebP files, in the natural order of their names (`frame_2` before `frame_10`).
Hidden files, other files and subfolders are skipped. All frames have the same size, and their times are not known. If a
JPEG file declares a rotation, the rotation is applied.
"""

import functools
import hashlib
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from barista_bench.errors import DataError, VideoError
from barista_bench.files.hashes import file_sha256, read_sha256
from barista_bench.files.paths import confine

MAX_SIDE = 8192  # pixels
MAX_PIXELS = 2**25  # a little more than 8K UHD; one RGB frame of this size takes 96 MiB
REMUX = "remux it: ffmpeg -i IN -c copy OUT.mp4 (or re-encode it when that does not help)"
MAX_FRAMES = 200_000
"""Largest number of images in a folder: almost two hours at 30 per second."""
MAX_IMAGE_BYTES = 256 * 2**20
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp"})

_FORMATS = ("JPEG", "PNG", "WEBP")
_NUMBER = re.compile(r"([0-9]+)")
_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"})  # Pillow's modes with 8 bits per channel
_ROTATES = "JPEG"  # cameras write rotations into JPEG files; a PNG file would have to be decoded to find a rotation
_ORIENTATION = 0x0112  # EXIF tag
_TURNED = frozenset({5, 6, 7, 8})  # values of this tag that swap width and height
_REFETCH = "fetch the folder's images again"


def check_size(name: str, width: int, height: int, remedy: str = REMUX) -> None:
    """Raise VideoError, before memory is allocated, if a frame size (pixels) is missing or far too large."""
    if width < 1 or height < 1:
        what = f"the header gives no frame size, or the pictures have more than {MAX_PIXELS // 2**20} Mpx"
        raise VideoError(f"{name}: {what}. Fix: {remedy}")
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        limit = f"{MAX_SIDE} px a side and {MAX_PIXELS // 2**20} Mpx"
        raise VideoError(
            f"{name}: frames of {width}x{height} px exceed the limit of {limit}. Fix: scale the video down"
        )


def frame_files(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the images of a folder, frame 0 first.

    Raises VideoError if the folder cannot be listed, has no images or too many, has two images with the same position,
    or has an image that is a link to a place outside the folder.
    """
    return tuple(path for path, _, _ in _list_frames(folder))


def folder_state(folder: str | os.PathLike[str]) -> tuple[int, int]:
    """Return the total bytes of a folder's frames, and a number that changes with every name, size or time of a frame.

    No file is read. Raises VideoError.
    """
    digest, total = hashlib.sha256(), 0
    for path, size, mtime_ns in _list_frames(folder):
        name = os.fsencode(path.name)
        digest.update(struct.pack("<I", len(name)) + name + struct.pack("<qq", size, mtime_ns))
        total += size
    return (total, int.from_bytes(digest.digest()[:8], "big") >> 1)


def video_sha256(video: Path, *, across_processes: bool = False) -> str:
    """Return the SHA-256 of a file, or of the names and contents of a folder's frames.

    The hash is computed once while the files stay unchanged.

    Args:
        across_processes: see `file_sha256`; for a file only.

    Raises:
        VideoError: the video is missing, or its folder cannot be listed.
        DataError: a file cannot be read.
    """
    if video.is_dir():
        return _folder_sha256(video.absolute(), folder_state(video))
    if not video.exists():
        raise VideoError(f"{video}: missing. Fix: fetch the video, or say where the videos lie")
    return file_sha256(video.absolute(), across_processes=across_processes)


@functools.lru_cache(maxsize=4096)
def _folder_sha256(folder: Path, state: tuple[int, int]) -> str:
    del state  # `state` is only a part of the cache's key
    total = hashlib.sha256()
    for path in frame_files(folder):
        total.update(os.fsencode(path.name) + b"\0" + bytes.fromhex(read_sha256(path)))
    return total.hexdigest()


def folder_size(files: tuple[Path, ...]) -> tuple[int, int]:
    """Return the displayed (width, height) in pixels of the frames in a folder; only headers are read.

    Raises VideoError if an image cannot be read, is too large, or differs in size from the first image.
    """
    first_size = _displayed_size(files[0])
    for path in files[1:]:
        size = _displayed_size(path)
        if size != first_size:
            raise VideoError(
                f"{path}: is {size[0]}x{size[1]} px, but {files[0].name} is {first_size[0]}x{first_size[1]} px; "
                "Fix: scale all frames of a folder to one size"
            )
    return first_size


def read_image(path: Path) -> NDArray[np.uint8]:
    """Return one frame as displayed: uint8 RGB of shape (H, W, 3). Raises VideoError with the name of the file."""
    with _open_image(path) as image:
        upright = ImageOps.exif_transpose(image) if image.format == _ROTATES else image
        return np.asarray(upright.convert("RGB"), dtype=np.uint8)


def natural_key(name: str) -> tuple[str | int, ...]:
    """Return a key that sorts names by the numbers in them: `frame_2.jpg` before `frame_10.jpg`."""
    return tuple(int(part) if index % 2 else part for index, part in enumerate(_NUMBER.split(name)))


def _list_frames(folder: str | os.PathLike[str]) -> list[tuple[Path, int, int]]:
    root = Path(os.path.abspath(os.fspath(folder)))
    frames: dict[tuple[str | int, ...], tuple[Path, int, int]] = {}
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if _is_frame(entry):
                    path = _confine_entry(root, entry)
                    status = entry.stat()
                    key = natural_key(path.stem)
                    if key in frames:
                        names = " and ".join(sorted([path.name, frames[key][0].name]))
                        raise VideoError(f"{root}: {names} have the same position. Fix: keep one of them")
                    frames[key] = (path, status.st_size, status.st_mtime_ns)
                if len(frames) > MAX_FRAMES:
                    raise VideoError(f"{root}: holds more than {MAX_FRAMES} images. Fix: make a video of them")
    except OSError as error:
        raise VideoError(f"{root}: cannot be listed: {error.strerror or error}. Fix: check its path") from error
    if not frames:
        kinds = ", ".join(sorted(SUFFIXES))
        raise VideoError(f"{root}: the folder holds no image ({kinds}). Fix: give a video, or its folder of frames")
    return [frames[key] for key in sorted(frames)]


def _is_frame(entry: os.DirEntry[str]) -> bool:
    """Return True if an entry has the name of a frame.

    Raises VideoError if such an entry is not a file, because skipping it would shift later frames.
    """
    if entry.name.startswith(".") or os.path.splitext(entry.name)[1].lower() not in SUFFIXES or entry.is_dir():
        return False
    if not entry.is_file():
        raise VideoError(f"{entry.path}: not a file, or a link to a missing file. Fix: {_REFETCH}")
    return True


def _confine_entry(root: Path, entry: os.DirEntry[str]) -> Path:
    if not entry.is_symlink():
        return root / entry.name
    try:
        return confine(root, entry.name)
    except DataError as error:
        raise VideoError(str(error)) from error


def _displayed_size(path: Path) -> tuple[int, int]:
    with _open_image(path) as image:
        turned = image.format == _ROTATES and image.getexif().get(_ORIENTATION) in _TURNED
        return (image.height, image.width) if turned else (image.width, image.height)


@contextmanager
def _open_image(path: Path) -> Iterator[Image.Image]:
    """Open an image, read its header and check its size. Every failure raises VideoError."""
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise VideoError(f"{path}: is larger than {MAX_IMAGE_BYTES // 2**20} MiB. Fix: {_REFETCH}")
        with Image.open(path, formats=_FORMATS) as image:
            check_size(str(path), image.width, image.height)
            if image.mode not in _MODES:
                raise VideoError(f"{path}: has pixels of {image.mode}. Fix: save it with 8 bits a channel")
            yield image
    except (OSError, ValueError, SyntaxError, struct.error, Image.DecompressionBombError) as error:
        raise VideoError(f"{path}: the image is damaged ({error}). Fix: {_REFETCH}") from error
