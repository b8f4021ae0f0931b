"""A judge's reply is one JSON object of the right form or no verdict, and its score is weighted by its tokens."""

import json
import math

import jsonschema
import pytest
from hypothesis import given, strategies as st

from barista_bench.core.status import Status
from barista_bench.judging.verdicts import (
    GEVAL_FORM,
    REASONING_FORM,
    JudgeVerdict,
    WeightedScore,
    read_verdict,
    score_tokens,
    splits_ten,
    weighted_score,
)
from barista_bench.models import Completion, Failure, TokenLogprob
from barista_bench.runs.ask.replies import MAX_REPLY, Unusable, reply_status

GOOD = '{"score": 7, "reason": "one slip"}'


@pytest.mark.parametrize("text", [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```"])
def test_one_object_is_a_verdict_with_or_without_a_code_fence(text: str) -> None:
    assert read_verdict(text) == JudgeVerdict(7, "one slip")


NO_VERDICTS = {
    "no object": ("", "7", "[7]", "null", "{" * 100_000, '{"score": 7, "reason": "'),
    "words beside it": (f"My verdict: {GOOD}", f"{GOOD} I hope this helps.", f"Sure:\n```json\n{GOOD}\n```"),
    "words after its fence": (f"```json\n{GOOD}\n```\nI hope this helps.",),
    "two objects": (f"{GOOD}\n{GOOD}", f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```"),
    "a quoted object": (f'The answer says {{"score": 10, "reason": "x"}}. {GOOD}',),
    "no score": tuple(
        f'{{"score": {score}, "reason": ""}}'
        for score in ("11", "-1", "7.5", "7.0", '"7"', "true", "null", "[7]", "NaN", "1" + "0" * 5000)
    ),
    "other fields": (
        *('{"score": 7}', '{"score": 7, "reason": 3}', '{"Score": 7, "reason": ""}'),
        *('{"score": 7, "reason": "", "confidence": 1}', '{"score": 3, "score": 10, "reason": ""}'),
    ),
    "too long": ('{"score": 7, "reason": "' + "x" * MAX_REPLY + '"}',),
}


@pytest.mark.parametrize("text", [text for texts in NO_VERDICTS.values() for text in texts], ids=lambda text: text[:40])
def test_any_other_reply_gives_no_verdict_and_a_reason(text: str) -> None:
    verdict = read_verdict(text)
    assert isinstance(verdict, Unusable)
    assert verdict.why
    assert reply_status(Completion(text), read_verdict)[0] is Status.PARSE_ERROR


@given(st.text())
def test_no_reply_makes_the_reader_fail(text: str) -> None:
    verdict = read_verdict(text)
    assert isinstance(verdict, Unusable | JudgeVerdict)


@given(st.integers(-3, 14), st.text(st.characters(exclude_categories=["Cs"])))
def test_scores_from_0_to_10_are_read_and_no_others(score: int, reason: str) -> None:
    verdict = read_verdict(json.dumps({"score": score, "reason": reason}))
    assert verdict == JudgeVerdict(score, reason) if 0 <= score <= 10 else isinstance(verdict, Unusable)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Completion(GOOD), Status.OK),
        (Completion(GOOD, finish_reason="refusal"), Status.REFUSED),
        (Completion("I will not", finish_reason="refusal"), Status.REFUSED),
        (Completion('{"score": 1', finish_reason="length"), Status.TRUNCATED),
        (Completion(GOOD, finish_reason="length"), Status.OK),
        (Completion("ten out of ten"), Status.PARSE_ERROR),
        (Failure("no network"), Status.INFRA_ERROR),
    ],
)
def test_every_reply_has_its_status(reply: Completion | Failure, status: Status) -> None:
    assert reply_status(reply, read_verdict)[0] is status


def test_the_form_of_the_reasoning_judge_ends_at_five() -> None:
    assert read_verdict('{"reasoning_score": 5, "analysis": "good"}', REASONING_FORM) == JudgeVerdict(5, "good")
    assert isinstance(read_verdict('{"reasoning_score": 6, "analysis": ""}', REASONING_FORM), Unusable)
    assert isinstance(read_verdict(GOOD, REASONING_FORM), Unusable)


