"""Table 16 of the BARISTA paper (arXiv 2605.12074, A.7) against the scores that its other tables print.

Table 16 is made of mean scores per example. Those of three tasks are printed: referring (table 4), activity (5) and
temporal VQA (7, mean), which gives 3 of the 15 pairs. Of the other three tasks the paper prints pooled figures only:
mAP and not the mean best IoU of grounding (2, 8), F1 over all frames and not per frame of hand-object (3, 9), micro F1
and not F1 per frame of relations (6, 10). Nothing printed gives those means, so 12 pairs cannot be computed as they
were. What can be said of them all the same, by trying all orders of five models:

* grounding: only one order agrees with the printed tau of its three pairs with printed tasks: that of mAP. 6 pairs.
* hand-object and relations: the orders of pooled F1 do not agree with table 16 (their three best models are 0.009 and
  their two best 0.006 apart); two orders of each task do. Together with the pairs among the three tasks, two sets of
  orders are left of 120 x 120 x 120. One of them is printed: those of mAP, of hand-object's precision (9) and of
  relations' recall (10). With these all 15 pairs come out as published.
"""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.stats import kendalltau

from barista_bench.stats.agreement import agreement_of

MODELS = ("Gemini 3 Flash", "GPT-5.4 mini", "Gemma 4-31B", "Qwen3.5-27B", "Qwen3.5-9B")
PRINTED = {
    "referring": (0.760, 0.308, 0.667, 0.622, 0.576),
    "activity": (0.765, 0.631, 0.684, 0.778, 0.716),
    "vqa": (0.665, 0.686, 0.649, 0.701, 0.655),
}
POOLED = {
    "grounding": (0.534, 0.068, 0.432, 0.518, 0.350),  # mAP
    "hoi": (0.749, 0.193, 0.758, 0.753, 0.642),  # F1
    "relations": (0.675, 0.565, 0.751, 0.745, 0.613),  # micro F1
}
SAME_ORDER = {
    "grounding": POOLED["grounding"],
    "hoi": (0.791, 0.203, 0.799, 0.779, 0.715),  # precision
    "relations": (0.697, 0.586, 0.767, 0.799, 0.642),  # micro recall
}
NAMES = (*POOLED, *PRINTED)
TABLE_16 = dict(
    zip(
        combinations(NAMES, 2),
        (0.6, 0.6, 0.8, 0.6, 0.0, 0.6, 0.8, 0.2, -0.4, 0.4, 0.6, 0.0, 0.4, -0.2, 0.4),
        strict=True,
    )
)


def computed(scores: dict[str, tuple[float, ...]]) -> dict[tuple[str, str], float | None]:
    by_model = {model: [values[index] for values in scores.values()] for index, model in enumerate(MODELS)}
    agreement = agreement_of(tuple(scores), by_model)
    pairs = combinations(range(len(scores)), 2)
    return {(agreement.tasks[a], agreement.tasks[b]): agreement.tau[a][b] for a, b in pairs}


def published(pairs: object) -> dict[tuple[str, str], object]:
    return {pair: pytest.approx(TABLE_16[pair]) for pair in pairs}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("scores", "pairs"), [({}, 3), ({"grounding": POOLED["grounding"]}, 6), (SAME_ORDER, 15)])
def test_pairs_of_tasks_come_out_as_published(scores: dict[str, tuple[float, ...]], pairs: int) -> None:
    matrix = computed({**scores, **PRINTED})
    assert len(matrix) == pairs
    assert matrix == published(matrix)


@pytest.mark.parametrize("task", ["hoi", "relations"])
def test_pooled_f1_orders_models_otherwise_than_the_published_means_do(task: str) -> None:
    matrix = computed({task: POOLED[task], **PRINTED})
    assert matrix != published(matrix)


def orders_that_agree(task: str) -> list[tuple[int, ...]]:
    """Ranks of the five models, higher is better, that have the published tau with the three printed tasks."""
    return [
        ranks
        for ranks in permutations(range(5))
        if all(kendalltau(ranks, PRINTED[other]).statistic == pytest.approx(TABLE_16[task, other]) for other in PRINTED)
    ]


def test_few_orders_agree_with_table_16_and_one_set_of_them_is_printed() -> None:
    left = {task: orders_that_agree(task) for task in POOLED}
    assert [len(orders) for orders in left.values()] == [1, 2, 2]
    together = [
        dict(zip(left, ranks, strict=True))
        for ranks in product(*left.values())
        if all(
            kendalltau(ranks[a], ranks[b]).statistic == pytest.approx(TABLE_16[tuple(left)[a], tuple(left)[b]])
            for a, b in combinations(range(3), 2)
        )
    ]
    assert len(together) == 2
    assert {task: tuple(np.argsort(np.argsort(values))) for task, values in SAME_ORDER.items()} in together
