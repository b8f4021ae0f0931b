"""The terms of graphs that come from elsewhere: whose data it is, under which licence, and what to cite."""

from __future__ import annotations

from pathlib import Path

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.reading import read_bounded
from barista_bench.scene_graph.release import MALFORMED

TERMS_FILE = "terms.json"
MAX_BYTES = 2**20


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`terms.json` beside the folders of videos, and in whatever is made of them.

    Args:
        title: of the data, for people.
        licence: as the Hub calls licences. What is made of the data is published under this one or not at all.
        licence_note: what the licence holds for, in a sentence.
        citation: BibTeX.
        homepage: where the data come from.
    """

    title: str
    licence: str
    licence_note: str
    citation: str
    homepage: str


def read_terms(folder: Path) -> Terms | None:
    """The terms that lie in a folder, if any do. Raises DataError for a file that is none."""
    path, remedy = folder / TERMS_FILE, "import the graphs again"
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(read_bounded(path, MAX_BYTES, remedy=remedy), type=Terms)
    except MALFORMED as error:
        raise DataError(f"{path}: {error}. Remedy: {remedy}") from error


def terms_bytes(terms: Terms) -> bytes:
    return msgspec.json.format(msgspec.json.encode(terms), indent=1) + b"\n"
