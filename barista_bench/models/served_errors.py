"""What went wrong with one call, sorted by what to do about it: try again, give up the request, or stop the run.

Messages quote the server, which may quote us back: keys are cut out of everything, and no exception keeps the one
that caused it, whose request carries the key in its headers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from barista_bench.errors import ModelError
from barista_bench.models.served_concurrency import retry_after

_QUOTED = 300  # characters of a server's message that are repeated
_SECRET_LENGTH = 8  # shorter "keys" (EMPTY, none) are placeholders, and cutting them out would spoil texts

_POLICY_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}) | frozenset(
    {"moderation_blocked", "cyber_policy_violation", "bio_policy_violation", "safety"}
)
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
class Scrubber:
    """Cuts a key out of texts."""

    key: str = field(repr=False)

    def text(self, text: str) -> str:
        """The text without the key, as long as the key is long enough to be one."""
        return text.replace(self.key, "[key]") if len(self.key) >= _SECRET_LENGTH else text

    def quote(self, text: str) -> str:
        """One line of at most 300 characters without the key."""
        line = " ".join(self.text(text)[: 10 * _QUOTED].split())
        return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}..."


@dataclass(frozen=True, slots=True)
class Place:
    """Whom we asked, for messages."""

    model: str
    base_url: str
    api_key_env: str | None
    scrub: Scrubber

    def __str__(self) -> str:
        return f"model {self.model} at {self.base_url}"


def status_error(status: int, headers: Mapping[str, str], body: bytes, place: Place) -> CallError | ModelError:
    """The error that stands for an HTTP status that is no success."""
    codes, message = _server_says(body)
    said = place.scrub.quote(message)
    if (fatal := _fatal(status, codes, said, place)) is not None:
        return fatal
    if status in (400, 403, 451) and codes & _POLICY_CODES:
        return DeclinedError(said)
    if status in _TRANSIENT or (status >= 500 and status not in _PERMANENT_5XX):
        return TransientError(
            f"{place}: answered {status}: {said}",
            congestion=str(status) if status == 429 or status >= 500 else None,
            wait=retry_after(headers),
            rate_limited=status == 429,
        )
    return RejectedError(f"{place}: refused the request with {status}: {said}{_hint(status, said)}", status)


def _fatal(status: int, codes: frozenset[str], said: str, place: Place) -> ModelError | None:
    """Errors that every other request would meet as well."""
    if status == 401 or (status == 403 and not codes & _POLICY_CODES):
        # Not quoted: servers repeat (parts of) the key here.
        variable = place.api_key_env or "none: no api_key_env was given"
        return ModelError(f"{place}: refused our key ({status}). Remedy: check the environment variable {variable}")
    if status == 404 or codes & _NO_SUCH_MODEL:
        return ModelError(
            f"{place}: there is no such model or endpoint ({status}: {said}). Remedy: compare the name with "
            f"{place.base_url}/models; base_url usually ends in /v1"
        )
    if status == 402 or (status == 429 and codes & _NO_MONEY):
        return ModelError(f"{place}: the account's quota is used up ({status}: {said}). Remedy: raise it, start again")
    if 300 <= status < 400:
        return ModelError(f"{place}: the server sends us elsewhere ({status}). Remedy: give that address as base_url")
    return None


def _hint(status: int, said: str) -> str:
    """A remedy for the refusals that a setting can answer."""
    lower = said.lower()
    if status == 413:
        return ". Remedy: send smaller images (max_image_side, jpeg_quality)"
    if "response_format" in lower or "json_schema" in lower:
        return ". Remedy: this server or model cannot be held to a schema so: leave structured_output off"
    # The field that is complained of comes first, and perhaps the one to use after it.
    named = sorted((lower.find(name), name) for name in ("max_tokens", "max_completion_tokens") if name in lower)
    if named:
        other = "max_tokens" if named[0][1] == "max_completion_tokens" else "max_completion_tokens"
        return f". Remedy: try token_limit_field={other}, or another max_new_tokens"
    for name in ("temperature", "top_p", "seed"):
        if name in lower:
            return f". Remedy: if the model does not take {name}, give omit={name}"
    return ""


def _server_says(body: bytes) -> tuple[frozenset[str], str]:
    """Lower-case error codes and the message of an error body, in the shapes that servers use; else its first text."""
    text = body[: 64 * 1024].decode("utf-8", "replace")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return frozenset(), text
    if not isinstance(data, dict):
        return frozenset(), text
    return error_codes(data), _message(data) or text


def error_codes(data: Mapping[str, object]) -> frozenset[str]:
    """Codes and types in an error object, its `error` and the `innererror` in that, in lower case."""
    found: set[str] = set()
    level: object = data
    for inner in ("error", "innererror", "innererror"):
        if not isinstance(level, dict):
            break
        found |= {str(level[key]).lower() for key in ("code", "type") if isinstance(level.get(key), str | int)}
        level = level.get(inner)
    if isinstance(level, dict):
        found |= {str(level[key]).lower() for key in ("code", "type") if isinstance(level.get(key), str | int)}
    return frozenset(found)


def _message(data: Mapping[str, object]) -> str:
    error = data.get("error")
    for holder in (error, data):
        if isinstance(holder, str):
            return holder
        if isinstance(holder, dict):
            for key in ("message", "detail", "error"):
                if isinstance(holder.get(key), str):
                    return str(holder[key])
    return ""
