"""A row of the leaderboards on EgoCoT-Bench's page (arXiv 2605.19559) comes out of the metric."""

from judge_score import EGOCOT_SIZES, egocot_reasoning

# Of GPT-5.1 in percent: the three subtasks and the mean of each group, and the SCR of each group.
ACCURACIES = [
    [64.20, 63.16, 77.00, 67.69],
    [66.04, 49.40, 56.25, 55.23],
    [86.99, 67.17, 70.56, 76.63],
    [68.24, 79.83, 45.28, 65.15],
]
RATES = [5.35, 5.25, 1.79, 9.21]


def test_the_sizes_of_the_subtasks_sum_to_the_benchmark():
    assert [len(sizes) for sizes in EGOCOT_SIZES.values()] == [3, 3, 3, 3]
    assert sum(sum(sizes.values()) for sizes in EGOCOT_SIZES.values()) == 3172


def test_the_published_figures_come_out_of_samples_that_fit_them():
    scores, correct, subtasks = [], [], []
    for sizes, accuracies, rate in zip(EGOCOT_SIZES.values(), ACCURACIES, RATES, strict=True):
        right = {name: round(value * sizes[name] / 100) for name, value in zip(sizes, accuracies[:3], strict=True)}
        bad = round(rate * sum(right.values()) / 100)
        for name, size in sizes.items():
            for i in range(size):
                scores.append(2 if i < right[name] and bad > 0 else 4)
                bad -= i < right[name]
                correct.append(i < right[name])
                subtasks.append(name)
    result = egocot_reasoning(scores, correct, subtasks)
    assert (round(result["scr"], 2), round(result["accuracy"], 2)) == (4.91, 66.71)
    assert [round(group["scr"], 2) for group in result["per_group"].values()] == RATES
    assert [round(group["accuracy"], 2) for group in result["per_group"].values()] == [row[3] for row in ACCURACIES]
