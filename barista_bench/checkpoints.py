"""What identifies the files of a model, wherever they lie."""

from __future__ import annotations

import hashlib
from pathlib import Path

# Files that change an answer: weights, configuration, tokenizer, processor, template, code of the checkpoint.
_CONTENT = frozenset({".safetensors", ".bin", ".json", ".jinja", ".txt", ".model", ".tiktoken", ".py"})


def content_hash(folder: Path) -> str:
    """SHA-256 over the names and bytes of the files that make up a checkpoint; hidden files do not count."""
    total = hashlib.sha256()
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix in _CONTENT)
    for name in sorted(names, key=Path.as_posix):
        if (folder / name).is_file() and not any(part.startswith(".") for part in name.parts):
            with (folder / name).open("rb") as file:
                total.update(f"{name.as_posix()}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()
