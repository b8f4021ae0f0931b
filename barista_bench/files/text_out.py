"""Make text safe for the terminal, logs, pages and tables. All text that is shown passes through here.

Names and answers come from models, servers and other people's files. These functions remove characters that control a
terminal, reverse the order of letters, end a line, a cell or a tag, or start a formula. Data files (JSON, JSONL,
Parquet) contain texts unchanged.

Run folders, reports and messages repeat settings. So keys, tokens and passwords in settings are refused and never
repeated. Put a secret in an environment variable, and name the variable in the setting.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from markupsafe import Markup

from barista_bench.errors import ConfigError, one_full_stop

_MARKUP = re.compile(r"([\\`*\[\]|~])")
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # tabs and line ends, which also start formulas, become spaces
_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+(e[+-]?\d+)?%?")


NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors for a full disk, an exhausted quota and a file above the size limit."""
_SYSTEM_REMEDIES = {
    **dict.fromkeys(NO_SPACE, "free some space there, or choose a place on another disk"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "change its rights, or choose another place"),
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "name one that is there",
    errno.ENOTDIR: "name one that does not lead through a file",
}


def make_printable(text: str, keep: str = "") -> str:
    r"""Keep printable characters and the characters in `keep`; escape all others (controls, bidi marks, lone
    surrogates).

    >>> print(make_printable("caf\u00e9\x1b[2J\nerror: none \u202e"))
    café\x1b[2J\nerror: none \u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def one_line(text: str) -> str:
    r"""Return the text as `make_printable` does, with single spaces in place of all white space.

    >>> print(one_line(" a\n\tb\u00a0\x1b[2J"))
    a b \x1b[2J
    """
    return make_printable(" ".join(text.split()))


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error's text without the full stop; for an error without text, its name.

    >>> first_line(OSError("No config.json here.\nSee the documentation.")), first_line(MemoryError())
    ('No config.json here', 'MemoryError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


MINUS = "\N{MINUS SIGN}"


def decimal(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """Format a number for people: thousands apart, a true minus sign, no minus before zero. `sign` also shows a plus.

    >>> decimal(-0.0421), decimal(-0.0001), decimal(1234.5, 1, sign=True)
    ('−0.042', '0.000', '+1,234.5')
    """
    rounded = round(value, digits) + 0.0  # turns -0 into 0
    return f"{rounded:{'+' if sign else ''},.{digits}f}".replace("-", MINUS)


def machine_numbers(text: str, minus: str = "-") -> str:
    """Format numbers in a text for programs: without thousands separators, and with `minus` as the minus sign.

    >>> machine_numbers("−0.042 [−0.1, 0.2]"), machine_numbers("−1", "$-$")
    ('-0.042 [-0.1, 0.2]', '$-$1')
    """
    return re.sub(rf"{MINUS}(?=[\d.])", lambda _: minus, text)


MOST_REASONS = 3
"""Maximum number of reasons that a message names. Other reasons are only counted."""


def most_frequent_reasons(reasons: Mapping[str, int]) -> str:
    """Return, on one line, the counts of the `MOST_REASONS` most frequent reasons, without the remedies.

    >>> most_frequent_reasons({"too short": 2, "no mask. Fix: draw one": 7, "no name": 1, "cut": 1})
    '7 x no mask; 2 x too short; 1 x cut; 1 other reason'
    """
    without_remedies = Counter[str]()
    for reason, count in reasons.items():
        without_remedies[one_line(reason).partition(" Fix:")[0].rstrip(".")] += count
    frequent = sorted(without_remedies.items(), key=lambda row: (-row[1], row[0]))
    parts = [f"{count} x {reason}" for reason, count in frequent[:MOST_REASONS]]
    n_others = len(frequent) - MOST_REASONS
    return "; ".join([*parts, f"{n_others} other reason{'s' if n_others > 1 else ''}"] if n_others > 0 else parts)


def without_numbers(reason: str) -> str:
    """Replace the numbers in a reason, so that equal reasons can be counted together.

    >>> without_numbers("runs cover 12 of 64 pixels")
    'runs cover N of N pixels'
    """
    return re.sub(r"[0-9]+", "N", reason)


def system_problem(error: OSError) -> str:
    """Return the file, the error and the remedy of a system error as text.

    An error without a number is not from the system, so its text is returned unchanged.
    """
    if error.errno is None:
        return str(error)
    where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    remedy = _SYSTEM_REMEDIES.get(error.errno, "fix it, or name another one")
    return f"{where}{error.strerror}. Fix: {remedy}"


def echo(*lines: str, color: str | None = None, err: bool = False) -> None:
    """Write to the terminal. Each argument is one line and may have any content.

    Characters that the terminal's encoding lacks are written as numbers.
    """
    import typer  # imported here, since models and readers also use this module

    encoding = (sys.stderr if err else sys.stdout).encoding or "utf-8"
    for line in lines:
        text = make_printable(one_full_stop(line)).encode(encoding, "backslashreplace").decode(encoding)
        typer.secho(text, fg=color, err=err)


class LogFormatter(logging.Formatter):
    """A formatter that writes one line per message, and one line per line of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        message = make_printable(one_full_stop(record.getMessage()))
        record = logging.makeLogRecord({**vars(record), "msg": message, "args": ()})
        return make_printable(super().format(record), keep="\n")


def markdown(text: str) -> str:
    r"""Return the text on one line, escaped so that Markdown shows no markup, link or cell border.

    >>> markdown("a|b <img> [x](y)")
    'a\\|b &lt;img&gt; \\[x\\](y)'
    """
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKUP.sub(r"\\\1", text)


def prepare_for_template(value: object) -> object:
    """Prepare texts for a template, before it escapes them (`finalize` of a Jinja environment with autoescape)."""
    return make_printable(value, keep="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


def no_formula(text: str) -> str:
    """Return the text as `one_line` does. Text that spreadsheets would treat as a formula gets a leading apostrophe.

    >>> no_formula("=1+1"), no_formula("-0.5")
    ("'=1+1", '-0.5')
    """
    text = one_line(text)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


_REMEDY = "keep it in an environment variable, and name that variable with api_key_env (--api-key-env)"

_KEY = re.compile(
    r"""(?<![\w-])[a-z]{2,3}(?:-|_(?=[A-Za-z0-9]{20}))(?=[\w-]*\d)[\w-]*?(?<![A-Za-z0-9])[A-Za-z0-9]{12}  # sk-, hf_
    | \beyJ[\w-]{8,}\.eyJ[\w-]{8,}                   # a JSON web token
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    | \b(?i:bearer|basic)\s+(?=\S*\d)[\w+/.=~-]{12,}
    | ://[^/\s@]*:[^/\s@]+@                            # an address with a password
    """,
    re.VERBOSE,
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_RANDOM = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CREDENTIAL = re.compile(
    "(?:api|access|private)keys?|(?:access|api|auth)token|authori[sz]ation|bearer|credential|passphrase|passw(?:or)?d|secret"
)
_CREDENTIAL_WORDS = frozenset({"auth", "cookie", "cookies", "jwt", "pwd"})
_LAST_WORDS = frozenset({"key", "keys", "token"})
_HARMLESS_BEFORE_LAST = (
    frozenset({"cache", "routing", "sort"})  # keys
    | frozenset({"bos", "cls", "decoder", "end", "eos", "image", "mask", "pad", "sep", "start", "stop", "think", "unk"})
)


def holds_key(text: str) -> bool:
    """Return True if a text has a key (a short prefix and a long random part), a token, or an address with a
    password.
    """
    return _KEY.search(text) is not None


def check_variable_name(setting: str, value: str) -> None:
    """Refuse a value that is not a plain name of an environment variable, or that may be the secret itself.

    Raises ConfigError, which names only the setting and never the value.
    """
    if not _VARIABLE.fullmatch(value) or holds_key(value) or _RANDOM.search(value):
        raise ConfigError(
            f"{setting}: is not a name of an environment variable (not repeated here: it may be the secret itself). "
            "Fix: put the secret into a variable, and give the variable's name, without $"
        )


_KINDS = re.compile(r"^([a-z0-9_]+:)+")
"""Prefixes before the name of a model: `text_only:served:`."""


def shared_name(model: str, parts: int = 1) -> str:
    """Return the name of a model or an encoder for publication. Of a local path, only the last parts remain.

    >>> shared_name("text_only:/home/me/checkpoints/qwen"), shared_name("served:org/model")
    ('text_only:qwen', 'served:org/model')
    >>> shared_name("/home/me/qwen", 2), shared_name("/qwen", 2)
    ('me/qwen', 'qwen')
    """
    name = _KINDS.sub("", model)
    kinds = model.removesuffix(name)
    is_path = name.startswith(("/", ".", "~")) or os.path.exists(name) or (not kinds and name.count("/") > 1)
    return kinds + ("/".join(Path(name).relative_to(Path(name).anchor).parts[-parts:]) if is_path else name)


def refuse_credentials(setting: str, value: object) -> None:
    """Refuse a value with a field that is named like a credential, or a text that looks like one, at any depth.

    Args:
        setting: name of the value, for the message.
        value: texts, and mappings and sequences of texts; other types are ignored.

    Raises:
        ConfigError: the value is refused. The error names the setting, and the field if its name is the fault, but
        never a value.
    """
    pending = [value]
    while pending:  # no recursion: JSON may be nested deeply
        level = pending.pop()
        if isinstance(level, str) and holds_key(level):
            raise ConfigError(f"{setting}: contains text that looks like a key or password. Fix: {_REMEDY}")
        if isinstance(level, Mapping):
            pending += level.values()
            for name, below in level.items():
                refuse_credentials(setting, str(name))
                if _names_credential(str(name)) and below is not None and not isinstance(below, bool):
                    raise ConfigError(
                        f"{setting}: the field {str(name)[:60]!r} is called like a credential. Fix: {_REMEDY}"
                    )
        elif isinstance(level, list | tuple):
            pending += level


def check_address(setting: str, url: str) -> None:
    """Refuse anything but a plain http(s) address.

    Errors name at most the host, since other parts may be the refused secret.

    Raises ConfigError if `url` is not an address, or contains a user, a password, a query, a fragment or a key.
    """
    remedy = "Fix: give one like http://localhost:8000/v1, and the key in an environment variable"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"{setting} is not an address. {remedy}") from None  # the cause may repeat the secret
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{setting} is not an http(s) address. {remedy}")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{setting} of {host} holds a user or password. {remedy}")
    if parts.query or parts.fragment:
        raise ConfigError(f"{setting} of {host} holds a query or fragment. {remedy}")
    refuse_credentials(f"{setting} of {host}", parts.path)


def refuse_key_in_clear(setting: str, url: str) -> None:
    """Refuse to send a key by plain http to another machine. `url` must satisfy `check_address`.

    Raises ConfigError, which names the host.
    """
    if urlsplit(url).scheme != "https" and not is_local(url):
        raise ConfigError(
            f"{setting} of {urlsplit(url).hostname} is plain http, where everybody on the way can read the key. "
            "Fix: give an https address, one of this machine that a tunnel leads to, or no key"
        )


def is_local(url: str) -> bool:
    """Return True if the address is that of this machine (`localhost` or a loopback address)."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names_credential(name: str) -> bool:
    """Return True for names of credentials, such as `X-Api-Key` or `accessToken`, but not `prompt_cache_key` or
    `eos_token`.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if _CREDENTIAL.search("".join(words)) or _CREDENTIAL_WORDS & {*words}:
        return True
    return bool(words) and words[-1] in _LAST_WORDS and not {*words[-2:-1]} & _HARMLESS_BEFORE_LAST
