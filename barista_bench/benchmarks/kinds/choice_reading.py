"""Which of several choices an answer in free text names: the reader of every set whose release fixes no reading.

An answer is cut into words, signs and marks. Each letter of a choice that stands by itself is held against what comes before
and after it, by the table `choice_words.yaml`. It is

* named: `Answer: B`, `I choose B`, `B is correct`, a first or last line that is only `B` or `B. its text`;
* said: `It is B`, `so B`;
* denied: `not B`, `B is wrong`, `rather than B`; or in doubt: `B?`, or a letter with the text of another choice;
* or only mentioned.

The last choice that is named is the answer, else the one that is said, else the one that a short answer mentions, or that an
answer begins with, if all others are denied. An answer, or what it names, that is exactly a choice's text is that choice. Two
choices are none where one is asked for. A letter before a word that is not in the table (`A hand`) is none: A and I are words
too, and no letter is easier to read than another.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import normalize

import msgspec

from barista_bench.benchmarks.parsing import json_objects, unfenced
from barista_bench.files.reading import packaged_data

_WINDOW = 20_000
"""Characters at the end of an answer in which a choice is looked for."""
_OBJECTS = 20
"""JSON objects at the end of an answer in which a choice is looked for."""
_SHORT = 60
"""Tokens of an answer in which a mention is enough."""
_REACH = 14
"""Tokens before and after a letter that are looked at."""

_WORDS = msgspec.convert(packaged_data(__package__, "choice_words.yaml"), dict[str, str])
_ROLES: Final = {word: role for role, words in _WORDS.items() for word in words.split()}
_LETTERS = "A-Za-z\u00aa-\u024f\u0370-\u058f\u1e00-\u1fff"
"""Letters of the scripts that put blanks between words."""
_WORD = rf"[{_LETTERS}]+(?:['_][{_LETTERS}]+|-[{_LETTERS}]{{2,}})*"
_SIGNS = sorted((word for word in _ROLES if not re.fullmatch(_WORD, word)), key=len, reverse=True)
_PATTERN = rf"(?P<word>{_WORD})|(?P<sign>{'|'.join(_SIGNS)})|(?P<number>\d+)|(?P<line>\n\s*)|(?P<mark>\S)"
_TOKENS = re.compile(_PATTERN)
_MARKS = frozenset("*_\"'`()[]{}<>$#|\\~/")
"""Marks around a letter, which say nothing."""
_OPEN, _CLOSE = frozenset("([{<\"'`*$"), frozenset(")]}>\"'`*$")
_STOPS = frozenset(".;!?")
_LINKS = frozenset(":=-–—→")
_BETWEEN = _MARKS | frozenset(",;&+-")
"""Marks between the choices of one answer."""
_ENDS = _CLOSE | _STOPS | _LINKS | frozenset("<,|\\(")
"""Marks after a choice's text."""
_MODALS = frozenset(("would", "should", "must", "could", "seems", "appears", "looks"))
_PLURALS = frozenset(("are", "were", "sind", "sont", "sono", "son", "são"))
_ARTICLE = re.compile(r"(?:an?|the|der|die|das|eine?|le|la|les|une?|el|los|las|una|os?|il)\s+")
_PLAIN: Final = str.maketrans("’‘“”„«»【】「」『』《》〈〉。、，؛،؟।\u200b\ufeff", "''\"\"\"\"\"[][][]<><>.,,;,?.  ")
_LATIN: Final = str.maketrans("АВЕКМНОРСТХΑΒΕΗΙΚΜΝΟΡΤΧΥΖ", "ABEKMHOPCTXABEHIKMNOPTXYZ")  # noqa: RUF001
"""Capitals of other alphabets that look like those of the labels."""
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_THOUGHT_END = re.compile(r"</(?:think|thinking|thoughts?|reasoning)>|\[/THINK\]", re.IGNORECASE)
_CLOSING = re.compile(r"[\s*_.)\]}\"'`$\\]{0,16}(?:</\w{1,20}>|<\|end_of_box\|>|\[/\w{1,20}\])?[\s.$)\]\\]{0,4}")


class ChoiceReading(NamedTuple):
    """The labels that an answer names, in its order, and where in its text it does.

    `start` is the length of the text where it has no place of its own. `content` is the JSON object that holds the answer.
    """

    labels: tuple[str, ...]
    start: int
    end: int
    content: Mapping[str, object] | None = None


