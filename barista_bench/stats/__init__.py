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

from barista_bench.core.intervals import Interval, repetition_intervals
from barista_bench.runs.score.labels import comparable_groups, differing_circumstances, run_labels
from barista_bench.stats.agreement import AnswerAgreement, RankAgreement, answer_agreement, rank_agreement
from barista_bench.stats.baselines import BaselineGap, Consistency, baseline_gaps, consistency
from barista_bench.stats.breakdowns import (
    BreakdownRow,
    FailureRow,
    ThoughtBin,
    breakdown,
    breakdown_keys,
    breakdowns,
    by_thinking,
    failure_rows,
)
from barista_bench.stats.comparison import Comparison, compare_pair, compare_runs
from barista_bench.stats.contamination import GuessComparison, compare_guesses
from barista_bench.stats.facts import (
    FactConsistency,
    FormatRow,
    PriorRow,
    fact_answers,
    fact_consistency,
    format_rows,
    prior_rows,
)
from barista_bench.stats.propagation import PropagationEdge, PropagationGraph, cross_propagation, propagation

__all__ = ["AnswerAgreement", "BaselineGap", "BreakdownRow", "Comparison", "Consistency", "FactConsistency"]
__all__ += ["FailureRow", "FormatRow", "GuessComparison", "Interval", "PriorRow", "PropagationEdge", "PropagationGraph"]
__all__ += ["RankAgreement", "ThoughtBin", "answer_agreement", "baseline_gaps", "breakdown", "breakdown_keys"]
__all__ += ["breakdowns", "by_thinking", "comparable_groups", "compare_guesses", "compare_pair", "compare_runs"]
__all__ += ["consistency", "cross_propagation", "differing_circumstances", "fact_answers", "fact_consistency"]
__all__ += ["failure_rows", "format_rows", "prior_rows", "propagation", "rank_agreement", "repetition_intervals"]
__all__ += ["run_labels"]
