"""What analysis gives: plain frozen records, ready for tables, pandas (`dataclasses.asdict`) and reports.

Figures come as `running.results.Figure`: mean and standard deviation over runs, and a 95% interval over videos. All
scores run from 0 to 1. Intervals and tests resample videos, never samples: those of one video resemble each other. A
task may keep other things together than videos (`Task.cluster`); what is called a video here is one of those then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from barista_bench.runs.score.results import Figure

BaselineKind = Literal["text_only", "first_frame", "shuffled_frames", "chance", "prior", "centre_box"]


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """The task's primary figure over the examples of one group.

    `value` is the group in words: a metadata value, or a bin such as `[0.25, 0.50)`. Where the key is a list, an
    example is in the group of each of its values, so that groups overlap. `order` sorts the rows of a key.
    """

    key: str
    value: str
    order: int
    examples: int
    videos: int
    samples: int
    figure: Figure


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the same samples of one task. Differences are `first` minus `second`.

    `name` is the task's primary figure: its `difference` is of pooled figures, a mean over runs, with the interval
    [low, high] of a paired bootstrap over videos. `p_value` is of a permutation test that swaps the two models' whole
    videos; `p_adjusted` is Holm's over all comparisons made together. `sample_*` are the same of the mean sample score;
    `effect_size` is Cohen's d_z of the examples' sample scores (mean difference / its standard deviation), None where
    no example differs. `wins`, `ties`, `losses` count examples by their mean sample score over runs.

    Only what both have is compared: `examples` of `expected_examples`, `runs` each, `samples` of `expected_samples`.
    """

    benchmark: str
    task: str
    first: str
    second: str
    name: str
    first_value: float
    second_value: float
    difference: float
    low: float | None
    high: float | None
    p_value: float
    p_adjusted: float
    sample_name: str
    sample_difference: float
    sample_low: float | None
    sample_high: float | None
    sample_p_value: float
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    examples: int
    expected_examples: int
    videos: int
    runs: int
    samples: int
    expected_samples: int


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Kendall's tau-b between the orders in which tasks put the models (paper, A.7 and table 16).

    `means[m][t]` is the mean sample score of model m on task t, pooled over examples and runs; `tau[s][t]` is
    symmetric with 1 on the diagonal, None where a task does not tell the models apart.
    """

    tasks: tuple[str, ...]
    models: tuple[str, ...]
    means: tuple[tuple[float, ...], ...]
    tau: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class PropagationEdge:
    """How an error in `source` on an object goes with an error in `target` on it, at the same time.

    A unit is an object in one answer of `target` about which `source` was asked too, at a time that the two share.
    `both`, `source_only`, `target_only`, `neither` count units by which of the tasks erred; `n` is their sum.
    `risk_with` is P(target errs | source erred), `risk_without` P(target errs | source did not), None of nothing.
    `odds_ratio` adds 1/2 to each cell (Haldane and Anscombe), so that it is finite where a cell is empty; None where
    one of the tasks always or never erred, which tells nothing of the other. [low, high] is a percentile interval
    over videos, None with fewer than two; draws that tell nothing count as 1. Association, not proof of cause.
    """

    source: str
    target: str
    n: int
    videos: int
    both: int
    source_only: int
    target_only: int
    neither: int
    risk_with: float | None
    risk_without: float | None
    odds_ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PropagationGraph:
    """The edges between all ordered pairs of `tasks` that share something, for one model."""

    model: str
    tasks: tuple[str, ...]
    edges: tuple[PropagationEdge, ...]


@dataclass(frozen=True, slots=True)
class BaselineGap:
    """How far a model is from a baseline; `comparison.first` is the model, `.second` the baseline.

    `text_only`: what the score owes to the images; `shuffled_frames`: to their order; `first_frame`: to more than
    one image; `chance`, `prior`, `centre_box`: to anything but guessing.
    """

    model: str
    kind: BaselineKind
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Consistency:
    """Whether a model says the same each time: over the pairs of runs of an example, mean over `examples`.

    `same_answer`: share of pairs whose parsed answers are equal (two unreadable ones are); `same_score`: whose sample
    scores are; `spread`: mean standard deviation of an example's sample score over runs.
    """

    task: str
    model: str
    examples: int
    runs: int
    same_answer: float
    same_score: float
    spread: float


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One kind of failure of a task (`task.FAILURE_KINDS` says what each means).

    `count` of them all in all, in `samples` of the task's samples, `share` of all scored ones.
    """

    task: str
    model: str
    kind: str
    count: int
    samples: int
    share: float
