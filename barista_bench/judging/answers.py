"""Select the answers of a run that judges grade, and provide the judges that need no model.

For tasks that ask for reasons (`Task.rationale`) the reasoning is graded, for all others the content of `Task.judged`.

The judge `lexical` turns the task's word overlap into scores. It is a lower bound: it ignores paraphrase, negation and
who does what, so never publish its scores as a judge's. It lets you run all steps without a network. The judge `oracle`
gives full marks to the reference and 0 to every other answer; it exists for tests.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.guarding import attempt
from barista_bench.core.task import Example, Judged, Prediction, Rationale, Task
from barista_bench.errors import ConfigError
from barista_bench.judging.verdicts import REASONING_FORM, ReplyForm
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun

REASONING: Final = "reasoning"
"""The method of judging reasons, and its one criterion."""


@dataclass(frozen=True, slots=True)
class DistinctAnswer:
    """One distinct answer: `item` is the digest of the judge's `view` of it, `sample` the first sample that gave it."""

    item: str
    view: Judged | Rationale
    text: str
    sample: ScoredSample

    @property
    def token(self) -> str:
        """Return the id of the answer in ratings; it changes with the answer and with the question."""
        return self.item[:24]


class AnsweredRun(Protocol):
    """A run as judges read it: its task and its samples with their scores."""

    @property
    def task(self) -> Task: ...

    @property
    def samples(self) -> Sequence[ScoredSample]: ...


@dataclass(frozen=True, slots=True)
class RunAnswers:
    """The finished samples of a run, in the order of its examples.

    Args:
        answers: one entry per sample; equal answers are one object. None if there is nothing to judge: no readable
            answer, or an empty one. As in the release, means leave these samples out; the coverage counts them.
    """

    samples: list[ScoredSample]
    answers: list[DistinctAnswer | None]

    @classmethod
    def of(cls, run: AnsweredRun) -> RunAnswers:
        samples = [sample for sample in run.samples if sample.record.is_finished]
        by_item: dict[str, DistinctAnswer] = {}
        answers = [_distinct_answer(run.task, sample) for sample in samples]
        return cls(samples, [by_item.setdefault(answer.item, answer) if answer else None for answer in answers])

    @property
    def distinct(self) -> list[DistinctAnswer]:
        return list({answer.item: answer for answer in self.answers if answer}.values())


def asks_for_reasons(task: Task) -> bool:
    """Whether a judge of reasoning scores this task."""
    return type(task).rationale is not Task.rationale


def form_id(form: ReplyForm, item: str, criterion: str) -> str:
    """Return the id of the form for one answer and criterion; reasoning has a single criterion."""
    return item if form is REASONING_FORM else f"{item}:{criterion}"


def offline_judge(name: str, form: ReplyForm, metrics: Mapping[str, str | None], run: ScoredRun) -> ScriptedModel:
    """Return the judge `lexical` or `oracle` for the answers of a run.

    `metrics` maps a criterion to the task's score, from 0 to 1, that `lexical` uses for it. Raises ConfigError if a
    criterion names no such score.
    """
    replies = {}
    for answer in RunAnswers.of(run).distinct:
        for criterion, metric in metrics.items():
            if name == "lexical":
                score, reason = _lexical_score(form, criterion, metric, answer)
            else:
                score, reason = _oracle_score(form, run, answer)
            replies[form_id(form, answer.item, criterion)] = json.dumps({form.score: score, form.reason: reason})
    return ScriptedModel(name, lambda request_id, seed: replies[request_id])


def whole_score(fraction: float, top: int) -> int:
    """Return a score from 0 to 1 as a whole score from 0 to `top`, halves rounded up.

    >>> whole_score(0.0, 10), whole_score(0.25, 10), whole_score(0.949, 10), whole_score(1.0, 10)
    (0, 3, 9, 10)
    """
    return min(top, max(0, math.floor(fraction * top + 0.5)))


def _distinct_answer(task: Task, sample: ScoredSample) -> DistinctAnswer | None:
    prediction, example = sample.prediction, sample.example
    if prediction is None:
        return None
    view = attempt(task, "show_to_judge", example, lambda: _judge_view(task, example, prediction), None)
    if view is None or not _graded_text(view).strip():
        return None
    kind = REASONING if isinstance(view, Rationale) else "item"
    return DistinctAnswer(digest(kind, asdict(view)), view, _graded_text(view), sample)


def _judge_view(task: Task, example: Example, prediction: Prediction) -> Judged | Rationale | None:
    return task.rationale(example, prediction) if asks_for_reasons(task) else task.show_to_judge(example, prediction)


def _graded_text(view: Judged | Rationale) -> str:
    return view.reasoning if isinstance(view, Rationale) else view.answer


def _lexical_score(form: ReplyForm, criterion: str, metric: str | None, answer: DistinctAnswer) -> tuple[int, str]:
    scores = answer.sample.scores
    if metric is None or metric not in scores:
        raise ConfigError(
            f"the criterion {criterion} names no score for the judge lexical ({metric}). Fix: set its `lexical` in "
            f"the rubric to one of {', '.join(sorted(scores))}, or use another judge"
        )
    fraction = scores[metric]
    return whole_score(fraction, form.top), f"{metric} is {fraction:.3f}; words were counted, not read"


def _oracle_score(form: ReplyForm, run: ScoredRun, answer: DistinctAnswer) -> tuple[int, str]:
    """Return full marks if the answer equals the reference after parsing, else 0."""
    info = run.results.model.box_format
    box_format, example = BoxFormat(info.order, info.scale), answer.sample.example
    parsed = run.task.parse(run.task.reference_answer(example, box_format), example.inputs, box_format)
    reference = _judge_view(run.task, example, parsed) if isinstance(parsed, Prediction) else None
    if reference is not None and _graded_text(reference) == answer.text:
        return form.top, "the reference's own answer"
    return 0, "another answer than the reference's own"
