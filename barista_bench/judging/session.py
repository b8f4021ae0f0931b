"""Judges the answers of a run after the fact: from its sample log, into a log of the judge's own.

    <run>/judges/<judge>-<digest>/judge.json       who judges, with what rubric, prompt and settings
                                  steps.json       evaluation steps that the judge worked out, where it was told to
                                  verdicts.jsonl   one line a verdict: log, cache and resume
                                  results.json     the figures
                                  scores.jsonl     one line a sample, criterion and draw

The model that was run is never asked. Killed at any moment, the same command goes on, and nothing is asked twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from barista_bench import __version__
from barista_bench.core.task import Status
from barista_bench.errors import ConfigError, DataError, ModelError
from barista_bench.files.atomic import write_whole
from barista_bench.judging.asking import Asked, Question, ask
from barista_bench.judging.config import JudgeConfig
from barista_bench.judging.geval import STEPS_SCHEMA, form_prompt, judge_prompts, read_steps, steps_prompt
from barista_bench.judging.items import JudgeItem, distinct, judged_samples
from barista_bench.judging.offline import form_id, offline_judge
from barista_bench.judging.reasoning import (
    asks_for_reasons,
    offline_reasoning_judge,
    rationales_of,
    reasoned_samples,
    reasoning_generation,
    reasoning_identity,
)
from barista_bench.judging.rubric import Criterion, Rubric, load_rubric
from barista_bench.judging.rubric_judge import reasoning_questions, reasoning_status
from barista_bench.judging.verdicts import GEVAL_FORM, Unusable, Verdict, read_verdict, reply_status
from barista_bench.judging.weighting import score_tokens
from barista_bench.models import Completion, Failure, GenerationConfig, Model, TokenLogprob
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.config import checked
from barista_bench.runs.log.keys import digest
from barista_bench.runs.log.sample_log import SampleLog
from barista_bench.runs.score.scoring import ScoredRun, read_scored

JUDGES = "judges"
VERDICTS_FILE = "verdicts.jsonl"
JUDGE_FILE = "judge.json"
STEPS_FILE = "steps.json"
FORM_VERSION = 1
"""Goes up with every change of the code that alters the text of a form, or how a reply to it is read."""
STEP_TRIES = 3

Steps = Mapping[str, tuple[str, ...]]
"""Criterion -> its evaluation steps."""


class JudgeDescription(msgspec.Struct, frozen=True, kw_only=True):
    """`judge.json`. `identity` makes up the folder's name and, with the steps, every verdict's key."""

    identity: dict[str, Any]
    generation: dict[str, Any]
    steps: dict[str, tuple[str, ...]]
    draws: int
    rubric: dict[str, Any]
    prompt: dict[str, Any]
    barista_bench: str
    prices: dict[str, float | None] = {}

    @property
    def key_identity(self) -> dict[str, Any]:
        return {**self.identity, "steps": digest(self.steps)}


@dataclass(frozen=True, slots=True)
class JudgeSession:
    """One start: what it did, and where."""

    folder: Path
    asked: int
    already_done: int
    failed: int
    first_failure: str
    run: ScoredRun


def judge(run: str | Path, judge: str, **settings: object) -> JudgeSession:
    """Judge the answers of a run folder. Start it again to go on.

    Args:
        run: made by `running.runner.run`.
        judge: served:NAME, a checkpoint, tiny, lexical or oracle.
        settings: fields of `JudgeConfig`.

    Raises:
        ConfigError: a setting cannot be used, no judge scores the task, or another process judges here.
        DataError, ModelError: the run or the judge cannot be used.
    """
    return judge_config(checked(JudgeConfig, {"run": Path(run), "judge": judge, **settings}))


def judge_config(config: JudgeConfig) -> JudgeSession:
    """As `judge`, of settings that are put together already."""
    run = read_scored(config.run, data=config.data, root=config.root, options={})
    if asks_for_reasons(run.task):
        return _judge_reasons(config, run)
    rubric = load_rubric(run.task, config.rubric)
    items = distinct(judged_samples(run))
    model = offline_judge(config.judge, rubric, items) if config.is_offline else load_model(config, [])
    identity = judge_identity(rubric, model, config)
    folder = config.run / JUDGES / judge_folder_name(model.identity.name, identity, _plain(asdict(config.generation)))
    with SampleLog(folder / VERDICTS_FILE) as log:
        made = identity["steps"] == "generate"
        steps = _frozen_steps(folder, rubric, model, config) if made else _given_steps(rubric)
        described = JudgeDescription(
            identity=identity,
            generation=_plain(asdict(config.generation)),
            steps=dict(steps),
            draws=config.verdicts,
            rubric=rubric.model_dump(),
            prompt=asdict(judge_prompts("geval")),
            barista_bench=__version__,
            prices={"input": config.price_input, "output": config.price_output},
        )
        write_judge(folder, described)
        questions = forms(rubric, items, described, config.generation)
        done: Asked = ask(
            model, config.generation, questions, log, _status, kept=_kept_tokens, progress=config.progress
        )
    return JudgeSession(folder, done.asked, done.already_done, done.failed, done.first_failure, run)


def _judge_reasons(config: JudgeConfig, run: ScoredRun) -> JudgeSession:
    """One verdict on each rationale (`rubric_judge.py`): draws and temperature are the protocol's."""
    if config.rubric is not None or config.steps == "generate":
        raise ConfigError(f"{run.task.name}: its reasons are judged by one rubric. Remedy: give no rubric and no steps")
    samples = reasoned_samples(run)
    model = offline_reasoning_judge(config.judge, run, samples) if config.is_offline else load_model(config, [])
    identity, generation = _plain(reasoning_identity(model)), reasoning_generation(config.generation)
    folder = config.run / JUDGES / judge_folder_name(model.identity.name, identity, _plain(asdict(generation)))
    prompt = judge_prompts("reasoning")
    with SampleLog(folder / VERDICTS_FILE) as log:
        described = JudgeDescription(
            identity=identity,
            generation=_plain(asdict(generation)),
            steps={},
            draws=1,
            rubric={"version": prompt.version, "wording": prompt.wording, "criteria": [{"name": "reasoning"}]},
            prompt=asdict(prompt),
            barista_bench=__version__,
            prices={"input": config.price_input, "output": config.price_output},
        )
        write_judge(folder, described)
        questions = reasoning_questions(rationales_of(samples), identity["model"], generation)
        done = ask(model, generation, questions, log, reasoning_status, progress=config.progress)
    return JudgeSession(folder, done.asked, done.already_done, done.failed, done.first_failure, run)


