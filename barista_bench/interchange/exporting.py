"""Runs of ours as released run folders (docs/upstream/barista.md, "Runs"), under the released rules."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import check_target, replacing_folder
from barista_bench.files.paths import valid_video_id
from barista_bench.interchange.deriving import JUDGED_TASKS, JudgeScores, released_folder
from barista_bench.interchange.kept import PuttingBack, read_kept
from barista_bench.judging.judge_folder import judge_folders, read_judge
from barista_bench.judging.judged_run import MISSING, SampleVerdict
from barista_bench.judging.released_verdicts import METHOD, SCALE, ReleasedScore, read_released_scores
from barista_bench.judging.scoring import read_judged_run
from barista_bench.runs.score.samples import ReadRun, read_samples
from barista_bench.runs.score.scoring import read_scored

NO_VERDICT = "geval_error: "
"""How the reason begins where a judge gave no score."""


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """What was exported: a folder for each repetition, and how many records they hold in all."""

    folders: tuple[Path, ...]
    task: str
    records: int
    judge: str | None


def export_run(
    run: str | Path,
    out: str | Path,
    *,
    judge: str | None = None,
    data: str | Path | None = None,
    root: str | Path | None = None,
) -> ExportedRun:
    """Write a run folder in the released layout: `out` itself, or for several repetitions a folder each below it.

    An imported run comes out as it was. Of a run of ours, samples that were never asked are no records.

    Args:
        run: made by `run` or `import_run`.
        out: the new folder; must not exist, or be empty.
        judge: which folder below RUN/judges has the scores; None takes the judge that the run was imported with, else
            the only one.
        data: where the dataset lies now, if it has moved.
        root: where the videos of a linked set lie now, if they have moved.

    Raises:
        ConfigError: `out` is taken, the run is of another benchmark or protocol, or the judge has to be named.
        DataError: the folder is no run, or the dataset is another one than was run.
    """
    out = Path(out).absolute()
    check_target(out)
    read = read_samples(run, data=data, root=root)
    _refuse_other_rules(read)
    kept = read_kept(read.folder)
    judging = _judging(read, _judge_folder(read, judge), data, root, is_imported=bool(kept))
    runs = sorted({sample.record.run for sample in read.samples})
    released = [released_folder(read, run, PuttingBack(kept, run), judging) for run in runs]
    names = ["."] if len(runs) == 1 else _folder_names(read, runs)
    with replacing_folder(out) as partial:
        for name, folder in zip(names, released, strict=True):
            (partial / name).mkdir(exist_ok=True)
            folder.write(partial / name)
    return ExportedRun(
        tuple(out / name for name in names),
        read.task.name,
        sum(len(folder.predictions) for folder in released),
        judging.judge if judging.scores else None,
    )


def _refuse_other_rules(read: ReadRun) -> None:
    if read.task.benchmark != "barista":
        raise ConfigError(
            f"{read.folder}: is a run of {read.task.benchmark}. Remedy: export runs of barista, whose release it is"
        )
    if read.task.follows_paper:
        raise ConfigError(
            f"{read.folder}: follows the paper's protocol, the layout has the released rules' figures. "
            "Remedy: run or import with --protocol release"
        )


def _judge_folder(read: ReadRun, judge: str | None) -> Path | None:
    folders = {folder.name: folder for folder in judge_folders(read.folder)}
    if read.task.name not in JUDGED_TASKS or (judge is None and not folders):
        if judge is not None:
            raise ConfigError(f"{read.folder}: no judge scores {read.task.name} there. Remedy: leave --judge out")
        return None
    if judge is not None:
        if judge not in folders:
            raise ConfigError(f"{read.folder}: has no judge {judge!r}. Remedy: name one of {', '.join(folders)}")
        return folders[judge]
    released = [folder for folder in folders.values() if read_judge(folder).identity["method"] == METHOD]
    candidates = released or list(folders.values())
    if len(candidates) > 1:
        raise ConfigError(
            f"{read.folder}: has {len(candidates)} judges, a released folder holds one. "
            f"Remedy: say with --judge which: {', '.join(folders)}"
        )
    return candidates[0]


def _judging(
    read: ReadRun, folder: Path | None, data: str | Path | None, root: str | Path | None, *, is_imported: bool
) -> JudgeScores:
    """The judge's scores by sample and criterion."""
    if folder is None:
        return JudgeScores()
    described = read_judge(folder)
    judge = described.identity["model"]["name"]
    if described.identity["method"] == METHOD:
        return JudgeScores(judge, read_released_scores(folder))
    judged = read_judged_run(read_scored(read.folder, data=data, root=root, options={}), folder)
    scores = {sample: _released_scores(verdicts) for sample, verdicts in judged.verdicts.items()}
    scores = {sample: given for sample, given in scores.items() if given}
    return JudgeScores(judge, scores, replaced=is_imported and bool(scores))


def _released_scores(verdicts: Sequence[SampleVerdict]) -> dict[str, ReleasedScore]:
    """By criterion: the mean of its draws and the first one's reason; criteria that were never asked for are absent."""
    scores: dict[str, ReleasedScore] = {}
    for criterion in dict.fromkeys(verdict.criterion for verdict in verdicts):
        asked = [v for v in verdicts if v.criterion == criterion and v.status != MISSING]
        usable = [(verdict.score / SCALE, verdict.text) for verdict in asked if verdict.score is not None]
        if usable:
            scores[criterion] = ReleasedScore(statistics.fmean(share for share, _ in usable), usable[0][1])
        elif asked:
            scores[criterion] = ReleasedScore(None, f"{NO_VERDICT}{asked[0].text}")
    return scores


def _folder_names(read: ReadRun, runs: Sequence[int]) -> list[str]:
    """What the folders of several repetitions are called: as before the import, if that tells them apart."""
    imported = [source.folder for source in read.described.imported]
    is_usable = len(set(imported)) == len(imported) > 1 and all(map(valid_video_id, imported))
    return [imported[run] if is_usable else f"run_{run}" for run in runs]
