"""Judge the answers of a finished run. Read them from its sample log, and log verdicts in the judge's folder.

`judge_folder.py` describes the judge's folder. The model of the run is never called. After an interruption, the same
command resumes without repeating a request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import msgspec

from barista_bench.core.prompt import PromptTexts
from barista_bench.core.settings import check_settings
from barista_bench.core.status import Status
from barista_bench.errors import ConfigError, DataError, ModelError
from barista_bench.judging.answers import REASONING, DistinctAnswer, asks_for_reasons, form_id, offline_judge
from barista_bench.judging.config import JudgeConfig
from barista_bench.judging.deciding import answers_by_block, open_stopping
from barista_bench.judging.forms import (
    STEPS_SCHEMA,
    form_prompts,
    judge_prompts,
    load_reasoning_form,
    read_steps,
    steps_prompt,
)
from barista_bench.judging.judge_folder import (
    VERDICTS_FILE,
    JudgeDescription,
    judge_folder_name,
    verdict_keys,
    write_json,
)
from barista_bench.judging.rubric import Criterion, Rubric, load_rubric
from barista_bench.judging.verdicts import GEVAL_FORM, REASONING_FORM, JudgeVerdict, read_verdict, score_tokens
from barista_bench.models import Completion, GenerationConfig, Model, ModelIdentity, TokenLogprob
from barista_bench.runs.ask.answers import Spending, logged_tokens, prices_of
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.cluster_model import ClusterModel
from barista_bench.runs.ask.replies import ReadReply, RepeatedPrompt, TokensToLog, Unusable, ask, keys_of_repetitions
from barista_bench.runs.log.inputs import plain_json
from barista_bench.runs.log.sample_log import SampleLog
from barista_bench.runs.log.sessions import AskCounts
from barista_bench.runs.run_folder import JUDGE_FILE, JUDGES
from barista_bench.runs.score.scoring import ScoredRun, read_scored
from barista_bench.version import __version__

STEPS_FILE, STEPS_LOG = "steps.json", "steps.jsonl"
FORM_VERSION = 1
"""Must be increased if a code change alters the text of a form or the reading of a reply."""
STEP_TRIES = 3
REASON_LENGTH = 600
"""Maximum characters of a constrained judge's reason. An endless reason would be truncated and give no verdict."""
_HELD_NOTE = (
    "Replies were held to the JSON Schema of the form while they were written. That is the default of a local judge; "
    "--no-structured-output leaves it out."
)

Steps = dict[str, tuple[str, ...]]
"""Maps each criterion to its evaluation steps."""


@dataclass(slots=True)
class JudgeSession(AskCounts):
    """One start of a judge: its counts, the run that it judges, and the judge's folder.

    `decision` says why the judge stopped early. It is empty if the judge graded all answers.
    """

    folder: Path
    run: ScoredRun
    decision: str = ""


def judge(run: str | Path, judge: str, **settings: object) -> JudgeSession:
    """Judge the answers of a run folder. `settings` are fields of `JudgeConfig`. A second call resumes.

    Raises:
        ConfigError: a setting cannot be used, no judge scores the task, or another process uses this folder.
        DataError, ModelError: the run or the judge cannot be used.
        BudgetError: the remaining requests do not fit `max_cost` or `max_tokens_total`. All verdicts so far are logged.
    """
    return judge_config(check_settings(JudgeConfig, {"run": Path(run), "judge": judge, **settings}))


def judge_config(config: JudgeConfig) -> JudgeSession:
    """Judge as `judge` does, with resolved settings."""
    run = read_scored(config.run, data=config.data, root=config.root, options={})
    if run.results.stopped is not None:
        raise DataError(f"{config.run}: stopped early. Fix: start the run without --until, then judge it")
    grades_reasons = asks_for_reasons(run.task)
    if grades_reasons and config.steps == "generate":
        raise ConfigError(f"{run.task.name}: its reasoning is judged without steps. Fix: leave steps at given")
    rubric = None if grades_reasons else load_rubric(run.task, config.rubric)
    reasoning = load_reasoning_form(run.task, config.rubric) if grades_reasons else None
    if config.is_offline:
        form, metrics = REASONING_FORM, dict[str, str | None]({REASONING: "lexical_f1"})
        if rubric:
            form, metrics = GEVAL_FORM, {criterion.name: criterion.lexical for criterion in rubric.criteria}
        model: Model = offline_judge(config.judge, form, metrics, run)
    elif config.cluster:
        model = ClusterModel(config.as_model, config.cluster, [])
    else:
        model = load_model(config.as_model, [])
    description = describe_judge(config, model.identity, rubric, reasoning)
    folder = config.run / JUDGES / judge_folder_name(model.identity.name, description.identity, description.generation)
    session = JudgeSession(folder, run)
    with SampleLog(folder / VERDICTS_FILE) as log:
        spent = logged_tokens([folder / VERDICTS_FILE], [folder / STEPS_LOG])
        spending = Spending(config, description.prices, description.config, spent)
        if rubric and description.identity["steps"] == "generate":
            steps = _frozen_steps(folder, rubric, model, config.generation, spending)
            description = msgspec.structs.replace(description, steps=steps)
        write_json(folder / JUDGE_FILE, description)
        read, to_log = reply_reading(description)
        how = partial(ask, to_log=to_log, spending=spending, progress=config.progress)
        stopping = open_stopping(config, run, folder, description)
        for answers in answers_by_block(run, stopping):
            how(model, description.config, judge_questions(description, answers), log, read, session)
        session.decision = stopping.record().get(0, "") if stopping else ""
    return session


