"""Lets a model write items of ToG-Bench and EgoCoT-Bench about videos in which only objects are tracked.

    <out>/<family>/               a release; unverified.txt names the items that not two people have accepted
    <out>/<family>.items.jsonl    the items that passed the checks, with all texts
    <out>/review.jsonl            the same items, for people to accept, revise or reject
    <out>/report.json             how many items were planned and written, and why the others were refused
    <out>/replies.jsonl           one line per reply: log, cache and resume
    <out>/provenance.json         the writer, the checker and their settings; no other writer may use the folder

The tracks decide where and when objects are (boxes once per second), that they are visible, and that their names are
unique. A model, the writer or another one, then says whether each item is visible, unique and feasible.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image

from barista_bench.benchmarks.graph_evidence import UNVERIFIED_FILE, graph_evidence_bytes
from barista_bench.benchmarks.release_records import GRAPH_EVIDENCE_FILE
from barista_bench.core.example import content_seed
from barista_bench.core.prompt import Prompt, fence_material, object_schema
from barista_bench.core.prompt_files import load_prompts, packaged_prompts, read_prompt_set
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import check_output_path, refuse_inside
from barista_bench.files.writing import write_whole
from barista_bench.generate.candidates import Choice, Item, QuestionCandidate
from barista_bench.generate.egocot.family import EgocotFamily, write_written
from barista_bench.generate.family import Family, family_class
from barista_bench.generate.generator import REVIEW_FILE, item_line
from barista_bench.generate.graph_evidence import graph_rows
from barista_bench.generate.review import ReviewedItem, apply_review, read_review, review_bytes, review_rows
from barista_bench.generate.review_statistics import decided_review, read_votes
from barista_bench.generate.tog_bench.statements import Trackable
from barista_bench.models import Model, reads_text_alone
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.replies import Content, PendingReply, ask_in_rounds
from barista_bench.runs.log.inputs import digest, plain_json
from barista_bench.runs.log.sample_log import SampleLog
from barista_bench.runs.log.sessions import AskCounts
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain, load_domain
from barista_bench.writing.config import WriteConfig
from barista_bench.writing.item_plans import (
    KINDS,
    READERS,
    SCHEMAS,
    ItemPlan,
    Written,
    WrittenQuestion,
    plan_items,
    read_reply_object,
)

TRIES = 2
"""Maximum number of requests for an item, and for its checks."""
NO_REPLY = "no reply"
PASSES = 2
"""The number of people who must keep an item before it is verified."""


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    holds: bool
    reason: str


class Checks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's verdicts on an item."""

    visible: Check
    unique: Check
    feasible: Check

    @property
    def fault(self) -> str:
        """Return the first condition that does not hold, with the reason; empty if all hold."""
        verdicts = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return next(
            (f"not {name}, says the checker: {check.reason}" for name, check in verdicts if not check.holds), ""
        )


_CHECK = object_schema({"holds": {"type": "boolean"}, "reason": {"type": "string"}})
_CHECKS = object_schema(dict.fromkeys(Checks.__struct_fields__, _CHECK))


@dataclass(slots=True)
class WriteSession(AskCounts):
    """One start of the command. `refused` counts, by reason, the items and objects that cannot be used."""

    folder: Path
    planned: int = 0
    written: int = 0
    unverified: int = 0
    refused: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Draft(PendingReply[Content]):
    """A reply about a planned item: the item itself (`written` is None), or the checks of a written item."""

    plan: ItemPlan
    written: Written | None = None

    @property
    def item(self) -> str:
        content = digest(self.plan.content, msgspec.to_builtins(self.written))
        return f"{'check' if self.written else 'write'}:{self.plan.family}/{self.plan.id}:{content[:16]}"

    @property
    def material(self) -> dict[str, str]:
        return self.plan.material | (self.written.material if self.written else {})

    def pictures(self) -> tuple[Image.Image, ...]:
        return self.plan.pictures()


