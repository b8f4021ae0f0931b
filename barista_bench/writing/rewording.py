"""Lets a language model reword generated items, and writes a review that `generate --review` applies.

    <out>/review.jsonl      all items; `revise` with an accepted wording, otherwise without a verdict
    <out>/wordings.jsonl    for each requested item: its facts, the model, the attempts, and the faults of refused
        replies
    <out>/replies.jsonl     one line per reply: log, cache and resume
    <out>/provenance.json   the model, prompt, settings, items and domain; no other writer may use the folder

Each reply is checked (`checks.py`). A refused reply is requested once more with the reason. If the second reply is
refused too, the template's texts stay. A killed command can be resumed and gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.core.prompt import Prompt, PromptTexts, TextPart, fence_material, object_schema
from barista_bench.core.prompt_files import packaged_prompts
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import check_output_path, refuse_inside
from barista_bench.files.writing import write_whole
from barista_bench.generate.family import family_class
from barista_bench.generate.generator import REVIEW_FILE
from barista_bench.generate.review import ReviewedItem, read_review, review_bytes
from barista_bench.models import Model, ModelIdentity
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.replies import PendingReply, Unusable, ask_in_rounds, keys_of_repetitions, read_object
from barista_bench.runs.log.inputs import plain_json
from barista_bench.runs.log.sample_log import SampleLog
from barista_bench.runs.log.sessions import AskCounts
from barista_bench.scene_graph.domain import load_domain
from barista_bench.writing.checks import CHECKS_VERSION, ItemTexts, WordingChecker
from barista_bench.writing.config import RewordConfig

REPLIES_FILE, WORDINGS_FILE, PROVENANCE_FILE = "replies.jsonl", "wordings.jsonl", "provenance.json"
TRIES = 2
"""Maximum number of requests: the first wording, and one retry."""
REASON = "wording"
"""The reason of a revision under which tables of retention count it."""
SCHEMA = object_schema({"question": {"type": "string"}, "choices": {"type": "array", "items": {"type": "string"}}})


@dataclass(slots=True)
class RewordSession(AskCounts):
    """One start of the command. `kept_by_reason` counts, by reason, the items that keep the texts of their template."""

    folder: Path
    items: int = 0
    revised: int = 0
    kept_by_reason: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Rewording(PendingReply[ItemTexts]):
    """One item, the texts of its template, and the words that must stay."""

    row: ReviewedItem
    texts: ItemTexts
    words_to_keep: list[str]

    @property
    def item(self) -> str:
        return f"{self.row.item}:{self.row.proof[:16]}"


class ItemWording(msgspec.Struct, frozen=True):
    """One line of `wordings.jsonl`.

    Args:
        item, proof: the same as in the review file.
        facts: the texts of the template, and the words that must stay.
        model: the model that wrote the replies.
        prompt: SHA-256 of the prompt file.
        seeds, replies: the seed of each attempt, and its key in `replies.jsonl`. The key contains the hash of the
            request.
        checks: the version of the checks.
        revised: whether the last reply was used.
        reason: the fault of the last reply if it was not used.
    """

    item: str
    proof: str
    facts: dict[str, Any]
    model: dict[str, Any]
    prompt: str
    seeds: tuple[int, ...]
    replies: tuple[str, ...]
    checks: int
    revised: bool
    reason: str


def reword(config: RewordConfig, model: Model | None = None) -> RewordSession:
    """Reword the items of a generated folder that have no verdict yet. Start again to resume.

    Items do not change if the items of a complete set share their texts (ViSTa).

    Args:
        model: the model that writes; it replaces the model that `config.model` names.

    Raises:
        ConfigError: a setting cannot be used, or the folder contains the wordings of another writer or of other items.
        DataError, ModelError: the items or the model cannot be used.
    """
    source = config.folder / REVIEW_FILE
    if not source.is_file():
        raise DataError(f"{source}: does not exist. Fix: name a folder that `barista-bench generate` wrote")
    rows = read_review(source)
    domain, prompts = load_domain(config.domain), packaged_prompts(__package__, "rewording")
    checker = WordingChecker(domain)
    drafts = []
    for row in rows.values():
        if family_class(row.item.partition("/")[0]).has_own_texts and not row.verdict:
            texts = ItemTexts(row.question, row.choices)
            drafts.append(_Rewording(row, texts, checker.words_to_keep(texts)))
    refuse_inside(config.out, config.folder)
    check_output_path(config.out)
    writer = model or load_model(config, [])
    config.out.mkdir(parents=True, exist_ok=True)
    session = RewordSession(config.out, items=len(drafts))
    identity = plain_json(
        {
            "model": asdict(writer.identity),
            "generation": asdict(config.generation),
            "prompt": prompts.sha256,
            "checks": CHECKS_VERSION,
            "items": hashlib.sha256(review_bytes(rows.values())).hexdigest(),
            "domain": hashlib.sha256(msgspec.json.encode(domain)).hexdigest(),
        }
    )
    with SampleLog(config.out / REPLIES_FILE) as log:
        _claim(config.out, identity)
        ask_in_rounds(
            writer,
            config.generation,
            drafts,
            log,
            session,
            tries=TRIES,
            identity=identity,
            schema=SCHEMA,
            prompt=lambda draft: rewording_prompt(prompts, draft.texts, draft.words_to_keep, draft.complaint),
            read_reply=read_texts,
            wrong_with=lambda draft, texts: checker.fault(texts, draft.texts, draft.row.correct),
            progress=config.progress,
        )
        revised = {draft.row.item: _revision(draft, writer.identity) for draft in drafts if draft.content is not None}
        write_whole(config.out / REVIEW_FILE, review_bytes(revised.get(row.item, row) for row in rows.values()))
        lines = (msgspec.json.encode(_provenance(draft, identity, config)) + b"\n" for draft in drafts)
        write_whole(config.out / WORDINGS_FILE, b"".join(lines))
    session.revised = len(revised)
    reasons = Counter(draft.complaint.partition(":")[0] or "no reply" for draft in drafts if draft.content is None)
    session.kept_by_reason = dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))
    return session


def rewording_prompt(prompts: PromptTexts, texts: ItemTexts, words_to_keep: Sequence[str], refusal: str = "") -> Prompt:
    """Return the prompt for the model that writes. `refusal` is the fault of its last reply."""
    choices = {f"choice {number}": choice for number, choice in enumerate(texts.choices, start=1)}
    fields = {"question": texts.question, **choices, "must stay": "; ".join(words_to_keep), "refused": refusal}
    fence, data = fence_material(fields)
    system, user = prompts.fill(fence=fence, data=data)
    return Prompt(system, (TextPart(user),))


def read_texts(text: str) -> ItemTexts | Unusable:
    """Return the texts in a reply. Runs of blanks become single blanks.

    >>> read_texts('{"question": "Which  cup?", "choices": ["The red one."]}')
    ItemTexts(question='Which cup?', choices=('The red one.',))
    """
    reply = read_object(text)
    if isinstance(reply, Unusable):
        return reply
    question, choices = reply.get("question"), reply.get("choices")
    if set(reply) != {"question", "choices"} or not isinstance(question, str) or not isinstance(choices, list):
        return Unusable("no question with choices: write these two fields alone")
    texts = [" ".join(choice.split()) for choice in (question, *choices) if isinstance(choice, str)]
    if len(texts) < 1 + len(choices) or not all(texts):
        return Unusable("no text: the question or a choice is empty, or none")
    return ItemTexts(texts[0], tuple(texts[1:]))


def _claim(folder: Path, identity: dict[str, Any]) -> None:
    """Record who writes into the folder, or check that the writer and the items are the same."""
    path, content = folder / PROVENANCE_FILE, json.dumps(identity, indent=1, sort_keys=True) + "\n"
    if path.exists() and path.read_bytes() != content.encode():
        raise ConfigError(f"{folder}: contains wordings of another writer, or of other items. Fix: use another --out")
    write_whole(path, content)


def _revision(draft: _Rewording, writer: ModelIdentity) -> ReviewedItem:
    assert draft.content is not None, "only what can be used comes here"
    name = f"{writer.name} ({writer.revision})" if writer.revision else writer.name
    texts = {"question": draft.content.question, "choices": draft.content.choices}
    return msgspec.structs.replace(draft.row, **texts, verdict="revise", reason=REASON, reviewer=name)


def _provenance(draft: _Rewording, identity: Mapping[str, Any], config: RewordConfig) -> ItemWording:
    attempts = range(draft.attempt)
    keys = keys_of_repetitions(draft.item, identity, asdict(config.generation), attempts)
    return ItemWording(
        item=draft.row.item,
        proof=draft.row.proof,
        facts={"question": draft.texts.question, "choices": draft.texts.choices, "must_stay": draft.words_to_keep},
        model=identity["model"],
        prompt=identity["prompt"],
        seeds=tuple(content_seed("judge", draft.item, attempt) for attempt in attempts),
        replies=tuple(keys.values()),
        checks=CHECKS_VERSION,
        revised=draft.content is not None,
        reason=draft.complaint,
    )
