"""What every side is asked: a Qwen2.5-VL of random weights, and prompts that a mini kitchen gives two tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import datasets
import pyarrow.parquet as pq
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from barista_bench.benchmarks import get_task
from barista_bench.core.prompt import ImagePart, TextPart
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.mini import write_kitchen
from barista_bench.models import tiny
from barista_bench.models.box_formats import box_format_of

KIND = "qwen2_5_vl"
WIDTH, HEIGHT = 336, 196
"""Pixels of a frame: whole tokens of 28 x 28, so that no side resizes it and all see the same pixels."""
MIN_PIXELS, MAX_PIXELS = 16 * 28**2, 1024 * 28**2
_HEAD = 64  # vLLM has no attention for narrower heads on a CPU


@dataclass(frozen=True, slots=True)
class Scenario:
    """Prompts of one task; several runs of each are sampled, a single one is greedy."""

    name: str
    task: str
    repetitions: int = 1

    @property
    def temperature(self) -> float:
        return 0.0 if self.repetitions == 1 else 0.7


SCENARIOS = (
    Scenario("one image", "grounding"),
    Scenario("six frames", "temporal_vqa"),
    Scenario("3 runs of a prompt of six frames", "temporal_vqa", repetitions=3),
)


def make_model(folder: Path) -> Path:
    """A checkpoint of 17 M parameters in float32."""
    return tiny.make_checkpoint(folder, "qwen2_5_vl of 17 M parameters", _qwen)


def make_data(folder: Path, count: int) -> Path:
    """A dataset folder with `count` examples of each task, their frames in it as JPEG."""
    wanted, data = {task.task for task in SCENARIOS}, folder / f"data-{count}"
    if not data.is_dir():
        if not (folder / "kitchen").is_dir():
            write_kitchen(folder / "kitchen", width=WIDTH, height=HEIGHT)
        build(folder / "kitchen", data, configs=sorted(wanted), sampling={"limit": count}, cache=False)
    return data


def export(data: Path, task_name: str, count: int, out: Path) -> Path:
    """Write the prompts that `run --limit` would ask to `out`, as Parquet: `id`, `messages` (JSON) and `images` (JPEG).

    An image part of a message holds its place in `images`, which are the bytes that the dataset folder holds.
    """
    task, box_format = get_task("barista", task_name), box_format_of(KIND)
    files = sorted((data / task_name).glob("*.parquet"))
    stored = {row["example_id"]: row["images"] for file in files for row in pq.read_table(file).to_pylist()}
    rows = []
    for example in open_examples(data, "barista", task_name, limit=count).examples:
        prompt = task.prompt(example, box_format)
        parts = [_part(part) for part in prompt.parts]
        system = {"role": "system", "content": [{"type": "text", "text": prompt.system}]}
        messages = json.dumps([system, {"role": "user", "content": parts}])
        rows.append({"id": example.example_id, "messages": messages, "images": stored[example.example_id]})
    text = datasets.Value("string")
    features = datasets.Features({"id": text, "messages": text, "images": datasets.Sequence(datasets.Image())})
    out.parent.mkdir(parents=True, exist_ok=True)
    datasets.Dataset.from_list(rows, features=features).to_parquet(out)
    return out


def _part(part: TextPart | ImagePart) -> dict[str, object]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image", "image": part.index}


def _qwen() -> tuple[tiny.Saveable, ...]:
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = tiny.train_tokenizer(["<|endoftext|>", "<|im_end|>", "<|im_start|>", *marks])
    start, end, image, video = (tiny.token_id(tokenizer, mark) for mark in marks)
    heads, key_heads, vision_heads = 6, 2, 4
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": heads * _HEAD,
            "intermediate_size": 1536,
            "num_hidden_layers": 6,
            "num_attention_heads": heads,
            "num_key_value_heads": key_heads,
            "max_position_embeddings": 8192,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [8, 12, 12]},
            "initializer_range": 0.1,  # the usual 0.02 makes answers that no image changes
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": tokenizer.bos_token_id,
        },
        vision_config={
            "depth": 2,
            "hidden_size": vision_heads * _HEAD,
            "intermediate_size": 1024,
            "num_heads": vision_heads,
            "out_hidden_size": heads * _HEAD,
            "patch_size": 14,
            "window_size": 112,
            "fullatt_block_indexes": [1],
            "initializer_range": 0.1,
        },
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        tie_word_embeddings=False,
    )
    size = {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS}
    tokenizer.chat_template = tiny.TURN.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    return Qwen2_5_VLForConditionalGeneration(config), tokenizer, Qwen2VLImageProcessorPil(size=size)
