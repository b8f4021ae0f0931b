"""The arithmetic of the sequence_matching metric: against pandas with scikit-learn, by hand, and its errors."""

import math
import random
import statistics

import numpy as np
import pytest
from sequence_matching import (
    LabelledScores,
    macro_f1,
    mean_with_interval,
    rescale,
    score_set,
    sequence_matching as score,
)

from tests.metrics.conftest import assert_metrics

METRIC = "sequence_matching"
NAN = float("nan")


def long_table(pd, predictions, fill=None):
    rows = [
        (i, v, k, fill if (s is None or s != s) and fill is not None else s)
        for i, matrix in enumerate(predictions)
        if matrix is not None
        for v, row in enumerate(matrix)
        # A video without scores still has a cell per label, which may be filled.
        for k, s in enumerate([None] * max(len(r or []) for r in matrix) if row is None else row)
    ]
    table = pd.DataFrame(rows, columns=["set", "video", "label", "s"]).astype({"s": float})
    return table.dropna(subset=["s"])


def z_transform(pd, table, keys):
    groups = table.groupby(keys)["s"]
    return (table["s"] - groups.transform("mean")) / (groups.transform("std") + 1e-6)


def z_leave_one_out(pd, table):
    def problem_set(column):
        values = column.to_numpy()
        parts = [np.delete(values, i) for i in range(len(values))]
        z = [
            (x - statistics.fmean(p)) / (statistics.stdev(p) + 1e-6) if len(p) > 1 else NAN
            for x, p in zip(values.tolist(), [p.tolist() for p in parts], strict=True)
        ]
        return pd.Series(z, index=column.index)

    return table.groupby(["set", "label"])["s"].transform(problem_set)


def reference_predictions(pd, predictions, standardise, softmax, ties, fill):
    """(set, video) -> predicted label, or -1 for none by a tie; videos without a defined z are absent."""
    table = long_table(pd, predictions, fill)
    if softmax:
        power = np.exp(table["s"] - table.groupby(["set", "video"])["s"].transform("max"))
        table["s"] = power / power.groupby([table["set"], table["video"]]).transform("sum")
    if standardise in ("video", "video+label"):
        table["s"] = z_transform(pd, table, ["set", "video"])
    if standardise in ("label", "video+label"):
        table["s"] = z_transform(pd, table, ["set", "label"])
    if standardise == "leave_one_out":
        table["s"] = z_leave_one_out(pd, table)
    table = table.dropna(subset=["s"])
    top = table.groupby(["set", "video"])["s"].transform("max")
    best = table[table["s"] >= top - 1e-9].groupby(["set", "video"])["label"]
    chosen = best.max() if ties == "highest" else best.min()
    if ties == "wrong":
        chosen = chosen.where(best.count() == 1, -1)
    return chosen.to_dict(), int((best.count() > 1).sum())


def reference_scores(pd, f1_score, predictions, references, *, standardise, softmax=True, missing="wrong", ties):
    fill = None if isinstance(missing, str) else missing
    chosen, n_ties = reference_predictions(pd, predictions, standardise, softmax, ties, fill)
    values = []
    for i, (matrix, labels) in enumerate(zip(predictions, references, strict=True)):
        reference, guess = [], []
        for v, label in enumerate(labels):
            row = None if matrix is None else matrix[v]
            nothing = row is None or all(s is None or s != s for s in row)
            gone = nothing if fill is None or all(r is None for r in matrix or [None]) else False
            if label is None or ((i, v) not in chosen and not gone) or (gone and missing == "drop"):
                continue
            reference.append(label)
            guess.append(-1 if gone else chosen[i, v])
        names = sorted({*reference, *guess} - {-1})
        values.append(f1_score(reference, guess, labels=names, average="macro", zero_division=0) if reference else None)
    return values, n_ties


def random_set(rng):
    """Cosines or whole scores (ties), 1 to 7 videos, 1 to 5 labels, now and then something missing."""
    n_videos, n_labels = rng.choice([1, 2, 3, 3, 4, 7]), rng.randint(1, 5)
    draw = rng.choice([lambda: rng.gauss(0.2, 0.05), lambda: rng.choice([-0.1, 0, 1, 2, 3, 5])])
    labels = [rng.randrange(n_labels) for _ in range(n_videos)]
    matrix = [[draw() for _ in range(n_labels)] for _ in range(n_videos)]
    if rng.random() < 0.3:
        matrix = [[rng.choice([None, NAN]) if rng.random() < 0.3 else s for s in row] for row in matrix]
        matrix = [None if rng.random() < 0.2 else row for row in matrix]
    if rng.random() < 0.2:
        labels = [None if rng.random() < 0.3 else label for label in labels]
    return None if rng.random() < 0.03 else matrix, labels