class _Token(NamedTuple):
    text: str
    start: int
    end: int
    kind: str | None
    role: str


_NOTHING = _Token("", 0, 0, "line", "")
"""What comes before and after a text."""


class _Stance(IntEnum):
    DENIED = 0
    MENTIONED = 1
    SAID = 2
    NAMED = 3


@dataclass(frozen=True, slots=True)
class _Mention:
    """Labels at the tokens [first, last).

    `start` is the token at which the words that name them begin, where these come before. `is_spread`: what is denied of
    it is denied of the whole list that it is in. `is_text`: it is a choice's text, without a letter.
    """

    labels: tuple[str, ...]
    first: int
    last: int
    stance: _Stance = _Stance.MENTIONED
    start: int | None = None
    is_spread: bool = False
    is_text: bool = False


def read_choices(text: str, choices: Mapping[str, str], *, several: bool = False) -> ChoiceReading | None:
    """Read an answer to a question with these choices, label to text; None where it names none.

    >>> choices = {"A": "right hand", "B": "left hand"}
    >>> read_choices("It cannot be (A). **Answer:** B", choices).labels, read_choices("A hand is seen.", choices)
    (('B',), None)
    """
    objects = list(json_objects(text))
    answered = [(value, answers) for value in objects if (answers := _answers_of(value))]
    for value, answers in reversed(answered[-_OBJECTS:]):
        if len(answers) > len(choices):
            continue
        readings = [_read_text(each, choices, several=several) for each in answers]
        labels = tuple(dict.fromkeys(label for reading in readings if reading for label in reading.labels))
        if all(readings) and (several or len(labels) == 1):
            return ChoiceReading(labels, len(text), len(text), value)
    if objects and unfenced(text).startswith("{"):  # an object without a usable answer gives none
        return None
    return _read_text(text, choices, several=several)


def _answers_of(value: Mapping[str, object]) -> Sequence[str]:
    """The answers in a JSON object, "" for one that is no text; none where no key is a word for an answer."""
    for role in ("answer", "option"):
        for key, answer in value.items():
            if any(_ROLES.get(word) == role for word in (key.casefold(), *key.casefold().split("_"))):
                if isinstance(answer, dict):
                    return _answers_of(answer)
                answers = answer if isinstance(answer, list) and answer else [answer]
                return [each if isinstance(each, str) else "" for each in answers]
    return ()


def _read_text(text: str, choices: Mapping[str, str], *, several: bool) -> ChoiceReading | None:
    begin = max(len(text) - _WINDOW, 0, *(match.end() for match in _THOUGHT_END.finditer(text)))
    left = _STRUCK.sub(lambda struck: " " * len(struck[0]), text[begin:])
    answer = _Answer(_plain(left), choices, several=several)
    found = answer.read()
    if found is None or found.start is None:
        return found and ChoiceReading(found.labels, len(text), len(text))
    end = begin + answer.tokens[found.last - 1].end
    closing = _CLOSING.match(text, end)
    return ChoiceReading(found.labels, begin + answer.tokens[found.start].start, closing.end() if closing else end)


def _plain(text: str) -> str:
    """The text with plain forms of its signs, each in its place."""
    if text.isascii():
        return text
    return "".join(plain if len(plain := normalize("NFKC", sign)) == 1 else sign for sign in text).translate(_PLAIN)


def _lowered(text: str) -> str:
    """The text in small letters, each in its place."""
    if text.isascii():
        return text.lower()
    return "".join(low if len(low := sign.lower()) == 1 else sign for sign in text)


@lru_cache(64)
def _tokens_with(labels: tuple[str, ...]) -> re.Pattern[str]:
    """The pattern of tokens, where labels such as `option-1` are one."""
    odd = [re.escape(label) for label in labels if not re.fullmatch(rf"{_WORD}|\d+", label)]
    return re.compile(rf"(?P<label>(?<!\w)(?:{'|'.join(odd)})(?!\w))|{_PATTERN}", re.IGNORECASE) if odd else _TOKENS


def _token(match: re.Match[str]) -> _Token:
    word = _lowered(match[0])
    role = "no" if word.endswith("n't") else _ROLES.get(word, "")
    return _Token(match[0], match.start(), match.end(), match.lastgroup, role)


