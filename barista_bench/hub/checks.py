"""What scored results must keep before they are published: used by `submit` and by the leaderboard alike.

Light on purpose (see board.py): it names no task and loads neither models nor datasets.
"""

from __future__ import annotations

import re
import statistics
from typing import Final

from barista_bench.errors import DataError
from barista_bench.judging.results import MEAN, JudgedResults
from barista_bench.runs.score.results import Comparability, Figure, Results, differences

SCALE: Final = 100
"""Published values are 0 to 100, to `DIGITS` decimals; figures of results.json and of the paper are 0 to 1."""
DIGITS: Final = 2
BASELINES: Final = frozenset({"oracle", "chance", "prior", "centre_box", "tiny"})
ABLATIONS: Final = frozenset({"text_only", "first_frame", "shuffled_frames"})
FLOOR: Final = "lexical"
"""What starts the name of a figure, or is the name of a judge, that counts shared words: no number to publish."""
OFFLINE_JUDGES: Final = frozenset({FLOOR, "oracle", "tiny"})
RULES_FILE: Final = "leaderboard.yaml"
"""Says of what examples each leaderboard is: in a results dataset, and in a published dataset."""
SELF_REPORTED: Final = "self-reported"
"""What every entry says: figures are checked against logs, but nothing shows that a model gave the answers."""
_ROUNDING: Final = 1e-6
_SCORE: Final = "score the run again"
_JUDGE: Final = "run `barista-bench judge` again"
OURS: Final = "ours "
"""What starts the name of our own wordings; see `PromptTexts.wording`."""
_NO_NAME = re.compile(r"[^a-z0-9]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check_results(results: Results, where: str) -> None:
    """Refuse results that contradict themselves.

    Raises:
        DataError: no primary figure, a figure outside 0 to 1 or not the mean of its runs, or counts that cannot be.
    """
    dataset, coverage = results.dataset, results.coverage
    has_primary = results.primary in results.figures
    _require(has_primary, f"{where}: figures: lacks the primary figure {results.primary!r}", _SCORE)
    is_hash = _SHA256.fullmatch(dataset.content_hash) is not None
    _require(is_hash, f"{where}: dataset.content_hash: is no SHA-256", _SCORE)
    _check_figure(results.figures[results.primary], results.runs, f"{where}: figures.{results.primary}")
    _require(
        coverage.expected == dataset.examples * results.runs,
        f"{where}: coverage.expected: is {coverage.expected}, but {dataset.examples} examples x {results.runs} runs "
        "were to be asked",
        _SCORE,
    )
    _require(
        0 <= coverage.answered <= coverage.scored <= coverage.expected and coverage.scored > 0,
        f"{where}: coverage: {coverage.answered} answered of {coverage.scored} scored of {coverage.expected} expected "
        "cannot be",
        _SCORE,
    )


def check_model(results: Results, where: str) -> None:
    """Refuse what is no model of its own. Raises DataError."""
    name = results.model.name
    _require(
        name.partition(":")[0] not in ABLATIONS and results.model.settings.get("ablation") is None,
        f"{where}: model.name: {name!r} sees less than the task shows: a diagnosis, no result of the model",
        "submit the run of the model itself",
    )
    _require(
        name not in BASELINES,
        f"{where}: model.name: {name!r} is a baseline, no model",
        "submit the run of a model",
    )


def check_judged(judged: JudgedResults, results: Results, where: str) -> None:
    """Refuse verdicts that are none, or of other answers than those of `results`. Raises DataError."""
    _require(
        judged.judge.name not in OFFLINE_JUDGES,
        f"{where}: judge.name: {judged.judge.name!r} reads no answer: a floor or a test, and no number to publish",
        "judge the run with a language model: `barista-bench judge RUN --judge ...`",
    )
    apart = differences(judged.answers, results.comparability)
    differing = "; ".join(f"{name}: {values}" for name, values in apart.items())
    _require(not apart, f"{where}: answers: were judged as others than those of the run ({differing})", _JUDGE)
    for field, judged_value, run_value in (
        ("model", judged.model, results.model.name),
        ("model_revision", judged.model_revision, results.model.revision),
        ("runs", judged.runs, results.runs),
    ):
        complaint = f"{where}: {field}: {judged_value!r} were judged, but the run has {run_value!r}"
        _require(judged_value == run_value, complaint, _JUDGE)
    _require(MEAN in judged.figures, f"{where}: figures: no usable verdict", _JUDGE)
    _check_figure(judged.figures[MEAN], None, f"{where}: figures.{MEAN}")
    coverage = judged.coverage
    _require(
        coverage.expected == results.coverage.expected and 0 < coverage.judged <= coverage.expected,
        f"{where}: coverage: {coverage.judged} judged of {coverage.expected} cannot be of a run of "
        f"{results.coverage.expected} samples",
        _JUDGE,
    )


def open_verdicts(judged: JudgedResults) -> int:
    """Verdicts that were not asked for yet, or failed. The release's protocol judges an answer by those it has."""
    verdicts = judged.coverage.verdicts
    return verdicts.get("missing", 0) + verdicts.get("infra_error", 0)


def judged_share(judged: JudgedResults) -> float:
    """What was judged of what was to be, 0 to 1: of the answers or of the verdicts, whichever is less."""
    verdicts = sum(judged.coverage.verdicts.values())
    return min(judged.coverage.share, 1 - open_verdicts(judged) / verdicts if verdicts else 1.0)


def is_floor(results: Results) -> bool:
    """Whether the run's own primary figure only counts shared words, so that a judge's figure stands for it."""
    return results.primary.startswith(f"{FLOOR}_")


def _check_figure(figure: Figure, runs: int | None, where: str) -> None:
    values = [figure.mean, *figure.runs]
    _require(all(0 <= value <= 1 for value in values), f"{where}: lies outside 0 to 1", _SCORE)
    has_runs = bool(figure.runs) and (runs is None or len(figure.runs) <= runs)
    _require(has_runs, f"{where}: has values of {len(figure.runs)} runs out of {runs}", _SCORE)
    is_mean = abs(statistics.fmean(figure.runs) - figure.mean) <= _ROUNDING
    _require(is_mean, f"{where}: is {figure.mean}, which is not the mean of its runs", _SCORE)
    low, high = interval = interval_of(figure) or (0, 1)
    _require(0 <= low <= high <= 1, f"{where}: has the interval {interval}, which cannot be", _SCORE)


def _require(is_met: bool, complaint: str, remedy: str) -> None:
    if not is_met:
        raise DataError(f"{complaint}. Remedy: {remedy}")


def interval_of(figure: Figure) -> tuple[float, float] | None:
    """The 95% interval of a figure; None where none was computed."""
    low, high = figure.low, figure.high
    return None if low is None or high is None else (low, high)


def published(figure: float) -> float:
    """A figure as it is published.

    >>> published(0.53412)
    53.41
    """
    return round(figure * SCALE, DIGITS)


def leaderboard(record: Comparability) -> str:
    """Name of the leaderboard that a record's figures belong to: see `task_id`."""
    return task_id(
        record.task, record.split, record.protocol, record.wording, options=record.options_in_words, limit=record.limit
    )


def task_id(task: str, split: str, protocol: str, wording: str, *, options: str = "", limit: int | None = None) -> str:
    """Name of a leaderboard: `relations`, `relations_test` of the split test, `relations_paper` of the paper's rules.

    The Hub ranks whatever has one name, so that each wording but ours, other options than the task's defaults and runs
    that were cut short have boards of their own.

    >>> task_id("t_stvg", "all", "release", "ours v1", options="matcher=exact", limit=20)
    't_stvg_matcher-exact_first-20'
    >>> task_id("relations", "all", "release", "ours v2"), task_id("relations", "test", "paper", "release@4086ce5")
    ('relations', 'relations_test_paper_release-4086ce5')
    """
    other_wording = "" if wording.startswith(OURS) else _NO_NAME.sub("-", wording)
    parts = [task, "" if split == "all" else split, "" if protocol == "release" else protocol, other_wording]
    parts += [_NO_NAME.sub("-", options.casefold()).strip("-"), "" if limit is None else f"first-{limit}"]
    return "_".join(part for part in parts if part)
