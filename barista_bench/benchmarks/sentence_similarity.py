"""How alike two sentences are in meaning, by a sentence encoder through transformers: any local folder or Hub id.

A sentence's embedding is the mean of its tokens' last hidden states, padding left out, brought to length 1: what
sentence-transformers computes for all-mpnet-base-v2 and most of its models (Reimers and Gurevych, 2019, section 3).

    encoder = SentenceEncoder.load("sentence-transformers/all-mpnet-base-v2")
    encoder.similarity(["cup"], ["mug", "kettle"])      # cosines, shape (1, 2)

torch and transformers are imported when an encoder is loaded, never when this module is.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from numpy.typing import NDArray

from barista_bench.errors import ConfigError, DataError, ModelError
from barista_bench.files.checkpoints import load_pretrained, require_libraries, revision_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger(__name__)

DEFAULT_ENCODER = "sentence-transformers/all-mpnet-base-v2"
MAX_CHARACTERS = 20_000
"""Characters of a sentence that are looked at: more than any encoder reads."""
CACHE_BYTES = 256 * 2**20

_POOLER = "pooler."  # weights of a head that is not used, which many checkpoints lack
_POOLING_FILE = "1_Pooling/config.json"
_MEAN = "pooling_mode_mean_tokens"

Cosines = NDArray[np.float64]


class SentenceEncoder:
    """Cosines between sentences. Make one with `SentenceEncoder.load`.

    Args:
        model: the loaded encoder, on its device.
        tokenizer: its tokenizer; casing is its business.
        name: as the user gave it.
        revision: commit or content hash of the weights.
        batch_size: sentences of one pass at the most.
        max_tokens: tokens of a sentence that are read; None for as many as the model was made for.
        cache_bytes: embeddings kept.

    Raises:
        ConfigError: a number is not positive.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        revision: str | None,
        *,
        batch_size: int = 64,
        max_tokens: int | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        for setting, value in (("batch_size", batch_size), ("max_tokens", max_tokens)):
            if value is not None and value < 1:
                raise ConfigError(f"{setting} is {value}. Remedy: give 1 or more")
        self.name = name
        self.revision = revision
        self.max_tokens = _read_tokens(model, tokenizer, max_tokens)
        self._model, self._tokenizer = model, tokenizer
        self._batch_size = batch_size
        self._room = max(1, cache_bytes // (8 * int(model.config.hidden_size)))
        self._kept: OrderedDict[str, NDArray[np.float64]] = OrderedDict()

    @classmethod
    def load(
        cls,
        name: str = DEFAULT_ENCODER,
        revision: str | None = None,
        *,
        device: str = "auto",
        batch_size: int = 64,
    ) -> SentenceEncoder:
        """An encoder from a local folder or the Hub, in float32.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            revision: commit, branch or tag of a Hub id.
            device: `auto` takes a CUDA GPU where there is one.
            batch_size: sentences of one pass at the most.

        Raises:
            ModelError: torch or transformers is missing, the encoder cannot be read or is incomplete, or it says that
                its tokens are pooled in another way than by their mean.
            ConfigError: the batch size is not positive.
        """
        model, tokenizer = _loaded(name, revision, device)
        _check_pooling(name, revision)
        found = revision_of(name, model.config)
        return cls(model, tokenizer, name, found, batch_size=batch_size, max_tokens=_declared_tokens(name, revision))

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> Cosines:
        """Cosines of n sentences with m sentences: (n, m), within -1..1, rounded to six decimals.

        They depend on the two sentences alone, up to that rounding: not on what else is asked for.

        Raises:
            DataError: a sentence is not a string.
        """
        left, right = self.embed(first), self.embed(second)
        return cast("Cosines", np.round(np.clip(left @ right.T, -1.0, 1.0), 6))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Embeddings of length 1: (n, d). Raises DataError."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"{texts!r:.200} are no sentences. Remedy: give a list of strings")
        embedded = self._embedded(list(dict.fromkeys(texts)))
        width = int(self._model.config.hidden_size)
        return np.stack([embedded[text] for text in texts]) if texts else np.zeros((0, width))

    def _embedded(self, texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        found = {}
        for text in texts:
            if text in self._kept:
                self._kept.move_to_end(text)
                found[text] = self._kept[text]
        # Texts of one length together: less padding, and the same batches whatever the order.
        waiting = sorted((text for text in texts if text not in found), key=lambda text: (len(text), text))
        for begin in range(0, len(waiting), self._batch_size):
            batch = waiting[begin : begin + self._batch_size]
            found.update(zip(batch, self._pass(batch), strict=True))
        for text in waiting:
            self._kept[text] = found[text]
        while len(self._kept) > self._room:
            self._kept.popitem(last=False)
        return found

    def _pass(self, texts: Sequence[str]) -> NDArray[np.float64]:
        import torch

        given = [text[:MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        tokens = self._tokenizer(
            given, padding=True, truncation=True, max_length=self.max_tokens, return_tensors="pt"
        ).to(self._model.device)
        with torch.inference_mode():
            hidden = self._model(**tokens).last_hidden_state.double()
        counted = tokens["attention_mask"].unsqueeze(-1).double()
        mean = (hidden * counted).sum(dim=1) / counted.sum(dim=1).clamp(min=1e-9)
        return cast("NDArray[np.float64]", torch.nn.functional.normalize(mean, dim=1).cpu().numpy())


def _read_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, wanted: int | None) -> int:
    """Tokens that the model can read: positions that its padding id takes (RoBERTa, MPNet) are not to be had."""
    positions = getattr(model.config, "max_position_embeddings", None)
    offset = {"mpnet": 2, "roberta": 2, "xlm-roberta": 2, "camembert": 2}.get(model.config.model_type, 0)
    limits = [wanted, tokenizer.model_max_length, positions - offset if positions else None]
    return min(limit for limit in limits if limit)


def _loaded(name: str, revision: str | None, device: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    require_libraries()
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = load_pretrained(
        name,
        AutoTokenizer.from_pretrained,
        AutoModel.from_pretrained,
        kind="a sentence encoder",
        role="encoder",
        revision=revision,
        device=device,
        optional=(_POOLER,),
        dtype="float32",
    )
    if not isinstance(getattr(model.config, "hidden_size", None), int):
        raise ModelError(f"encoder {name}: {type(model).__name__} is no encoder of texts alone. Remedy: name another")
    if tokenizer.pad_token is None:
        raise ModelError(f"encoder {name}: its tokenizer has no padding. Remedy: use a model made for sentences")
    return model, tokenizer


def _check_pooling(name: str, revision: str | None) -> None:
    """Raise ModelError where an encoder of sentence-transformers says that it pools otherwise than by the mean."""
    config = _settings(name, revision, _POOLING_FILE)
    chosen = sorted(key for key, value in config.items() if key.startswith("pooling_mode_") and value is True)
    said = config.get("pooling_mode", "mean")  # newer files hold the mode's name
    if chosen not in ([], [_MEAN]) or said != "mean":
        remedy = "use an encoder that is pooled by the mean of its tokens"
        asked = ", ".join(chosen) or said
        raise ModelError(f"encoder {name}: its {_POOLING_FILE} asks for {asked}. Remedy: {remedy}")


def _declared_tokens(name: str, revision: str | None) -> int | None:
    """What an encoder of sentence-transformers cuts sentences to: 384 tokens for all-mpnet-base-v2."""
    declared = _settings(name, revision, "sentence_bert_config.json").get("max_seq_length")
    return declared if isinstance(declared, int) and declared > 0 else None


def _settings(name: str, revision: str | None, file: str) -> dict[str, object]:
    """A settings file of sentence-transformers; empty where the encoder has none."""
    path = _found(name, revision, file)
    if path is None:
        return {}
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise ModelError(f"{path}: is no JSON ({error}). Remedy: download the encoder again") from error
    return found if isinstance(found, dict) else {}


def _found(name: str, revision: str | None, file: str) -> Path | None:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder / file if (folder / file).is_file() else None
    try:
        return Path(hf_hub_download(name, file, revision=revision))
    except LocalEntryNotFoundError:
        log.warning("encoder %s: %s is not at hand and the Hub cannot be reached: taken as absent", name, file)
    except EntryNotFoundError:
        log.debug("encoder %s has no %s", name, file)
    return None
