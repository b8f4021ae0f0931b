"""Train the vision tower of `--model kitchen` first, to recognise the object, place and state on a frame.

Its targets are the scene graphs of the training kitchens. The questions of the tasks are learned afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from kitchen_loop import learn
from kitchen_model import COLUMNS, IMAGE_TOKENS, ROWS, TOWER_WIDTH, make_image_processor, tower_config
from numpy.typing import NDArray
from PIL import Image
from torch.nn import functional
from transformers import AutoModel

from barista_bench.core.training_videos import TrainingVideos
from barista_bench.media.video import open_reader
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.scene_graph import SceneGraph, VideoGraph

FRAME_STEP = 12
BATCH, RATE = 24, 3e-3
SIDES = ("left", "right")


def pixels_of(images: Sequence[Image.Image]) -> NDArray[np.uint8]:
    """Return the pixels of images as the image processor makes them, (n, 3, HEIGHT, WIDTH), before scaling to -1..1."""
    values = make_image_processor()(list(images), return_tensors="np")["pixel_values"]
    return np.round((values + 1) * 127.5).astype(np.uint8)


def seen_by(tower: torch.nn.Module, pixels: NDArray[np.uint8]) -> torch.Tensor:
    """Return the tower's features (n, IMAGE_TOKENS, TOWER_WIDTH) of pixels (n, 3, HEIGHT, WIDTH)."""
    scaled = (torch.tensor(pixels).float() / 127.5 - 1).to(memory_format=torch.channels_last)
    with torch.autocast(scaled.device.type, torch.bfloat16):
        features: torch.Tensor = tower(scaled).last_hidden_state
    return features.float()


