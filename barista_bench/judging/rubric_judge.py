"""The judge of a line of reasoning, as EgoCoT-Bench's R has it: a whole score from 0 to 5.

Rules (arXiv 2605.19559, section 3.2.4, and its page; upstream.md 5): temperature 0, strict JSON, and a rationale that
is empty or missing scores 0 without being asked about. The wording is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.core.task import Rationale, Status
from barista_bench.judging.asking import Question, ask
from barista_bench.judging.fencing import fenced
from barista_bench.judging.geval import judge_prompts
from barista_bench.judging.verdicts import REASONING_FORM, Unusable, Verdict, read_verdict, reply_status
from barista_bench.models import Completion, Failure, GenerationConfig, Model
from barista_bench.runs.log.keys import digest
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord

GENERATION = GenerationConfig(temperature=0.0, max_new_tokens=2048)
EMPTY = Verdict(0, "no reasoning was given")


@dataclass(frozen=True, slots=True)
class ReasoningVerdict:
    """`verdict` is None where there is none: `status` says why, and it never counts as 0."""

    status: Status
    verdict: Verdict | None
    error: str | None = None


def reasoning_prompt(rationale: Rationale) -> Prompt:
    fence, data = fenced(asdict(rationale))
    system, user = judge_prompts("reasoning").fill(fence=fence, data=data)
    return Prompt(system, (TextPart(user),))


def judge_reasoning(
    rationales: Mapping[str, Rationale],
    model: Model,
    log: SampleLog,
    *,
    config: GenerationConfig = GENERATION,
    progress: bool = False,
) -> dict[str, ReasoningVerdict]:
    """A verdict on each rationale, by its id. What the log answers is not asked again; equal rationales are asked once.

    Raises:
        ModelError: the judge answers what it was not asked.
    """
    questions = reasoning_questions(rationales, asdict(model.identity), config)
    done = ask(model, config, questions, log, reasoning_status, progress=progress)
    return reasoning_verdicts(rationales, questions, done.records)


def reasoning_questions(
    rationales: Mapping[str, Rationale], judge: Mapping[str, object], config: GenerationConfig
) -> list[Question]:
    """What is asked about rationales that are not empty, each distinct one once; `judge` is the judge's identity."""
    identity = {"model": dict(judge), "prompt": judge_prompts("reasoning").sha256}
    distinct = {rationale_item(one): one for one in rationales.values() if not one.is_empty}
    return [
        Question.of(item, reasoning_prompt(one), identity, config, draws=1, schema=REASONING_FORM.schema)
        for item, one in distinct.items()
    ]


def rationale_item(rationale: Rationale) -> str:
    """Digest of all that the judge is shown."""
    return digest("reasoning", asdict(rationale))


def reasoning_status(reply: Completion | Failure) -> tuple[Status, str | None]:
    return reply_status(reply, REASONING_FORM)


def reasoning_verdicts(
    rationales: Mapping[str, Rationale], questions: Sequence[Question], records: Mapping[str, SampleRecord]
) -> dict[str, ReasoningVerdict]:
    """The verdicts that logged replies hold; an empty rationale is 0 by rule."""
    by_item = {question.item: _verdict(records.get(question.keys[0])) for question in questions}
    empty = ReasoningVerdict(Status.OK, EMPTY)
    return {name: empty if one.is_empty else by_item[rationale_item(one)] for name, one in rationales.items()}


def _verdict(record: SampleRecord | None) -> ReasoningVerdict:
    if record is None:
        return ReasoningVerdict(Status.INFRA_ERROR, None, "not asked")
    if record.status is not Status.OK or record.text is None:
        return ReasoningVerdict(record.status, None, record.error)
    found = read_verdict(record.text, REASONING_FORM)
    if isinstance(found, Unusable):
        return ReasoningVerdict(Status.PARSE_ERROR, None, found.why)
    return ReasoningVerdict(Status.OK, found)


def scores(verdicts: Sequence[ReasoningVerdict]) -> list[int | None]:
    """As `metrics.judge_score.egocot_reasoning` takes them."""
    return [one.verdict.score if one.verdict else None for one in verdicts]
