"""The leaderboards on EgoCoT-Bench's page (arXiv 2605.19559) follow from their own parts by the metric's pooling."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from judge_score import EGOCOT_SIZES  # noqa: E402


def parsed(table):
    rows = [line.split() for line in table.split("\n") if line]
    return {name: [float(value) for value in values] for name, *values in rows}


# Overall accuracy, then the three subtasks and the mean of each group, in percent.
ACCURACY = parsed("""
Human 95.93 96.18 93.86 97.18 96.11 93.96 95.36 96.88 94.96 98.47 94.44 95.00 96.32 98.71 97.90 91.98 96.34
Qwen3.5-27B 71.28 68.26 61.40 84.51 71.85 72.83 67.74 59.38 69.10 84.65 68.69 73.33 77.03 77.68 80.67 34.43 65.30
Qwen3.5-Plus 70.68 68.26 62.28 85.92 72.39 67.55 60.69 53.12 62.67 85.20 70.71 74.72 78.21 81.12 82.77 35.85 67.64
Qwen3.5-397B-A17B 70.11 68.26 58.77 87.79 72.39 69.81 59.07 56.25 62.55 84.95 68.18 70.83 76.11 78.97 83.61 38.68 68.08
Qwen3.5-122B-A10B 69.96 68.26 61.40 86.38 72.39 70.72 62.70 56.25 65.11 81.63 70.71 73.61 76.32 79.83 79.41 30.19 64.28
GPT-5.2 67.91 64.92 62.28 72.30 66.62 67.55 59.88 59.38 62.42 84.69 64.14 72.22 75.68 65.24 84.03 42.92 64.86
Qwen3-VL-Plus 67.12 69.21 61.40 77.00 70.24 69.70 54.66 56.25 59.75 84.69 66.16 71.94 76.00 68.53 77.54 32.70 60.53
Qwen3-VL-32B 67.09 67.78 62.28 79.81 70.38 64.53 55.04 68.75 58.76 84.18 70.20 71.67 76.53 69.10 79.83 27.83 60.03
GPT-5.1 66.71 64.20 63.16 77.00 67.69 66.04 49.40 56.25 55.23 86.99 67.17 70.56 76.63 68.24 79.83 45.28 65.15
Qwen3-VL-235B-A22B 65.86 67.54 57.02 77.00 68.63 71.32 52.82 56.25 59.14 85.97 68.18 62.50 73.37 70.82 78.99 27.36 60.18
Qwen3-VL-8B 65.42 69.54 59.29 81.60 71.43 64.02 60.69 59.38 61.75 83.03 63.13 64.72 71.91 59.91 78.15 25.00 55.43
Qwen3-VL-30B-A3B 64.63 62.44 61.06 82.16 67.88 65.15 65.86 62.50 65.49 81.89 59.09 66.94 71.47 66.52 73.11 9.05 51.10
InternVL3.5-14B 64.09 56.32 56.14 75.12 61.66 56.98 63.71 75.00 61.92 78.32 65.66 70.00 72.53 61.37 72.27 36.79 57.54
InternVL3.5-8B 64.06 56.32 61.40 70.89 61.26 54.34 67.74 68.75 63.30 80.36 66.16 67.22 72.42 66.95 73.11 25.94 56.37
InternVL3.5-4B 61.95 58.71 59.65 73.24 63.00 48.30 54.44 62.50 52.71 81.63 59.60 63.06 70.00 64.81 75.63 38.21 60.32
InternVL3.5-2B 61.79 50.60 63.16 79.81 60.86 58.11 66.94 71.88 64.18 77.30 59.09 58.33 66.32 60.94 71.01 26.42 53.73
LLaVA-OV-1.5-8B 60.81 53.94 58.77 74.65 60.59 57.36 51.61 40.62 53.09 82.14 69.19 61.94 71.79 68.67 71.01 21.23 54.76
LLaVA-OV-1.5-4B 60.78 55.74 54.39 72.30 60.27 61.51 55.04 40.62 56.62 81.38 61.11 61.67 69.68 63.95 73.11 21.23 53.88
InternVL3.5-1B 53.91 41.77 55.26 69.95 51.88 44.91 51.21 75.00 50.06 64.29 55.56 56.94 59.68 55.36 67.65 32.55 52.56
LLaVA-NeXT-7B 44.26 35.08 55.26 46.95 41.55 46.42 40.93 56.25 43.38 62.24 48.99 48.61 54.32 33.91 49.58 17.45 34.26
""")
# R and SCR, overall and of the four groups.
REASONING = parsed("""
GPT-5.1 2.77 4.91 2.65 5.35 2.16 5.25 3.43 1.79 2.67 9.21
GPT-5.2 2.85 4.27 2.39 3.23 2.73 4.02 3.40 2.36 2.76 8.80
Qwen3-VL-Plus 3.08 7.84 3.04 7.44 2.61 5.29 3.64 6.37 2.87 13.87
Qwen3.5-Plus 2.92 9.10 2.88 7.41 2.31 10.87 3.50 7.67 2.87 11.47
InternVL3.5-1B 2.21 13.33 2.11 8.53 1.77 17.63 2.70 8.99 2.14 20.61
InternVL3.5-2B 2.53 7.86 2.43 9.69 2.29 7.86 2.98 2.70 2.29 14.44
InternVL3.5-4B 2.45 9.57 2.39 8.72 1.86 9.57 3.09 4.96 2.31 17.96
LLaVA-OV-1.5-4B 2.50 9.57 2.32 10.47 2.03 14.92 3.17 3.77 2.32 13.59
LLaVA-NeXT-7B 1.85 22.93 1.57 25.16 1.51 35.46 2.59 8.53 1.53 33.33
InternVL3.5-8B 2.56 5.61 2.39 5.47 2.25 4.98 3.15 3.92 2.30 9.61
LLaVA-OV-1.5-8B 2.21 24.73 2.08 28.31 1.76 27.31 2.77 21.11 2.08 24.06
Qwen3-VL-8B 2.73 10.07 2.74 9.25 2.29 14.40 3.27 6.46 2.47 12.17
InternVL3.5-14B 2.60 5.36 2.50 5.43 2.27 4.48 3.17 2.46 2.30 11.45
Qwen3.5-27B 2.96 7.25 2.87 8.39 2.49 8.94 3.56 3.15 2.78 10.54
Qwen3-VL-30B-A3B 2.79 7.25 2.73 8.91 2.43 10.42 3.36 5.89 2.46 7.76
Qwen3-VL-32B 2.96 7.99 2.88 9.90 2.40 7.51 3.63 5.36 2.77 10.73
Qwen3.5-122B-A10B 2.94 9.73 2.83 11.29 2.43 11.26 3.48 7.45 2.88 9.79
Qwen3-VL-235B-A22B 2.78 11.01 2.70 11.32 2.32 9.38 3.42 8.90 2.53 16.05
Qwen3.5-397B-A17B 2.87 10.93 2.86 9.81 2.29 12.70 3.37 9.82 2.87 12.04
""")
# Printed figures that do not follow from their parts to rounding (.01): (model, figure) -> pooled minus printed.
DEVIATIONS = {
    ("Qwen3-VL-8B", "EGP"): -0.013,
    ("Qwen3-VL-8B", "PCI"): 0.034,
    ("Qwen3-VL-30B-A3B", "EGP"): -0.020,
    ("Qwen3-VL-30B-A3B", "HGR"): -0.122,
    ("Qwen3-VL-Plus", "HGR"): 0.018,
    ("Qwen3.5-27B", "all"): 0.025,
    ("Qwen3.5-122B-A10B", "all"): 0.040,
    ("Qwen3-VL-Plus", "all"): 0.135,
    ("Qwen3-VL-8B", "all"): 0.296,
    ("Qwen3-VL-30B-A3B", "all"): 0.084,
    ("LLaVA-OV-1.5-4B", "all"): 0.020,
    ("LLaVA-OV-1.5-4B", "SCR"): 0.232,
    ("Qwen3-VL-30B-A3B", "SCR"): 0.849,
}
# Accuracies that no number of right answers among all samples of the subtask gives, in percent.
NO_MULTIPLES = {
    "Qwen3-VL-8B": {"AOG": 69.54, "HOA": 59.29, "MSP": 81.60, "SR": 64.02, "NSA": 83.03, "PR": 59.91},
    "Qwen3-VL-30B-A3B": {"AOG": 62.44, "HOA": 61.06, "SR": 65.15, "LVR": 65.86, "GOT": 9.05},
    "Qwen3-VL-Plus": {"SR": 69.70, "LVR": 54.66, "PR": 68.53, "HGC": 77.54, "GOT": 32.70},
    "Qwen3.5-122B-A10B": {"SR": 70.72},
    "Qwen3.5-27B": {"NSA": 84.65},
    "LLaVA-OV-1.5-4B": {"AOG": 55.74},
}
SIZES = [list(subtasks.values()) for subtasks in EGOCOT_SIZES.values()]


def pooled(model):
    """Group and overall accuracy from the subtasks' printed accuracies: (figure, pooled, printed)."""
    overall, *rest = ACCURACY[model]
    subtasks, means = [rest[i : i + 3] for i in range(0, 16, 4)], rest[3::4]
    for group, values, sizes, mean in zip(EGOCOT_SIZES, subtasks, SIZES, means, strict=True):
        yield group, np.average(values, weights=sizes), mean
    yield "all", np.average(list(chain(*subtasks)), weights=list(chain(*SIZES))), overall


