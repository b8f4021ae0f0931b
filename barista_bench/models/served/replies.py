"""Reads completions from a server's JSON. The JSON is not trusted: a reply of the wrong form is requested again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec

from barista_bench.models.answers import cut_at_stop, is_still_thinking, split_reasoning, tags_in
from barista_bench.models.base import Completion, FinishReason, TokenLogprob
from barista_bench.models.served.errors import DeclinedError, Endpoint, TransientError, error_in_reply
from barista_bench.models.served.wire import ReplyTokens, WireChoice, read_wire_reply


class _Top(msgspec.Struct):
    token: str
    logprob: float
    bytes: object = None


class _Token(_Top):
    top_logprobs: list[_Top] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """Rules for reading an answer; `ServedModel.load` and `GenerationConfig` describe them."""

    think_tags: tuple[str, str] | None
    opens_thinking: bool
    stop: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of one call: a completion or an error for each choice, and the tokens used.

    `served_as` is the server's name for the model; it may be more exact than ours.
    """

    choices: list[Completion | TransientError]
    input_tokens: int | None
    output_tokens: int | None
    served_as: str | None

    @property
    def is_refusal(self) -> bool:
        """True if the reply contains only refusals."""
        return all(isinstance(each, Completion) and each.finish_reason == "refusal" for each in self.choices)


def read_reply(body: bytes, rules: ReadingRules, endpoint: Endpoint, wanted: int, *, answered: bool = False) -> Reply:
    """Read the answer to a call for `wanted` choices; extra choices are dropped.

    An unreadable choice affects no other choice. Token counts that are not integers from 0 to 2**53 become None, and
    half a surrogate pair becomes U+FFFD. The answer stays valid in both cases. `answered`: see `status_error`.

    A call counts its input once for any number of choices: the first completion has the input tokens (and the cached
    tokens), and the other completions have 0. The output tokens of a call are divided in proportion to the lengths of
    the texts, and the thinking tokens in proportion to the lengths of the thoughts. So all sums are exact.

    Raises:
        CallError, ModelError: no choice can be read.
    """
    try:
        reply = read_wire_reply(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(endpoint, f"no chat completion ({endpoint.quote(str(error))})") from None
    choices = [_read_choice(choice, rules, endpoint) for choice in reply.choices[:wanted]]
    if not any(isinstance(choice, Completion) for choice in choices):
        if reply.error is not None:  # some gateways report errors with a status of 200
            raise error_in_reply(reply.error, endpoint, answered=answered)
        if reply.is_blocked:
            raise DeclinedError("the prompt was blocked")
        if not choices:
            raise _invalid(endpoint, "no choices")
    return Reply(
        choices=_with_tokens(choices, reply.tokens),
        input_tokens=reply.tokens.input,
        output_tokens=reply.tokens.output,
        served_as=None if reply.model is None else endpoint.quote(reply.model),
    )


def _invalid(endpoint: Endpoint, content: str) -> TransientError:
    return TransientError(f"{endpoint}: the answer holds {content}", congestion=None)


def _read_choice(choice: WireChoice, rules: ReadingRules, endpoint: Endpoint) -> Completion | TransientError:
    if choice.is_refused:
        return Completion(endpoint.scrub(choice.content or ""), finish_reason="refusal")
    if choice.error is not None:
        error = error_in_reply(choice.error, endpoint, answered=True)
        if isinstance(error, DeclinedError):
            return Completion(endpoint.scrub(choice.content or ""), finish_reason="refusal")
        return TransientError(str(error), congestion=None)
    meaning, reason = choice.meaning, endpoint.quote(choice.reason)
    is_empty = choice.content is None and choice.reasoning is None
    if meaning == "broken off" or (meaning is None and is_empty):
        return _invalid(endpoint, f"an answer that ended with {reason!r}")
    if meaning == "finished" and is_empty:
        return _invalid(endpoint, "a message without content")
    completion = _answer(choice, rules, "length" if meaning == "length" else "stop", endpoint)
    return completion if meaning in ("finished", "length") else replace(completion, note=f"ended with {reason!r:.60}")


def _answer(choice: WireChoice, rules: ReadingRules, finish_reason: FinishReason, endpoint: Endpoint) -> Completion:
    content, separate_reasoning = choice.content, choice.reasoning
    tags = rules.think_tags or tags_in(content or "", is_cut=finish_reason == "length")
    opening = tags[0] if rules.opens_thinking and separate_reasoning is None and content else ""
    text = opening + (content or "")
    # The server separates the thoughts itself, and no answer came after them.
    if is_still_thinking(text, tags) or (finish_reason == "length" and separate_reasoning and not text):
        finish_reason = "thinking"
    thought, answer = split_reasoning(text, tags)
    answer = cut_at_stop(answer, rules.stop)
    reasoning = "\n".join(part for part in (separate_reasoning, thought) if part) or None
    return Completion(
        text=endpoint.scrub(answer),
        finish_reason=finish_reason,
        reasoning=None if reasoning is None else endpoint.scrub(reasoning),
        logprobs=_answer_logprobs(_logprobs(choice.logprobs), answer, endpoint),
    )


def _logprobs(raw: object) -> _Logprobs | None:
    """Return the log-probabilities of a choice; None if they have another form, and the choice stays valid."""
    try:
        return msgspec.convert(raw, _Logprobs)
    except msgspec.ValidationError:
        return None


def _answer_logprobs(logprobs: _Logprobs | None, answer: str, endpoint: Endpoint) -> tuple[TokenLogprob, ...] | None:
    """Return only the answer's tokens: servers also list the reasoning's tokens, and the token that ended the answer.

    The result is None if the tokens do not spell the answer, since their position is then unknown, or if they spell our
    key.
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
    """Return the bytes of a token; its text may be incomplete, since a token may hold only part of a character."""
    if isinstance(token.bytes, list) and all(isinstance(b, int) and 0 <= b < 256 for b in token.bytes):
        return bytes(token.bytes)
    return token.token.encode("utf-8", "surrogatepass")


def _with_tokens(
    choices: Sequence[Completion | TransientError], tokens: ReplyTokens
) -> list[Completion | TransientError]:
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
    """Return integers that are proportional to the lengths and add up to the total."""
    if total is None:
        return [None] * len(lengths)
    weights = [length + 1 for length in lengths]  # + 1, since an empty answer also took a token
    sums = [total * sum(weights[:n]) // max(1, sum(weights)) for n in range(len(weights) + 1)]
    return [after - before for before, after in pairwise(sums)]
