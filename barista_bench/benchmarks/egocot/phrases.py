"""Splits a text into pieces: times, names, relations, parts of the frame.

The longest match in dictionaries wins. The time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from barista_bench.benchmarks.egocot import lexicon
from barista_bench.benchmarks.egocot.evidence import Names, Terms, Times, Vocabulary
from barista_bench.benchmarks.egocot.lexicon import PieceKind, Predicate, Region
from barista_bench.benchmarks.kinds.spans import read_seconds
from barista_bench.benchmarks.lexical import stem

MAX_TEXT = 100_000
"""Maximum number of characters of a text that are read."""
MAX_TIMES = 50
"""Maximum number of times of a clause at which the clause's claims are checked."""
_MAX_WORDS = 8
"""Maximum number of words of a name or relation."""

_SENTENCE = re.compile(r"(?<=[.!?])[\s'\"”’)\]]+|\n+")
# A match can begin only at the start of a run of blanks. Trying every blank would take quadratic time.
_CLAUSE = re.compile(
    r";|\s[—–-]\s|,?(?<!\s)\s+(?:but|while|whereas|although|though|however)\s|,\s+(?:not|rather|instead|unlike)\s"
    r"|,?(?<!\s)\s+(?:and|then|and then)\s+(?=(?:at|from|by|around|until)\s+\d)",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?<![\d:.])(?:\d{1,3}:)?\d{1,3}:\d{2}(?:\.\d{1,6})?(?!\d|[.:]\d)"
    r"|(?<![\d:.])\d{1,7}(?:\.\d{1,6})?\s?(?:s|sec|secs|seconds?)\b"
    r"|\bt\s?=\s?\d{1,7}(?:\.\d{1,6})?(?!\d)",
    re.ASCII | re.IGNORECASE,
)
_RANGE = re.compile(r"\s*(?:[–—-]|to|until|and)\s*", re.IGNORECASE)
_CONTEXT = 60
"""Number of characters before a time that determine its kind."""
_ABOUT = r"""(?:\s*(?:\b(?:about|around|approximately|roughly|exactly|precisely|nearly|almost|the)\b|~))*[\s*_'"`]*\Z"""
_AT = re.compile(
    r"(?:\b(?:at|by|around|near|to|until|till|from|between|since|time|timestamp|moment)\b|[@=:~]|\A[^\w(]*)" + _ABOUT,
    re.I,
)
"""A bare number of seconds is a moment only after these words. Elsewhere, `5 s` may be a duration."""
_LASTING = re.compile(r"\b(?:for|over|every|in|within)" + _ABOUT, re.I)
_NO_MOMENT = re.compile(
    r"\b(?:tak(?:es?|ing)|took|last(?:s|ing|ed)?|durations? of|after|before|following|past|prior to"
    rf"|(?:{lexicon.CLOCKS})(?:\s\w+){{0,2}}?\s(?:reads?|reading|shows?|showing|says?|displays?|displaying|set\s\w+|is))"
    + _ABOUT,
    re.I,
)
_NO_MOMENT_AFTER = re.compile(
    r"""[\s*_'"`-]{0,4}\b(?:later|long|remaining|remain|ago|apart|period|after|before|earlier|[ap]m|in all"""
    r"|(?:in )?total"
    r"|left(?=\s+(?:on|before|until|for)\b|\s*(?:[.,;)]|\Z))|of\b(?!\s(?:the|this)\s(?:video|clip|segment))"
    r"|timer|countdown|on (?:the|a|its)\s(?:\w+\s)?(?:clock|timer|countdown|stopwatch|display))\b",
    re.I,
)
_BARE = re.compile(r"(?<![\d:.])(\d{1,7}(?:\.\d{1,6})?)\s?(?:[–—-]|to|and)\s?\Z", re.ASCII | re.I)
"""The start of a range such as `3 to 5 s`."""
_LISTED = re.compile(r"\s*(?:,|&|,?\s?\b(?:and|or)\b)\s*", re.I)
_WORD = re.compile(r"[^\W_]+")
_BREAK = re.compile(r"[,():\"“”]")

NO_TERMS: Terms = MappingProxyType({})


