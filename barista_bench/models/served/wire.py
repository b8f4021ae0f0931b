"""Parses replies of servers: OpenAI's chat completions in all dialects, Anthropic's messages and Gemini's responses.

Some gateways pass Anthropic's and Gemini's replies on unchanged. Only the needed parts are decoded. Each part is
decoded separately, so that an odd part affects no other part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from barista_bench.models.finish_reasons import Meaning, meaning_of, said_reason
from barista_bench.models.served.errors import names_filter

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NULL = msgspec.Raw(b"null")
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]  # JSON readers of every language represent these integers exactly

# Matches escapes in order, so that an escaped backslash before `u` starts no escape. Group 1 is half a surrogate pair.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


class _Body(msgspec.Struct):
    """The fields read from a reply. `content` and `stop_reason` are Anthropic's; the last five are Gemini's."""

    choices: msgspec.Raw = _NULL
    usage: msgspec.Raw = _NULL
    model: object = None
    error: object = None
    kind: object = msgspec.field(default=None, name="object")
    message: object = None
    code: object = None
    prompt_filter_results: object = None
    prompt_annotations: object = None  # the name in earlier versions of Azure's API
    content: object = None
    stop_reason: object = None
    candidates: msgspec.Raw = _NULL
    usage_metadata: msgspec.Raw = msgspec.field(default=_NULL, name="usageMetadata")
    prompt_feedback: object = None
    prompt_feedback_camel: object = msgspec.field(default=None, name="promptFeedback")
    model_version: object = msgspec.field(default=None, name="modelVersion")


class ReplyTokens(NamedTuple):
    """The tokens of one call; a count is None if the server does not report it, or reports an impossible value."""

    input: int | None = None
    output: int | None = None
    thinking: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class WireChoice:
    """One choice of a reply.

    Args:
        content: the text of the answer or of a refusal. None means a missing text; an empty text is not the same.
        reasoning: thoughts that the server has separated from the answer.
        reason: the server's word for why the choice ended.
        meaning: the meaning of this word; "finished" if the server gives no word, None if the word is unknown.
        is_refused: the model or a filter declined.
        error: why the provider stopped; None for a complete answer.
        logprobs: the log-probabilities as sent by the server.
    """

    content: str | None
    reasoning: str | None
    reason: str
    meaning: Meaning | None
    is_refused: bool
    error: object
    logprobs: object


@dataclass(frozen=True, slots=True)
class WireReply:
    """A reply. `model` is the server's name for the model; `is_blocked` is True if a filter stopped the prompt."""

    choices: list[WireChoice]
    tokens: ReplyTokens
    model: str | None
    error: object
    is_blocked: bool


def read_wire_reply(body: bytes) -> WireReply:
    """Parse a reply. Half a surrogate pair becomes U+FFFD.

    Raises:
        DecodeError, UnicodeDecodeError, RecursionError: the body is not a JSON object.
    """
    try:
        reply = msgspec.json.decode(body, type=_Body)
    except msgspec.DecodeError:
        repaired = _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], body)
        if repaired == body:
            raise
        reply = msgspec.json.decode(repaired, type=_Body)
    model = reply.model or reply.model_version
    # The form of earlier vLLM versions.
    error = {"message": reply.message, "code": reply.code} if reply.kind == "error" else None
    return WireReply(
        choices=[_read_choice(choice) for choice in _choices(reply)],
        tokens=_tokens(_fields(reply.usage) or _fields(reply.usage_metadata)),
        model=model if isinstance(model, str) else None,
        error=reply.error or error,
        is_blocked=_is_blocked(reply),
    )


def _choices(reply: _Body) -> list[Mapping[str, Any]]:
    """Return the choices in the form of OpenAI's API."""
    if choices := _items(reply.choices):
        return choices
    if isinstance(reply.stop_reason, str):
        return [{"finish_reason": reply.stop_reason, "message": {"content": reply.content}}]
    return [
        {"finish_reason": each.get("finishReason"), "message": {"content": _mapping(each.get("content")).get("parts")}}
        for each in _items(reply.candidates)
    ]


def _is_blocked(reply: _Body) -> bool:
    """Return True if Gemini gives a reason for blocking the prompt, or Azure's filters stopped it."""
    results = reply.prompt_filter_results or reply.prompt_annotations
    is_stopped = bool(results) and ("filtered" not in str(results) or names_filter(results))
    feedback = _mapping(reply.prompt_feedback_camel or reply.prompt_feedback)
    return is_stopped or bool(feedback.get("blockReason") or feedback.get("block_reason"))


