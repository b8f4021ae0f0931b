"""Errors of one call, sorted by remedy (retry, drop the request, stop the run), and pauses that a server requests.

Messages quote the server, which may quote us back. So keys are cut out of every text, and no exception keeps its cause,
whose request carries the key in its headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from barista_bench.errors import ModelError, with_remedy
from barista_bench.files.reading import json_value
from barista_bench.models.finish_reasons import meaning_of
from barista_bench.models.served.remedies import remedy_for

MAX_PAUSE = 120.0
"""The longest pause in seconds that a server may ask for; after it the server is asked again."""
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)", re.ASCII)
_MAX_HEADER = 64  # characters

_MAX_QUOTED = 300  # characters of a server's message that are repeated
_SECRET_LENGTH = 8  # shorter "keys" (EMPTY, none) are placeholders, and cutting them out would spoil texts

_POLICY_CODES = frozenset(
    {"content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked", "cyber_policy_violation"}
    | {"bio_policy_violation", "data_inspection_failed", "datainspectionfailed"}
)
"""Codes of content policies, in addition to finish reasons of filtered answers."""
_FLAGGED = re.compile(r"requires moderation|\bflagged\b")
_AGAINST_POLICY = re.compile(r"\bflagged\b|usage polic(?:y|ies)")
# What Azure, Anthropic, OpenAI, xAI and DashScope say of their filters; gateways repeat it without the code.
_FILTER = r"content[ _](?:management|filter|safety|moderation|policy)"
_FILTER_WORDS = re.compile(
    rf"\b(?:blocked|filtered|rejected|stopped|triggering)\b.{{0,80}}?(?:{_FILTER}|safety (?:system|filter))"
    rf"|violat\w+ (?:\w+ ){{0,3}}?(?:{_FILTER}|usage (?:polic|guideline))|\binappropriate content"
    r"|contentpolicyviolation"
)
# Here our account is flagged, not the request: no request would be answered, and the model refused nothing.
_OURS = r"\b(?:account|key|organi[sz]ation|project|ip|address)\b"
_PUNISHED = r"\b(?:flagged|blocked|suspended|banned|disabled|deactivated)\b"
_ACCOUNT_FLAGGED = re.compile(rf"{_OURS}[^.]*{_PUNISHED}|\bflagged {_OURS}")
_KEY_WORDS = re.compile(r"key|token|credential|authori[sz]|bearer")
_MAX_SEARCHED = 1000  # characters of a message that are looked through
_NO_SUCH_MODEL = frozenset({"model_not_found", "deploymentnotfound", "unknown_model"})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_TRANSIENT = frozenset({408, 409, 425, 429})
_PERMANENT_5XX = frozenset({501, 505})


class CallError(Exception):
    """A call did not return an answer. Its text is free of secrets."""


class TransientError(CallError):
    """An error worth another attempt.

    Args:
        congestion: in a word or two why the server is overloaded or unreachable; None if it is neither.
        wait: seconds that the server requested, else None.
        rate_limited: True for a 429, which concerns every call, not only this one.
    """

    def __init__(
        self, message: str, *, congestion: str | None, wait: float | None = None, rate_limited: bool = False
    ) -> None:
        super().__init__(message)
        self.congestion, self.wait, self.rate_limited = congestion, wait, rate_limited


class RejectedError(CallError):
    """The server rejects this request, and would reject it at the next attempt too.

    Args:
        status: the HTTP status; 400 and 422 may be about one field of the request, such as `n`.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class DeclinedError(CallError):
    """A content policy blocked the request: for the benchmark, the model refused."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The model and server, for messages without the key."""

    model: str
    url: str
    key_env: str | None
    key: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"model {self.model} at {self.url}"

    def scrub(self, text: str) -> str:
        """Return the text without the key, if the key is long enough to be a key."""
        return text.replace(self.key, "[key]") if len(self.key) >= _SECRET_LENGTH else text

    def quote(self, text: str) -> str:
        """Return one line of at most 300 characters without the key, valid in UTF-8."""
        line = " ".join(self.scrub(text)[: 10 * _MAX_QUOTED].split()).encode("utf-8", "replace").decode()
        return line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED]}..."


def status_error(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    endpoint: Endpoint,
    *,
    answered: bool = False,
    sent: Collection[str] = (),
) -> CallError | ModelError:
    """Return the error for an HTTP status that is no success.

    Args:
        answered: the server has answered other requests to this model, so a 403 is about this request, not our key.
        sent: fields of the call, which no remedy suggests again.
    """
    said = _read_error(body)
    message = endpoint.quote(said.message)
    if _is_refusal(status, said):
        return DeclinedError(message)
    if (fatal := _fatal_error(status, said.codes, message, endpoint, answered=answered)) is not None:
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
    problem = f"{endpoint}: refused the request with {status}: {message}"
    remedy = remedy_for(status, re.sub(rf"(?<!\w){re.escape(endpoint.model)}(?!\w)", "", said.message), sent)
    return RejectedError(with_remedy(problem, remedy) if remedy else problem, status)


