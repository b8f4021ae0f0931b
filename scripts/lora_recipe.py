"""The parts that scripts/train_lora.py and scripts/train_grpo.py share: flags, checks, and one training."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
from peft import LoraConfig
from transformers import AutoModelForImageTextToText, Trainer, TrainerCallback, TrainerState, set_seed
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint

from barista_bench.core.training_videos import TrainingVideos, join_without_leaks
from barista_bench.errors import BaristaError
from barista_bench.models.local.processors import load_processor
from barista_bench.training.exporting import PARQUET

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


def common_arguments(description: str | None, *, steps: int, learning_rate: float) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exports", nargs="+", type=Path, help="folders that `barista-bench export` wrote")
    parser.add_argument("--model", required=True, help="checkpoint folder or Hub id")
    parser.add_argument("--out", required=True, type=Path, help="adapter folder; holds the checkpoints, too")
    parser.add_argument("--steps", type=int, default=steps, help="optimizer steps [%(default)s]")
    parser.add_argument("--learning-rate", type=float, default=learning_rate, help="of AdamW [%(default)s]")
    parser.add_argument("--rank", type=int, default=16, help="of the LoRA matrices [%(default)s]")
    parser.add_argument("--save-steps", type=int, default=50, help="steps between checkpoints [%(default)s]")
    parser.add_argument("--seed", type=int, default=42, help="of all that is random [%(default)s]")
    return parser


def read_rows(exports: Sequence[Path], form: str, columns: Sequence[str]) -> datasets.Dataset:
    """Return these columns of the rows of all exports, or exit where an export is missing or of another format."""
    for path in exports:
        file = path / PARQUET
        if not file.exists() or not set(columns) <= set(pq.read_schema(file).names):
            sys.exit(f"error: {path}: no rows to train on. Fix: write them by `barista-bench export --format {form}`")
    return datasets.Dataset.from_parquet([str(path / PARQUET) for path in exports], columns=list(columns))


def train_once(
    args: argparse.Namespace, checkpoints: Path, make_trainer: Callable[..., Trainer]
) -> list[dict[str, Any]]:
    """Train, or continue, or do nothing where the training is complete. Write the adapter and return the log history.

    Args:
        args: the settings of the training, in which `steps` and `out` are used.
        checkpoints: folder of the checkpoints.
        make_trainer: is called with `model`, `processing_class`, `peft_config` and `callbacks`.
    """
    try:
        training = join_without_leaks({str(path): TrainingVideos.read(path) for path in args.exports})
    except BaristaError as error:
        sys.exit(f"error: {error}")
    settings: dict[str, Any] = {name: str(value) for name, value in vars(args).items() if name != "exports"}
    settings |= {"exports": [str(path) for path in args.exports], "videos": sorted(training.videos)}
    kept, final = args.out / "settings.json", checkpoints / f"checkpoint-{args.steps}"
    # A checkpoint of another training must not continue as this one.
    if kept.exists() and json.loads(kept.read_text(encoding="utf-8")) != settings:
        sys.exit(f"error: {args.out}: was trained with other settings, see {kept}. Fix: choose another --out")
    if not (final / TRAINER_STATE_NAME).exists():  # TRL would add a step to a training that has all of them
        trainer = make_trainer(**_parts(args), callbacks=[VideosBesideCheckpoints(training, checkpoints)])
        args.out.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n")
        trainer.train(resume_from_checkpoint=get_last_checkpoint(str(checkpoints)) if checkpoints.exists() else None)
    training.write(args.out)
    shutil.copyfile(final / ADAPTER_WEIGHTS, args.out / ADAPTER_WEIGHTS)
    config = json.loads((final / ADAPTER_CONFIG).read_text("utf-8"))
    config["target_modules"].sort()  # peft writes a set
    (args.out / ADAPTER_CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True))
    history: list[dict[str, Any]] = json.loads((final / TRAINER_STATE_NAME).read_text("utf-8"))["log_history"]
    return history


class VideosBesideCheckpoints(TrainerCallback):
    """Lists the training videos beside each checkpoint: a checkpoint is an adapter, too, and a run needs this list."""

    def __init__(self, training: TrainingVideos, folder: Path) -> None:
        self.training, self.folder = training, folder

    def on_save(self, args: object, state: TrainerState, control: object, **_: object) -> None:
        self.training.write(self.folder / f"checkpoint-{state.global_step}")


def _parts(args: argparse.Namespace) -> dict[str, Any]:
    """Return the model, its processor and the new matrices."""
    set_seed(args.seed)
    processor = load_processor(args.model, wants_video=False, revision=None, trust_remote_code=False)
    model = AutoModelForImageTextToText.from_pretrained(args.model, dtype="auto")
    _refuse_endless(model, processor, args.model)
    lora = LoraConfig(r=args.rank, lora_alpha=2 * args.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return {"model": model, "processing_class": processor, "peft_config": lora}


def _refuse_endless(model: Any, processor: Any, name: str) -> None:  # noqa: ANN401  (of any family)
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
