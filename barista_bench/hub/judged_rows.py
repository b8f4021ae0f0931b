"""The judge's part of a row: its log must hold verdicts on the answers of this run, by the form that it names.

Imported where a run's own figure is a floor, and a judge's stands for it.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from barista_bench.errors import DataError
from barista_bench.hub.log_checks import AskedLine, Expected, check_log, refuse_difference
from barista_bench.judging.answers import REASONING, RunAnswers
from barista_bench.judging.forms import judge_prompts
from barista_bench.judging.judge_folder import VERDICTS_FILE, JudgeDescription, read_judge
from barista_bench.judging.released_verdicts import METHOD as RELEASED, verdict_key
from barista_bench.judging.results import JudgedResults, read_judged
from barista_bench.judging.rubric import Rubric, load_rubric
from barista_bench.judging.scoring import read_judged_run
from barista_bench.judging.session import judge_questions
from barista_bench.runs.log.asked import plain_json
from barista_bench.runs.run_folder import JUDGE_FILE
from barista_bench.runs.score.results import RESULTS_FILE
from barista_bench.runs.score.scoring import ScoredRun

JUDGED_PATTERN: Final = f"judges/*/{RESULTS_FILE}"


def judged_results(run: ScoredRun, wanted: str | None) -> JudgedResults:
    """The judge's figures that stand for a run whose own are a floor."""
    path = _judge_of(run, wanted)
    check_verdicts(run, path.parent, read_judge(path.parent))
    derived = read_judged_run(run, path.parent).results
    refuse_difference(read_judged(path), derived, path)
    return derived


def _judge_of(run: ScoredRun, wanted: str | None) -> Path:
    folder = run.folder
    paths = sorted(folder.glob(JUDGED_PATTERN))
    if not paths:
        raise DataError(
            f"{folder}: {run.results.primary} counts shared words: a floor, and no number to publish for "
            f"{run.task.name}. Remedy: have it judged first: `barista-bench judge {folder} --judge ...`"
        )
    judges = {path: read_judged(path).judge.name for path in paths}
    if wanted is None and len(paths) > 1:
        # A floor beside one real judge leaves nothing to choose.
        judges = {path: name for path, name in judges.items() if name != "lexical"}
    if wanted is not None:
        judges = {path: name for path, name in judges.items() if wanted in (name, path.parent.name)}
    if len(judges) != 1:
        known = ", ".join(sorted(path.parent.name for path in (judges or paths)))
        trouble = "has no judge" if wanted is not None and not judges else "has several judges"
        raise DataError(f"{folder}: {trouble}{f' {wanted!r}' if wanted else ''}. Remedy: give --judge, one of {known}")
    (path,) = judges
    return path


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
