"""scripts/train_grpo.py on `--model kitchen_early`, beside trainings that lack what GRPO should gain from.

    pip install -e ".[run,train]"
    OMP_NUM_THREADS=1 python perf/grpo.py WORK [--steps 120 --seed 43] [--table]

Trains on 9 videos of a toy kitchen and asks about 14 videos of two other kitchens, greedily. The settings were fixed on
a kitchen of seed 251. A training is kept, and not repeated. Each training starts from the same checkpoint:

* `grpo`: the recipe;
* `shuffled`: the rewards of the answers to a question are exchanged among these answers;
* `format`: only the parts `format` and `parsed` are rewarded;
* `supervised`: scripts/train_lora.py on the same questions and the references, for about as many CPU seconds.

Prints one row for each model: CPU seconds, the fraction of readable answers, the score among these, the score, and the
score after half the steps. The last column is the score of `grpo` minus that of the model, with the 95% interval over
videos.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import train_grpo
import train_lora

import barista_bench.models
from barista_bench.benchmarks import task_class
from barista_bench.core.boxes import BoxFormat
from barista_bench.data.folder import build
from barista_bench.mini.kitchen import write_kitchen
from barista_bench.rewards import TaskReward, task_reward
from barista_bench.runs.ask.runner import run
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.stats import compare_pair
from barista_bench.training.exporting import export_training_set
from barista_bench.training.task_rewards import DEFAULT_WEIGHTS

MODEL = "kitchen_early"
CHECKPOINT = Path(barista_bench.models.__file__).parent / "checkpoints" / MODEL
TASKS = ("referring", "grounding", "hand_object")
SAMPLING: Mapping[str, Mapping[str, object]] = {
    "referring": {"frame_step": 10},
    "grounding": {"fraction": 0.2},
    "hand_object": {"fraction": 0.3},
}
SEEDS = {"train": {261: 9}, "test": {341: 7, 351: 7}}
"""The seeds of the kitchens, and the videos of each."""
QUESTIONS = {"train": 400, "test": 150}
"""Of a task."""
GROUP = 8
SUPERVISED_STEPS = 6
"""Of 8 references; these take as long as a step of GRPO."""
GRPO = ["--group", GROUP, "--questions", 4, "--micro-batch", 32]
ASKED = {"repetitions": 1, "temperature": 0, "max_new_tokens": 96, "batch_size": 50, "progress": False}


class ShuffledReward(TaskReward):
    """Exchanges the rewards of the answers to each question: the same rewards, for nothing."""

    def __call__(self, *args: Any, **columns: Any) -> list[float | None]:  # noqa: ANN401
        rewards = super().__call__(*args, **columns)
        rng = random.Random(columns["reference"][0])
        groups = [rewards[start : start + GROUP] for start in range(0, len(rewards), GROUP)]
        return [reward for group in groups for reward in rng.sample(group, len(group))]


def shuffled_reward(name: str, *, benchmark: str) -> TaskReward:
    return ShuffledReward(task_class(benchmark, name), DEFAULT_WEIGHTS, {})


def format_reward(name: str, *, benchmark: str) -> TaskReward:
    return task_reward(name, benchmark=benchmark, weights={"format": 1, "parsed": 1})


REWARDS = {"grpo": task_reward, "shuffled": shuffled_reward, "format": format_reward}
TRAININGS = (*REWARDS, "supervised")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--task", action="append", choices=TASKS, help="by default all")
    parser.add_argument("--training", action="append", choices=TRAININGS, help="by default all")
    parser.add_argument("--steps", type=int, default=40, help="of GRPO [%(default)s]")
    parser.add_argument("--seed", type=int, default=42, help="of the trainings [%(default)s]")
    parser.add_argument("--table", action="store_true", help="only the table of the trainings that are there")
    args = parser.parse_args()
    for task in args.task or TASKS:
        for name in () if args.table else args.training or TRAININGS:
            prepare(args.work, "train")
            train(args.work, task, name, args.steps, args.seed)
    for task in args.task or TASKS:
        prepare(args.work, "test")
        print("\n".join(rows(args.work, task)), flush=True)


def prepare(work: Path, split: str) -> None:
    """Make the kitchens of a split, its dataset, and its exports."""
    data, videos = work / split, work / f"{split}_videos"
    for seed, count in SEEDS[split].items():
        if not any(videos.glob(f"s{seed}_*")):
            videos.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=work) as scratch:
                for video in write_kitchen(Path(scratch) / "k", videos=count, seed=seed, width=320, height=180):
                    video.rename(videos / f"s{seed}_{video.name}")
    if not data.exists():
        names = sorted(folder.name for folder in videos.iterdir())
        (work / f"{split}.json").write_text(json.dumps({"train": [], "test": [], split: names}))
        sampling = {task: {**SAMPLING[task], "limit": QUESTIONS[split]} for task in TASKS}
        build(videos, data, configs=TASKS, split_file=str(work / f"{split}.json"), cache=False, sampling=sampling)
    for form in ("prompts", "chat") if split == "train" else ():
        for task in TASKS:
            if not (work / f"{form}_{task}").exists():
                out = work / f"{form}_{task}"
                export_training_set(data, out, form, tasks=[task], box_format=BoxFormat.parse("xyxy/100"))


def train(work: Path, task: str, name: str, steps: int, seed: int) -> None:
    out = work / "adapters" / task / name
    if (out / "seconds.json").exists():
        return
    started = time.process_time()
    steps *= SUPERVISED_STEPS if name == "supervised" else 1
    common = ["--model", CHECKPOINT, "--out", out, "--steps", steps, "--seed", seed, "--learning-rate", 2e-3]
    common += ["--save-steps", steps // 2]
    if name == "supervised":
        train_lora.main(list(map(str, [work / f"chat_{task}", *common])))
    else:
        words = [work / f"prompts_{task}", *common, *GRPO, "--max-new-tokens", ASKED["max_new_tokens"]]
        train_grpo.main(list(map(str, words)), REWARDS[name])
    (out / "seconds.json").write_text(json.dumps(round(time.process_time() - started)))


def ask(work: Path, task: str, name: str, model: str = MODEL, adapter: str = "") -> ScoredRun:
    own = {"adapter": str(work / "adapters" / task / adapter)} if adapter else {}
    run(work / "test", work / "runs" / name, task=task, model=model, split="test", **own, **ASKED)
    return score(work / "runs" / name / task)


def rows(work: Path, task: str) -> Iterator[str]:
    trained = [name for name in reversed(TRAININGS) if _seconds(work, task, name).exists()]
    scored = {"before": ask(work, task, "before"), "`prior`": ask(work, task, "prior", "prior")}
    scored |= {name: ask(work, task, name, adapter=name) for name in trained}
    if "grpo" in trained:
        scored["`text_only:` grpo"] = ask(work, task, "text_only", f"text_only:{MODEL}", "grpo")
    for name, each in scored.items():
        halfway = sorted((_seconds(work, task, name).parent / "checkpoints").glob("checkpoint-*"), key=_step)[:-1]
        half = [_mean_score(ask(work, task, f"{name}_half", adapter=f"{name}/checkpoints/{f.name}")) for f in halfway]
        seconds = _seconds(work, task, name)
        cpu = seconds.read_text() if seconds.exists() else ""
        readable = [sample for sample in each.samples if sample.prediction is not None]
        among = [sample.scores[each.task.sample_score] for sample in readable]
        cells = [task, name, cpu, f"{len(readable) / len(each.samples):.2f}", f"{fmean(among or [0]):.3f}"]
        yield f"| {' | '.join([*cells, _mean_score(each), ''.join(half), _behind(scored, name)])} |"


def _mean_score(run: ScoredRun) -> str:
    return f"{fmean(sample.scores[run.task.sample_score] for sample in run.samples):.3f}"


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def _seconds(work: Path, task: str, name: str) -> Path:
    return work / "adapters" / task / name / "seconds.json"


def _behind(scored: dict[str, ScoredRun], name: str) -> str:
    if "grpo" not in scored or name == "grpo":
        return ""
    pair = compare_pair(scored["grpo"], scored[name])
    low, high = pair.sample_low, pair.sample_high
    interval = "" if low is None or high is None else f" [{low:+.3f}, {high:+.3f}]"
    return f"{pair.sample_difference:+.3f}{interval}"


if __name__ == "__main__":
    main()
