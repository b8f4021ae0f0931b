"""Makes a prompt for people: the words of the prompt, without the instructions on a model's output format.

The page has fields for the values that a model writes as JSON. It also offers the complete prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_AS_JSON = re.compile(r" as (?:a|one) JSON (?:array|list|object)\b")
"""The end of a request for JSON."""
_SENTENCE = re.compile(r"(?<=[.:!?])\s+")
_FORMAT = re.compile(r"\bJSON\b|^You may reason\b")
_OF_BOXES = re.compile(r"^(?:- )?A box is ")
_VALUE = ("[[", "[{", '["', "{")
"""Beginnings of a line with an example answer."""


def prompt_for_people(text: str) -> str:
    """Return a prompt's text without instructions on JSON and on boxes in numbers, and without example answers.

    >>> prompt_for_people("Name all things. Answer with a JSON array.")
    'Name all things.'
    >>> prompt_for_people("List all relations as a JSON array.")
    'List all relations.'
    """
    paragraphs = ("\n".join(_lines_for_people(paragraph)) for paragraph in text.split("\n\n"))
    return "\n\n".join(filter(None, paragraphs))


def _lines_for_people(paragraph: str) -> Iterator[str]:
    """Yield the lines before the first line about the format; a line that introduces an example is removed too."""
    lines = _AS_JSON.sub("", paragraph).split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith(_VALUE):
            return
        sentences = _SENTENCE.split(line)
        of_format = [index for index, sentence in enumerate(sentences) if _FORMAT.search(sentence)]
        if of_format:
            if of_format[0]:
                yield " ".join(sentences[: of_format[0]])
            return
        if not _OF_BOXES.match(line) and not following.startswith(_VALUE):
            yield line
