"""Videos for the timings: 1080p30 H.264, a shaking textured scene with moving patches and noise."""

import sys
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
WIDTH, HEIGHT, FPS = 1920, 1080, 30
_MARGIN = 128  # pixels of texture beyond the frame, for the shaking camera


def sample_video(seconds: int, gop: int, b_frames: int = 3) -> Path:
    """A video with a keyframe every `gop` frames, `b_frames` in a row; rendered on the first call (minutes)."""
    path = DATA / f"scene_{seconds}s_gop{gop}_b{b_frames}.mp4"
    if not path.exists():
        print(f"rendering {path.name} ...", file=sys.stderr)
        DATA.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".part.mp4")
        _encode(unfinished, seconds * FPS, gop, b_frames)
        unfinished.rename(path)
    return path


def _encode(path: Path, count: int, gop: int, b_frames: int) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        options = {"preset": "medium", "b": "8000000", "maxrate": "12000000", "bufsize": "16000000"}
        stream.codec_context.options = options | {
            "g": str(gop),
            "keyint_min": str(min(gop, 30)),
            "x264-params": f"bframes={b_frames}:b-adapt=0",
        }
        for planes in _scene(count):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
        container.mux(stream.encode(None))


def _scene(count: int) -> Iterator[NDArray[np.uint8]]:
    """Frames as stacked yuv420p planes, uint8 of shape (HEIGHT * 3 / 2, WIDTH)."""
    rng = np.random.default_rng(7)
    luma = _texture(rng, HEIGHT + 2 * _MARGIN, WIDTH + 2 * _MARGIN, 1.1)
    patches = [_texture(rng, 300, 400, 0.9) for _ in range(4)]
    chroma = [_texture(rng, (HEIGHT + 2 * _MARGIN) // 2, (WIDTH + 2 * _MARGIN) // 2, 1.6) for _ in range(2)]
    noise = rng.normal(0, 2, (HEIGHT + 64, WIDTH + 64)).astype(np.int16)
    for number in range(count):
        x = int(_MARGIN + 100 * np.sin(number / 29) + 8 * np.sin(number / 5)) // 2 * 2
        y = int(_MARGIN + 90 * np.cos(number / 23)) // 2 * 2
        image = luma[y : y + HEIGHT, x : x + WIDTH].astype(np.int16)
        for k, patch in enumerate(patches):
            left = int((WIDTH - 400) * (0.5 + 0.5 * np.sin(number / (23 + 9 * k) + k)))
            top = int((HEIGHT - 300) * (0.5 + 0.5 * np.cos(number / (31 + 7 * k) + 2 * k)))
            image[top : top + 300, left : left + 400] = patch
        dy, dx = rng.integers(0, 64, 2)
        image += noise[dy : dy + HEIGHT, dx : dx + WIDTH]
        half = [c[y // 2 : y // 2 + HEIGHT // 2, x // 2 : x // 2 + WIDTH // 2] for c in chroma]
        colour = np.concatenate([c.reshape(-1, WIDTH) for c in half])
        yield np.concatenate([image.clip(16, 235).astype(np.uint8), colour])


def _texture(rng: np.random.Generator, height: int, width: int, slope: float) -> NDArray[np.uint8]:
    """Noise whose amplitude falls as 1 / frequency**slope, as in natural images: uint8 of shape (height, width)."""
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    spectrum = np.fft.rfft2(rng.normal(size=(height, width))) / np.maximum(np.hypot(fy, fx), 1e-3) ** slope
    image = np.fft.irfft2(spectrum, (height, width))
    return np.clip(128 + 45 * image / image.std(), 16, 235).astype(np.uint8)
