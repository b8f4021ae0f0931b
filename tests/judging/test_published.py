"""Tables 13 to 15 of the BARISTA paper (arXiv 2605.12074, section A.6), recomputed from their printed scores.

Values that do not follow from the printed scores are named: there the paper deviates from itself.
"""

import pytest

from barista_bench.judging.cross import compare_all_judges, compare_judges, own_vendor_probes, vendor_of

GEMINI, GPT = "Gemini 2.5 Flash", "GPT-5.4 mini judge"


def table(text: str, *metrics: str) -> dict[str, dict[str, dict[str, float]]]:
    """metric -> judge -> model -> score, and the printed differences under the judge `delta`."""
    by_judge: dict[str, dict[str, dict[str, float]]] = {}
    for line in text.strip().split("\n"):
        model, *values = (part.strip() for part in line.split("|"))
        for index, metric in enumerate(metrics):
            for judge, value in zip((GEMINI, GPT, "delta"), values[3 * index : 3 * index + 3], strict=True):
                by_judge.setdefault(metric, {}).setdefault(judge, {})[model] = float(value)
    return by_judge


TABLE_13 = table(
    """
Gemini 3 Flash | .757 | .643 | -.114
Gemma 4-31B | .669 | .598 | -.071
Qwen3.5-27B | .623 | .542 | -.081
Qwen3.5-9B | .569 | .519 | -.050
GPT-5.4 mini | .302 | .320 | +.018
""",
    "referring: correctness",
)
TABLE_14 = table(
    """
Qwen3.5-27B | .702 | .622 | -.080 | .727 | .596 | -.131 | .683 | .648 | -.035
GPT-5.4 mini | .683 | .607 | -.076 | .701 | .586 | -.114 | .671 | .627 | -.044
Gemini 3 Flash | .674 | .599 | -.075 | .705 | .577 | -.129 | .650 | .620 | -.030
Qwen3.5-9B | .666 | .587 | -.079 | .691 | .569 | -.121 | .645 | .604 | -.041
Gemma 4-31B | .647 | .570 | -.076 | .665 | .552 | -.113 | .630 | .588 | -.041
""",
    "vqa: mean",
    "vqa: accuracy",
    "vqa: completeness",
)
CATEGORIES = ("relation_change", "state_change", "activity_progression", "action_transition")
# Four categories under the first judge, then the same four under the second.
TABLE_15 = {
    "Qwen3.5-27B": (0.823, 0.743, 0.584, 0.596, 0.786, 0.684, 0.510, 0.357),
    "GPT-5.4 mini": (0.772, 0.804, 0.535, 0.522, 0.744, 0.735, 0.455, 0.327),
    "Gemini 3 Flash": (0.805, 0.653, 0.623, 0.535, 0.781, 0.562, 0.547, 0.382),
    "Qwen3.5-9B": (0.841, 0.714, 0.527, 0.470, 0.768, 0.629, 0.463, 0.349),
    "Gemma 4-31B": (0.778, 0.638, 0.601, 0.468, 0.725, 0.544, 0.542, 0.336),
}
BY_CATEGORY = {
    f"vqa / {category}: mean": {
        GEMINI: {model: values[index] for model, values in TABLE_15.items()},
        GPT: {model: values[index + 4] for model, values in TABLE_15.items()},
    }
    for index, category in enumerate(CATEGORIES)
}
BOTH = {**TABLE_13, **TABLE_14}


@pytest.mark.parametrize(
    ("metric", "tau"),
    [("referring: correctness", 1.0), ("vqa: mean", 1.0), ("vqa: accuracy", 0.8), ("vqa: completeness", 1.0)],
)
def test_the_printed_rank_correlations_and_differences_follow_from_the_printed_scores(metric: str, tau: float) -> None:
    comparison = compare_judges(metric, BOTH[metric], GEMINI, GPT)
    assert comparison is not None
    assert comparison.tau == pytest.approx(tau)
    for model, first, second in zip(comparison.models, comparison.first, comparison.second, strict=True):
        difference = second - first
        # Scores are printed to .001, so a difference of two may be .001 off, and is printed to .001 itself.
        assert difference == pytest.approx(BOTH[metric]["delta"][model], abs=0.0015), model


