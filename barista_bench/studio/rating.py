"""The page on which a person rates answers as judges do: blind and by the rubric.

`compare judges` reads the ratings.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from barista_bench.benchmarks import get_task
from barista_bench.core.display import JudgedSample
from barista_bench.core.example import content_seed
from barista_bench.errors import BaristaError, DataError
from barista_bench.files.writing import atomic_write, locked_for_update
from barista_bench.judging.answers import RunAnswers, asks_for_reasons
from barista_bench.judging.cross import model_labels
from barista_bench.judging.human import Rating, read_ratings
from barista_bench.judging.rubric import TOP_SCORE, Rubric, load_rubric
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import ScoredRun, read_scored
from barista_bench.studio.workspace import BackgroundWork, Json, Routes, Workspace, sent_as

log = logging.getLogger(__name__)
_PLACEHOLDER = re.compile(r"\{\w+\}")
"""The part of a rubric's question that differs between examples; the reference has this part."""


class SentRating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Scores, by criterion, of the answer named by `answer`."""

    answer: str
    scores: dict[str, Annotated[int, msgspec.Meta(ge=0, le=TOP_SCORE)]]


@dataclass(frozen=True, slots=True)
class AnswerToRate:
    """One distinct answer, and the model, example id and run of every sample with this answer."""

    token: str
    shown: JudgedSample
    rubric: Rubric
    given_by: list[tuple[str, str, int]]


def runs_to_rate(workspace: Workspace) -> list[Path]:
    """Return the opened runs whose task has a rubric for judges."""
    return [folder for folder in workspace.runs if _rubric(folder) is not None]


class RatingRoutes(Routes):
    """Requests about the distinct answers of the opened runs, in a separate order for each person."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.out / f"ratings-{workspace.person}.jsonl"
        self._lock = threading.Lock()
        self._answers: list[AnswerToRate] | None = None
        self._problems: list[str] = []
        self._starting = threading.Lock()
        self._reading: BackgroundWork | None = None
        self._read_count = self._run_count = 0
        self.reads = {
            "/api/rating": lambda query: self._next_answer(),
            "/api/rating/progress": lambda query: self._progress(),
        }
        self.writes = {"/api/rating/scores": lambda body: self._rate(sent_as(SentRating, body))}

    def _progress(self) -> Json:
        """Return how many runs are read and scored; the first call starts reading."""
        with self._starting:
            if self._reading is None:
                self._run_count = len(runs_to_rate(self._workspace))
                self._reading = BackgroundWork(lambda work: self._answers_to_rate(), self._lock)
        return {"scored": self._read_count, "runs": self._run_count, **self._reading.progress}

    def _next_answer(self) -> Json:
        """Return the next answer as a judge sees it, without its author and without other people's ratings.

        Raises DataError if the file of ratings cannot be read.
        """
        with self._lock:
            answers = self._answers_to_rate()
            current, stale = self._split_stale(self._ratings())
            unrated = [answer for answer in answers if not _rows(answer) <= _keys(current)]
            state = {"done": len(answers) - len(unrated), "total": len(answers), "kept": str(self._file)}
            changed = [f"{len(stale)} of your ratings are of answers that have changed since: they do not count"]
            problems = self._problems + (changed if stale else [])
            return {**(_question_fields(unrated[0]) if unrated else {}), **state, "problems": problems}

    def _rate(self, sent: SentRating) -> Json:
        """Add the scores of one answer, replace the complete file, and return the next answer.

        Raises DataError for an unknown answer, or for a criterion without a score.
        """
        with self._lock:
            answer = next((answer for answer in self._answers_to_rate() if answer.token == sent.answer), None)
            if answer is None:
                raise DataError("no such answer is open. Fix: load the page again")
            if set(sent.scores) != set(answer.rubric.names):
                raise DataError(f"scores are needed for {', '.join(answer.rubric.names)}. Fix: give one for each")
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with locked_for_update(self._file) as file:
                ratings, stale = self._split_stale(self._ratings())
                keys = _rows(answer) - _keys(ratings)
                # Stale ratings with the same key are replaced.
                ratings += [rating for rating in stale if _key(rating) not in keys]
                for model, example_id, repetition, criterion in sorted(keys):
                    score = sent.scores[criterion]
                    ratings.append(Rating(example_id, criterion, score, model, repetition, answer.token))
                with atomic_write(file, durable=True) as partial:
                    partial.write_bytes(msgspec.json.Encoder().encode_lines(ratings))
        return self._next_answer()

    def _ratings(self) -> list[Rating]:
        return read_ratings(self._file) if self._file.exists() else []

    def _split_stale(self, ratings: list[Rating]) -> tuple[list[Rating], list[Rating]]:
        """Return valid ratings, including ratings of other runs, and ratings whose answer has changed since."""
        tokens = {(model, name, run): a.token for a in self._answers_to_rate() for model, name, run in a.given_by}
        current, stale = list[Rating](), list[Rating]()
        for rating in ratings:
            token = tokens.get((str(rating.model), rating.example_id, rating.repetition), rating.answer)
            (current if rating.is_of(token) else stale).append(rating)
        return current, stale

    def _answers_to_rate(self) -> list[AnswerToRate]:
        if self._answers is None:
            distinct: dict[tuple[str, str], AnswerToRate] = {}
            runs = list(self._scored_runs())
            for run, label in zip(runs, model_labels(runs), strict=True):
                rubric, answers = load_rubric(run.task), RunAnswers.of(run)
                for sample, answer in zip(answers.samples, answers.answers, strict=True):
                    if answer is not None and isinstance(answer.shown, JudgedSample):
                        new = AnswerToRate(answer.token, answer.shown, rubric, [])
                        distinct.setdefault((run.task.name, answer.item), new).given_by.append((label, *sample.name))
            person = self._workspace.person
            self._answers = sorted(distinct.values(), key=lambda answer: content_seed("rate", person, answer.token))
        return self._answers

    def _scored_runs(self) -> Iterator[ScoredRun]:
        for folder in runs_to_rate(self._workspace):
            try:
                yield read_scored(folder, options={})
            except BaristaError as error:
                log.warning("%s: not rated: %s", folder, error)
                self._problems.append(str(error))
            self._read_count += 1


def _rubric(folder: Path) -> Rubric | None:
    """Return the rubric of a run's task; None if judges do not score the task, or score only its reasons.

    The result is also None for broken runs, which the report shows.
    """
    try:
        identity = read_run(folder).identity
        task = get_task(identity.benchmark, identity.task)
        return None if asks_for_reasons(task) else load_rubric(task)
    except BaristaError:
        return None


def _question_fields(answer: AnswerToRate) -> Json:
    rubric = answer.rubric
    return {
        "answer": answer.token,
        "introduction": rubric.introduction + rubric.vocabulary_text,
        "asked": _PLACEHOLDER.sub("…", rubric.question or answer.shown.question),
        "reference": answer.shown.reference,
        "text": answer.shown.answer,
        "criteria": [{"name": c.name, "text": c.text, "scale": c.scale} for c in rubric.criteria],
        "top": TOP_SCORE,
    }


def _rows(answer: AnswerToRate) -> set[tuple[str, str, int, str]]:
    return {(*given, criterion) for given in answer.given_by for criterion in answer.rubric.names}


def _keys(ratings: list[Rating]) -> set[tuple[str | None, str, int, str]]:
    return {_key(rating) for rating in ratings}


def _key(rating: Rating) -> tuple[str | None, str, int, str]:
    return rating.model, rating.example_id, rating.repetition, rating.criterion
