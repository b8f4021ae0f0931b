"""Select the answers of a run for judging, and provide the judges that need no model.

If a task asks for reasons (`Task.rationale`), judges grade the reasoning. Otherwise they grade the content of
`Task.judged`.

The judge `lexical` turns the task's word overlap into scores. Its scores are a lower bound: they ignore paraphrase,
negation and the roles of actor and object. Never publish them as a judge's scores. With `lexical` you can run all steps
without a network. The judge `oracle` is for tests. It gives full marks to the reference and 0 to every other answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.display import JudgedSample, Rationale
from barista_bench.core.example import Example, Prediction
from barista_bench.core.guarding import attempt
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.judging.verdicts import REASONING_FORM, ReplyForm
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun

REASONING: Final = "reasoning"
"""Name of the method that judges reasoning, and of its only criterion."""


@dataclass(frozen=True, slots=True)
class DistinctAnswer:
    """One distinct answer.

    `item` is the digest of what the judge is `shown` of the answer, `sample` the first sample with it.
    """

    item: str
    shown: JudgedSample | Rationale
    text: str
    sample: ScoredSample

    @property
    def token(self) -> str:
        """Return the id of the answer in ratings. The id changes if the answer or the question changes."""
        return self.item[:24]


class AnsweredRun(Protocol):
    """The part of a run that judges read: its task and its scored samples."""

    @property
    def task(self) -> Task: ...

    @property
    def samples(self) -> Sequence[ScoredSample]: ...


@dataclass(frozen=True, slots=True)
class RunAnswers:
    """The finished samples of a run, in the order of its examples.

    Args:
        answers: one entry per sample. Equal answers share one object. The entry is None if the answer is unreadable or
            empty. As in the release, means leave these samples out, but the coverage counts them.
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
    """Return whether judges grade the reasoning in this task."""
    return type(task).rationale is not Task.rationale


def form_id(form: ReplyForm, item: str, criterion: str) -> str:
    """Return the id of the form for one answer and criterion. Reasoning has a single criterion."""
    return item if form is REASONING_FORM else f"{item}:{criterion}"


def offline_judge(name: str, form: ReplyForm, metrics: Mapping[str, str | None], run: ScoredRun) -> ScriptedModel:
    """Return the judge `lexical` or `oracle` for the answers of a run.

    `metrics` maps each criterion to the task score, from 0 to 1, that `lexical` uses. Raises ConfigError if a criterion
    has no such score.
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
    """Convert a score from 0 to 1 to a whole score from 0 to `top`. Halves are rounded up.

    >>> whole_score(0.0, 10), whole_score(0.25, 10), whole_score(0.949, 10), whole_score(1.0, 10)
    (0, 3, 9, 10)
    """
    return min(top, max(0, math.floor(fraction * top + 0.5)))


def _distinct_answer(task: Task, sample: ScoredSample) -> DistinctAnswer | None:
    prediction, example = sample.prediction, sample.example
    if prediction is None:
        return None
    shown = attempt(task, "show_to_judge", example, lambda: _shown_to_judge(task, example, prediction), None)
    if shown is None or not _graded_text(shown).strip():
        return None
    kind = REASONING if isinstance(shown, Rationale) else "item"
    return DistinctAnswer(digest(kind, asdict(shown)), shown, _graded_text(shown), sample)


def _shown_to_judge(task: Task, example: Example, prediction: Prediction) -> JudgedSample | Rationale | None:
    return task.rationale(example, prediction) if asks_for_reasons(task) else task.show_to_judge(example, prediction)


def _graded_text(shown: JudgedSample | Rationale) -> str:
    return shown.reasoning if isinstance(shown, Rationale) else shown.answer


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
    """Return full marks if the parsed answer equals the reference, and 0 otherwise."""
    info = run.results.model.box_format
    box_format, example = BoxFormat(info.order, info.scale), answer.sample.example
    parsed = run.task.parse(run.task.reference_answer(example, box_format), example.inputs, box_format)
    reference = _shown_to_judge(run.task, example, parsed) if isinstance(parsed, Prediction) else None
    if reference is not None and _graded_text(reference) == answer.text:
        return form.top, "the reference's own answer"
    return 0, "another answer than the reference's own"
