"""Lets a model write questions of temporal VQA from the changes of a clip (BARISTA release, and paper A.3.3).

    <out>/replies.jsonl             one line per reply: log, cache and resume
    <out>/provenance.json           the writer, prompt, settings, date and videos
    <out>/<video>_qa_pairs.jsonl    the usable questions, in the release's cache format

Clips and categories are sampled, as in the task, over all videos without a file of questions. Each sampled pair has one
call. `checks.py` selects the usable replies. With `protocol="paper"`, a refused reply is requested again with the
reason and another seed. `TemporalSampling.pairs` reads the questions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import msgspec

from barista_bench.benchmarks import parse_pairs, read_wording
from barista_bench.benchmarks.barista.change_detection import Category, Change, changes_domain, detect_changes
from barista_bench.benchmarks.barista.clips import ClipArrays, Keyframes, clips
from barista_bench.benchmarks.barista.qa_templates import (
    FEWEST_WORDS,
    PROVENANCE_FILE,
    SUFFIX,
    ClipPairs,
    QaPair,
    clip_text,
)
from barista_bench.benchmarks.barista.temporal_vqa import TemporalSampling, TemporalVQA
from barista_bench.core.deriving import Candidate
from barista_bench.core.prompt import Prompt, PromptTexts, TextPart
from barista_bench.core.prompt_files import WRITER, domain_file_of, packaged_prompts
from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import check_output_path
from barista_bench.files.writing import write_whole
from barista_bench.models import Model
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.replies import PendingReply, ask_in_rounds
from barista_bench.runs.log.inputs import digest, plain_json
from barista_bench.runs.log.sample_log import SampleLog
from barista_bench.runs.log.sessions import AskCounts
from barista_bench.scene_graph import SceneGraph
from barista_bench.version import __version__
from barista_bench.writing.checks import SCHEMA, length_fault, pair_fault, read_pair
from barista_bench.writing.config import QuestionConfig

REPLIES_FILE = "replies.jsonl"
MEANINGS: Mapping[Category, str] = {
    "state_change": "an object is in another state at the end of the clip than at its beginning",
    "action_transition": "what a hand touches, in order",
    "relation_change": "an object stands in another place relative to another object",
    "activity_progression": "activities that end, begin or go on",
}


@dataclass(slots=True)
class QuestionSession(AskCounts):
    """One start of the command. `refusals` has the fault of the last reply for each abandoned question."""

    folder: Path
    wanted: int = 0
    written: int = 0
    refusals: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _PlannedQuestion(PendingReply[QaPair]):
    """A question to be written, with its clip and changes."""

    video_id: str
    keyframes: Keyframes
    category: Category
    changes: list[Change]
    context: str

    @property
    def name(self) -> str:
        return f"{self.video_id}:clip_{self.keyframes[0]}:{self.category}"

    @property
    def item(self) -> str:
        return f"{self.name}:{digest(self.context)[:16]}"


class _Provenance(msgspec.Struct):
    """The writer of a folder's questions.

    `open` are the videos of a start that did not get all replies. The next start samples from these videos, so it plans
    the same questions.
    """

    identity: dict[str, Any]
    date: str
    barista_bench: str
    videos: list[str]
    open: list[str]


def write_questions(config: QuestionConfig, model: Model | None = None) -> QuestionSession:
    """Ask for a question about each sampled clip and category, and write the usable questions. Start again to resume.

    Videos with a file are skipped. A video without usable questions gets an empty file.

    Args:
        model: the model that writes; it replaces the model that `config.model` names.

    Raises:
        ConfigError: a setting cannot be used, or the folder contains the questions of another writer.
        DataError, ModelError: the release or the model cannot be used.
    """
    task = TemporalVQA(options={"protocol": config.protocol})
    pairs = [pair.removeprefix(f"{task.name}.") for pair in config.sampling]
    overrides = parse_pairs(pairs)
    if "pairs" in overrides:
        raise ConfigError("sampling has no 'pairs' here: this command writes them. Fix: leave it out")
    sampling = task.sampling.with_overrides(overrides)
    prompts, earlier, domain = _writer_prompts(config), _read_provenance(config.out), changes_domain(sampling.domain)
    check_output_path(config.out)
    video_ids, questions = _plan(task, sampling, config, earlier)
    writer = model or load_model(config, [])
    config.out.mkdir(parents=True, exist_ok=True)
    session = QuestionSession(config.out, wanted=len(questions))
    is_strict = config.protocol == "paper"
    with SampleLog(config.out / REPLIES_FILE) as log:
        provenance = _claim(config, writer, prompts, sampling, earlier, video_ids)
        ask_in_rounds(
            writer,
            config.generation,
            questions,
            log,
            session,
            tries=config.attempts if is_strict else 1,
            identity=provenance.identity,
            schema=SCHEMA,
            prompt=lambda question: question_prompt(prompts, question.category, question.context, question.complaint),
            read_reply=read_pair,
            wrong_with=lambda question, pair: (
                pair_fault(pair, question.category, question.changes, domain) if is_strict else length_fault(pair)
            ),
            progress=config.progress,
        )
        _write_pairs(config.out, video_ids, questions)
        if not session.failed:
            provenance.open = []
            _write_provenance(config.out, provenance)
    session.written = sum(question.content is not None for question in questions)
    session.refusals = [f"{question.name}: {question.complaint}" for question in questions if question.complaint]
    return session


def question_prompt(prompts: PromptTexts, category: Category, context: str, refusal: str = "") -> Prompt:
    """Return the prompt for the model that writes. `refusal` is the fault of its last reply."""
    system, user = prompts.fill(
        category=category,
        meaning=MEANINGS[category],
        changes=context,
        fewest=str(FEWEST_WORDS),
        again=f"\n\nAn earlier reply was refused: {refusal}. Write another one." if refusal else "",
    )
    return Prompt(system, (TextPart(user),))


def _writer_prompts(config: QuestionConfig) -> PromptTexts:
    if config.prompts is None:
        return packaged_prompts(__package__, WRITER)
    if domain_file := domain_file_of(config.prompts):
        return packaged_prompts(__package__, WRITER, domain_file)
    return read_wording(TemporalVQA.benchmark, WRITER, config.prompts)


def _plan(
    task: TemporalVQA, sampling: TemporalSampling, config: QuestionConfig, earlier: _Provenance | None
) -> tuple[list[str], list[_PlannedQuestion]]:
    """Return the sampled videos without questions, and the questions to be written about them."""
    graph = SceneGraph(config.source)
    sampling.refuse_unknown_videos(graph)
    pool = [video_id for video_id in graph.video_ids if not (config.out / f"{video_id}{SUFFIX}").exists()]
    if earlier and earlier.open:
        pool = earlier.open
    video_ids, candidates = [], []
    for video in graph.videos(pool):
        if sampling.is_selected(video):
            video_ids.append(video.video_id)
            candidates += [item for item in task.candidates(video, sampling) if isinstance(item, Candidate)]
    questions = []
    for video_id, group in groupby(task.select(candidates, (), sampling), key=attrgetter("video_id")):
        video = graph[video_id]
        keyframes = {clip[0]: clip for clip in clips(video, sampling)}
        for candidate in group:
            view, category = ClipArrays(video, keyframes[candidate.item]), cast("Category", candidate.group)
            changes = detect_changes(view, changes_domain(sampling.domain))[category]
            questions.append(_PlannedQuestion(video_id, view.keyframes, category, changes, clip_text(view, changes)))
    return video_ids, questions


def _read_provenance(folder: Path) -> _Provenance | None:
    path = folder / PROVENANCE_FILE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Provenance)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path}: no provenance ({error}). Fix: use another --out") from error


def _claim(
    config: QuestionConfig,
    model: Model,
    prompts: PromptTexts,
    sampling: TemporalSampling,
    earlier: _Provenance | None,
    video_ids: Sequence[str],
) -> _Provenance:
    """Record who writes into the folder, or check that the writer is the same.

    The date is the date of the first start.
    """
    fields = ("frames", "spacing", "per_class", "seed", "sampling_seed")
    identity = plain_json(
        {
            "model": asdict(model.identity),
            "generation": asdict(config.generation),
            "prompt": prompts.sha256,
            "wording": prompts.wording,
            "protocol": config.protocol,
            "sampling": {name: getattr(sampling, name) for name in fields},
        }
    )
    if earlier and earlier.identity != identity:
        raise ConfigError(f"{config.out}: contains the questions of another writer. Fix: use another --out")
    if earlier and config.date not in (None, earlier.date):
        raise ConfigError(f"{config.out}: was begun on {earlier.date}. Fix: leave --date out")
    provenance = _Provenance(
        identity=identity,
        date=earlier.date if earlier else config.date or datetime.now(UTC).date().isoformat(),
        barista_bench=earlier.barista_bench if earlier else __version__,
        videos=sorted({*(earlier.videos if earlier else ()), *video_ids}),
        open=list(video_ids),
    )
    _write_provenance(config.out, provenance)
    return provenance


def _write_provenance(folder: Path, provenance: _Provenance) -> None:
    write_whole(folder / PROVENANCE_FILE, json.dumps(msgspec.to_builtins(provenance), indent=1) + "\n")


def _write_pairs(folder: Path, video_ids: Sequence[str], questions: Sequence[_PlannedQuestion]) -> None:
    lines: dict[str, list[str]] = {video_id: [] for video_id in video_ids}
    for (video_id, keyframes), group in groupby(questions, key=attrgetter("video_id", "keyframes")):
        if pairs := [question.content for question in group if question.content is not None]:
            clip = ClipPairs(clip_index=keyframes[0], frame_indices=list(keyframes), qa_pairs=pairs)
            lines[video_id].append(json.dumps(clip, ensure_ascii=False) + "\n")
    for video_id, video_lines in lines.items():
        write_whole(folder / f"{video_id}{SUFFIX}", "".join(video_lines))
