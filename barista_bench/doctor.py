"""Check which parts of the package this machine can run, and how to add missing parts.

The check changes nothing and uses no network.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from barista_bench.errors import install_command
from barista_bench.version import __version__

Result = Literal["ok", "missing", "note"]
PACKAGE = "barista_bench"
CODECS = ("h264", "hevc", "vp9", "av1", "mpeg4")
"""The most common video codecs."""
LITTLE_SPACE = 10e9
"""Free bytes below which a checkpoint of a few billion parameters no longer fits."""

# The purpose of each extra; extras for developers are left out.
_PURPOSES = {
    "run": "models that run here: transformers, torch",
    "api": "models behind a server",
    "gguf": "language models in one file",
    "peft": "adapters",
    "quantization": "weights in 4 or 8 bits",
    "video": "frames shown as a video, SAM 3",
    "viz": "pictures of figures",
    "studio": "the page to look, annotate and answer",
    "annotate": "scene graphs of your own videos",
    "hands": "proposals of hand boxes",
    "sentence": "similarity of sentences",
    "train": "training",
    "ray": "many machines",
}


@dataclass(frozen=True, slots=True)
class MachineFact:
    """One fact about this machine.

    Attributes:
        topic: section of the fact.
        name: subject of the fact.
        result: "missing" for parts that can be added, "note" for parts that cannot or need not be added.
        found: the state in words.
        remedy: the command that adds the missing part, or None.
    """

    topic: str
    name: str
    result: Result
    found: str
    remedy: str | None = None


def examine_machine() -> list[MachineFact]:
    """Return all facts in display order. They contain no keys, tokens or account names."""
    return [*_python(), *_accelerators(), *_video(), *_extras(), *_storage()]


def _python() -> Iterator[MachineFact]:
    yield MachineFact("Package", PACKAGE, "ok", f"{__version__}, in {Path(__file__).parent}")
    yield MachineFact("Package", "Python", "ok", f"{platform.python_version()}, {sys.executable}")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    machine = f"{platform.platform()}, {os.cpu_count()} cores, {memory / 2**30:.0f} GiB of memory"
    yield MachineFact("Package", "machine", "ok", machine)


def _accelerators() -> Iterator[MachineFact]:
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a shared library cannot be loaded
        yield MachineFact("GPU", "torch", "missing", f"{error}: only models that need none run", install_command("run"))
        return
    yield MachineFact("GPU", "torch", "ok", str(torch.__version__))
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        gpu = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        yield MachineFact("GPU", f"cuda:{index}", "ok", gpu)
    if torch.backends.mps.is_available():
        yield MachineFact("GPU", "mps", "ok", "Apple GPU")
    elif not torch.cuda.is_available():
        backend = torch.version.cuda or torch.version.hip
        reason = f"torch was built for {backend}, and sees none" if backend else "this torch was built without GPUs"
        yield MachineFact(
            "GPU", "device", "note", f"none: {reason}. Install torch for your machine: https://pytorch.org"
        )


def _video() -> Iterator[MachineFact]:
    import av
    from av.codec import Codec
    from av.codec.codec import UnknownCodecError

    codecs = ".".join(map(str, av.library_versions["libavcodec"]))
    yield MachineFact("Video", "PyAV", "ok", f"{av.__version__}, with FFmpeg's libavcodec {codecs}")
    decoders = []
    for name in CODECS:
        with suppress(UnknownCodecError):
            decoders += [name] if Codec(name, "r") else []
    missing = [name for name in CODECS if name not in decoders]
    text = f"reads {', '.join(decoders)}" + (f"; not {', '.join(missing)}" if missing else "")
    yield MachineFact("Video", "codecs", "missing" if missing else "ok", text, "pip install av" if missing else None)
    path = shutil.which("ffmpeg")
    yield MachineFact(
        "Video", "ffmpeg", "ok" if path else "note", path or "no program of that name; nothing here needs it"
    )


def _extras() -> Iterator[MachineFact]:
    """Yield the extras in the package's metadata, grouped by how completely they are installed."""
    all_requirements = [Requirement(line) for line in metadata.requires(PACKAGE) or []]
    for extra, purpose in _PURPOSES.items():
        requirements = [item for item in all_requirements if _is_of_extra(item, extra)]
        problems = [problem for item in requirements if (problem := _problem(item))]
        if problems:
            text = f"{purpose}; {', '.join(problems)}"
            yield MachineFact("Optional parts", extra, "missing", text, install_command(extra))
        else:
            yield MachineFact("Optional parts", extra, "ok", purpose)


def _is_of_extra(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


def _problem(requirement: Requirement) -> str | None:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"no {requirement.name}"
    fits = requirement.specifier.contains(version, prereleases=True)
    return None if fits else f"{requirement.name} {version}, wanted {requirement.specifier}"


def _storage() -> Iterator[MachineFact]:
    from huggingface_hub import constants, get_token

    datasets = os.environ.get("HF_DATASETS_CACHE") or os.path.join(constants.HF_HOME, "datasets")
    for name, folder in (("models", Path(constants.HF_HUB_CACHE)), ("datasets", Path(datasets))):
        yield MachineFact("Caches and Hub", name, "ok", f"{folder}" + ("" if folder.is_dir() else " (not there yet)"))
    if constants.HF_HUB_OFFLINE:
        yield MachineFact("Caches and Hub", "Hub", "note", "HF_HUB_OFFLINE is set: nothing is fetched")
    if get_token() is None:
        text = "not logged in: gated models cannot be fetched, nothing can be published"
        yield MachineFact("Caches and Hub", "login", "missing", text, "hf auth login")
    else:
        yield MachineFact("Caches and Hub", "login", "ok", "logged in")
    for name, folder in (("here", Path.cwd()), ("caches", Path(constants.HF_HOME))):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        yield MachineFact(
            "Disk", name, "ok" if free > LITTLE_SPACE else "note", f"{free / 1e9:.0f} GB free in {existing}"
        )
