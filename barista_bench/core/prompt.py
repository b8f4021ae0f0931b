"""Define prompts, and wordings of prompts as data, for tasks and models.

Media come first in a prompt and the question last, so that requests over the same frames share a prefix.

A wording is a versioned YAML file: `{version: int, system: text, user: text}`, with `{name}` places that the task
fills. Tasks that ask in several steps or wordings have further texts in `extra: {name: text}`. Users may bring their
own files, which `prompt_files.py` reads. Results hold the wording's hash and its origin: runs with different wordings
are never compared.

Images stand where the user text has a place for them: `{image}` is the next image, and `{images}` is all remaining
images. If there is a text `extra.image`, it comes before each of these remaining images; its `{number}` counts from 1.
One line break on either side of a place belongs to that place. If a user text has no places, all images come before the
text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barista_bench.errors import ConfigError

MAX_SHOWN = 20_000
"""Maximum number of characters shown of one fenced field; a note counts the rest."""
_STRUCTURAL = re.compile(r"[<>{}\[\]|`#]")


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """The place of one image. `index` is a position in the list of images that is sent with the prompt."""

    index: int


class Exchange(NamedTuple):
    """A question of a conversation, as text, and the model's answer to it."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One system text (may be empty) and one user turn, after the `earlier` exchanges of the same conversation."""

    system: str
    parts: tuple[TextPart | ImagePart, ...]
    earlier: tuple[Exchange, ...] = ()

    @property
    def image_count(self) -> int:
        return sum(isinstance(part, ImagePart) for part in self.parts)

    @property
    def joined_parts(self) -> tuple[TextPart | ImagePart, ...]:
        """Return the parts as chats hold them.

        Adjacent texts are joined, since templates and servers may trim parts.
        """
        parts: list[TextPart | ImagePart] = []
        for part in self.parts:
            if isinstance(part, TextPart) and parts and isinstance(last := parts[-1], TextPart):
                parts[-1] = TextPart(last.text + part.text)
            elif part != TextPart(""):
                parts.append(part)
        return tuple(parts)

    def messages(self) -> list[dict[str, Any]]:
        """Return the chat that `apply_chat_template` takes: a system turn, if the prompt has one, and the other turns.

        The place of each image is `{"type": "image"}`, in the order of the images.
        """
        turns = [(role, [_content(TextPart(text))]) for role, text in self.text_turns]
        turns += [("user", list(map(_content, self.joined_parts)))] if self.joined_parts else []
        return [{"role": role, "content": content} for role, content in turns]

    @property
    def text_turns(self) -> list[tuple[str, str]]:
        """Return (role, text) of each turn before the last: the system turn, if there is one, and `earlier`."""
        exchanges = (turn for each in self.earlier for turn in (("user", each.question), ("assistant", each.answer)))
        return [*([("system", self.system)] if self.system else []), *exchanges]

    def as_text(self) -> str:
        """Return the complete prompt as one text for logs, fingerprints and reports. Images become `<image N>`."""
        user = "".join(p.text if isinstance(p, TextPart) else f"<image {p.index}>\n" for p in self.parts)
        return "\n".join(f"[{role}]\n{text}" for role, text in (*self.text_turns, ("user", user)))


def _content(part: TextPart | ImagePart) -> dict[str, str]:
    return {"type": "text", "text": part.text} if isinstance(part, TextPart) else {"type": "image"}


WORDING_PATTERN = r"^(ours v|[a-z ]+[@:])[0-9a-f]{1,20}$"
"""The pattern of a wording's name (`PromptTexts.wording`)."""


def hash_name(kind: str, sha256: str) -> str:
    """Return the name of a wording that is identified only by its content.

    >>> hash_name("file", "0123456789abcdef")
    'file:01234567'
    """
    return f"{kind}:{sha256[:8]}"


