"""Errors of one call, sorted by what to do about them (try again, give up the request, stop the run), and the pauses
that a server asks for.

Messages quote the server, which may quote us back: keys are cut out of everything, and no exception keeps its cause,
whose request carries the key in its headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from barista_bench.errors import ModelError
from barista_bench.files.reading import json_value

MAX_PAUSE = 120.0
"""The longest pause in seconds that a server may ask for; after it the server is asked again."""
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)", re.ASCII)
_MAX_HEADER = 64  # characters

_MAX_QUOTED = 300  # characters of a server's message that are repeated
_SECRET_LENGTH = 8  # shorter "keys" (EMPTY, none) are placeholders, and cutting them out would spoil texts

_POLICY_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}) | frozenset(
    {"moderation_blocked", "cyber_policy_violation", "bio_policy_violation", "safety"}
)
_FLAGGED = re.compile(r"requires moderation|\bflagged\b")
_AGAINST_POLICY = re.compile(r"\bflagged\b|usage polic(?:y|ies)")
# Here our account is flagged, and not what was asked: no request would be answered, and the model refuses none.
_OURS = r"\b(?:account|key|organi[sz]ation|project|ip|address)\b"
_ACCOUNT_FLAGGED = re.compile(rf"{_OURS}[^.]*\bflagged\b|\bflagged {_OURS}")
_KEY_WORDS = re.compile(r"key|token|credential|authori[sz]|bearer")
_MAX_SEARCHED = 1000  # characters of a message that are looked through
_NO_SUCH_MODEL = frozenset({"model_not_found", "deploymentnotfound", "unknown_model"})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_TRANSIENT = frozenset({408, 409, 425, 429})
_PERMANENT_5XX = frozenset({501, 505})


class CallError(Exception):
    """One call did not give what was asked for. Its text is free of secrets."""


class TransientError(CallError):
    """Worth another attempt.

    Args:
        congestion: in a word or two why the server is asked too much or cannot be reached; None where neither holds.
        wait: seconds that the server asked for, None where it did not.
        rate_limited: whether it was a 429, which concerns every call and not this one alone.
    """

    def __init__(
        self, message: str, *, congestion: str | None, wait: float | None = None, rate_limited: bool = False
    ) -> None:
        super().__init__(message)
        self.congestion, self.wait, self.rate_limited = congestion, wait, rate_limited


class RejectedError(CallError):
    """The server does not take this request, and would not at the next attempt either.

    Args:
        status: the HTTP status; 400 and 422 may be about one field of the request, such as `n`.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class DeclinedError(CallError):
    """A content policy stood in the way: the model refused, as far as the benchmark is concerned."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The model and server that are asked, for messages, from which the key is cut out."""

    model: str
    url: str
    key_env: str | None
    key: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"model {self.model} at {self.url}"

    def scrub(self, text: str) -> str:
        """The text without the key, as long as the key is long enough to be one."""
        return text.replace(self.key, "[key]") if len(self.key) >= _SECRET_LENGTH else text

    def quote(self, text: str) -> str:
        """One line of at most 300 characters without the key, which UTF-8 can hold."""
        line = " ".join(self.scrub(text)[: 10 * _MAX_QUOTED].split()).encode("utf-8", "replace").decode()
        return line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED]}..."


def status_error(
    status: int, headers: Mapping[str, str], body: bytes, endpoint: Endpoint, *, answered: bool = False
) -> CallError | ModelError:
    """The error that stands for an HTTP status that is no success.

    Args:
        answered: the server has answered other requests to this model, so a 403 is about this request, not our key.
    """
    codes, text, is_moderated = _read_error(body)
    message = endpoint.quote(text)
    if _declines(status, codes, text, is_moderated=is_moderated):
        return DeclinedError(message)
    if (fatal := _fatal_error(status, codes, message, endpoint, answered=answered)) is not None:
        return fatal
    if status == 403 and _KEY_WORDS.search(message.lower()):
        message = "(not repeated, since it speaks of keys)"  # servers repeat parts of ours there
    if status in _TRANSIENT or (status >= 500 and status not in _PERMANENT_5XX):
        return TransientError(
            f"{endpoint}: answered {status}: {message}",
            congestion=str(status) if status == 429 or status >= 500 else None,
            wait=retry_after(headers),
            rate_limited=status == 429,
        )
    return RejectedError(f"{endpoint}: refused the request with {status}: {message}{_hint(status, message)}", status)


def _declines(status: int, codes: frozenset[str], text: str, *, is_moderated: bool) -> bool:
    """Whether a content policy, and not the key or the form of the request, is what stands in the way."""
    if status not in (400, 403, 451):
        return False
    if codes & _POLICY_CODES or (status == 403 and is_moderated):
        return True
    is_invalid = status == 400 and "invalid_prompt" in codes
    return is_invalid and _AGAINST_POLICY.search(text[:_MAX_SEARCHED].lower()) is not None


