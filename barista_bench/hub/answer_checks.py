"""Check a run's answers against its questions and those of the published dataset, and a judge's verdicts likewise.

Every line of the log must answer a question of this run. Keys and fingerprints are computed again from the dataset, the
wording and the settings. Each finished line must have a matching key. Answers to other questions, examples, models,
settings or repetitions do not match. The check does not prove that a model gave the answers. No check can.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.core.leaderboards import RELEASED_RUN
from barista_bench.core.prompt import PromptTexts, hash_name
from barista_bench.core.task import Task
from barista_bench.core.training_videos import VIDEOS_FILE
from barista_bench.errors import DataError
from barista_bench.hub.log_checks import AskedLine, Expected, check_log, first_difference
from barista_bench.judging.answers import REASONING, RunAnswers
from barista_bench.judging.forms import judge_prompts
from barista_bench.judging.judge_folder import VERDICTS_FILE, JudgeDescription
from barista_bench.judging.released_verdicts import METHOD as RELEASED, verdict_key
from barista_bench.judging.rubric import Rubric, load_rubric
from barista_bench.judging.session import STEPS_FILE, judge_questions, read_frozen_steps
from barista_bench.models import ModelIdentity
from barista_bench.models.base import TOKEN_COUNTS, tells_own_times
from barista_bench.models.local.loading import adapter_hash, adapter_videos, fetch_adapter
from barista_bench.runs.ask.answers import with_steps
from barista_bench.runs.log.inputs import (
    INPUTS_FILE,
    asked_inputs,
    asks_in_steps,
    digest,
    plain_json,
    prompts_digest,
    read_inputs,
    sample_keys,
)
from barista_bench.runs.log.sample_log import SampleRecord, log_files
from barista_bench.runs.log_reader import logged_steps, read_steps
from barista_bench.runs.run_folder import CONFIG_FILE, JUDGE_FILE, RunDescription, read_run, run_description
from barista_bench.runs.score.scoring import ScoredRun

IMPORTED = (RELEASED_RUN, "recorded:")
"""Prefixes of wordings that mark runs by other harnesses. The prompts of such runs are not known here."""
_REMEDY = "name the dataset that was run with --data, or start a new run with another --out"


def is_imported(task: Task) -> bool:
    """Return whether another harness asked the run, according to its wording."""
    return task.prompts.wording.startswith(IMPORTED)


def check_answers(run: ScoredRun, published: str | Path | None = None) -> None:
    """Refuse a run whose log answers questions that are not in its `run.json` and its dataset.

    Args:
        published: the published source of the examples, if the run used another dataset. A run on frames of videos is
            then checked against the videos from which the published pictures were made.

    Raises:
        DataError: a line is damaged, answers another question, or contradicts an earlier answer. The model saw other
            pictures than the published pictures. The files beside the log differ from the log. Or `run.json` names a
            wording that it does not hold, or an identity that does not match the dataset.
        ConfigError: the examples were frozen under another protocol.
    """
    where, described = str(run.folder / CONFIG_FILE), read_run(run.folder)
    run.task.refuse_others(run.examples.examples)
    _check_wording(run.task, where)
    if described.imported and not is_imported(run.task):
        raise DataError(f"{where}: imported: this run was asked here. Fix: run again")
    if "shots" in described.identity.model.settings:
        raise DataError(
            f"{where}: identity.model.settings.shots: no leaderboard takes worked examples. "
            "Fix: submit a run without --shots"
        )
    if is_imported(run.task):
        check_log(log_files(run.folder), {sample.record.key: _line(sample.record) for sample in run.samples}, _REMEDY)
        return
    expected = _expected_answers(run, described, linked=run.examples.is_linked)
    if published is not None:
        if not run.examples.is_linked:
            expected = {**expected, **_expected_answers(run, described, linked=True)}
        _check_media(run, expected, str(published))
    check_log(log_files(run.folder), expected, _REMEDY)
    _check_asked_examples(run)
    if asks_in_steps(run.task):
        _check_steps(run)


def _check_media(run: ScoredRun, expected: Expected, published: str) -> None:
    """Refuse answers if their pictures or times differ from the published set's pictures or times for the same
    questions.
    """
    media: dict[str, set[str]] = defaultdict(set)
    for line in expected.values():
        media[line.example].add(line.media)
    records = (sample.record for sample in run.samples if sample.record.is_finished)
    unknown = [record for record in records if record.key not in expected]
    others = {record.example_id for record in unknown if record.media not in media[record.example_id]}
    if unknown:
        what = "media" if others else "times"
        names = others or {record.example_id for record in unknown}
        kind = ", whose media are frames of videos" if run.examples.is_linked else ""
        raise DataError(
            f"{run.folder}: {len(names)} of {len(run.examples)} examples were shown other {what} than in "
            f"{published}{kind}, first {min(names)!r:.200}. Fix: run on the published dataset"
        )


def check_adapter(run: ScoredRun, adapter: str) -> None:
    """Refuse a run whose record of its adapter differs from the adapter itself. `adapter` is a folder or a Hub id.

    Raises:
        DataError: the run used another adapter, or its record leaves out training videos of this adapter.
        ModelError: there is no such adapter.
    """
    where, described, folder = str(run.folder / CONFIG_FILE), read_run(run.folder), fetch_adapter(adapter)
    if described.identity.model.settings.get("adapter") != adapter_hash(folder):
        raise DataError(
            f"{where}: identity.model.settings.adapter: is not the hash of {adapter}. "
            "Fix: name the adapter that was run"
        )
    training = adapter_videos(str(folder))
    if training and (left_out := training.videos.difference(described.training_videos)):
        raise DataError(
            f"{where}: training_videos: lacks {len(left_out)} of the ones in {folder / VIDEOS_FILE}. Fix: run again"
        )


def _expected_answers(run: ScoredRun, described: RunDescription, *, linked: bool) -> Expected:
    """Return the answers that the run's log may hold. `linked` tells whether media are identified as in a linked set.

    Raises DataError if `run.json` differs from the dataset.
    """
    model = described.identity.model
    is_timed = tells_own_times(ModelIdentity(**model.asked_as))
    inputs = asked_inputs(run.task, run.examples, model.box_format.format, timed=is_timed, linked=linked)
    identity = described.identity
    derived = run_description(
        run.folder,
        run.task,
        content_hash=run.examples.content_hash,
        prompts_hash=prompts_digest(inputs),
        model=ModelIdentity(**identity.model.asked_as),
        box_format=identity.model.box_format.format,
        generation=identity.generation,
        repetitions=described.repetitions,
        data=described.data,
        split=run.examples.split,
        training_videos=described.training_videos,
    )
    said, given = ({"protocol": each.protocol, "identity": each.identity.model_dump()} for each in (described, derived))
    if difference := first_difference(said, given):
        raise DataError(f"{run.folder / CONFIG_FILE}: {difference} by the dataset. Fix: start a new run")
    key_of = sample_keys(identity.model.asked_as, identity.generation)
    return {
        key_of(example.example_id, own.fingerprint, number): AskedLine(
            example.example_id, number, own.fingerprint, own.prompt, own.media
        )
        for example, own in zip(run.examples.examples, inputs, strict=True)
        for number in range(described.repetitions if own.is_readable else 0)
    }


def _line(record: SampleRecord) -> AskedLine:
    return AskedLine(record.example_id, record.repetition, record.fingerprint, record.prompt, record.media)


def _check_asked_examples(run: ScoredRun) -> None:
    """Refuse a list of asked examples that differs from the examples of the run.

    Its fingerprints must match the log.
    """
    path = run.folder / INPUTS_FILE
    if others := read_inputs(run.folder).keys() ^ {example.example_id for example in run.examples.examples}:
        raise DataError(f"{path}: {min(others)!r:.200} is only in it, or only in the dataset. Fix: run again")


def _check_steps(run: ScoredRun) -> None:
    """Refuse samples whose answers, tokens or seconds differ from the logs of their steps."""
    earlier_steps = read_steps(run.folder)
    for record in (sample.record for sample in run.samples if sample.record.is_finished):
        steps = logged_steps(earlier_steps, record.key, record.fingerprint, record.example_id, record.repetition)
        earlier = record.earlier or ()
        if len(steps) == len(earlier):  # a refusal ends a sample and is not a step
            is_same = earlier == tuple(step.text or "" for step in steps)
        else:
            is_same = bool(steps) and _answer_of(record) == _answer_of(with_steps(steps[:-1], steps[-1]))
        if not is_same:
            raise DataError(
                f"{run.folder}: {record.example_id!r:.200} repetition {record.repetition} differs from its steps. "
                "Fix: start a new run"
            )


def _answer_of(record: SampleRecord) -> tuple[object, ...]:
    """Return the answer data of a sample, without its readability."""
    names = ("text", "earlier", "reasoning", "finish_reason", "note", "seconds", *TOKEN_COUNTS)
    return tuple(getattr(record, name) for name in names)


def _check_wording(task: Task, where: str) -> None:
    """Refuse a wording whose content does not match its name."""
    plain = get_task(task.benchmark, task.name).prompts
    prompts, released = task.prompts, get_benchmark(task.benchmark).released_texts
    if prompts.wording == plain.wording:
        is_true = prompts == plain
    elif released is not None and prompts.wording == released.wording:
        is_true = _texts(prompts) != _texts(plain)
    else:
        kind = prompts.wording.partition(":")[0]
        is_true = prompts.wording == hash_name(kind, prompts.sha256) and prompts.sha256 != plain.sha256
    if not is_true:
        raise DataError(
            f"{where}: prompts: are called {prompts.wording!r}, which they are not for this version of the package. "
            "Fix: run again"
        )


def _texts(prompts: PromptTexts) -> tuple[str, str, dict[str, str]]:
    return prompts.system, prompts.user, dict(prompts.extra)


def check_verdicts(run: ScoredRun, folder: Path, described: JudgeDescription) -> None:
    """Refuse a judge whose log has verdicts on answers of another run, or in another form.

    Raises:
        DataError: the log fails `check_log`, or `judge.json` does not describe a judge. The file is also refused if it
            names a rubric, prompt or steps that it does not hold, or claims to come with a run that was not imported.
    """
    where = str(folder / JUDGE_FILE)
    try:
        expected = _expected_verdicts(run, folder, described)
    except (KeyError, TypeError, ValidationError) as error:
        raise DataError(
            f"{where}: is not a description of a judge ({error!r:.200}). Fix: judge the run again"
        ) from error
    check_log([folder / VERDICTS_FILE], expected, "remove the judge's folder and judge the run again")


def _expected_verdicts(run: ScoredRun, folder: Path, described: JudgeDescription) -> Expected:
    method, where = described.identity["method"], str(folder / JUDGE_FILE)
    if method == RELEASED:
        if not run.task.prompts.wording.startswith(RELEASED_RUN):
            raise DataError(f"{where}: method: no verdicts came with this run. Fix: judge the run again")
        samples = [(sample.example.example_id, sample.record.repetition) for sample in run.samples]
        keys = {verdict_key(*sample, name): sample for sample in samples for name in described.criteria}
        return {key: AskedLine(*sample, key) for key, sample in keys.items()}
    if plain_json(asdict(described.config)) != described.generation:
        raise TypeError("generation: lacks settings")
    prompt = judge_prompts(REASONING if method == REASONING else "geval")
    if plain_json(asdict(prompt)) != described.prompt or described.identity["prompt"] != prompt.sha256:
        raise DataError(f"{where}: prompt: is not this package's. Fix: judge the run again")
    if method == REASONING:
        _check_rubric(described, (prompt.version, prompt.sha256, prompt.wording), where)
    else:
        _check_geval(run, folder, described, where)
    questions = judge_questions(described, RunAnswers.of(run).distinct)
    return {
        key: AskedLine(question.item, repetition, question.fingerprint, digest(question.prompt.as_text()))
        for question in questions
        for repetition, key in question.keys.items()
    }


def _check_geval(run: ScoredRun, folder: Path, described: JudgeDescription, where: str) -> None:
    rubric = Rubric.model_validate(described.rubric)
    packaged_rubric = load_rubric(run.task)
    if (rubric.wording == packaged_rubric.wording) != (
        rubric.model_copy(update={"wording": packaged_rubric.wording}) == packaged_rubric
    ):
        raise DataError(f"{where}: rubric: is called {rubric.wording!r}, but differs. Fix: judge the run again")
    _check_rubric(described, (rubric.version, rubric.sha256, rubric.wording), where)
    steps = {criterion.name: tuple(criterion.steps) for criterion in rubric.criteria}
    if described.identity["steps"] == "generate":
        steps = read_frozen_steps(folder / STEPS_FILE, rubric)
    if described.steps != steps:
        raise DataError(f"{where}: steps: differ from the rubric's and from {STEPS_FILE}. Fix: judge the run again")


def _check_rubric(described: JudgeDescription, expected: tuple[int, str, str], where: str) -> None:
    stored = (described.rubric["version"], described.identity["rubric"], described.rubric["wording"])
    if stored != expected:
        raise DataError(f"{where}: rubric: is called {stored}, but is {expected}. Fix: judge the run again")
