"""Rows of a submission, read from run folders: every figure is made anew from the log, and nothing else is believed.

Every line of the log must answer what this run asks: keys and fingerprints are made anew from the dataset, the wording
and the settings that are named, and each finished line must have one of them: answers to other questions, of other
examples, models, settings or runs have none. That a model gave the answers is not shown by this, nor can it be.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ValidationError

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.core.prompt import PromptTexts, hash_name
from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.hub.checks import count_open_verdicts, is_floor, leaderboard_name, published
from barista_bench.judging.answers import REASONING, RunAnswers
from barista_bench.judging.forms import judge_prompts
from barista_bench.judging.judge_folder import VERDICTS_FILE, JudgeDescription, read_judge
from barista_bench.judging.released_verdicts import METHOD as RELEASED, verdict_key
from barista_bench.judging.results import MEAN, JudgedResults, read_judged
from barista_bench.judging.rubric import Rubric, load_rubric
from barista_bench.judging.scoring import read_judged_run
from barista_bench.judging.session import judge_questions
from barista_bench.models import ModelIdentity
from barista_bench.models.base import tells_own_times
from barista_bench.runs.log.inputs import asked_inputs, plain_json, prompts_digest, sample_keys
from barista_bench.runs.log.sample_log import decode_record, log_files, whole_lines
from barista_bench.runs.run_folder import CONFIG_FILE, JUDGE_FILE, read_run, run_description
from barista_bench.runs.score.results import RESULTS_FILE, Figure, Results, read_results
from barista_bench.runs.score.scoring import ScoredRun, read_scored

JUDGED_PATTERN: Final = f"judges/*/{RESULTS_FILE}"


def _judge_file(run: ScoredRun, judge: str | None) -> Path:
    """The results of the judge whose figures stand for those of a run."""
    folder = run.folder
    paths = sorted(folder.glob(JUDGED_PATTERN))
    if not paths:
        raise DataError(
            f"{folder}: {run.results.primary} counts shared words: a floor, and no number to publish for "
            f"{run.task.name}. Remedy: have it judged first: `barista-bench judge {folder} --judge ...`"
        )
    judges = {path: read_judged(path).judge.name for path in paths}
    if judge is None and len(paths) > 1:
        # A floor beside one real judge leaves nothing to choose.
        judges = {path: name for path, name in judges.items() if name != "lexical"}
    elif judge is not None:
        judges = {path: name for path, name in judges.items() if judge in (name, path.parent.name)}
    if len(judges) != 1:
        names = ", ".join(sorted(path.parent.name for path in (judges or paths)))
        trouble = "has no judge" if judge is not None and not judges else "has several judges"
        raise DataError(f"{folder}: {trouble}{f' {judge!r}' if judge else ''}. Remedy: give --judge, one of {names}")
    (path,) = judges
    return path


def check_verdicts(run: ScoredRun, folder: Path, described: JudgeDescription) -> None:
    """Refuse a judge whose log holds verdicts on anything else than the run's answers, or by another form.

    Raises:
        DataError: as `check_answers`; or `judge.json` names another rubric than it holds, or what is not a rubric.
    """
    where = str(folder / JUDGE_FILE)
    try:
        expected = _expected_verdicts(run, described, where)
    except (KeyError, TypeError, ValidationError) as error:
        raise DataError(
            f"{where}: is not a description of a judge ({error!r:.200}). Remedy: judge the run anew"
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
        packaged_rubric = load_rubric(run.task)
        if (rubric.wording == packaged_rubric.wording) != (
            rubric.model_copy(update={"wording": packaged_rubric.wording}) == packaged_rubric
        ):
            raise DataError(f"{where}: rubric: is called {rubric.wording!r}, which it is not. Remedy: judge anew")
        _check_rubric(described, (rubric.version, rubric.sha256, rubric.wording), where)
    questions = judge_questions(described, RunAnswers.of(run).distinct)
    return {
        key: AskedLine(question.item, draw, question.fingerprint)
        for question in questions
        for draw, key in question.keys.items()
    }


def _check_rubric(described: JudgeDescription, expected: tuple[int, str, str], where: str) -> None:
    stored = (described.rubric["version"], described.identity["rubric"], described.rubric["wording"])
    if stored != expected:
        raise DataError(f"{where}: rubric: is called {stored}, but is {expected}. Remedy: judge the run anew")


def refuse_difference(stored: BaseModel, derived: BaseModel, path: Path) -> None:
    """Raises DataError, which names the first field that a file has otherwise than its log and dataset give it."""
    difference = first_difference(*(json.loads(json.dumps(each.model_dump(mode="json"))) for each in (stored, derived)))
    if difference:
        raise DataError(
            f"{path}: {difference}, which is what the log and the dataset give. Remedy: score the run again"
        )


class AskedLine(NamedTuple):
    """The question of one line of a log: `example` of a run, or what a judge was shown; `number` of the run or draw."""

    example: str
    number: int
    fingerprint: str


Expected = Mapping[str, AskedLine]
"""All lines that may stand in a log, by key."""


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
                if not record.is_finished:
                    continue
                if expected.get(record.key) != (record.example_id, record.run, record.fingerprint):
                    raise DataError(
                        f"{where}: answers something else than is asked here ({record.example_id!r:.80}, run or draw "
                        f"{record.run}). Remedy: {remedy}"
                    )
                content = hashlib.sha256(line).digest()
                if answers.setdefault(record.key, content) != content:
                    raise DataError(f"{where}: is a second answer to a question answered before. Remedy: {remedy}")


def first_difference(stored: object, derived: object, path: str = "") -> str | None:
    """`field: is this, not that` of the first difference of two JSON values; None where they are equal."""
    if isinstance(stored, dict) and isinstance(derived, dict):
        for name in sorted({*stored, *derived}):
            inner = first_difference(stored.get(name), derived.get(name), f"{path}.{name}" if path else str(name))
            if inner:
                return inner
        return None
    return None if stored == derived else f"{path}: is {stored!r:.80}, not {derived!r:.80}"


IMPORTED = ("released run:", "recorded:")
"""Beginnings of the wordings of runs that other harnesses asked: what they asked is not known here."""


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """One task's results. `judged` stands for the run's own figure in tasks that judges score."""

    folder: Path
    task: type[Task]
    results: Results
    judged: JudgedResults | None

    @property
    def figure(self) -> Figure:
        return self.judged.figures[MEAN] if self.judged else self.results.figures[self.results.primary]

    @property
    def metric(self) -> str:
        return "judge_score" if self.judged else self.results.primary

    @property
    def value(self) -> float:
        """0 to 100."""
        return published(self.figure.mean)

    @property
    def task_id(self) -> str:
        """The leaderboard. What is not comparable has boards of its own."""
        return leaderboard_name(self.results.comparability)

    @property
    def gaps(self) -> dict[str, str]:
        """Gaps of the row, and the remedy of each: samples, a judge's verdicts, or examples."""
        coverage, limit = self.results.coverage, self.results.dataset.limit
        gaps = {}
        if not coverage.is_complete:
            n_missing = coverage.missing
            gaps[f"{n_missing} of {coverage.expected} samples missing"] = "finish the run and score it"
        if self.judged:
            judged, remedy = self.judged.coverage, "finish `barista-bench judge`"
            if judged.judged < judged.expected:
                gaps[f"{judged.expected - judged.judged} of {judged.expected} answers not judged"] = remedy
            if verdicts := count_open_verdicts(self.judged):
                gaps[f"{verdicts} verdicts missing"] = remedy
        if limit is not None:
            gaps[f"cut to {limit} examples"] = "run without --limit"
        return gaps


