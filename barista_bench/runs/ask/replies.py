"""Request, log and read replies to text prompts, for judges and writers. The rules of the sample log apply.

A reply is one JSON object without other text. Malformed replies are not repaired, and no object is searched for within
other text. Otherwise a quoted answer could plant text that a lenient reader would accept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from PIL import Image
from tqdm import tqdm

from barista_bench.core.example import content_seed
from barista_bench.core.prompt import Prompt
from barista_bench.core.status import Status
from barista_bench.models import Completion, Failure, GenerationConfig, Model, Request, TokenLogprob
from barista_bench.runs.ask.answers import Spending, answer_each, answer_fields, answer_status
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, counting_records, logged_logprobs
from barista_bench.runs.log.sessions import AskCounts

MAX_REPLY = 100_000
"""Maximum characters of a reply that are read. An honest reply has a few hundred."""

_FENCE = re.compile(r"```(?:json)?[^\S\n]*\n(.*)\n[^\S\n]*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Says why a reply does not have the requested form."""

    why: str


ReadReply = Callable[[str], object]
"""Reads a reply, or returns `Unusable` if the reply does not have the requested form."""
TokensToLog = Callable[[Completion], Sequence[TokenLogprob] | None]
"""Returns the tokens of a reply whose log-probabilities are logged."""


@dataclass(frozen=True, slots=True)
class RepeatedPrompt:
    """A prompt that is asked once per key.

    Args:
        item: id of the subject, which is `example_id` in the log.
        keys: maps each draw to its key in the log.
        pictures: returns the images that the prompt shows. They are read when the request is made.
    """

    item: str
    prompt: Prompt
    keys: Mapping[int, str]
    schema: Mapping[str, object] | None = None
    pictures: Callable[[], tuple[Image.Image, ...]] = tuple

    @property
    def fingerprint(self) -> str:
        return digest(self.item, self.prompt.as_text())

    def request(self, repetitions: Iterable[int]) -> Request:
        """Return the request for these draws.

        Seeds depend only on content, so order and batch size do not change a draw.
        """
        seeds = tuple(content_seed("judge", self.item, repetition) for repetition in repetitions)
        return Request(self.item, self.prompt, self.pictures(), seeds=seeds, schema=self.schema)


def keys_of_repetitions(
    item: str, identity: Mapping[str, object], generation: Mapping[str, object], repetitions: Iterable[int]
) -> dict[int, str]:
    """Map each draw to the key of its reply in the log. Batch size and device are not part of the key."""
    return {
        repetition: digest("judge", item, dict(identity), dict(generation), repetition) for repetition in repetitions
    }


Content = TypeVar("Content")


@dataclass(slots=True, kw_only=True)
class PendingReply(Generic[Content]):
    """A text that a model is asked to write. It is requested again while its replies are refused.

    Args:
        attempt: how often the text was requested.
        complaint: why the last reply cannot be used. Empty if it can be used.
        content: the model's text, once a reply can be used.
    """

    attempt: int = 0
    complaint: str = ""
    content: Content | None = None

    @property
    def item(self) -> str:
        """Return the id of the text, in requests and in the log."""
        raise NotImplementedError

    def pictures(self) -> tuple[Image.Image, ...]:
        """Return the images that the prompt shows."""
        return ()


PendingReplyT = TypeVar("PendingReplyT", bound=PendingReply[Any])


def ask(
    model: Model,
    config: GenerationConfig,
    questions: Sequence[RepeatedPrompt],
    log: SampleLog,
    read_reply: ReadReply,
    counts: AskCounts,
    *,
    to_log: TokensToLog = lambda _: None,
    spending: Spending | None = None,
    progress: bool = False,
) -> dict[str, SampleRecord]:
    """Ask for all replies that the log lacks, and append each reply as soon as it arrives.

    Args:
        counts: this start's counts are added here.
        spending: the spending so far and its limits.

    Returns:
        The records of the log that count, by key.

    Raises:
        ModelError: the model answers a request that was not sent.
        BudgetError: the remaining requests do not fit the spending limits.
    """
    records = counting_records(log.path)
    open_questions: list[tuple[RepeatedPrompt, list[int]]] = []
    for question in questions:
        repetitions = [
            repetition
            for repetition, key in question.keys.items()
            if key not in records or not records[key].is_finished
        ]
        counts.already_done += len(question.keys) - len(repetitions)
        if repetitions:
            open_questions.append((question, repetitions))
    requests = (((question, repetitions), question.request(repetitions)) for question, repetitions in open_questions)
    total = sum(len(repetitions) for _, repetitions in open_questions)
    with tqdm(total=total, desc="judging", unit="reply", disable=not progress) as bar:
        for (question, repetitions), replies, seconds in answer_each(model, requests, config, spending):
            for repetition, reply in zip(repetitions, replies, strict=True):
                record = reply_record(question, repetition, reply, read_reply, to_log, seconds)
                log.append(record)
                records[record.key] = record
                counts.count(record)
            if spending:
                bar.set_postfix_str(spending.outlook(total - bar.n - len(repetitions)), refresh=False)
            bar.update(len(repetitions))
    return records


