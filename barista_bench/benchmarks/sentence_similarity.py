"""Measure how similar two sentences are in meaning: cosines of embeddings from sentence-transformers.

    encoder = SentenceEncoder.load("sentence-transformers/all-mpnet-base-v2")
    encoder.similarity(["cup"], ["mug", "kettle"])      # cosines, shape (1, 2)

The encoder's files define pooling, Dense modules, prompts and lengths. torch and sentence-transformers are imported
when an encoder is loaded, not when this module is imported.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import ConfigError, DataError, ModelError, install_command
from barista_bench.files.checkpoints import device_of, load_pretrained, require_libraries, revision_of
from barista_bench.files.text_out import first_line

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEFAULT_ENCODER = "sentence-transformers/all-mpnet-base-v2"
DECIMALS = 6
"""Decimals of cosines. The other sentences of a batch change later decimals."""
MAX_CHARACTERS = 20_000
"""Maximum number of characters of a sentence that are used: more than any encoder reads."""
MAX_CACHED = 50_000
"""Maximum number of embeddings in the cache."""
BATCH_SIZE = 64
_POOLER = "pooler."  # weights of a head that embeddings do not use; many checkpoints lack them


class SentenceEncoder:
    """A loaded encoder, which embeds each sentence once. Make an encoder with `SentenceEncoder.load`.

    Args:
        model: the model, on its device.
        revision: commit or content hash of the model's files.
    """

    def __init__(self, model: SentenceTransformer, revision: str | None) -> None:
        self.model, self.revision = model, revision
        self._embeddings: dict[str, NDArray[np.float64]] = {}

    @classmethod
    def load(cls, name: str = DEFAULT_ENCODER, revision: str | None = None, *, device: str = "auto") -> SentenceEncoder:
        """Load an encoder in float32, from safetensors, without running its code.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            revision: commit, branch or tag of a Hub id.
            device: `auto` takes a CUDA GPU if available.

        Raises:
            ModelError: a library is missing, or the encoder cannot be read, is incomplete, or is not text-only.
        """
        require_libraries()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            remedy = install_command("sentence")
            raise ModelError(f"comparing sentences needs sentence-transformers ({error}). Fix: {remedy}") from error
        from transformers import AutoModel, AutoTokenizer

        # sentence-transformers does not report which weights were missing and are random.
        checkpoint, _ = load_pretrained(
            name,
            AutoTokenizer.from_pretrained,
            AutoModel.from_pretrained,
            kind="a sentence encoder",
            role="encoder",
            revision=revision,
            device=None,
            optional=(_POOLER,),
        )
        if not isinstance(getattr(checkpoint.config, "hidden_size", None), int):
            kind = type(checkpoint).__name__
            raise ModelError(f"encoder {name}: {kind} is not a text-only encoder. Fix: name another")
        try:
            model = SentenceTransformer(
                name,
                revision=revision,
                device=str(device_of(device)),
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True, "dtype": "float32"},
            )
        except (OSError, ImportError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            cause = f"{type(error).__name__}: {first_line(error)}"
            remedy = "give a folder that sentence-transformers saved, or a Hub id"
            raise ModelError(f"encoder {name}: cannot be loaded: {cause}. Fix: {remedy}") from error
        return cls(model.eval(), revision_of(name, checkpoint.config))

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """Return the (n, m) cosines of n sentences with m sentences, in -1..1 and rounded to `DECIMALS`.

        Apart from rounding, a value depends only on its two sentences, not on other sentences.

        Raises:
            DataError: a sentence is not a string.
        """
        return np.asarray(np.round(np.clip(self.embed(first) @ self.embed(second).T, -1.0, 1.0), DECIMALS))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the (n, d) embeddings, each of length 1. Raises DataError if a text is not a string."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"{texts!r:.200} are no sentences. Fix: give a list of strings")
        new_texts = sorted({text for text in texts if text not in self._embeddings})
        if new_texts:
            readable = [text[:MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in new_texts]
            vectors = self.model.encode(readable, batch_size=BATCH_SIZE, show_progress_bar=False).astype(np.float64)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            self._embeddings.update(zip(new_texts, vectors / np.maximum(lengths, 1e-12), strict=True))
        width = self.model.get_embedding_dimension() or 0
        embeddings = np.stack([self._embeddings[text] for text in texts]) if texts else np.zeros((0, width))
        if len(self._embeddings) > MAX_CACHED:
            self._embeddings.clear()
        return embeddings


@functools.lru_cache(maxsize=2)
def sentence_encoder(name: str) -> SentenceEncoder:
    """Return the sentence encoder in a folder or with a Hub id. Each encoder is loaded once.

    Raises:
        ConfigError: the encoder cannot be loaded. The error names the options that need no model.
    """
    try:
        return SentenceEncoder.load(name)
    except (ModelError, DataError) as error:
        complaint, _, remedy = str(error).partition(". Fix: ")
        raise ConfigError(
            f"option encoder: {complaint}. Fix: {remedy or 'name another encoder'}; or choose matcher=exact or "
            "matcher=synonyms, which need no model; to score a finished run again, without running the model, use "
            "`barista-bench score RUN --option matcher=synonyms`"
        ) from error
