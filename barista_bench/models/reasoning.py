"""Thoughts of a model, apart from its answer: reasoning is kept for people and never scored."""

from __future__ import annotations

from collections.abc import Sequence

THINK_TAGS = ("<think>", "</think>")
"""The tags that most models put around their reasoning."""


def split_reasoning(text: str, tags: tuple[str, str] = THINK_TAGS) -> tuple[str | None, str]:
    """Split the whole generated text into (reasoning, answer); reasoning is None where there is none.

    An open tag that never closes means that the budget ran out while thinking: all is reasoning, nothing is
    an answer. A closing tag alone means that the prompt had opened the thinking. Where thinking was closed,
    the answer is what follows the last closing tag, so that no thought can pass for an answer. Spaces before an answer
    are no part of it: for one and the same token some decoders write a space (vLLM's), others do not (transformers').

    >>> split_reasoning("<think>The cup is left of the jug.</think>left")
    ('The cup is left of the jug.', 'left')
    >>> split_reasoning("The template opened the thinking.</think>yes")
    ('The template opened the thinking.', 'yes')
    >>> split_reasoning("<think>the cup, or perhaps the ju")
    ('the cup, or perhaps the ju', '')
    >>> split_reasoning(" no thoughts")
    (None, 'no thoughts')
    """
    opening, closing = tags
    thought, closed, rest = text.rpartition(closing)
    if opening in rest:  # never closed: what stands before the tag is no answer either
        thought, rest = text, ""
    elif not closed:
        return None, text.lstrip(" ")
    return thought.replace(opening, "").replace(closing, "").strip(), rest.strip()


def thought_before(text: str, tags: tuple[str, str] = THINK_TAGS) -> tuple[str, str]:
    """The one thought that an answer held to a schema may begin with, and the answer, in which tags are text.

    >>> thought_before('<think>Left?</think>["</think>"]')
    ('<think>Left?</think>', '["</think>"]')
    >>> thought_before('["<think>"]'), thought_before("<think>Left")
    (('', '["<think>"]'), ('<think>Left', ''))
    """
    opening, closing = tags
    if not text.startswith(opening):
        return "", text
    thought, closed, answer = text.partition(closing)
    return thought + closed, answer


def is_still_thinking(text: str, tags: tuple[str, str] = THINK_TAGS) -> bool:
    """Whether the text ends within reasoning that never closed: it was cut off, whatever ended it.

    The text is the whole of it, beginning with the opening tag where the prompt has written that one.

    >>> is_still_thinking("<think>the cup, or perhaps the ju")
    True
    >>> is_still_thinking("<think>The cup.</think>left"), is_still_thinking("left")
    (False, False)
    """
    opening, closing = tags
    return opening in text.rpartition(closing)[2]


def cut_at_stop(answer: str, stop: Sequence[str]) -> str:
    """The answer up to the first of the stop texts.

    >>> cut_at_stop("left END right", ["STOP", "END"])
    'left '
    """
    return answer[: min((at for at in map(answer.find, stop) if at >= 0), default=len(answer))]