@pytest.mark.parametrize("n", [40, pytest.param(300, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "options",
    [
        {"standardise": "label", "ties": "lowest"},
        {"standardise": "label", "ties": "highest", "missing": "drop"},
        {"standardise": "label", "ties": "wrong", "missing": -0.1},
        {"standardise": "leave_one_out", "ties": "lowest"},
        {"standardise": "raw", "ties": "lowest", "softmax": False},
        {"standardise": "video", "ties": "lowest"},
        {"standardise": "video+label", "ties": "highest", "softmax": False},
        {"standardise": "label", "ties": "lowest", "softmax": False, "missing": "drop"},
    ],
)
def test_equals_pandas_and_scikit_learn_on_random_problem_sets(n, options):
    pd = pytest.importorskip("pandas")
    metrics = pytest.importorskip("sklearn.metrics")
    rng = random.Random(1)
    predictions, references = zip(*[random_set(rng) for _ in range(n)], strict=True)
    got = score(predictions, references, **options)
    want, n_ties = reference_scores(pd, metrics.f1_score, predictions, references, **options)
    assert_metrics(dict(enumerate(values["macro_f1"] for values in got["per_set"])), dict(enumerate(want)))
    table = pd.Series([value for value in want if value is not None])
    mean, error = table.mean(), table.std() / (math.sqrt(len(table)) + 1e-6)
    interval = {"macro_f1": mean, "error": error, "ci_low": mean - 1.96 * error, "ci_high": mean + 1.96 * error}
    assert_metrics(got, interval | {"n_ties": n_ties, "n_unscored": n - len(table)})


def test_the_majority_baseline_is_the_f1_of_the_mode():
    pd = pytest.importorskip("pandas")
    f1 = pytest.importorskip("sklearn.metrics").f1_score
    rng = random.Random(9)
    for _ in range(40):
        labels = [rng.randrange(4) for _ in range(rng.randint(2, 8))]
        mode = int(pd.Series(labels).mode()[0])
        scores = [[rng.random() for _ in range(4)] for _ in labels]
        want = f1(labels, [mode] * len(labels), average="macro", zero_division=0)
        assert score([scores], [labels])["majority_f1"] == pytest.approx(want, abs=1e-12)


def test_standardisation_undoes_a_label_that_all_videos_like():
    # Softmax of each row over two labels; label 0 is favoured by both videos, yet less so by the first.
    scores = [[0.9, 0.8], [0.7, 0.2]]
    p = [1 / (1 + math.exp(b - a)) for a, b in scores]
    half = (p[1] - p[0]) / 2
    sd = math.sqrt(2) * half  # of p - half and p + half, divisor n - 1 = 1
    z = half / (sd + 1e-6)
    assert rescale(np.array(scores)) == pytest.approx(np.array([[-z, z], [z, -z]]), abs=1e-12)
    assert score_set(LabelledScores.build(scores, [1, 0])).macro_f1 == 1
    assert score_set(LabelledScores.build(scores, [1, 0]), standardise="raw").predictions == [0, 0]


def test_macro_f1_counts_the_labels_of_the_truth_and_of_the_predictions_only():
    # Label 0: 2 tp, 1 fn -> 4/5. Label 1: 0. Label 3: predicted only, 0. Label 2 does not occur.
    assert macro_f1([0, 0, 0, 1], [0, 0, 3, 0]) == pytest.approx((4 / 6 + 0 + 0) / 3)
    assert macro_f1([0, 0, 0, 1], [0, 0, 3, 3]) == pytest.approx((4 / 5 + 0 + 0) / 3)
    assert macro_f1([0, 1], [None, 1]) == 0.5


def test_a_single_video_has_no_z_score_and_leaves_its_set_unscored():
    result = score([[[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]], [[0], [0, 1]], ["a", "b"])
    assert (result["macro_f1"], result["n"], result["n_unscored"], result["n_undefined"]) == (1, 2, 1, 1)
    assert result["per_group"]["a"]["macro_f1"] is None
    assert result["per_group"]["a"]["majority_f1"] is None
    assert result["coverage"] == 1
    assert score([[[1.0, 0.0]]], [[0]], standardise="raw")["macro_f1"] == 1
    assert score([[[1.0, 0.0], [0.0, 1.0]]], [[0, 1]], standardise="leave_one_out")["macro_f1"] is None


def test_a_video_without_scores_is_wrong_or_dropped_or_filled_as_asked():
    scores, labels = [[0.9, 0.1, 0.2], [0.1, 0.9, 0.2], None], [0, 1, 2]
    wrong, dropped = score([scores], [labels]), score([scores], [labels], missing="drop")
    filled = score([scores], [labels], missing=-0.1)
    assert (wrong["macro_f1"], dropped["macro_f1"]) == (pytest.approx(2 / 3), 1)
    assert (wrong["n_videos_failed"], wrong["video_coverage"], wrong["coverage"]) == (1, pytest.approx(2 / 3), 1)
    assert (filled["n_videos_failed"], filled["macro_f1"]) == (0, 1)
    assert wrong["majority_f1"] == dropped["majority_f1"] == pytest.approx(1 / 6)


def test_a_set_without_scores_is_wrong_or_unscored():
    wrong = score([None, [[1.0, 0.0], [0.0, 1.0]]], [[0, 1], [0, 1]])
    dropped = score([None, [[1.0, 0.0], [0.0, 1.0]]], [[0, 1], [0, 1]], missing="drop")
    assert (wrong["macro_f1"], wrong["n_failed"], wrong["coverage"], wrong["n_unscored"]) == (0.5, 1, 0.5, 0)
    assert (dropped["macro_f1"], dropped["n_failed"], dropped["coverage"], dropped["n_unscored"]) == (1, 1, 0.5, 1)
    assert score([None], [[0, 1]], missing=-0.1)["macro_f1"] == 0
    assert score([[None, None]], [[0, 1]], missing=-0.1)["macro_f1"] == 0


def test_the_mean_over_one_set_has_no_interval_and_the_mean_over_none_is_none():
    assert mean_with_interval([0.5]) == {"mean": 0.5, "error": None, "ci_low": None, "ci_high": None}
    assert mean_with_interval([])["mean"] is None


def test_a_set_counts_once_in_each_of_its_groups():
    perfect = [[1.0, 0.0], [0.0, 1.0]]
    groups = [["level_2", "remix"], ["level_2", "level_2"], None]
    result = score([perfect] * 3, [[0, 1], [1, 0], [0, 1]], groups)
    counted = {name: (group["n"], group["macro_f1"]) for name, group in result["per_group"].items()}
    assert (counted, result["n"]) == ({"level_2": (2, 0.5), "remix": (1, 1.0)}, 3)


@pytest.mark.parametrize("options", [{}, {"standardise": "raw", "ties": "wrong", "missing": -0.1, "softmax": False}])
def test_the_module_computes_the_functions_result(metric_class, options):
    scores = [None, [[0.9, 0.8], [0.7, 0.2]], [None, [0.5, None, 0.1], [0.1, 0.2, 0.3]], np.array([[1.0, NAN]])]
    labels, groups = [[0, 1], [1, 0], [2, 0, None], np.array([0])], ["a", None, ["a", "b"], "b"]
    references = [{"labels": row, "groups": names} for row, names in zip(labels, groups, strict=True)]
    result = metric_class(keep_in_memory=True).compute(predictions=scores, references=references, **options)
    assert result == score(scores, labels, groups, **options)


GOOD = [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("predictions", "references", "options", "error", "message"),
    [
        ([GOOD], [[]], {}, ValueError, r"references\[0\]: is empty"),
        ([GOOD], [[0, 2]], {}, ValueError, r"references\[0\]\[1\]: is 2, but the scores are for 2 labels"),
        ([GOOD], [[0, -1]], {}, ValueError, r"references\[0\]\[1\]: is -1; give the label's number from 0"),
        ([GOOD], [[0, "b"]], {}, TypeError, r"references\[0\]\[1\]: is 'b' .str., not an integer"),
        ([GOOD], [[0, 1, 1]], {}, ValueError, r"predictions\[0\]: has scores for 2 videos, but 3 have labels"),
        ([[[1.0], [1.0, 2.0]]], [[0, 0]], {}, ValueError, r"predictions\[0\]: its videos have \[1, 2\] scores"),
        ([[[1.0, "x"]]], [[0]], {}, TypeError, r"predictions\[0\]\[0\]\[1\]: is 'x' .str., not a number"),
        ([[[1.0, math.inf]]], [[0]], {}, ValueError, "give a finite score"),
        ([[1.0, 0.0]], [[0, 1]], {}, TypeError, r"predictions\[0\]\[0\]: is 1.0 .float."),
        ([GOOD], [[0, 1]], {"groups": "level_1"}, TypeError, "groups: is 'level_1'"),
        ([GOOD], [[0, 1]], {"groups": ["a", "b"]}, ValueError, "groups: has 2 entries for 1 problem sets"),
        ([GOOD], [[0, 1]], {"groups": [[1]]}, TypeError, r"groups\[0\]: 1 .int. is not a string"),
        ([GOOD], [[0, 1]], {"standardise": "z"}, ValueError, "standardise: is 'z'; give one of label"),
        ([GOOD], [[0, 1]], {"ties": "first"}, ValueError, "ties: is 'first'; give one of lowest"),
        ([GOOD], [[0, 1]], {"missing": "zero"}, ValueError, "missing: is 'zero'"),
        ([GOOD], [[0, 1]], {"missing": NAN}, ValueError, "missing: is nan"),
        ([GOOD], [[0, 1]], {"softmax": 1}, TypeError, "softmax: is 1 .int."),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(predictions, references, options, error, message):
    with pytest.raises(error, match=message):
        score(predictions, references, **options)
