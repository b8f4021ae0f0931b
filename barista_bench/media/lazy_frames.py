"""Frames of a video that are decoded only when pixels are needed; works without `datasets`, which is slow to import."""

import os
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from barista_bench.errors import DataError, VideoError
from barista_bench.files.paths import confine
from barista_bench.media.video import read_frames
from barista_bench.media.video.frame_reader import Images

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage


class LazyFrames:
    """Frames of one video, in order. They are decoded at each request and not cached.

    Keep the result of `array()` to use it twice.

    `LazyFrames` are a sequence of images. For `datasets` they are also a mapping with the fields `video` and `indices`,
    so that `map` writes these plain fields back without decoding. They are immutable, and equal if video, indices and
    root are equal.
    """

    __slots__ = ("backend", "indices", "root", "video")

    def __init__(self, video: str, indices: Sequence[int], *, root: str | None = None, backend: str = "auto") -> None:
        """Store the fields; no file is opened.

        Args:
            video: path of the video; relative to `root` if `root` is given.
            indices: frame numbers from 0.
        """
        self.video = video
        self.indices = tuple(int(index) for index in indices)
        self.root = root
        self.backend = backend

    @property
    def path(self) -> str:
        """Return the absolute path of the video.

        With a root, the path must be relative and stay inside the root after links are followed (see
        `files.paths.confine`). Without a root, it must be absolute. Raises VideoError.
        """
        if self.root is not None:
            try:
                return str(confine(Path(self.root), self.video))
            except DataError as error:
                raise VideoError(f"video {self.video!r}: {error}") from error
        if not os.path.isabs(self.video):
            remedy = "give the videos' folder: root=..."
            raise VideoError(f"{self.video!r}: a relative path without a root. Fix: {remedy}")
        return self.video

    def array(self) -> Images:
        """Decode all frames as uint8 RGB of shape (n, H, W, 3); x runs right and y runs down. Raises VideoError."""
        return self._decode(self.indices)

    def to_pil(self) -> "list[PilImage]":
        """Decode all frames into RGB Pillow images. Raises VideoError."""
        from PIL import Image

        return [Image.fromarray(image) for image in self.array()]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("frames are decoded into new memory; copy=False cannot be met")
        return self.array().astype(dtype or np.uint8, copy=False)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Images]:
        return iter(self.array())

    @overload
    def __getitem__(self, key: int) -> Images: ...
    @overload
    def __getitem__(self, key: slice) -> "LazyFrames": ...
    @overload
    def __getitem__(self, key: str) -> str | list[int]: ...
    def __getitem__(self, key: int | slice | str) -> "Images | LazyFrames | str | list[int]":
        """Decode one image (H, W, 3) for an int; return lazy frames for a slice, and a field for its name."""
        if isinstance(key, str):
            return self._fields()[key]
        if isinstance(key, slice):
            return LazyFrames(self.video, self.indices[key], root=self.root, backend=self.backend)
        image: Images = self._decode((self.indices[key],))[0]
        return image

    def keys(self) -> tuple[str, str]:
        """Return the names of the fields, like a mapping."""
        return ("video", "indices")

    def items(self) -> ItemsView[str, str | list[int]]:
        """Return the two fields, like a mapping."""
        return self._fields().items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyFrames) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        first_indices = ", ".join(map(str, self.indices[:4])) + (", ..." if len(self) > 4 else "")
        return f"LazyFrames({self.video!r}, [{first_indices}], {len(self)} frames)"

    def _fields(self) -> dict[str, str | list[int]]:
        return {"video": self.video, "indices": list(self.indices)}

    def _key(self) -> tuple[str, tuple[int, ...], str | None]:
        return self.video, self.indices, self.root

    def _decode(self, indices: tuple[int, ...]) -> Images:
        return read_frames(self.path, indices, backend=self.backend)


Mapping.register(LazyFrames)
