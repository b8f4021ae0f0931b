"""Find the choice that a free-text answer names. All sets whose releases define no reading use this reader.

An answer is cut into words, signs and marks. Each separate letter of a choice is classified by the words before and
after it (`choice_words.py`). The letter is

* named: `Answer: B`, `I choose B`, `B is correct`, a first or last line with only `B` or `B. its text`;
* said: `It is B`;
* denied: `not B`, `B is wrong`, `rather than B`; or in doubt: `B?`, or a letter with the text of another choice;
* or only mentioned.

The last named choice is the answer. Without a named choice, the answer is the choice that is said. Without either, it
is the choice that a short answer mentions or that an answer begins with, if all other choices are denied. An answer or
a named text that equals a choice's text means that choice. If one choice is required, two choices are not an answer. A
letter before a word that is not in the table (`A hand`) is not a choice: A and I are words too, and all letters are
read by the same rules.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from barista_bench.benchmarks.kinds.choice_words import (
    CLOSE,
    LINKS,
    MARKS,
    OPEN,
    ROLES,
    STOPS,
    Stance,
    Token,
    Words,
    first_token,
    lower_case,
    simplify_signs,
)
from barista_bench.benchmarks.parsing import json_objects, strip_fence

_WINDOW = 20_000
"""Maximum number of characters, from the end of an answer, that are searched for a choice."""
_OBJECTS = 20
"""Maximum number of JSON objects, from the end of an answer, that are searched for a choice."""
_SHORT = 60
"""Maximum number of tokens of a short answer, in which a mention is enough."""

_ENDS = CLOSE | STOPS | LINKS | frozenset("<,|\\(")
"""Marks after a choice's text."""
_MODALS = frozenset(("would", "should", "must", "could", "seems", "appears", "looks"))
_ARTICLE = re.compile(r"(?:an?|the|der|die|das|eine?|le|la|les|une?|el|los|las|una|os?|il)\s+")
_LATIN: Final = str.maketrans("АВЕКМНОРСТХΑΒΕΗΙΚΜΝΟΡΤΧΥΖ", "ABEKMHOPCTXABEHIKMNOPTXYZ")
"""Capitals of other alphabets that look like the capitals of labels."""
_THOUGHT_END = re.compile(r"</(?:think|thinking|thoughts?|reasoning)>|\[/THINK\]", re.IGNORECASE)
_CLOSING = re.compile(r"[\s*_.)\]}\"'`$\\]{0,16}(?:</\w{1,20}>|<\|end_of_box\|>|\[/\w{1,20}\])?[\s.$)\]\\]{0,4}")


class ChoiceReading(NamedTuple):
    """The labels that an answer names, in the order of the answer, and the place of the labels in its text.

    If the labels have no place, `start` is the length of the text. `content` is the JSON object with the answer.
    """

    labels: tuple[str, ...]
    start: int
    end: int
    content: Mapping[str, object] | None = None