class Labels:
    """Numbers names in the order in which they first occur."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


def read_frames(kitchens: Sequence[Path], out: Path, training: TrainingVideos, seed: int) -> dict[str, NDArray[Any]]:
    """Return every twelfth frame of the training videos with the facts of its graph, cached in OUT/frames.npz.

    `pixels`: (frames, 3, HEIGHT, WIDTH). `objects`: (frames, most, 7): kind, left, right, x_min, y_min, x_max, y_max
    (of 1), -1 where there are fewer. `facts`: (frames, most, count), 1 where one holds. `activities`: (frames,).
    `counts`: of kinds, facts and activities.
    """
    cache = out / "frames.npz"
    if not cache.exists():
        pixels, rows, activities = [], [], []
        kinds, facts, names = Labels(), Labels(), Labels()
        for release in kitchens:
            graph = SceneGraph(release)
            for video_id in graph.video_ids:
                path = graph.video_path(video_id)
                if video_sha256(path) not in training.videos:
                    sys.exit(f"error: {path}: is in none of the chats. Fix: name the kitchens that they are of")
                video = graph[video_id]
                frames = list(range(seed % FRAME_STEP, video.frame_count, FRAME_STEP))
                with open_reader(path) as reader:
                    pixels.append(pixels_of([Image.fromarray(frame) for frame in reader.read(frames)]))
                for frame in frames:
                    rows.append(_objects(video, frame, kinds, facts))
                    activities.append(names(next((act.name for act in video.activities(frame)), "")))
            print(release, len(rows), flush=True)
        objects = np.full((len(rows), max(map(len, rows)), 7), -1, np.float32)
        held = np.zeros((*objects.shape[:2], len(facts.numbers)), np.uint8)
        for number, of_frame in enumerate(rows):
            for column, (values, true) in enumerate(of_frame):
                objects[number, column] = values
                held[number, column, true] = 1
        part = out / "frames.part.npz"
        np.savez(
            part,
            pixels=np.concatenate(pixels),
            objects=objects,
            facts=held,
            activities=np.array(activities),
            counts=np.array([len(labels.numbers) for labels in (kinds, facts, names)]),
        )
        part.rename(cache)
    return dict(np.load(cache))


def _objects(video: VideoGraph, frame: int, kinds: Labels, facts: Labels) -> list[tuple[list[float], list[int]]]:
    contacts = {(contact.object.id, contact.side) for contact in video.hand_contacts(frame)}
    attributes: dict[str, dict[str, str]] = {}
    for attribute in video.attributes(frame):
        attributes.setdefault(attribute.object.id, {})[attribute.type] = attribute.value
    related: dict[str, list[int]] = {}
    for relation in video.relations(frame):
        related.setdefault(relation.source.id, []).append(facts(f"{relation.value} {relation.target.category}"))
    size = np.array((video.video.width, video.video.height) * 2)
    rows = []
    for instance in video.instances(frame):
        thing = instance.object
        known = attributes.get(thing.id, {})
        x, y, width, height = instance.bbox
        sides = [float((thing.id, side) in contacts) for side in SIDES]
        kind = kinds(f"{thing.category}/{known.get('type', '')}")
        true = [facts(f"{name} {value}") for name, value in known.items() if name != "type"]
        rows.append(([kind, *sides, *np.divide((x, y, x + width, y + height), size)], true + related.get(thing.id, [])))
    return rows


class Facts(torch.nn.Module):
    """Predicts for each cell of the image the kinds of objects in it, the hands on them, their boxes and facts."""

    def __init__(self, kinds: int, facts: int, activities: int) -> None:
        super().__init__()
        self.kinds = kinds
        self.cells = torch.nn.Linear(TOWER_WIDTH, kinds * (1 + len(SIDES) + 4 + facts))
        self.activity = torch.nn.Linear(TOWER_WIDTH, activities)

    def loss(
        self, features: torch.Tensor, objects: torch.Tensor, facts: torch.Tensor, activities: torch.Tensor
    ) -> torch.Tensor:
        """Return the loss for features (batch, IMAGE_TOKENS, TOWER_WIDTH). `read_frames` gives the other arguments."""
        logits = self.cells(features[:, 1:]).unflatten(-1, (self.kinds, -1)).unflatten(1, (ROWS, COLUMNS))
        batch, index = torch.nonzero(objects[:, :, 0] >= 0, as_tuple=True)
        of_object = objects[batch, index]
        kind, sides, box = of_object[:, 0].long(), of_object[:, 1:3], of_object[:, 3:]
        item, row, column = torch.nonzero(find_covered_cells(box), as_tuple=True)
        present = torch.zeros(logits.shape[:4])
        present[batch[item], row, column, kind[item]] = 1
        outputs = logits[batch[item], row, column, kind[item]]
        # Small boxes must be as exact, in their own measure, as large ones.
        extent = torch.clamp(box[:, 2:] - box[:, :2], min=0.02).repeat(1, 2)[item]
        distance = functional.smooth_l1_loss(outputs[:, 3:7], box[item], reduction="none", beta=0.02) / extent
        true = facts[batch, index][item].float()
        binary = functional.binary_cross_entropy_with_logits
        return (
            binary(logits[..., 0], present) * self.kinds
            + distance.mean()
            + binary(outputs[:, 1:3], sides[item])
            + binary(outputs[:, 7:], true) * 8
            + 0.3 * functional.cross_entropy(self.activity(features[:, 0]), activities)
        )


def find_covered_cells(boxes: torch.Tensor) -> torch.Tensor:
    """Return the cells (boxes, ROWS, COLUMNS) of each box: the cell at its centre, and cells with a centre in it."""
    columns, rows = (torch.arange(COLUMNS) + 0.5) / COLUMNS, (torch.arange(ROWS) + 0.5) / ROWS
    centres, sizes = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    across = (columns - centres[:, :1]).abs() <= torch.clamp(sizes[:, :1] / 2, min=0.5 / COLUMNS)
    down = (rows - centres[:, 1:]).abs() <= torch.clamp(sizes[:, 1:] / 2, min=0.5 / ROWS)
    return down[:, :, None] & across[:, None, :]


def train_tower(kitchens: Sequence[Path], out: Path, training: TrainingVideos, *, steps: int, seed: int) -> None:
    """Train the tower and write OUT/tower.pt, unless this file exists."""
    if (out / "tower.pt").exists():
        return
    tower = AutoModel.from_config(tower_config())
    frames = read_frames(kitchens, out, training, seed)
    head = Facts(*map(int, frames["counts"]))
    objects, facts, activities = (torch.tensor(frames[name]) for name in ("objects", "facts", "activities"))

    def loss(step: int) -> torch.Tensor:
        chosen = np.random.default_rng([seed, step]).integers(len(frames["pixels"]), size=BATCH)
        features = seen_by(tower, frames["pixels"][chosen])
        return head.loss(features, objects[chosen], facts[chosen], activities[chosen])

    parts = torch.nn.ModuleDict({"tower": tower, "head": head})
    learn(parts, loss, steps=steps, rate=RATE, state=out / "tower_state")
    torch.save(tower.state_dict(), out / "tower.part")
    (out / "tower.part").rename(out / "tower.pt")


def features_of(tower: torch.nn.Module, pixels: NDArray[np.uint8], cache: Path) -> NDArray[np.float16]:
    """Return the features of pixels (images, 3, HEIGHT, WIDTH), cached in a file."""
    if not cache.exists():
        part = cache.with_suffix(".part")
        with torch.inference_mode(), part.open("wb") as file:
            for start in range(0, len(pixels), 64):
                file.write(seen_by(tower, pixels[start : start + 64]).half().cpu().numpy().tobytes())
        part.rename(cache)
    return np.memmap(cache, np.float16, "r").reshape(len(pixels), IMAGE_TOKENS, TOWER_WIDTH)