class _Answer:
    """One answer, and the choices that it mentions."""

    def __init__(self, text: str, choices: Mapping[str, str], *, several: bool) -> None:
        self.choices, self.several, self.folded = choices, several, _lowered(text)
        self.names = {label.lower(): label for label in choices} | {label: label for label in choices}
        self.tokens = [_token(match) for match in _tokens_with(tuple(choices)).finditer(text)]
        self.texts = {label: bare for label, choice in choices.items() if (bare := _bare(choice))}
        self.repeated = {choice for choice, count in Counter(self.texts.values()).items() if count > 1}
        self.by_first: dict[str, list[str]] = defaultdict(list)
        """Labels by the first word or sign of their texts, the longest text first."""
        for label in sorted(self.texts, key=lambda label: -len(self.texts[label])):
            self.by_first[_first(self.texts[label])].append(label)
        self.covered: set[int] = set()
        """Tokens of mentions."""
        mentions: list[_Mention] = []
        at = 0
        while at < len(self.tokens):
            mention = self._letter_at(at) or self._text_at(at, mentions)
            if mention:
                mentions.append(mention)
                self.covered.update(range(mention.first, mention.last))
            at = mention.last if mention else at + 1
        forms = {(self._form(each), each.labels) for each in mentions if self._line_start(each.first) is not None}
        counts = Counter(form for form, _ in forms)
        self.mentions = [self._judged(mention, is_listed=counts[self._form(mention)] > 1) for mention in mentions]

    def read(self) -> _Mention | None:
        """All that the answer names, as one mention."""
        groups = list(self._groups())
        named = [group for group in groups if group.stance is _Stance.NAMED]
        judged = [group for group in named if group.start is None]
        said = [group for group in groups if group.stance is _Stance.SAID]
        if self.several and named and judged == named:  # `A is right. C is right.`
            return _union(named)
        if named and named[-1].start is None and len({group.labels for group in judged}) > 1:
            return None
        if named or len({group.labels for group in said}) == 1:
            answer = (named or said)[-1]
            later = [each for each in self.mentions if each.stance is _Stance.DENIED and each.first >= answer.last]
            is_denied = any(label in answer.labels for each in later for label in each.labels)
            return None if is_denied or (len(answer.labels) > 1 and not self.several) else answer
        return None if said else self._only_mentioned([group for group in groups if group.labels])

    def _only_mentioned(self, groups: Sequence[_Mention]) -> _Mention | None:
        """The only choice that is not denied, where an answer begins with it or is short."""
        union = _union(groups) if groups else None
        if union is None or (len(union.labels) > 1 and not self.several):
            return None
        after = self._at(groups[0].last)
        if self._line_start(groups[0].first) == 0 and (after.kind != "word" or after.role == "because"):
            return replace(groups[0], labels=union.labels, start=0)
        before = [self._at(group.first - 1) for group in groups]
        is_free = all(token.role or token.kind != "word" for token in before)  # not as in `Plan B`
        return union if is_free and len(self.tokens) <= _SHORT else None

    def _at(self, at: int) -> _Token:
        return self.tokens[at] if 0 <= at < len(self.tokens) else _NOTHING

    def _line_start(self, at: int) -> int | None:
        """The first token of the line, where only bullets and marks stand before this one."""
        while self._at(at - 1).kind != "line":
            at -= 1
            token = self.tokens[at]
            is_number = token.kind == "number" or (token.text in ".)" and self._at(at - 1).kind == "number")
            if not (is_number or token.text in _OPEN or token.text in "#-•>_"):
                return None
        return at

    def _ends_line(self, at: int) -> bool:
        """Whether only marks come here before the line ends."""
        while self._at(at).text and self._at(at).text in _MARKS | frozenset(".,!"):
            at += 1
        return self._at(at).kind == "line"

    def _form(self, mention: _Mention) -> tuple[str, str]:
        """The marks around a letter, which are the same in a list of choices."""
        before, after = self._at(mention.first - 1), self._at(mention.first + 1)
        return before.text.strip() if before.kind == "mark" else "", after.text.strip() if after.kind == "mark" else ""

    # What is mentioned.

    def _letter_at(self, at: int) -> _Mention | None:
        """The letter of a choice that stands by itself, with the text of a choice after it."""
        token = self.tokens[at]
        written = token.text.translate(_LATIN) if len(token.text) == 1 else token.text
        label = self.names.get(written, self.names.get(written.lower()))
        if label is None:
            return self._compound_at(at)
        own = self._choice_text(at + 1)
        is_marked, is_ended = self._at(at + 1).kind == "mark", own is not None and self._is_end(own[1])
        has_own = own is not None and own[0] == label and (is_marked or (is_ended and token.text == label))
        if not has_own and not self._is_apart(at, label):
            return None
        if own is None or not (has_own or (is_marked and is_ended)):
            return _Mention((label,), at, at + 1)
        return _Mention((label,), at, own[1], _Stance.MENTIONED if has_own else _Stance.DENIED)

    def _is_apart(self, at: int, label: str) -> bool:
        """Whether a letter stands by itself, and is no word."""
        token, before, after, second = (self._at(at + step) for step in (0, -1, 1, 2))
        is_small = len(token.text) == 1 and token.text.islower() != label.islower()
        if (before.kind == "number" and before.end == token.start) or after.kind == "number":
            return False
        if self._is_part(token, before, self._at(at - 2)) or self._is_part(token, after, second):
            return False
        if after.text == "." and second.kind == token.kind and second.start == token.end + 1:
            return False  # as in `A.M.` and `1.5`
        is_wrapped = before.text in _OPEN and after.text in _CLOSE and before.end - token.start == token.end - after.start == 0
        if is_wrapped and (not is_small or self._at(at - 2).end < before.start or at == 1):  # not `cup(s)`
            return True
        if is_small:
            is_all = all(other.kind in ("mark", "line") for other in self.tokens if other is not token)
            is_named = before.role in ("answer", "option") or self._lead(at)[0] is _Stance.NAMED
            return is_all or (is_named and (after.kind == "line" or after.text in _CLOSE | _STOPS | {"<"}))
        if after.kind != "word" or before.role in ("answer", "option"):
            return True
        if label == "I":
            return after.role == "fits" or (after.role == "be" and after.text not in ("was", "were", "are"))
        if after.text == "it" and second.role == "be":
            return True  # as in `B it is`
        is_verdict = after.role == "yes" and (self._is_verdict(at + 1) or second.role == "fits")
        return is_verdict or after.role in ("be", "no", "fits", "because", "but", "so", "and") or after.text in _MODALS

    def _is_part(self, token: _Token, mark: _Token, other: _Token) -> bool:
        """Whether a mark joins a letter to something that is no choice, as in `N/A`."""
        is_joined = mark.text in ("/", "&", "-", "+") and abs(token.start - mark.start) == 1
        is_other = other.kind == "word" and not other.role and other.text not in self.names
        return is_joined and is_other and abs(mark.start - other.end) * abs(mark.end - other.start) == 0

    def _compound_at(self, at: int) -> _Mention | None:
        """A letter after a word for choices, as in `option_B`, or several in one word, as in `ACD`."""
        text = self.tokens[at].text
        prefix, _, name = text.rpartition("_")
        if name in self.choices and _ROLES.get(prefix.lower().partition("_")[0]) in ("answer", "option"):
            return _Mention((name,), at, at + 1)
        is_list = self.several and len(text) > 1 and [*text] == sorted({*text} & self.choices.keys())
        is_answer = self._line_start(at) is not None or self._lead(at)[0] is _Stance.NAMED
        return _Mention(tuple(text), at, at + 1) if is_list and is_answer and self._ends_line(at + 1) else None

    def _text_at(self, at: int, mentions: Sequence[_Mention]) -> _Mention | None:
        """The text of a choice that is all of a line, comes after words that name it, or goes on a list of such texts."""
        found = self._choice_text(at) if self.tokens[at].kind != "line" else None
        if found is None:
            return None
        label, last = found
        goes_on = mentions and mentions[-1].is_text and self._is_between(mentions[-1].last, at)
        is_line = self._line_start(at) is not None and (self._ends_line(last) or self._at(last).text == ".")
        starts_list = self.several and self._line_start(at) == 0 and self._at(last).text in ",;&+"
        is_named = self._is_end(last) and self._lead(at)[0] is _Stance.NAMED
        return _Mention((label,), at, last, is_text=True) if goes_on or is_line or starts_list or is_named else None

    def _choice_text(self, at: int) -> tuple[str, int] | None:
        """The choice whose text stands here, but for marks and an article, and the token after it."""
        while self._at(at).kind == "mark" and self._at(at).text in _MARKS | _LINKS | frozenset("."):
            at += 1
        if self._at(at).kind == "line":
            return None
        start = self._at(at).start
        article = _ARTICLE.match(self.folded, start)
        start = article.end() if article else start
        labels = self.by_first.get(_first(self.folded, start), ())
        label = next((label for label in labels if self.folded.startswith(self.texts[label], start)), None)
        if label is None:
            return None
        end = start + len(self.texts[label])
        while self._at(at).text and self._at(at).start < end:
            at += 1
        is_whole = self._at(at - 1).end == end and self.texts[label] not in self.repeated
        return (label, at) if is_whole else None

    def _is_end(self, at: int) -> bool:
        token = self._at(at)
        return token.kind == "line" or token.text in _ENDS or token.role in ("because", "but", "and")

    # What is said of it.

    def _judged(self, mention: _Mention, *, is_listed: bool) -> _Mention:
        """A mention with its stance by the words around it."""
        if mention.stance is _Stance.DENIED:
            return mention
        stance, start = self._lead(mention.first)
        verdict, is_plural = self._verdict(mention.last)
        if stance is _Stance.DENIED:
            return replace(mention, stance=stance, is_spread=True)
        if verdict is _Stance.DENIED:
            return replace(mention, stance=verdict, is_spread=is_plural)
        line = self._line_start(mention.first)
        is_end = line == 0 or all(token.kind in ("line", "mark") for token in self.tokens[mention.last : mention.last + _REACH])
        if stance is not _Stance.NAMED and line is not None and is_end and self._ends_line(mention.last):
            if not is_listed or self.several:
                return replace(mention, stance=_Stance.NAMED, start=line)
        if stance is not _Stance.NAMED and verdict is _Stance.NAMED:
            return replace(mention, stance=verdict)
        return replace(mention, stance=stance, start=start)

    def _lead(self, at: int) -> tuple[_Stance, int | None]:
        """The stance by the words before a token, and where these begin."""
        is_linked = is_said = is_cut = False
        for place in range(at - 1, max(-1, at - 1 - _REACH), -1):
            token = self.tokens[place]
            if place in self.covered or (is_cut and token.role == "no"):
                break
            if token.role == "no" and self._at(place + 1).text in (":", "-", "—"):  # as in `no: B`
                is_linked = True
                continue
            if token.role == "wait":
                return _Stance.NAMED, place
            if token.role in ("answer", "choose") or (token.role in ("option", "yes", "fits") and is_linked):
                if self._is_negated(place):
                    return _Stance.DENIED, None
                return _Stance.NAMED, self._sentence_start(place)
            if token.role == "no":
                return _Stance.DENIED, None
            if token.role == "so":
                is_all = place == at - 1 and self._at(at + 1).text in _STOPS | {""}
                return _Stance.NAMED if is_all else _Stance.SAID, self._sentence_start(place)
            is_said |= token.role == "be"
            is_linked |= token.role == "be" or token.text in _LINKS or token.kind == "line"
            is_cut = token.text == "," or (token.kind == "line" and self._at(place - 1).text != ":") or is_cut
            is_passed = token.role in ("be", "filler", "option", "yes", "fits") or token.text in _MARKS | _LINKS | {","}
            if not (is_passed or token.kind == "line"):
                break
        return (_Stance.SAID if is_said else _Stance.MENTIONED), None

    def _is_negated(self, at: int) -> bool:
        """Whether a word such as `answer` or `choose` is denied: `not the answer`, `would not choose`."""
        for place in range(at - 1, max(-1, at - 5), -1):
            token = self.tokens[place]
            if token.role == "no":
                return True
            if token.role not in ("filler", "yes", "be", "option") and token.text not in _MARKS:
                return False
        return False

    def _sentence_start(self, at: int) -> int:
        """The first of the words of a line that name a choice: `So the final answer`."""
        roles, marks = ("filler", "yes", "so", "option", "answer", "be"), _MARKS | _LINKS
        while at > 0 and (self.tokens[at - 1].role in roles or self.tokens[at - 1].text in marks):
            at -= 1
        return at

    def _verdict(self, at: int) -> tuple[_Stance, bool]:
        """The stance by the words after a choice, and whether these are about several."""
        unknown = 0
        is_linked = is_plural = False
        for place in range(at, at + _REACH):
            token = self._at(place)
            if place in self.covered or token.kind == "line" or token.role in ("because", "but", "so", "and"):
                break
            if token.text in _STOPS:
                if token.text == "?" and not unknown:
                    return _Stance.DENIED, False
                if not (token.text == "." and place == at and self._is_short_verdict(place + 1)):
                    break
            elif token.role == "no":
                return (_Stance.MENTIONED if self._is_about_next(place) else _Stance.DENIED), is_plural
            elif token.role == "fits" or (token.role == "answer" and is_linked):
                return _Stance.NAMED, is_plural
            elif token.role == "yes" and self._is_verdict(place):
                is_corrected = self._at(place + 1).text in _LINKS and self._is_short_verdict(place + 2)
                return (self._verdict(place + 2) if is_corrected else (_Stance.NAMED, is_plural))
            elif token.text == "," and place > at:
                break
            is_linked |= token.role == "be"
            is_plural |= token.text in _PLURALS
            unknown += token.kind == "word" and token.role in ("", "yes")
            if unknown > 3:
                break
        return _Stance.MENTIONED, False

    def _is_about_next(self, at: int) -> bool:
        """Whether what denies a choice here denies the next one: `B, not A`; or nothing: `no doubt`."""
        for place in range(at + 1, at + 4):
            token = self._at(place)
            if place in self.covered or token.text == "doubt":
                return True
            if token.role not in ("no", "filler", "option") and token.text not in _MARKS:
                return False
        return False

    def _is_verdict(self, at: int) -> bool:
        """Whether a word such as `right` is said of the choice before it, and not of a thing (`the right hand`)."""
        place = at + 1
        while self._at(place).text in _CLOSE and self._at(place).text:
            place += 1
        token = self._at(place)
        is_end = token.kind in ("line", "sign") or token.text in _STOPS | _LINKS | {",", "(", "one"}
        return is_end or token.role in ("answer", "option", "because", "but", "so", "and", "be", "fits", "yes")

    def _is_short_verdict(self, at: int) -> bool:
        """Whether a sentence is one word that judges a choice: `A. Wrong. B. Right.`"""
        after = self._at(at + 1)
        return self._at(at).role in ("yes", "no") and (after.kind == "line" or after.text in _STOPS | _LINKS | {","})

    # Lists of choices.

    def _groups(self) -> Iterator[_Mention]:
        """Choices that stand in one list, as one mention without those that are denied."""
        group: list[_Mention] = []
        for mention in self.mentions:
            if group and not self._joins(group[-1], mention):
                yield _merged(group)
                group = []
            group.append(mention)
        if group:
            yield _merged(group)

    def _joins(self, one: _Mention, other: _Mention) -> bool:
        is_new_line = any(token.kind == "line" for token in self.tokens[one.last : other.first])
        return self._is_between(one.last, other.first) and (not is_new_line or self._ends_line(other.last))

    def _is_between(self, start: int, stop: int) -> bool:
        """Whether only marks and words such as `and` stand here, of which a full stop or number belongs to a list's line."""
        for place in range(start, stop):
            token, before, after = self.tokens[place], self._at(place - 1), self._at(place + 1)
            is_numbered = token.kind == "number" and before.kind == "line"
            is_stop = token.text in (".", ")") and (after.kind == "line" or before.kind == "number")
            is_between = token.role == "and" or token.text in _BETWEEN or token.kind == "line" or is_numbered or is_stop
            if not is_between:
                return False
        return True


def _bare(choice: str) -> str:
    """A choice's text without its article, in small letters."""
    text = _lowered(_plain(choice)).strip(" .\n")
    article = _ARTICLE.match(text)
    return text[article.end() :] if article else text


def _first(text: str, start: int = 0) -> str:
    match = _TOKENS.match(text, start)
    return match[0] if match else ""


def _union(groups: Sequence[_Mention]) -> _Mention:
    return replace(groups[0], labels=_all_labels(groups), last=groups[-1].last, start=None)


def _all_labels(mentions: Collection[_Mention]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label for mention in mentions for label in mention.labels))


def _merged(group: Sequence[_Mention]) -> _Mention:
    is_denied = any(each.stance is _Stance.DENIED and each.is_spread for each in (group[0], group[-1]))
    kept = [] if is_denied else [each for each in group if each.stance is not _Stance.DENIED]
    stance = max((each.stance for each in kept), default=_Stance.DENIED)
    start = next((each.start for each in kept if each.start is not None), None)
    last = (kept or group)[-1].last
    return replace(group[0], labels=_all_labels(kept), last=last, stance=stance, start=start)
