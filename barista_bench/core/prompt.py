"""Prompts: text and places for images; and the format in which a model writes boxes.

Tasks write prompts and models read them; neither knows the other. Media come first and the question last, so that
requests over the same frames share a prefix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """The place of one image: `index` counts in the list of images that travels with the prompt."""

    index: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """One system text (may be empty) and one user turn."""

    system: str
    parts: tuple[TextPart | ImagePart, ...]

    @property
    def image_count(self) -> int:
        return sum(isinstance(part, ImagePart) for part in self.parts)

    def as_text(self) -> str:
        """The whole prompt as one text, images as `<image N>`: for logs, fingerprints and reports."""
        user = "".join(p.text if isinstance(p, TextPart) else f"<image {p.index}>\n" for p in self.parts)
        return f"[system]\n{self.system}\n[user]\n{user}" if self.system else f"[user]\n{user}"


BoxOrder: TypeAlias = Literal["xyxy", "yxyx"]
"""Whether a model writes x or y first; both corners in the same order."""


@dataclass(frozen=True, slots=True)
class BoxFormat:
    """How a model writes a box: order of the corner coordinates, and the size that a full image side maps to.

    `scale` 1000 means integers 0..1000, 100 integers 0..100, 1 means fractions, None pixels of the image as sent.
    """

    order: BoxOrder = "xyxy"
    scale: int | None = 1000

    @classmethod
    def parse(cls, text: str) -> BoxFormat:
        """`yxyx/1000` and the like, with any whole scale of 1 and more, as settings and files write it.

        Raises:
            ValueError: it is none.

        >>> BoxFormat.parse("yxyx/1000"), BoxFormat.parse("xyxy/pixels")
        (BoxFormat(order='yxyx', scale=1000), BoxFormat(order='xyxy', scale=None))
        """
        match text.split("/"):
            case ["xyxy" | "yxyx" as order, "pixels"]:
                return cls(order, None)
            case ["xyxy" | "yxyx" as order, scale] if re.fullmatch("[1-9][0-9]{0,5}", scale):
                return cls(order, int(scale))
        raise ValueError(
            f"{text[:20]!r} is no box format: write xyxy or yxyx, then /pixels or the scale, such as /1000, /1 for "
            "fractions"
        )


WORDING = r"^((ours v|[a-z ]+[@:])[0-9a-f]{1,20})?$"
"""What the name of a wording looks like (`PromptTexts.wording`)."""


def by_hash(kind: str, sha256: str) -> str:
    """The name of a wording that is identified by its content alone.

    >>> by_hash("clone", "0123456789abcdef")
    'clone:01234567'
    """
    return f"{kind}:{sha256[:8]}"
