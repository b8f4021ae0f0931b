"""Plan a comparison with a complete run. Estimate its cost, complete or stopped early, and what it can show.

The planned model is simulated from the complete run. A share `CHURN` of the examples get another example's answer. Then
random answers become perfect until the score has risen by the planned difference.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from barista_bench.core.example import content_seed
from barista_bench.core.statistics import Floats, MicroF1
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.decide.contest import Contest, Goal, Rival
from barista_bench.runs.decide.opening import (
    answer_bounds,
    refuse_undecidable,
    rival_offsets,
    score_terms,
    short_label,
    unit_names,
)
from barista_bench.runs.decide.order import AskingOrder
from barista_bench.runs.described import Prices
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Row, Table, number, number_columns, text_columns

log = logging.getLogger(__name__)
CHURN, ROUNDS, POWER = 0.3, 40, 0.8
FEWEST_VIDEOS: Final = 6
"""Minimum number of videos with which `compare` can show a difference."""


class TaskPlan(NamedTuple):
    """The planned comparison of one task.

    `stopped` is the expected number of examples until a decision. `smallest` is the smallest difference that `compare`
    shows over videos with probability `POWER`, or None if `compare` cannot show a difference.
    """

    run: ScoredRun
    stopped: float
    smallest: float | None


def plan_tasks(runs: Sequence[ScoredRun], difference: float, alpha: float) -> list[TaskPlan]:
    """Return the plan of each task that can be decided early.

    A warning names a task whose score cannot rise by the difference, and the task is left out.

    Raises:
        ConfigError: no task can be decided early, or no score can rise by the difference.
        DataError: a run is incomplete.
    """
    decidable = [run for run in runs if run.task.decided_by is not None]
    if not decidable:
        refuse_undecidable(runs[0].task, Goal("decided"), 1)
    plans = []
    for run in decidable:
        try:
            plans.append(plan_task(run, difference, alpha / len(decidable)))
        except ConfigError as error:
            if len(decidable) == 1:
                raise
            log.warning("%s", error)
    if not plans:
        raise ConfigError(f"no score can rise by {difference:g}. Fix: plan a smaller difference")
    return plans


def plan_task(run: ScoredRun, difference: float, alpha: float) -> TaskPlan:
    """Return the plan of a task whose decision may be wrong with probability `alpha`."""
    task, examples = run.task, run.examples
    refuse_undecidable(task, Goal("decided"), 1)
    if missing := run.results.coverage.missing:
        raise DataError(f"{run.folder}: {missing} samples are missing. Fix: finish this run first")
    tokens = int(str(run.results.generation["max_new_tokens"]))
    least, most, _ = answer_bounds(task, examples, tokens)
    positions = {example.example_id: index for index, example in enumerate(examples.examples)}
    group = next(iter(run.counted.values()))
    terms = np.zeros_like(least)
    terms[[positions[s.example.example_id] for s in group.samples]] = score_terms(task, group.resampled.statistics)
    least[:, 1] += max(0.0, float((terms - least)[:, 1].max()))  # some models of this package answer without tokens
    score = float(terms[:, 0].sum() / terms[:, 1].sum())
    offsets, goal = rival_offsets(run), Goal("decided")
    rival = Rival(short_label(run), run.results.metrics[task.primary].mean, offsets)
    order = AskingOrder.of(examples.content_hash, unit_names(task, examples, goal))
    rng = np.random.default_rng(content_seed("plan", examples.content_hash))
    used, errors = [], []
    for _ in range(ROUNDS):
        answers = planned_answers(terms, most, score + difference, rng, is_f1=isinstance(task.decided_by, MicroF1))
        if answers is None:
            raise ConfigError(
                f"{task.name}: {task.primary} of {score:.3f} cannot rise by {difference:g}. "
                "Fix: plan a smaller difference"
            )
        contest = Contest(goal, order, least, most, metric=task.primary, rival=rival)
        for position, (part, whole) in enumerate(answers.tolist()):
            contest.add(position, part, whole)
        used.append(examples_until_decided(contest, alpha))
        sums: dict[str, float] = defaultdict(float)
        gaps = answers[:, 0] - answers[:, 1] * answers[:, 0].sum() / answers[:, 1].sum() - offsets
        for example, gap in zip(examples.examples, gaps.tolist(), strict=True):
            sums[example.video_id] += gap
        errors.append(_standard_error(np.array(list(sums.values()))) / answers[:, 1].sum())
    return TaskPlan(run, float(np.mean(used)), _smallest_difference(float(np.mean(errors)), len(sums)))


def planned_answers(
    terms: Floats, most: Floats, target: float, rng: np.random.Generator, *, is_f1: bool
) -> Floats | None:
    """Return the terms of a planned model whose score is at least `target` (E, 2), or None if no answers reach it."""
    answers = terms.copy()
    changed = rng.choice(len(terms), round(CHURN * len(terms)), replace=False)
    others = rng.permutation(changed)
    if is_f1:  # takes over the other example's recall and wrong entries
        entries, hits = most[:, 0] / 2, terms[:, 0] / 2
        wrong = terms[:, 1] - entries - hits
        found = np.divide(hits, entries, out=np.zeros_like(hits), where=entries > 0)[others] * entries[changed]
        answers[changed] = np.column_stack([2 * found, entries[changed] + found + wrong[others]])
    else:
        answers[changed] = terms[others]
    order = rng.permutation(len(terms))
    raised = answers.sum(axis=0) + np.cumsum([[0.0, 0.0], *(most - answers)[order]], axis=0)
    reached = np.flatnonzero(raised[:, 0] >= target * raised[:, 1] - 1e-9)
    if not len(reached):
        return None
    answers[order[: reached[0]]] = most[order[: reached[0]]]
    return answers


def examples_until_decided(contest: Contest, alpha: float) -> int:
    """Return the number of examples until a block decides a contest of known answers.

    If no block decides it, return the number of all examples.
    """
    up, down = contest.log_wealths(contest.target, len(contest.order.units))
    best = np.maximum(up, down)
    ends = contest.order.block_ends
    return contest.order.examples(next((end for end in ends if best[end - 1] >= math.log(2 / alpha)), ends[-1]))


def _standard_error(sums: Floats) -> float:
    count = len(sums)
    return math.sqrt(count / (count - 1) * float(((sums - sums.mean()) ** 2).sum())) if count > 1 else math.inf


def _smallest_difference(error: float, videos: int) -> float | None:
    from scipy.special import stdtrit  # imported on demand: loading takes longer than most commands run

    if videos < FEWEST_VIDEOS:
        return None
    return float(stdtrit(videos - 1, 0.975) + stdtrit(videos - 1, POWER)) * error


def plan_table(plans: Sequence[TaskPlan], difference: float, alpha: float, prices: Prices) -> Table:
    """Return two rows per task, complete and stopped early, with answers, tokens, dollars and hours."""
    rows: list[Row] = []
    for plan in plans:
        results = plan.run.results
        costs = results.timing.costs
        tokens = [costs[name].mean if name in costs else None for name in ("input_tokens", "output_tokens")]
        seconds = costs["seconds"].mean if "seconds" in costs else None
        shown = "none: too few videos" if plan.smallest is None else f"{plan.smallest:.3f}"
        for design, examples in (("complete", float(results.dataset.examples)), ("stopped", plan.stopped)):
            count = examples * results.repetitions
            amounts = [None if each is None else round(each * count) for each in tokens]
            dollars = None if None in amounts else prices.cost(amounts[0] or 0, amounts[1] or 0)
            money = None if dollars is None else f"{dollars:.2f}"
            hours = None if seconds is None else f"{seconds * count / 3600:.2f}"
            shows = shown if design == "complete" else None
            numbers = (number(round(count)), *(None if each is None else number(each) for each in amounts))
            rows.append((plan.run.task.name, results.primary, design, *numbers, money, hours, shows))
    names = ("answers", "input tokens", "output tokens", "dollars", "hours", "smallest difference")
    note = (
        f"Stopped: until a difference of {difference:g} on these questions is certain (alpha {alpha:g}). "
        f"Smallest difference: what compare shows over videos with {POWER:.0%} probability. Costs are those of the log."
    )
    return Table.of("Plan", (*text_columns("task", "metric", "design"), *number_columns("", *names)), rows, note)
