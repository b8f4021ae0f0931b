"""Completions read from a server's JSON. The JSON is hostile: what does not have the right form is tried again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from barista_bench.models.answers import cut_at_stop, is_still_thinking, split_reasoning
from barista_bench.models.base import Completion, FinishReason, TokenLogprob
from barista_bench.models.served.errors import Endpoint, TransientError, status_error

_STOPPED = frozenset({None, "stop", "eos", "eos_token", "end_turn", "stop_sequence"})
_CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "content_filtered", "refusal", "safety"})

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]  # what JSON readers of any language keep exactly

# Escapes one after the other, so that an escaped backslash before a `u` is none; group 1 is half a surrogate pair.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


class _Top(msgspec.Struct):
    token: str
    logprob: float
    bytes: object = None


class _Token(_Top):
    top_logprobs: list[_Top] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _ContentPart(msgspec.Struct):
    type: str = "text"
    text: object = None


class _Message(msgspec.Struct):
    content: str | list[_ContentPart] | None = None
    refusal: object = None
    reasoning_content: object = None
    reasoning: object = None


class _ReplyChoice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


_NULL = msgspec.Raw(b"null")


class _Details(msgspec.Struct):
    reasoning_tokens: msgspec.Raw = _NULL
    cached_tokens: msgspec.Raw = _NULL


class _Usage(msgspec.Struct):
    """Token counts, still to be read one by one: one that is no number costs neither the others nor the answer."""

    prompt_tokens: msgspec.Raw = _NULL
    completion_tokens: msgspec.Raw = _NULL
    total_tokens: msgspec.Raw = _NULL
    prompt_tokens_details: msgspec.Raw = _NULL
    completion_tokens_details: msgspec.Raw = _NULL


_PartT = TypeVar("_PartT", _Usage, _Details)


class _Reply(msgspec.Struct):
    choices: list[_ReplyChoice] | None = None
    usage: msgspec.Raw = _NULL
    model: object = None
    error: object = None


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """Rules by which an answer is taken apart: see `ServedModel.load` and `GenerationConfig`."""

    think_tags: tuple[str, str]
    opens_thinking: bool
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of one call: a completion or what is wrong with it for each choice, and the tokens that it took.

    `served_as` is the model's name in the server's words, which may be more exact than ours.
    """

    choices: list[Completion | TransientError]
    input_tokens: int | None
    output_tokens: int | None
    served_as: str | None


def read_reply(body: bytes, rules: ReadingRules, endpoint: Endpoint, wanted: int, *, answered: bool = False) -> Reply:
    """Read the answer to a call that asked for `wanted` choices; more than those are left out.

    Token counts that are no whole numbers from 0 to 2**53 are None, and half a surrogate pair becomes U+FFFD: neither
    makes an answer worse. `answered` is that of `status_error`.

    A call counts its input once, over however many choices: the first completion carries the input tokens (and the
    cached ones) and the others 0. The output tokens of a call are dealt out by the length of the texts, those of
    thinking by the length of the thoughts, so that sums are exact.

    Raises:
        CallError, ModelError: no choice can be had from it.
    """
    try:
        reply = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(endpoint, f"no chat completion ({endpoint.quote(str(error))})") from None
    if not reply.choices:
        if isinstance(reply.error, Mapping):  # some gateways report errors with a status of 200
            error_body = msgspec.json.encode({"error": reply.error})
            code = str(reply.error.get("code"))  # which may be an HTTP status
            is_status = code.isascii() and code.isdigit() and len(code) == 3 and code[0] in "45"
            raise status_error(int(code) if is_status else 502, {}, error_body, endpoint, answered=answered)
        raise _invalid(endpoint, "no choices")
    tokens = _tokens(reply.usage)
    return Reply(
        choices=_with_tokens([_read_choice(choice, rules, endpoint) for choice in reply.choices[:wanted]], tokens),
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        served_as=endpoint.quote(reply.model) if isinstance(reply.model, str) else None,
    )


def _decode(body: bytes) -> _Reply:
    try:
        return msgspec.json.decode(body, type=_Reply)
    except msgspec.DecodeError:
        repaired = _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], body)
        if repaired == body:
            raise
        return msgspec.json.decode(repaired, type=_Reply)


def _invalid(endpoint: Endpoint, content: str) -> TransientError:
    return TransientError(f"{endpoint}: the answer holds {content}", congestion=None)


def _read_choice(choice: _ReplyChoice, rules: ReadingRules, endpoint: Endpoint) -> Completion | TransientError:
    message, server_reason = choice.message, choice.finish_reason
    content = _text(message.content)
    refusal = message.refusal if isinstance(message.refusal, str) and message.refusal else None
    if refusal or server_reason in _FILTERED:
        return Completion(endpoint.scrub(content or refusal or ""), finish_reason="refusal")
    if server_reason not in _STOPPED | _CUT_OFF:
        return _invalid(endpoint, f"an answer that ended with {endpoint.quote(str(server_reason))!r}")
    finish_reason: FinishReason = "length" if server_reason in _CUT_OFF else "stop"
    reasonings = (message.reasoning_content, message.reasoning)
    separate_reasoning = next((text for text in reasonings if isinstance(text, str) and text), None)
    if content is None and separate_reasoning is None and finish_reason == "stop":
        return _invalid(endpoint, "a message without content")
    opening = rules.think_tags[0] if rules.opens_thinking and separate_reasoning is None and content else ""
    text = opening + (content or "")
    # Of a server that takes the thoughts out itself, nothing came after them.
    if is_still_thinking(text, rules.think_tags) or (finish_reason == "length" and separate_reasoning and not text):
        finish_reason = "thinking"
    thought, answer = split_reasoning(text, rules.think_tags)
    answer = cut_at_stop(answer, rules.stop)
    reasoning = "\n".join(part for part in (separate_reasoning, thought) if part) or None
    return Completion(
        text=endpoint.scrub(answer),
        finish_reason=finish_reason,
        reasoning=None if reasoning is None else endpoint.scrub(reasoning),
        logprobs=_answer_logprobs(choice.logprobs, answer, endpoint),
    )


