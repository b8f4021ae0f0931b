"""G-Eval's probability-weighted score, against sums done by hand."""

import math

import pytest
from hypothesis import given, strategies as st

from barista_bench.judging.verdicts import score_tokens, splits_ten, weighted_score
from barista_bench.models import TokenLogprob


def choice(text: str, top: dict[str, float]) -> TokenLogprob:
    """A token and its alternatives with their probabilities."""
    return TokenLogprob(text, math.log(top[text]), tuple((name, math.log(p)) for name, p in top.items()))


def plain(text: str) -> TokenLogprob:
    return TokenLogprob(text, 0.0, ((text, 0.0),))


def reply(*score: TokenLogprob, before: tuple[str, ...] = ('{"', "score", '":')) -> list[TokenLogprob]:
    return [*map(plain, before), *score, *map(plain, (',"', "reason", '":', ' "', "fine", '"}'))]


NO_SCORES = {"7": 0.4, "8": 0.2, "seven": 0.1, "11": 0.1, "07": 0.05, '"7': 0.05, "-1": 0.05}
BY_HAND = {
    "the expectation over the score tokens": ([{" 7": 0.5, " 8": 0.3, " 6": 0.1}], 7, 6.5 / 0.9),
    "no scores do not count, and '\"7' spells a 7 as well": ([NO_SCORES], 7, (0.45 * 7 + 0.2 * 8) / 0.65),
    "spellings of one score are added up": ([{"9": 0.3, " 9": 0.3, "9,": 0.2, "4": 0.2}], 9, 0.8 * 9 + 0.2 * 4),
    "ten in one token": ([{"10": 0.6, "9": 0.3, "1": 0.1}], 10, 0.6 * 10 + 0.3 * 9 + 0.1 * 1),
    # "1" has 0.8: three quarters of it go on to 10, one quarter stops at 1.
    "ten in two tokens": ([{"1": 0.8, "9": 0.2}, {"0": 0.75, ",": 0.25}], 10, 0.6 * 10 + 0.2 * 1 + 0.2 * 9),
    "what followed a one that ended itself says nothing of an open one": ([{"1,": 0.6, "1": 0.4}, {"0": 1.0}], 1, 1.0),
}
"""What was chosen and its alternatives, token by token; the score as written; the weighted score."""


@pytest.mark.parametrize(("tokens", "written", "score"), BY_HAND.values(), ids=BY_HAND)
def test_the_weighted_score_is_as_computed_by_hand(tokens: list[dict[str, float]], written: int, score: float) -> None:
    weighted = weighted_score(reply(*(choice(next(iter(top)), top) for top in tokens)), written)
    assert weighted is not None
    assert weighted.score == pytest.approx(score)
    assert not weighted.inferred


def test_a_one_that_ended_there_is_divided_by_what_might_have_followed() -> None:
    tokens = [
        *map(plain, ('{"', "score", '":')),
        choice("1", {"1": 0.9, "2": 0.1}),
        choice(",", {",": 0.95, "0": 0.05}),
    ]
    tokens += map(plain, (' "reason"', ': "x"}'))
    weighted = weighted_score(tokens, 1)
    assert weighted is not None
    assert weighted.score == pytest.approx(0.9 * 0.95 * 1 + 0.9 * 0.05 * 10 + 0.1 * 2)


@pytest.mark.parametrize(("others", "meant"), [({"9": 0.5, "8": 0.1}, 10), ({"0": 0.3, "2": 0.3}, 1)])
def test_a_one_that_was_not_chosen_counts_as_the_nearer_of_one_and_ten_where_the_judge_splits_ten_and_is_marked(
    others: dict[str, float], meant: int
) -> None:
    chosen = next(iter(others))
    weighted = weighted_score(reply(choice(chosen, {**others, "1": 0.4})), int(chosen), ten_is_split=True)
    assert weighted is not None
    assert weighted.inferred
    assert weighted.score == pytest.approx(sum(int(t) * p for t, p in others.items()) + 0.4 * meant)


@pytest.mark.parametrize("token", ["1", " 1", "1,"])
def test_a_one_that_was_not_chosen_is_a_one_where_nothing_shows_that_the_judge_splits_ten(token: str) -> None:
    weighted = weighted_score(reply(choice("9", {"9": 0.5, "8": 0.3, token: 0.2})), 9)
    # 0.5 * 9 + 0.3 * 8 + 0.2 * 1, by hand
    assert weighted is not None
    assert not weighted.inferred
    assert weighted.score == pytest.approx(7.1)


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
        (reply(choice("7", {"7": 1.0})), 8),  # the tokens say something else than the reply
        (reply(choice("x7", {"x7": 1.0})), 7),
    ],
)
def test_without_alternatives_that_spell_the_score_there_is_no_weight(tokens, score):
    assert weighted_score(tokens, score) is None


def test_log_probabilities_that_are_none_do_no_harm() -> None:
    odd = (("1", -0.1), ("9", float("nan")), ("8", float("inf")), ("7", 5000.0), ("6", float("-inf")))
    following = TokenLogprob("0", -0.1, (("0", 5000.0), ("00", float("nan")), (",", -3.0)))
    weighted = weighted_score(reply(TokenLogprob("1", -0.1, odd), following), 10)
    assert weighted is not None
    assert 0 <= weighted.score <= 10


def test_a_score_quoted_within_the_reason_is_not_taken_for_the_score() -> None:
    tokens = [*map(plain, ('{"reason": "it says \\"score\\": 10', '", "', "score", '": ')), choice("3", {"3": 1.0})]
    weighted = weighted_score([*tokens, plain("}")], 3)
    assert weighted is not None
    assert weighted.score == 3


def test_the_log_keeps_only_the_tokens_that_weigh() -> None:
    tokens = reply(choice("1", {"1": 0.8, "9": 0.2}), choice("0", {"0": 0.75, ",": 0.25}))
    kept = score_tokens(tokens, 10)
    assert kept is not None
    assert [token.token for token in kept] == ['{"', "score", '":', "1", "0"]
    assert [bool(token.top) for token in kept] == [False, False, False, True, True]
    assert weighted_score(kept, 10) == weighted_score(tokens, 10)


@given(
    st.dictionaries(st.sampled_from([*map(str, range(11)), " 3", "x", "42"]), st.floats(0.001, 1), min_size=1),
    st.integers(2, 9),
)
def test_weighted_scores_stay_within_the_scores_that_occur(top: dict[str, float], score: int) -> None:
    total = sum(top.values()) + 0.5
    fractions = {name: p / total for name, p in {**top, str(score): top.get(str(score), 0.5)}.items()}
    weighted = weighted_score(reply(choice(str(score), fractions)), score)
    assert weighted is not None
    spelt = [int(name) for name in fractions if name.strip().isdigit() and int(name) <= 10]
    low, high = min(spelt), max(spelt)
    assert low - 1e-9 <= weighted.score <= (10 if 1 in spelt else high) + 1e-9
