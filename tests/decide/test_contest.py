"""The known facts of a set: its order, its linear scores, its interval, several tasks, and its missing scores."""

from collections.abc import Callable
from itertools import combinations
from math import comb, inf, log

import numpy as np
import pytest
from hypothesis import given, strategies as st

from barista_bench.runs.decide import order as orders
from barista_bench.runs.decide.contest import Contest, Goal, Rival, log_wealth, p_value
from barista_bench.runs.decide.order import AskingOrder
from barista_bench.runs.decide.stopping import Stopping, WatchedContest
from barista_bench.runs.score.stopping import StoppedRun


def f1_contest(rng: np.random.Generator, size: int, bound: float, better: bool) -> tuple[Contest, float, float]:
    """A contest of two models by micro F1, with all answers in it, and the scores of both."""
    entries = rng.integers(1, 5, size)
    skills = (0.7, 0.4) if better else (0.4, 0.7)
    found = [rng.binomial(entries, skill) for skill in skills]
    listed = [hits + rng.integers(0, 4, size) for hits in found]
    (own, score), (other, target) = (
        (np.column_stack([2.0 * hits, entries + count]), 2 * hits.sum() / (entries + count).sum())
        for hits, count in zip(found, listed, strict=True)
    )
    least = np.column_stack([np.zeros(size), entries + bound])
    rival = Rival("other", float(target), other[:, 0] - target * other[:, 1])
    order = AskingOrder.of("hash", [str(at) for at in range(size)])
    contest = Contest(Goal("decided"), order, least, np.column_stack([2.0 * entries] * 2), metric="f1", rival=rival)
    for position, (part, whole) in enumerate(own.tolist()):
        contest.add(position, part, whole)
    return contest, float(score), float(target)


@pytest.mark.parametrize("better", [True, False])
def test_the_linear_form_decides_micro_f1_as_its_definition_does(better: bool) -> None:
    for seed in range(5):
        contest, score, target = f1_contest(np.random.default_rng(seed), 150, 6, better)
        up, down = contest.log_wealths(contest.target, 150)
        assert (up[-1] > down[-1]) == (score > target) == better
        low, high = contest.interval(150, 0.05)
        assert low == pytest.approx(score, abs=1e-3)
        assert high == pytest.approx(score, abs=1e-3)


def test_the_interval_of_a_part_holds_the_score_and_narrows() -> None:
    contest, score, _ = f1_contest(np.random.default_rng(3), 400, 6, better=True)
    widths = []
    for units in (50, 100, 200, 300):
        low, high = contest.interval(units, 0.05)
        assert low <= score <= high
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)


def test_without_a_bound_of_wrong_entries_only_a_worse_model_can_be_shown() -> None:
    for better in (True, False):
        contest, *_ = f1_contest(np.random.default_rng(0), 300, np.inf, better)
        up, down = contest.log_wealths(contest.target, 200)
        assert up[-1] == 0.0
        assert (down[-1] > 10) == (not better)


def test_an_answer_beyond_the_declared_bound_disproves_it(caplog: pytest.LogCaptureFixture) -> None:
    contest, *_ = f1_contest(np.random.default_rng(0), 300, 1, better=True)
    assert contest.log_wealths(contest.target, 200)[0][-1] == 0.0
    assert "only below can be shown" in caplog.text


@given(st.lists(st.text("abc", min_size=1, max_size=4), unique=True, min_size=1, max_size=80), st.randoms())
def test_the_order_depends_on_content_only(names: list[str], rng: object) -> None:
    shuffled = names[:]
    rng.shuffle(shuffled)
    first, second = ([each[unit[0]] for unit in AskingOrder.of("hash", each).units] for each in (names, shuffled))
    assert first == second
    assert len(names) < 12 or first != [names[unit[0]] for unit in AskingOrder.of("other", names).units]


