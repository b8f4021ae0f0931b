"""A release with answers only in the picture: a patch's colour tells its relation, or the corner of its box.

All else that a question holds is the same on every frame, so that no answer can be read out of the text.
"""

import json
import random
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import av
import numpy as np
import pyarrow.parquet as pq
from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from transformers import AutoTokenizer

from barista_bench.models import tiny
from barista_bench.training.exporting import PARQUET
from tests import tiny_architectures
from tests.releases import HEIGHT, WIDTH, relation, segmentation, span, write_release

PATCH, BASE = "o-cup", "o-machine"
COLOURS = {"on": (220, 40, 40), "under": (40, 200, 60), "inside": (50, 70, 230), "behind": (230, 210, 40)}
CORNERS = ((4, 4), (52, 4), (4, 34), (52, 34))
"""Upper left corners of the patch, pixels; it is 40 x 26."""
PATCH_SIZE = (40, 26)
STEP = 5
"""Frames that look the same."""
FRAMES = STEP * len(COLOURS) * len(CORNERS)


def write_patches(root: Path, *, colour_says: Literal["relation", "box"], videos: int = 16, seed: int = 0) -> Path:
    """Half of the videos are for training, which `split.json` beside `root` says.

    Each shows every colour four times: in every corner, or always in the corner of that colour.
    """
    rng = random.Random(seed)
    names = [f"patches_{number:02d}" for number in range(videos)]
    for name in names:
        corners = dict(zip(COLOURS, CORNERS, strict=True))
        scenes = [(v, c if colour_says == "relation" else corners[v]) for v in COLOURS for c in CORNERS]
        rng.shuffle(scenes)
        write_release(root, name, _document(scenes, colour_says == "relation"), video=False)
        _write_video(root / name / "video.mp4", scenes, rng)
    (root.parent / "split.json").write_text(json.dumps({"train": names[::2], "test": names[1::2]}))
    return root


def _document(scenes: list[tuple[str, tuple[int, int]]], says_relation: bool) -> dict[str, Any]:
    boxes = [(*corner, *PATCH_SIZE) for _, corner in scenes for _ in range(STEP)]
    base = (46, 30, 4, 4)
    annotations = [
        {"image_id": frame, "object_id": name, "bbox": list(map(float, box)), "segmentation": segmentation(box)}
        for frame, patch in enumerate(boxes)
        for name, box in ((PATCH, patch), (BASE, base))
    ]
    spans: dict[str, list[tuple[int, int]]] = {value: [] for value in COLOURS}
    for number, (value, _) in enumerate(scenes):
        spans[value if says_relation else "on"].append((number * STEP, (number + 1) * STEP))
    whole = [span(0, FRAMES)]
    return {
        "video_metadata": [{"width": WIDTH, "height": HEIGHT, "frame_count": FRAMES, "fps": 30.0}],
        "categories": [{"id": "c-cup", "name": "coffee cup"}, {"id": "c-machine", "name": "coffee machine"}],
        "object_id_to_category_id": {PATCH: "c-cup", BASE: "c-machine"},
        "annotations": annotations,
        "attributes": [
            {"object_id": BASE, "attribute_type": "type", "value": "capsule", "image_ranges": whole},
            {"object_id": PATCH, "attribute_type": "type", "value": "mug", "image_ranges": whole},
        ],
        "relations": [relation(PATCH, BASE, "position", value, *ranges) for value, ranges in spans.items() if ranges],
        "activities": [{"image_range": span(0, FRAMES), "activity_class_id": "a-place", "display_name": "Place cup"}],
        "process_steps": [],
    }


def _write_video(path: Path, scenes: list[tuple[str, tuple[int, int]]], rng: random.Random) -> None:
    noise = np.random.default_rng(rng.randrange(2**32))
    ground = noise.integers(60, 160)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for value, (x, y) in scenes:
            for _ in range(STEP):
                image = noise.normal(ground, 12, (HEIGHT, WIDTH, 3))
                image[y : y + PATCH_SIZE[1], x : x + PATCH_SIZE[0]] = COLOURS[value]
                frame = av.VideoFrame.from_ndarray(image.clip(0, 255).astype(np.uint8), format="rgb24")
                container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def make_trainable_model(folder: Path, chats: Path) -> Path:
    """A tiny LLaVA with random weights and a vocabulary of exported chats, which stops at the end of a turn.

    A token is a number or a frequent text between two numbers, across words: a chat is a hundred tokens, not a
    thousand, and a model learns within minutes which numbers belong to which input.
    """
    rows = pq.read_table(chats / PARQUET, columns=["prompt", "completion"]).to_pylist()
    turns = (turn for row in rows for turn in (*row["prompt"], *row["completion"]))
    texts = [part["text"] for turn in turns for part in turn["content"] if part["text"]]
    phrases = Sequence([Split(Regex(r"\d+"), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])
    with patch.multiple(tiny, _CORPUS=texts, _VOCABULARY=2048), patch(f"{ByteLevel.__module__}.ByteLevel") as level:
        level.return_value, level.alphabet = phrases, ByteLevel.alphabet
        tiny.make_checkpoint(folder, "llava of chats", tiny_architectures._llava)
    path = folder / "generation_config.json"
    settings = json.loads(path.read_text())
    settings["eos_token_id"] = tiny.token_id(AutoTokenizer.from_pretrained(folder), "<|im_end|>")
    path.write_text(json.dumps(settings))
    return folder
