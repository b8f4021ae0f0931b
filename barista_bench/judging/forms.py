"""Build the forms for a judge, one per answer and criterion.

The form of G-Eval (arXiv 2303.16634) follows the BARISTA paper (arXiv 2605.12074, sections A.1, A.2.3 and A.3.3). It
has criteria, evaluation steps, and a score from 0 to 10 in bands. A tenth of the score is reported. The form for
reasoning (EgoCoT-Bench, arXiv 2605.19559, section 3.2.4; docs/upstream/egocot.md) asks for a whole score from 0 to 5.
The wording is ours. Users may replace the texts of the reasoning form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from barista_bench.core.display import JudgedSample, Rationale
from barista_bench.core.prompt import Prompt, PromptTexts, TextPart, fence_material, object_schema
from barista_bench.core.prompt_files import load_prompts, packaged_prompts, parse_prompts, read_prompt_set
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.judging.answers import REASONING
from barista_bench.judging.rubric import Criterion, Rubric
from barista_bench.runs.ask.replies import Unusable, read_object

MOST_STEPS = 12
STEPS_SCHEMA = object_schema({"steps": {"type": "array", "items": {"type": "string"}}})


def judge_prompts(name: str) -> PromptTexts:
    """Return the packaged wording for judges, `judging/prompts/<name>.yaml`."""
    return packaged_prompts("barista_bench.judging", name)


def load_reasoning_form(task: Task, path: str | Path | None) -> PromptTexts:
    """Return the texts of the reasoning form: the packaged texts, or `rubrics.<task>` of a prompt file.

    Raises ConfigError if the file cannot be read, or lacks the texts or a placeholder in the texts.
    """
    if path is None:
        return judge_prompts(REASONING)
    prompt_set = read_prompt_set(path)
    if prompt_set is None:
        texts = load_prompts(path, task.name)
    else:
        texts = parse_prompts(json.dumps(prompt_set.rubric(task.name)).encode(), f"{path}: rubrics.{task.name}")
    for place in ("{fence}", "{data}"):
        if place not in texts.user:
            raise ConfigError(f"{path}: user: has no place {place}. Fix: add it, see docs/prompt_files.md")
    return texts


def form_prompts(
    rubric: Rubric | None,
    steps: Mapping[str, Sequence[str]],
    shown: JudgedSample | Rationale,
    reasoning: PromptTexts | None = None,
) -> dict[str, Prompt]:
    """Map each criterion to the form for one answer.

    Without a rubric the reasoning is graded, with the packaged texts or the texts in `reasoning`. Raises KeyError if a
    criterion has no steps, and TypeError if answers are graded without a rubric.
    """
    if rubric is None and isinstance(shown, Rationale):
        return {REASONING: reasoning_prompt(shown, reasoning)}
    if rubric is None or isinstance(shown, Rationale):
        raise TypeError("reasoning has no rubric, and answers have one")
    return {each.name: form_prompt(rubric, each, steps[each.name], shown) for each in rubric.criteria}


def form_prompt(rubric: Rubric, criterion: Criterion, steps: Sequence[str], judged: JudgedSample) -> Prompt:
    """Return G-Eval's form for one answer. Texts of the model and the dataset stand only between the markers."""
    question = rubric.question or judged.question
    fence, data = fence_material({"question": question, "reference": judged.reference, "answer": judged.answer})
    return _prompt(
        "geval",
        introduction=rubric.introduction,
        name=criterion.name,
        criterion=criterion.text,
        bands=criterion.scale,
        steps="\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)),
        vocabulary=rubric.vocabulary_text,
        fence=fence,
        data=data,
    )


def reasoning_prompt(rationale: Rationale, texts: PromptTexts | None = None) -> Prompt:
    """Return the form for one line of reasoning, with the packaged texts or with `texts`."""
    fence, data = fence_material(asdict(rationale))
    system, user = (texts or judge_prompts(REASONING)).fill(fence=fence, data=data)
    return Prompt(system, (TextPart(user),))


def steps_prompt(rubric: Rubric, criterion: Criterion) -> Prompt:
    """Return the prompt that asks the judge for the steps of a criterion."""
    return _prompt(
        "steps", introduction=rubric.introduction, name=criterion.name, criterion=criterion.text, bands=criterion.scale
    )


def read_steps(text: str) -> tuple[str, ...] | Unusable:
    """Return the steps in a judge's reply.

    >>> read_steps('{"steps": ["Compare.", "Score."]}')
    ('Compare.', 'Score.')
    """
    reply = read_object(text)
    if isinstance(reply, Unusable):
        return reply
    steps = reply.get("steps")
    if set(reply) != {"steps"} or not isinstance(steps, list) or not 1 <= len(steps) <= MOST_STEPS:
        return Unusable(f"no list of 1 to {MOST_STEPS} steps")
    texts = tuple(" ".join(step.split()) for step in steps if isinstance(step, str))
    if len(texts) < len(steps) or not all(texts):
        return Unusable("a step is not text")
    return texts


def _prompt(wording: str, **values: str) -> Prompt:
    system, user = judge_prompts(wording).fill(**values)
    return Prompt(system, (TextPart(user),))
