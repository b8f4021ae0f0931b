"""How often the intervals of a diagnosis cover planted faults, and how often it names a false cause.

Many studies of each responder of `tests/diagnosis/responders.py` on 10, 20, 60 and 185 videos; the truth is the Monte
Carlo of the same generator. Prints one Markdown row a setting and number of videos:

    python perf/diagnosis_studies.py --studies 1000
    python perf/diagnosis_studies.py --of views       # or models, causes; --setting NAME: only this one

`share`, `gain`, `uptake`, `remainder`, `text`, `change`: the worst coverage of the 95% intervals over the levels or
views. `false cause`: reports that name a level without a planted fault. `worst view`, `views`: intervals without zero
of the views that change nothing, the highest rate and the mean. `any view`: reports with such an interval.
`false change`: reports that say that such a view changes the score clearly. `false difference`: comparisons of two
models that name a level in which they do not differ. `found`: planted levels that are named. `any text`, `believes`:
reports that say so.
"""

import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

sys.path.insert(0, str(Path(__file__).parent.parent))

from barista_bench.diagnosis.estimates import ALPHA, Estimates, believes_any_text, is_unused
from barista_bench.diagnosis.records import compared_shares
from tests.diagnosis.batches import batch_estimates, pair_studies, view_studies
from tests.diagnosis.responders import (
    LEVELS,
    PAIRS,
    SETTINGS,
    VIEWERS,
    VIEWS,
    Responder,
    as_values,
    levels_named,
    single_cause_pairs,
    study,
    truth,
    view_scores,
    views_named,
)

VIDEOS, PER_VIDEO = (10, 20, 60, 185), 6
KINDS = ("share", "gain", "uptake", "remainder", "text", "plain")


class Job(NamedTuple):
    """A row of the table."""

    name: str
    videos: int
    studies: int

    def batches(self) -> Iterator[tuple[np.random.Generator, int, int, int]]:
        """A random generator, the videos, the examples of a video, and the number of studies, at most 50."""
        for start in range(0, self.studies, 50):
            rng = np.random.default_rng([start, self.videos, zlib.crc32(self.name.encode())])
            yield rng, self.videos, PER_VIDEO, min(50, self.studies - start)


def planted_levels(responder: Responder) -> set[str]:
    levels = {level for level in LEVELS if responder.faults.get(level, 0) or responder.shared}
    return levels | (set(LEVELS[:2]) if responder.both else set())


@cache
def truth_of(name: str) -> dict[str, float]:
    return truth(SETTINGS[name])


@dataclass
class Tally:
    """Findings of a responder's studies by one design."""

    design: str
    covered: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, estimates: Estimates, wanted: Mapping[str, float], planted: set[str]) -> None:
        for key, estimate in as_values(estimates).items():
            if estimate.low is not None:
                self.known[key] += 1
                self.covered[key] += estimate.low - 1e-9 <= wanted[key] <= estimate.high + 1e-9
        named = levels_named(estimates)
        self.counts["false"] += bool(named - planted)
        self.counts["found"] += len(named & planted)
        self.counts["text"] += estimates.text.p is not None and estimates.text.p < ALPHA
        self.counts["believes"] += believes_any_text(estimates)
        self.counts["unused"] += is_unused(estimates.levels["objects"])

    def row(self, job: Job) -> list[str]:
        planted, cells = planted_levels(SETTINGS[job.name]), []
        for kind in KINDS:
            rates = [self.covered[key] / self.known[key] for key in self.known if key.split()[0] == kind]
            cells.append(f"{min(rates):.3f}" if rates else "-")
        found = f"{self.counts['found'] / job.studies / len(planted):.2f}" if planted else "-"
        false, *tail = (f"{self.counts[each] / job.studies:.3f}" for each in ("false", "text", "believes", "unused"))
        return [self.design, *cells, false, found, *tail]


def levels_rows(job: Job) -> list[list[str]]:
    """Both designs read the same answers."""
    responder, wanted = SETTINGS[job.name], truth_of(job.name)
    tallies, planted = [Tally("paths"), Tally("full")], planted_levels(responder)
    for batch in job.batches():
        for by_design in batch_estimates(responder, *batch):
            for tally, estimates in zip(tallies, by_design, strict=True):
                tally.add(estimates, wanted, planted)
    return [tally.row(job) for tally in tallies]


