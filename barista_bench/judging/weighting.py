"""G-Eval's probability-weighted score: the expected score under the judge's own distribution over score tokens.

    sum over i in 0..10 of p(i) * i / sum of p(i)

p(i) is read at the token where the reply's score begins, from the alternatives that came with it. Tokens may carry
white space, punctuation of JSON before the digits or after them; those that spell no score do not count.

Where a tokenizer splits "10", the token "1" begins both 1 and 10. Its probability is divided by the next token's
distribution where the judge went on from "1" itself. Where it chose another score, nobody has asked what would have
followed. Of a judge that is known to split "10", "1" then counts as the one of the two that is nearer to the mean of
the others, since scores of one answer lie close together, and the weight is marked as inferred. Of any other judge it
counts as 1: a token "10" of its own may merely be too improbable to be among the alternatives.

Source: G-Eval (arXiv 2303.16634), section 2; used by the BARISTA paper (arXiv 2605.12074), section A.1.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barista_bench.judging.verdicts import GEVAL_FORM, Form
from barista_bench.models import TokenLogprob

_SPELT = re.compile(r"[\s:\"]*(\d{1,2})([\s,}]*)", re.DOTALL)
_MIDDLE = 5.5


@dataclass(frozen=True, slots=True)
class Weighted:
    """The expected score, 0 to `form.top`; the probability that spelt scores; whether a split "10" was inferred."""

    score: float
    mass: float
    inferred: bool = False


def splits_ten(replies: Iterable[Sequence[TokenLogprob]], form: Form = GEVAL_FORM) -> bool:
    """Whether a judge is known to write 10 as two tokens: some of its replies do, and none has it as one."""
    known = False
    for tokens in replies:
        place = _place(tokens, 10, form)
        if place is None:
            continue
        if not _is_open_one(tokens[place].token):
            return False
        known = True
    return known


def weighted_score(
    tokens: Sequence[TokenLogprob] | None, score: int, form: Form = GEVAL_FORM, *, ten_is_split: bool = False
) -> Weighted | None:
    """The weighted score of a reply that says `score`.

    Args:
        tokens: the reply's, in order, with alternatives.
        score: as parsed from the reply; the tokens must spell it.
        form: of the reply.
        ten_is_split: the judge is known to write 10 as two tokens, as `splits_ten` says.

    Returns:
        None where there are no alternatives, or the tokens do not spell the score: the plain score is what there is.
    """
    if not tokens:
        return None
    place = _place(tokens, score, form)
    if place is None or not tokens[place].top:
        return None
    found: dict[int, float] = defaultdict(float)
    open_one = 0.0
    for spelt, closed, probability in _spelt(tokens[place], form.top):
        # A bare "1" may go on to "10" unless the token itself ends the number.
        if spelt == 1 and not closed and form.top >= 10:
            open_one += probability
        else:
            found[spelt] += probability
    inferred = _share_out(found, open_one, tokens, place, score, ten_is_split=ten_is_split)
    mass = math.fsum(found.values())
    if mass <= 0:
        return None
    expected = math.fsum(value * probability for value, probability in found.items()) / mass
    return Weighted(expected, min(mass, 1.0), inferred)


def _place(tokens: Sequence[TokenLogprob], score: int, form: Form) -> int | None:
    """Index of the token in which the score's first digit stands."""
    text = "".join(token.token for token in tokens)
    # Within a JSON string the quotes are escaped, so this matches the key alone.
    key = re.search(rf'(?<!\\)"{form.score}"\s*:\s*({score})(?!\d)', text)
    if key is None:
        return None
    end = 0
    for index, token in enumerate(tokens):
        end += len(token.token)
        if key.start(1) < end:
            return index if _SPELT.fullmatch(token.token) else None
    return None


def _spelt(token: TokenLogprob, top: int) -> list[tuple[int, bool, float]]:
    """Score, whether the token ends the number, and probability of each alternative that spells a score."""
    alternatives: Mapping[str, float] = {token.token: token.logprob, **dict(token.top)}
    found = []
    for text, logprob in alternatives.items():
        match = _SPELT.fullmatch(text)
        if match and int(match[1]) <= top and str(int(match[1])) == match[1] and logprob <= 0:
            found.append((int(match[1]), bool(match[2]), math.exp(logprob)))
    return found


def _is_open_one(text: str) -> bool:
    """Whether a token is a 1 that the next one may make a 10."""
    match = _SPELT.fullmatch(text)
    return match is not None and match[1] == "1" and not match[2]


def _share_out(
    found: dict[int, float],
    open_one: float,
    tokens: Sequence[TokenLogprob],
    place: int,
    score: int,
    *,
    ten_is_split: bool,
) -> bool:
    """Divide what an open "1" has between 1 and 10; says whether that was inferred."""
    if not open_one:
        return False
    if 10 in found:  # this tokenizer has a token of its own for 10
        found[1] += open_one
        return False
    if _is_open_one(tokens[place].token) and place + 1 < len(tokens):
        following = tokens[place + 1]
        alternatives = {following.token: following.logprob, **dict(following.top)}
        ten = math.fsum(math.exp(value) for text, value in alternatives.items() if text.startswith("0") and value <= 0)
        found[10] += open_one * min(ten, 1.0)
        found[1] += open_one * max(1.0 - ten, 0.0)
        return False
    if not ten_is_split:
        found[1] += open_one
        return False
    others = math.fsum(found.values())
    mean = math.fsum(value * probability for value, probability in found.items()) / others if others else float(score)
    found[10 if mean > _MIDDLE else 1] += open_one
    return True


def score_tokens(tokens: Sequence[TokenLogprob] | None, score: int, form: Form) -> tuple[TokenLogprob, ...] | None:
    """The tokens that `weighted_score` needs: those up to the score and one more, alternatives at these two alone.

    A reply of a hundred tokens with twenty alternatives each would otherwise weigh more than all else in the log.
    """
    place = _place(tokens, score, form) if tokens else None
    if not tokens or place is None:
        return None
    before = (TokenLogprob(token.token, token.logprob) for token in tokens[:place])
    return (*before, *tokens[place : place + 2])
