"""Diagnose a model with ordinary runs, one per condition, in `OUT/<condition>/<task>`.

A diagnosis can be stopped and started again. It then asks only for the missing answers.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from barista_bench.aids.levels import LEVELS, PICTURES, LevelName
from barista_bench.aids.task_aids import Aid, aids_of, check_admitted, parse_aids, parse_views
from barista_bench.aids.texts import AidBook, OwnBoxes
from barista_bench.benchmarks.kinds.text import TextTask
from barista_bench.core.example import Scored, evidence_objects
from barista_bench.core.intervals import ResampledRepetition, metrics_of_units
from barista_bench.core.settings import Names
from barista_bench.core.statistics import Floats
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet, recorded_root
from barista_bench.data.frozen import write_frozen
from barista_bench.diagnosis.conditions import (
    Condition,
    Design,
    LevelSet,
    PlannedExample,
    condition_name,
    default_design,
    ids_by_condition,
    inert_aids,
    plan,
    true_aids,
)
from barista_bench.diagnosis.estimates import (
    PathScores,
    belief_metric,
    believes_any_text,
    estimates_of,
    game_metrics,
    path_metrics,
    uptake_metrics,
)
from barista_bench.diagnosis.records import DIAGNOSIS_FILE, Diagnosis, levels_of, write_diagnoses
from barista_bench.diagnosis.single_causes import single_causes
from barista_bench.diagnosis.upstream import upstream_questions, upstream_task
from barista_bench.diagnosis.views import Answers, compared_own, compared_views, same_answer
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.ask.aiding import NEEDS_VIDEO, own_boxes
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.runner import estimate, open_model, run_config
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.log.sessions import Session
from barista_bench.runs.run_folder import CONFIG_FILE, OpenedTask
from barista_bench.runs.score.labels import own_name
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import score

log = logging.getLogger(__name__)


class DiagnoseConfig(RunConfig):
    """Settings of a diagnosis: the settings of its runs, and the design."""

    repetitions: int = Field(1, ge=1, description="Repetitions of every answer.")
    aid: Names = Field((), description="Levels to give, e.g. objects,zoom; by default the task's usual ones.")
    own: Names = Field(
        (),
        description=(
            "Also give a level from the model's own answers: objects=RUN, a run folder of grounding on "
            "the same frames and objects."
        ),
        max_length=2,
    )
    view: Names = Field(
        (),
        description=(
            "Also ask in these views: hide_evidence, hide_elsewhere, only_evidence, mirrored, reversed; or all."
        ),
        max_length=5,
    )
    design: Literal["full", "paths"] | None = Field(
        None,
        description=(
            "full: every set of aids. paths: one order of aids for each example; the default if the score"
            " is a mean of sample scores."
        ),
    )


@dataclass(frozen=True, slots=True)
class DiagnosisTask:
    """One task of a diagnosis, before the model is asked. `lacking` counts the examples without an aid."""

    opened: OpenedTask
    book: AidBook
    design: Design
    examples: tuple[PlannedExample, ...]
    conditions: Mapping[Condition, Sequence[str]]
    lacking: int

    def answers(self, repetitions: int) -> int:
        return repetitions * sum(map(len, self.conditions.values()))


def plan_tasks(config: DiagnoseConfig) -> list[DiagnosisTask]:
    """Return the plan of each task.

    Raises:
        ConfigError: a task has no aids.
        DataError: the dataset has no graph, or no aid with an inert control can be made for any example.
    """
    planned_tasks = []
    for opened in open_tasks(config):
        task, examples = opened.task, opened.examples.examples
        aids, own = parse_aids(config.aid), parse_aids(config.own)
        check_admitted(task, (*aids, *own))
        book = AidBook.open(task, examples, config.graph or opened.data)
        levels = [aid.level for aid in aids] or usual_levels(task, opened.examples, opened.data)
        levels += [aid.level for aid in own if aid.level not in levels]
        design = config.design or default_design(task, levels)
        for aid in own:
            book.own_boxes = _own_answers(aid, book, opened, config)
        planned = plan(examples, book, levels, own, parse_views(task, config.view))
        if not planned:
            raise DataError(
                f"{opened.data}: no example of {task.name} has an aid with an inert control: the videos are too short "
                "or show too few other facts. Fix: build the dataset from longer videos or with shorter clips"
            )
        # Everything is asked without aids, so that this run is complete on a leaderboard.
        conditions = {**ids_by_condition(planned, design), (): [example.example_id for example in examples]}
        lacking = len(examples) - len(planned)
        planned_tasks.append(DiagnosisTask(opened, book, design, tuple(planned), conditions, lacking))
    return planned_tasks


def usual_levels(task: Task, examples: ExampleSet, data: str) -> list[LevelName]:
    """Return the levels that a diagnosis gives by default. Pictures are given only if the video can be read."""
    levels = list(aids_of(task).default)
    if examples.is_linked:
        return levels
    if pictures := [level for level in levels if level in PICTURES]:
        log.warning("%s: not given: %s. They %s", task.name, ", ".join(pictures), NEEDS_VIDEO)
    if not (others := [level for level in levels if level not in PICTURES]):
        raise ConfigError(f"{data}: {task.name} has only aids that {NEEDS_VIDEO}")
    return others


def _own_answers(aid: Aid, book: AidBook, opened: OpenedTask, config: DiagnoseConfig) -> OwnBoxes:
    """Return the boxes that the model answered. If a box is missing, write the questions and raise DataError."""
    examples = opened.examples.examples
    found = own_boxes(aid.run) if (Path(aid.run) / CONFIG_FILE).is_file() else {}
    asked = upstream_questions(book, examples, aid.level)
    needed = {(e.video_id, e.frames[0].frame_index, name) for e in asked for name in evidence_objects(e)}
    if needed <= found.keys():
        return found
    file = config.out.with_name(f"{config.out.name}-{opened.task.name}-questions.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_frozen(asked, file)
    root = config.root or recorded_root(opened.data)
    command = (
        f"run {file} --task {upstream_task().name} --root {root} --model {config.model} --out {Path(aid.run).parent}"
    )
    raise DataError(
        f"{aid.run}: answers {len(needed & found.keys())} of {len(needed)} objects of {opened.task.name}; the "
        f"questions are in {file}. Fix: run `barista-bench {command}`, then start again"
    )


def _condition_run(
    config: DiagnoseConfig, planned: DiagnosisTask, condition: Condition
) -> tuple[RunConfig, OpenedTask]:
    folder = config.out / condition_name(condition) / planned.opened.task.name
    view = tuple(part for part in condition if not isinstance(part, Aid))
    run = config.model_copy(update={"aid": tuple(map(str, condition)) if not view else (), "view": view})
    only = frozenset(planned.conditions[condition])
    return run, replace(planned.opened, folder=folder, only=only, aids=planned.book)


def plan_lines(config: DiagnoseConfig, planned_tasks: Sequence[DiagnosisTask]) -> list[str]:
    """Return the plan as lines: answers by task and condition, and their maximum cost if prices are set."""
    lines, cost = [], 0.0
    for planned in planned_tasks:
        name, count = planned.opened.task.name, planned.answers(config.repetitions)
        each = ", ".join(
            f"{condition_name(c)} {len(ids) * config.repetitions}" for c, ids in planned.conditions.items()
        )
        lacking = f"; {planned.lacking} more, without an aid, only get the question" if planned.lacking else ""
        lines.append(
            f"{name}: {count} answers about {len(planned.examples)} examples, design {planned.design}{lacking}"
        )
        lines.append(f"  {each}")
        if config.prices is not None:
            runs = (_condition_run(config, planned, condition) for condition in planned.conditions)
            cost += sum(estimate(run, [opened]).cost or 0.0 for run, opened in runs)
    return [*lines, f"at most about {cost:.2f} US dollars"] if config.prices is not None else lines


def ask_all(config: DiagnoseConfig, planned_tasks: Sequence[DiagnosisTask], tell: Callable[[str], None]) -> Session:
    """Ask for the missing answers of every condition. The model is loaded only once."""
    Shard.refuse_several()
    config.out.mkdir(parents=True, exist_ok=True)
    if not (config.out / DIAGNOSIS_FILE).is_file():
        write_diagnoses(config.out, [])  # marks the folder so that its runs count as runs of a diagnosis
    model = open_model(config, Shard(), [planned.opened for planned in planned_tasks])
    total = Session()
    for planned in planned_tasks:
        for condition in planned.conditions:
            run, opened = _condition_run(config, planned, condition)
            session = run_config(run, [opened], model)
            tell(f"{planned.opened.task.name}, {condition_name(condition)}: {session.asked} answered")
            total.add(session)
    return total


def diagnose(config: DiagnoseConfig, *, tell: Callable[[str], None] = lambda line: None) -> list[Diagnosis]:
    """Ask, score and write `diagnosis.json`.

    Raises:
        ConfigError, DataError, ModelError, BudgetError: the same as in `run` and `score`.
    """
    planned_tasks = plan_tasks(config)
    for line in plan_lines(config, planned_tasks):
        tell(line)
    ask_all(config, planned_tasks, tell)
    diagnoses = [diagnose_task(config, planned) for planned in planned_tasks]
    write_diagnoses(config.out, diagnoses)
    return diagnoses


def diagnose_task(config: DiagnoseConfig, planned: DiagnosisTask) -> Diagnosis:
    """Score the runs of one task, write their results and return the diagnosis. The model is not asked."""
    task, design = planned.opened.task, planned.design
    runs = {}
    for condition in planned.conditions:
        folder = config.out / condition_name(condition) / task.name
        runs[condition] = score(folder, data=planned.opened.data, root=config.root)
    samples: dict[Condition, dict[str, list[ScoredSample]]] = {c: defaultdict(list) for c in runs}
    for condition, run in runs.items():
        for sample in run.samples:
            if sample.record.is_finished and sample.scores:
                samples[condition][sample.example.example_id].append(sample)
    complete = [
        each
        for each in planned.examples
        if all(len(samples[c][each.example.example_id]) == config.repetitions for c in each.conditions(design))
    ]
    if not complete:
        raise DataError(
            f"{config.out}: no example of {task.name} is answered in every condition. Fix: start `diagnose` again"
        )
    answers = Answers(task, complete, samples)
    levels = tuple(level for level in LEVELS if any(level in each.order for each in complete))
    units = [task.resampling_unit(each.example) for each in complete]
    metrics = (
        path_metrics(_path_scores(answers, levels, units))
        if design == "paths"
        else _game_metrics(task, answers, levels, units)
    )
    every = [tuple(true_aids(each.order)) for each in complete], [tuple(inert_aids(each.order)) for each in complete]
    plain, told, controls = (
        np.array([answers.score(each, c) for each, c in zip(complete, conditions, strict=True)])
        for conditions in ([()] * len(complete), *every)
    )
    followed = {level: _measure_followed(task, planned.book, answers, level) for level in levels}
    uptakes = {level: uptake_metrics(units, follows, kept) for level, (follows, kept, _) in followed.items()}
    estimates = estimates_of(levels, metrics, belief_metric(units, plain, told, controls), uptakes)
    found = single_causes(complete, design, config.repetitions, answers.each_score)
    planned_ids = {each.example.example_id for each in planned.examples}
    unreadable = {
        c: _count_unreadable([s for s in run.samples if s.example.example_id in planned_ids]) for c, run in runs.items()
    }
    left_out = {"no aid with an inert control": planned.lacking, "no answer": len(planned.examples) - len(complete)}
    return Diagnosis(
        benchmark=task.benchmark,
        task=task.name,
        model=own_name(runs[()].name, runs[()].results.model),
        metric=task.primary,
        sample_metric=task.sample_score,
        same_answer=same_answer(
            task,
            [(s.example, s.record.text or "", s.prediction) for each in complete for s in answers.scores(each, ())],
        ),
        by_words=isinstance(task, TextTask),
        design=design,
        asked=list(aids_of(task).asked_about),
        repetitions=config.repetitions,
        examples=len(complete),
        videos=len(set(units)),
        answers=planned.answers(config.repetitions),
        left_out={why: count for why, count in left_out.items() if count},
        unreadable={condition_name(c): bad for c, bad in unreadable.items() if bad},
        plain=estimates.plain,
        remainder=estimates.remainder,
        text=estimates.text,
        belief=estimates.belief,
        believes_any_text=believes_any_text(estimates),
        has_views=bool(aids_of(task).views),
        views=compared_views(planned.book, answers),
        own=compared_own(answers),
        causes=dict(found.by_example),
        false_cause_rate=found.false_rate,
        video_ids=sorted(set(units)),
        levels=levels_of(
            estimates,
            {level: math.nan if np.isnan(p).all() else float(np.nanmean(p)) for level, (_, _, p) in followed.items()},
            {level: sum(level in each.order for each in complete) for level in levels},
            {level: metrics[f"gain {level}"] - metrics[f"inert {level}"] for level in levels},
        ),
    )


def _path_scores(answers: Answers, levels: tuple[LevelName, ...], units: Sequence[str]) -> PathScores:
    orders = [each.order for each in answers.planned]
    position = np.array([[order.index(level) if level in order else -1 for level in levels] for order in orders])
    steps = range(len(levels) + 1)

    def along(variant: Callable[[LevelSet], Condition]) -> Floats:
        return np.array(
            [[answers.score(each, variant(frozenset(each.order[:step]))) for step in steps] for each in answers.planned]
        )

    return PathScores(units, levels, position, along(true_aids), along(inert_aids))


def _game_metrics(
    task: Task, answers: Answers, levels: tuple[LevelName, ...], units: Sequence[str]
) -> dict[str, Floats]:
    """Return the values of the design `full` in the task's primary metric."""
    names, repetitions = sorted(set(units)), range(len(answers.scores(answers.planned[0], ())))

    def game(variant: Callable[[LevelSet], Condition]) -> dict[LevelSet, Floats]:
        scores = {}
        for told in PlannedExample(answers.planned[0].example, levels, ()).sets("full"):
            resampled = []
            for repetition in repetitions:
                samples = [
                    answers.scores(each, variant(told.intersection(each.order)))[repetition].as_scored
                    for each in answers.planned
                ]
                resampled.append(ResampledRepetition(task.statistics(samples), tuple(units)))
            scores[told] = metrics_of_units(resampled, names)[task.primary]
        return scores

    return game_metrics(levels, game(true_aids), game(inert_aids))