def _read_choice(choice: Mapping[str, Any]) -> WireChoice:
    message = _mapping(choice.get("message"))
    parts = list(_parts(message.get("content")))
    content, refusal = _join(parts, "text"), message.get("refusal") or _join(parts, "refusal")
    thoughts = [_join(_parts(message.get(name)), "text") for name in ("reasoning_content", "reasoning")]
    meaning, reason = _ending(choice)
    if content is None and meaning == "finished" and (message.get("tool_calls") or message.get("function_call")):
        meaning, reason = "tool call", "tool_calls"
    is_filtered = not content and names_filter(choice.get("content_filter_results"))
    is_refused = meaning == "filtered" or is_filtered or (isinstance(refusal, str) and refusal != "")
    is_whole = content is not None and meaning is not None and meaning != "broken off"
    return WireChoice(
        content=content or (refusal if is_refused and isinstance(refusal, str) else content),
        reasoning=next(filter(None, (*thoughts, _join(parts, "thought"))), None),
        reason=reason,
        meaning=meaning,
        is_refused=is_refused,
        error=None if is_whole else choice.get("error"),
        logprobs=choice.get("logprobs"),
    )


def _ending(choice: Mapping[str, Any]) -> tuple[Meaning | None, str]:
    """Return why a choice ended: the meaning and the server's word. OpenRouter adds a second, more detailed word."""
    # In `stop_reason`, vLLM gives the text that ended the answer.
    names = ("finish_reason", "finishReason", "stop_reason")
    said = [said_reason(choice.get(name)) for name in names]
    reason = said[0] or said[1] or (said[2] if meaning_of(said[2]) else "")
    native = said_reason(choice.get("native_finish_reason"))
    if not (reason or native):
        return None if choice.get("error") else "finished", ""
    meaning, native_meaning = meaning_of(reason), meaning_of(native)
    if meaning is None or (meaning == "finished" and native_meaning in ("filtered", "length")):
        return (native_meaning, native) if native_meaning else (None, reason or native)
    return meaning, reason


def _parts(content: object) -> Iterator[tuple[Literal["text", "thought", "refusal"], str]]:
    """Yield the texts of a message's content, each with its type."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield "text", part
        elif isinstance(part, Mapping):
            kind, text = part.get("type"), part.get("text")
            if part.get("thought") is True or kind in ("thinking", "reasoning"):
                yield "thought", _join(_parts(text or part.get(str(kind))), "text") or ""
            elif kind == "refusal" and isinstance(part.get("refusal"), str):
                yield "refusal", part["refusal"]
            elif kind in (None, "text", "output_text") and isinstance(text, str):
                yield "text", text


def _join(parts: Iterable[tuple[str, str]], wanted: str) -> str | None:
    texts = [text for kind, text in parts if kind == wanted]
    return "".join(texts) if texts else None


def _tokens(usage: Mapping[str, msgspec.Raw]) -> ReplyTokens:
    """Return the tokens of a call.

    Some servers leave the reasoning out of `completion_tokens`, but not out of the total.
    """
    inputs = _count(usage, "prompt_tokens", "input_tokens", "promptTokenCount")
    outputs = _count(usage, "completion_tokens", "output_tokens", "candidatesTokenCount")
    total = _count(usage, "total_tokens", "totalTokenCount")
    if inputs is not None and total is not None and total >= inputs:
        outputs = max(outputs or 0, total - inputs)
    details = _fields(usage.get("completion_tokens_details", _NULL))
    thinking = _count(details, "reasoning_tokens") or _count(usage, "thoughtsTokenCount")
    cached = _count(_fields(usage.get("prompt_tokens_details", _NULL)), "cached_tokens")
    return ReplyTokens(inputs, outputs, _count_within(thinking, outputs), _count_within(cached, inputs))


def _count_within(count: int | None, whole: int | None) -> int | None:
    return count if count is not None and whole is not None and count <= whole else None


def _count(usage: Mapping[str, msgspec.Raw], *names: str) -> int | None:
    """Return the first of these token counts; `"5"` and `5.0` count as 5, and all other values as None."""
    raw = next((usage[name] for name in names if name in usage), _NULL)
    try:
        return msgspec.json.decode(raw, type=_Count, strict=False)
    except _UNREADABLE:
        return None


def _fields(raw: msgspec.Raw) -> Mapping[str, msgspec.Raw]:
    """Return the fields of an object, still undecoded; empty if it is not an object."""
    try:
        return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except _UNREADABLE:
        return {}


def _items(raw: msgspec.Raw) -> list[Mapping[str, Any]]:
    """Return the items of a list, with an empty object for each unreadable item; empty if it is not a list."""
    try:
        return [_read_item(item) for item in msgspec.json.decode(raw, type=list[msgspec.Raw])]
    except _UNREADABLE:
        return []


def _read_item(raw: msgspec.Raw) -> Mapping[str, Any]:
    try:
        return _mapping(msgspec.json.decode(raw))
    except _UNREADABLE:
        return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