def error_in_reply(error: object, endpoint: Endpoint, *, answered: bool = False) -> CallError | ModelError:
    """Return the error for an error that came with a status of 200; its code may be an HTTP status."""
    fields = error if isinstance(error, Mapping) else {}
    codes = (str(fields.get(name)) for name in ("code", "status", "status_code"))
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 502)
    return status_error(status, {}, json.dumps({"error": error}).encode(), endpoint, answered=answered)


def names_filter(value: object, depth: int = 8) -> bool:
    """Return True if results of Azure's content filters, up to this depth, show that a filter blocked something."""
    if isinstance(value, Mapping) and value.get("filtered") is True:
        return True
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return depth > 0 and any(names_filter(each, depth - 1) for each in inner)


class _SaidError(NamedTuple):
    """Facts about an error from a reply's body: lower-case codes, the message (the full text if missing), and evidence.

    The evidence shows that a filter stopped the request: the filter's results, or a moderator's statement.
    """

    codes: frozenset[str]
    message: str
    is_filtered: bool = False
    is_moderated: bool = False


def _is_refusal(status: int, said: _SaidError) -> bool:
    """Return True if a content policy is the cause, not the key or the form of the request."""
    if said.is_filtered or said.codes & _POLICY_CODES or "filtered" in map(meaning_of, said.codes):
        return True
    if "invalid_prompt" in said.codes and _AGAINST_POLICY.search(said.message[:_MAX_SEARCHED].lower()) is not None:
        return True
    return status == 403 and said.is_moderated


def _fatal_error(
    status: int, codes: frozenset[str], message: str, endpoint: Endpoint, *, answered: bool
) -> ModelError | None:
    """Return an error that every other request would meet as well."""
    if status == 401 or (status == 403 and not answered):
        # Not quoted: servers repeat (parts of) the key here.
        if endpoint.key_env is None:
            remedy = "name the environment variable that holds the key with api_key_env"
            return ModelError(f"{endpoint}: requires a key ({status}), and none was sent. Fix: {remedy}")
        remedy = f"check the environment variable {endpoint.key_env}"
        return ModelError(f"{endpoint}: refused our key ({status}). Fix: {remedy}")
    if status == 404 or codes & _NO_SUCH_MODEL:
        return ModelError(
            f"{endpoint}: there is no such model or endpoint ({status}: {message}). Fix: compare the name with "
            f"{endpoint.url}/models; base_url usually ends in /v1"
        )
    if status == 402 or (status == 429 and codes & _NO_MONEY):
        return ModelError(f"{endpoint}: the account's quota is used up ({status}: {message}). Fix: raise it")
    if 300 <= status < 400:
        return ModelError(f"{endpoint}: the server redirects ({status}). Fix: give that address as base_url")
    return None


def _read_error(body: bytes) -> _SaidError:
    """Read an error from a reply's body; a body of unknown form is itself the message.

    A moderator's statement about the request is in `error.metadata`, which gives reasons (OpenRouter), or in the
    message. Only JSON is read: a firewall's page may also contain `flagged`, and mean our address.
    """
    text = body[: 64 * 1024].decode("utf-8", "replace")
    data = json_value(text)
    if isinstance(data, list) and data:  # Gemini's endpoint wraps its errors
        data = data[0]
    if not isinstance(data, dict):
        return _SaidError(frozenset(), text)
    error = data.get("error")
    fields = error if isinstance(error, dict) else {}
    metadata = fields.get("metadata")
    has_reasons = isinstance(metadata, dict) and any(metadata.get(key) for key in ("reasons", "flagged_input"))
    words = _message(data)[:_MAX_SEARCHED].lower()
    is_ours = _ACCOUNT_FLAGGED.search(words) is not None
    return _SaidError(
        codes=_error_codes(data),
        message=_message(data) or text,
        is_filtered=names_filter(fields.get("innererror")) or (_FILTER_WORDS.search(words) is not None and not is_ours),
        is_moderated=has_reasons or (_FLAGGED.search(words) is not None and not is_ours),
    )


def _error_codes(data: Mapping[str, object]) -> frozenset[str]:
    """Return codes and types in an error object, its `error` and nested `innererror`s, in lower case."""
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
    """Return seconds that the server requests (`Retry-After`, RFC 9110 10.2.3, or `retry-after-ms`), else None.

    Neither negative nor longer than `MAX_PAUSE`; an unreadable value is None.
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
    """Return the seconds to wait and the reason, if the server's headers show that its allowance is used up, else None.

    Args:
        headers: an answer's, with `x-ratelimit-remaining-...` and `x-ratelimit-reset-...` if the server sends them.
        tokens: of a call, as far as known.
    """
    longest: tuple[float, str] | None = None
    for kind, needed in (("requests", 1), ("tokens", max(1, tokens))):
        remaining = headers.get(f"x-ratelimit-remaining-{kind}", "")[:_MAX_HEADER].strip()
        seconds = duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
        if re.fullmatch(r"-?\d+", remaining, re.ASCII) and int(remaining) < needed and seconds is not None:
            longest = max(longest or (0.0, ""), (seconds, f"no {kind} left"))
    return longest


def duration(text: str) -> float | None:
    """Return seconds of a duration such as `20ms`, `1m30s` or `6.5` (seconds); None for others, or above a day.

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
