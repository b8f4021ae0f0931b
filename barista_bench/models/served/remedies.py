"""Finds the setting to change in the message with which a server refuses a request."""

from __future__ import annotations

import re
from collections.abc import Collection

_SMALLER_IMAGES = "send smaller images (max_side, jpeg_quality)"
_SHORTER = (
    "give a smaller max_new_tokens, fewer or smaller images (max_side), "
    "or serve the model with a longer context (vLLM: --max-model-len)"
)
_TOO_LONG = (  # the prompt and the answer together are too long for the model
    r"context[ _](?:length|window|size|limit)|max[ _]model[ _]len|maximum model length|prompt is too long"
    r"|\binput (?:is |token )?(?:too long|count|length)|\btokens?\b.{0,60}\b(?:exceed|longer than)"
    r"|exceed\w*\b.{0,60}\btokens?\b|\binputs\b.{0,20}\bmax_new_tokens"
)
_TOO_MANY = (
    r"at most \d+ (?:image|video)|up to \d+ images?|too many images|only (?:one|1|a single) image"
    r"|(?:maximum|max|limit)\b.{0,20}\b(?:number|count) of images|\d+ images? (?:is|are) (?:allowed|supported)"
)
_REMEDIES = (
    (_TOO_LONG, _SHORTER),
    # The server cannot read a data URL of this length; Azure then calls it an invalid URL.
    (r"absolute ur[il]|(?:data )?ur[il] (?:is |string is )?too long|invalid ur[il]: the ur[il]", _SMALLER_IMAGES),
    (
        _TOO_MANY,
        "ask for fewer frames (an option of the task), or let the server take more "
        """(vLLM: --limit-mm-per-prompt '{"image": 16}')""",
    ),
    (
        r"not a multimodal model|not support (?:image|vision|multimodal)|image input is not supported"
        r"|unknown variant .?image_url|image_url.{0,20} (?:is )?not supported|no vision",
        "name a model that takes images, or withhold them with text_only:MODEL",
    ),
    (
        r"image.{0,40}\b(?:too large|too big|exceed)|(?:request|payload|body).{0,20}\b(?:too large|too big)",
        _SMALLER_IMAGES,
    ),
    (
        r"response_format|json_schema|structured output",
        "this server or model does not support this schema: leave structured_output off",
    ),
    (
        r"media_io_kwargs|\bvideos?\b|video_url",
        "leave frames_as=video out, or ask vLLM, started with --trust-request-mm-kwargs",
    ),
    (
        r"reasoning_effort|enable_thinking|\breasoning\b.{0,40}\b(?:support|unknown|allow)",
        "leave reasoning out, or name the field that this server knows with reasoning_field",
    ),
    (r"\btop_k\b|repetition_penalty", "leave out top_k, repetition_penalty and explicit_sampling"),
    (r"logprobs", "give top_logprobs=0"),
)
_ENGINE_REMEDIES = (
    (_TOO_LONG, "give a larger max_model_len with --engine-args, or fewer or smaller images (--max-pixels)"),
    (_TOO_MANY, "ask for fewer frames (an option of the task), or give limit_mm_per_prompt with --engine-args"),
)
_PATTERNS = tuple((re.compile(pattern), remedy) for pattern, remedy in _REMEDIES)
_LIMITS = ("max_tokens", "max_completion_tokens")
_UNKNOWN_FIELD = re.compile(
    r"unsupported|\bnot (?:be |a )?(?:support|permit|allow|accept|recogni|known|exist)|unknown|unrecogni|unexpected"
    r"|extra|deprecated|instead"
)
_MAX_SEARCHED = 2000  # number of characters of a message that are searched


def remedy_for(status: int, message: str, sent: Collection[str] = ()) -> str:
    """Return the change that helps when a server refuses a request with this message; empty if no change is known.

    Args:
        sent: fields of the request; they are not suggested again.
    """
    if status == 413:
        return _SMALLER_IMAGES
    words = message[:_MAX_SEARCHED].lower()
    for pattern, remedy in _PATTERNS:
        if pattern.search(words):
            return remedy
    # The message names the refused field first; the field to use instead may follow.
    named = sorted((words.find(name), name) for name in _LIMITS if name in words)
    if named:
        other = _LIMITS[named[0][1] == _LIMITS[0]]
        is_advised = other not in sent and _UNKNOWN_FIELD.search(words)
        return f"give token_limit_field={other}" if is_advised else "give another max_new_tokens"
    for name in ("temperature", "top_p", "seed"):
        if re.search(rf"\b{name}\b", words):
            return f"if the model does not take {name}, give omit={name}"
    return ""


def engine_remedy_for(message: str) -> str:
    """Return the change that helps when our vLLM refuses a prompt with this message; empty if no change is known."""
    words = message[:_MAX_SEARCHED].lower()
    return next((remedy for pattern, remedy in _ENGINE_REMEDIES if re.search(pattern, words)), "")
