"""What there is to judge in a run whose task asks for reasons (`Task.rationale`), and judges of it without a model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Example, Prediction, Rationale, Status, Task
from barista_bench.errors import ConfigError
from barista_bench.judging.geval import judge_prompts
from barista_bench.judging.rubric_judge import rationale_item
from barista_bench.judging.verdicts import REASONING_FORM, as_text
from barista_bench.models import GenerationConfig, Model
from barista_bench.models.scripted import ScriptedModel
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun

METHOD: Final = "reasoning"
LEXICAL_FIGURE = "lexical_f1"
"""The task's own figure, 0 to 1, that the judge `lexical` turns into scores."""


@dataclass(frozen=True, slots=True)
class ReasonedSample:
    """A finished sample. `rationale` is None where there is no readable answer: it scores 0, as a missing one does."""

    name: str
    sample: ScoredSample
    rationale: Rationale | None

    @property
    def is_empty(self) -> bool:
        return self.rationale is None or self.rationale.is_empty


def asks_for_reasons(task: Task) -> bool:
    """Whether judges of reasoning score this task."""
    return type(task).rationale is not Task.rationale


def reasoned_samples(run: ScoredRun) -> list[ReasonedSample]:
    """All finished samples, in the order of the run's examples."""
    return [
        ReasonedSample(
            f"{sample.example.example_id}#{sample.record.run}",
            sample,
            run.task.rationale(sample.example, sample.prediction) if sample.prediction else None,
        )
        for sample in run.samples
        if sample.record.status is not Status.INFRA_ERROR
    ]


def rationales_of(samples: Sequence[ReasonedSample]) -> dict[str, Rationale]:
    """By name, those that there are."""
    return {one.name: one.rationale for one in samples if one.rationale is not None}


def reasoning_identity(model: Model) -> dict[str, object]:
    """What tells two judgements of one run's reasons apart."""
    prompt = judge_prompts("reasoning").sha256
    return {"method": METHOD, "model": asdict(model.identity), "rubric": prompt, "prompt": prompt, "steps": "given"}


def reasoning_generation(config: GenerationConfig) -> GenerationConfig:
    """Deterministic, as the protocol has it: temperature 0, whatever is set; no probabilities are read."""
    return dataclasses.replace(config, temperature=0.0, top_p=1.0, top_k=None, top_logprobs=0)


def offline_reasoning_judge(name: str, run: ScoredRun, samples: Sequence[ReasonedSample]) -> ScriptedModel:
    """`lexical`: the word overlap with the reference reasoning, a floor. `oracle`: 5 for the reference's own, else 0.

    Raises:
        ConfigError: `lexical` is asked about a task without such a figure.
    """
    write = _lexical if name == "lexical" else _oracle
    replies: Mapping[str, str] = {
        rationale_item(one.rationale): write(run, one)
        for one in samples
        if one.rationale is not None and not one.rationale.is_empty
    }
    return ScriptedModel(name, lambda asked, seed: replies[asked])


def _lexical(run: ScoredRun, one: ReasonedSample) -> str:
    if LEXICAL_FIGURE not in one.sample.scores:
        raise ConfigError(f"{run.task.name} has no figure {LEXICAL_FIGURE} for the judge lexical. Remedy: use another")
    share = one.sample.scores[LEXICAL_FIGURE]
    score = min(REASONING_FORM.top, math.floor(share * REASONING_FORM.top + 0.5))
    return as_text({"reasoning_score": score, "analysis": f"{share:.3f} of the words; counted, not read"})


def _oracle(run: ScoredRun, one: ReasonedSample) -> str:
    info = run.results.model.box_format
    own = _own(run.task, BoxFormat(info.order, info.scale), one.sample.example)
    if own is not None and one.rationale is not None and one.rationale.reasoning == own.reasoning:
        return as_text({"reasoning_score": REASONING_FORM.top, "analysis": "the reference's own reasoning"})
    return as_text({"reasoning_score": 0, "analysis": "another reasoning than the reference's own"})


def _own(task: Task, boxes: BoxFormat, example: Example) -> Rationale | None:
    """The reference as the task's parser reads it out of a model's answer."""
    parsed = task.parse(task.reference_answer(example, boxes), example.inputs, boxes)
    return task.rationale(example, parsed) if isinstance(parsed, Prediction) else None
