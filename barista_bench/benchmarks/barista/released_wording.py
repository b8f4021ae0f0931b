"""Recognises the release's texts in a prompt file by their hashes, because this package does not contain the texts.

`scripts/released_prompts.py` makes such a prompt file from a clone of the released repository.
"""

from __future__ import annotations

import hashlib

import msgspec

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE
from barista_bench.core.boxes import BOX_ORDERS
from barista_bench.core.prompt import FROZEN_QUESTION, IMAGE_PLACE, fill
from barista_bench.core.prompt_files import PromptSet
from barista_bench.files.reading import packaged_data

SHA256 = msgspec.convert(packaged_data(PROMPT_PACKAGE, "released_hashes.yaml"), dict[str, str])
"""SHA-256 of the release's texts in UTF-8, by field of a prompt file."""
BASE_LENGTHS = {"relations": 635, "writer": 2940}
"""Length of the beginning of a system text whose hash is known. The rest of the text has no known hash."""


def released_differences(prompt_set: PromptSet) -> list[str]:
    """Return the texts that a prompt file lacks, or that differ from the release's."""
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in known_texts(prompt_set).items()}
    return [name for name, sha256 in SHA256.items() if hashes.get(name) != sha256]


def known_texts(prompt_set: PromptSet) -> dict[str, str]:
    """Return the texts of a prompt file that `SHA256` may list, as they are sent to a model.

    Boxes are described on the grid of 0 to 1000.
    """
    texts: dict[str, str] = {}
    sections = {f"tasks.{task}": section for task, section in prompt_set.tasks.items()}
    if prompt_set.writer:
        sections["writer"] = prompt_set.writer
    for name, section in sections.items():
        texts[f"{name}.system"] = section.system[: BASE_LENGTHS.get(name.removeprefix("tasks."))]
        for order in BOX_ORDERS:
            endings = {place.removesuffix(f".{order}"): text for place, text in section.extra.items()}
            texts[f"{name}.system (boxes as {order})"] = fill(section.system, {"scale": "1000", **endings})
        pieces = [piece for piece in IMAGE_PLACE.split(section.user)[::2] if piece]
        texts |= {f"{name}.user (part {index})": piece for index, piece in enumerate(pieces, start=1)}
        if question := section.extra.get(FROZEN_QUESTION):
            texts[f"{name}.extra.{FROZEN_QUESTION}"] = fill(question, {"frame_count": "4"})
    return texts