IMAGE_PLACES = frozenset({"image", "images"})
IMAGE_TEXT = "image"
"""Name of the further text that comes before each of `{images}`."""
FROZEN_QUESTION = "frozen_question"
"""Name of the further text that a release freezes with every example. A wording without this text uses ours."""
IMAGE_PLACE = re.compile(r"\n?\{(image|images)\}\n?")


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The wording of one task.

    `sha256` is the hash of the file's bytes. For a file of several tasks, it is the hash of the task's texts.
    `wording` names the origin: `ours v<version>`, `domain:<hash>` for ours in the words of a domain file,
    `file:<hash>`, `release@<commit>`, or another harness's own name.
    """

    version: int
    system: str
    user: str
    sha256: str
    extra: Mapping[str, str] = field(default_factory=dict)
    wording: str = ""

    def __post_init__(self) -> None:
        if not self.wording:
            object.__setattr__(self, "wording", hash_name("file", self.sha256))

    def text(self, name: str, **values: str) -> str:
        """Return one of the further texts, with values in its places.

        Raises ConfigError if the wording has no such text.
        """
        if name not in self.extra:
            raise ConfigError(f"the prompt file has no text extra.{name}, which this task asks. Fix: write one")
        return fill(self.extra[name], values)

    def fill(self, **values: str) -> tuple[str, str]:
        """Return the system text and the user text with values in `{name}` places. Other braces stay: prompts show
        JSON.

        >>> PromptTexts(1, 'Answer {"a": 1}', "Find {what}", "").fill(what="cups")
        ('Answer {"a": 1}', 'Find cups')
        """
        return fill(self.system, values), fill(self.user, values)

    def prompt(self, image_count: int, /, **values: str) -> Prompt:
        """Return the texts with values in their places, and `image_count` images where the user text places them.

        Raises:
            ConfigError: the text places more or fewer images.

        >>> PromptTexts(1, "", "Frame:\\n{image}\\nFind {what}", "").prompt(1, what="cups").parts
        (TextPart(text='Frame:'), ImagePart(index=0), TextPart(text='Find cups'))
        """
        parts = tuple(self._parts(image_count, values))
        placed = sum(isinstance(part, ImagePart) for part in parts)
        if placed != image_count:
            raise ConfigError(
                f"the user text of the wording {self.wording} places {placed} images, but {image_count} are shown. "
                "Fix: write {image} once for each, {images} once for all, or neither to have them come first"
            )
        return Prompt(fill(self.system, values), parts)

    def _parts(self, image_count: int, values: Mapping[str, str]) -> Iterator[TextPart | ImagePart]:
        pieces = IMAGE_PLACE.split(self.user)  # before values are filled in: an example's text must not place images
        if len(pieces) == 1:
            yield from map(ImagePart, range(image_count))
        next_image = 0
        for index, piece in enumerate(pieces):
            if index % 2 == 0:
                yield from (TextPart(fill(piece, values)),) if piece else ()
            elif piece == "image":
                yield ImagePart(next_image)
                next_image += 1
            else:
                for image in range(next_image, image_count):
                    if IMAGE_TEXT in self.extra:
                        yield TextPart(fill(self.extra[IMAGE_TEXT], {"number": str(image + 1)}))
                    yield ImagePart(image)
                next_image = max(next_image, image_count)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into `{name}` places in one pass. Places inside values stay as they are."""
    if not values:
        return template
    places = re.compile("|".join(re.escape(f"{{{name}}}") for name in values))
    return places.sub(lambda match: values[match[0][1:-1]], template)


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a reply: an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def fence_material(fields: Mapping[str, str]) -> tuple[str, str]:
    """Return the name of the markers, and untrusted material as one line of JSON.

    Text of a model or a dataset can then neither leave its place nor imitate the prompt. Everything except plain
    letters, digits and ordinary punctuation is written as `\\uXXXX`: control and invisible characters, look-alikes of
    other scripts, and the characters of chat templates, tags, code fences and JSON objects. The line is placed between
    markers that contain its digest, which the text itself cannot contain.

    >>> name, line = fence_material({"answer": "a <b> cup"})
    >>> line, name.startswith("MATERIAL-")
    ('{"answer": "a \\\\u003cb\\\\u003e cup"}', True)
    """
    parts = []
    for name, text in fields.items():
        excerpt = (
            text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} (... {len(text) - MAX_SHOWN} more characters)"
        )
        escaped = json.dumps(excerpt, ensure_ascii=True).replace("\x7f", "\\u007f")
        parts.append(f'"{name}": ' + _STRUCTURAL.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped))
    line = f"{{{', '.join(parts)}}}"
    return f"MATERIAL-{hashlib.sha256(line.encode()).hexdigest()[:16]}", line
