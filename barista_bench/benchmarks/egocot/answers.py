"""An answer apart from its rationale.

The benchmark wants a strict match of the letter and does not say how it is found in free text. Here, in this order:

1. scores of a model that ranks the choices (`read_scores` of `core/example.py`): the highest, without a rationale;
2. the last JSON object with `answer` or `predicted_answer`, as in the submission file: its letter, and its `reasoning`,
   a text, a list or an object of steps;
3. the last `answer:` or `answer is` (as which `<answer>B</answer>` and `\\boxed{B}` are read) that a letter of the
   choices follows by itself: what comes before is the rationale, or what comes after where nothing does;
4. a text that begins with a letter of the choices by itself: what comes after is the rationale. Where it goes on to
   judge others as well, or denies its own (`A is wrong`), its last conclusion counts (`so B.`, `B is correct`), else
   the first letter if all others are denied, else none.

A letter stands by itself where the line or a mark ends it, its choice's own text follows, or it is a capital before a
dash, a bracket or a word such as `because`. The rule is the same for all letters, though A is a word: a choice must not
be easier to read than another. Anything else is not an answer, and two letters in one (`B or C`) are none. A missing
rationale is none, and no parse failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barista_bench.benchmarks.egocot.items import CotAnswer
from barista_bench.benchmarks.parsing import MAX_ANSWER, MAX_STARTS, is_text, json_objects, unfenced
from barista_bench.core.example import read_scores

MAX_REASONING = 50_000
"""Characters of a rationale that are kept."""

_MARKER = re.compile(
    r"(?:\b(?:so|thus|therefore|hence),?\s)?(?:\b(?:the|my)\s)?(?:\b(?:final|correct)\s)?\banswer\b"
    r"[\s*_]{0,4}(?:is[\s*_]{0,4}:?|:)",
    re.IGNORECASE,
)
_LETTER = re.compile(
    r"[\s*_(\[\"'`]{0,8}(?:(?:option|choice)\s)?[\s*_(\[\"'`]{0,8}([A-Za-z])(?![A-Za-z0-9])", re.IGNORECASE
)
_ENDED = re.compile(r"[*_\"'`]{0,4}(?:[)\].,:;!}]|\s{0,4}<|\s*\Z|[^\S\n]*\n)")
_GOES_ON = re.compile(r"[*_\"'`]{0,4}\s{0,4}(?:[-–—(\[=|!]|(?:because|since|as|for|is|was)\b)")
"""What may follow a capital, beside what ends it."""
_WRAPPED = re.compile(
    r"(?:\$\$?|\\[\[(])?[^\S\n]{0,4}\\boxed[^\S\n]?\{[^\S\n]{0,4}(?:\\(?:text|math)(?:bf|it|rm)?[^\S\n]?\{)?"
    r"([^{}\n]{1,200})\}[^\S\n]{0,4}\}?[^\S\n]{0,4}(?:\$\$?|\\[\])])?\.?|<answer>([^<]{1,200})</answer>",
    re.IGNORECASE,
)
"""What models that were trained on mathematics, or to think in tags, write an answer as."""
_ANSWER_KEYS = frozenset(("answer", "predicted_answer"))
_HEADING = re.compile(r"(?:\A|\n)[\s#*_]{0,8}(?:final )?answer[\s:*_]{0,4}\Z", re.IGNORECASE)
_MARKER_GAP = 8
"""Characters between two markers of one answer."""
_ANOTHER = re.compile(
    r"[\s*_)\]\"'`]{0,8}(?:[,;/&]|\bor\b|\band\b)[\s*_(\[\"'`]{0,8}([A-Z])"
    r"(?=[*_\"'`]{0,4}(?:[)\].,;:/&]|\s*(?:\Z|\n|or\b|and\b)))"
)
"""A second letter that is given as well."""
_NO = r"(?:not|no|never|wrong|incorrect|false|impossible|cannot|out|excluded|unlikely|first|tempting|\w{1,8}n['’]t)\b"
_DENIED = re.compile(
    rf"[\s*_)\]\"'`]{{0,8}}(?:[:,–—-]?\s{{0,4}}(?:(?!because|since|as|for|while|and|but|right|correct)\w{{1,12}}\s){{0,4}}{_NO}"
    rf"|[:–—-][^.;\n]{{0,80}}?[:,(–—-]\s{{0,4}}{_NO})",
    re.IGNORECASE,
)
"""What follows a letter that is not an answer: `is wrong`, `: right hand - no`."""
_VERDICT = r"(?:is|was|fits|matches|does|has|says|describes|would|could|can|cannot|must|seems|looks|fails|contradicts)"
_JUDGED = re.compile(rf"(?:\b(?:[Oo]ption|[Cc]hoice)\s\(?|\()([A-Z])\b|(?<![\w'’])([A-Z])(?=\s{_VERDICT}\b|:\s)")
_CONCLUDED = re.compile(
    r"(?:\b(?i:so|thus|therefore|hence|choose|pick|select|go with|leaves)[,:]?\s"
    r"(?i:(?:the\s)?(?:answer|option|choice)\s(?:is\s)?)?"
    r"[*(]{0,3}([A-Z])(?=[)*]{0,3}(?:[.!\n]|\s{0,4}\Z))"
    r"|(?<![\w'’])([A-Z])[)*]{0,3}\s(?:fits|matches|(?:is|must be)\s(?:the\s)?(?:correct|right|true|best|answer)\b))"
)
_MARKS = re.compile(r"[\s*_).:,\]\"'`–—-]{0,16}")
_BLANKS = re.compile(r"[\s*_\"'`]{1,8}")
_LABEL = re.compile(r"\A[\s*_#]{0,8}(?:step[- ]by[- ]step )?reasoning[\s*_]{0,4}:[\s*_]{0,4}", re.IGNORECASE)
_NUMBER = re.compile(
    r"^[^\S\n]*(?:[*_#-]{0,4}[^\S\n]?step[^\S\n]?)?\d{1,3}[.):][*_]{0,4}[^\S\n]*", re.IGNORECASE | re.MULTILINE
)
_EMPTY = re.compile(r"[\s*_#.,:;()\[\]`'\"-]*")


def read_answer(text: str, choices: Mapping[str, str]) -> CotAnswer | None:
    """Letter and rationale of a model's answer; None where no letter can be told.

    >>> read_answer("1. The left hand holds the pot.\\nANSWER: B", {"A": "right hand", "B": "left hand"})
    CotAnswer(answer='B', reasoning='1. The left hand holds the pot.')
    """
    text = text[-MAX_ANSWER:]
    scores = read_scores(text, choices)
    if scores is not None:
        return CotAnswer(max(choices, key=lambda label: scores[label]), "")
    answers = [_answer_in_object(value, choices) for value in json_objects(text) if _ANSWER_KEYS & value.keys()]
    usable = [answer for answer in answers if answer is not None]
    if usable or (answers and unfenced(text).startswith("{")):  # an object whose answer is none has given none
        return usable[-1] if usable else None
    text = _WRAPPED.sub(lambda match: f"\nANSWER: {(match[1] or match[2] or '').strip()}\n", text)
    return _answer_at_marker(text, choices) or _answer_at_start(text, choices)


def _answer_in_object(value: Mapping[str, object], choices: Mapping[str, str]) -> CotAnswer | None:
    answer = value.get("answer", value.get("predicted_answer"))
    letter = _letter_at(answer, 0, choices)[0] if isinstance(answer, str) else None
    return CotAnswer(letter, _clean_text(steps_of(value.get("reasoning")))) if letter else None


def steps_of(value: object) -> str:
    """A rationale that is a text, a list of texts or an object of texts, one step a line; empty for anything else."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return "\n".join(part.strip() for part in parts if is_text(part))