def test_the_schema_of_a_form_allows_exactly_the_readable_verdicts() -> None:
    validator = jsonschema.Draft202012Validator(GEVAL_FORM.schema())
    for text in (GOOD, '{"score": 0, "reason": ""}', '{"score": 10, "reason": "x"}'):
        assert validator.is_valid(json.loads(text))
    for text in (
        '{"score": 11, "reason": ""}',
        '{"score": "7", "reason": ""}',
        '{"score": 7}',
        '{"score": 7, "reason": "", "x": 1}',
    ):
        assert not validator.is_valid(json.loads(text))
        assert isinstance(read_verdict(text), Unusable)


def choice(text: str, top: dict[str, float]) -> TokenLogprob:
    """A token and its alternatives with their probabilities."""
    return TokenLogprob(text, math.log(top[text]), tuple((name, math.log(p)) for name, p in top.items()))


def plain(text: str) -> TokenLogprob:
    return TokenLogprob(text, 0.0, ((text, 0.0),))


def reply(*score: TokenLogprob, before: tuple[str, ...] = ('{"', "score", '":')) -> list[TokenLogprob]:
    return [*map(plain, before), *score, *map(plain, (',"', "reason", '":', ' "', "fine", '"}'))]


def weighed(tokens: list[TokenLogprob], score: int, *, ten_is_split: bool = False) -> WeightedScore:
    weighted = weighted_score(tokens, score, ten_is_split=ten_is_split)
    assert weighted is not None
    return weighted


NO_SCORES = {"7": 0.4, "8": 0.2, "seven": 0.1, "11": 0.1, "07": 0.05, '"7': 0.05, "-1": 0.05}
BY_HAND = {
    "the expectation over the score tokens": ([{" 7": 0.5, " 8": 0.3, " 6": 0.1}], 7, 6.5 / 0.9),
    "no scores do not count, and '\"7' spells a 7 as well": ([NO_SCORES], 7, (0.45 * 7 + 0.2 * 8) / 0.65),
    "spellings of one score are added up": ([{"9": 0.3, " 9": 0.3, "9,": 0.2, "4": 0.2}], 9, 0.8 * 9 + 0.2 * 4),
    "ten in one token": ([{"10": 0.6, "9": 0.3, "1": 0.1}], 10, 0.6 * 10 + 0.3 * 9 + 0.1 * 1),
    # "1" has 0.8: three quarters of it continue to 10, one quarter stops at 1.
    "ten in two tokens": ([{"1": 0.8, "9": 0.2}, {"0": 0.75, ",": 0.25}], 10, 0.6 * 10 + 0.2 * 1 + 0.2 * 9),
    "a one that ended there is divided by what might have followed": (
        [{"1": 0.9, "2": 0.1}, {",": 0.95, "0": 0.05}],
        1,
        0.9 * 0.95 * 1 + 0.9 * 0.05 * 10 + 0.1 * 2,
    ),
    "what followed a one that ended itself says nothing of an open one": ([{"1,": 0.6, "1": 0.4}, {"0": 1.0}], 1, 1.0),
}
"""What was chosen and its alternatives, token by token; the score as written; the weighted score."""


@pytest.mark.parametrize(("tokens", "written", "score"), BY_HAND.values(), ids=BY_HAND)
def test_the_weighted_score_is_as_computed_by_hand(tokens: list[dict[str, float]], written: int, score: float) -> None:
    weighted = weighed(reply(*(choice(next(iter(top)), top) for top in tokens)), written)
    assert (weighted.score, weighted.inferred) == (pytest.approx(score), False)


@pytest.mark.parametrize(("others", "meant"), [({"9": 0.5, "8": 0.1}, 10), ({"0": 0.3, "2": 0.3}, 1)])
def test_a_1_that_was_not_chosen_counts_as_the_nearer_of_1_and_10_and_is_marked(
    others: dict[str, float], meant: int
) -> None:
    chosen = next(iter(others))
    weighted = weighed(reply(choice(chosen, {**others, "1": 0.4})), int(chosen), ten_is_split=True)
    assert weighted.inferred
    assert weighted.score == pytest.approx(sum(int(t) * p for t, p in others.items()) + 0.4 * meant)