def read_choices(text: str, choices: Mapping[str, str], *, several: bool = False) -> ChoiceReading | None:
    """Return the choices that an answer names; None if it names no choice. `choices` maps labels to texts.

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
    if objects and strip_fence(text).startswith("{"):  # an object without a usable answer has no reading
        return None
    return _read_text(text, choices, several=several)


def _answers_of(value: Mapping[str, object]) -> Sequence[str]:
    """Return the answers in a JSON object.

    A value that is not text becomes "". The result is empty if no key is a word for an answer.
    """
    for role in ("answer", "option"):
        for key, answer in value.items():
            if any(ROLES.get(word) == role for word in (key.casefold(), *key.casefold().split("_"))):
                if isinstance(answer, dict):
                    return _answers_of(answer)
                answers = answer if isinstance(answer, list) and answer else [answer]
                return [each if isinstance(each, str) else "" for each in answers]
    return ()


def _read_text(text: str, choices: Mapping[str, str], *, several: bool) -> ChoiceReading | None:
    begin = max(len(text) - _WINDOW, 0, *(match.end() for match in _THOUGHT_END.finditer(text)))
    answer = _Answer(simplify_signs(text[begin:]), choices, several=several)
    found = answer.read()
    if found is None:
        return None
    if found.start is None:
        return ChoiceReading(found.labels, len(text), len(text))
    end = begin + answer.words[found.last - 1].end
    closing = _CLOSING.match(text, end)
    return ChoiceReading(found.labels, begin + answer.words[found.start].start, closing.end() if closing else end)


@dataclass(frozen=True, slots=True)
class _Mention:
    """The labels at the tokens [first, last).

    `start` is the first token of any words before the labels that name them. `is_spread` means that a denial applies to
    the complete list of labels. `is_text` means that the mention is a choice's text without a letter.
    """

    labels: tuple[str, ...]
    first: int
    last: int
    stance: Stance = Stance.MENTIONED
    start: int | None = None
    is_spread: bool = False
    is_text: bool = False


class _Answer:
    """One answer, and the choices that it mentions."""

    def __init__(self, text: str, choices: Mapping[str, str], *, several: bool) -> None:
        self.choices, self.several, self.lowered = choices, several, lower_case(text)
        self.names = {label.lower(): label for label in choices} | {label: label for label in choices}
        self.texts = {label: bare for label, choice in choices.items() if (bare := _strip_article(choice))}
        self.repeated_texts = {choice for choice, count in Counter(self.texts.values()).items() if count > 1}
        self.by_first: dict[str, list[str]] = defaultdict(list)
        """Labels by the first token of their texts, the longest text first."""
        for label in sorted(self.texts, key=lambda label: -len(self.texts[label])):
            self.by_first[first_token(self.texts[label])].append(label)
        self.words = Words(text, tuple(choices))
        mentions: list[_Mention] = []
        index = 0
        while index < len(self.words):
            mention = self._letter_at(index) or self._text_at(index, mentions)
            if mention:
                mentions.append(mention)
                self.words.covered.update(range(mention.first, mention.last))
            index = mention.last if mention else index + 1
        forms = {(self._form(each), each.labels) for each in mentions if self.words.line_start(each.first) is not None}
        counts = Counter(form for form, _ in forms)
        self.mentions = [self._judge(mention, is_listed=counts[self._form(mention)] > 1) for mention in mentions]

    def read(self) -> _Mention | None:
        """Return all labels that the answer names, as one mention."""
        groups = list(self._groups())
        named = [group for group in groups if group.stance is Stance.NAMED]
        judged = [group for group in named if group.start is None]
        said = [group for group in groups if group.stance is Stance.SAID]
        if self.several and named and judged == named:  # `A is right. C is right.`
            return _union(named)
        if named and named[-1].start is None and len({group.labels for group in judged}) > 1:
            return None
        if named or len({group.labels for group in said}) == 1:
            answer = (named or said)[-1]
            later = [each for each in self.mentions if each.stance is Stance.DENIED and each.first >= answer.last]
            is_denied = any(label in answer.labels for each in later for label in each.labels)
            return None if is_denied or (len(answer.labels) > 1 and not self.several) else answer
        return None if said else self._only_mentioned([group for group in groups if group.labels])

    def _only_mentioned(self, groups: Sequence[_Mention]) -> _Mention | None:
        """Return the only choice that is not denied, if the answer begins with this choice or is short."""
        union = _union(groups) if groups else None
        if union is None or (len(union.labels) > 1 and not self.several):
            return None
        after = self.words[groups[0].last]
        if self.words.line_start(groups[0].first) == 0 and (after.kind != "word" or after.role == "because"):
            return replace(groups[0], labels=union.labels, start=0)
        before = [self.words[group.first - 1] for group in groups]
        is_free = all(token.role or token.kind != "word" for token in before)  # not as in `Plan B`
        starts = all(token.kind == "line" or token.text in STOPS | {","} or token.role == "but" for token in before)
        is_judged = len(self.mentions) > len(groups)
        return union if len(self.words) <= _SHORT and (starts if is_judged else is_free) else None

    def _form(self, mention: _Mention) -> tuple[str, str]:
        """Return the marks around a letter. They are equal throughout a list of choices."""
        before, after = self.words[mention.first - 1], self.words[mention.first + 1]
        return before.text.strip() if before.kind == "mark" else "", after.text.strip() if after.kind == "mark" else ""

    def _letter_at(self, index: int) -> _Mention | None:
        """Return the separate letter of a choice, together with a choice's text after the letter."""
        text = self.words[index].text
        written = text.translate(_LATIN) if len(text) == 1 else text
        label = self.names.get(written, self.names.get(written.lower()))
        if label is None:
            return self._compound_at(index)
        own = self._choice_text(index + 1)
        is_marked, is_ended = self.words[index + 1].kind == "mark", own is not None and self._is_end(own[1])
        has_own = own is not None and own[0] == label and (is_marked or (is_ended and text == label))
        if not has_own and not self._is_apart(index, label):
            return None
        if own is None or not (has_own or (is_marked and is_ended)):
            return _Mention((label,), index, index + 1)
        return _Mention((label,), index, own[1], Stance.MENTIONED if has_own else Stance.DENIED)

    def _is_apart(self, index: int, label: str) -> bool:
        """Return True if a letter is separate and not a word."""
        token, before, after, second = (self.words[index + step] for step in (0, -1, 1, 2))
        is_small = len(token.text) == 1 and token.text.islower() != label.islower()
        is_dotted = after.text == "." and second.kind == token.kind and second.start == token.end + 1  # `A.M.`, `1.5`
        if (before.kind == "number" and before.end == token.start) or after.kind == "number" or is_dotted:
            return False
        if self._is_part(token, before, self.words[index - 2]) or self._is_part(token, after, second):
            return False
        is_wrapped = before.text in OPEN and after.text in CLOSE and after.start - before.end == len(token.text)
        if is_wrapped and (not is_small or index == 1 or self.words[index - 2].end < before.start):  # not `cup(s)`
            return True
        if is_small:
            is_all = all(other.kind in ("mark", "line") for other in self.words.tokens if other is not token)
            is_named = before.role in ("answer", "option") or self.words.lead(index)[0] is Stance.NAMED
            return is_all or (is_named and (after.kind == "line" or after.text in CLOSE | STOPS | {"<"}))
        if after.kind != "word" or before.role in ("answer", "option"):
            return True
        if label == "I" or not token.text.isascii():  # `I am`, and `В` of Russian
            is_list = after.role == "and" and second.text in self.names
            return label == "I" and (after.text == "is" or after.role in ("fits", "because") or is_list)
        is_it = after.text == "it" and second.role == "be"  # as in `B it is`
        is_judged = after.role == "yes" and (self.words.is_verdict(index + 1) or second.role == "fits")
        is_said = after.role in ("be", "no", "fits", "because", "but", "so", "and") or after.text in _MODALS
        return is_it or is_judged or is_said

    def _is_part(self, token: Token, mark: Token, other: Token) -> bool:
        """Return True if a mark joins a letter to something that is not a choice, as in `N/A` and `A_1`."""
        is_joined = max(token.end, other.end) - min(token.start, other.start) == len(token.text) + len(other.text) + 1
        is_other = other.kind in ("word", "number") and not other.role and other.text not in self.names
        return mark.text in ("/", "&", "-", "+", "_") and is_joined and is_other

    def _compound_at(self, index: int) -> _Mention | None:
        """Return a letter after a word for choices, as in `option_B`, or several letters in one word, as in `ACD`."""
        text = self.words[index].text
        prefix, _, name = text.rpartition("_")
        if name in self.choices and ROLES.get(prefix.lower().partition("_")[0]) in ("answer", "option"):
            return _Mention((name,), index, index + 1)
        is_list = self.several and len(text) > 1 and [*text] == sorted({*text} & self.choices.keys())
        if not is_list or not self.words.ends_line(index + 1):
            return None
        is_answer = self.words.line_start(index) is not None or self.words.lead(index)[0] is Stance.NAMED
        return _Mention(tuple(text), index, index + 1) if is_answer else None

    def _text_at(self, index: int, mentions: Sequence[_Mention]) -> _Mention | None:
        """Return the text of a choice that fills a line, follows naming words, or continues a list of texts."""
        found = self._choice_text(index) if self.words[index].kind not in ("line", "mark") else None
        if found is None:
            return None
        label, last = found
        line = self.words.line_start(index)
        goes_on = mentions and mentions[-1].is_text and self.words.is_between(mentions[-1].last, index)
        is_line = line is not None and (self.words.ends_line(last) or self.words[last].text == ".")
        starts_list = self.several and line == 0 and self.words[last].text in ",;&+"
        is_named = self._is_end(last) and self.words.lead(index)[0] is Stance.NAMED
        return _Mention((label,), index, last, is_text=True) if goes_on or is_line or starts_list or is_named else None

    def _choice_text(self, index: int) -> tuple[str, int] | None:
        """Return the choice whose text is at `index`, and the token after that text. Marks and an article are
        ignored.
        """
        index = self.words.after_marks(index, MARKS | LINKS | {"."})
        if self.words[index].kind == "line":
            return None
        start = self.words[index].start
        article = _ARTICLE.match(self.lowered, start)
        start = article.end() if article else start
        labels = self.by_first.get(first_token(self.lowered, start), ())
        label = next((label for label in labels if self.lowered.startswith(self.texts[label], start)), None)
        if label is None or self.texts[label] in self.repeated_texts:
            return None
        end = start + len(self.texts[label])
        while self.words[index].text and self.words[index].start < end:
            index += 1
        return (label, index) if self.words[index - 1].end == end else None

    def _is_end(self, index: int) -> bool:
        token = self.words[index]
        return token.kind == "line" or token.text in _ENDS or token.role in ("because", "but", "and")

    def _judge(self, mention: _Mention, *, is_listed: bool) -> _Mention:
        """Return a mention with the stance that the surrounding words give it."""
        if mention.stance is Stance.DENIED:
            return mention
        stance, start = self.words.lead(mention.first)
        verdict, is_plural = self.words.verdict(mention.last)
        if Stance.DENIED in (stance, verdict):
            return replace(mention, stance=Stance.DENIED, is_spread=stance is Stance.DENIED or is_plural)
        if stance is Stance.NAMED:
            return replace(mention, stance=stance, start=start)
        line = self.words.line_start(mention.first)
        if line is None:
            line = self.words.sentence_start(mention.first)
        is_last = all(token.kind in ("line", "mark") for token in self.words.tokens[mention.last :])
        is_alone = line is not None and (line == 0 or is_last) and self.words.ends_line(mention.last)
        if is_alone and (self.several or not is_listed):
            return replace(mention, stance=Stance.NAMED, start=line)
        if verdict is Stance.NAMED:
            return replace(mention, stance=verdict)
        return replace(mention, stance=stance, start=start)

    def _groups(self) -> Iterator[_Mention]:
        """Merge the choices of one list into one mention, and leave out denied choices."""
        group: list[_Mention] = []
        for mention in self.mentions:
            if group and not self._is_joined(group[-1], mention):
                yield _merge(group)
                group = []
            group.append(mention)
        if group:
            yield _merge(group)

    def _is_joined(self, one: _Mention, other: _Mention) -> bool:
        is_new_line = any(token.kind == "line" for token in self.words.tokens[one.last : other.first])
        is_list = self.words.is_between(one.last, other.first)
        return is_list and (not is_new_line or self.words.ends_line(other.last))


def _strip_article(choice: str) -> str:
    """Return a choice's text in lower case and without its article."""
    text = lower_case(simplify_signs(choice)).strip(" .\n")
    article = _ARTICLE.match(text)
    return text[article.end() :] if article else text


def _labels_of(mentions: Sequence[_Mention]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label for mention in mentions for label in mention.labels))


def _union(groups: Sequence[_Mention]) -> _Mention:
    return replace(groups[0], labels=_labels_of(groups), last=groups[-1].last, start=None)


def _merge(group: Sequence[_Mention]) -> _Mention:
    is_denied = any(each.stance is Stance.DENIED and each.is_spread for each in (group[0], group[-1]))
    kept = [] if is_denied else [each for each in group if each.stance is not Stance.DENIED]
    stance = max((each.stance for each in kept), default=Stance.DENIED)
    start = next((each.start for each in kept if each.start is not None), None)
    last = (kept or group)[-1].last
    return replace(group[0], labels=_labels_of(kept), last=last, stance=stance, start=start)
