"""Sorts the errors of calls by remedy (retry, drop the request, stop the run), and reads the pauses servers request.

Messages quote the server, and a server may repeat our key. So keys are removed from every text. Exceptions do not keep
their cause, because its request has the key in its headers.
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
"""Longest pause, in seconds, that a server may request; after it the server is called again."""
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)", re.ASCII)
_MAX_HEADER = 64  # characters

_MAX_QUOTED = 300  # limit of characters quoted from a server's message
_SECRET_LENGTH = 8  # shorter "keys" (EMPTY, none) are placeholders, and removing them would damage texts

_POLICY_CODES = frozenset(
    {"content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked", "cyber_policy_violation"}
    | {"bio_policy_violation", "data_inspection_failed", "datainspectionfailed"}
)
"""Error codes of content policies, in addition to the finish reasons of filtered answers."""
_FLAGGED = re.compile(r"requires moderation|\bflagged\b")
_AGAINST_POLICY = re.compile(r"\bflagged\b|usage polic(?:y|ies)")
# Words of Azure, Anthropic, OpenAI, xAI and DashScope for their filters; gateways repeat them without the code.
_FILTER = r"content[ _](?:management|filter|safety|moderation|policy)"
_FILTER_WORDS = re.compile(
    rf"\b(?:blocked|filtered|rejected|stopped|triggering)\b.{{0,80}}?(?:{_FILTER}|safety (?:system|filter))"
    rf"|violat\w+ (?:\w+ ){{0,3}}?(?:{_FILTER}|usage (?:polic|guideline))|\binappropriate content"
    r"|contentpolicyviolation"
)
# These words mean that our account is flagged, not the request: the server would then answer no request.
_OURS = r"\b(?:account|key|organi[sz]ation|project|ip|address)\b"
_PUNISHED = r"\b(?:flagged|blocked|suspended|banned|disabled|deactivated)\b"
_ACCOUNT_FLAGGED = re.compile(rf"{_OURS}[^.]*{_PUNISHED}|\bflagged {_OURS}")
_KEY_WORDS = re.compile(r"key|token|credential|authori[sz]|bearer")
_MAX_SEARCHED = 1000  # number of characters of a message that are searched
_NO_SUCH_MODEL = frozenset({"model_not_found", "deploymentnotfound", "unknown_model"})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_TRANSIENT = frozenset({408, 409, 425, 429})
_PERMANENT_5XX = frozenset({501, 505})


class CallError(Exception):
    """A call returned no answer. The text contains no secrets."""


class TransientError(CallError):
    """An error worth another attempt.

    Args:
        congestion: why the server is overloaded or unreachable: its status, or a word; None if the server is neither.
        wait: seconds that the server requested, else None.
    """

    def __init__(self, message: str, *, congestion: str | None, wait: float | None = None) -> None:
        super().__init__(message)
        self.congestion, self.wait = congestion, wait


class RejectedError(CallError):
    """The server rejects this request, and would reject it again at the next attempt.

    Args:
        status: the HTTP status. A status of 400 or 422 may refer to one field of the request, such as `n`.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class DeclinedError(CallError):
    """A content policy blocked the request; the benchmark counts this as a refusal by the model."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The model and its server, for messages that must not contain the key."""

    model: str
    url: str
    key_env: str | None
    key: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"model {self.model} at {self.url}"

    def scrub(self, text: str) -> str:
        """Return the text without the key. A key that is too short to be secret stays."""
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
    """Return the error for an HTTP status that means failure.

    Args:
        answered: the server has answered other requests to this model, so status 403 refers to this request, not to our
            key.
        sent: fields of the call; no remedy suggests them again.
    """
    said = _read_error(body)
    message = endpoint.quote(said.message)
    if _is_refusal(status, said):
        return DeclinedError(message)
    if (fatal := _fatal_error(status, said.codes, message, endpoint, answered=answered)) is not None:
        return fatal
    if status == 403 and _KEY_WORDS.search(message.lower()):
        message = "(not repeated, since it speaks of keys)"  # servers repeat parts of our key in such messages
    if status in _TRANSIENT or (status >= 500 and status not in _PERMANENT_5XX):
        wait = retry_after(headers)
        if wait is None and status == 429:
            wait = allowance_pause(headers, tokens=1)
        return TransientError(
            f"{endpoint}: answered {status}: {message}",
            congestion=str(status) if status == 429 or status >= 500 else None,
            wait=wait,
        )
    problem = f"{endpoint}: refused the request with {status}: {message}"
    remedy = remedy_for(status, re.sub(rf"(?<!\w){re.escape(endpoint.model)}(?!\w)", "", said.message), sent)
    return RejectedError(with_remedy(problem, remedy) if remedy else problem, status)


