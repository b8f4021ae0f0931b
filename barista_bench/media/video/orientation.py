"""Display rotation: how stored frames must be turned to stand as players show them."""

import struct
from typing import NamedTuple

import numpy as np
from av.sidedata.sidedata import SideData
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from barista_bench.errors import VideoError

Image = NDArray[np.uint8]


class Orientation(NamedTuple):
    """Mirror the stored image left to right if `mirrored`, then turn it `turns` x 90 degrees counter-clockwise."""

    turns: int = 0
    mirrored: bool = False

    def apply(self, image: Image) -> Image:
        """A view (not a copy) of an image (H, W, 3) in display orientation."""
        return np.rot90(image[:, ::-1] if self.mirrored else image, self.turns)

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Displayed (width, height) of a stored frame of that width and height, in pixels."""
        return (height, width) if self.turns % 2 else (width, height)


# The display matrix (a, b; c, d) sends the stored point (x, y), y down, to the shown point (a x + c y, b x + d y).
_ORIENTATIONS = {
    (1, 0, 0, 1): Orientation(0),
    (0, -1, 1, 0): Orientation(1),
    (-1, 0, 0, -1): Orientation(2),
    (0, 1, -1, 0): Orientation(3),
    (-1, 0, 0, 1): Orientation(0, True),
    (0, 1, 1, 0): Orientation(1, True),
    (1, 0, 0, -1): Orientation(2, True),
    (0, -1, -1, 0): Orientation(3, True),
}


def orientation_of(frame: VideoFrame, name: str) -> Orientation:
    """Orientation from the frame's display matrix. Raises VideoError unless it turns by right angles."""
    data = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(data, SideData):
        return Orientation()
    cells = struct.unpack("=9i", bytes(data)[:36])
    rotation = (cells[0], cells[1], cells[3], cells[4])
    scale = max(*map(abs, rotation), 1)
    a, b, c, d = (round(cell / scale) for cell in rotation)
    orientation = _ORIENTATIONS.get((a, b, c, d))
    if orientation is None:
        text = f"{name}: its display matrix {cells} is no turn by right angles"
        raise VideoError(f"{text}. Remedy: re-encode it: ffmpeg -i IN OUT.mp4")
    return orientation
