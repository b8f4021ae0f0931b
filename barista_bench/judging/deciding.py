"""Compare a judged run with another judged run or a threshold, from fewer verdicts (`runs/decide`).

The score of a repetition is the mean over its answers that can be judged. The score of a run is the mean over
repetitions. The answers to judge are known before the judge is asked. So each example adds a known weight times its
verdicts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from barista_bench.core.statistics import Floats
from barista_bench.errors import DataError
from barista_bench.judging.answers import DistinctAnswer, RunAnswers, asks_for_reasons
from barista_bench.judging.config import JudgeConfig
from barista_bench.judging.judge_folder import VERDICTS_FILE, JudgeDescription, read_judge
from barista_bench.judging.judged_run import MISSING, LogVerdicts
from barista_bench.judging.results import MEAN
from barista_bench.judging.scoring import read_judged_run, read_replies
from barista_bench.runs.decide.contest import Contest, Rival
from barista_bench.runs.decide.opening import read_rival, rival_folder, short_label, unit_names
from barista_bench.runs.decide.order import AskingOrder
from barista_bench.runs.decide.stopping import Stopping, WatchedContest
from barista_bench.runs.log.sample_log import counting_records
from barista_bench.runs.run_folder import JUDGES
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.runs.score.stopping import StoppedRun, write_decision


class WatchedJudge(WatchedContest):
    """The contest of one judged run, and the folder of its judge."""

    def __init__(self, contest: Contest, run: ScoredRun, folder: Path, description: JudgeDescription) -> None:
        super().__init__(contest, [example.video_id for example in run.examples.examples])
        self._run, self._folder, self._description = run, folder, description
        self._taken: set[int] = set()

    def read(self) -> None:
        verdicts = read_replies(self._run, self._description, counting_records(self._folder / VERDICTS_FILE))
        terms, asked = example_terms(self._run, verdicts)
        for position in range(len(self.is_asked)):
            self.is_asked[position] = position not in asked or asked[position]
        for position in terms.keys() - self._taken:
            self._taken.add(position)
            self.contest.add(position, terms[position], 1.0)

    def write(self, decision: StoppedRun) -> str:
        write_decision(self._folder, decision)
        return decision.sentence(short_label(self._run))


def open_stopping(config: JudgeConfig, run: ScoredRun, folder: Path, description: JudgeDescription) -> Stopping | None:
    """Return the contest of a judge that may stop early, or None for a judge that grades all answers.

    Raises:
        DataError: the run is incomplete, or this judge has not judged the run to compare with.
    """
    if config.goal is None:
        return None
    if run.results.coverage.missing:
        raise DataError(f"{config.run}: is incomplete. Fix: finish the run, then judge it")
    count, rival = len(run.examples), None
    if config.against is not None:
        other = read_rival(rival_folder(config.against, run.task), run.task, run.examples, config.data, config.root)
        rival = _rival(other, other.folder / JUDGES / folder.name)
    order = AskingOrder.of(run.examples.content_hash, unit_names(run.task, run.examples, config.goal))
    least, most = np.column_stack([np.zeros(count), np.ones(count)]), np.ones((count, 2))
    most[:, 0] = answer_weights(run).sum(axis=1)
    contest = Contest(config.goal, order, least, most, metric=f"{MEAN} of the judge", rival=rival)
    return Stopping([WatchedJudge(contest, run, folder, description)], config.alpha)


def answers_by_block(run: ScoredRun, stopping: Stopping | None) -> Iterator[Sequence[DistinctAnswer]]:
    """Yield each answer to grade once: all answers together, or block by block until the score is decided."""
    answers = RunAnswers.of(run)
    if stopping is None:
        yield answers.distinct
        return
    positions = {example.example_id: index for index, example in enumerate(run.examples.examples)}
    blocks: dict[int, dict[str, DistinctAnswer]] = defaultdict(dict)
    seen = set[str]()
    block_of = stopping.watched[0].contest.order.block_of
    in_order = sorted(
        zip(answers.samples, answers.answers, strict=True),
        key=lambda pair: block_of[positions[pair[0].example.example_id]],
    )
    for sample, answer in in_order:
        if answer and answer.item not in seen:
            seen.add(answer.item)
            blocks[block_of[positions[sample.example.example_id]]][answer.item] = answer
    for block, _ in stopping.open_blocks():
        yield list(blocks[block].values())


def answer_weights(run: ScoredRun) -> Floats:
    """Return the weight of each answer (E, R): how much a full score adds to E times the run's score.

    The weight is 0 if there is nothing to judge.
    """
    answers, by_rule = RunAnswers.of(run), asks_for_reasons(run.task)
    counts: Counter[int] = Counter()
    counting = [(s, s.record.repetition) for s, a in zip(answers.samples, answers.answers, strict=True) if a or by_rule]
    counts.update(number for _, number in counting)
    positions = {example.example_id: index for index, example in enumerate(run.examples.examples)}
    weights = np.zeros((len(positions), run.results.repetitions))
    for sample, number in counting:
        weights[positions[sample.example.example_id], number] = len(positions) / (len(counts) * counts[number])
    return weights


def example_terms(run: ScoredRun, verdicts: LogVerdicts) -> tuple[Mapping[int, float], Mapping[int, bool]]:
    """Return two mappings from the position of an example.

    The first holds its part of the score if all its verdicts are usable. The second tells whether all its verdicts were
    requested.
    """
    weights = answer_weights(run)
    positions = {example.example_id: index for index, example in enumerate(run.examples.examples)}
    terms, asked, usable = defaultdict[int, float](float), dict[int, bool](), dict[int, bool]()
    for sample, of_sample, value in zip(
        verdicts.samples, verdicts.verdicts, verdicts.metrics[MEAN].values, strict=True
    ):
        index = positions[sample.example.example_id]
        asked[index] = asked.get(index, True) and all(verdict.status != MISSING for verdict in of_sample)
        usable[index] = usable.get(index, True) and all(verdict.score is not None for verdict in of_sample)
        terms[index] += weights[index, sample.record.repetition] * (value or 0.0) / verdicts.scale
    return {index: term for index, term in terms.items() if usable[index]}, asked


def _rival(run: ScoredRun, folder: Path) -> Rival:
    """Return the judged run to compare with. Raises DataError if this judge has not graded that run completely."""
    if not folder.is_dir():
        raise DataError(f"{run.folder}: is not judged by {folder.name}. Fix: judge it with the same settings first")
    judged = read_judged_run(run, folder)
    if missing := judged.results.coverage.verdicts[MISSING]:
        raise DataError(f"{folder}: {missing} verdicts are missing. Fix: judge this run to the end first")
    verdicts = read_replies(run, read_judge(folder), counting_records(folder / VERDICTS_FILE))
    terms, _ = example_terms(run, verdicts)
    # An example without a usable verdict does not change the terms.
    parts = np.array([terms.get(index, np.nan) for index in range(len(run.examples))])
    offsets = np.nan_to_num(parts - np.nanmean(parts))
    return Rival(short_label(run), judged.results.metrics[MEAN].mean, offsets - offsets.mean())