def _text(content: str | list[_ContentPart] | None) -> str | None:
    if not isinstance(content, list):
        return content
    texts = [part.text for part in content if part.type == "text" and isinstance(part.text, str)]
    return "".join(texts) if texts else None


def _answer_logprobs(logprobs: _Logprobs | None, answer: str, endpoint: Endpoint) -> tuple[TokenLogprob, ...] | None:
    """The tokens of the answer alone: servers also list those of the reasoning, and the one that ended it.

    None where the tokens do not spell the answer, since nothing says then which of them belong to it, and where they
    spell our key.
    """
    if logprobs is None or logprobs.content is None or endpoint.scrub(answer) != answer:
        return None
    spellings = [_spelling(token) for token in logprobs.content]
    answer_bytes = answer.encode()
    start = b"".join(spellings).rfind(answer_bytes)
    if start < 0:
        return None
    answer_tokens, position = [], 0
    for token, spelling in zip(logprobs.content, spellings, strict=True):
        if position < start + len(answer_bytes) and position + len(spelling) > start:
            top = tuple((endpoint.scrub(other.token), other.logprob) for other in token.top_logprobs or ())
            answer_tokens.append(TokenLogprob(endpoint.scrub(token.token), token.logprob, top))
        position += len(spelling)
    return tuple(answer_tokens)


def _spelling(token: _Token) -> bytes:
    """The bytes that a token stands for; the text of a token may be a part of a character."""
    if isinstance(token.bytes, list) and all(isinstance(b, int) and 0 <= b < 256 for b in token.bytes):
        return bytes(token.bytes)
    return token.token.encode("utf-8", "surrogatepass")


class _Tokens(NamedTuple):
    """Tokens of one call; None where the server does not say it, or says what cannot be."""

    input: int | None = None
    output: int | None = None
    thinking: int | None = None
    cached: int | None = None


def _tokens(raw: msgspec.Raw) -> _Tokens:
    """The tokens of a call. Some servers leave reasoning out of `completion_tokens`, but not out of the total."""
    usage = _part(raw, _Usage)
    inputs, outputs, total = map(_count, (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens))
    if inputs is not None and total is not None and total >= inputs:
        outputs = max(outputs or 0, total - inputs)
    thinking = _count(_part(usage.completion_tokens_details, _Details).reasoning_tokens)
    cached = _count(_part(usage.prompt_tokens_details, _Details).cached_tokens)
    return _Tokens(inputs, outputs, _count_within(thinking, outputs), _count_within(cached, inputs))


def _part(raw: msgspec.Raw, form: type[_PartT]) -> _PartT:
    """An object of this form; an empty one in place of anything else."""
    try:
        return msgspec.json.decode(raw, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return form()


def _count_within(count: int | None, whole: int | None) -> int | None:
    return count if count is not None and whole is not None and count <= whole else None


def _count(raw: msgspec.Raw) -> int | None:
    """A number of tokens; `"5"` and `5.0` are 5, and what is not a number of tokens is None."""
    try:
        return msgspec.json.decode(raw, type=_Count, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _with_tokens(choices: Sequence[Completion | TransientError], tokens: _Tokens) -> list[Completion | TransientError]:
    completions = [choice for choice in choices if isinstance(choice, Completion)]
    answer_lengths = [len(choice.text) for choice in completions]
    thought_lengths = [len(choice.reasoning or "") for choice in completions]
    if tokens.output is None or tokens.thinking is None:
        thinking: list[int | None] = [None] * len(completions)
        outputs = _fractions(tokens.output, list(map(sum, zip(answer_lengths, thought_lengths, strict=True))))
    else:
        thinking = _fractions(tokens.thinking, thought_lengths)
        answer_tokens = _fractions(tokens.output - tokens.thinking, answer_lengths)
        outputs = [(answer or 0) + (thought or 0) for answer, thought in zip(answer_tokens, thinking, strict=True)]
    counts = iter(zip(outputs, thinking, strict=True))
    inputs, cached = tokens.input, tokens.cached
    with_counts: list[Completion | TransientError] = []
    for choice in choices:
        if isinstance(choice, Completion):
            output, thought = next(counts)
            choice = replace(
                choice, input_tokens=inputs, output_tokens=output, thinking_tokens=thought, cached_tokens=cached
            )
            inputs, cached = (None if count is None else 0 for count in (inputs, cached))
        with_counts.append(choice)
    return with_counts


def _fractions(total: int | None, lengths: Sequence[int]) -> list[int | None]:
    """Whole numbers in proportion to the lengths that add up to the total."""
    if total is None:
        return [None] * len(lengths)
    weights = [length + 1 for length in lengths]  # + 1: an empty answer took a token too
    sums = [total * sum(weights[:n]) // max(1, sum(weights)) for n in range(len(weights) + 1)]
    return [after - before for before, after in pairwise(sums)]
