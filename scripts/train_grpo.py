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
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lora_recipe import common_arguments, read_rows, train_once
from transformers import Trainer
from trl import GRPOConfig, GRPOTrainer

from barista_bench.errors import BaristaError
from barista_bench.rewards import task_reward
from barista_bench.training.reward_rows import REFERENCE, read_reference


def main(words: Sequence[str] | None = None) -> None:
    args = _arguments(words)
    rows = read_rows(args.exports, "prompts", ["images", "prompt", REFERENCE])
    try:
        tasks = dict.fromkeys((each.benchmark, each.task) for each in map(read_reference, rows[REFERENCE]))
        # TRL leaves out the rewards of other tasks than a row's.
        rewards = [task_reward(task, benchmark=benchmark) for benchmark, task in tasks]
    except BaristaError as error:
        sys.exit(f"error: {error}")
    checkpoints = args.out / "checkpoints"

    def make_trainer(**parts: Any) -> Trainer:  # noqa: ANN401
        parts["processing_class"].tokenizer.padding_side = "left"
        config = _config(args, checkpoints)
        return GRPOTrainer(reward_funcs=list(rewards), args=config, train_dataset=rows, **parts)

    history = train_once(args, checkpoints, make_trainer)
    parts = [f"{reward.__name__}/{part}" for reward in rewards for part in (*reward.weights, "earned")]
    names = ("step", "reward", "reward_std", *parts)
    curves = [{name: entry[name] for name in names if name in entry} for entry in history if "reward" in entry]
    (args.out / "rewards.json").write_text(json.dumps(curves, indent=1) + "\n")
    print(f"wrote {args.out}: reward {curves[0]['reward']:.3f} to {curves[-1]['reward']:.3f}")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = common_arguments(__doc__, steps=200, learning_rate=1e-5)
    parser.add_argument("--group", type=int, default=8, help="answers to a question, compared together [%(default)s]")
    parser.add_argument("--questions", type=int, default=4, help="questions a step [%(default)s]")
    parser.add_argument("--micro-batch", type=int, default=8, help="answers on the device at once [%(default)s]")
    parser.add_argument("--max-new-tokens", type=int, default=256, help="of an answer [%(default)s]")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the answers [%(default)s]")
    parser.add_argument("--beta", type=float, default=0.0, help="weight of the distance to the model [%(default)s]")
    args = parser.parse_args(words)
    if args.micro_batch < 1 or args.group * args.questions % args.micro_batch:
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
        chat_template_kwargs={"return_tensors": None},  # prompts differ in length, and some processors make tensors
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