def error_in_reply(error: object, endpoint: Endpoint, *, answered: bool = False) -> CallError | ModelError:
    """Return the error for an error message in a reply with status 200; its code may be an HTTP status."""
    fields = error if isinstance(error, Mapping) else {}
    codes = (str(fields.get(name)) for name in ("code", "status", "status_code"))
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 502)
    return status_error(status, {}, json.dumps({"error": error}).encode(), endpoint, answered=answered)


def names_filter(value: object, depth: int = 8) -> bool:
    """Return True if results of Azure's content filters, searched to this depth, show that one stopped something."""
    if isinstance(value, Mapping) and value.get("filtered") is True:
        return True
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return depth > 0 and any(names_filter(each, depth - 1) for each in inner)


class _ErrorBody(NamedTuple):
    """Facts about an error from the body of a reply.

    They are lower-case codes, the message (the full text if the message is missing), and evidence that a filter stopped
    the request: the filter's results, or a moderator's statement.
    """

    codes: frozenset[str]
    message: str
    is_filtered: bool = False
    is_moderated: bool = False


def _is_refusal(status: int, said: _ErrorBody) -> bool:
    """Return True if a content policy is the cause, and not the key or the form of the request."""
    if said.is_filtered or said.codes & _POLICY_CODES or "filtered" in map(meaning_of, said.codes):
        return True
    if "invalid_prompt" in said.codes and _AGAINST_POLICY.search(said.message[:_MAX_SEARCHED].lower()) is not None:
        return True
    return status == 403 and said.is_moderated


def _fatal_error(
    status: int, codes: frozenset[str], message: str, endpoint: Endpoint, *, answered: bool
) -> ModelError | None:
    """Return the error if it affects every other request too; else None."""
    if status == 401 or (status == 403 and not answered):
        # The message is not quoted: servers repeat (parts of) the key in it.
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


def _read_error(body: bytes) -> _ErrorBody:
    """Read an error from a reply's body; a body of unknown form is itself the message.

    A moderator's statement about the request is in the message, or in `error.metadata` with its reasons (OpenRouter).
    Only JSON is read: the page of a firewall may also contain `flagged`, but refer to our address.
    """
    text = body[: 64 * 1024].decode("utf-8", "replace")
    data = json_value(text)
    if isinstance(data, list) and data:  # Gemini's endpoint wraps errors in a list
        data = data[0]
    if not isinstance(data, dict):
        return _ErrorBody(frozenset(), text)
    error = data.get("error")
    fields = error if isinstance(error, dict) else {}
    metadata = fields.get("metadata")
    has_reasons = isinstance(metadata, dict) and any(metadata.get(key) for key in ("reasons", "flagged_input"))
    words = _message(data)[:_MAX_SEARCHED].lower()
    is_ours = _ACCOUNT_FLAGGED.search(words) is not None
    return _ErrorBody(
        codes=_error_codes(data),
        message=_message(data) or text,
        is_filtered=names_filter(fields.get("innererror")) or (_FILTER_WORDS.search(words) is not None and not is_ours),
        is_moderated=has_reasons or (_FLAGGED.search(words) is not None and not is_ours),
    )


def _error_codes(data: Mapping[str, object]) -> frozenset[str]:
    """Return codes and types from an error object, its `error` and its nested `innererror`s, in lower case."""
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
    """Return the pause in seconds that the server requests; None without a readable value.

    The headers are `Retry-After` (RFC 9110, 10.2.3) and `retry-after-ms`. The pause is between 0 and `MAX_PAUSE`.
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


def allowance_pause(headers: Mapping[str, str], tokens: int) -> float | None:
    """Return the seconds to wait if the headers show that our allowance is used up, else None.

    Args:
        headers: the headers of an answer, with `x-ratelimit-remaining-...` and `x-ratelimit-reset-...` if the server
            sends them.
        tokens: number of tokens in a call, as far as known.
    """
    pauses = []
    for kind, needed in (("requests", 1), ("tokens", max(1, tokens))):
        remaining = headers.get(f"x-ratelimit-remaining-{kind}", "")[:_MAX_HEADER].strip()
        seconds = duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
        if re.fullmatch(r"-?\d+", remaining, re.ASCII) and int(remaining) < needed and seconds is not None:
            pauses.append(seconds)
    return max(pauses, default=None)


def duration(text: str) -> float | None:
    """Return a duration such as `20ms`, `1m30s` or `6.5` (seconds) in seconds; None for other texts or above a day.

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
    return seconds if seconds <= _UNITS["d"] else None  # a larger number is a date in seconds, or invalid