def judge_questions(description: JudgeDescription, answers: Sequence[DistinctAnswer]) -> list[RepeatedPrompt]:
    """Return one form per answer and criterion, filled in according to `judge.json`.

    Raises KeyError, TypeError or ValidationError if `description` was edited and is no longer valid.
    """
    form, keys = description.form, verdict_keys(description)
    is_reasoning = form is REASONING_FORM
    rubric = None if is_reasoning else Rubric.model_validate(description.rubric)
    reasoning = PromptTexts(**description.prompt) if is_reasoning else None
    return [
        RepeatedPrompt(form_id(form, answer.item, criterion), prompt, keys(answer.item, criterion), description.schema)
        for answer in answers
        for criterion, prompt in form_prompts(rubric, description.steps, answer.shown, reasoning).items()
    ]


def describe_judge(
    config: JudgeConfig, model: ModelIdentity, rubric: Rubric | None, reasoning: PromptTexts | None = None
) -> JudgeDescription:
    """Describe a judge. With a rubric it uses G-Eval, without a rubric EgoCoT-Bench's protocol for reasoning.

    The protocol for reasoning uses the packaged texts or `reasoning`. It takes one verdict at temperature 0, regardless
    of the settings, and no probabilities.
    """
    if rubric:
        prompt, generation, verdicts_per_answer = judge_prompts("geval"), config.generation, config.verdicts
        # If a rubric has no steps, the judge generates them, as in the release.
        has_steps = config.is_offline or all(criterion.steps for criterion in rubric.criteria)
        identity: dict[str, object] = {
            "method": "g-eval",
            "form_version": FORM_VERSION,
            "rubric": rubric.sha256,
            "steps": config.steps if has_steps else "generate",
        }
        content = rubric.model_dump()
    else:
        prompt, verdicts_per_answer = reasoning or judge_prompts(REASONING), 1
        generation = dataclasses.replace(config.generation, temperature=0.0, top_p=1.0, top_k=None, top_logprobs=0)
        identity = {"method": REASONING, "rubric": prompt.sha256, "steps": "given"}
        content = {"version": prompt.version, "wording": prompt.wording, "criteria": [{"name": REASONING}]}
    is_held = model.settings.get("structured_output") is True
    if is_held and config.is_local:
        identity["reason_length"] = REASON_LENGTH
    return JudgeDescription(
        identity={**identity, "model": plain_json(asdict(model)), "prompt": prompt.sha256},
        generation=plain_json(asdict(generation)),
        steps={criterion.name: tuple(criterion.steps) for criterion in rubric.criteria} if rubric else {},
        verdicts_per_answer=verdicts_per_answer,
        rubric=content,
        prompt=asdict(prompt),
        barista_bench=__version__,
        note=_HELD_NOTE if is_held else "",
        prices=prices_of(config, config.judge),
    )


def reply_reading(description: JudgeDescription) -> tuple[ReadReply, TokensToLog]:
    """Return a function that reads replies to this judge's forms, and a function that selects the tokens to log."""
    to_log: TokensToLog = _score_tokens if description.form is GEVAL_FORM else lambda _: None
    return lambda text: read_verdict(text, description.form), to_log


def _score_tokens(completion: Completion) -> tuple[TokenLogprob, ...] | None:
    verdict = read_verdict(completion.text)
    return score_tokens(completion.logprobs, verdict.score) if isinstance(verdict, JudgeVerdict) else None


def _frozen_steps(folder: Path, rubric: Rubric, model: Model, config: GenerationConfig, spending: Spending) -> Steps:
    """Return the judge's own evaluation steps. They are requested once per folder and then read from the folder."""
    path = folder / STEPS_FILE
    if path.exists():
        return read_frozen_steps(path, rubric)
    with SampleLog(folder / STEPS_LOG) as log:
        steps = {
            criterion.name: _ask_for_steps(log, rubric, criterion, model, config, spending)
            for criterion in rubric.criteria
        }
    write_json(path, steps)
    return steps


def read_frozen_steps(path: Path, rubric: Rubric) -> Steps:
    """Read the evaluation steps that a judge generated. Raises DataError if they are invalid or for another rubric."""
    try:
        steps = msgspec.json.decode(path.read_bytes(), type=Steps)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{path}: no evaluation steps ({error}). Fix: remove the folder and judge again") from error
    if set(steps) != set(rubric.names):
        raise DataError(f"{path}: has steps for {sorted(steps)}. Fix: remove the folder and judge again")
    return steps


def _ask_for_steps(
    log: SampleLog, rubric: Rubric, criterion: Criterion, model: Model, config: GenerationConfig, spending: Spending
) -> tuple[str, ...]:
    identity = {"model": asdict(model.identity), "rubric": rubric.sha256, "prompt": judge_prompts("steps").sha256}
    item, prompt, error = f"steps:{criterion.name}", steps_prompt(rubric, criterion), ""
    for attempt in range(STEP_TRIES):
        keys = keys_of_repetitions(item, identity, asdict(config), [attempt])
        prompts = [RepeatedPrompt(item, prompt, keys, STEPS_SCHEMA)]
        records = ask(model, config, prompts, log, read_steps, AskCounts(), spending=spending)
        record = records[keys[attempt]]
        if record.status is Status.OK and record.text is not None:
            steps = read_steps(record.text)
            if not isinstance(steps, Unusable):
                return steps
        error = str(record.error)
    raise ModelError(
        f"judge {model.identity.name}: gave no evaluation steps for {criterion.name} ({error}). "
        "Fix: give steps in a rubric file"
    )