def test_a_unit_of_several_examples_is_never_divided() -> None:
    names = [f"video {at % 7}" for at in range(200)]
    order = AskingOrder.of("hash", names)
    assert sorted(position for unit in order.units for position in unit) == list(range(200))
    assert all(len({order.block_of[position] for position in unit}) == 1 for unit in order.units)
    assert order.examples(order.block_ends[0]) >= orders.BLOCK


class Known(WatchedContest):
    """Answers that a test hands over, in any order; `nan` is an answer that failed."""

    def __init__(self, values: np.ndarray, rival: float = 0.5) -> None:
        size = len(values)
        order = AskingOrder.of("hash", [str(at) for at in range(size)])
        ones = np.ones((size, 2))
        bounds = np.column_stack([np.zeros(size), np.ones(size)]), ones
        offsets = np.zeros(size)
        super().__init__(
            Contest(Goal("decided"), order, *bounds, metric="accuracy", rival=Rival("other", rival, offsets)),
            [str(at) for at in range(size)],
        )
        self.values, self.arrived = values, list[int]()
        self.decision_written: StoppedRun | None = None

    def read(self) -> None:
        for position in self.arrived:
            if not self.is_asked[position] and not np.isnan(self.values[position]):
                self.contest.add(position, self.values[position], 1.0)
            self.is_asked[position] = True

    def write(self, decision: StoppedRun) -> str:
        self.decision_written = decision
        return decision.sentence("B")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "BLOCK", 8)


def looked(known: Known, arrivals: list[list[int]]) -> dict[int, int]:
    """The decision after a look at each of these arrivals."""
    stopping = Stopping([known], 0.05)
    for arrived in arrivals:
        known.arrived += arrived
        stopping.look()
    return stopping.decided


def test_late_answers_out_of_order_give_the_same_decision_after_the_same_number(small_blocks: None) -> None:
    values = (np.random.default_rng(0).random(160) < 0.85).astype(float)
    in_order = [unit[0] for unit in Known(values).contest.order.units]
    by_block = looked(Known(values), [in_order[at : at + 8] for at in range(0, 160, 8)])
    assert 0 < by_block[0] < 160
    rng = np.random.default_rng(1)
    for _ in range(5):
        shuffled = rng.permutation(in_order).tolist()
        assert looked(Known(values), [shuffled[at : at + 20] for at in range(0, 160, 20)]) == by_block
    assert looked(Known(values), [in_order[8:], in_order[:8]]) == by_block


def test_an_incomplete_block_does_not_count(small_blocks: None) -> None:
    known = Known(np.ones(80))
    in_order = [unit[0] for unit in known.contest.order.units]
    assert looked(known, [in_order[1:]]) == {}


def test_failed_answers_count_as_the_worst_for_each_side(small_blocks: None) -> None:
    values = np.ones(80)
    values[Known(values).contest.order.units[0][0]] = np.nan
    with_failure, without = (looked(Known(each), [list(range(80))])[0] for each in (values, np.ones(80)))
    assert with_failure >= without
    values[:] = np.nan
    assert looked(Known(values), [list(range(80))]) == {}


def test_several_tasks_share_alpha(small_blocks: None) -> None:
    values = (np.random.default_rng(0).random(160) < 0.75).astype(float)
    alone = looked(Known(values), [list(range(160))])[0]
    others = [Known(np.resize([0.0, 1.0], 160)) for _ in range(9)]  # each a tie
    several = [Known(values), *others]
    stopping = Stopping(several, 0.05)
    for each in several:
        each.arrived = list(range(160))
    stopping.look()
    assert stopping.decided.keys() == {0}
    assert stopping.decided[0] > alone


def test_a_tie_is_never_decided(small_blocks: None) -> None:
    assert looked(Known(np.resize([0.0, 1.0], 160)), [list(range(160))]) == {}