def read_row(
    folder: Path,
    *,
    judge: str | None = None,
    data: str | Path | None = None,
    root: str | Path | None = None,
    dataset: str | Path | None = None,
) -> SubmissionRow:
    """A scored run folder as a row, which is written nowhere.

    Args:
        folder: with `run.json`, the log and `results.json`, which must say what the log says, to the last digit.
        judge: name of the judge whose figures count, where a run has several.
        data: where the dataset that was run lies now, if it has moved.
        root: where the videos of a linked set lie now, if they have moved.
        dataset: the dataset whose reference counts: a built folder, or as `open_examples` takes it; None for the
            run's own alone.

    Raises:
        DataError, ConfigError: a file is missing or broken, or any of log, figures, settings and dataset disagree.
    """
    stored = read_results(folder / RESULTS_FILE)
    run = read_scored(folder, data=data, root=root, options={})
    check_answers(run)
    refuse_difference(stored, run.results, folder / RESULTS_FILE)
    if dataset is not None:
        # The hash of a set leaves out what does not make a question: figures by group may hang on it all the same.
        reference = read_scored(folder, data=dataset, root=root, options={})
        refuse_difference(run.results, reference.results, folder / RESULTS_FILE)
        check_media(run, reference, str(dataset))
    judged = None
    if is_floor(run.results):
        path = _judge_file(run, judge)
        check_verdicts(run, path.parent, read_judge(path.parent))
        judged = read_judged_run(run, path.parent).results
        refuse_difference(read_judged(path), judged, path)
    return SubmissionRow(folder, type(run.task), run.results, judged)