class Piece(NamedTuple):
    """One part of a clause. A name, a state or an action has `names`; other pieces have `predicate` or `region`.

    `follows_break` is True if punctuation precedes the piece.
    """

    kind: PieceKind
    start: int
    end: int
    words: tuple[str, ...]
    names: Names = frozenset()
    predicate: Predicate | None = None
    region: Region | None = None
    follows_break: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence with one statement. Offsets refer to the complete text.

    `own_times` are the times in the clause itself, with their offsets. `times` are the times that apply to the clause:
    its own times, or else the last times before it in the same sentence. After `at this moment`, the last times in the
    text apply. From `order_start` on, words of order (`later`, `before that`) move the statement to unknown times.
    """

    start: int
    end: int
    pieces: tuple[Piece, ...]
    own_times: tuple[tuple[Times, int, int], ...]
    times: tuple[Times, ...]
    order_start: int

    def has(self, kind: PieceKind) -> bool:
        return any(piece.kind == kind for piece in self.pieces)


def split_clauses(
    text: str, vocabulary: Vocabulary, moment: tuple[Times, ...] = (), terms: Terms = NO_TERMS
) -> Iterator[Clause]:
    """Yield the clauses of an untrusted text of any length, with the pieces found by vocabulary, terms and lexicon.

    `moment` is the meaning of `at this moment` if no time is given before.
    """
    text = text[:MAX_TEXT]
    text_times = moment
    for start, end in _split_spans(text, 0, len(text), _SENTENCE):
        times: tuple[Times, ...] = ()
        for begin, stop in _split_spans(text, start, end, _CLAUSE):
            own_times = tuple(_dated_times(text, begin, stop))
            same_times = [match.start() for match in lexicon.SAME_TIME.finditer(text, begin, stop)]
            times = tuple(own for own, _, _ in own_times[:MAX_TIMES]) or (text_times if same_times else times)
            text_times = times or text_times
            time_spans = [(a, b) for _, a, b in own_times]
            pieces = tuple(_pieces(text, begin, stop, time_spans, vocabulary, terms))
            order_start = _find_order_start(text, begin, stop, [*(a for a, _ in time_spans), *same_times], pieces)
            yield Clause(begin, stop, pieces, own_times, times, order_start)


def _find_order_start(text: str, start: int, end: int, dated: list[int], pieces: Sequence[Piece]) -> int:
    """Return the offset where a clause's time stops applying.

    If a word of order follows the clause's last time, return the offset of that time. Without a time, the clause's
    start is used instead. If there is no word of order, return the end of the clause. So `Then, at 3 s, ...` is dated,
    but in `at 3 s ... and later ...` the part that the time applies to is unknown. Words in the name of an action
    (`start the machine`) are not words of order.
    """
    last = max(dated, default=start)
    action_spans = [(piece.start, piece.end) for piece in pieces if piece.kind == "action"]
    words = (match.start() for match in lexicon.ORDER.finditer(text, last, end))
    return last if any(not any(a <= word < b for a, b in action_spans) for word in words) else end


def _dated_times(text: str, start: int, end: int) -> Iterator[tuple[Times, int, int]]:
    """Yield moments and ranges of time in seconds, with their offsets. A moment is a range of zero length.

    Durations, bounds (`after 3 s`) and times of other clocks do not count.
    """
    last, is_moment = start, False
    for times, begin, stop in _spelled_times(text, start, end):
        if last == start or not _LISTED.fullmatch(text, last, begin):
            is_moment = _is_moment(text[max(start, begin - _CONTEXT) : begin], text[begin:stop], text, stop, end)
        if is_moment:
            yield times, begin, stop
        last = stop


def _is_moment(before: str, time_text: str, text: str, stop: int, end: int) -> bool:
    if _NO_MOMENT.search(before) or _NO_MOMENT_AFTER.match(text, stop, end):
        return False
    is_bare = ":" not in time_text and "=" not in time_text
    return not is_bare or (_AT.search(before) is not None and not _LASTING.search(before))


def _spelled_times(text: str, start: int, end: int) -> Iterator[tuple[Times, int, int]]:
    """Yield all parts of the text that have the form of a time or of a range of times."""
    matches = list(_TIME.finditer(text, start, end))
    index = 0
    while index < len(matches):
        match = matches[index]
        first, begin = _seconds(match[0]), match.start()
        following = matches[index + 1] if index + 1 < len(matches) else None
        if following is not None and _RANGE.fullmatch(text, match.end(), following.start()):
            second = _seconds(following[0])
            # `between 1 s and 3 s` is a range, but `at 1 s and 3 s` names two times.
            is_between = text[max(0, begin - 9) : begin].casefold().strip().endswith("between")
            is_list = text[match.end() : following.start()].strip().casefold() == "and" and not is_between
            if first is not None and second is not None and first <= second and not is_list:
                yield (first, second), begin, following.end()
                index += 2
                continue
        bare = _BARE.search(text[max(start, begin - _CONTEXT) : begin])
        if first is not None and bare is not None and ":" not in match[0] and float(bare[1]) <= first:
            yield (float(bare[1]), first), begin - len(bare[0]), match.end()
        elif first is not None:
            yield (first, first), begin, match.end()
        index += 1


def _seconds(text: str) -> float | None:
    return read_seconds(re.sub(r"(?i)[a-z=\s]", "", text))


def _split_spans(text: str, start: int, end: int, separator: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    for match in separator.finditer(text, start, end):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < end:
        yield start, end


def _pieces(
    text: str, start: int, end: int, time_spans: list[tuple[int, int]], vocabulary: Vocabulary, terms: Terms
) -> Iterator[Piece]:
    edges = [start, *(edge for span in time_spans for edge in span), end]
    tokens = [
        (stem(match[0].casefold()), match.start(), match.end())
        for begin, stop in zip(edges[::2], edges[1::2], strict=True)  # the text between the times
        for match in _WORD.finditer(text, begin, stop)
    ]
    index, after = 0, start
    while index < len(tokens):
        piece, length = _longest_piece(tokens, index, vocabulary, terms)
        words = tuple(word for word, _, _ in tokens[index : index + length])
        first, last = tokens[index][1], tokens[index + length - 1][2]
        follows_break = _BREAK.search(text, after, first) is not None
        yield piece._replace(start=first, end=last, words=words, follows_break=follows_break)
        index, after = index + length, last


_Word: TypeAlias = "tuple[str, int, int]"
_SINGLE_WORDS: tuple[tuple[PieceKind, Names], ...] = (
    ("negation", lexicon.NEGATIONS),
    ("hedge", lexicon.HEDGES),
    ("article", lexicon.ARTICLES | {"s"}),
    ("stop", lexicon.STOPS),
)


def _longest_piece(tokens: list[_Word], index: int, vocabulary: Vocabulary, terms: Terms) -> tuple[Piece, int]:
    """Return the longest piece that begins at a token, and the number of the piece's tokens."""
    previous = tokens[index - 1][0] if index else ""
    for length in range(min(_MAX_WORDS, len(tokens) - index), 0, -1):
        words = tuple(word for word, _, _ in tokens[index : index + length])
        piece = _term(words, terms, previous) or _lexicon_piece(words, vocabulary, previous)
        if piece is None:
            continue
        following = [word for word, _, _ in tokens[index + length : index + length + 3]]
        if piece.kind == "region" and following[:1] == ["of"] and not _is_of_view(words, following[1:]):
            return Piece("word", 0, 0, words), length
        if words in lexicon.HAND_NAMES and words[-1] != "hand" and following[:1] == ["s"]:  # whose hand
            return Piece("article", 0, 0, words), length + 1
        return piece, length
    kind: PieceKind = next((kind for kind, single in _SINGLE_WORDS if tokens[index][0] in single), "word")
    return Piece(kind, 0, 0, ()), 1


