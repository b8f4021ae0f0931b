"""Load checkpoints that transformers reads, and identify their files independently of the place where they are stored.

torch and transformers are imported when a checkpoint is loaded, not when this module is imported.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from huggingface_hub import try_to_load_from_cache

from barista_bench.errors import ModelError, require_extra
from barista_bench.files.hashes import file_sha256
from barista_bench.files.text_out import first_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

Processor = TypeVar("Processor")
Pretrained: TypeAlias = Any
"""A model or processor of transformers. The methods differ between architectures."""

GGUF = ".gguf"
"""The suffix of files that hold one model with weights and tokenizer. A path names such a model: `FOLDER/NAME.gguf`."""
# Files that change an answer: weights, configuration, tokenizer, processor, template, code of the checkpoint.
_CONTENT = frozenset({".safetensors", ".bin", ".json", ".jinja", ".txt", ".model", ".tiktoken", ".py"})
# By the text of transformers' error; the first fitting entry counts.
_REMEDIES = (
    (r"flashattention\S* has been", "install flash-attn, or leave attn_implementation out"),
    (r"specified `attn_implementation", "leave attn_implementation out"),
    (r"trust_remote_code|contains custom code", "read the code that it brings, then set trust_remote_code"),
    (
        r"file named \S*\.safetensors",
        "give its safetensors; .bin weights are pickles, which are not read: convert them with save_pretrained",
    ),
    (r"\.safetensors|SafetensorError", "a part of its weights is missing or damaged: download it again"),
    (r"requires? the|is required|pip install", "install the library that is named"),
)
# Errors, beside SafetensorError, that libraries raise for a checkpoint that they cannot read.
_UNREADABLE = (OSError, ImportError, ValueError, KeyError, TypeError, AttributeError, RuntimeError)
_REMEDY = "give a folder with config.json and safetensors, or a Hub id that this machine can reach"


def folder_hash(folder: Path) -> str:
    """Return the SHA-256 of the names and bytes of a checkpoint's files, without hidden files."""
    total = hashlib.sha256()
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix in _CONTENT)
    for name in sorted(names, key=Path.as_posix):
        if (folder / name).is_file() and not any(part.startswith(".") for part in name.parts):
            total.update(f"{name.as_posix()}\0{file_sha256(folder / name)}\n".encode())
    return total.hexdigest()


def revision_of(name: str, config: PreTrainedConfig) -> str | None:
    """Return the revision that this name loaded: the hash of a folder or file, or the Hub commit if known."""
    place = Path(name).expanduser()
    if place.is_file():
        return file_sha256(place)
    return folder_hash(place) if place.is_dir() else getattr(config, "_commit_hash", None)


def loading_of(model: Pretrained) -> dict[str, Any]:
    """Return the settings of a loaded model that change answers: number type and kind of attention."""
    return {"dtype": str(model.dtype).removeprefix("torch."), "attn_implementation": model.config._attn_implementation}


def require_libraries() -> None:
    """Raise ModelError if torch or transformers is missing. The error names the extra to install."""
    require_extra("running a model", "torch", "transformers", extra="run")


def device_of(name: str) -> torch.device:
    """Return the device with this name. `auto` selects a CUDA GPU if one is available.

    Raises ModelError if there is no such device, or if this machine does not have the named GPU.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ModelError(
            f"device {name!r}: {first_line(error)}. Fix: give --device auto, cpu, cuda or cuda:0"
        ) from error
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device.type == "cuda" and (device.index or 0) >= gpus:
        what = f"device {name!r}: this machine, as torch sees it, has {gpus} CUDA GPUs"
        raise ModelError(f"{what}. Fix: give --device auto")
    return device


def on_device(inputs: Mapping[str, torch.Tensor], device: torch.device, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Move a model's inputs to its device. Fractional numbers, such as pixels, are converted to the model's
    precision.
    """
    return {
        name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
        for name, value in inputs.items()
    }


