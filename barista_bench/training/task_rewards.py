"""Turn every task that a model answers in text into a reward function for reinforcement learning.

    reward = task_reward("relations")
    GRPOTrainer(model, reward_funcs=[reward], train_dataset=rows, ...)

`rows` come from `barista-bench export --format prompts`. A reward is the weighted mean of its parts, each 0 to 1:

* `format` is 1 if the answer has the requested form: it is readable, no entry is left out, and JSON has no other text
  around it if the prompt asks for JSON.
* `parsed` is 1 if the task's parser reads the answer.
* `score` is the task's sample score, as `barista-bench score` computes it, also for an unreadable answer.
* `earned` replaces `score` in the mean. The two differ only if answers without a look at the video score:
  - With the F1 of choices, the fraction of right choices that are named, minus that of wrong choices, earns 0 to 1.
    Letters that are named blindly earn .5 on average, and so do all letters.
  - With the recall of relations and the F1 of steps (which later steps overwrite), an answer with more entries than the
    reference earns less in proportion.
  - In EgoCoT, `grounded` counts in place of the score.
  - In EgoCoT, temporal scene graphs, steps and masks, an answer earns what it scores above the row's `floor`.
* `grounded` (EgoCoT) checks the rationale of a right answer. It is the fraction of expected facts that its claims name,
  and 0 if the evidence contradicts a claim. It has no weight of its own by default, because it is what is earned.

No part needs a judge, and no part depends on other answers of the batch.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np

from barista_bench.benchmarks import task_class
from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.items import CotAnswer
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Json, Prediction, Scored
from barista_bench.core.guarding import guard, note_fault
from barista_bench.core.task import Task
from barista_bench.data.manifest import DEFAULT_BENCHMARK
from barista_bench.errors import ConfigError, TaskError
from barista_bench.models.answers import split_reasoning
from barista_bench.training.reward_rows import RowReference, read_reference, refuse_untrainable

log = logging.getLogger(__name__)
Parts = Mapping[str, float]
"""The parts of one reward by name, each 0 to 1."""
DEFAULT_WEIGHTS: Mapping[str, float] = {"format": 0.1, "parsed": 0.1, "score": 1.0, "grounded": 0.0}
_LISTED = {"f1_50": "segments", "recall_at_50": "relations"}
"""Maps each score that does not count wrong entries to the name of the entries in reference and answer."""
_COPIED = (*_LISTED, "J_and_F")
"""Scores that a reference of another video often has in part."""
_COPIES = 64
"""Examples whose references are tried, at most."""
_HIGHEST = 0.97
"""Fraction of these references, at least, that score no more than the floor. The best one would make most floors 1."""
_FENCE = re.compile(r"\A```(?:json)?\n(.*)\n```\Z", re.DOTALL)


def task_reward(
    name: str,
    *,
    benchmark: str = DEFAULT_BENCHMARK,
    weights: Mapping[str, float] = DEFAULT_WEIGHTS,
    options: Mapping[str, object] | None = None,
) -> TaskReward:
    """Return the reward function of one task.

    Args:
        name: the task, such as `relations`.
        benchmark: benchmark of the task.
        weights: weights of the parts. A part without a weight does not count.
        options: options of the task, the same as for `score`, such as `{"matcher": "synonyms"}`.

    Raises:
        ConfigError: there is no such task, option or part, the weights give no mean, or no text can answer the task.
    """
    return TaskReward(task_class(benchmark, name), weights, options or {})


class TaskReward:
    """Computes the rewards of a batch of answers to one task. `__name__` names the task in the trainer's log."""

    def __init__(self, kind: type[Task], weights: Mapping[str, float], options: Mapping[str, object]) -> None:
        self._kind, self._options, self._tasks = kind, dict(options), dict[str, Task]()
        task = self._task_of(str(options.get("protocol", "release")))
        refuse_untrainable(task)
        names = [name for name in DEFAULT_WEIGHTS if name != "grounded" or isinstance(task, Cot)]
        if unknown := set(weights) - {*names, *(name for name in DEFAULT_WEIGHTS if not weights.get(name))}:
            raise ConfigError(f"weights: no part {min(unknown)!r}. Fix: use {', '.join(names)}")
        self.weights = {name: float(weights.get(name, 0.0)) for name in names}
        if min(self.weights.values()) < 0 or not 0 < sum(self.weights.values()) < float("inf"):
            raise ConfigError(f"weights {dict(weights)} give no mean. Fix: give weights above 0")
        self.__name__ = kind.name if kind.benchmark == DEFAULT_BENCHMARK else f"{kind.benchmark}_{kind.name}"

    def __call__(
        self,
        prompts: Sequence[Any] | None = None,
        completions: Sequence[Any] = (),
        *,
        reference: Sequence[str],
        log_metric: Callable[[str, float], None] | None = None,
        **_: object,
    ) -> list[float | None]:
        """Return a reward from 0 to 1 for each answer: None for rows of other tasks, and if the task itself fails.

        Args:
            prompts: not used.
            completions: N answers. Each is a text, or a conversation whose last turn is the answer.
            reference: references of the N rows.
            log_metric: receives the mean of each part.

        Raises:
            ConfigError, DataError: a reference is unreadable, or was written by another version of the task.
        """
        parts = self.parts(list(map(answer_text, completions)), list(map(read_reference, reference)))
        known = [each for each in parts if each is not None]
        if log_metric is not None and known:
            for name in (*self.weights, "earned"):
                log_metric(f"{self.__name__}/{name}", float(np.mean([each[name] for each in known])))
        return [None if each is None else self.total(each) for each in parts]

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the distinct errors that the task itself raised."""
        return tuple(fault for task in self._tasks.values() for fault in task.faults)

    def total(self, parts: Parts) -> float:
        """Return the weighted mean of the parts of one answer, with `earned` in place of `score`."""
        counted = {**parts, "score": parts["earned"]}
        return sum(weight * counted[name] for name, weight in self.weights.items()) / sum(self.weights.values())

    def parts(self, answers: Sequence[str], references: Sequence[RowReference]) -> list[Parts | None]:
        """Return the parts of each of N answers without reasoning. They are None if the reward is None."""
        parts: list[Parts | None] = [None] * len(answers)
        for protocol in dict.fromkeys(reference.protocol for reference in references):
            task = self._task_of(protocol)
            indices = [
                index
                for index, reference in enumerate(references)
                if reference.protocol == protocol and self._is_own(reference)
            ]
            examples = [references[index].example for index in indices]
            task.refuse_others(examples)
            read = [
                _read(task, answers[index], example, BoxFormat.parse(references[index].box_format))
                for index, example in zip(indices, examples, strict=True)
            ]
            for index, sample in zip(indices, _scores(task, read), strict=True):
                parts[index] = sample and _parts_of(task, *sample, answers[index], references[index].floor)
        return parts

    def _is_own(self, reference: RowReference) -> bool:
        if (reference.benchmark, reference.task) != (self._kind.benchmark, self._kind.name):
            return False
        if reference.version != self._kind.version:
            raise ConfigError(
                f"{reference.example_id}: was exported as version {reference.version} of the task, which is now "
                f"{self._kind.version}. Fix: export the rows again"
            )
        return True

    def _task_of(self, protocol: str) -> Task:
        if protocol not in self._tasks:
            own = {"protocol": protocol} if "protocol" in self._kind.options else {}
            self._tasks[protocol] = self._kind(options={**own, **self._options})
        return self._tasks[protocol]


def floors_of(task: Task, examples: Sequence[Example]) -> list[float]:
    """Return what each of N examples pays without a look at the video. Answers earn what they score above it.

    It is what the best of the references of other videos score (`_HIGHEST`). In EgoCoT, it is the fraction of expected
    facts that the prompt itself names. It is 0 for other tasks with a single right answer.
    """
    if isinstance(task, Cot):
        echoes = [CotAnswer("", task.prompt(example, BoxFormat()).as_text()) for example in examples]
        pairs = zip(examples, echoes, strict=True)
        return [(task.has_answer(e) and task.check(e, Prediction(echo.write())).recall) or 0.0 for e, echo in pairs]
    if task.sample_score not in _COPIED:
        return [0.0] * len(examples)
    others = [example for example in examples[:: -(-len(examples) // _COPIES)] if task.has_answer(example)]
    copies = [(other.video_id, task.reference_answer(other, BoxFormat())) for other in others]
    floors = []
    for example in examples:
        answers = (text for video_id, text in copies if video_id != example.video_id)
        scores = _scores(task, [_read(task, answer, example, BoxFormat()) for answer in answers])
        counted = [_counted(task, *each) for each in scores if each]
        floors.append(float(np.quantile(counted, _HIGHEST, method="higher")) if counted else 0.0)
    return floors


def _read(task: Task, answer: str, example: Example, box_format: BoxFormat) -> Scored | None:
    try:
        with guard(task, "parse", example):
            reading = task.parse(answer, example.inputs, box_format)
    except TaskError as error:
        note_fault(task, str(error))
        return None
    return Scored(example, reading if isinstance(reading, Prediction) else None)


def answer_text(completion: object) -> str:
    """Return the answer in a completion: the text, or the text of the last turn, without reasoning.

    >>> answer_text([{"role": "assistant", "content": "<think>Left?</think>right"}])
    'right'
    """
    content: object = completion
    if isinstance(completion, list):
        content = completion[-1].get("content") if completion and isinstance(completion[-1], dict) else ""
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return split_reasoning(content)[1] if isinstance(content, str) else ""


_ScoredSample = tuple[Scored, float]


def _scores(task: Task, samples: Sequence[Scored | None]) -> list[_ScoredSample | None]:
    """Return each sample with its sample score, or None if the task fails on it."""
    known = [sample for sample in samples if sample is not None]
    if not known:
        return [None] * len(samples)
    try:
        with guard(task, "statistics", f"{len(known)} answers"):
            scores = iter(task.statistics(known).scores()[task.sample_score].tolist())
    except TaskError as error:
        if len(samples) == 1:
            note_fault(task, str(error))
            return [None]
        return [_scores(task, [sample])[0] for sample in samples]
    return [None if sample is None else (sample, next(scores)) for sample in samples]


def _parts_of(task: Task, sample: Scored, score: float, answer: str, floor: float) -> Parts:
    prediction = sample.prediction
    return {
        "format": float(prediction is not None and not prediction.dropped and _is_bare(task, sample.example, answer)),
        "parsed": float(prediction is not None),
        "score": score,
        "earned": _earned(task, sample, score, floor),
        **({"grounded": _grounded(task, sample)} if isinstance(task, Cot) else {}),
    }


def _earned(task: Task, sample: Scored, score: float, floor: float) -> float:
    right = set(task.correct_choices(sample.example))
    wrong = set(task.choices(sample.example)) - right
    if task.sample_score == "f1" and right and wrong and sample.prediction is not None:
        answered = set(task.answered_choices(sample.prediction))
        return (1 + len(answered & right) / len(right) - len(answered & wrong) / len(wrong)) / 2
    return max(0.0, (_counted(task, sample, score) - floor) / (1 - floor)) if floor < 1 else 0.0


def _counted(task: Task, sample: Scored, score: float) -> float:
    """Return the score without what lists and lucky letters add to it."""
    if isinstance(task, Cot):
        return _grounded(task, sample)
    if sample.prediction is None or not (entries := _LISTED.get(task.sample_score)):
        return score
    wanted, answered = (
        len(cast("list[Json]", fields[entries])) for fields in (sample.example.target, sample.prediction.value)
    )
    return score * min(1.0, wanted / max(1, answered))


def _is_bare(task: Task, example: Example, answer: str) -> bool:
    """Return whether an answer is JSON without other text, if the prompt asks for JSON. A code fence is accepted."""
    if task.answer_schema(example) is None:
        return True
    fenced = _FENCE.match(answer.strip())
    try:
        msgspec.json.decode(fenced[1] if fenced else answer)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


def _grounded(task: Cot, sample: Scored) -> float:
    """Return the fraction of expected facts that the rationale of a right answer names, and 0 for a wrong answer."""
    prediction = sample.prediction
    if prediction is None or task.answered_choices(prediction) != task.correct_choices(sample.example):
        return 0.0
    check = task.check(sample.example, prediction)
    return 0.0 if check.is_contradicted else check.recall or 0.0
