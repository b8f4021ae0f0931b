"""Read and check the submissions of a results dataset (tables: `board_tables.py`).

A Space runs both modules with pydantic, PyYAML and huggingface_hub only.

The dataset holds files `results/<org>/<model>/<leaderboard>/results.json`, written by `barista-bench publish
submission`. If judges score the task, `judged.json` lies next to the file. The dataset may hold `leaderboard.yaml` (see
`BoardRules`). A submission that breaks a rule is listed with the reason, and its scores are never shown.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.hf_api import RepoFile
from pydantic import BaseModel, ConfigDict, RootModel, StringConstraints

from barista_bench.core.leaderboards import RULES_FILE, TASKS, Tasks
from barista_bench.errors import DataError
from barista_bench.hub import checks
from barista_bench.judging.results import MEAN, JudgedResults, read_judged
from barista_bench.runs.described import SHORT
from barista_bench.runs.score.comparability import Comparability
from barista_bench.runs.score.costs import COST_NAMES
from barista_bench.runs.score.results import Results, read_results

RESULTS_FILE: Final = "results.json"
JUDGED_FILE: Final = "judged.json"
MAX_FILES: Final = 2000
"""Maximum number of files that are read per submitter."""
MAX_TABLES: Final = 100
"""Maximum number of tables with one submitter's results."""
SHOWN_COSTS: Final = tuple(name for name in COST_NAMES if name != "dollars")
_REMEDY: Final = "Fix: use `publish submission`"


class BoardRules(BaseModel):
    """Rules for submissions, from `leaderboard.yaml`.

    `content_hashes` maps each leaderboard to the SHA-256 of its examples. `judges` names the judges whose scores count.
    Empty fields are not checked. Results on other examples then get a separate table. Results of tasks from outside
    this package, such as a plug-in's tasks, are shown if `content_hashes` names their leaderboard.
    """

    model_config = ConfigDict(extra="forbid")

    content_hashes: dict[checks.TaskId, Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]] = {}
    judges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoardEntry:
    """One model's entry on one leaderboard.

    `value`, `low` and `high` range from 0 to 100. `low` and `high` are None without an interval.

    Entries with equal `record` share one table. `circumstances` is shown beside an entry. `costs` holds the average
    costs of a sample by `COST_NAMES`, except dollars, since prices are not published.
    """

    model: str
    record: Comparability
    metric: str
    circumstances: str
    value: float
    low: float | None
    high: float | None
    repetitions: int
    coverage: float
    revision: str | None
    version: str
    costs: dict[str, float]

    @property
    def submitter(self) -> str:
        """Return the owner of the model's repository."""
        return self.model.partition("/")[0]

    @property
    def is_complete(self) -> bool:
        return self.coverage == 1

    @property
    def ends(self) -> tuple[float, float]:
        """Return the ends of the interval, or the value twice without an interval."""
        return self.value if self.low is None else self.low, self.value if self.high is None else self.high


@dataclass(frozen=True, slots=True)
class RefusedSubmission:
    """A submission that is not shown, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Board:
    entries: tuple[BoardEntry, ...]
    refused: tuple[RefusedSubmission, ...]


def read_board(folder: str | Path, dataset: str | Path | None = None) -> Board:
    """Read all submissions of a folder.

    Args:
        folder: folder of a results dataset.
        dataset: the published dataset, or only its `leaderboard.yaml`. Results on examples that the file does not name
            are refused, even if the rules of `folder` allow them. None uses the rules of `folder`.

    Raises:
        DataError: the folder is missing, or its rules are invalid. An invalid submission does not raise an error.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{root}: no folder. Fix: give the folder of a results dataset")
    rules = _read_rules(root)
    if dataset is not None:
        published_hashes = _read_rules(Path(dataset)).content_hashes
        if not published_hashes:
            raise DataError(f"{dataset}: no {RULES_FILE} with content_hashes. Fix: build it again")
        rules = rules.model_copy(update={"content_hashes": published_hashes})
    entries: list[BoardEntry] = []
    refused: list[RefusedSubmission] = []
    records: dict[str, set[Comparability]] = defaultdict(set)
    names, left_out = _limit_files(_files(root / "results"))
    for name in names:
        path = root / name
        if path.name == JUDGED_FILE and (path.parent / RESULTS_FILE).exists():
            continue
        try:
            entry = _entry(path, name, rules)
            records[entry.submitter].add(entry.record)
            if len(records[entry.submitter]) > MAX_TABLES:
                raise DataError(f"{name}: {entry.submitter} has results in {MAX_TABLES} tables already. {_REMEDY}")
            entries.append(entry)
        except DataError as error:
            reason = str(error).replace(f"{root}{os.sep}", "").removeprefix(f"{name}: ").lstrip(": ")
            refused.append(RefusedSubmission(name, reason))
    return Board(tuple(entries), (*left_out, *refused))