def _term(words: tuple[str, ...], terms: Terms, previous: str) -> Piece | None:
    kind, name = terms.get(words, ("word", ""))
    if kind == "word" or (kind == "state" and previous not in lexicon.STATE_MARKS):
        return None
    return Piece(kind, 0, 0, words, frozenset({name}), Predicate(name) if kind == "predicate" else None)


def _lexicon_piece(words: tuple[str, ...], vocabulary: Vocabulary, previous: str) -> Piece | None:
    if words in lexicon.HAND_NAMES:
        return Piece("name", 0, 0, words, names=frozenset(lexicon.HAND_NAMES[words]))
    if words in lexicon.REGIONS:
        return Piece("region", 0, 0, words, region=lexicon.REGIONS[words])
    if words in lexicon.TARGET_WORDS:
        return Piece("target", 0, 0, words)
    is_noun = previous in NOUN_MARKS
    if words in lexicon.PREDICATES and not is_noun and (words not in vocabulary or previous in HANDS_LAST):
        return Piece("predicate", 0, 0, words, predicate=lexicon.PREDICATES[words])
    if words in vocabulary:
        return Piece("name", 0, 0, words, names=vocabulary[words])
    if len(words) == 1 and words[0] in lexicon.ANYTHING:
        return Piece("name", 0, 0, words, names=ANY)
    return None


NOUN_MARKS = lexicon.ARTICLES - {"this", "that"}
"""After these words, the next word is not a verb (`the press`). After `this` and `that` it may be (`that holds`)."""
ANY: Names = frozenset({"*"})
"""A word that may mean any object."""
HANDS_LAST = frozenset(words[-1] for words in lexicon.HAND_NAMES)
"""Last words of the names of hands. After these, a word that may be a verb or a name (`handles`) is a verb."""


def _is_of_view(words: tuple[str, ...], following: list[str]) -> bool:
    """Return True if a region belongs to the view (`left side of the view`), not to a thing (`left side of a cup`)."""
    if "of" in words:
        return True
    owner = [word for word in following if word not in lexicon.ARTICLES]
    return bool(owner) and owner[0] in lexicon.VIEWS