def test_a_decision_names_its_subject(small_blocks: None) -> None:
    known = Known(np.ones(800))
    order = known.contest.order
    known.arrived = [unit[0] for unit in order.units[:64]]
    stopping = Stopping([known], 0.05)
    stopping.look()
    (sentence,) = stopping.record().values()
    decision = known.decision_written
    assert decision is not None
    assert sentence == f"on these 800 questions: B above other in accuracy, decided after {decision.counted} answers"
    assert (decision.verdict, decision.examples) == ("above", 800)
    assert 0.5 < decision.low < 1 == decision.high


@pytest.mark.parametrize("make", [lambda rng: rng.random(200) < 0.5, lambda rng: rng.random(200) < 0.53])
def test_near_ties_are_decided_wrongly_at_most_as_often_as_alpha(make: Callable[[np.random.Generator], object]) -> None:
    wrong = 0
    for seed in range(200):
        values = np.asarray(make(np.random.default_rng(seed)), dtype=float)
        contest = Known(values).contest
        for position, value in enumerate(values.tolist()):
            contest.add(position, value, 1.0)
        up, down = contest.log_wealths(0.5, 199)
        decided = max(up[-1], down[-1]) >= np.log(2 / 0.1)
        wrong += decided and np.sign(up[-1] - down[-1]) != np.sign(values.mean() - 0.5)
    assert wrong <= 20


VALUES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=30)


def is_rejected(values: np.ndarray, alpha: float, count: int | None) -> bool:
    return bool(log_wealth(values, -1.0, count=count)[-1] >= log(1 / alpha))


@pytest.mark.parametrize("size", [6, 9])
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5])
def test_a_small_set_is_wrongly_called_above_in_at_most_alpha_of_all_orders(size: int, alpha: float) -> None:
    for ups in range(size // 2 + 1):
        wrong = 0
        for places in combinations(range(size), ups):
            values = -np.ones(size)
            values[list(places)] = 1.0
            wrong += is_rejected(values, alpha, size)
        assert wrong <= alpha * comb(size, ups)


@pytest.mark.parametrize("count", [300, None])
def test_a_mean_of_exactly_zero_looks_above_at_most_as_often_as_alpha(count: int | None) -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(-0.9, 0.9, 300)
    values -= values.mean()
    draw = rng.permutation if count else lambda v: rng.choice(v, len(v))
    wrong = sum(is_rejected(draw(values), 0.1, count) for _ in range(300))
    assert wrong <= 45  # three standard deviations above 30


@given(VALUES, st.data())
def test_wealth_rises_with_every_value_so_the_worst_may_replace_missing_values(
    values: list[float], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(values) - 1))
    lower = [*values[:at], -1.0, *values[at + 1 :]]
    extra = data.draw(st.integers(0, 20))
    for count in (len(values) + extra, None):
        before, after = (log_wealth(np.array(each), -1.0, count=count) for each in (values, lower))
        assert (after <= before + 1e-9).all()


@given(VALUES)
def test_the_last_value_decides_exactly_and_never_wrongly(values: list[float]) -> None:
    up, down = (log_wealth(sign * np.array(values), -1.0, count=len(values))[-1] for sign in (1, -1))
    assert (up == inf) == (sum(values) > 0)
    assert (down == inf) == (sum(values) < 0)


@given(VALUES)
def test_wealth_never_falls(values: list[float]) -> None:
    wealth = log_wealth(np.array(values), -1.0, count=40)
    assert (np.diff(wealth, prepend=0.0) >= 0).all()


def test_a_set_is_decided_as_soon_as_the_rest_cannot_turn_it() -> None:
    values, rest = np.array([0.5, 0.5]), np.array([-3.0, -0.5])
    assert np.isinf(log_wealth(values, -1.0, count=10, rest=rest)).tolist() == [False, True]


def test_wealth_stays_at_one_without_a_lower_bound() -> None:
    assert log_wealth(np.ones(20), -inf, count=100).tolist() == [0.0] * 20


def test_a_p_value_counts_both_directions() -> None:
    assert p_value(0.0, 0.0) == 1.0
    assert p_value(log(40), 0.0) == pytest.approx(0.05)