def _limit_files(names: Iterable[str]) -> tuple[list[str], list[RefusedSubmission]]:
    """Return the first `MAX_FILES` paths `results/<org>/...` of each submitter, and the submitters with more files."""
    counts, kept = Counter[str](), []
    for name in names:
        submitter = folder_of(name)
        counts[submitter] += 1
        if counts[submitter] <= MAX_FILES:
            kept.append(name)
    left_out = [
        RefusedSubmission(f"{submitter}/...", f"holds {count} files: files after the first {MAX_FILES} are not read")
        for submitter, count in counts.items()
        if count > MAX_FILES
    ]
    return kept, left_out


def folder_of(name: str) -> str:
    """Return the submitter's folder `results/<org>` of a file, or `results` for a file outside such folders."""
    return "/".join(PurePosixPath(name).parts[:-1][:2]) or name


def fetch_results(
    repo_id: str, folder: str | Path, *, endpoint: str | None = None
) -> tuple[Path, tuple[RefusedSubmission, ...]]:
    """Copy the submissions of a dataset on the Hub. Return the folder, and the submissions that were not fetched."""
    api = HfApi(endpoint=endpoint, library_name="barista_bench")
    commit = api.repo_info(repo_id, repo_type="dataset").sha
    paths: list[str] = []
    refused: list[RefusedSubmission] = []
    for file in api.list_repo_tree(repo_id, repo_type="dataset", revision=commit, recursive=True):
        names = (RESULTS_FILE, JUDGED_FILE, RULES_FILE)
        if not isinstance(file, RepoFile) or PurePosixPath(file.path).name not in names:
            continue
        if file.size > checks.MAX_FILE or any(letter in file.path for letter in "*?["):
            refused.append(RefusedSubmission(file.path, f"has {file.size} bytes, or no plain name: not fetched"))
        else:
            paths.append(file.path)
    paths, left_out = _limit_files(sorted(paths))
    Path(folder).mkdir(parents=True, exist_ok=True)
    if paths:
        snapshot_download(
            repo_id, repo_type="dataset", revision=commit, allow_patterns=paths, local_dir=folder, endpoint=endpoint
        )
    return Path(folder), (*left_out, *refused)


def _read_rules(root: Path) -> BoardRules:
    path = root / RULES_FILE
    if not path.is_file():
        return BoardRules()
    if path.stat().st_size > checks.MAX_FILE:
        raise DataError(f"{path}: is larger than {checks.MAX_FILE} bytes. Fix: make it smaller")
    content = checks.load_yaml(path.read_bytes(), str(path))
    return checks.check_schema(BoardRules, {} if content is None else content, str(path))


def _files(results: Path) -> Iterator[str]:
    """Yield the sorted paths of all files below `results`, relative to its parent folder. Links are not followed."""
    for folder, below, names in os.walk(results):
        below.sort()
        for name in sorted(names):
            yield (Path(folder) / name).relative_to(results.parent).as_posix()


