"""What a dual encoder keeps, and how it knows a frame again."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from barista_bench.models.dual_encoders.cache import EmbeddingCache, pixels_key, text_key  # noqa: E402


def picture(seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8))


def test_the_cache_drops_what_was_used_longest_ago() -> None:
    cache = EmbeddingCache(8 * 4)
    for index in range(3):
        cache.put(text_key(str(index)), torch.full((4,), float(index)))
        cache.get(text_key("0"))
    assert cache.size == 32
    assert [cache.get(text_key(str(index))) is not None for index in range(3)] == [True, False, True]
    cache.put(text_key("large"), torch.zeros(100))
    assert cache.get(text_key("large")) is None


def test_pixels_are_told_apart_by_size_and_content() -> None:
    wide, high = Image.new("RGB", (4, 2)), Image.new("RGB", (2, 4))
    assert len({pixels_key(images) for images in ([wide], [high], [wide, high], [high, wide], [picture(0)])}) == 5
    assert pixels_key([picture(5)]) == pixels_key([picture(5).copy()])
