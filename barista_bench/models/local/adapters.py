"""LoRA and other peft adapters for `TransformersModel`: from a folder or the Hub, safetensors only."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from barista_bench.errors import ModelError, require_extra
from barista_bench.files.text_out import first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def fetch_adapter(adapter: str, revision: str | None = None) -> Path:
    """The folder of an adapter: a local one as it is, one on the Hub after its two files are downloaded.

    Args:
        adapter: folder with adapter_config.json and adapter_model.safetensors, or Hub id.
        revision: commit, branch or tag of a Hub id.

    Raises:
        ModelError: it cannot be found, or its weights are no safetensors file.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    folder = Path(adapter).expanduser()
    if not folder.is_dir():
        try:
            folder = Path(snapshot_download(adapter, revision=revision, allow_patterns=[_CONFIG, _WEIGHTS]))
        except (OSError, HfHubHTTPError, HFValidationError) as error:
            raise ModelError(
                f"adapter {adapter}: is no folder and cannot be fetched ({type(error).__name__}). "
                "Remedy: give a folder, or a Hub id that this machine can reach"
            ) from error
    elif revision is not None:
        raise ModelError(f"adapter {adapter}: a folder has no revisions. Remedy: leave adapter_revision out")
    for name in (_CONFIG, _WEIGHTS):
        if not (folder / name).is_file():
            # Other weight files are pickles, which run code when they are read.
            raise ModelError(f"adapter {adapter}: holds no {name}. Remedy: save it with peft, as safetensors")
    return folder


def adapter_hash(folder: Path) -> str:
    """SHA-256 over configuration and weights of a fetched adapter."""
    total = hashlib.sha256()
    for name in (_CONFIG, _WEIGHTS):
        with (folder / name).open("rb") as file:
            total.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def add_adapter(model: PreTrainedModel, folder: Path, adapter: str) -> None:
    """Put a fetched adapter into a loaded model, which keeps its class; every weight of the adapter must fit into it.

    Raises:
        ModelError: peft is missing, or the adapter is of another model or of a kind that cannot be put in.
    """
    from safetensors import SafetensorError

    require_extra(f"adapter {adapter}:", "peft", extra="peft")
    remedy = "Remedy: give the model that the adapter was trained on"
    try:
        report = model.load_adapter(str(folder), use_safetensors=True)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OSError, SafetensorError) as error:
        raise ModelError(f"adapter {adapter}: cannot be added: {first_line(error)}. {remedy}") from error
    problems: dict[str, Collection[object]] = {
        "missing": report.missing_keys,
        "unknown": report.unexpected_keys,
        "of other shape": report.mismatched_keys,
    }
    for kind, keys in problems.items():
        if keys:
            # transformers only warns, and would answer as if there were no adapter.
            raise ModelError(f"adapter {adapter}: weights are {kind} ({sorted(map(str, keys))[0]}, ...). {remedy}")