def right_answers(model):
    rest = ACCURACY[model][1:]
    return [
        sum(round(value * size / 100) for value, size in zip(rest[4 * g : 4 * g + 3], SIZES[g], strict=True))
        for g in range(4)
    ]


def test_the_sizes_of_the_subtasks_sum_to_the_benchmark():
    assert sum(map(sum, SIZES)) == 3172
    assert [len(subtasks) for subtasks in SIZES] == [3, 3, 3, 3]


def subtask_accuracies(model):
    """(subtask, samples, printed accuracy in percent) of each subtask."""
    values = [value for index, value in enumerate(ACCURACY[model][1:]) if index % 4 < 3]
    sizes = {name: size for subtasks in EGOCOT_SIZES.values() for name, size in subtasks.items()}
    return [(name, size, value) for (name, size), value in zip(sizes.items(), values, strict=True)]


def is_multiple(value, size):
    """Whether some number of right answers among `size` is printed as `value` percent, rounded to two decimals."""
    return abs(100 * round(value * size / 100) / size - value) <= 0.005 + 1e-9


@pytest.mark.parametrize("model", ACCURACY)
def test_published_accuracies_are_multiples_of_one_sample_but_for_nineteen_of_six_models(model):
    odd = {name: value for name, size, value in subtask_accuracies(model) if not is_multiple(value, size)}
    assert odd == NO_MULTIPLES.get(model, {})


def test_the_others_are_multiples_over_fewer_samples():
    sizes = {name: size for subtasks in EGOCOT_SIZES.values() for name, size in subtasks.items()}
    odd = [(sizes[name], value) for figures in NO_MULTIPLES.values() for name, value in figures.items()]
    assert len(odd) == 19
    assert all(any(is_multiple(value, fewer) for fewer in range(size - 4, size)) for size, value in odd)


@pytest.mark.parametrize("model", ACCURACY)
def test_group_and_overall_accuracy_follow_from_the_published_subtasks(model):
    for figure, got, printed in pooled(model):
        known = DEVIATIONS.get((model, figure), 0)
        assert got - printed == pytest.approx(known, abs=0.0006 if known else 0.0105), figure


@pytest.mark.parametrize("model", REASONING)
def test_overall_r_and_scr_follow_from_the_published_groups(model):
    values = REASONING[model]
    r = np.average(values[2::2], weights=[sum(subtasks) for subtasks in SIZES])
    scr = np.average(values[3::2], weights=right_answers(model))
    assert r == pytest.approx(values[0], abs=0.01)
    known = DEVIATIONS.get((model, "SCR"), 0)
    assert scr - values[1] == pytest.approx(known, abs=0.0006 if known else 0.01)