def test_the_printed_shift_and_spread_of_the_vqa_mean_follow() -> None:
    comparison = compare_judges("vqa: mean", TABLE_14["vqa: mean"], GEMINI, GPT)
    assert comparison is not None
    assert round(comparison.shift, 2) == -0.08
    assert round(comparison.shift_sd, 3) == 0.002


def test_of_table_13_the_printed_shift_and_spread_fit_four_models_of_the_five() -> None:
    five = compare_judges("r", TABLE_13["referring: correctness"], GEMINI, GPT)
    by_judge = TABLE_13["referring: correctness"].items()
    without = {j: {m: s for m, s in scores.items() if m != "GPT-5.4 mini"} for j, scores in by_judge}
    four = compare_judges("r", without, GEMINI, GPT)
    assert five is not None
    assert four is not None
    # Printed: about -.07 and .023. All five models: -.060 and .044. Without the gaining model: -.079 and .023.
    assert (round(five.shift, 3), round(five.shift_sd, 3)) == (-0.060, 0.044)
    assert (round(four.shift, 3), round(four.shift_sd, 3)) == (-0.079, 0.023)


def test_the_self_preference_probe_of_the_paper() -> None:
    comparisons = compare_all_judges({"r": {j: TABLE_13["referring: correctness"][j] for j in (GEMINI, GPT)}})
    vendors = {name: vendor for name in (GEMINI, GPT, *TABLE_15) if (vendor := vendor_of(name))}
    assert vendors["Gemma 4-31B"] == vendors[GEMINI] == "google"
    probed = {(probe.judge, probe.model): probe for probe in own_vendor_probes(comparisons, vendors)}
    assert set(probed) == {(GEMINI, "Gemini 3 Flash"), (GEMINI, "Gemma 4-31B"), (GPT, "GPT-5.4 mini")}
    gemini, gpt = probed[GEMINI, "Gemini 3 Flash"], probed[GPT, "GPT-5.4 mini"]
    assert (gemini.rank, gemini.other_rank) == (1, 1)  # "retains rank 1"
    assert (gpt.rank, gpt.other_rank) == (5, 5)  # "last-ranked under both judges"
    assert gpt.gain == pytest.approx(0.320 - 0.302)
    # The models of neither vendor are the two Qwen: .623 - .542 and .569 - .519 higher under the first judge.
    assert gemini.gain_of_others == pytest.approx((0.081 + 0.050) / 2)
    assert gemini.preference == pytest.approx(0.114 - 0.0655)
    # The paper reads the .018 as no boost; against the other models' -.0655 it is one of .0835.
    assert gpt.preference == pytest.approx(0.018 + 0.0655)


def test_the_shifts_by_category_follow_from_table_15() -> None:
    by_metric = {comparison.metric: comparison for comparison in compare_all_judges(BY_CATEGORY)}
    # By hand, (second - first) over the five models:
    by_hand = {
        "vqa / relation_change: mean": (-0.037 - 0.028 - 0.024 - 0.073 - 0.053) / 5,
        "vqa / state_change: mean": (-0.059 - 0.069 - 0.091 - 0.085 - 0.094) / 5,
        "vqa / activity_progression: mean": (-0.074 - 0.080 - 0.076 - 0.064 - 0.059) / 5,
        "vqa / action_transition: mean": (-0.239 - 0.195 - 0.153 - 0.121 - 0.132) / 5,
    }
    assert {metric: by_metric[metric].shift for metric in by_hand} == pytest.approx(by_hand)
    assert all(comparison.tau is not None and comparison.tau >= 0.2 for comparison in by_metric.values())
