"""How often the intervals of a diagnosis cover planted faults, and how often it names a false cause.

Many studies of each responder of `tests.diagnosis.responders.py` on 10, 20, 60 and 185 videos; the truth is the Monte
Carlo of the same generator. Prints one Markdown row a setting and number of videos:

    python perf/diagnosis_studies.py --studies 1000

`share`, `gain`, `uptake`, `remainder`, `text`: the worst coverage of the 95% intervals over the levels. `false cause`:
reports that name a level without a planted fault. `found`: planted levels that are named. `any text`, `believes`:
reports that say so.
"""

import argparse
import sys
from collections import Counter
from multiprocessing import Pool
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from barista_bench.core.statistics import adjust_p_values
from barista_bench.diagnosis.estimates import ALPHA, believes_any_text, cause_p_value, is_unused
from tests.diagnosis.responders import LEVELS, SETTINGS, as_values, estimated, named_causes, study, truth

KINDS = ("share", "gain", "uptake", "remainder", "text", "plain")


def row(job: tuple[str, int, int, int, str]) -> str:
    """One row of the table."""
    name, videos, per_video, studies, design = job
    responder, wanted = SETTINGS[name], truth(SETTINGS[name])
    covered, known = Counter[str](), Counter[str]()
    counts = Counter[str]()
    planted = {level for level in LEVELS if responder.faults.get(level, 0) or responder.shared}
    planted |= set(LEVELS[:2]) if responder.both else set()
    for seed in range(studies):
        rng = np.random.default_rng([seed, videos])
        estimates = estimated(study(responder, rng, videos, per_video), design, rng)
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
    found = f"{counts['found'] / studies / len(planted):.2f}" if planted else "-"
    tail = (counts[each] / studies for each in ("text", "believes", "unused"))
    cells += [f"{counts['false'] / studies:.3f}", found, *(f"{rate:.3f}" for rate in tail)]
    return f"| {name} | {design} | {videos} | {' | '.join(cells)} |"


def causes_row(job: tuple[str, int, int, int]) -> str:
    """One row on causes of single answers: what a study says of its examples."""
    name, videos, per_video, studies = job
    rates, shown, named, right, within = [], 0, 0, 0, 0
    for seed in range(studies):
        made = study(SETTINGS[name], np.random.default_rng([seed, videos]), videos, per_video)
        rate, pairs = named_causes(made)
        rates.append(np.nan if rate is None else rate)
        shown += bool(pairs)
        named += len(pairs)
        right += sum(cause == faults for cause, faults in pairs)
        within += sum(faults <= cause for cause, faults in pairs)
    cells = f"{np.nanmean(rates):.3f} | {shown / studies:.2f} | {named / studies:.1f} | {right / max(named, 1):.3f}"
    cells += f" | {within / max(named, 1):.3f}"
    return f"| {name} | {videos} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--per-video", type=int, default=6)
    parser.add_argument("--videos", type=int, nargs="*", default=[10, 20, 60, 185])
    parser.add_argument("--designs", nargs="*", default=["paths"])
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--causes", action="store_true", help="study causes of single answers instead")
    given = parser.parse_args()
    if given.causes:
        causes = ("false rate", "reports with causes", "named in a report", "exactly the fault", "includes it")
        print(f"| setting | videos | {' | '.join(causes)} |")
        print("|---|---|---|---|---|---|---|")
        jobs_of_causes = [(n, v, given.per_video, given.studies) for n in given.settings for v in given.videos]
        with Pool(given.processes) as pool:
            for line in pool.imap(causes_row, jobs_of_causes):
                print(line, flush=True)
        return
    jobs = [
        (name, videos, given.per_video, given.studies, design)
        for name in given.settings
        for design in given.designs
        for videos in given.videos
    ]
    heads = ("setting", "design", "videos", *KINDS, "false cause", "found", "any text", "believes", "objects unused")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    with Pool(given.processes) as pool:
        for line in pool.imap(row, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
