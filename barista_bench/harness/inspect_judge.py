"""Lets a model in inspect_ai's role `grader` judge answers and reasons, with the same forms and scores as `judge`."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import collect

from barista_bench.core.settings import check_settings
from barista_bench.core.task import Task
from barista_bench.harness import inspect_model as ours
from barista_bench.harness.questions import QuestionSet, question_set
from barista_bench.judging.answers import RunAnswers, asks_for_reasons
from barista_bench.judging.config import JudgeConfig
from barista_bench.judging.judge_folder import JudgeDescription
from barista_bench.judging.judged_run import GroupMetrics
from barista_bench.judging.results import MEAN
from barista_bench.judging.rubric import load_rubric
from barista_bench.judging.scoring import read_replies
from barista_bench.judging.session import describe_judge, judge_questions, reply_reading
from barista_bench.models import ModelIdentity
from barista_bench.runs.ask.replies import RepeatedPrompt, reply_record
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.samples import ScoredSample

ROLE = "grader"
"""`--model-role grader=PROVIDER/MODEL`."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run in the form that the judges' code reads."""

    task: Task
    samples: tuple[ScoredSample, ...]


def check_judged(task: Task) -> None:
    """Raise ConfigError if no judge scores the task."""
    if not asks_for_reasons(task):
        load_rubric(task)


@functools.cache
def _judge_description(key: str, name: str) -> JudgeDescription:
    """Return the description of this judge, with the default settings of `barista-bench judge`."""
    task = question_set(key).task
    rubric = None if asks_for_reasons(task) else load_rubric(task)
    return describe_judge(check_settings(JudgeConfig, {"run": ".", "judge": name}), ModelIdentity(name), rubric)


@metric(scores="unreduced")
def score_with_judge() -> Metric:
    """Return the scores of `barista-bench judge` over all samples, and the number of samples with a verdict."""

    def calculate(scores: list[SampleScore]) -> Value:
        if not scores:  # inspect_ai calls this before the first answer too
            return {}
        logged = [score.score.metadata or {} for score in scores]
        questions = question_set((scores[0].sample_metadata or {})[ours.QUESTIONS])
        replies = [msgspec.convert(reply, SampleRecord) for kept in logged for reply in kept["replies"]]
        samples = [ours.logged_sample(questions, kept) for kept in logged]
        return dict(_compute_metrics(questions, logged[0]["judge"], samples, replies))

    return calculate


@scorer(metrics=[score_with_judge()])
def judge() -> Scorer:
    """Let the model in the role `grader` score each answer; a sample's value maps names to scores."""

    async def score(state: TaskState, target: Target) -> Score:
        questions, sample = ours.sample_of(state)
        grader = get_model(role=ROLE, required=True)
        described = _judge_description(questions.key, str(grader))

        async def reply(question: RepeatedPrompt, repetition: int) -> SampleRecord:
            (seed,) = question.request([repetition]).seeds
            config = described.config
            generate_config = GenerateConfig(
                temperature=config.temperature,
                max_tokens=config.max_new_tokens,
                top_p=config.top_p if config.top_p < 1 else None,
                logprobs=True if config.top_logprobs else None,
                top_logprobs=config.top_logprobs or None,
                seed=ours.sent_seed(grader, seed),
            )
            output = await grader.generate(ours.chat(question.prompt), config=generate_config)
            return reply_record(question, repetition, ours.completion(output), *reply_reading(described))

        distinct = RunAnswers.of(_Run(questions.task, (sample,))).distinct
        asked_repetitions = [
            (question, repetition) for question in judge_questions(described, distinct) for repetition in question.keys
        ]
        replies = await collect(*(reply(question, repetition) for question, repetition in asked_repetitions))
        return Score(
            value={**_compute_metrics(questions, str(grader), [sample], replies)},
            explanation="\n\n".join(record.text or "" for record in replies) or "nothing to judge",
            metadata={**ours.kept_fields(sample, state), "judge": str(grader), "replies": msgspec.to_builtins(replies)},
        )

    return score


def _compute_metrics(
    questions: QuestionSet, name: str, samples: Sequence[ScoredSample], replies: Sequence[SampleRecord]
) -> dict[str, float]:
    scored = [sample for group in questions.by_repetition(samples).values() for sample in group.samples]
    records = {record.key: record for record in replies}
    run = _Run(questions.task, tuple(scored))
    judged_run = read_replies(run, _judge_description(questions.key, name), records)
    values = GroupMetrics(questions.task, judged_run).values(range(len(scored)))
    return {
        **{metric: statistics.fmean(of_runs) for metric, of_runs in values.items()},
        "samples": len(scored),
        "judged": sum(value is not None for value in judged_run.metrics[MEAN].values),
    }
