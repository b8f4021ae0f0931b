"""Properties of the sequence_matching metric that hold for every input."""

from __future__ import annotations

from hypothesis import given, strategies as st
from sequence_matching import macro_f1, sequence_matching as score
from sequence_matching.rescaling import STANDARDISE

cells = st.none() | st.integers(0, 5) | st.floats(-1, 1).map(lambda x: round(x, 3))


@st.composite
def problem_sets(draw, cells=cells, min_videos=1, missing=True):
    n_videos, n_labels = draw(st.integers(min_videos, 4)), draw(st.integers(1, 4))
    row = st.lists(cells, min_size=n_labels, max_size=n_labels)
    matrix = st.lists(st.none() | row if missing else row, min_size=n_videos, max_size=n_videos)
    label = st.integers(0, n_labels - 1)
    labels = draw(st.lists(st.none() | label if missing else label, min_size=n_videos, max_size=n_videos))
    return draw(st.none() | matrix) if missing else draw(matrix), labels


cases_of_sets = st.lists(problem_sets(), min_size=1, max_size=4)
options = st.fixed_dictionaries(
    {
        "standardise": st.sampled_from(STANDARDISE),
        "softmax": st.booleans(),
        "missing": st.sampled_from(["wrong", "drop", -0.1]),
        "ties": st.sampled_from(["lowest", "highest", "wrong"]),
    }
)


def scored(cases, **options):
    return score([c[0] for c in cases], [c[1] for c in cases], **options)


@given(cases_of_sets, options)
def test_shares_are_bounded_and_counts_add_up(cases, options):
    result = scored(cases, **options)
    for name in ("macro_f1", "majority_f1", "coverage", "video_coverage"):
        assert result[name] is None or 0 <= result[name] <= 1
    assert result["n"] == len(cases)
    assert result["n_videos"] == sum(len(labels) for _, labels in cases)
    assert result["n_videos_failed"] + result["n_undefined"] <= result["n_videos"]
    assert 0 <= result["n_unscored"] <= result["n"]
    assert (result["macro_f1"] is None) == (result["n_unscored"] == result["n"])


@given(problem_sets(), options, st.randoms(use_true_random=False))
def test_the_order_of_videos_does_not_matter(case, options, rng):
    matrix, labels = case
    order = rng.sample(range(len(labels)), len(labels))
    shuffled = (None if matrix is None else [matrix[i] for i in order], [labels[i] for i in order])
    got, want = scored([shuffled], **options)["per_set"][0], scored([case], **options)["per_set"][0]
    assert got.pop("predictions") == [want["predictions"][i] for i in order]
    want.pop("predictions")
    assert got == want


@given(problem_sets(), st.integers(-3, 3))
def test_a_constant_added_to_all_scores_of_a_video_changes_nothing_after_the_softmax(case, constant):
    matrix, labels = case
    moved = None
    if matrix is not None:
        shift = [constant, *[0] * len(matrix)]
        moved = [
            None if row is None else [None if s is None else s + by for s in row]
            for row, by in zip(matrix, shift, strict=False)
        ]
    assert scored([(moved, labels)]) == scored([case])


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3)), min_size=1, max_size=8), st.integers(0, 7))
def test_one_more_right_prediction_never_lowers_macro_f1(pairs, index):
    index %= len(pairs)
    better = [(t, t) if i == index else (t, p) for i, (t, p) in enumerate(pairs)]
    assert macro_f1(*zip(*better, strict=True)) >= macro_f1(*zip(*pairs, strict=True)) - 1e-12


@given(st.lists(problem_sets(cells=st.integers(0, 5)), min_size=1, max_size=3))
def test_the_tie_rule_matters_only_where_ties_are_reported(cases):
    lowest, highest, wrong = (scored(cases, ties=ties)["per_set"] for ties in ("lowest", "highest", "wrong"))
    for low, high, none in zip(lowest, highest, wrong, strict=True):
        differ = sum(a != b for a, b in zip(low["predictions"], high["predictions"], strict=True))
        assert low["n_ties"] == high["n_ties"] == none["n_ties"] == differ
        assert low["n_ties"] or low["macro_f1"] == none["macro_f1"]
