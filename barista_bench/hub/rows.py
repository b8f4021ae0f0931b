"""From a run folder to a row of a submission: every figure is made anew from the log, and nothing else is believed.

Every line of the log must answer what this run asks: keys and fingerprints are made anew from the dataset, the wording
and the settings that are named, and each finished line must have one of them: answers to other questions, of other
examples, models, settings or runs have none. That a model gave the answers is not shown by this, nor can it be.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.core.prompt import PromptTexts, by_hash
from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.hub.checks import is_floor, leaderboard, open_verdicts, published
from barista_bench.hub.judged_rows import judged_results
from barista_bench.hub.log_checks import AskedLine, Expected, check_log, first_difference, refuse_difference
from barista_bench.judging.results import MEAN, JudgedResults
from barista_bench.models import ModelIdentity
from barista_bench.models.videos import tells_own_times
from barista_bench.runs.log.asked import asked_inputs, prompts_digest, sample_keys
from barista_bench.runs.log.sample_log import log_files
from barista_bench.runs.run_folder import CONFIG_FILE, read_run, run_description
from barista_bench.runs.score.results import RESULTS_FILE, Figure, Results, read_results
from barista_bench.runs.score.scoring import ScoredRun, read_scored

IMPORTED = ("released run:", "recorded:")
"""How wordings of runs begin that other harnesses asked: what they asked is not known here."""


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
        return leaderboard(self.results.comparability)

    @property
    def missing(self) -> dict[str, str]:
        """Gaps of the row, and the remedy of each: samples, a judge's verdicts, or examples."""
        coverage, limit = self.results.coverage, self.results.dataset.limit
        missing = {}
        if not coverage.complete:
            lacking = coverage.missing
            missing[f"{lacking} of {coverage.expected} samples missing"] = "finish the run and score it"
        if self.judged:
            judged, remedy = self.judged.coverage, "finish `barista-bench judge`"
            if judged.judged < judged.expected:
                missing[f"{judged.expected - judged.judged} of {judged.expected} answers not judged"] = remedy
            if verdicts := open_verdicts(self.judged):
                missing[f"{verdicts} verdicts missing"] = remedy
        if limit is not None:
            missing[f"cut to {limit} examples"] = "run without --limit"
        return missing


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
    judged = None
    if is_floor(run.results):
        judged = judged_results(run, judge)
    return SubmissionRow(folder, type(run.task), run.results, judged)


def check_answers(run: ScoredRun) -> None:
    """Refuse a run whose log answers anything else than its `run.json` and its dataset ask.

    Raises:
        DataError: a line is damaged, answers something else, or answers again and differently; or `run.json` names
            another wording than it holds, or another identity than the dataset gives.
        ConfigError: the examples were frozen by another protocol.
    """
    where = f"{run.folder / CONFIG_FILE}"
    run.task.refuse_others(run.examples.examples)
    _check_wording(run.task, where)
    remedy = "name the dataset that was run with --data, or start the run anew with another --out"
    check_log(log_files(run.folder), _expected_answers(run, where), remedy)


def _check_wording(task: Task, where: str) -> None:
    """A wording must be what it is called."""
    plain = get_task(task.benchmark, task.name).prompts
    asked, code = task.prompts, get_benchmark(task.benchmark).released_code
    if asked.wording == plain.wording:
        is_true = asked == plain
    elif code is not None and asked.wording == code.wording:
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
    model, box_format = identity.model.asked_as, identity.model.box_format.parsed
    inputs = asked_inputs(task, run.examples, box_format, timed=tells_own_times(ModelIdentity(**model)))
    same = run_description(
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
    difference = first_difference(identity.model_dump(), same.identity.model_dump())
    if difference:
        raise DataError(f"{where}: identity.{difference} by the dataset. Remedy: start the run anew")
    key_of = sample_keys(model, identity.generation)
    return {
        key_of(example.example_id, asked.fingerprint, number): AskedLine(example.example_id, number, asked.fingerprint)
        for example, asked in zip(run.examples.examples, inputs, strict=True)
        for number in range(described.runs)
    }
