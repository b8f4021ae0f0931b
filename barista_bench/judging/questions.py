"""Questions of temporal VQA, written by a model from the changes of a clip (BARISTA paper, section A.3.3).

    <out>/replies.jsonl             one line a reply: log, cache and resume
    <out>/provenance.json           who wrote them, with what prompt and settings, and when
    <out>/<video>_qa_pairs.jsonl    what passed the checks, in the release's cache format

The changes come from the graph (`benchmarks/barista/change_detection.py`), so that the evidence of a question is the
same whoever words it. A reply that fails a check (`question_checks.py`) is asked for again with the reason, under
another seed. `TemporalVQA(pairs=load_qa_pairs(out))` takes the questions up.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from barista_bench import __version__
from barista_bench.atomic_files import write_whole
from barista_bench.benchmarks.barista.change_detection import Category, Change
from barista_bench.benchmarks.barista.qa_templates import (
    FEWEST_WORDS,
    PROVENANCE_FILE,
    SUFFIX,
    ClipPairs,
    QaPair,
    describe_change,
)
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.errors import ConfigError
from barista_bench.judging.asking import Asked, Question, ask
from barista_bench.judging.geval import judge_prompts
from barista_bench.judging.question_checks import SCHEMA, read_pair, wrong_with
from barista_bench.judging.question_config import QuestionConfig
from barista_bench.judging.verdicts import Unusable
from barista_bench.models import Completion, Failure, Model
from barista_bench.prompt import Prompt, TextPart
from barista_bench.running.catalog import load_model
from barista_bench.running.keys import digest
from barista_bench.running.log import SampleLog, SampleRecord
from barista_bench.scene_graph import SceneGraph
from barista_bench.task import Example, Json, Sampling, Status

REPLIES_FILE = "replies.jsonl"
MEANINGS: Mapping[Category, str] = {
    "state_change": "an object is in another state at the end of the clip than at its beginning",
    "action_transition": "what a hand touches, in order",
    "relation_change": "an object stands in another place relative to another object",
    "activity_progression": "activities that end, begin or go on",
}


@dataclass(slots=True)
class QuestionSession:
    """One start. `refused` says for each question that was given up why its last reply was not used."""

    folder: Path
    wanted: int = 0
    written: int = 0
    asked: int = 0
    already_done: int = 0
    failed: int = 0
    first_failure: str = ""
    refused: list[str] = field(default_factory=list)

    def add(self, done: Asked) -> None:
        self.asked += done.asked
        self.already_done += done.already_done
        self.failed += done.failed
        self.first_failure = self.first_failure or done.first_failure


@dataclass(slots=True)
class _Wanted:
    """A question that is wanted: its clip and changes, and how far it has come."""

    example: Example
    item: str
    changes: list[Change]
    attempt: int = 0
    again: str = ""
    pair: QaPair | None = None

    @property
    def category(self) -> Category:
        return cast("Category", self.example.label)


def write_questions(config: QuestionConfig, model: Model | None = None) -> QuestionSession:
    """Ask for a question about each clip and kind of change, check it, and write what passed. Start again to go on.

    Args:
        config: all settings.
        model: the writer, instead of the one that `config.model` names.

    Raises:
        ConfigError: a setting cannot be used, or the folder holds the questions of another writer.
        DataError, ModelError: the release or the model cannot be used.
    """
    task = TemporalVQA()
    sampling = task.sampling.with_overrides(_overrides(config.sampling), task.sampling_uses)
    wanted = [
        _Wanted(example, f"{example.example_id}:{digest(example.evidence['changes'])[:16]}", _changes(example))
        for example in task.examples(SceneGraph(config.source), sampling)
        if isinstance(example, Example)
    ]
    writer = model or load_model(config, [])
    config.out.mkdir(parents=True, exist_ok=True)
    session = QuestionSession(config.out, wanted=len(wanted))
    with SampleLog(config.out / REPLIES_FILE) as log:
        identity = _claim(config, writer, sampling)
        _ask_all(wanted, writer, config, identity, log, session)
        _write_pairs(config.out, wanted)
    session.written = sum(one.pair is not None for one in wanted)
    session.refused = [f"{one.example.example_id}: {one.again}" for one in wanted if one.pair is None and one.again]
    return session


def question_prompt(category: Category, changes: Sequence[Change], again: str = "") -> Prompt:
    """What the writer is asked; `again` is why its last reply was refused."""
    counts = Counter(describe_change(change) for change in changes)
    lines = [f"- {text}" + (f" ({count} of them)" if count > 1 else "") for text, count in counts.items()]
    system, user = judge_prompts("questions").fill(
        category=category,
        meaning=MEANINGS[category],
        changes="\n".join(lines),
        fewest=str(FEWEST_WORDS),
        again=f"\nAn earlier reply was refused: {again}. Write another one." if again else "",
    )
    return Prompt(system, (TextPart(user),))


def _ask_all(
    wanted: Sequence[_Wanted],
    model: Model,
    config: QuestionConfig,
    identity: Mapping[str, object],
    log: SampleLog,
    session: QuestionSession,
) -> None:
    """Round by round: what was refused is asked for again in the next one."""
    for attempt in range(config.attempts):
        waiting = [one for one in wanted if one.pair is None and one.attempt == attempt]
        if not waiting:
            return
        asked = {
            one.item: Question.of(
                one.item,
                question_prompt(one.category, one.changes, one.again),
                identity,
                config.generation,
                first=attempt,
                schema=SCHEMA,
            )
            for one in waiting
        }
        done = ask(model, config.generation, list(asked.values()), log, _status, progress=config.progress)
        session.add(done)
        for one in waiting:
            _take(one, done.records[asked[one.item].keys[attempt]])


def _take(one: _Wanted, record: SampleRecord) -> None:
    """Use a reply, or note why not. One that failed is no attempt: it is asked for again at the next start."""
    if not record.finished:
        return
    one.attempt += 1
    found = read_pair(record.text) if record.status is Status.OK and record.text else Unusable(str(record.error))
    if isinstance(found, Unusable):
        one.again = found.why
        return
    one.again = wrong_with(found, one.category, one.changes)
    one.pair = None if one.again else found


def _status(reply: Completion | Failure) -> tuple[Status, str | None]:
    if isinstance(reply, Failure):
        return Status.INFRA_ERROR, reply.error
    if reply.finish_reason == "refusal":
        return Status.REFUSED, "the model refused"
    found = read_pair(reply.text)
    if not isinstance(found, Unusable):
        return Status.OK, None
    return (Status.TRUNCATED if reply.finish_reason == "length" else Status.PARSE_ERROR), found.why


def _claim(config: QuestionConfig, model: Model, sampling: Sampling) -> dict[str, Any]:
    """Write who writes here, or check that it is the same one; the date is that of the first start."""
    identity: dict[str, Any] = {
        "model": asdict(model.identity),
        "generation": asdict(config.generation),
        "prompt": judge_prompts("questions").sha256,
        "sampling": {name: getattr(sampling, name) for name in ("frames", "spacing", "per_class", "seed")},
    }
    identity = json.loads(json.dumps(identity))
    path = config.out / PROVENANCE_FILE
    if path.exists():
        before = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if before.get("identity") != identity:
            raise ConfigError(f"{config.out}: holds the questions of another writer. Remedy: use another --out")
        if config.date not in (None, before.get("date")):
            raise ConfigError(f"{config.out}: was begun on {before.get('date')}. Remedy: leave --date out")
        return identity
    if list(config.out.glob(f"*{SUFFIX}")):
        raise ConfigError(f"{config.out}: holds questions, but no {PROVENANCE_FILE}. Remedy: use another --out")
    date = config.date or datetime.now(UTC).date().isoformat()
    write_whole(path, json.dumps({"identity": identity, "date": date, "barista_bench": __version__}, indent=1) + "\n")
    return identity


def _write_pairs(folder: Path, wanted: Sequence[_Wanted]) -> None:
    clips: dict[tuple[str, int], ClipPairs] = {}
    for one in wanted:
        if one.pair is not None:
            key = (one.example.video_id, cast("int", one.example.metadata["clip_index"]))
            frames = [frame.frame_index for frame in one.example.frames]
            clip = clips.setdefault(key, ClipPairs(clip_index=key[1], frame_indices=frames, qa_pairs=[]))
            clip["qa_pairs"].append(one.pair)
    lines: dict[str, list[str]] = defaultdict(list)
    for (video_id, _), clip in sorted(clips.items()):
        lines[video_id].append(json.dumps(clip, ensure_ascii=False) + "\n")
    for video_id, own in lines.items():
        write_whole(folder / f"{video_id}{SUFFIX}", "".join(own))


def _overrides(pairs: Sequence[str]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{pair!r} is no setting. Remedy: write name=value")
        try:
            found[name.removeprefix(f"{TemporalVQA.name}.")] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _changes(example: Example) -> list[Change]:
    return cast("list[Change]", example.evidence["changes"])
