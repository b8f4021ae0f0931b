"""Analysis of scored runs: intervals, paired comparisons, breakdowns, agreement, propagation, baselines, failures.

Everything here reads `runs.score.scoring.ScoredRun`s, names no benchmark and no task, and asks no model. What is
special to a task, the task brings: `Task.statistics`, `Task.facets`, `Task.failures`.

    interval_of(run)                      -> {figure: Interval}
    compare_runs(runs)                    -> (Comparison, ...)       all pairs of models, task by task, Holm-corrected
    breakdown(run, key)                   -> (BreakdownRow, ...)     breakdown_keys(run) lists the keys there are
    rank_agreement(runs)                  -> RankAgreement           several tasks, three models or more
    propagation(runs)                     -> PropagationGraph        one model, several tasks
    baseline_gaps(runs)                   -> (BaselineGap, ...)
    consistency(run)                      -> Consistency | None      None for a single run
    failure_rows(run)                     -> (FailureRow, ...)
    run_labels(runs)                      -> {folder: label}         what models are called in all of these
"""

from barista_bench.core.bootstrap import Interval
from barista_bench.runs.score.figures import interval_of, intervals
from barista_bench.stats.agreement import rank_agreement
from barista_bench.stats.baselines import baseline_gaps, consistency
from barista_bench.stats.breakdowns import breakdown, breakdown_keys, breakdowns
from barista_bench.stats.comparison import compare_pair, compare_runs
from barista_bench.stats.failures import failure_rows
from barista_bench.stats.labels import comparable, differing_circumstances, run_labels
from barista_bench.stats.propagation import propagation
from barista_bench.stats.types import (
    BaselineGap,
    BaselineKind,
    BreakdownRow,
    Comparison,
    Consistency,
    FailureRow,
    PropagationEdge,
    PropagationGraph,
    RankAgreement,
)

__all__ = [
    "BaselineGap",
    "BaselineKind",
    "BreakdownRow",
    "Comparison",
    "Consistency",
    "FailureRow",
    "Interval",
    "PropagationEdge",
    "PropagationGraph",
    "RankAgreement",
    "baseline_gaps",
    "breakdown",
    "breakdown_keys",
    "breakdowns",
    "comparable",
    "compare_pair",
    "compare_runs",
    "consistency",
    "differing_circumstances",
    "failure_rows",
    "interval_of",
    "intervals",
    "propagation",
    "rank_agreement",
    "run_labels",
]