def _entry(path: Path, name: str, rules: BoardRules) -> BoardEntry:
    """Read one submission, and check it against its path, the schemas and the rules. Raises DataError."""
    parts = PurePosixPath(name).parts
    if len(parts) != 5 or parts[-1] != RESULTS_FILE:
        raise DataError(f"{name}: is not results/<org>/<model>/<leaderboard>/{RESULTS_FILE}. {_REMEDY}")
    model = f"{parts[1]}/{parts[2]}"
    checks.check_schema(RootModel[checks.RepoId], model, name)
    results = read_results(_checked_path(path, name))
    checks.check_model(results, name)
    checks.check_results(results, name)
    if results.model.name != model:
        raise DataError(f"{name}: model.name: is {results.model.name!r}, not {model!r}. {_REMEDY}")
    board = checks.leaderboard_name(results.comparability)
    if board != parts[3]:
        raise DataError(f"{name}: is of the leaderboard {board!r:.200}. {_REMEDY}")
    _check_task(results, board, rules, name)
    judged = _read_judged(path, name, results) if checks.is_floor(results) else None
    _check_rules(results, judged, board, rules, name)
    metric = judged.metrics[MEAN] if judged else results.metrics[results.primary]
    interval = checks.interval_of(metric)
    coverage = results.coverage.scored / results.coverage.expected
    circumstances = (
        f"{name} {value}"
        for name, value in results.circumstances.items()
        if name != "repetitions" and value is not None
    )
    return BoardEntry(
        model=results.model.label,
        record=judged.comparability if judged else results.comparability,
        metric="judge_score" if judged else results.primary,
        circumstances=", ".join(circumstances),
        value=checks.round_for_publication(metric.mean),
        low=checks.round_for_publication(interval[0]) if interval else None,
        high=checks.round_for_publication(interval[1]) if interval else None,
        repetitions=results.repetitions,
        coverage=min(coverage, checks.judged_fraction(judged)) if judged else coverage,
        revision=(results.model.revision or "")[:SHORT] or None,
        version=results.barista_bench,
        costs={name: cost.mean for name, cost in results.timing.costs.items() if name in SHOWN_COSTS},
    )


def _check_task(results: Results, board: str, rules: BoardRules, name: str) -> None:
    """Refuse leaderboards of unknown tasks that the rules do not name, and results with another primary metric."""
    checks.check_schema(RootModel[checks.TaskId], board, name)
    dataset = results.dataset
    tasks = TASKS.get(dataset.benchmark, Tasks((), {}))
    primary = tasks.primary.get(dataset.task)
    if primary is not None and results.primary != primary:
        raise DataError(f"{name}: primary: is {results.primary!r:.200}, not {primary!r}. {_REMEDY}")
    is_ours = primary is not None and dataset.split in ("all", *tasks.splits)
    if board not in rules.content_hashes and not is_ours:
        raise DataError(
            f"{name}: dataset: this package has no such task or split. "
            f"Fix: name the leaderboards of a plug-in in {RULES_FILE}"
        )


def _checked_path(path: Path, name: str) -> Path:
    if path.is_symlink() or not path.is_file():
        raise DataError(f"{name}: is not a plain file. {_REMEDY}")
    if path.stat().st_size > checks.MAX_FILE:
        raise DataError(f"{name}: is larger than {checks.MAX_FILE} bytes. {_REMEDY}")
    return path


def _read_judged(path: Path, name: str, results: Results) -> JudgedResults:
    beside = path.parent / JUDGED_FILE
    if not beside.exists():
        raise DataError(f"{name}: {results.primary} is a floor, and no {JUDGED_FILE} is beside it. {_REMEDY}")
    judged_name = name.replace(RESULTS_FILE, JUDGED_FILE)
    judged = read_judged(_checked_path(beside, judged_name))
    checks.check_judged(judged, results, judged_name)
    return judged


def _check_rules(results: Results, judged: JudgedResults | None, board: str, rules: BoardRules, name: str) -> None:
    expected_hash = rules.content_hashes.get(board)
    if rules.content_hashes and expected_hash is None:
        raise DataError(f"{name}: {board!r} is not a leaderboard of {RULES_FILE}. Fix: submit one of those named there")
    if expected_hash is not None and expected_hash != results.dataset.content_hash:
        raise DataError(
            f"{name}: dataset.content_hash: {results.dataset.content_hash[:SHORT]} are other examples than "
            f"{expected_hash[:SHORT]} of {RULES_FILE}. Fix: run on the published dataset"
        )
    if judged is not None and rules.judges and judged.judge.name not in rules.judges:
        raise DataError(f"{name}: judge.name: {judged.judge.name!r} is none of {RULES_FILE}. Fix: use one of those")