def ask_in_rounds(
    model: Model,
    config: GenerationConfig,
    drafts: Sequence[PendingReplyT],
    log: SampleLog,
    counts: AskCounts,
    *,
    tries: int,
    identity: Mapping[str, object],
    schema: Mapping[str, object],
    prompt: Callable[[PendingReplyT], Prompt],
    read_reply: Callable[[str], Content | Unusable],
    wrong_with: Callable[[PendingReplyT, Content], str],
    progress: bool = False,
) -> None:
    """Ask for each draft until its reply can be used, at most `tries` times. Each try has another seed.

    A failed request does not count as a try. It is repeated at the next start.

    Args:
        drafts: the texts to ask for. Each draft receives its content or complaint.
        identity: additional parts of each reply's key in the log.
        prompt: makes the prompt of a draft, including its complaint if there is one.
        wrong_with: returns why a readable reply cannot be used, or an empty string if it can.
    """
    for attempt in range(tries):
        open_drafts = [draft for draft in drafts if draft.content is None and draft.attempt == attempt]
        keys = [keys_of_repetitions(draft.item, identity, asdict(config), [attempt]) for draft in open_drafts]
        pairs = zip(open_drafts, keys, strict=True)
        prompts = [RepeatedPrompt(draft.item, prompt(draft), key_of, schema, draft.pictures) for draft, key_of in pairs]
        records = ask(model, config, prompts, log, read_reply, counts, progress=progress) if open_drafts else {}
        for draft, key_of in zip(open_drafts, keys, strict=True):
            record = records[key_of[attempt]]
            if not record.is_finished:
                continue
            draft.attempt += 1
            is_ok = record.status is Status.OK
            content = read_reply(record.text) if is_ok and record.text else Unusable(str(record.error))
            draft.complaint = content.why if isinstance(content, Unusable) else wrong_with(draft, content)
            if not isinstance(content, Unusable) and not draft.complaint:
                draft.content = content


def reply_record(
    question: RepeatedPrompt,
    repetition: int,
    reply: Completion | Failure,
    read_reply: ReadReply,
    to_log: TokensToLog,
    seconds: float = 0.0,
) -> SampleRecord:
    """Return the log record of a reply."""
    status, error = reply_status(reply, read_reply)
    return SampleRecord(
        key=question.keys[repetition],
        fingerprint=question.fingerprint,
        example_id=question.item,
        repetition=repetition,
        status=status,
        error=error,
        seconds=seconds,
        prompt=digest(question.prompt.as_text()),
        logprobs=logged_logprobs(to_log(reply)) if isinstance(reply, Completion) else None,
        **answer_fields(reply),
    )


def reply_status(reply: Completion | Failure, read_reply: ReadReply) -> tuple[Status, str | None]:
    """Return the status of a reply, and the reason if it is not ok.

    A truncated reply counts if it can still be read.
    """
    if isinstance(reply, Failure) or reply.finish_reason == "refusal":
        return answer_status(reply)
    content = read_reply(reply.text)
    if not isinstance(content, Unusable):
        return Status.OK, None
    status, why = answer_status(reply)
    if status is not Status.OK:
        return status, why
    is_thoughts = reply.reasoning and not reply.text.strip()
    return Status.PARSE_ERROR, "all its text is in reasoning_content" if is_thoughts else content.why


def read_object(text: str) -> dict[str, object] | Unusable:
    """Read a text that is a single JSON object, optionally in one code fence. Keys must be unique.

    >>> read_object('{"a": 1}'), read_object('Sure: {"a": 1}').why
    ({'a': 1}, 'not JSON: Expecting value')
    """
    if len(text) > MAX_REPLY:
        return Unusable(f"longer than {MAX_REPLY} characters")
    text = text.strip()
    block = _FENCE.fullmatch(text)
    try:
        value = json.loads(block[1] if block else text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        return Unusable(f"not JSON: {error.msg}")
    except (ValueError, RecursionError) as error:
        return Unusable(f"not JSON that can be read: {error}")
    return value if isinstance(value, dict) else Unusable(f"a JSON {type(value).__name__}, not one object")


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key occurs twice")
    return content
