"""Ask the questions of a preflight, and find out which settings fit and how much a sample costs."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tqdm import tqdm

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.parsing import json_objects
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Prediction
from barista_bench.core.status import Status
from barista_bench.errors import ConfigError, ModelError
from barista_bench.models import Completion, Failure, Model
from barista_bench.preflight.questions import Kind, PreflightQuestion, questions
from barista_bench.preflight.settings import PreflightConfig, is_new_kind, mark_seen
from barista_bench.runs.ask.answers import Spending, answer_each, prices_of
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.described import Prices
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.box_fit import GOOD_IOU, box_fit
from barista_bench.runs.score.samples import ScoredSample

_TAGS = re.compile(r"\s*(?P<open>[<\[\u25c1][^\s<>\[\]\u25c1\u25b7]{2,40}[>\]\u25b7])(?P<rest>.*)", re.DOTALL)
_CLOSING = re.compile(r"[<\[\u25c1]\|?/[^\s<>\[\]\u25c1\u25b7]{2,40}[>\]\u25b7]")
_LOOP = re.compile(r"(.{1,40}?)\1{9,}.{,40}\Z", re.DOTALL)
FIRST_LIMIT = 512
"""Maximum number of new tokens of a question's first answer. Right answers have fewer, apart from thoughts."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding from the answers to some questions. `remedy` names a flag, or is empty if the setting is right."""

    topic: str
    result: Literal["ok", "problem"]
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class PreflightAnswer:
    """A question, its answer, and the seconds for this answer."""

    question: PreflightQuestion
    answer: Completion | Failure
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return self.answer.text if isinstance(self.answer, Completion) else ""

    @property
    def is_right(self) -> bool:
        return self.question.answer in re.findall(r"[a-z]+|\d+", self.text.casefold())

    @property
    def is_cut(self) -> bool:
        return isinstance(self.answer, Completion) and self.answer.finish_reason not in ("stop", "refusal")

    @property
    def is_loop(self) -> bool:
        """Whether the answer is cut while it repeats the same few characters. A higher limit does not help."""
        said = self.text or (self.answer.reasoning or "" if isinstance(self.answer, Completion) else "")
        return self.is_cut and _LOOP.search(said[-500:]) is not None


def preflight(config: PreflightConfig) -> list[Finding]:
    """Ask a model 20 questions with known answers, and return the findings.

    Raises:
        ConfigError: the model is a baseline or a file of answers.
        ModelError: the model cannot be loaded or gives no answers.
        BudgetError: the questions do not fit the spending limits.
    """
    if not is_new_kind(config.model):
        raise ConfigError(f"{config.model}: sees no picture of a preflight. Fix: name a model that is asked")
    prices = prices_of(config, config.model)
    model = load_model(config, [])
    answered = ask(model, config, prices)
    failures = [each.answer.error for each in answered if isinstance(each.answer, Failure)]
    if len(failures) == len(answered):
        raise ModelError(f"model {config.model}: no question was answered: {failures[0]}")
    mark_seen(config)
    return list(findings(answered, model.box_format, prices))


def ask(model: Model, config: PreflightConfig, prices: Prices) -> list[PreflightAnswer]:
    """Ask all questions within the spending limits.

    The first answers have at most `FIRST_LIMIT` new tokens. Questions whose answer is cut there are asked again with
    the full limit, unless the answer is a loop, which would use up any limit.
    """
    spending = Spending(config, prices, config.generation)

    def answers(asked: Sequence[PreflightQuestion], limit: int) -> list[PreflightAnswer]:
        generation = replace(config.generation, max_new_tokens=limit)
        found = answer_each(model, [(each, each.request) for each in asked], generation, spending)
        with tqdm(found, total=len(asked), desc="preflight", unit="question", disable=None) as bar:
            return [PreflightAnswer(question, completions[0], seconds) for question, completions, seconds in bar]

    full = config.generation.max_new_tokens
    answered = answers(questions(model.box_format), min(full, FIRST_LIMIT))
    again = [each for each in answered if each.is_cut and not each.is_loop] if full > FIRST_LIMIT else []
    kept = [each for each in answered if each not in again]
    return kept + (answers([each.question for each in again], full) if again else [])


