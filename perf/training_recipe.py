"""scripts/train_lora.py on tiny models of random weights, beside the same model untrained and `prior`.

    pip install -e ".[run,train]"
    python perf/training_recipe.py WORK

Prints the table of docs/training.md: three sets, of each three trainings that differ in their seed alone. The settings
below were chosen on videos that DATA_SEED 0 makes; the table is of others, made after that. Videos, adapters and runs
stay in WORK/<set>.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from barista_bench.core.boxes import BoxFormat
from barista_bench.data.folder import build
from barista_bench.mini.kitchen import write_kitchen
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.stats import compare_pair
from barista_bench.training.exporting import export

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests are not installed

from tests.one_run import run
from tests.training.patches import make_trainable_model, write_patches

RECIPE = Path(__file__).resolve().parents[1] / "scripts" / "train_lora.py"
DATA_SEED = 1
SEEDS = (1, 2, 3)
"""Of the trainings."""
TRAINED = {"learning-rate": 4e-3, "rank": 32}
ASKED = {"split": "test", "runs": 1, "temperature": 0, "max_new_tokens": 256, "batch_size": 32, "progress": False}
HEADER = """\
| set | steps | untrained | `prior` | trained: median (least to most) | - untrained, 95% | - `prior`, 95% |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """What is measured in a row of the table.

    `write` makes the videos in a folder, and may leave a `split.json` beside it.
    """

    folder: str
    name: str
    write: Callable[[Path], object]
    task: str
    sampling: Mapping[str, object]
    steps: int


SETS = (
    TrainingSet(
        "patches_relations",
        "patches, `relations`",
        lambda folder: write_patches(folder, colour_says="relation", seed=DATA_SEED),
        "relations",
        {"frame_step": 5},
        300,
    ),
    TrainingSet(
        "patches_grounding",
        "patches, `grounding`",
        lambda folder: write_patches(folder, colour_says="box", seed=DATA_SEED),
        "grounding",
        {"fraction": 0.25},
        300,
    ),
    TrainingSet(
        "kitchen",
        "kitchen, `relations`",
        lambda folder: write_kitchen(folder, videos=18, seed=DATA_SEED, width=320, height=180),
        "relations",
        {"frame_step": 10},
        800,
    ),
)


def main() -> None:
    print(HEADER)
    for training_set in SETS:
        print(measured(training_set, Path(sys.argv[1]) / training_set.folder), flush=True)


def measured(training_set: TrainingSet, work: Path) -> str:
    """The row of a set. Differences are those of the training with the median figure."""
    model = prepare(training_set, work)
    before = asked(work, "before", model=str(model))
    prior = asked(work, "prior", model="prior")
    trained = [train_and_ask(training_set, work, model, seed) for seed in SEEDS]
    least, median, most = sorted(trained, key=primary)
    cells = [training_set.name, str(training_set.steps), f"{primary(before):.3f}", f"{primary(prior):.3f}"]
    cells.append(f"{primary(median):.3f} ({primary(least):.3f} to {primary(most):.3f})")
    for other in (before, prior):
        difference = compare_pair(median, other)
        cells.append(f"{difference.difference:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]")
    return f"| {' | '.join(cells)} |"


def prepare(training_set: TrainingSet, work: Path) -> Path:
    """Videos, dataset and chats of a set; returns an untrained model."""
    work.mkdir(parents=True, exist_ok=True)
    training_set.write(work / "videos")
    split = work / "split.json"
    build(work / "videos", work / "data", configs=(training_set.task,), sampling=training_set.sampling,
          split_file=split if split.exists() else None, cache=False)  # fmt: skip
    export(work / "data", work / "chats", "chat", box_format=BoxFormat())
    return make_trainable_model(work / "model", work / "chats")


def train_and_ask(training_set: TrainingSet, work: Path, model: Path, seed: int) -> ScoredRun:
    adapter = work / f"adapter_{seed}"
    settings = {"model": model, "out": adapter, "steps": training_set.steps, "seed": seed, **TRAINED}
    flags = [f"--{name}={value}" for name, value in settings.items()]
    subprocess.run([sys.executable, RECIPE, work / "chats", *flags], check=True, stdout=sys.stderr)
    return asked(work, f"after_{seed}", model=str(model), adapter=str(adapter))


def asked(work: Path, name: str, **settings: object) -> ScoredRun:
    run(work / "data", work / "runs" / name, **{**ASKED, **settings})
    return score(work / "runs" / name)


def primary(scored: ScoredRun) -> float:
    return scored.results.figures[scored.results.primary].mean


if __name__ == "__main__":
    main()
