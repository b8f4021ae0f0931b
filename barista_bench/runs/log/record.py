"""One line of a sample log: a record as JSON, between the log's version and a checksum of all that stands before it.

    {"log":2,"key":...,"checksum":"89abcdef"}

The checksum (CRC-32) is of the bytes as they stand, so that a line is whole or damaged whatever its JSON says. It finds
damage; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections.abc import Sequence
from typing import Annotated

import msgspec

from barista_bench.core.task import Status
from barista_bench.files.text_out import one_line
from barista_bench.models.base import TokenLogprob

LOG_VERSION = 2
"""1 had neither version nor checksum."""
DIGEST_BYTES = 16

_HEAD = b'{"log":%d,' % LOG_VERSION
_MARK = b',"checksum":"'
_ANY_HEAD = re.compile(rb'\{"log":([1-9][0-9]{0,5}),')


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
        LoggedToken(
            token_logprob.token,
            _finite(token_logprob.logprob),
            tuple((token, _finite(value)) for token, value in token_logprob.top),
        )
        for token_logprob in tokens
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def seal(content: bytes) -> bytes:
    """A line, its end included, that holds a JSON object with at least one field."""
    body = _HEAD + content[1:-1]
    return body + _MARK + b'%08x"}\n' % zlib.crc32(body)


def is_whole(line: bytes) -> bool:
    """Whether a line is one of this version, and as it was written."""
    body, _, checksum = line.rpartition(_MARK)
    return checksum == b'%08x"}\n' % zlib.crc32(body) and body.startswith(_HEAD)


def last_start(line: bytes) -> int:
    """Where the last record of a line begins, which is not its first where the end of the line before was damaged."""
    return max(0, line.rfind(_HEAD))  # no text within a record has it: its quotes are escaped


def log_version(first_line: bytes) -> int | None:
    """The version of the log that begins with this line; None where it is a damaged line of this version's."""
    if _MARK in first_line or first_line.startswith(_HEAD):
        body, _, checksum = first_line.rpartition(_MARK)
        head = _ANY_HEAD.match(body)
        return int(head[1]) if head and checksum == b'%08x"}\n' % zlib.crc32(body) else None
    return 1 if first_line.startswith(b'{"key":') and _decoded(first_line) else None


def encode_record(record: SampleRecord) -> bytes:
    """A record as a line, its end included."""
    try:
        return seal(msgspec.json.encode(record))
    except UnicodeEncodeError:
        # Lone surrogates can come out of a byte-level tokenizer and have no UTF-8 form: they become "?".
        return seal(json.dumps(msgspec.to_builtins(record), ensure_ascii=False).encode("utf-8", errors="replace"))


def decode_record(line: bytes) -> SampleRecord | None:
    """The record of one line; None where it is damaged, or none.

    Absurd counts of tokens are None: a server may say anything, and its answer still counts.
    """
    record = _decoded(line) if is_whole(line) else None
    if record is None:
        return None
    tokens_in, tokens_out = record.input_tokens, record.output_tokens
    if _countable(tokens_in) and _countable(tokens_out):
        return record
    return msgspec.structs.replace(
        record,
        input_tokens=tokens_in if _countable(tokens_in) else None,
        output_tokens=tokens_out if _countable(tokens_out) else None,
    )


def claimed_sample(line: bytes) -> str:
    """Which sample a damaged line says it is of, for people; empty where it does not say."""
    record = _decoded(line)
    return f" (of {one_line(record.example_id)[:200]} run {record.run}, as it says)" if record else ""


def _decoded(line: bytes) -> SampleRecord | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _countable(tokens: int | None) -> bool:
    return tokens is None or 0 <= tokens <= _MAX_TOKENS


def key_digest(key: str) -> bytes:
    """16 bytes that stand for a text in memory."""
    return hashlib.blake2b(key.encode("utf-8", errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


def sample_digest(key: str, fingerprint: str, example_id: str, run: int) -> bytes:
    """16 bytes that stand for a sample, in all that a record says of what it answers."""
    return key_digest(f"{run} {len(key)} {len(fingerprint)} {key}{fingerprint}{example_id}")


def record_digest(record: SampleRecord) -> bytes:
    """`sample_digest` of what a record says."""
    return sample_digest(record.key, record.fingerprint, record.example_id, record.run)