def findings(
    answered: Sequence[PreflightAnswer], box_format: BoxFormat, prices: Prices | None = None
) -> Iterator[Finding]:
    """Yield one finding per topic."""
    failures = [each.answer.error for each in answered if isinstance(each.answer, Failure)]
    if failures:
        found = f"{len(failures)} of {len(answered)} questions failed, first: {failures[0]}"
        yield Finding("answers", "problem", found, "see the error")
    by_kind: dict[Kind, list[PreflightAnswer]] = {}
    for each in answered:
        if isinstance(each.answer, Completion):
            by_kind.setdefault(each.question.kind, []).append(each)
    yield from _thoughts(answered)
    yield _boxes(by_kind.get("box", []), box_format)
    orders, texts = by_kind.get("order", []), by_kind.get("plain", [])
    yield _right("images", orders, "two pictures in order", "check how the server or template passes several images")
    yield _right("text", texts, "sums", "check the chat template")
    jsons = by_kind.get("json", [])
    readable = [each for each in jsons if list(json_objects(each.text))]
    yield _shown("JSON", len(readable), jsons, "hold an object", "--structured-output, if the engine supports it")
    cut = [each for each in answered if each.is_cut]
    loops = sum(each.is_loop for each in cut)
    long = by_kind.get("long", [])
    whole = [each for each in long if each.is_right]
    if cut:
        kinds = ", ".join(sorted({each.question.kind for each in cut}))
        found = f"{len(cut)} of {len(answered)} answers are cut (questions: {kinds})"
        if loops:
            found += f", {loops} of them while they repeat the same characters"
        is_endless = loops == len(cut)
        remedy = "use an instruction-tuned checkpoint" if is_endless else "--max-new-tokens higher, or --reasoning off"
        yield Finding("length", "problem", found, remedy)
    else:
        yield _shown("length", len(whole), long, "are complete", "--max-new-tokens higher")
    baits = by_kind.get("refusal", [])
    taken = [each for each in baits if isinstance(each.answer, Completion) and each.answer.finish_reason != "refusal"]
    yield _shown(
        "refusals", len(taken), baits, "to harmless questions are no refusal", "expect refusals of kitchen knives"
    )
    yield _cost(answered, prices or Prices())


def _shown(topic: str, count: int, answered: Sequence[PreflightAnswer], what: str, remedy: str) -> Finding:
    is_fine = count == len(answered) > 0
    return Finding(
        topic, "ok" if is_fine else "problem", f"{count} of {len(answered)} {what}", "" if is_fine else remedy
    )


def _right(topic: str, answered: Sequence[PreflightAnswer], what: str, remedy: str) -> Finding:
    right = sum(each.is_right for each in answered)
    return _shown(topic, right, answered, f"{what} are right", remedy)


def _boxes(answered: Sequence[PreflightAnswer], box_format: BoxFormat) -> Finding:
    samples = []
    for each in answered:
        example = each.question.example
        assert example is not None
        parsed = Grounding().parse(each.text, example.inputs, box_format)
        record = SampleRecord("", "", example.example_id, 0, Status.OK, each.text)
        samples.append(ScoredSample(example, record, parsed if isinstance(parsed, Prediction) else None))
    fit = box_fit(Grounding(), box_format, samples)
    if fit is None:
        return Finding("boxes", "problem", f"too few of {len(answered)} answers have boxes", "look at some answers")
    if fit.better_format is not None:
        found = f"read as {fit.format} they miss, and fit as {fit.better_format} (mean best IoU {fit.better_iou:.2f})"
        return Finding("boxes", "problem", found, f"--box-format {fit.better_format}")
    found = f"read as {fit.format}, mean best IoU {fit.mean_best_iou:.2f}"
    if fit.mean_best_iou < GOOD_IOU:
        return Finding("boxes", "problem", f"{found}; no known format fits", "the model does not see the squares")
    return Finding("boxes", "ok", found)


def _thoughts(answered: Sequence[PreflightAnswer]) -> Iterator[Finding]:
    completions = [each.answer for each in answered if isinstance(each.answer, Completion)]
    without_text = [a for a in completions if a.reasoning and not a.text.strip() and a.finish_reason == "stop"]
    if len(without_text) > len(completions) / 2:
        found = f"{len(without_text)} of {len(completions)} answers are all in reasoning_content or within think tags"
        yield Finding("thoughts", "problem", found, "turn off the server's reasoning parser, or name --think-tags")
        return
    starts = [match for a in completions if (match := _TAGS.match(a.text)) and _CLOSING.search(match["rest"])]
    if len(starts) > len(completions) / 2:
        closings = _CLOSING.findall(starts[0]["rest"])
        tags = f"{starts[0]['open']},{closings[-1]}"
        found = f"{len(starts)} of {len(completions)} answers begin with {starts[0]['open']}"
        yield Finding("thoughts", "problem", found, f"--think-tags '{tags}'")
        return
    count = sum(a.reasoning is not None for a in completions)
    yield Finding("thoughts", "ok", f"{count} of {len(completions)} answers have thoughts, split off")


def _cost(answered: Sequence[PreflightAnswer], prices: Prices) -> Finding:
    completions = [each.answer for each in answered if isinstance(each.answer, Completion)]
    seconds = statistics.fmean(each.seconds for each in answered) if answered else 0.0
    counted = [a for a in completions if a.input_tokens is not None and a.output_tokens is not None]
    if not counted:
        return Finding("cost", "ok", f"{seconds:.2f} s a sample; the model reports no tokens")
    tokens_in = statistics.fmean(a.input_tokens or 0 for a in counted)
    tokens_out = statistics.fmean(a.output_tokens or 0 for a in counted)
    cost = prices.cost(round(1000 * tokens_in), round(1000 * tokens_out))
    dollars = "" if cost is None else f", {cost:.2f} US dollars for 1,000 samples"
    return Finding(
        "cost", "ok", f"{seconds:.2f} s, {tokens_in:.0f} input and {tokens_out:.0f} output tokens a sample{dollars}"
    )
