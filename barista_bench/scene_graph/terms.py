"""Read the terms of graphs from other datasets: owner, licence and citation."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from barista_bench.errors import DataError
from barista_bench.files.reading import load_yaml, read_bounded

TERMS_FILE = "terms.yaml"
MAX_BYTES = 2**20


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `terms.yaml`. This file is beside the folders of videos, and in everything made from these videos.

    Args:
        title: title of the data, for people.
        licence: identifier of the licence on the Hub. Derived data are published under this licence or not at all.
        licence_note: scope of the licence in one sentence.
        citation: BibTeX.
        homepage: source of the data.
    """

    title: str
    licence: str
    licence_note: str
    citation: str
    homepage: str


def read_terms(folder: Path) -> Terms | None:
    """Read the terms in a folder; None if there are none. Raises DataError for an invalid file."""
    path, remedy = folder / TERMS_FILE, "import the graphs again"
    if not path.is_file():
        return None
    try:
        content = read_bounded(path, MAX_BYTES, remedy=remedy)
        return msgspec.convert(load_yaml(content, str(path), error=DataError), Terms)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}. Fix: {remedy}") from error


def terms_bytes(terms: Terms) -> bytes:
    return yaml.safe_dump(msgspec.to_builtins(terms), sort_keys=False, allow_unicode=True, width=1000).encode()
