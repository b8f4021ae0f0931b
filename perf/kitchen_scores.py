"""`--model kitchen` on toy kitchens that it was not trained on, beside what needs no eyes.

    pip install -e ".[run]"
    python perf/kitchen_scores.py WORK

Prints the table of its card (barista_bench/models/checkpoints/kitchen/README.md): 21 videos of three seeds, the
published sampling with LIMIT examples a task, greedy answers; intervals are 95%, over videos. Videos,
dataset and runs stay in WORK and are used again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from barista_bench.benchmarks import task_names
from barista_bench.data.folder import build
from barista_bench.mini.kitchen import write_kitchen
from barista_bench.runs.ask.runner import run
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.stats import compare_pair

SEEDS = (311, 312, 313)
"""None of scripts/kitchen.sh, of tests and `make run`, or of those (301 to 303) that its settings were chosen on."""
VIDEOS = 7
"""Of each seed."""
LIMIT = 100
ASKED = {"repetitions": 1, "temperature": 0, "max_new_tokens": 256, "batch_size": 16, "progress": False}
OTHERS = ("text_only:kitchen", "prior", "chance")


def main() -> None:
    work = Path(sys.argv[1])
    data = work / "data"
    if not data.exists():
        videos = kitchens(work / "videos")
        split = {"train": [], "test": sorted(folder.name for folder in videos.iterdir())}
        (work / "split.json").write_text(json.dumps(split))
        settings = {"split_file": str(work / "split.json"), "sampling": {"limit": LIMIT}}
        build(videos, data, cache=False, progress=False, **settings)
    print("| task | score | videos | kitchen | " + " | ".join(f"`{name}`" for name in OTHERS) + " | better than |")
    print("|---" * (5 + len(OTHERS)) + "|")
    for task in task_names("barista"):
        scored = [
            ask_and_score(data, work / "runs" / name.replace(":", "-"), task, name) for name in ("kitchen", *OTHERS)
        ]
        print(row(*scored), flush=True)


def kitchens(out: Path) -> Path:
    """The videos of all seeds in one release, each with its seed in its id."""
    out.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS:
        if not any(out.glob(f"s{seed}_*")):
            with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
                for video in write_kitchen(Path(scratch) / "kitchen", videos=VIDEOS, seed=seed):
                    video.rename(out / f"s{seed}_{video.name}")
    return out


def ask_and_score(data: Path, folder: Path, task: str, model: str) -> ScoredRun:
    run(data, folder, task=task, model=model, **ASKED)
    return score(folder / task)


def row(kitchen: ScoredRun, *others: ScoredRun) -> str:
    videos = {sample.example.video_id for sample in kitchen.samples}
    cells = [kitchen.task.name, f"`{kitchen.results.primary}`", str(len(videos))]
    cells += [metric(scored) for scored in (kitchen, *others)]
    differences = [compare_pair(kitchen, other) for other in others]
    pairs = zip(OTHERS, differences, strict=True)
    apart = [f"`{name}`" for name, pair in pairs if pair.low is not None and pair.low > 0]
    return f"| {' | '.join([*cells, ', '.join(apart) or 'none'])} |"


def metric(scored: ScoredRun) -> str:
    value = scored.results.metrics[scored.results.primary]
    interval = "" if value.low is None or value.high is None else f" [{value.low:.3f}, {value.high:.3f}]"
    return f"{value.mean:.3f}{interval}"


if __name__ == "__main__":
    main()
