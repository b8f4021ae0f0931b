"""What a log must show before figures made of it are published: every line answers what this run or judge asks.

Keys and fingerprints are made anew from the dataset, the wording and the settings that are named, and each finished
line must have one of them: answers to other questions, of other examples, models, settings or runs have none. That a
model gave the answers is not shown by this, nor can it be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.core.prompt import PromptTexts, by_hash
from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.judging.answers import REASONING, RunAnswers
from barista_bench.judging.forms import judge_prompts
from barista_bench.judging.judge_folder import JUDGE_FILE, VERDICTS_FILE, JudgeDescription, plain_json
from barista_bench.judging.released_verdicts import METHOD as RELEASED
from barista_bench.judging.released_verdicts import verdict_key
from barista_bench.judging.rubric import Rubric, load_rubric
from barista_bench.judging.session import judge_questions
from barista_bench.models import ModelIdentity
from barista_bench.runs.log.asked import asked_inputs, digest, sample_keys
from barista_bench.runs.log.sample_log import decode_record, log_files, whole_lines
from barista_bench.runs.run_folder import CONFIG_FILE, read_run, run_description
from barista_bench.runs.score.scoring import ScoredRun

IMPORTED = ("released run:", "recorded:")
"""How wordings of runs begin that other harnesses asked: what they asked is not known here."""


class AskedLine(NamedTuple):
    """What one line of a log answers: `example` of a run, or what a judge was shown; `number` of the run or draw."""

    example: str
    number: int
    fingerprint: str


Expected = Mapping[str, AskedLine]
"""By key, all that may stand in a log."""


def check_answers(run: ScoredRun) -> None:
    """Refuse a run whose log answers anything else than its `run.json` and its dataset ask.

    Raises:
        DataError: a line is damaged, answers something else, or answers again and differently; or `run.json` names
            another wording than it holds, or another identity than the dataset gives.
        ConfigError: the examples were frozen by another protocol.
    """
    where = f"{run.folder / CONFIG_FILE}"
    run.task.refuse_other_protocol(run.examples.examples)
    _check_wording(run.task, where)
    remedy = "name the dataset that was run with --data, or start the run anew with another --out"
    check_log(log_files(run.folder), _expected_answers(run, where), remedy)


def _check_wording(task: Task, where: str) -> None:
    """A wording must be what it is called."""
    plain = get_task(task.benchmark, task.name).prompts
    asked = task.prompts
    if asked.wording == plain.wording:
        is_true = asked == plain
    elif asked.wording == get_benchmark(task.benchmark).released_wording:
        is_true = _texts(asked) != _texts(plain)
    else:
        kind = asked.wording.partition(":")[0]
        is_true = asked.wording == by_hash(kind, asked.sha256)
    if not is_true:
        raise DataError(
            f"{where}: prompts: are called {asked.wording!r}, which they are not for this version of the package. "
            "Remedy: run again"
        )


def _texts(prompts: PromptTexts) -> tuple[str, str, dict[str, str]]:
    return prompts.system, prompts.user, dict(prompts.extra)


def _expected_answers(run: ScoredRun, where: str) -> Expected:
    described, task = read_run(run.folder), run.task
    identity = described.identity
    if task.prompts.wording.startswith(IMPORTED):
        records = [sample.record for sample in run.samples]
        return {record.key: AskedLine(record.example_id, record.run, record.fingerprint) for record in records}
    model, boxes = identity.model.asked_as, identity.model.boxes
    inputs = asked_inputs(task, run.examples, boxes)
    same = run_description(
        run.folder,
        task,
        content_hash=run.examples.content_hash,
        prompts_hash=digest(sorted(asked.prompt for asked in inputs)),
        model=ModelIdentity(**model),
        boxes=boxes,
        generation=identity.generation,
        runs=described.runs,
        data=described.data,
        split=run.examples.split,
    )
    difference = first_difference(identity.model_dump(), same.identity.model_dump())
    if difference:
        raise DataError(f"{where}: identity.{difference} by the dataset. Remedy: start the run anew")
    key_of = sample_keys(model, identity.generation)
    return {
        key_of(example.example_id, asked.fingerprint, number): AskedLine(example.example_id, number, asked.fingerprint)
        for example, asked in zip(run.examples.examples, inputs, strict=True)
        for number in range(described.runs)
    }


def check_verdicts(run: ScoredRun, folder: Path, described: JudgeDescription) -> None:
    """Refuse a judge whose log holds verdicts on anything else than the run's answers, or by another form.

    Raises:
        DataError: as `check_answers`; or `judge.json` names another rubric than it holds, or what is no rubric.
    """
    where = f"{folder / JUDGE_FILE}"
    try:
        expected = _expected_verdicts(run, described, where)
    except (KeyError, TypeError, ValidationError) as error:
        raise DataError(
            f"{where}: is no description of a judge ({error!r:.200}). Remedy: judge the run anew"
        ) from error
    check_log([folder / VERDICTS_FILE], expected, "remove the judge's folder and judge the run anew")


def _expected_verdicts(run: ScoredRun, described: JudgeDescription, where: str) -> Expected:
    method = described.identity["method"]
    if method == RELEASED:
        samples = [(sample.example.example_id, sample.record.run) for sample in run.samples]
        keys = {verdict_key(*sample, name): sample for sample in samples for name in described.criteria}
        return {key: AskedLine(*sample, key) for key, sample in keys.items()}
    if plain_json(asdict(described.config)) != described.generation:
        raise TypeError("generation: lacks settings")
    if method == REASONING:
        prompt = judge_prompts(REASONING)
        _check_rubric(described, (prompt.version, prompt.sha256, prompt.wording), where)
    else:
        rubric = Rubric.model_validate(described.rubric)
        ours = load_rubric(run.task)
        if (rubric.wording == ours.wording) != (rubric.model_copy(update={"wording": ours.wording}) == ours):
            raise DataError(f"{where}: rubric: is called {rubric.wording!r}, which it is not. Remedy: judge anew")
        _check_rubric(described, (rubric.version, rubric.sha256, rubric.wording), where)
    questions = judge_questions(described, RunAnswers.of(run).distinct)
    return {
        key: AskedLine(question.item, draw, question.fingerprint)
        for question in questions
        for draw, key in question.keys.items()
    }


def _check_rubric(described: JudgeDescription, wanted: tuple[int, str, str], where: str) -> None:
    named = (described.rubric["version"], described.identity["rubric"], described.rubric["wording"])
    if named != wanted:
        raise DataError(f"{where}: rubric: is called {named}, but is {wanted}. Remedy: judge the run anew")


def check_log(paths: Iterable[Path], expected: Expected, remedy: str) -> None:
    """Refuse logs that hold anything but expected answers, each once. Failures to answer are no answers.

    Raises:
        DataError: names the first line that is damaged, not expected, or another answer to what was answered before.
    """
    answers: dict[str, bytes] = {}
    for path in paths:
        with path.open("rb") as file:
            for number, (_, line) in enumerate(whole_lines(file), start=1):
                record = decode_record(line)
                where = f"{path}: line {number}"
                if record is None:
                    raise DataError(f"{where}: is damaged. Remedy: take it out, and ask for what is missing again")
                if not record.finished:
                    continue
                if expected.get(record.key) != (record.example_id, record.run, record.fingerprint):
                    raise DataError(
                        f"{where}: answers something else than is asked here ({record.example_id!r:.80}, run or draw "
                        f"{record.run}). Remedy: {remedy}"
                    )
                content = hashlib.sha256(line).digest()
                if answers.setdefault(record.key, content) != content:
                    raise DataError(f"{where}: is a second answer to a question answered before. Remedy: {remedy}")


def first_difference(named: object, derived: object, path: str = "") -> str | None:
    """`field: is this, not that` of the first difference of two JSON values; None where they are equal."""
    if isinstance(named, dict) and isinstance(derived, dict):
        for name in sorted({*named, *derived}):
            inner = first_difference(named.get(name), derived.get(name), f"{path}.{name}" if path else str(name))
            if inner:
                return inner
        return None
    return None if named == derived else f"{path}: is {named!r:.80}, not {derived!r:.80}"
