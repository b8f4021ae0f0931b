"""Split an answer into words, signs and marks, and find its stance on a choice by the table `choice_words.yaml`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import normalize

import msgspec

from barista_bench.files.reading import packaged_data

_REACH = 14
"""Number of tokens before and after a choice that are examined."""
_LETTERS = "A-Za-z\u00aa-\u024f\u0370-\u058f\u1e00-\u1fff"
"""Letters of scripts that put blanks between words."""
_WORD = rf"[{_LETTERS}]+(?:['_][{_LETTERS}]+|-[{_LETTERS}]{{2,}})*"
_TABLE = msgspec.convert(packaged_data(__package__, "choice_words.yaml"), dict[str, str])
ROLES: Final[Mapping[str, str]] = {word: role for role, words in _TABLE.items() for word in words.split()}
_SIGNS = sorted((word for word in ROLES if not re.fullmatch(_WORD, word)), key=len, reverse=True)
_PATTERN = rf"(?P<word>{_WORD})|(?P<sign>{'|'.join(_SIGNS)})|(?P<number>\d+)|(?P<line>\n\s*)|(?P<mark>\S)"
_TOKENS = re.compile(_PATTERN)

MARKS = frozenset("*_\"'`()[]{}<>$#|\\~/")
"""Marks around a choice. They have no meaning."""
OPEN, CLOSE = frozenset("([{<\"'`*$"), frozenset(")]}>\"'`*$")
STOPS = frozenset(".;!?")
LINKS = frozenset(":=-–—→")
_BETWEEN = MARKS | frozenset(",;&+-")
"""Marks between the choices of one answer."""
_PLURALS = frozenset(("are", "were", "sind", "sont", "sono", "son", "são"))
_PLAIN: Final = str.maketrans("’‘“”„«»【】「」『』《》〈〉。、，؛،؟।\u200b\ufeff", '\'\'"""""[][][]<><>.,,;,?.  ')
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")


class Token(NamedTuple):
    """One token and its role: a word, a sign of a script without blanks, a number, a line end, a mark or an unusual
    label.
    """

    text: str
    start: int
    end: int
    kind: str | None
    role: str


NOTHING: Final = Token("", 0, 0, "line", "")
"""The stance before and after a text."""


class Stance(IntEnum):
    """The stance of an answer on a choice."""

    DENIED = 0
    MENTIONED = 1
    SAID = 2
    NAMED = 3


def simplify_signs(text: str) -> str:
    """Return the text with plain signs and without struck-out parts. Positions in the text stay the same."""
    if not text.isascii():
        forms = (form if len(form := normalize("NFKC", sign)) == 1 else sign for sign in text)
        text = "".join(forms).translate(_PLAIN)
    return _STRUCK.sub(lambda struck: " " * len(struck[0]), text)


def lower_case(text: str) -> str:
    """Return the text in lower case. Positions in the text stay the same."""
    if text.isascii():
        return text.lower()
    return "".join(low if len(low := sign.lower()) == 1 else sign for sign in text)


def first_token(text: str, start: int = 0) -> str:
    match = _TOKENS.match(text, start)
    return match[0] if match else ""