def judge_identity(rubric: Rubric, model: Model, config: JudgeConfig) -> dict[str, Any]:
    """What tells two judgements of one run apart; draws do not, since more of them may be made later."""
    return {
        "method": "g-eval",
        "form_version": FORM_VERSION,
        "model": _plain(asdict(model.identity)),
        "rubric": rubric.sha256,
        "prompt": judge_prompts("geval").sha256,
        "steps": _step_source(rubric, config),
    }


def forms(
    rubric: Rubric, items: Sequence[JudgeItem], described: JudgeDescription, config: GenerationConfig
) -> list[Question]:
    """One form an item and criterion."""
    return [
        Question.of(
            form_id(item.item, criterion.name),
            form_prompt(rubric, criterion, described.steps[criterion.name], item.judged),
            described.key_identity,
            config,
            draws=described.draws,
            schema=GEVAL_FORM.schema,
        )
        for item in items
        for criterion in rubric.criteria
    ]


def read_judge(folder: str | Path) -> JudgeDescription:
    """The description of a judge's folder.

    Raises:
        DataError: it is none.
    """
    path = Path(folder) / JUDGE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=JudgeDescription)
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise DataError(f"{path}: no judge's description ({error}). Remedy: run `barista-bench judge`") from error


def write_judge(folder: Path, described: JudgeDescription) -> None:
    """Write the description of a judge's folder."""
    _write(folder / JUDGE_FILE, described)


