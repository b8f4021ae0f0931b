"""Provides our tasks to inspect_ai, with their solvers, scorer and metrics, and a provider for local checkpoints.

inspect_ai finds this module by the entry point in setup.cfg; none of our modules imports it. Task names are
`barista_bench/relations`, or `barista_bench/vista_all` for a benchmark other than BARISTA; models are `barista/PATH`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ModelOutput, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from barista_bench.benchmarks import BENCHMARKS, task_class, task_names
from barista_bench.core.prompt import Prompt
from barista_bench.core.settings import check_settings, part_of
from barista_bench.harness import inspect_model as ours
from barista_bench.harness.inspect_judge import check_judged, judge as judge_answers
from barista_bench.harness.questions import QuestionSet, question_set, question_sets
from barista_bench.models.served.requests import data_url
from barista_bench.models.served.settings import ServedSettings
from barista_bench.runs.log.inputs import sample_seed


def _declare(benchmark: str, name: str) -> None:
    @task(name=name if benchmark == "barista" else f"{benchmark}_{name}")
    def questions(data: str, judge: bool = False, **settings: object) -> Task:
        """Make a task.

        With `judge`, the model in the role `grader` scores answers or reasons. `settings` are QUESTION_SETTINGS. Images
        are sent as png, which keeps the exact pixels of the data, unless `image_format` is jpeg.
        """
        set_settings = {"data": data, "benchmark": benchmark, "task": name, "image_format": "png"}
        (opened_set,) = question_sets({**set_settings, **settings})
        if judge:
            check_judged(opened_set.task)
        return Task(
            dataset=MemoryDataset(list(_samples(opened_set))),
            setup=pose(),
            solver=ask(),
            scorer=[answers(), judge_answers()] if judge else answers(),
        )


for _benchmark in BENCHMARKS:
    for _name in task_names(_benchmark):
        if task_class(_benchmark, _name).answered_by_text:
            _declare(_benchmark, _name)


def _samples(questions: QuestionSet) -> Iterator[Sample]:
    box_format = ours.box_format_now(questions)
    for example_id in questions.positions:
        example = questions.example(example_id)
        # `pose` inserts the question, with its images, when the sample is asked.
        prompt = questions.task.prompt(example, box_format)
        yield Sample(
            id=example_id,
            input=prompt.as_text(),
            target=questions.task.reference_answer(example, box_format),
            metadata={**example.metadata, ours.QUESTIONS: questions.key},
        )


@solver
def pose() -> Solver:
    """Add the first question, with its images in their places; runs before any other solver."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        questions = ours.questions_of(state)
        box_format = ours.box_format_now(questions)
        state.store.set(ours.BOXES, asdict(box_format))
        state.store.set(ours.TRAINED_ON, ours.trained_on(questions, str(state.sample_id)))
        return await _pose(state, questions.task.prompt(questions.example(str(state.sample_id)), box_format))

    return solve


async def _pose(state: TaskState, prompt: Prompt) -> TaskState:
    """Replace the conversation with a question."""

    def messages() -> list[ChatMessage]:
        questions = ours.questions_of(state)
        served = check_settings(ServedSettings, part_of(questions.config, ServedSettings))
        return ours.chat(prompt, [data_url(image, served) for image in questions.images(str(state.sample_id), prompt)])

    state.messages = await anyio.to_thread.run_sync(messages)
    return state


@solver
def ask() -> Solver:
    """Ask the model, and ask follow-up questions if the task has any; seeds are as in `run`, epochs are repetitions."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        questions, earlier, is_cut = ours.questions_of(state), list[str](), False
        example = questions.example(str(state.sample_id))
        while True:
            seed = sample_seed(questions.task, example.example_id, state.epoch - 1, len(earlier))
            state = await generate(state, seed=ours.sent_seed(get_model(), seed))
            answer = ours.completion(state.output)
            is_cut |= answer.finish_reason in ("length", "thinking")
            state.store.set(ours.EARLIER, earlier)
            state.store.set(ours.IS_CUT, is_cut)
            if answer.finish_reason == "refusal":
                return state
            prompt = questions.task.follow_up(example, (*earlier, answer.text), ours.boxes_of(state))
            if prompt is None:
                return state
            earlier = [*earlier, answer.text]
            state = await _pose(state, prompt)

    return solve


@solver
def oracle() -> Solver:
    """Answer with the reference, as a model would write it. A score below the maximum shows a fault of the pipeline."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        questions = ours.questions_of(state)
        answer = questions.task.reference_answer(questions.example(str(state.sample_id)), ours.boxes_of(state))
        state.output = ModelOutput.from_content("oracle", answer)
        return state

    return solve


@metric(scores="unreduced")
def compute_metrics() -> Metric:
    """Return all scores of `barista-bench score` over all samples, and the number of samples of each status.

    `trained_on` is the number of these examples' videos that the model was trained on. Above 0, the scores get no rank.
    """

    def calculate(scores: list[SampleScore]) -> Value:
        if not scores:  # inspect_ai calls this before the first answer too
            return {}
        questions = question_set((scores[0].sample_metadata or {})[ours.QUESTIONS])
        score_fields = [score.score.metadata or {} for score in scores]
        trained_on = {fields[ours.TRAINED_ON] for fields in score_fields if fields.get(ours.TRAINED_ON)}
        samples = [ours.logged_sample(questions, fields) for fields in score_fields]
        return {**questions.compute_metrics(samples), ours.TRAINED_ON: len(trained_on)}

    return calculate


@scorer(metrics=[compute_metrics()])
def answers() -> Scorer:
    """Read each answer with the task's parser and compare it with the reference; a sample's value is scores by name."""

    async def score(state: TaskState, target: Target) -> Score:
        questions, sample = ours.sample_of(state)
        values = questions.task.score(sample.example, sample.prediction)
        return Score(
            value={
                name: None if math.isnan(value) or not sample.is_counted else value for name, value in values.items()
            },
            answer=sample.record.text,
            explanation=sample.record.error,
            metadata={"status": str(sample.record.status), **ours.kept_fields(sample, state)},
        )

    return score
