"""How often the intervals of a diagnosis cover planted faults, and how often it names a false cause.

Many studies of each responder of `tests/diagnosis/responders.py` on 10, 20, 60 and 185 videos; the truth is the Monte
Carlo of the same generator. Prints one Markdown row a setting and number of videos:

    python perf/diagnosis_studies.py --studies 1000
    python perf/diagnosis_studies.py --of views       # or models, causes

`share`, `gain`, `uptake`, `remainder`, `text`, `change`: the worst coverage of the 95% intervals over the levels or
views. `false cause`: reports that name a level without a planted fault. `false change`: the highest rate, over the
views that change nothing, of intervals without zero. `false difference`: comparisons of two models that name a level in
which they do not differ. `found`: planted levels that are named. `any text`, `believes`: reports that say so.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from barista_bench.core.statistics import adjust_p_values
from barista_bench.diagnosis.estimates import ALPHA, believes_any_text, cause_p_value, is_unused
from barista_bench.diagnosis.records import compared_shares
from barista_bench.diagnosis.views import compare_scores
from tests.diagnosis.responders import (
    LEVELS,
    PAIRS,
    SETTINGS,
    VIEWERS,
    VIEWS,
    Responder,
    as_values,
    estimated,
    named_causes,
    pair_study,
    study,
    truth,
    view_study,
)

KINDS = ("share", "gain", "uptake", "remainder", "text", "plain")


class Job(NamedTuple):
    """A row of the table."""

    name: str
    videos: int
    per_video: int
    studies: int

    def rngs(self) -> list[np.random.Generator]:
        return [np.random.default_rng([seed, self.videos]) for seed in range(self.studies)]


def planted_levels(responder: Responder) -> set[str]:
    levels = {level for level in LEVELS if responder.faults.get(level, 0) or responder.shared}
    return levels | (set(LEVELS[:2]) if responder.both else set())


@cache
def truth_of(name: str) -> dict[str, float]:
    return truth(SETTINGS[name])


def levels_row(design: str, job: Job) -> list[str]:
    responder, wanted = SETTINGS[job.name], truth_of(job.name)
    covered, known, counts = Counter[str](), Counter[str](), Counter[str]()
    planted = planted_levels(responder)
    for rng in job.rngs():
        estimates = estimated(study(responder, rng, job.videos, job.per_video), design, rng)
        for key, estimate in as_values(estimates).items():
            if estimate.low is not None:
                known[key] += 1
                covered[key] += estimate.low - 1e-9 <= wanted[key] <= estimate.high + 1e-9
        adjusted = adjust_p_values([cause_p_value(estimates.levels[level]) for level in LEVELS])
        named = {level for level, p in zip(LEVELS, adjusted, strict=True) if p < ALPHA}
        counts["false"] += bool(named - planted)
        counts["found"] += len(named & planted)
        counts["text"] += estimates.text.p is not None and estimates.text.p < ALPHA
        counts["believes"] += believes_any_text(estimates)
        counts["unused"] += is_unused(estimates.levels["objects"])
    cells = []
    for kind in KINDS:
        rates = [covered[key] / known[key] for key in wanted if key.split()[0] == kind and known[key]]
        cells.append(f"{min(rates):.3f}" if rates else "-")
    found = f"{counts['found'] / job.studies / len(planted):.2f}" if planted else "-"
    tail = (counts[each] / job.studies for each in ("text", "believes", "unused"))
    return [*cells, f"{counts['false'] / job.studies:.3f}", found, *(f"{rate:.3f}" for rate in tail)]


def views_row(job: Job) -> list[str]:
    viewer, covered, false = VIEWERS[job.name], Counter[str](), Counter[str]()
    everything = view_study(viewer, np.random.default_rng(999_999), 40_000, 10)
    wanted = {view: float(np.mean([after - before for _, before, after in everything[view]])) for view in VIEWS}
    for rng in job.rngs():
        for view, rows in view_study(viewer, rng, job.videos, job.per_video).items():
            change = compare_scores(view, rows).change
            covered[view] += change.low - 1e-9 <= wanted[view] <= change.high + 1e-9
            false[view] += not change.low - 1e-9 <= 0 <= change.high + 1e-9
    rates = [false[view] / job.studies for view in VIEWS if not viewer.lost.get(view)]
    return [f"{min(covered.values()) / job.studies:.3f}", f"{max(rates):.3f}" if rates else "-"]


def models_row(job: Job) -> list[str]:
    names = PAIRS[job.name]
    first, second = (SETTINGS[name] for name in names)
    wanted = {level: truth_of(names[0])[f"share {level}"] - truth_of(names[1])[f"share {level}"] for level in LEVELS}
    planted = planted_levels(first) | planted_levels(second) if names[0] != names[1] else set[str]()
    covered, counts = Counter[str](), Counter[str]()
    for rng in job.rngs():
        named = set()
        for _, level, _, _, cell, p in compared_shares(pair_study(names, rng, job.videos, job.per_video)).values:
            covered[level] += cell.low - 1e-9 <= wanted[level] <= cell.high + 1e-9
            named |= {level} if p < ALPHA else set()
        counts["false"] += bool(named - planted)
        counts["found"] += len(named & planted)
    found = f"{counts['found'] / job.studies / len(planted):.2f}" if planted else "-"
    return [f"{min(covered.values()) / job.studies:.3f}", f"{counts['false'] / job.studies:.3f}", found]


def causes_row(job: Job) -> list[str]:
    rates, shown, named, right, within = [], 0, 0, 0, 0
    for rng in job.rngs():
        rate, pairs = named_causes(study(SETTINGS[job.name], rng, job.videos, job.per_video))
        rates.append(np.nan if rate is None else rate)
        shown += bool(pairs)
        named += len(pairs)
        right += sum(cause == faults for cause, faults in pairs)
        within += sum(faults <= cause for cause, faults in pairs)
    ratios = [f"{count / max(named, 1):.3f}" for count in (right, within)]
    return [f"{np.nanmean(rates):.3f}", f"{shown / job.studies:.2f}", f"{named / job.studies:.1f}", *ratios]


LEVEL_HEADS = (*KINDS, "false cause", "found", "any text", "believes", "objects unused")
STUDIES: dict[str, tuple[Callable[[Job], list[str]], tuple[str, ...], tuple[str, ...]]] = {
    "paths": (partial(levels_row, "paths"), tuple(SETTINGS), LEVEL_HEADS),
    "full": (partial(levels_row, "full"), tuple(SETTINGS), LEVEL_HEADS),
    "views": (views_row, tuple(VIEWERS), ("change", "false change")),
    "models": (models_row, tuple(PAIRS), ("share", "false difference", "found")),
    "causes": (
        causes_row,
        tuple(SETTINGS),
        ("false rate", "reports with causes", "named in a report", "exactly the fault", "includes it"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=STUDIES, default="paths", help="a design, views, pairs of models, or causes")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--per-video", type=int, default=6)
    parser.add_argument("--videos", type=int, nargs="*", default=[10, 20, 60, 185])
    parser.add_argument("--settings", nargs="*", help="by default all")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    row, settings, heads = STUDIES[given.of]
    jobs = [
        Job(name, videos, given.per_video, given.studies)
        for name in given.settings or settings
        for videos in given.videos
    ]
    print(f"| setting | videos | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}", flush=True)
    with Pool(given.processes) as pool:
        for job, cells in zip(jobs, pool.imap(row, jobs), strict=True):
            print(f"| {job.name} | {job.videos} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
