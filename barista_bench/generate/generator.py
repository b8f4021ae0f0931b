"""The generator: every candidate of every video decided, a balanced set drawn, each family's release written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tqdm import tqdm

from barista_bench.core.worker_processes import map_in_processes
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.atomic import write_whole
from barista_bench.files.owned_folders import refuse_inside, replacing_folder
from barista_bench.generate.candidates import Candidate, Tally
from barista_bench.generate.drawing import Item, thin
from barista_bench.generate.family import Family, family_class
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain, load_domain

SPARE = 4
"""How many times the share of the set that falls to a video it may offer: what balance needs to choose from."""


UNBALANCED = "left out, so that the set stays in balance"
"""Why what could be asked is not, though there is room for it."""


class SubtaskReport(msgspec.Struct, frozen=True):
    """One subtask: items asked for and drawn, candidates looked at, and how many of these could not be asked, by reason."""

    subtask: str
    wanted: int
    drawn: int
    candidates: int
    refused: dict[str, int]


class FamilyReport(msgspec.Struct, frozen=True):
    """One family: its subtasks, and the videos that were left out, by id, with the reason."""

    family: str
    seed: int
    subtasks: tuple[SubtaskReport, ...]
    lost_videos: dict[str, str]

    @property
    def drawn(self) -> int:
        return sum(subtask.drawn for subtask in self.subtasks)


class _Job(NamedTuple):
    root: str
    video_id: str
    families: tuple[str, ...]
    domain: str | None
    most: int
    seed: int


class _VideoOffer(NamedTuple):
    """What one video offers, by family; or why it was lost."""

    video_id: str
    candidates: dict[str, list[Candidate]]
    tallies: dict[str, Tally]
    problem: str = ""


def generate(
    source: str | Path,
    out: str | Path,
    families: Sequence[str],
    *,
    per_subtask: int = 200,
    seed: int = 0,
    domain: str | Path | None = None,
    num_proc: int = 1,
    progress: bool = False,
) -> list[FamilyReport]:
    """Write question sets about the videos of a release of scene graphs.

    Each family's release lies in `out/<family>`, what each of its items rests on in `out/<family>.items.jsonl`, and what
    was asked for and refused in `out/<family>.report.json`. Same source, domain and seed: same bytes, on any number of
    processes.

    Args:
        source: a folder in the BARISTA release layout.
        out: a new or empty folder.
        families: names of benchmarks, of `FAMILIES`.
        per_subtask: items of each subtask at the most.
        domain: a domain file; coffee making where it is None.
        num_proc: processes; each holds one video at a time.

    Raises:
        ConfigError: `out` holds something, a family or the domain file is none, or `per_subtask` is below 1.
        DataError: a family has nothing that can be asked; says why.
    """
    if per_subtask < 1:
        raise ConfigError(f"per_subtask: {per_subtask} is below 1. Remedy: ask for at least one item a subtask")
    graph, out = SceneGraph(source), Path(out)
    words = load_domain(Path(domain) if domain else None)
    makers = {name: family_class(name)(words) for name in dict.fromkeys(families)}
    refuse_inside(out, graph.root)
    offers = _candidates(graph, tuple(makers), domain, per_subtask, seed, num_proc, progress)
    reports = []
    with replacing_folder(out) as folder:
        for name, family in makers.items():
            offered = [candidate for offer in offers for candidate in offer.candidates.get(name, ())]
            items = family.items(offered, per_subtask, seed)
            report = _report(family, items, offers, per_subtask, seed)
            if not items:
                raise DataError(f"{graph.root}: nothing that {name} could ask. {_reasons(report)}")
            (folder / name).mkdir()
            family.write(items, graph, folder / name)
            write_whole(folder / f"{name}.items.jsonl", b"".join(_item_line(item) for item in items))
            write_whole(
                folder / f"{name}.report.json", msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
            )
            reports.append(report)
    return reports


def _candidates(
    graph: SceneGraph,
    families: tuple[str, ...],
    domain: str | Path | None,
    per_subtask: int,
    seed: int,
    num_proc: int,
    progress: bool,
) -> list[_VideoOffer]:
    """What each video offers, in the order of their ids."""
    video_ids = graph.video_ids
    most = max(SPARE, -(-SPARE * per_subtask // max(1, len(video_ids))))
    jobs = [
        _Job(str(graph.root), video_id, families, str(domain) if domain else None, most, seed) for video_id in video_ids
    ]
    results = map_in_processes(_of_video, jobs, num_proc)
    return list(tqdm(results, total=len(jobs), desc="reading graphs", unit="video", disable=not progress))


def _of_video(job: _Job) -> _VideoOffer:
    families = _families(job.families, job.domain)
    tallies = {name: Tally() for name in job.families}
    try:
        scene = Scene(
            SceneGraph(job.root, cache_videos=1)[job.video_id], load_domain(Path(job.domain) if job.domain else None)
        )
        candidates = {
            name: thin(family.decided(scene, tallies[name]), job.most, job.seed) for name, family in families.items()
        }
    except DataError as error:
        return _VideoOffer(job.video_id, {}, {}, str(error))
    return _VideoOffer(job.video_id, candidates, tallies)


@cache
def _families(names: tuple[str, ...], domain: str | None) -> Mapping[str, Family]:
    words = load_domain(Path(domain) if domain else None)
    return {name: family_class(name)(words) for name in names}


def _report(
    family: Family, items: Sequence[Item], offers: Sequence[_VideoOffer], per_subtask: int, seed: int
) -> FamilyReport:
    tally = Tally()
    for offer in offers:
        if family.name in offer.tallies:
            tally.merge(offer.tallies[family.name])
    rows = []
    for subtask in family.subtasks:
        reasons = tally.reasons(subtask)
        drawn = sum(item.candidate.subtask == subtask for item in items)
        refused = {reason: count for reason, count in reasons.items() if reason != "decided"}
        if drawn < min(per_subtask, reasons.get("decided", 0)):
            refused[UNBALANCED] = reasons["decided"] - drawn
        rows.append(SubtaskReport(subtask, per_subtask, drawn, sum(reasons.values()), refused))
    lost = {offer.video_id: offer.problem for offer in offers if offer.problem}
    return FamilyReport(family.name, seed, tuple(rows), lost)


def _reasons(report: FamilyReport) -> str:
    parts = [
        f"{row.subtask}: {', '.join(f'{n} x {why}' for why, n in row.refused.items()) or 'no candidate'}"
        for row in report.subtasks
    ]
    parts += [f"{video_id}: {problem}" for video_id, problem in report.lost_videos.items()]
    return f"{'; '.join(parts)}. Remedy: annotate what is missing, or leave the family out"


def _item_line(item: Item) -> bytes:
    """One item with its proof: what each choice says of the graph, and what had to be given."""
    candidate = item.candidate
    fields: dict[str, Any] = {
        "id": item.id,
        "subtask": candidate.subtask,
        "video_id": candidate.video_id,
        "span": candidate.span,
        "frames": candidate.frames,
        "objects": candidate.objects,
        "question": candidate.question,
        "choices": [{"text": choice.text, "statement": choice.statement} for choice in item.choices or candidate.right],
        "correct": item.correct if item.choices else tuple(range(len(candidate.right))),
        "given": candidate.given,
        "extra": candidate.extra,
    }
    return msgspec.json.encode(fields) + b"\n"
