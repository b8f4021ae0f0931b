"""Compare models with baselines, and measure a model's consistency.

The comparisons show how much of a score is due to images, to their order, or to more than guessing. Names determine the
pairs. A model under an ablation is named `<ablation>:<model>` (`models.ablations`). The other baselines guess
(`core.model_names`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from statistics import fmean, stdev
from typing import Final

from barista_bench.core.intervals import PERMUTATIONS
from barista_bench.core.model_names import ABLATIONS, GUESSES
from barista_bench.runs.score.labels import Labels, run_labels
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.comparison import Comparison, compare_pair, correct_p_values

KINDS: Final = (*ABLATIONS, *GUESSES)


@dataclass(frozen=True, slots=True)
class BaselineGap:
    """The comparison of a model (`comparison.first`) with a baseline (`comparison.second`).

    The gap to `text_only` shows the effect of the images, the gap to `shuffled_frames` the effect of their order, and
    the gap to `first_frame` the effect of all images after the first. The gap to `chance`, `prior` and `centre_box`
    shows the effect of more than guessing, and the gap to `copy_first_mask` the effect of object motion.
    """

    model: str
    kind: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Consistency:
    """A model's consistency over pairs of repetitions of an example, averaged over `examples` examples.

    `same_answer` is the fraction of pairs with equal parsed answers (two unreadable answers are equal). `same_score` is
    the fraction of pairs with equal sample scores. `spread` is the mean standard deviation of an example's sample score
    over repetitions.
    """

    task: str
    model: str
    examples: int
    repetitions: int
    same_answer: float
    same_score: float
    spread: float


def baseline_gaps(
    runs: Sequence[ScoredRun],
    *,
    permutations: int = PERMUTATIONS,
    labels: Labels | None = None,
    compare: Callable[[ScoredRun, ScoredRun], Comparison] | None = None,
) -> tuple[BaselineGap, ...]:
    """Compare each model with its baselines among comparable runs. All p-values are corrected together.

    Args:
        labels: names of the models. The default is `run_labels`.
        compare: function to use instead of `compare_pair`, for example a cached version.

    Raises:
        DataError: a model and its baseline share no finished sample.
    """
    labels = run_labels(runs) if labels is None else labels
    pairs: list[tuple[ScoredRun, str, ScoredRun]] = []
    for run in runs:
        model = run.results.model.label
        if _baseline_kind(model) is not None:
            continue
        for baseline in runs:
            kind = _baseline_kind(baseline.results.model.name)
            is_own = baseline.results.model.label in (kind, f"{kind}:{model}")
            if kind is not None and is_own and baseline.results.comparability == run.results.comparability:
                pairs.append((run, kind, baseline))
    compare = compare or partial(compare_pair, permutations=permutations)
    comparisons = correct_p_values([compare(run, baseline) for run, _, baseline in pairs])
    gaps = []
    for (run, kind, baseline), comparison in zip(pairs, comparisons, strict=True):
        model, other = labels[run.folder], labels[baseline.folder]
        gaps.append(BaselineGap(model, kind, replace(comparison, first=model, second=other)))
    return tuple(gaps)


def consistency(run: ScoredRun) -> Consistency | None:
    """Return the consistency of a model over its repetitions, or None if no example was answered twice."""
    by_example: dict[str, list[ScoredSample]] = defaultdict(list)
    for sample in run.samples:
        if sample.record.is_finished:
            by_example[sample.example.example_id].append(sample)
    repeated_examples = [samples for samples in by_example.values() if len(samples) > 1]
    if not repeated_examples:
        return None
    score = run.task.sample_score
    answers, scores, spreads = [], [], []
    for samples in repeated_examples:
        pairs = list(combinations(samples, 2))
        values = [None if sample.prediction is None else sample.prediction.value for sample in samples]
        answers.append(fmean(a == b for a, b in combinations(values, 2)))
        scores.append(fmean(math.isclose(a.scores[score], b.scores[score], abs_tol=1e-12) for a, b in pairs))
        spreads.append(stdev(sample.scores[score] for sample in samples))
    return Consistency(
        task=run.task.name,
        model=run.results.model.label,
        examples=len(repeated_examples),
        repetitions=run.results.repetitions,
        same_answer=fmean(answers),
        same_score=fmean(scores),
        spread=fmean(spreads),
    )


def _baseline_kind(name: str) -> str | None:
    kind = name.partition(":")[0]
    return kind if kind in KINDS else None