def write_items(config: WriteConfig, model: Model | None = None, checker: Model | None = None) -> WriteSession:
    """Let a model write items, check them, and write a release of each family. Start again to resume, or with reviews.

    Args:
        model, checker: models that replace the models named in `config`.

    Raises:
        ConfigError: a setting cannot be used, or the folder contains the items of another writer.
        DataError: no item passes the checks, or a review cannot be used.
        ModelError: a model cannot be used.
    """
    if unknown := [name for name in config.families if name not in KINDS]:
        raise ConfigError(
            f"families: {unknown[0]!r} cannot be written by a model. Fix: name some of {', '.join(KINDS)}"
        )
    graph, domain = SceneGraph(config.source), load_domain(config.domain)
    refuse_inside(config.out, graph.root)
    check_output_path(config.out)
    plans, refused = plan_items(graph, domain, config.families, config.per_video, config.frames)
    writer = model or load_model(config, [])
    judge = checker or (
        load_model(config.model_copy(update={"model": config.checker}), []) if config.checker else writer
    )
    for each in (writer, judge):
        if reads_text_alone(each):
            raise ConfigError(f"{each.identity.name}: reads only text. Fix: name a vision-language model")
    config.out.mkdir(parents=True, exist_ok=True)
    session = WriteSession(config.out, planned=len(plans))
    items: dict[str, list[Item]] = {name: [] for name in config.families}
    with SampleLog(config.out / "replies.jsonl") as log:
        for draft, fault in _ask(config, writer, judge, plans, log, session):
            if fault or draft.content is None:
                refused[fault.partition(":")[0]] += 1
            else:
                items[draft.plan.family].append(_item(draft.plan, draft.content))
    session.refused = dict(sorted(refused.items(), key=lambda pair: (-pair[1], pair[0])))
    report = {"planned": session.planned, "written": sum(map(len, items.values())), "refused": session.refused}
    write_whole(config.out / "report.json", json.dumps(report, indent=1) + "\n")
    if not any(items.values()):
        raise DataError(
            f"{graph.root}: no item passes the checks: {session.refused}. Fix: see the replies in {config.out}"
        )
    _write_items(config, items, graph, domain, session)
    return session


def _write_items(
    config: WriteConfig, items: Mapping[str, list[Item]], graph: SceneGraph, domain: Domain, session: WriteSession
) -> None:
    """Write the review file, and the releases as the reviews decide."""
    lines = {name: list(map(item_line, group)) for name, group in items.items()}
    rows = {name: review_rows(name, group, lines[name]) for name, group in items.items()}
    _write_review(config.out, [row for group in rows.values() for row in group])
    review = decided_review(config.review, config.lead)
    passes = {votes.item.item: votes.passes for votes in read_votes(config.review, config.lead)}
    for name, group in items.items():
        write_whole(config.out / f"{name}.items.jsonl", b"".join(lines[name]))
        kept = apply_review(name, group, rows[name], review)
        unverified = [item.id for item in kept if passes.get(f"{name}/{item.id}", 0) < PASSES]
        session.written += len(kept)
        session.unverified += len(unverified)
        _write_release(family_class(name)(domain), kept, graph, config.out / name, unverified)


def _ask(
    config: WriteConfig, writer: Model, judge: Model, plans: Sequence[ItemPlan], log: SampleLog, session: WriteSession
) -> list[tuple[_Draft[Written], str]]:
    """Return each item as written, with the reason why it cannot be used; the reason is empty if it can."""
    names = (*(config.families if config.prompts else KINDS), "checker")
    if config.prompts and Path(config.prompts).is_file() and read_prompt_set(config.prompts) is None:
        remedy = f"give it `tasks:` with {', '.join(names)}"
        raise ConfigError(f"{config.prompts}: has one text for all. Fix: {remedy}")
    prompts = {
        name: load_prompts(config.prompts, name) if config.prompts else packaged_prompts(__package__, name)
        for name in names
    }
    hashes = {name: texts.sha256 for name, texts in prompts.items()}
    models = {"writer": asdict(writer.identity), "checker": asdict(judge.identity)}
    identity = plain_json({**models, "generation": asdict(config.generation), "prompts": hashes})
    path, content = config.out / "provenance.json", json.dumps(identity, indent=1, sort_keys=True) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") != content:
        raise ConfigError(f"{config.out}: contains the items of another writer. Fix: use another --out")
    write_whole(path, content)

    def prompt(name: str, fields: Mapping[str, str]) -> Prompt:
        fence, data = fence_material(fields)
        return prompts[name].prompt(len(fields["times"].split(", ")), fence=fence, data=data)

    drafts = [_Draft[Written](plan) for plan in plans]
    for family, schema in SCHEMAS.items():
        ask_in_rounds(
            writer,
            config.generation,
            [draft for draft in drafts if draft.plan.family == family],
            log,
            session,
            tries=TRIES,
            identity=identity,
            schema=schema,
            prompt=lambda draft: prompt(draft.plan.family, {**draft.material, "refused": draft.complaint}),
            read_reply=READERS[family],
            wrong_with=_fault,
            progress=config.progress,
        )
    checks = {id(draft): _Draft[Checks](draft.plan, draft.content) for draft in drafts if draft.content is not None}
    ask_in_rounds(
        judge,
        config.generation,
        list(checks.values()),
        log,
        session,
        tries=TRIES,
        identity=identity,
        schema=_CHECKS,
        prompt=lambda draft: prompt(
            "checker", {**draft.plan.material, **(draft.written.material if draft.written else {})}
        ),
        read_reply=partial(read_reply_object, kind=Checks),
        wrong_with=lambda draft, checks: "",
        progress=config.progress,
    )
    return [(draft, _final_fault(draft, checks.get(id(draft)))) for draft in drafts]