def judge_folders(run: str | Path) -> list[Path]:
    """The folders of all judges of a run, by name."""
    return sorted(path.parent for path in (Path(run) / JUDGES).glob(f"*/{JUDGE_FILE}"))


def _status(reply: Completion | Failure) -> tuple[Status, str | None]:
    return reply_status(reply, GEVAL_FORM)


def _kept_tokens(completion: Completion) -> tuple[TokenLogprob, ...] | None:
    verdict = read_verdict(completion.text)
    return score_tokens(completion.logprobs, verdict.score, GEVAL_FORM) if isinstance(verdict, Verdict) else None


def _step_source(rubric: Rubric, config: JudgeConfig) -> str:
    """Where the steps come from. A rubric that lacks some has the judge work them out, as the release does."""
    whole = config.is_offline or all(criterion.steps for criterion in rubric.criteria)
    return config.steps if whole else "generate"


def _given_steps(rubric: Rubric) -> Steps:
    return {criterion.name: tuple(criterion.steps) for criterion in rubric.criteria}


def _frozen_steps(folder: Path, rubric: Rubric, model: Model, config: JudgeConfig) -> Steps:
    """Steps of the judge's own: made once for a folder, and from then on read."""
    path = folder / STEPS_FILE
    if path.exists():
        try:
            steps = msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[str, ...]])
        except msgspec.MsgspecError as error:
            raise DataError(
                f"{path}: no evaluation steps ({error}). Remedy: remove the folder and judge again"
            ) from error
        if set(steps) != set(rubric.names):
            raise DataError(f"{path}: has steps for {sorted(steps)}. Remedy: remove the folder and judge again")
        return steps
    steps = {criterion.name: _made_steps(folder, rubric, criterion, model, config) for criterion in rubric.criteria}
    _write(path, steps)
    return steps


def _made_steps(
    folder: Path, rubric: Rubric, criterion: Criterion, model: Model, config: JudgeConfig
) -> tuple[str, ...]:
    identity = {"model": asdict(model.identity), "rubric": rubric.sha256, "prompt": judge_prompts("steps").sha256}
    why = "it was not asked"
    for attempt in range(STEP_TRIES):
        item = f"steps:{criterion.name}"
        question = Question.of(
            item, steps_prompt(rubric, criterion), identity, config.generation, first=attempt, schema=STEPS_SCHEMA
        )
        with SampleLog(folder / "steps.jsonl") as log:
            done = ask(model, config.generation, [question], log, _steps_status)
        record = done.records[question.keys[attempt]]
        if record.status is Status.OK and record.text is not None:
            found = read_steps(record.text)
            if not isinstance(found, Unusable):
                return found
        why = str(record.error)
    raise ModelError(
        f"judge {model.identity.name}: gave no evaluation steps for {criterion.name} ({why}). "
        "Remedy: give steps in a rubric file"
    )


def _steps_status(reply: Completion | Failure) -> tuple[Status, str | None]:
    if isinstance(reply, Failure):
        return Status.INFRA_ERROR, reply.error
    if reply.finish_reason == "refusal":
        return Status.REFUSED, "the judge refused"
    found = read_steps(reply.text)
    return (Status.PARSE_ERROR, found.why) if isinstance(found, Unusable) else (Status.OK, None)


def judge_folder_name(name: str, identity: dict[str, Any], generation: dict[str, Any]) -> str:
    """The judge's name as a folder may be called, and a digest of everything else."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-60:] or "judge"
    return f"{slug}-{digest(identity, generation)[:10]}"


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it: tuples as lists."""
    return json.loads(json.dumps(value))


def _write(path: Path, content: object) -> None:
    write_whole(path, msgspec.json.format(msgspec.json.encode(content, order="deterministic"), indent=1) + b"\n")
