"""Check a judge's verdicts against the run's answers and against the judge's form."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError

from barista_bench.core.leaderboards import RELEASED_RUN
from barista_bench.errors import DataError
from barista_bench.hub.log_checks import AskedLine, Expected, check_log
from barista_bench.judging.answers import REASONING, RunAnswers
from barista_bench.judging.forms import judge_prompts
from barista_bench.judging.judge_folder import VERDICTS_FILE, JudgeDescription
from barista_bench.judging.released_verdicts import METHOD as RELEASED, verdict_key
from barista_bench.judging.rubric import Rubric, load_rubric
from barista_bench.judging.session import STEPS_FILE, judge_questions, read_frozen_steps
from barista_bench.runs.log.inputs import digest, plain_json
from barista_bench.runs.run_folder import JUDGE_FILE
from barista_bench.runs.score.scoring import ScoredRun


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
