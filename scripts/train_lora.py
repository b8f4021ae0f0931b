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
import shutil
import sys
from pathlib import Path
from typing import Any

import datasets
import matplotlib.pyplot as plt
import torch
from peft import LoraConfig
from transformers import AutoModelForImageTextToText, TrainerCallback, TrainerState, set_seed
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer

from barista_bench.core.training_videos import TrainingVideos, join_without_leaks
from barista_bench.errors import BaristaError
from barista_bench.models.local.processors import load_processor
from barista_bench.training.exporting import PARQUET


def main() -> None:
    args = _arguments()
    if args.micro_batch < 1 or args.batch % args.micro_batch:
        sys.exit("error: --micro-batch does not divide --batch. Fix: choose numbers so that it does")
    try:
        training = join_without_leaks({str(path): TrainingVideos.read(path) for path in args.exports})
    except BaristaError as error:
        sys.exit(f"error: {error}")
    settings: dict[str, Any] = {name: str(value) for name, value in vars(args).items() if name != "exports"}
    settings |= {"exports": [str(path) for path in args.exports], "videos": sorted(training.videos)}
    kept, checkpoints = args.out / "settings.json", args.out / "checkpoints"
    if (
        kept.exists() and json.loads(kept.read_text(encoding="utf-8")) != settings
    ):  # a checkpoint of another must not go on as this one
        sys.exit(f"error: {args.out}: was trained with other settings, see {kept}. Fix: choose another --out")
    final = checkpoints / f"checkpoint-{args.steps}"
    if not (final / TRAINER_STATE_NAME).exists():  # TRL would add a step to a training that has all of them
        _train(args, settings, training, checkpoints)
    training.write(args.out)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copyfile(final / name, args.out / name)
    history = json.loads((final / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["log_history"]
    losses = [{"step": entry["step"], "loss": entry["loss"]} for entry in history if "loss" in entry]
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.plot([entry["step"] for entry in losses], [entry["loss"] for entry in losses])
    axes.set(xlabel="step", ylabel="loss (log)", yscale="log")
    figure.savefig(args.out / "loss.png", dpi=120, metadata={"Software": None})
    (args.out / "loss.json").write_text(json.dumps(losses, indent=1) + "\n")
    print(f"wrote {args.out}: loss {losses[0]['loss']:.3f} to {losses[-1]['loss']:.3f}")


def _train(args: argparse.Namespace, settings: dict[str, Any], training: TrainingVideos, checkpoints: Path) -> None:
    set_seed(args.seed)
    processor = load_processor(args.model, wants_video=False, revision=None, trust_remote_code=False)
    model = AutoModelForImageTextToText.from_pretrained(args.model, dtype="auto")
    refuse_endless(model, processor, args.model)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "settings.json").write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n")
    chats = datasets.Dataset.from_parquet([str(path / PARQUET) for path in args.exports])
    lora = LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    trainer = SFTTrainer(
        model,
        args=_config(args, checkpoints),
        train_dataset=chats.select_columns(["images", "prompt", "completion"]),  # images are decoded batch by batch
        processing_class=processor,
        peft_config=lora,
        callbacks=[VideosBesideCheckpoints(training, checkpoints)],
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(checkpoints)))


class VideosBesideCheckpoints(TrainerCallback):
    """Lists the training videos beside each checkpoint: a checkpoint is an adapter, too, and a run needs this list."""

    def __init__(self, training: TrainingVideos, folder: Path) -> None:
        self.training, self.folder = training, folder

    def on_save(self, args: object, state: TrainerState, control: object, **_: object) -> None:
        self.training.write(self.folder / f"checkpoint-{state.global_step}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exports", nargs="+", type=Path, help="folders that `barista-bench export` wrote")
    parser.add_argument("--model", required=True, help="checkpoint folder or Hub id")
    parser.add_argument("--out", required=True, type=Path, help="adapter folder; holds the checkpoints, too")
    parser.add_argument("--steps", type=int, default=500, help="optimizer steps [%(default)s]")
    parser.add_argument("--batch", type=int, default=8, help="examples a step [%(default)s]")
    parser.add_argument("--micro-batch", type=int, default=8, help="of these, on the device at once [%(default)s]")
    parser.add_argument("--learning-rate", type=float, default=1e-4, help="of AdamW [%(default)s]")
    parser.add_argument("--rank", type=int, default=16, help="of the LoRA matrices [%(default)s]")
    parser.add_argument("--save-steps", type=int, default=50, help="steps between checkpoints [%(default)s]")
    parser.add_argument("--seed", type=int, default=42, help="of the chats' order and the new weights [%(default)s]")
    return parser.parse_args()


def refuse_endless(model: Any, processor: Any, name: str) -> None:  # noqa: ANN401  (of any family)
    """Exit if generation does not stop at the token with which TRL trains a turn to end: answers would be endless."""
    chat = [{"role": role, "content": [{"type": "text", "text": "."}]} for role in ("user", "assistant")]
    tokenizer = processor.tokenizer
    written = tokenizer(processor.apply_chat_template(chat).rstrip(), add_special_tokens=False)["input_ids"]
    declared = model.generation_config.eos_token_id
    if written[-1] not in (declared if isinstance(declared, list) else [declared]):
        end = tokenizer.convert_ids_to_tokens(written[-1])
        sys.exit(
            f"error: model {name}: a turn ends with {end!r}, where generation does not stop. "
            f"Fix: add {written[-1]} to eos_token_id in its generation_config.json"
        )


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
