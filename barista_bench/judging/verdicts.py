"""Read the score in a judge's reply strictly, and weight it by the judge's own probabilities.

A verdict must be one JSON object of the requested form, without other text. If a reply also quotes a forged verdict, it
holds two objects and is refused. Replies are not repaired or searched, since an answer could plant text that a lenient
reader would accept.

G-Eval's score (arXiv 2303.16634, section 2; used by the BARISTA paper, arXiv 2605.12074, section A.1) is the expected
score under the judge's own distribution over score tokens:

    sum over i in 0..10 of p(i) * i / sum of p(i)

p(i) is read from the alternatives of the token where the reply's score begins. Tokens may carry white space and JSON
punctuation before or after the digits. Tokens that spell no score do not count.

If a tokenizer splits "10", the token "1" begins both 1 and 10. If the judge continued from "1", the next token's
distribution divides the probability of "1" between 1 and 10. If the judge chose another score, this distribution is
unknown. If the judge is known to split "10", "1" then counts as 1 or 10, whichever is nearer to the mean of the other
scores, since scores of one answer are close together. The weighted score is marked as inferred. For any other judge,
"1" counts as 1: a single token "10" may be too improbable to be among the alternatives.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barista_bench.core.example import Fields
from barista_bench.core.prompt import object_schema
from barista_bench.models import TokenLogprob
from barista_bench.runs.ask.replies import Unusable, read_object


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """The score and the reason that the judge wrote."""

    score: int
    reason: str


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """Names of the two fields of a reply, and the highest score. The lowest score is 0."""

    score: str
    reason: str
    top: int

    def schema(self, reason_length: int | None = None) -> Fields:
        """Return the JSON Schema of a reply, for judges whose output can be constrained.

        `reason_length` is the maximum number of characters of the reason, or None for no limit. Some servers do not
        accept a limit.
        """
        # The scores are enumerated, since some servers do not accept bounds in a schema.
        score: Fields = {"type": "integer", "enum": list(range(self.top + 1))}
        reason: Fields = {"type": "string"}
        if reason_length is not None:
            reason["maxLength"] = reason_length
        return object_schema({self.score: score, self.reason: reason})


GEVAL_FORM = ReplyForm("score", "reason", 10)
REASONING_FORM = ReplyForm("reasoning_score", "analysis", 5)


def read_verdict(text: str, form: ReplyForm = GEVAL_FORM) -> JudgeVerdict | Unusable:
    """Return the verdict in a reply.

    >>> read_verdict('{"score": 7, "reason": "one slip"}')
    JudgeVerdict(score=7, reason='one slip')
    >>> read_verdict('{"score": 11, "reason": ""}').why
    'score is 11, not from 0 to 10'
    """
    reply = read_object(text)
    if isinstance(reply, Unusable):
        return reply
    if set(reply) != {form.score, form.reason}:
        return Unusable(f"has the keys {sorted(reply)[:5]}, not {form.score} and {form.reason}")
    score, reason = reply[form.score], reply[form.reason]
    if isinstance(score, bool) or not isinstance(score, int):
        return Unusable(f"{form.score} is a {type(score).__name__}, not a whole number")
    if not 0 <= score <= form.top:
        return Unusable(f"{form.score} is {score}, not from 0 to {form.top}")
    if not isinstance(reason, str):
        return Unusable(f"{form.reason} is a {type(reason).__name__}, not text")
    return JudgeVerdict(score, reason)


_SCORE_TOKEN = re.compile(r"[\s:\"]*(\d{1,2})([\s,}]*)", re.DOTALL)
_MIDDLE = 5.5


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """The expected score from 0 to 10, and whether a split "10" was inferred."""

    score: float
    inferred: bool = False


def splits_ten(replies: Iterable[Sequence[TokenLogprob]]) -> bool:
    """Return whether the judge is known to write 10 as two tokens.

    It is if some replies write 10 as two tokens and no reply writes it as a single token.
    """
    is_split = False
    for tokens in replies:
        position = _score_position(tokens, 10)
        if position is None:
            continue
        if not _is_open_one(tokens[position].token):
            return False
        is_split = True
    return is_split


def weighted_score(
    tokens: Sequence[TokenLogprob] | None, score: int, *, ten_is_split: bool = False
) -> WeightedScore | None:
    """Return the weighted score of a reply.

    `tokens` are its tokens with their alternatives, `score` is its plain score.

    Return None if there are no alternatives or the tokens do not spell the score. Then use the plain score.
    `ten_is_split` tells that the judge is known to write 10 as two tokens (`splits_ten`).
    """
    if not tokens:
        return None
    position = _score_position(tokens, score)
    if position is None or not tokens[position].top:
        return None
    probabilities: dict[int, float] = defaultdict(float)
    open_one = 0.0
    for text, logprob in _alternatives(tokens[position]).items():
        match = _SCORE_TOKEN.fullmatch(text)
        if match is None or str(int(match[1])) != match[1] or int(match[1]) > GEVAL_FORM.top or not logprob <= 0:
            continue  # no score, or no valid probability (NaN)
        if _is_open_one(text):
            open_one += math.exp(logprob)
        else:
            probabilities[int(match[1])] += math.exp(logprob)
    inferred = _divide_open_one(
        probabilities, open_one, tokens[position : position + 2], score, ten_is_split=ten_is_split
    )
    mass = math.fsum(probabilities.values())
    if mass <= 0:
        return None
    return WeightedScore(_weighted_sum(probabilities) / mass, inferred)


def _weighted_sum(probabilities: Mapping[int, float]) -> float:
    return math.fsum(score * probability for score, probability in probabilities.items())


def _score_position(tokens: Sequence[TokenLogprob], score: int) -> int | None:
    """Return the index of the token that contains the score's first digit."""
    text = "".join(token.token for token in tokens)
    # Quotes within a JSON string are escaped, so this matches only the key.
    match = re.search(rf'(?<!\\)"{GEVAL_FORM.score}"\s*:\s*({score})(?!\d)', text)
    if match is None:
        return None
    end = 0
    for index, token in enumerate(tokens):
        end += len(token.token)
        if match.start(1) < end:
            return index if _SCORE_TOKEN.fullmatch(token.token) else None
    return None


