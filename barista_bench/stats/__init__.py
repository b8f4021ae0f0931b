"""Analysis of scored runs: intervals, paired comparisons, breakdowns, agreement, propagation, baselines, failures.

All functions read `runs.score.scoring.ScoredRun`s and do not run a model. They contain no code for a specific benchmark
or task. Tasks provide their special cases: `Task.statistics`, `Task.facets`, `Task.failures`.

Results are plain frozen records for tables, pandas (`dataclasses.asdict`) and reports. A score is a
`runs.score.results.MetricValue`: mean and standard deviation over repetitions, and a 95% interval. All scores range
from 0 to 1. Intervals and tests are over resampling units (`Task.resampling_unit`: videos for most tasks), never over
samples, since samples of one unit resemble each other.

    repetition_intervals(repetitions)     -> {metric: Interval}      of `CountedSamples.resampled` in `run.counted`
    compare_runs(runs)                    -> (Comparison, ...)       all pairs of models, task by task, Holm-corrected
    compare_guesses(public, private)      -> (GuessComparison, ...)  text_only against prior, on two sets
    breakdown(run, key)                   -> (BreakdownRow, ...)     breakdown_keys(run) lists the keys there are
    by_thinking(run)                      -> (ThoughtBin, ...)       empty without thoughts
    rank_agreement(runs)                  -> RankAgreement           several tasks, three models or more
    answer_agreement(runs)                -> (AnswerAgreement, ...)  each pair of runs of a task, people, all
    propagation(runs)                     -> PropagationGraph        one model, several tasks
    baseline_gaps(runs)                   -> (BaselineGap, ...)
    consistency(run)                      -> Consistency | None      None for a single run
    failure_rows(run)                     -> (FailureRow, ...)
    cross_propagation(runs, label)        -> PropagationGraph        across benchmarks, for one model
    fact_answers(runs)                    -> FactAnswers             one fact in several formats, for one model
    run_labels(runs)                      -> {folder: label}         names of models in all of these
"""

from barista_bench.core.resampling import Interval as Interval, repetition_intervals as repetition_intervals
from barista_bench.runs.score.labels import (
    comparable_groups as comparable_groups,
    differing_circumstances as differing_circumstances,
    run_labels as run_labels,
)
from barista_bench.stats.agreement import (
    AnswerAgreement as AnswerAgreement,
    RankAgreement as RankAgreement,
    answer_agreement as answer_agreement,
    rank_agreement as rank_agreement,
)
from barista_bench.stats.baselines import (
    BaselineGap as BaselineGap,
    Consistency as Consistency,
    baseline_gaps as baseline_gaps,
    consistency as consistency,
)
from barista_bench.stats.breakdowns import (
    BreakdownRow as BreakdownRow,
    FailureRow as FailureRow,
    ThoughtBin as ThoughtBin,
    breakdown as breakdown,
    breakdown_keys as breakdown_keys,
    breakdowns as breakdowns,
    by_thinking as by_thinking,
    failure_rows as failure_rows,
)
from barista_bench.stats.comparison import (
    Comparison as Comparison,
    compare_pair as compare_pair,
    compare_runs as compare_runs,
)
from barista_bench.stats.contamination import GuessComparison as GuessComparison, compare_guesses as compare_guesses
from barista_bench.stats.facts import (
    FactConsistency as FactConsistency,
    FormatRow as FormatRow,
    PriorRow as PriorRow,
    fact_answers as fact_answers,
    fact_consistency as fact_consistency,
    format_rows as format_rows,
    prior_rows as prior_rows,
)
from barista_bench.stats.propagation import (
    PropagationEdge as PropagationEdge,
    PropagationGraph as PropagationGraph,
    cross_propagation as cross_propagation,
    propagation as propagation,
)
