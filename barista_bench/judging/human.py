"""Measure how well judges agree with people who rated some of the answers.

A file of ratings is CSV with a header, or JSONL. Its fields are `example_id`, `criterion`, `score` (0 to 10), and if
needed `model` and `run` (0 if absent). Judges' scores are rounded to whole points before the comparison.
"""

from __future__ import annotations

import csv
import io
import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import read_bounded_text
from barista_bench.judging.answers import RunAnswers
from barista_bench.judging.cross import label_runs
from barista_bench.judging.judged_run import JudgedRun, raw_scores
from barista_bench.metrics.judge_score.agreement import judge_agreement

log = logging.getLogger(__name__)

MAX_BYTES = 64 * 2**20


class Rating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rating of one answer by one person, 0 to 10.

    `answer` is the `DistinctAnswer.token` of the rated answer, or None if the file lacks it. It reveals that an answer
    has changed since the rating. Such ratings are ignored.
    """

    example_id: str
    criterion: str
    score: int
    model: str | None = None
    repetition: int = 0
    answer: str | None = None

    def is_of(self, token: str | None) -> bool:
        """Return whether the rating belongs to the current answer."""
        return self.answer in (None, token)


class HumanAgreement(msgspec.Struct, frozen=True):
    """Agreement of a judge with people on one criterion, over the rated answers with a verdict of the judge.

    Args:
        rated: number of answers that people rated. `n` of these answers have a verdict.
        exact, within_1: fractions of equal scores, and of scores at most one point apart.
        qwk: Cohen's kappa with quadratic weights, or None if it is undefined.
        shift: mean of the judge's score minus people's score, in points.
    """

    judge: str
    criterion: str
    rated: int
    n: int
    exact: float | None
    within_1: float | None
    qwk: float | None
    shift: float | None


def read_ratings(path: str | Path) -> list[Rating]:
    """Return the ratings of a CSV or JSONL file.

    Raises DataError if the file cannot be read, a line is not a rating, or an answer is rated twice. The message names
    the line.
    """
    path = Path(path)
    text = read_bounded_text(path, MAX_BYTES, remedy="name a CSV or JSONL file of ratings", encoding="utf-8-sig")
    ratings: dict[tuple[str | None, str, int, str], Rating] = {}
    for number, rating in (_csv_ratings if path.suffix.lower() == ".csv" else _jsonl_ratings)(path, text):
        key = (rating.model, rating.example_id, rating.repetition, rating.criterion)
        if not 0 <= rating.score <= 10:
            raise DataError(f"{path}: line {number}: score is {rating.score}. Fix: give 0 to 10")
        if key in ratings:
            raise DataError(f"{path}: line {number}: {key} is rated twice. Fix: give one rating per answer")
        ratings[key] = rating
    return list(ratings.values())


def human_agreement(judged_runs: Sequence[JudgedRun], ratings: Sequence[Rating]) -> list[HumanAgreement]:
    """Return how well each judge agrees with people. Ratings of answers that have changed are left out, with a warning.

    Raises ConfigError if no judged answer is rated, a run is given twice, or several models were judged and a rating
    names no model.
    """
    labels = label_runs(judged_runs)
    models = {label.model for label in labels}
    if len(models) > 1 and any(rating.model is None for rating in ratings):
        raise ConfigError(f"ratings name no model, but {len(models)} were judged. Fix: add a column model")
    pairs: dict[tuple[str, str], list[tuple[float | None, int]]] = defaultdict(list)
    stale = set[Rating]()
    for label in labels:
        verdicts, finished = label.judged_run.verdicts, RunAnswers.of(label.judged_run.run)
        answers = zip(finished.samples, finished.answers, strict=True)
        tokens = {sample.name: answer.token if answer else None for sample, answer in answers}
        for rating in ratings:
            sample_name = (rating.example_id, rating.repetition)
            is_judged = rating.model in (None, label.model) and sample_name in verdicts
            if is_judged and not rating.is_of(tokens.get(sample_name)):
                stale.add(rating)
            elif is_judged and rating.criterion in label.results.rubric.criteria:
                score = raw_scores(verdicts[sample_name]).get(rating.criterion)
                pairs[label.judge, f"{label.task}: {rating.criterion}"].append((score, rating.score))
    if stale:
        log.warning("%d ratings are of answers that have changed since: not counted. Fix: rate them", len(stale))
    if not pairs:
        raise ConfigError("no rating belongs to a judged answer. Fix: check example_id, run and criterion")
    return [_agreement(judge, criterion, scores) for (judge, criterion), scores in pairs.items()]


def _agreement(judge: str, criterion: str, pairs: Sequence[tuple[float | None, int]]) -> HumanAgreement:
    judges = [None if score is None else math.floor(score + 0.5) for score, _ in pairs]
    people = [person for _, person in pairs]
    pair = judge_agreement({"judge": judges, "people": people}, judges=["judge", "people"])["pairs"][0]
    shifts = [score - person for score, person in zip(judges, people, strict=True) if score is not None]
    return HumanAgreement(
        judge,
        criterion,
        rated=len(pairs),
        shift=sum(shifts) / len(shifts) if shifts else None,
        **{name: pair[name] for name in ("n", "exact", "within_1", "qwk")},
    )


def _csv_ratings(path: Path, text: str) -> Iterable[tuple[int, Rating]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            fields = {name: value for name, value in row.items() if value not in (None, "")}
            yield reader.line_num, msgspec.convert(fields, Rating, strict=False)
    except (csv.Error, msgspec.ValidationError, TypeError) as error:
        raise DataError(f"{path}: line {reader.line_num}: no rating ({error}). {_REMEDY}") from error


def _jsonl_ratings(path: Path, text: str) -> Iterable[tuple[int, Rating]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rating = msgspec.json.decode(line, type=Rating)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise DataError(f"{path}: line {number}: no rating ({error}). {_REMEDY}") from error
        yield number, rating


_REMEDY = "Fix: give example_id, criterion and a whole score from 0 to 10, and perhaps model and repetition"