def load_pretrained(
    name: str,
    read_processor: Callable[..., Processor],
    read_model: Callable[..., object],
    *,
    kind: str,
    role: str = "model",
    revision: str | None = None,
    device: str | None = "auto",
    trust_remote_code: bool = False,
    check: Callable[[PreTrainedModel], object] | None = None,
    optional: tuple[str, ...] = (),
    **settings: object,
) -> tuple[PreTrainedModel, Processor]:
    """Load a checkpoint's model onto its device, and load the processor. Weights must be safetensors.

    Args:
        name: path of a folder, or `org/name` on the Hub.
        read_processor: `from_pretrained` of the processor or tokenizer. It runs first, since weights take longer.
        read_model: `from_pretrained` of the model.
        kind: the type of model to load, for errors.
        role: the model's purpose for the user, for errors.
        revision: commit, branch or tag of a Hub id.
        device: as in `device_of`; None if `read_model` places the weights.
        trust_remote_code: run code that comes with the checkpoint.
        check: raises ModelError for another kind of model. Such a model may lack weights for a good reason.
        optional: beginnings of the names of weights that may be missing.
        settings: arguments for `read_model`, such as `dtype`.

    Raises:
        ModelError: the checkpoint is missing, incomplete, of an unknown kind, or an adapter, or it needs a missing
            library or an unavailable device.
    """
    from transformers.utils.peft_utils import find_adapter_config_file

    _check_name(name, revision, role)
    target = None if device is None else device_of(device)
    shared = {"revision": revision or "main", "trust_remote_code": trust_remote_code}
    with naming_cause(f"{role} {name}: cannot be loaded as {kind}"):
        if find_adapter_config_file(name, revision=revision):
            # transformers would also load the base model, which our records would not name.
            remedy = "give the model that it was trained on, and this one as its adapter"
            raise ModelError(f"{role} {name}: is an adapter, no model. Fix: {remedy}")
        processor = read_processor(name, **shared)
        # Weights in other files are pickles.
        loaded = read_model(name, use_safetensors=True, output_loading_info=True, **settings, **shared)
        model, report = cast("tuple[PreTrainedModel, dict[str, set[str]]]", loaded)
        if check:
            check(model)
        missing_keys = sorted(key for key in report["missing_keys"] if not key.startswith(optional))
        if missing_keys:  # transformers only warns, and would answer with random weights
            absent = ", ".join(missing_keys[:3])
            raise ModelError(f"{role} {name}: weights are missing ({absent}, ...). Fix: download it again")
        if target is not None:
            model.to(target)
    model.eval()
    return model, processor


@contextmanager
def naming_cause(failure: str) -> Iterator[None]:
    """Convert libraries' errors about an unreadable checkpoint into a ModelError with the failure and its cause."""
    from safetensors import SafetensorError

    try:
        yield
    except (*_UNREADABLE, SafetensorError) as error:
        full_text = f"{type(error).__name__}: {error}"
        fitting = (remedy for pattern, remedy in _REMEDIES if re.search(pattern, full_text, re.IGNORECASE))
        cause = f"{type(error).__name__}: {first_line(error)}"
        raise ModelError(f"{failure}: {cause}. Fix: {next(fitting, _REMEDY)}") from error


def fetch_checkpoint(name: str, revision: str | None = None) -> tuple[Path, str]:
    """Return the folder of a checkpoint, and an identifier of its content: a hash, or the commit on the Hub.

    Args:
        name: path of a folder, or `org/name` on the Hub. Files on the Hub are downloaded.
        revision: commit, branch or tag of a Hub id.

    Raises:
        ModelError: the checkpoint cannot be found.
    """
    from huggingface_hub import snapshot_download

    _check_name(name, revision, "model")
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder, folder_hash(folder)
    patterns = [f"*{suffix}" for suffix in sorted(_CONTENT - {".bin"})]  # .bin files are pickles
    with naming_cause(f"model {name}: is not a folder and cannot be fetched"):
        snapshot = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    return snapshot, snapshot.name


def _check_name(name: str, revision: str | None, role: str) -> None:
    """Raise ModelError for a path without a folder, and for a revision of a folder."""
    folder = Path(name).expanduser()
    if folder.is_dir() and revision is not None:
        remedy = "leave the revision out, or give a Hub id"
        raise ModelError(f"{role} {name}: a folder has no revisions. Fix: {remedy}")
    is_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    if is_path and not folder.is_dir():
        raise ModelError(f"{role} {name}: there is no such folder. Fix: check the path, or give a Hub id")


def is_on_this_machine(checkpoint: str) -> bool:
    """Return whether a checkpoint is a local folder or in the cache of the Hub client."""
    try:
        return Path(checkpoint).expanduser().is_dir() or isinstance(
            try_to_load_from_cache(checkpoint, "config.json"), str
        )
    except ValueError:  # not the name of a repository
        return False