def _alternatives(token: TokenLogprob) -> dict[str, float]:
    return {token.token: token.logprob, **dict(token.top)}


def _is_open_one(text: str) -> bool:
    """Return whether a token is a "1" that the next token may extend to "10"."""
    match = _SCORE_TOKEN.fullmatch(text)
    return match is not None and match[1] == "1" and not match[2]


def _divide_open_one(
    probabilities: dict[int, float], open_one: float, tokens: Sequence[TokenLogprob], score: int, *, ten_is_split: bool
) -> bool:
    """Divide the probability of an open "1" between 1 and 10. Return whether the division was inferred.

    `tokens` are the score's first token and the next one.
    """
    if not open_one:
        return False
    has_ten = 10 in probabilities  # as a single token
    if not has_ten and _is_open_one(tokens[0].token) and len(tokens) > 1:
        following = _alternatives(tokens[1]).items()
        zero = math.fsum(math.exp(value) for text, value in following if text.startswith("0") and value <= 0)
        probabilities[10] += open_one * min(zero, 1.0)
        probabilities[1] += open_one * max(1.0 - zero, 0.0)
        return False
    if not has_ten and ten_is_split:
        mass = math.fsum(probabilities.values())
        mean = _weighted_sum(probabilities) / mass if mass else float(score)
        probabilities[10 if mean > _MIDDLE else 1] += open_one
        return True
    probabilities[1] += open_one
    return False


def score_tokens(tokens: Sequence[TokenLogprob] | None, score: int) -> tuple[TokenLogprob, ...] | None:
    """Return the tokens that `weighted_score` needs: all tokens up to the score, and the next token.

    Only the score's token and the next token keep their alternatives.

    Otherwise replies of a hundred tokens with twenty alternatives each would dominate the size of the log.
    """
    position = _score_position(tokens, score) if tokens else None
    if not tokens or position is None:
        return None
    before = (TokenLogprob(token.token, token.logprob) for token in tokens[:position])
    return (*before, *tokens[position : position + 2])