def _fatal_error(
    status: int, codes: frozenset[str], message: str, endpoint: Endpoint, *, answered: bool
) -> ModelError | None:
    """Errors that every other request would meet as well."""
    if status == 401 or (status == 403 and not answered):
        # Not quoted: servers repeat (parts of) the key here.
        if endpoint.key_env is None:
            remedy = "name the environment variable that holds the key with api_key_env"
            return ModelError(f"{endpoint}: wants a key ({status}), and none was sent. Remedy: {remedy}")
        remedy = f"check the environment variable {endpoint.key_env}"
        return ModelError(f"{endpoint}: refused our key ({status}). Remedy: {remedy}")
    if status == 404 or codes & _NO_SUCH_MODEL:
        return ModelError(
            f"{endpoint}: there is no such model or endpoint ({status}: {message}). Remedy: compare the name with "
            f"{endpoint.url}/models; base_url usually ends in /v1"
        )
    if status == 402 or (status == 429 and codes & _NO_MONEY):
        return ModelError(f"{endpoint}: the account's quota is used up ({status}: {message}). Remedy: raise it")
    if 300 <= status < 400:
        return ModelError(f"{endpoint}: the server redirects ({status}). Remedy: give that address as base_url")
    return None


def _hint(status: int, message: str) -> str:
    """A remedy for the refusals that a setting can answer."""
    lower = message.lower()
    if status == 413:
        return ". Remedy: send smaller images (max_image_side, jpeg_quality)"
    if "response_format" in lower or "json_schema" in lower:
        return ". Remedy: this server or model cannot be held to a schema so: leave structured_output off"
    if "media_io_kwargs" in lower or "video" in lower:
        return ". Remedy: leave frames_as=video out, or ask vLLM, started with --trust-request-mm-kwargs"
    # The refused field is named first, perhaps followed by the one to use.
    positions = sorted((lower.find(name), name) for name in ("max_tokens", "max_completion_tokens") if name in lower)
    if positions:
        other = "max_tokens" if positions[0][1] == "max_completion_tokens" else "max_completion_tokens"
        return f". Remedy: try token_limit_field={other}, or another max_new_tokens"
    for name in ("temperature", "top_p", "seed"):
        if name in lower:
            return f". Remedy: if the model does not take {name}, give omit={name}"
    return ""


def _read_error(body: bytes) -> tuple[frozenset[str], str, bool]:
    """Lower-case error codes of a body, its message, and whether it is the word of a moderator on what was asked.

    A body in none of the shapes that servers use is itself the message.
    """
    text = body[: 64 * 1024].decode("utf-8", "replace")
    data = json_value(text)
    if not isinstance(data, dict):
        return frozenset(), text, False
    return _error_codes(data), _message(data) or text, _is_moderation(data)


def _is_moderation(data: Mapping[str, object]) -> bool:
    """Whether an error is a moderator's: by `error.metadata`, which gives reasons (OpenRouter), or else by its words.

    Only JSON is read: a firewall's page may say `flagged` too, and means our address.
    """
    error = data.get("error")
    metadata = error.get("metadata") if isinstance(error, dict) else None
    if isinstance(metadata, dict) and any(metadata.get(key) for key in ("reasons", "flagged_input")):
        return True
    words = _message(data)[:_MAX_SEARCHED].lower()
    return _FLAGGED.search(words) is not None and _ACCOUNT_FLAGGED.search(words) is None


def _error_codes(data: Mapping[str, object]) -> frozenset[str]:
    """Codes and types in an error object, its `error` and the `innererror`s in that, in lower case."""
    codes: set[str] = set()
    level: object = data
    for inner in ("error", "innererror", "innererror", ""):
        if not isinstance(level, dict):
            break
        codes |= {str(level[key]).lower() for key in ("code", "type") if isinstance(level.get(key), str | int)}
        level = level.get(inner)
    return frozenset(codes)


def _message(data: Mapping[str, object]) -> str:
    error = data.get("error")
    for level in (error, data):
        if isinstance(level, str):
            return level
        if isinstance(level, dict):
            for key in ("message", "detail", "error"):
                if isinstance(level.get(key), str):
                    return str(level[key])
    return ""


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that the server asks for (`Retry-After`, RFC 9110 10.2.3, or `retry-after-ms`); None where it does not.

    Neither negative nor longer than `MAX_PAUSE`; what cannot be read is None.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "")[:_MAX_HEADER].strip()
        if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII):
            return min(float(value) * unit, MAX_PAUSE)
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", "")[:_MAX_HEADER])
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(seconds, 0.0), MAX_PAUSE)


def allowance_pause(headers: Mapping[str, str], tokens: int) -> tuple[float, str] | None:
    """Seconds to wait, and for what, where the server says that its allowance is used up; None where it is not.

    Args:
        headers: an answer's, with `x-ratelimit-remaining-...` and `x-ratelimit-reset-...` where the server has them.
        tokens: those that a call takes, as far as is known.
    """
    longest: tuple[float, str] | None = None
    for kind, needed in (("requests", 1), ("tokens", max(1, tokens))):
        remaining = headers.get(f"x-ratelimit-remaining-{kind}", "")[:_MAX_HEADER].strip()
        seconds = duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
        if re.fullmatch(r"-?\d+", remaining, re.ASCII) and int(remaining) < needed and seconds is not None:
            longest = max(longest or (0.0, ""), (seconds, f"no {kind} left"))
    return longest


def duration(text: str) -> float | None:
    """Seconds of a duration such as `20ms`, `1m30s` or `6.5` (seconds); None for anything else, or above a day.

    >>> duration("1m30s"), duration("20ms"), duration("6.5"), duration("soon")
    (90.0, 0.02, 6.5, None)
    """
    text = text[:_MAX_HEADER].strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        seconds = float(text)
    elif text and _DURATION.sub("", text) == "":
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
    else:
        return None
    return seconds if seconds <= _UNITS["d"] else None  # more is a date in seconds, or nonsense