def unnumbered(text: str) -> str:
    """A rationale without the numbers of its steps."""
    return _NUMBER.sub("", text)


def _answer_at_marker(text: str, choices: Mapping[str, str]) -> CotAnswer | None:
    start = last = 0
    markers: list[tuple[int, int]] = []
    for marker in _MARKER.finditer(text):
        gap = text[last : marker.start()]
        if len(gap) > _MARKER_GAP or any(map(str.isalnum, gap)) or not markers:
            start = marker.start()  # else as in `Final answer: \boxed{B}`, which begins where its first one does
        last = marker.end()
        markers.append((start, last))
    for start, end in reversed(markers[-MAX_STARTS:]):
        letter, end = _letter_at(text, end, choices)
        if letter:
            return CotAnswer(letter, _clean_text(text[:start]) or _text_after(text[end:], choices[letter]))
    return None


def _answer_at_start(text: str, choices: Mapping[str, str]) -> CotAnswer | None:
    letter, end = _letter_at(text, 0, choices)
    if letter is None:
        return None
    judged_letters = [(match[1] or match[2], match.end()) for match in _JUDGED.finditer(text, end)]
    others = [(other, stop) for other, stop in judged_letters if other in choices and other != letter]
    is_denied = _is_denied(text, end, choices[letter])
    if not is_denied and all(_is_denied(text, stop, choices[other]) for other, stop in others):
        return CotAnswer(letter, _text_after(text[end:], choices[letter]))
    conclusions = [m[1] or m[2] for m in _CONCLUDED.finditer(text) if (m[1] or m[2]) in choices]
    return CotAnswer(conclusions[-1], _clean_text(text)) if conclusions else None


def _is_denied(text: str, end: int, choice: str) -> bool:
    """Whether what follows a letter, or its choice's own text (which may be `out of view`), says that it is wrong."""
    marks = _MARKS.match(text, end)
    start = marks.end() if marks else end
    repeats_choice = text[start : start + len(choice)].casefold() == choice.casefold()
    return _DENIED.match(text, start + len(choice) if repeats_choice else end) is not None


def _letter_at(text: str, start: int, choices: Mapping[str, str]) -> tuple[str | None, int]:
    """The letter of a choice that stands by itself at a place, and where it ends."""
    match = _LETTER.match(text, start)
    if match is None or match[1].upper() not in choices:
        return None, start
    letter, end = match[1], match.end()
    another = _ANOTHER.match(text, end)
    if letter.isupper() and another is not None and another[1] in choices:
        return None, start
    is_alone = _ENDED.match(text, end) is not None or (letter.isupper() and _GOES_ON.match(text, end) is not None)
    blanks = _BLANKS.match(text, end)
    choice = choices[letter.upper()].casefold()
    names_choice = blanks is not None and text[blanks.end() : blanks.end() + len(choice)].casefold() == choice
    return (letter.upper(), end) if is_alone or names_choice else (None, start)


def _text_after(text: str, choice: str) -> str:
    """The text after a letter, without the choice's own text."""
    text = re.sub(r"\A[\s*_).:,;\]\"'`}$-]{0,16}", "", text)
    if text[: len(choice)].casefold() == choice.casefold():
        text = text[len(choice) :]
    return _clean_text(re.sub(r"\A[\s*_).:,;\]\"'`-]{0,16}", "", text))


def _clean_text(text: str) -> str:
    """A rationale without its heading; empty where only marks are left."""
    text = text.strip()
    text = _LABEL.sub("", text[:-40] + _HEADING.sub("", text[-40:]))[:MAX_REASONING].rstrip(" \t\n*_#(").strip()
    return "" if _EMPTY.fullmatch(text) else text.encode(errors="replace").decode()
