"""A made scene with known masks: a textured box that drifts over a textured table, with a lid inside it."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from barista_bench.annotate.propagation import Keyframes
from barista_bench.scene_graph import Rle, encode_mask

WIDTH, HEIGHT = 160, 96
NOTHING = encode_mask(np.zeros((HEIGHT, WIDTH), dtype=np.bool_))


def rectangle(x: int, y: int, width: int, height: int) -> Rle:
    """A filled rectangle, cut off at the edges of the frame."""
    mask = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    mask[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)] = True
    return encode_mask(mask)


def box_at(frame: int) -> tuple[int, int]:
    """Left upper corner of the box, which is 40 x 30 px."""
    return 10 + 2 * frame, 20 + frame // 2


def reference(frame: int) -> dict[str, Rle]:
    x, y = box_at(frame)
    return {"box": rectangle(x, y, 40, 30), "lid": rectangle(x + 8, y + 6, 16, 12)}


def texture(seed: int, height: int, width: int) -> NDArray[np.uint8]:
    """Smooth noise in colour, (height, width, 3)."""
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(height, width, 3)), (2, 2, 0))
    return np.clip(128 + 50 * noise / noise.std(), 0, 255).astype(np.uint8)


def write_scene(folder: Path, count: int) -> Path:
    """A folder of `count` frames as a video."""
    folder.mkdir()
    table, box, lid = texture(0, HEIGHT, WIDTH), texture(1, 30, 40), texture(2, 12, 16)
    for frame in range(count):
        image = table.copy()
        x, y = box_at(frame)
        image[y : y + 30, x : x + 40] = box
        image[y + 6 : y + 18, x + 8 : x + 24] = lid
        Image.fromarray(image).save(folder / f"{frame:06d}.png")
    return folder


def keyframes(*frames: int) -> Keyframes:
    """The reference of some frames."""
    return {frame: reference(frame) for frame in frames}