@cache
def changes_of(viewer: str) -> dict[str, float]:
    everything = view_scores(VIEWERS[viewer], np.random.default_rng(999_999), 40_000, 10)
    return {view: float((after - before)[has].mean()) for view, (has, before, after) in everything.items()}


def views_rows(job: Job) -> list[list[str]]:
    viewer, covered, false, reports = VIEWERS[job.name], Counter[str](), Counter[str](), Counter[str]()
    wanted = changes_of(job.name)
    unplanted = [view for view in VIEWS if not viewer.lost.get(view)]
    for batch in job.batches():
        for compared in view_studies(viewer, *batch):
            named = views_named(compared)
            excluding = {each.name for each in compared if not each.change.low - 1e-9 <= 0 <= each.change.high + 1e-9}
            false.update(excluding)
            reports["any"] += any(view in excluding for view in unplanted)
            reports["clear"] += any(view in named for view in unplanted)
            for each in compared:
                covered[each.name] += each.change.low - 1e-9 <= wanted[each.name] <= each.change.high + 1e-9
    rates = [false[view] / job.studies for view in unplanted]
    ends = [max(rates), np.mean(rates), *(reports[each] / job.studies for each in ("any", "clear"))] if rates else []
    return [[f"{min(covered.values()) / job.studies:.3f}", *([f"{end:.3f}" for end in ends] or ["-"] * 4)]]


def models_rows(job: Job) -> list[list[str]]:
    names = PAIRS[job.name]
    first, second = (SETTINGS[name] for name in names)
    wanted = {level: truth_of(names[0])[f"share {level}"] - truth_of(names[1])[f"share {level}"] for level in LEVELS}
    planted = planted_levels(first) | planted_levels(second) if names[0] != names[1] else set[str]()
    covered, counts = Counter[str](), Counter[str]()
    for batch in job.batches():
        for diagnoses in pair_studies(names, *batch):
            named = set()
            for _, level, _, _, cell, p in compared_shares(diagnoses).values:
                covered[level] += cell.low - 1e-9 <= wanted[level] <= cell.high + 1e-9
                named |= {level} if p < ALPHA else set()
            counts["false"] += bool(named - planted)
            counts["found"] += len(named & planted)
    found = f"{counts['found'] / job.studies / len(planted):.2f}" if planted else "-"
    return [[f"{min(covered.values()) / job.studies:.3f}", f"{counts['false'] / job.studies:.3f}", found]]


def causes_rows(job: Job) -> list[list[str]]:
    rates, shown, named, right, within = [], 0, 0, 0, 0
    for rng, videos, per_video, count in job.batches():
        for _ in range(count):
            rate, pairs = single_cause_pairs(study(SETTINGS[job.name], rng, videos, per_video))
            rates.append(np.nan if rate is None else rate)
            shown += bool(pairs)
            named += len(pairs)
            right += sum(cause == faults for cause, faults in pairs)
            within += sum(faults <= cause for cause, faults in pairs)
    ratios = [f"{count / max(named, 1):.3f}" for count in (right, within)]
    return [[f"{np.nanmean(rates):.3f}", f"{shown / job.studies:.2f}", f"{named / job.studies:.1f}", *ratios]]


STUDIES: dict[str, tuple[Callable[[Job], list[list[str]]], tuple[str, ...], tuple[str, ...]]] = {
    "levels": (
        levels_rows,
        tuple(SETTINGS),
        ("design", *KINDS, "false cause", "found", "any text", "believes", "objects unused"),
    ),
    "views": (views_rows, tuple(VIEWERS), ("change", "worst view", "views", "any view", "false change")),
    "models": (models_rows, tuple(PAIRS), ("share", "false difference", "found")),
    "causes": (
        causes_rows,
        tuple(SETTINGS),
        ("false rate", "reports with causes", "named in a report", "exactly the fault", "includes it"),
    ),
}


def main(of: str = "levels", studies: int = 1000, setting: str = "", processes: int = 2) -> None:
    rows, settings, heads = STUDIES[of]
    jobs = [Job(name, videos, studies) for name in settings if setting in ("", name) for videos in VIDEOS]
    print(f"| setting | videos | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}", flush=True)
    with Pool(processes) as pool:
        for job, of_job in zip(jobs, pool.imap(rows, jobs), strict=True):
            for cells in of_job:
                print(f"| {job.name} | {job.videos} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
