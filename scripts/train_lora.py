"""Train a LoRA adapter on exported chats with TRL and peft: `barista-bench run --adapter OUT` asks the model with it.

    pip install '.[run,train]'
    barista-bench export DATA --format chat --task relations --task grounding --box-format xyxy/1000 --out chats
    python scripts/train_lora.py chats --model Qwen/Qwen2.5-VL-3B-Instruct --out adapter

If the training is killed, repeat the command to continue from the last checkpoint. The adapter then equals the adapter
of an uninterrupted training. OUT/loss.json and loss.png have the learning curve. OUT/training_videos.json lists the
training videos for later runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
from lora_recipe import common_arguments, read_rows, train_once
from transformers import Trainer
from trl import SFTConfig, SFTTrainer


def main(words: Sequence[str] | None = None) -> None:
    args = _arguments(words)
    checkpoints = args.out / "checkpoints"

    def make_trainer(**parts: Any) -> Trainer:  # noqa: ANN401
        chats = read_rows(args.exports, "chat", ["images", "prompt", "completion"])  # images are decoded batch by batch
        return SFTTrainer(args=_config(args, checkpoints), train_dataset=chats, **parts)

    history = train_once(args, checkpoints, make_trainer)
    losses = [{"step": entry["step"], "loss": entry["loss"]} for entry in history if "loss" in entry]
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.plot([entry["step"] for entry in losses], [entry["loss"] for entry in losses])
    axes.set(xlabel="step", ylabel="loss (log)", yscale="log")
    figure.savefig(args.out / "loss.png", dpi=120, metadata={"Software": None})
    (args.out / "loss.json").write_text(json.dumps(losses, indent=1) + "\n")
    print(f"wrote {args.out}: loss {losses[0]['loss']:.3f} to {losses[-1]['loss']:.3f}")


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = common_arguments(__doc__, steps=500, learning_rate=1e-4)
    parser.add_argument("--batch", type=int, default=8, help="examples a step [%(default)s]")
    parser.add_argument("--micro-batch", type=int, default=8, help="of these, on the device at once [%(default)s]")
    args = parser.parse_args(words)
    if args.micro_batch < 1 or args.batch % args.micro_batch:
        sys.exit("error: --micro-batch does not divide --batch. Fix: choose numbers so that it does")
    return args


def _config(args: argparse.Namespace, checkpoints: Path) -> SFTConfig:
    has_gpu = torch.cuda.is_available()
    return SFTConfig(
        output_dir=str(checkpoints),
        max_steps=args.steps,
        per_device_train_batch_size=args.micro_batch,
        gradient_accumulation_steps=args.batch // args.micro_batch,
        learning_rate=args.learning_rate,
        warmup_steps=args.steps // 20,
        logging_steps=max(1, args.steps // 50),
        save_steps=args.save_steps,
        save_total_limit=2,
        max_length=None,  # cutting a prompt would cut its images
        seed=args.seed,
        use_cpu=not has_gpu,
        bf16=has_gpu,
        gradient_checkpointing=has_gpu,
        report_to="none",
    )


if __name__ == "__main__":
    main()
