"""Train a LoRA adapter by GRPO on exported prompts with TRL and peft, each answer rewarded by its task's own score.

    pip install '.[run,train]'
    barista-bench export DATA --format prompts --task relations --box-format xyxy/1000 --out prompts
    python scripts/train_grpo.py prompts --model Qwen/Qwen2.5-VL-3B-Instruct --out adapter

Begin with a model that already answers some questions: equal rewards teach nothing. If the training is killed, repeat
the command to continue from the last checkpoint. OUT/rewards.json has the curves of the reward and of its parts.
OUT/training_videos.json lists the training videos for later runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import datasets
import torch
from peft import LoraConfig
from train_lora import VideosBesideCheckpoints, refuse_endless
from transformers import AutoModelForImageTextToText, set_seed
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer

from barista_bench.core.training_videos import TrainingVideos, join_without_leaks
from barista_bench.errors import BaristaError
from barista_bench.models.local.processors import load_processor
from barista_bench.rewards import TaskReward, task_reward
from barista_bench.training.exporting import PARQUET
from barista_bench.training.reward_rows import REFERENCE, read_reference


def main() -> None:
    args = _arguments()
    rows = datasets.Dataset.from_parquet([str(path / PARQUET) for path in args.exports])
    try:
        training = join_without_leaks({str(path): TrainingVideos.read(path) for path in args.exports})
        rewards = _rewards(rows)
    except BaristaError as error:
        sys.exit(f"error: {error}")
    settings: dict[str, Any] = {name: str(value) for name, value in vars(args).items() if name != "exports"}
    settings |= {"exports": [str(path) for path in args.exports], "videos": sorted(training.videos)}
    kept, checkpoints = args.out / "settings.json", args.out / "checkpoints"
    if kept.exists() and json.loads(kept.read_text(encoding="utf-8")) != settings:
        sys.exit(f"error: {args.out}: was trained with other settings, see {kept}. Fix: choose another --out")
    final = checkpoints / f"checkpoint-{args.steps}"
    if not (final / TRAINER_STATE_NAME).exists():
        args.out.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n")
        _train(args, rows, rewards, training, checkpoints)
    training.write(args.out)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copyfile(final / name, args.out / name)
    history = json.loads((final / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["log_history"]
    names = (
        "step",
        "reward",
        "reward_std",
        *(f"{reward.__name__}/{part}" for reward in rewards for part in reward.part_names),
    )
    curves = [{name: entry[name] for name in names if name in entry} for entry in history if "reward" in entry]
    (args.out / "rewards.json").write_text(json.dumps(curves, indent=1) + "\n")
    print(f"wrote {args.out}: reward {curves[0]['reward']:.3f} to {curves[-1]['reward']:.3f}")


def _rewards(rows: datasets.Dataset) -> list[TaskReward]:
    """Return a reward function per task of the rows. For each row, TRL leaves out the rewards of other tasks."""
    references = map(read_reference, rows[REFERENCE])
    tasks = dict.fromkeys((reference.benchmark, reference.task) for reference in references)
    return [task_reward(task, benchmark=benchmark) for benchmark, task in tasks]


def _train(
    args: argparse.Namespace,
    rows: datasets.Dataset,
    rewards: list[TaskReward],
    training: TrainingVideos,
    checkpoints: Path,
) -> None:
    set_seed(args.seed)
    processor = load_processor(args.model, wants_video=False, revision=None, trust_remote_code=False)
    processor.tokenizer.padding_side = "left"
    model = AutoModelForImageTextToText.from_pretrained(args.model, dtype="auto")
    refuse_endless(model, processor, args.model)
    trainer = GRPOTrainer(
        model,
        reward_funcs=list(rewards),
        args=_config(args, checkpoints),
        train_dataset=rows.select_columns(["images", "prompt", REFERENCE]),
        processing_class=processor,
        peft_config=LoraConfig(
            r=args.rank, lora_alpha=2 * args.rank, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
        callbacks=[VideosBesideCheckpoints(training, checkpoints)],
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(checkpoints)) if checkpoints.exists() else None)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exports", nargs="+", type=Path, help="folders of `barista-bench export --format prompts`")
    parser.add_argument("--model", required=True, help="checkpoint folder or Hub id")
    parser.add_argument("--out", required=True, type=Path, help="adapter folder; holds the checkpoints, too")
    parser.add_argument("--steps", type=int, default=200, help="optimizer steps [%(default)s]")
    parser.add_argument("--group", type=int, default=8, help="answers to a question, compared together [%(default)s]")
    parser.add_argument("--questions", type=int, default=4, help="questions a step [%(default)s]")
    parser.add_argument("--micro-batch", type=int, default=8, help="answers on the device at once [%(default)s]")
    parser.add_argument("--max-new-tokens", type=int, default=256, help="of an answer [%(default)s]")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the answers [%(default)s]")
    parser.add_argument("--learning-rate", type=float, default=1e-5, help="of AdamW [%(default)s]")
    parser.add_argument("--beta", type=float, default=0.0, help="weight of the distance to the model [%(default)s]")
    parser.add_argument("--rank", type=int, default=16, help="of the LoRA matrices [%(default)s]")
    parser.add_argument("--save-steps", type=int, default=50, help="steps between checkpoints [%(default)s]")
    parser.add_argument("--seed", type=int, default=42, help="of the order, the answers, the new weights [%(default)s]")
    args = parser.parse_args()
    if args.group * args.questions % args.micro_batch or args.micro_batch < 1:
        sys.exit("error: --micro-batch does not divide --group x --questions. Fix: choose numbers so that it does")
    return args


def _config(args: argparse.Namespace, checkpoints: Path) -> GRPOConfig:
    has_gpu = torch.cuda.is_available()
    return GRPOConfig(
        output_dir=str(checkpoints),
        max_steps=args.steps,
        num_generations=args.group,
        per_device_train_batch_size=args.micro_batch,
        gradient_accumulation_steps=args.group * args.questions // args.micro_batch,
        max_completion_length=args.max_new_tokens,
        temperature=args.temperature,
        learning_rate=args.learning_rate,
        beta=args.beta,
        logging_steps=1,
        save_steps=args.save_steps,
        save_total_limit=2,
        seed=args.seed,
        use_cpu=not has_gpu,
        bf16=has_gpu,
        gradient_checkpointing=has_gpu,
        report_to="none",
    )


if __name__ == "__main__":
    main()