def check_answers(run: ScoredRun) -> None:
    """Refuse a run whose log answers anything else than its `run.json` and its dataset ask.

    Raises:
        DataError: a line is damaged, answers something else, or answers again and differently; or `run.json` names
            another wording than it holds, or another identity than the dataset gives.
        ConfigError: the examples were frozen by another protocol.
    """
    where = str(run.folder / CONFIG_FILE)
    run.task.refuse_others(run.examples.examples)
    _check_wording(run.task, where)
    remedy = "name the dataset that was run with --data, or start the run anew with another --out"
    check_log(log_files(run.folder), _expected_answers(run, where), remedy)


def check_media(run: ScoredRun, published: ScoredRun, where: str) -> None:
    """Refuse a run that was shown other pictures than the same examples of the published dataset have.

    A run on frames of videos is held to the videos that the published pictures were made of.

    Raises:
        DataError: names the first example, or says that the published media cannot be read.
    """
    if is_imported(run.task):
        return
    linked = run.examples.is_linked
    own, theirs = (
        {example.example_id: asked for example, asked in zip(each.examples.examples, inputs, strict=True)}
        for each in (run, published)
        for inputs in [_inputs(each, linked=linked)]
    )
    for what, is_other in (
        ("of which the published set has no media that can be read", lambda name: theirs[name].media == UNREADABLE),
        ("were shown other media than the published set has", lambda name: own[name].media != theirs[name].media),
        ("were told other times", lambda name: own[name].fingerprint != theirs[name].fingerprint),
    ):
        if others := [name for name in own if is_other(name)]:
            raise DataError(
                f"{run.folder}: {len(others)} of {len(own)} examples {what} ({where}), first {others[0]!r:.200}. "
                "Remedy: run on the published dataset"
            )


def _check_wording(task: Task, where: str) -> None:
    """Refuse a wording that is not what it is called."""
    plain = get_task(task.benchmark, task.name).prompts
    prompts, code = task.prompts, get_benchmark(task.benchmark).released_code
    if prompts.wording == plain.wording:
        is_true = prompts == plain
    elif code is not None and prompts.wording == code.wording:
        is_true = _texts(prompts) != _texts(plain)
    else:
        kind = prompts.wording.partition(":")[0]
        is_true = prompts.wording == hash_name(kind, prompts.sha256)
    if not is_true:
        raise DataError(
            f"{where}: prompts: are called {prompts.wording!r}, which they are not for this version of the package. "
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
    model, box_format = identity.model.asked_as, identity.model.box_format.format
    inputs = asked_inputs(task, run.examples, box_format, timed=tells_own_times(ModelIdentity(**model)))
    derived = run_description(
        run.folder,
        task,
        content_hash=run.examples.content_hash,
        prompts_hash=prompts_digest(inputs),
        model=ModelIdentity(**model),
        box_format=box_format,
        generation=identity.generation,
        runs=described.runs,
        data=described.data,
        split=run.examples.split,
    )
    difference = first_difference(identity.model_dump(), derived.identity.model_dump())
    if difference:
        raise DataError(f"{where}: identity.{difference} by the dataset. Remedy: start the run anew")
    key_of = sample_keys(model, identity.generation)
    return {
        key_of(example.example_id, asked.fingerprint, number): AskedLine(example.example_id, number, asked.fingerprint)
        for example, asked in zip(run.examples.examples, inputs, strict=True)
        for number in range(described.runs)
    }
