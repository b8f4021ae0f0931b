"""Keys, tokens and passwords in settings: refused, and never repeated.

Run folders and reports hold settings, and messages repeat them. A secret belongs in an environment variable, which a
setting names.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from barista_bench.errors import ConfigError

_REMEDY = "keep it in an environment variable, and name that variable with api_key_env (--api-key-env)"

_KEY = re.compile(
    r"""(?<![A-Za-z0-9])(?:
    sk-(?=[\w-]*\d)[\w-]{12,} | (?:sk|rk)_(?:live|test)_\w{10,}      # OpenAI, Anthropic, OpenRouter; Stripe
    | hf_[A-Za-z0-9]{16,} | gh[opsur]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
    | AIza[\w-]{20,} | ya29\.[\w-]{10,} | (?:AKIA|ASIA)[A-Z0-9]{16}  # Google; Amazon
    | (?:gsk|r8)_\w{20,} | (?:xai|pplx|nvapi|tgp_v1)-[\w-]{20,} | xox[abeoprs]-[\w-]{10,}
    | eyJ[\w-]{8,}\.eyJ[\w-]{8,}                                     # JSON web tokens
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    )
    | \b(?i:bearer|basic)\s+(?=\S*\d)[\w+/.=~-]{12,}
    | ://[^/\s@]*:[^/\s@]+@                                          # an address with a password
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
    """Whether a text holds what is written as the usual providers write keys, or an address with a password."""
    return _KEY.search(text) is not None


def check_variable_name(setting: str, value: str) -> None:
    """Refuse, without repeating it, what is no plain name of an environment variable, or may be the secret itself.

    Raises:
        ConfigError: names the setting alone.
    """
    if not _VARIABLE.fullmatch(value) or holds_key(value) or _RANDOM.search(value):
        raise ConfigError(
            f"{setting}: is no name of an environment variable (not repeated here: it may be the secret itself). "
            "Remedy: put the secret into a variable, and give the variable's name, without $"
        )


def refuse_credentials(setting: str, value: object) -> None:
    """Refuse a value that holds, at any depth, a field that is called like a credential or a text that is like one.

    Args:
        setting: what the value is, for the message.
        value: texts, and mappings and sequences of them; all else is passed over.

    Raises:
        ConfigError: names the setting, and the field where its name is what is wrong; never a value.
    """
    waiting = [value]
    while waiting:  # no recursion: JSON may be nested deeply
        level = waiting.pop()
        if isinstance(level, str) and holds_key(level):
            raise ConfigError(f"{setting}: holds what looks like a key or password. Remedy: {_REMEDY}")
        if isinstance(level, Mapping):
            waiting += level.values()
            for name, below in level.items():
                refuse_credentials(setting, str(name))
                if _names_credential(str(name)) and below is not None and not isinstance(below, bool):
                    raise ConfigError(
                        f"{setting}: the field {str(name)[:60]!r} is called like a credential. Remedy: {_REMEDY}"
                    )
        elif isinstance(level, list | tuple):
            waiting += level


def check_address(setting: str, url: str) -> None:
    """Refuse what is no plain http(s) address. Names at most the host: the rest may be the secret that is refused.

    Raises:
        ConfigError: it is no address, or holds a user, a password, a query, a fragment or a key.
    """
    remedy = "Remedy: give one like http://localhost:8000/v1, and the key in an environment variable"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"{setting} is no address. {remedy}") from None  # whose text may repeat it
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{setting} is no http(s) address. {remedy}")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{setting} of {host} holds a user or password. {remedy}")
    if parts.query or parts.fragment:
        raise ConfigError(f"{setting} of {host} holds a query or fragment. {remedy}")
    refuse_credentials(f"{setting} of {host}", parts.path)


def check_way(setting: str, url: str) -> None:
    """Refuse to send a key by plain http to another machine; `url` is one that `check_address` takes.

    Raises:
        ConfigError: names the host.
    """
    if urlsplit(url).scheme != "https" and not is_local(url):
        raise ConfigError(
            f"{setting} of {urlsplit(url).hostname} is plain http, where everybody on the way can read the key. "
            "Remedy: give an https address, one of this machine that a tunnel leads to, or no key"
        )


def is_local(url: str) -> bool:
    """Whether the address is this machine's own (`localhost`, a loopback address)."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names_credential(name: str) -> bool:
    """By its words: `X-Api-Key`, `accessToken` and `password` are, `prompt_cache_key` and `eos_token` are not."""
    words = [word.lower() for word in _WORD.findall(name)]
    if _CREDENTIAL.search("".join(words)) or _CREDENTIAL_WORDS & {*words}:
        return True
    return bool(words) and words[-1] in _LAST_WORDS and not {*words[-2:-1]} & _HARMLESS_BEFORE_LAST