def _final_fault(draft: _Draft[Written], check: _Draft[Checks] | None) -> str:
    """Return why an item cannot be used. An item without checks cannot be used."""
    if check is None:
        return draft.complaint or NO_REPLY
    return check.content.fault if check.content else check.complaint or NO_REPLY


def _fault(draft: _Draft[Written], written: Any) -> str:  # noqa: ANN401  (mypy joins the two kinds of items)
    return draft.plan.fault(written)


def _item(plan: ItemPlan, written: Written) -> Item:
    """Return an item. Its statements are what the tracks prove: the objects are visible."""
    seen = [Trackable(object_id) for object_id in plan.objects]
    if not isinstance(written, WrittenQuestion):
        right = tuple(map(Choice, plan.names, seen))
        kinds = {"kinds": [plan.kind] * len(plan.objects)}
        return Item(id=plan.id, candidate=_candidate(plan, written.instruction, right, (), kinds))
    texts = [written.answer, *written.wrong]
    random.Random(content_seed("written", plan.id)).shuffle(texts)  # noqa: S311
    choices = tuple(Choice(text, seen[0]) for text in texts)
    correct = texts.index(written.answer)
    frames = tuple(sorted({plan.frames[number - 1] for number in written.frames}))
    candidate = _candidate(plan, written.question, (choices[correct],), frames, {"steps": written.steps})
    return Item(id=plan.id, candidate=candidate, choices=choices, correct=(correct,))


def _candidate(
    plan: ItemPlan, question: str, right: tuple[Choice, ...], frames: tuple[int, ...], extra: dict[str, Any]
) -> QuestionCandidate:
    return QuestionCandidate(
        subtask=plan.subtask,
        video_id=plan.scene.video_id,
        question=question,
        right=right,
        span=(0, plan.scene.frame_count),
        frames=frames,
        objects=plan.objects,
        extra=extra,
    )


def _write_review(folder: Path, rows: Sequence[ReviewedItem]) -> None:
    """Write the review file. Verdicts on the same items, which an earlier start has left there, stay."""
    path = folder / REVIEW_FILE
    earlier = read_review(path) if path.exists() else {}
    judged = {row.item: row for row in earlier.values() if row.verdict}
    kept = [judged[row.item] if row.item in judged and judged[row.item].proof == row.proof else row for row in rows]
    write_whole(path, review_bytes(kept))


def _write_release(family: Family, items: list[Item], graph: SceneGraph, folder: Path, unverified: list[str]) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    if not items:
        return
    folder.mkdir()
    if isinstance(family, EgocotFamily):
        write_written(family, items, graph, folder)
    else:
        family.write(items, graph, folder)
    evidence = graph_evidence_bytes(graph_rows({item.id: item for item in items}, graph, family.domain))
    write_whole(folder / GRAPH_EVIDENCE_FILE, evidence)
    if unverified:
        write_whole(folder / UNVERIFIED_FILE, "".join(f"{name}\n" for name in unverified))