@pytest.mark.parametrize("token", ["1", " 1", "1,"])
def test_a_1_among_the_alternatives_counts_as_1_without_signs_of_a_split_10(token: str) -> None:
    weighted = weighed(reply(choice("9", {"9": 0.5, "8": 0.3, token: 0.2})), 9)
    assert (weighted.score, weighted.inferred) == (pytest.approx(0.5 * 9 + 0.3 * 8 + 0.2 * 1), False)


SPLIT = reply(choice("1", {"1": 0.8, "9": 0.2}), choice("0", {"0": 0.75, ",": 0.25}))
WHOLE = reply(choice("10", {"10": 1.0}))
NINE = reply(choice("9", {"9": 0.9, "1": 0.1}))


@pytest.mark.parametrize(
    ("replies", "known"),
    [
        ([], False),
        ([NINE], False),  # a 1 among the alternatives shows nothing
        ([reply(choice("1", {"1": 1.0}))], False),  # a score of 1 is none of 10
        ([NINE, SPLIT], True),
        ([SPLIT, WHOLE, SPLIT], False),
        ([WHOLE], False),
    ],
)
def test_a_judge_is_known_to_split_ten_by_its_own_tens(replies: list[list[TokenLogprob]], known: bool) -> None:
    assert splits_ten(replies) is known
    # The log keeps enough to tell.
    kept = [score_tokens(tokens, score) for tokens in replies for score in (1, 9, 10)]
    assert splits_ten([tokens for tokens in kept if tokens]) is known


@pytest.mark.parametrize(
    ("tokens", "score"),
    [
        (None, 7),
        ([], 7),
        ([plain('{"score": '), TokenLogprob("7", -0.1)], 7),  # no alternatives were given
        (reply(choice("7", {"7": 1.0})), 8),  # the tokens differ from the reply
        (reply(choice("x7", {"x7": 1.0})), 7),
    ],
)
def test_a_verdict_without_alternatives_for_its_score_has_no_weighted_score(
    tokens: list[TokenLogprob] | None, score: int
) -> None:
    assert weighted_score(tokens, score) is None


def test_bad_log_probabilities_do_not_break_the_score() -> None:
    odd = (("1", -0.1), ("9", float("nan")), ("8", float("inf")), ("7", 5000.0), ("6", float("-inf")))
    following = TokenLogprob("0", -0.1, (("0", 5000.0), ("00", float("nan")), (",", -3.0)))
    assert 0 <= weighed(reply(TokenLogprob("1", -0.1, odd), following), 10).score <= 10


def test_a_score_quoted_within_the_reason_is_not_taken_for_the_score() -> None:
    tokens = [*map(plain, ('{"reason": "it says \\"score\\": 10', '", "', "score", '": ')), choice("3", {"3": 1.0})]
    assert weighed([*tokens, plain("}")], 3).score == 3


def test_the_log_keeps_only_the_tokens_that_weigh() -> None:
    kept = score_tokens(SPLIT, 10)
    assert kept is not None
    assert [token.token for token in kept] == ['{"', "score", '":', "1", "0"]
    assert [bool(token.top) for token in kept] == [False, False, False, True, True]
    assert weighted_score(kept, 10) == weighed(SPLIT, 10)


@given(
    st.dictionaries(st.sampled_from([*map(str, range(11)), " 3", "x", "42"]), st.floats(0.001, 1), min_size=1),
    st.integers(2, 9),
)
def test_weighted_scores_stay_within_the_scores_that_occur(top: dict[str, float], score: int) -> None:
    total = sum(top.values()) + 0.5
    fractions = {name: p / total for name, p in {**top, str(score): top.get(str(score), 0.5)}.items()}
    weighted = weighed(reply(choice(str(score), fractions)), score)
    spelt = [int(name) for name in fractions if name.strip().isdigit() and int(name) <= 10]
    low, high = min(spelt), max(spelt)
    assert low - 1e-9 <= weighted.score <= (10 if 1 in spelt else high) + 1e-9
