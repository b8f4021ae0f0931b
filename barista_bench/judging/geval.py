"""G-Eval: criteria, evaluation steps and a form that the judge fills in, one criterion at a time.

Source: G-Eval (arXiv 2303.16634), as the BARISTA paper uses it (arXiv 2605.12074, sections A.1, A.2.3 and A.3.3): a
score from 0 to 10 by bands, a tenth of which is reported.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.core.prompt_sets import PromptTexts, packaged_prompts
from barista_bench.core.task import Judged
from barista_bench.judging.fencing import fenced
from barista_bench.judging.rubric import Criterion, Rubric
from barista_bench.judging.verdicts import Unusable, read_object

PACKAGE = "barista_bench.judging"
MOST_STEPS = 12
STEPS_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"steps": {"type": "array", "items": {"type": "string"}}},
    "required": ["steps"],
    "additionalProperties": False,
}


def judge_prompts(name: str) -> PromptTexts:
    """Our wording for judges: `geval`, `steps`, `reasoning` or `questions`."""
    return packaged_prompts(PACKAGE, name)


def form_prompt(rubric: Rubric, criterion: Criterion, steps: Sequence[str], judged: Judged) -> Prompt:
    """The form for one answer. What others wrote stands between the markers alone."""
    question = rubric.question or judged.question
    fence, data = fenced({"question": question, "reference": judged.reference, "answer": judged.answer})
    system, user = judge_prompts("geval").fill(
        introduction=rubric.introduction,
        name=criterion.name,
        criterion=criterion.text,
        bands=criterion.scale,
        steps="\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)),
        vocabulary=_vocabulary(rubric),
        fence=fence,
        data=data,
    )
    return Prompt(system, (TextPart(user),))


def steps_prompt(rubric: Rubric, criterion: Criterion) -> Prompt:
    """Asks the judge itself for the steps of a criterion."""
    system, user = judge_prompts("steps").fill(
        introduction=rubric.introduction, name=criterion.name, criterion=criterion.text, bands=criterion.scale
    )
    return Prompt(system, (TextPart(user),))


def read_steps(text: str) -> tuple[str, ...] | Unusable:
    """The steps in a judge's reply.

    >>> read_steps('{"steps": ["Compare.", "Score."]}')
    ('Compare.', 'Score.')
    """
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    steps = found.get("steps")
    if set(found) != {"steps"} or not isinstance(steps, list) or not 1 <= len(steps) <= MOST_STEPS:
        return Unusable(f"no list of 1 to {MOST_STEPS} steps")
    texts = tuple(" ".join(step.split()) for step in steps if isinstance(step, str))
    if len(texts) < len(steps) or not all(texts):
        return Unusable("a step is no text")
    return texts


def _vocabulary(rubric: Rubric) -> str:
    return _listed(tuple(rubric.words.items()))


@functools.cache
def _listed(words: tuple[tuple[str, str], ...]) -> str:
    if not words:
        return ""
    lines = [f"- {word}: {text}" for word, text in words]
    heading = "Categories of this domain. Synonyms that people really use are fine; a vaguer name is worse."
    return "\n".join(["", heading, *lines, ""])
