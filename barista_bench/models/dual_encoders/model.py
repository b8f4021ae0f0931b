"""CLIP and similar models, which rank given texts (`Request.choices`) by how well they match a clip's images.

These models read no prompt. They embed each image and each text, and answer with the cosines of the embeddings:
`{"scores": {"A": 0.31, "B": 0.27}}` (see `core/example.py`). Image models (CLIP, SigLIP, ...) embed each frame
separately, and average them over the video, so the order of the frames cannot matter. Video models (X-CLIP, ...) embed
all frames together. Each distinct frame, video and text is embedded once, as long as it stays in the cache.

Nothing is sampled: temperature, seeds and the other settings of generation have no effect, and all runs are equal.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from cachetools import LRUCache
from PIL import Image

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import write_scores
from barista_bench.core.settings import check_settings
from barista_bench.files.checkpoints import loading_of, revision_of
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request, is_out_of_memory
from barista_bench.models.dual_encoders.towers import Towers, load_towers
from barista_bench.models.local.batching import checked_size
from barista_bench.models.settings import CheckpointSettings

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

CACHE_BYTES = 512 * 2**20
"""Limit of bytes for the cache, enough for 170,000 frames of a model with 768 dimensions."""
_OUT_OF_MEMORY = "does not fit into memory. Fix: use a larger GPU, a smaller model, or half precision"

Content = TypeVar("Content")
Key = bytes
"""Digest of the embedded content."""


class DualEncoder:
    """Scores `Request.choices` by their cosine with the request's images. Make one with `DualEncoder.load`.

    Raises:
        ConfigError: the batch size is less than 1.
    """

    def __init__(self, towers: Towers, identity: ModelIdentity, *, batch_size: int = 8) -> None:
        self.identity, self.box_format, self.batch_size = identity, DEFAULT_BOX_FORMAT, checked_size(batch_size)
        self.images_at_once = 64
        """Limit of images in one pass through the tower; halved when memory runs out."""
        self._towers = towers
        self._cache = LRUCache[Key, "torch.Tensor"](CACHE_BYTES, getsizeof=lambda embedding: embedding.nbytes)
        self._warned_of: set[str] = set()

    @classmethod
    def load(
        cls,
        name: str,
        *,
        batch_size: int = 8,
        unit_frames: bool = True,
        **settings: Any,  # noqa: ANN401  (`CheckpointSettings` says which)
    ) -> DualEncoder:
        """Load a local folder or a Hub id with one encoder for texts and one for images or videos.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            unit_frames: if True, the frame vectors of an image model are scaled to length 1 and then averaged, so that
                all frames have equal weight. The ViSTa paper writes that CLIP averages the embeddings of frames; it
                does not mention scaling.
            settings: fields of `CheckpointSettings`; dtype `auto` is float32 on a CPU.

        Raises:
            ModelError: a library is missing, or the checkpoint cannot be read or is not a dual encoder.
            ConfigError: a setting is unknown or out of range.
        """
        checked_size(batch_size)
        towers = load_towers(name, check_settings(CheckpointSettings, settings), unit_frames=unit_frames)
        return cls(towers, _identity(name, towers), batch_size=batch_size)

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        """Return one list per request, in order, with the same answer for each of its seeds. `config` has no effect.

        Raises:
            ValueError: a prompt does not place its images exactly once; the message names the request.
            ModelError: the two encoders do not embed into one space.
        """
        import torch

        with torch.inference_mode():
            refusals = [_refusal(request) for request in requests]
            accepted = [request for request, failure in zip(requests, refusals, strict=True) if failure is None]
            scores = iter(self._score(accepted))
            answers = [failure or next(scores) for failure in refusals]
        return [[answer] * len(request.seeds) for request, answer in zip(requests, answers, strict=True)]

    def _score(self, requests: Sequence[Request]) -> list[Completion | Failure]:
        unit_keys: list[list[Key]] = []
        units: dict[Key, tuple[Image.Image, ...]] = {}
        for request in requests:
            images = [image if image.mode == "RGB" else image.convert("RGB") for image in request.images]
            parts = self._towers.split(images)
            unit_keys.append([pixels_key(part) for part in parts])
            units.update(zip(unit_keys[-1], parts, strict=True))
        texts = {text_key(text): text for request in requests for text in request.choices.values()}
        new = [text for text in texts.values() if text not in self._warned_of]
        for text in self._towers.too_long(new) if new else ():
            log.warning("only the first %d tokens are read of: %.80s...", self._towers.text_tokens, text)
        self._warned_of.update(new)
        images_each = self._towers.frames or max(map(len, units.values()), default=1)
        embeddings = self._embed(units, self._towers.embed, images_each)
        embeddings |= self._embed(texts, self._towers.embed_texts, 1)
        return [self._answer(request, keys, embeddings) for request, keys in zip(requests, unit_keys, strict=True)]

    def _answer(
        self, request: Request, unit_keys: Sequence[Key], embeddings: Mapping[Key, torch.Tensor]
    ) -> Completion | Failure:
        text_keys = [text_key(text) for text in request.choices.values()]
        if not embeddings.keys() >= {*unit_keys, *text_keys}:
            return Failure(f"{request.request_id}: {_OUT_OF_MEMORY}")
        cosines = self._towers.cosines([embeddings[key] for key in unit_keys], [embeddings[key] for key in text_keys])
        if not all(map(math.isfinite, cosines)):
            remedy = "give --dtype float32"
            return Failure(f"{request.request_id}: an embedding is zero or not finite. Fix: {remedy}")
        return Completion(write_scores(dict(zip(request.choices, cosines, strict=True))))

    def _embed(
        self,
        contents: Mapping[Key, Content],
        embed: Callable[[Sequence[Content]], list[torch.Tensor]],
        images_each: int,
    ) -> dict[Key, torch.Tensor]:
        """Return embeddings by key, cached or newly computed.

        Embeddings that do not fit into memory are left out.
        """
        import torch

        embeddings = {key: self._cache[key] for key in contents if key in self._cache}
        missing_keys = [key for key in contents if key not in embeddings]
        while missing_keys:
            batch = missing_keys[: max(1, self.images_at_once // images_each)]
            try:
                new_embeddings = embed([contents[key] for key in batch])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                if len(batch) == 1:
                    missing_keys = missing_keys[1:]
                    continue
                self.images_at_once = max(1, len(batch) // 2) * images_each
                log.warning("out of memory: %d images or texts at once from here on", self.images_at_once)
                continue
            for key, embedding in zip(batch, new_embeddings, strict=True):
                embeddings[key] = embedding
                if embedding.nbytes <= self._cache.maxsize:
                    self._cache[key] = embedding
            missing_keys = missing_keys[len(batch) :]
        return embeddings


def _refusal(request: Request) -> Failure | None:
    """Return the failure of a request that cannot be scored; None for a valid request."""
    request.check_images()
    if not request.choices:
        remedy = "ask it a task whose answer is chosen from given texts"
        return Failure(f"{request.request_id}: a dual encoder ranks given texts, but got none. Fix: {remedy}")
    if not request.images:
        return Failure(f"{request.request_id}: a dual encoder compares texts with images, but got no images")
    return None


def _identity(name: str, towers: Towers) -> ModelIdentity:
    settings = loading_of(towers.model)
    settings |= {"sees": towers.sees, "pooling": towers.pooling, "text_tokens": towers.text_tokens}
    if towers.frames:
        settings["frames"] = towers.frames
    return ModelIdentity(f"dual:{name}", revision_of(name, towers.model.config), settings)


def text_key(text: str) -> Key:
    return hashlib.sha256(b"text\0" + text.encode("utf-8", "surrogatepass")).digest()


def pixels_key(images: Sequence[Image.Image]) -> Key:
    """Return a key for RGB images in order: equal sizes and pixels give equal keys, whatever the source."""
    digest = hashlib.sha256(b"pixels\0")
    for image in images:
        digest.update(f"{image.width}x{image.height}\0".encode())
        digest.update(np.ascontiguousarray(image).data)
    return digest.digest()
