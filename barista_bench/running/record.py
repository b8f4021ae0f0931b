"""One line of a sample log."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated

import msgspec

from barista_bench.models.base import TokenLogprob
from barista_bench.task import Status


class LoggedToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One token of an answer as `[token, logprob, [[token, logprob], ...]]`; None stands for minus infinity."""

    token: str
    logprob: float | None
    top: tuple[tuple[str, float | None], ...] = ()


class SampleRecord(msgspec.Struct, frozen=True, gc=False):
    """One answer of one run.

    Args:
        key: identity of the sample: fingerprint, model, generation settings and run.
        fingerprint: identity of what was asked: task version, prompt text, media content.
        run: 0-based index of the repetition.
        status: as found when the answer came; scoring parses the text anew.
        text: the answer without reasoning; None where there is none.
        error: why there is no answer, or why it cannot be read.
        seconds: time of generation, shared evenly by the samples of a batch.
        prompt: SHA-256 of the prompt's text; empty in logs of version 0.1.
        media: digest of the media that were sent; empty in logs of version 0.1.
        batch_size: samples that were generated together; None where that means nothing.
        rank: process of the launch that asked; None for a single process.
        logprobs: of the answer's tokens, where they were asked for and given.
        earlier: answers to the questions before the last one, of tasks that ask in several steps; tokens and seconds
            are then those of all steps.
    """

    key: str
    fingerprint: str
    example_id: str
    run: Annotated[int, msgspec.Meta(ge=0)]
    status: Status
    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0
    prompt: str = ""
    media: str = ""
    batch_size: int | None = None
    rank: int | None = None
    logprobs: tuple[LoggedToken, ...] | None = None
    earlier: tuple[str, ...] | None = None

    @property
    def finished(self) -> bool:
        return self.status is not Status.INFRA_ERROR


_DECODER = msgspec.json.Decoder(SampleRecord)
_MAX_TOKENS = 2**53
"""Up to here sums and rates of tokens are exact; no answer has as many."""


def logged_logprobs(tokens: Sequence[TokenLogprob] | None) -> tuple[LoggedToken, ...] | None:
    """A completion's log-probabilities as they are logged."""
    if tokens is None:
        return None
    return tuple(
        LoggedToken(one.token, _finite(one.logprob), tuple((token, _finite(value)) for token, value in one.top))
        for one in tokens
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def encode_record(record: SampleRecord) -> bytes:
    """A record as JSON without a line end."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        # Lone surrogates can come out of a byte-level tokenizer and have no UTF-8 form: they become "?".
        return json.dumps(msgspec.to_builtins(record), ensure_ascii=False).encode("utf-8", errors="replace")


def decode_record(line: bytes) -> SampleRecord | None:
    """The record of one line; None where it is none.

    Absurd counts of tokens are None: a server may say anything, and its answer still counts.

    Every field is checked wherever a line is read: were only the key read on resuming, a sample whose text is damaged
    would count as finished there, and be missing when it is scored.
    """
    try:
        record = _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    tokens_in, tokens_out = record.input_tokens, record.output_tokens
    if _countable(tokens_in) and _countable(tokens_out):
        return record
    return msgspec.structs.replace(
        record,
        input_tokens=tokens_in if _countable(tokens_in) else None,
        output_tokens=tokens_out if _countable(tokens_out) else None,
    )


def _countable(tokens: int | None) -> bool:
    return tokens is None or 0 <= tokens <= _MAX_TOKENS
