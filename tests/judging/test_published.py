"""Tables 13 and 15 of the BARISTA paper (arXiv 2605.12074, section A.6), recomputed from their printed scores.

Rank correlations and shifts of pairs of judges: tests/metrics/test_judge_score_agreement.py.
"""

from __future__ import annotations

import pytest

from barista_bench.judging.cross import compare_all, family_of, own_family

GEMINI, GPT = "Gemini 2.5 Flash", "GPT-5.4 mini judge"


TABLE_13 = {
    GEMINI: {
        "Gemini 3 Flash": 0.757,
        "Gemma 4-31B": 0.669,
        "Qwen3.5-27B": 0.623,
        "Qwen3.5-9B": 0.569,
        "GPT-5.4 mini": 0.302,
    },
    GPT: {
        "Gemini 3 Flash": 0.643,
        "Gemma 4-31B": 0.598,
        "Qwen3.5-27B": 0.542,
        "Qwen3.5-9B": 0.519,
        "GPT-5.4 mini": 0.320,
    },
}
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


def test_the_self_preference_probe_of_the_paper() -> None:
    comparisons = compare_all({"r": TABLE_13})
    families = {name: family for name in (GEMINI, GPT, *TABLE_15) if (family := family_of(name))}
    assert families["Gemma 4-31B"] == families[GEMINI] == "google"
    probed = {(probe.judge, probe.model): probe for probe in own_family(comparisons, families)}
    assert set(probed) == {(GEMINI, "Gemini 3 Flash"), (GEMINI, "Gemma 4-31B"), (GPT, "GPT-5.4 mini")}
    gemini, gpt = probed[GEMINI, "Gemini 3 Flash"], probed[GPT, "GPT-5.4 mini"]
    assert (gemini.rank, gemini.other_rank) == (1, 1)  # "retains rank 1"
    assert (gpt.rank, gpt.other_rank) == (5, 5)  # "last-ranked under both judges"
    assert gpt.gain == pytest.approx(0.320 - 0.302)
    # The models of neither maker are the two Qwen: .623 - .542 and .569 - .519 higher under the first judge.
    assert gemini.gain_of_others == pytest.approx((0.081 + 0.050) / 2)
    assert gemini.preference == pytest.approx(0.114 - 0.0655)
    # The paper reads the .018 as no boost; against the other models' -.0655 it is one of .0835.
    assert gpt.preference == pytest.approx(0.018 + 0.0655)


def test_the_categories_of_table_15_are_ordered_as_the_paper_says() -> None:
    hardest = [GEMINI, GPT]
    means = {
        judge: {metric: sum(values[judge].values()) / 5 for metric, values in BY_CATEGORY.items()} for judge in hardest
    }
    for judge in hardest:
        ordered = sorted(means[judge], key=means[judge].get)
        assert ordered[0] == "vqa / action_transition: mean"
        assert ordered[-1] == "vqa / relation_change: mean"


def test_the_shifts_by_category_follow_from_table_15() -> None:
    by_metric = {comparison.metric: comparison for comparison in compare_all(BY_CATEGORY)}
    # By hand, (second - first) over the five models:
    by_hand = {
        "vqa / relation_change: mean": (-0.037 - 0.028 - 0.024 - 0.073 - 0.053) / 5,
        "vqa / state_change: mean": (-0.059 - 0.069 - 0.091 - 0.085 - 0.094) / 5,
        "vqa / activity_progression: mean": (-0.074 - 0.080 - 0.076 - 0.064 - 0.059) / 5,
        "vqa / action_transition: mean": (-0.239 - 0.195 - 0.153 - 0.121 - 0.132) / 5,
    }
    assert {metric: by_metric[metric].shift for metric in by_hand} == pytest.approx(by_hand)
    assert all(comparison.tau is not None and comparison.tau >= 0.2 for comparison in by_metric.values())