@lru_cache(64)
def _tokens_with(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of tokens, in which labels such as `option-1` are one token."""
    odd = [re.escape(label) for label in labels if not re.fullmatch(rf"{_WORD}|\d+", label)]
    return re.compile(rf"(?P<label>(?<!\w)(?:{'|'.join(odd)})(?!\w))|{_PATTERN}", re.IGNORECASE) if odd else _TOKENS


def _token(match: re.Match[str]) -> Token:
    word = lower_case(match[0])
    role = "no" if word.endswith("n't") else ROLES.get(word, "")
    return Token(match[0], match.start(), match.end(), match.lastgroup, role)


class Words:
    """The tokens of a plain text. `covered` has the tokens of choices found so far; the caller adds them."""

    def __init__(self, text: str, labels: tuple[str, ...]) -> None:
        self.tokens = [_token(match) for match in _tokens_with(labels).finditer(text)]
        self.covered: set[int] = set()

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> Token:
        return self.tokens[index] if 0 <= index < len(self.tokens) else NOTHING

    def after_marks(self, index: int, marks: Collection[str] = MARKS) -> int:
        """Return the first token from `index` on that is not one of these marks. At most a few marks are skipped."""
        return next((place for place in range(index, index + _REACH) if self[place].text not in marks), index + _REACH)

    def line_start(self, index: int) -> int | None:
        """Return the first token of the line if only a few bullets and marks come before this token."""
        for _ in range(_REACH):
            if self[index - 1].kind == "line":
                return index
            index -= 1
            is_number = self[index].kind == "number" or (self[index].text in ".)" and self[index - 1].kind == "number")
            if not (is_number or self[index].text in OPEN or self[index].text in "#-•>_"):
                break
        return None

    def sentence_start(self, index: int) -> int | None:
        """Return the first token of the sentence if only marks come before this token and no choice ends the sentence
        before.
        """
        while self[index - 1].text and self[index - 1].text in OPEN:
            index -= 1
        return (
            index if self[index - 1].text in STOPS and self[index - 1].text and index - 2 not in self.covered else None
        )

    def ends_line(self, index: int) -> bool:
        """Return True if only marks come before the end of the line."""
        return self[self.after_marks(index, MARKS | {".", ",", "!"})].kind == "line"

    def is_between(self, start: int, stop: int) -> bool:
        """Return True if all tokens from `start` to `stop` separate a list: marks, `and`, line ends and line
        numbers.
        """
        for index in range(start, stop):
            token, before, after = self[index], self[index - 1], self[index + 1]
            is_number = token.kind == "number" and before.kind == "line"
            is_stop = token.text in (".", ")") and (after.kind == "line" or before.kind == "number")
            if not (token.role == "and" or token.text in _BETWEEN or token.kind == "line" or is_number or is_stop):
                return False
        return True

    def lead(self, index: int) -> tuple[Stance, int | None]:
        """Return the stance of the words before a token, and the first token of the words that name the token."""
        is_linked = is_said = is_cut = False
        for place in range(index - 1, max(-1, index - 1 - _REACH), -1):
            token = self[place]
            is_aside = token.role == "no" and self[place + 1].text in (":", "-", "—")  # as in `no: B`
            if place in self.covered or (is_cut and token.role == "no"):
                break
            if token.role in ("answer", "choose", "wait") or (token.role in ("option", "yes", "fits") and is_linked):
                return (Stance.DENIED, None) if self._is_negated(place) else (Stance.NAMED, self._lead_start(place))
            if token.role == "no" and not is_aside:
                return Stance.DENIED, None
            if token.role == "so":
                is_all = place == index - 1 and self[index + 1].text in STOPS | {""}
                return Stance.NAMED if is_all else Stance.SAID, self._lead_start(place)
            is_said |= token.role == "be"
            is_linked |= token.role == "be" or token.text in LINKS or token.kind == "line" or is_aside
            is_cut |= token.text == "," or (token.kind == "line" and self[place - 1].text != ":")
            is_word = token.role in ("be", "filler", "option", "yes", "fits") or is_aside
            if not (is_word or token.text in MARKS | LINKS | {","} or token.kind == "line"):
                break
        return (Stance.SAID if is_said else Stance.MENTIONED), None

    def _is_negated(self, index: int) -> bool:
        """Return True if a word such as `answer` or `choose` is denied: `not the answer`, `would not choose`."""
        for place in range(index - 1, max(-1, index - 5), -1):
            token = self[place]
            if token.role == "no" or (token.role not in ("filler", "yes", "be", "option") and token.text not in MARKS):
                return token.role == "no"
        return False

    def _lead_start(self, index: int) -> int:
        """Return the first of the words that name a choice: `So the final answer`."""
        roles = ("filler", "yes", "so", "option", "answer", "be")
        for place in range(index - 1, max(-1, index - 1 - _REACH), -1):
            if self[place].role not in roles and self[place].text not in MARKS | LINKS:
                break
            index = place
        return index

    def verdict(self, index: int) -> tuple[Stance, bool]:
        """Return the stance of the words from a token on towards the choice before it.

        The second value is True if the stance covers several choices.
        """
        unknown = 0
        is_linked = is_plural = False
        for place in range(index, index + _REACH):
            token = self[place]
            if place in self.covered or token.kind == "line" or token.role in ("because", "but", "so", "and"):
                break
            if token.text == "?" and not unknown:
                return Stance.DENIED, False
            is_label_stop = token.text == "." and place == index and self._is_short_verdict(place + 1)
            if (token.text in STOPS and not is_label_stop) or (token.text == "," and place > index):
                break
            if token.role == "no":
                return (Stance.MENTIONED if self._is_about_next(place) else Stance.DENIED), is_plural
            is_verdict = token.role == "yes" and self.is_verdict(place)
            if is_verdict and self[place + 1].text in LINKS and self._is_short_verdict(place + 2):
                return self.verdict(place + 2)  # as in `A: right - no`
            if is_verdict or token.role == "fits" or (token.role == "answer" and is_linked):
                return Stance.NAMED, is_plural
            is_linked |= token.role == "be"
            is_plural |= token.text in _PLURALS
            unknown += token.kind == "word" and token.role in ("", "yes")
            if unknown > 3:
                break
        return Stance.MENTIONED, False

    def is_verdict(self, index: int) -> bool:
        """Return True if a word such as `right` judges the choice before it, rather than describing a thing (`the right
        hand`).
        """
        token = self[self.after_marks(index + 1, CLOSE)]
        is_end = token.kind in ("line", "sign") or token.text in STOPS | LINKS | {",", "(", "one"}
        return is_end or token.role in ("answer", "option", "because", "but", "so", "and", "be", "fits", "yes")

    def _is_short_verdict(self, index: int) -> bool:
        """Return True if a sentence is one word that judges a choice: `A. Wrong. B. Right.`"""
        after = self[index + 1]
        return self[index].role in ("yes", "no") and (after.kind == "line" or after.text in STOPS | LINKS | {","})

    def _is_about_next(self, index: int) -> bool:
        """Return True if a denial concerns the next choice (`B, not A`) or denies nothing (`no doubt`)."""
        for place in range(index + 1, index + 4):
            token = self[place]
            if place in self.covered or token.text == "doubt":
                return True
            if token.role not in ("no", "filler", "option") and token.text not in MARKS:
                return False
        return False