def _measure_followed(task: Task, book: AidBook, answers: Answers, level: LevelName) -> tuple[Floats, Floats, Floats]:
    """Return three shares of answers (E,), with NaN for examples without a false aid.

    The first share counts answers with the false aid that are nearer to its target than to the truth. The second counts
    answers with the false aid that are nearer to the truth. The third counts answers without aids that are nearer to
    the target of the false aid.
    """
    rows = []
    for each in answers.planned:
        false = book.false(each.example, level) if level in each.false else None
        if false is None:
            rows.append((math.nan,) * 3)
            continue
        parts: list[float] = []
        for condition in ((Aid(level, "false"),), ()):
            changed = replace(each.example, target=false.target)
            others = [Scored(changed, sample.prediction) for sample in answers.scores(each, condition)]
            nearer = task.statistics(others).scores()[task.sample_score] - answers.each_score(each, condition)
            parts += [float(np.mean(nearer > 0)), float(np.mean(nearer < 0))]
        rows.append((parts[0], parts[1], parts[2]))
    follows, kept, plain = np.array(rows).T
    return follows, kept, plain


def _count_unreadable(samples: Sequence[ScoredSample]) -> dict[str, int]:
    return dict(Counter(str(s.record.status) for s in samples if s.prediction is None and s.record.status != Status.OK))
