"""scripts/train_lora.py on tiny models of random weights, beside the same model untrained and `prior`.

    pip install -e ".[run,train]"
    python perf/training_recipe.py WORK

Prints the table of docs/validation_benchmarks.md: three sets, of each three trainings that differ in their seed alone.
The settings below were chosen on videos that DATA_SEED 0 makes; the table is of others, made after that. Videos,
adapters and runs stay in WORK/<set>.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from barista_bench.core.boxes import BoxFormat
from barista_bench.data.folder import build
from barista_bench.mini.kitchen import write_kitchen
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.stats import compare_pair
from barista_bench.training.exporting import export_training_set

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests are not installed

from tests.one_run import run
from tests.training.patches import make_trainable_model, write_patches

RECIPE = Path(__file__).resolve().parents[1] / "scripts" / "train_lora.py"
DATA_SEED = 1
SEEDS = (1, 2, 3)
"""Of the trainings."""
TRAINED = {"learning-rate": 4e-3, "rank": 32}
ASKED = {"split": "test", "repetitions": 1, "temperature": 0, "max_new_tokens": 256, "batch_size": 32}
HEADER = """\
| set | steps | untrained | `prior` | trained: median (least to most) | - untrained, 95% | - `prior`, 95% |
|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """The measurements in a row of the table.

    `write` makes the videos in a folder, and may leave a `split.json` beside it.
    """

    name: str
    write: Callable[[Path], object]
    task: str
    sampling: Mapping[str, object]
    steps: int


_relation_patches = partial(write_patches, colour_says="relation", seed=DATA_SEED)
_box_patches = partial(write_patches, colour_says="box", seed=DATA_SEED)
_kitchen = partial(write_kitchen, videos=18, seed=DATA_SEED, width=320, height=180)
SETS = (
    TrainingSet("patches", _relation_patches, "relations", {"frame_step": 5}, 300),
    TrainingSet("patches", _box_patches, "grounding", {"fraction": 0.25}, 300),
    TrainingSet("kitchen", _kitchen, "relations", {"frame_step": 10}, 800),
)


def main() -> None:
    print(HEADER)
    for training_set in SETS:
        work = Path(sys.argv[1]) / f"{training_set.name}_{training_set.task}"
        work.mkdir(parents=True, exist_ok=True)
        with chdir(work):  # so that reports call the model by a short path
            print(measure_recipe(training_set), flush=True)


def measure_recipe(training_set: TrainingSet) -> str:
    """A row of the table. Differences are those of the training with the median score."""
    prepare(training_set)
    untrained = ask_and_score(training_set, "before", model="model")
    prior = ask_and_score(training_set, "prior", model="prior")
    least, median, most = sorted((train_and_ask(training_set, seed) for seed in SEEDS), key=primary)
    cells = [f"{training_set.name}, `{training_set.task}`", str(training_set.steps)]
    cells += [f"{primary(untrained):.3f}", f"{primary(prior):.3f}"]
    cells.append(f"{primary(median):.3f} ({primary(least):.3f} to {primary(most):.3f})")
    for other in (untrained, prior):
        difference = compare_pair(median, other)
        cells.append(f"{difference.difference:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]")
    return f"| {' | '.join(cells)} |"


def prepare(training_set: TrainingSet) -> None:
    """Videos, dataset, chats, and an untrained model."""
    training_set.write(Path("videos"))
    split = "split.json" if Path("split.json").exists() else None
    build("videos", "data", configs=(training_set.task,), sampling=training_set.sampling, split_file=split, cache=False)
    export_training_set("data", "chats", "chat", box_format=BoxFormat())
    make_trainable_model(Path("model"), Path("chats"))


def train_and_ask(training_set: TrainingSet, seed: int) -> ScoredRun:
    adapter = f"adapter_{seed}"
    settings = {"model": "model", "out": adapter, "steps": training_set.steps, "seed": seed, **TRAINED}
    flags = [f"--{name}={value}" for name, value in settings.items()]
    subprocess.run([sys.executable, RECIPE, "chats", *flags], check=True, stdout=sys.stderr)
    return ask_and_score(training_set, f"after_{seed}", model="model", adapter=adapter)


def ask_and_score(training_set: TrainingSet, name: str, **settings: object) -> ScoredRun:
    folder = Path("runs") / name
    run("data", folder, task=training_set.task, progress=False, **ASKED, **settings)
    return score(folder)


def primary(scored: ScoredRun) -> float:
    return scored.results.metrics[scored.results.primary].mean


if __name__ == "__main__":
    main()
