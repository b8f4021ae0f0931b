"""Name leaderboards on the Hub, and rank models by one rule. This module imports little, since a Space imports it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

EVAL_FILE: Final = "eval.yaml"
"""The file of a dataset repository that lists its leaderboards (hub-docs `docs/hub/eval-results.md`)."""
RULES_FILE: Final = "leaderboard.yaml"
"""File that names the examples of each leaderboard, in a results dataset and in a published dataset."""
FRAMEWORK: Final = "barista-bench"
"""Our name in `evaluation_framework`. The Hub keeps a list of these names, and ours must be entered there once."""
SCALE: Final = 100
"""Published values are 0 to 100; scores in results.json and in the paper are 0 to 1."""
OURS: Final = "ours "
"""The prefix of the names of our own wordings; see `PromptTexts.wording`."""
RELEASED_RUN: Final = "released run:"
"""The prefix of the wording of runs that the released harness asked, and of no other runs.

Such a run may bring the harness's verdicts.
"""


class Tasks(NamedTuple):
    """The tasks of a benchmark, each with its primary metric, and the splits of the examples."""

    splits: tuple[str, ...]
    primary: Mapping[str, str]


TASKS: Final[Mapping[str, Tasks]] = {
    "barista": Tasks(
        ("train", "test"),
        {
            **{"grounding": "map", "hand_object": "f1", "referring": "lexical_f1"},
            **{"activity": "accuracy", "relations": "micro_f1", "temporal_vqa": "lexical_f1"},
        },
    ),
    "vista": Tasks(("test",), dict.fromkeys(("virtual_home", "real_world", "minecraft", "all"), "macro_f1")),
    "handyvqa": Tasks(
        ("test",),
        {
            **dict.fromkeys(("action", "process", "location", "state", "parts"), "accuracy"),
            "objects": "average_precision",
            **dict.fromkeys(("rvos_objects", "rvos_parts"), "J_and_F"),
        },
    ),
    "tog_bench": Tasks(("test",), {"t_stvg": "T-m_vIoU"}),
    "egocot": Tasks(("dev", "test"), {"cot": "accuracy"}),
    "extended": Tasks(
        ("train", "test"),
        {
            **{"open_activity": "accuracy", "step_segmentation": "f1_50", "anticipation": "top_1"},
            **{"mask_tracking": "J_and_F", "temporal_scene_graph": "recall_at_50"},
        },
    ),
}
"""The tasks of each benchmark, as this package defines them. A Space cannot load the tasks themselves."""
_NO_NAME = re.compile(r"[^a-z0-9]+")


def task_id(task: str, split: str, protocol: str, wording: str, *, options: str = "", limit: int | None = None) -> str:
    """Return the name of a leaderboard.

    Examples are `relations`, `relations_test` for the split test, and `relations_paper` for paper rules.

    The Hub ranks results with equal names together. So there are separate leaderboards for wordings other than ours,
    for options other than the task's defaults, and for runs with a limit.

    >>> task_id("t_stvg", "all", "release", "ours v1", options="matcher=exact", limit=20)
    't_stvg_matcher-exact_first-20'
    >>> task_id("relations", "all", "release", "ours v2"), task_id("relations", "test", "paper", "release@4086ce5")
    ('relations', 'relations_test_paper_release-4086ce5')
    """
    other_wording = "" if wording.startswith(OURS) else _NO_NAME.sub("-", wording)
    parts = [task, "" if split == "all" else split, "" if protocol == "release" else protocol, other_wording]
    parts += [_NO_NAME.sub("-", options.casefold()).strip("-"), "" if limit is None else f"first-{limit}"]
    return "_".join(part for part in parts if part)


def ranks(ends: Sequence[tuple[float, float] | None]) -> list[int | None]:
    """Return the rank of each score: 1 + the number of intervals that lie completely above the score's interval.

    Scores with overlapping intervals share a rank, unless another score lies between them. A score of None has no rank.

    >>> ranks([(0.7, 0.9), (0.6, 0.8), None, (0.1, 0.2)])
    [1, 1, None, 3]
    """
    return [None if own is None else 1 + sum(end[0] > own[1] for end in ends if end is not None) for own in ends]


def mean_rank(ranks_of_model: Sequence[int | None]) -> float | None:
    """Return the mean of a model's ranks over tasks, which have no common scale; None if a rank is missing.

    >>> mean_rank([1, 2]), mean_rank([1, None])
    (1.5, None)
    """
    known_ranks = [rank for rank in ranks_of_model if rank is not None]
    return round(fmean(known_ranks), 2) if len(known_ranks) == len(ranks_of_model) else None
