"""Asks a model what its log does not answer yet. Text alone; the rules of the sample log hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Self

from tqdm import tqdm

from barista_bench.core.prompt import Prompt
from barista_bench.core.task import Status, content_seed
from barista_bench.errors import ModelError
from barista_bench.models import Completion, Failure, GenerationConfig, Model, Request, TokenLogprob
from barista_bench.runs.ask.completions import answers_of, checked_completion
from barista_bench.runs.log.keys import digest
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, latest_records, logged_logprobs

Read = Callable[[Completion | Failure], tuple[Status, str | None]]
"""What became of a reply, and why where it is not ok."""
Kept = Callable[[Completion], Sequence[TokenLogprob] | None]
"""The tokens of a reply whose log-probabilities are logged."""


@dataclass(frozen=True, slots=True)
class Question:
    """One prompt, wanted as often as it has keys.

    Args:
        item: identity of what is asked about; `example_id` in the log.
        fingerprint: digest of item and prompt.
        keys: draw -> key in the log.
    """

    item: str
    prompt: Prompt
    fingerprint: str
    keys: Mapping[int, str]
    schema: Mapping[str, object] | None = None

    @classmethod
    def of(
        cls,
        item: str,
        prompt: Prompt,
        identity: Mapping[str, object],
        config: GenerationConfig,
        *,
        draws: int = 1,
        first: int = 0,
        schema: Mapping[str, object] | None = None,
    ) -> Self:
        """A question for `draws` draws from number `first` on; `identity` is all that makes its prompt."""
        keys = {draw: draw_key(item, identity, asdict(config), draw) for draw in range(first, first + draws)}
        return cls(item, prompt, digest(item, prompt.as_text()), keys, schema)

    def seeds(self, draws: Iterable[int]) -> tuple[int, ...]:
        """Seeds made from content, so that order and batches do not change what is drawn."""
        return tuple(content_seed("judge", self.item, draw) for draw in draws)


def draw_key(item: str, identity: Mapping[str, object], config: Mapping[str, object], draw: int) -> str:
    """Identity of one reply; neither batch size nor device is part of it."""
    return digest("judge", item, dict(identity), dict(config), draw)


@dataclass(slots=True)
class Asked:
    """What one start did, and the records that count, by key."""

    asked: int = 0
    already_done: int = 0
    failed: int = 0
    first_failure: str = ""
    records: dict[str, SampleRecord] = field(default_factory=dict)


def ask(
    model: Model,
    config: GenerationConfig,
    questions: Sequence[Question],
    log: SampleLog,
    read: Read,
    *,
    kept: Kept = lambda _: None,
    progress: bool = False,
) -> Asked:
    """Ask for everything that the log does not hold; each reply is appended as soon as it is there.

    Args:
        log: open for writing.
        read: gives the status of a reply.
        kept: gives the tokens whose log-probabilities are logged; none by default.

    Raises:
        ModelError: the model answers what it was not asked.
    """
    done = Asked(records=latest_records(log.path))
    waiting: dict[str, tuple[Question, list[int]]] = {}
    for question in questions:
        wanted = [draw for draw, key in question.keys.items() if not _finished(done.records.get(key))]
        done.already_done += len(question.keys) - len(wanted)
        if wanted:
            waiting[question.item] = (question, wanted)
    total = sum(len(wanted) for _, wanted in waiting.values())
    with tqdm(total=total, desc="judging", unit="reply", disable=not progress) as bar:
        # A copy: whatever is answered leaves `waiting` while the model still takes requests.
        for answered in answers_of(model, _requests(list(waiting.values())), config):
            question, wanted = _taken(waiting, answered.request, model)
            replies = list(answered.completions)
            for slot, draw in enumerate(wanted):
                reply = checked_completion(replies[slot] if slot < len(replies) else None, question.item)
                _keep(done, log, _record(question, draw, reply, read, kept, answered.seconds / len(wanted)))
            bar.update(len(wanted))
    for question, wanted in waiting.values():
        for draw in wanted:
            _keep(done, log, _record(question, draw, Failure("the model returned no answer"), read, kept, 0.0))
    return done


def _finished(record: SampleRecord | None) -> bool:
    return record is not None and record.finished


def _requests(waiting: Sequence[tuple[Question, list[int]]]) -> Iterator[Request]:
    for question, wanted in waiting:
        yield Request(question.item, question.prompt, (), seeds=question.seeds(wanted), schema=question.schema)


def _taken(
    waiting: dict[str, tuple[Question, list[int]]], request: Request, model: Model
) -> tuple[Question, list[int]]:
    found = waiting.pop(request.request_id, None)
    if found is None:
        raise ModelError(
            f"model {model.identity.name}: answered {request.request_id!r}, which was not asked or was answered "
            "before. Remedy: correct the model"
        )
    return found


def _keep(done: Asked, log: SampleLog, record: SampleRecord) -> None:
    log.append(record)
    done.records[record.key] = record
    if record.finished:
        done.asked += 1
    else:
        done.failed += 1
        done.first_failure = done.first_failure or str(record.error)


def _record(
    question: Question, draw: int, reply: Completion | Failure, read: Read, kept: Kept, seconds: float
) -> SampleRecord:
    status, error = read(reply)
    answered = reply if isinstance(reply, Completion) else None
    return SampleRecord(
        key=question.keys[draw],
        fingerprint=question.fingerprint,
        example_id=question.item,
        run=draw,
        status=status,
        text=answered.text if answered else None,
        reasoning=answered.reasoning if answered else None,
        finish_reason=answered.finish_reason if answered else None,
        error=error,
        input_tokens=answered.input_tokens if answered else None,
        output_tokens=answered.output_tokens if answered else None,
        seconds=seconds,
        prompt=digest(question.prompt.as_text()),
        batch_size=answered.batch_size if answered else None,
        logprobs=logged_logprobs(kept(answered)) if answered else None,
    )
