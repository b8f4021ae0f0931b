"""Embeddings that were made already, the ones used last, within a bound of bytes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    import torch

Key = bytes


class EmbeddingCache:
    """Embeddings by the content that they were made of; those used longest ago go first.

    Args:
        max_bytes: kept at the most.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Key, torch.Tensor] = OrderedDict()
        self.size = 0
        """Bytes held now."""

    def get(self, key: Key) -> torch.Tensor | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: Key, embedding: torch.Tensor) -> None:
        """Keep an embedding, if it fits at all."""
        if key in self._kept or embedding.nbytes > self._max_bytes:
            return
        self._kept[key] = embedding
        self.size += embedding.nbytes
        while self.size > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.size -= oldest.nbytes


def text_key(text: str) -> Key:
    return hashlib.sha256(b"text\0" + text.encode("utf-8", "surrogatepass")).digest()


def pixels_key(images: Sequence[Image.Image]) -> Key:
    """Of RGB images in their order: the same for the same sizes and pixels, wherever they came from."""
    digest = hashlib.sha256(b"pixels\0")
    for image in images:
        digest.update(f"{image.width}x{image.height}\0".encode())
        digest.update(np.ascontiguousarray(image).data)
    return digest.digest()
