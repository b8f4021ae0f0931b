"""Train `--model kitchen` from scratch on a CPU: first its eyes on boxes and masks' owners, then the whole on chats.

    python scripts/train_kitchen.py --kitchens KITCHEN ... --chats CHATS ... --out WORK

KITCHEN are releases that `barista-bench mini --seed` made, CHATS what `export --format chat --box-format xyxy/100` made
of them. The same command goes on where it was killed. WORK/model is the checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from kitchen_model import COLUMNS, HEIGHT, IMAGE, IMAGE_TOKENS, ROWS, WIDTH, make_model, make_processor, make_tokenizer
from numpy.typing import NDArray
from PIL import Image
from torch.nn import functional

from barista_bench.core.training_videos import TrainingVideos, join_without_leaks
from barista_bench.data.rows import file_sha256
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph
from barista_bench.training.exporting import PARQUET

FRAME_STEP = 12
COLOURS = 20
CHOICE = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)
ANSWER = re.compile(r"ANSWER: ([A-Z])$")


def main() -> None:
    args = _arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    training = join_without_leaks({str(path): TrainingVideos.read(path) for path in args.chats})
    tokenizer_of(args.chats, args.out)
    train_eyes(args, training)
    train_answers(args, training)


# -- pixels


def pixels_of(processor: Any, images: Sequence[Image.Image]) -> NDArray[np.uint8]:
    """What the processor makes of images, (n, 3, HEIGHT, WIDTH), before it scales them to -1..1."""
    values = processor.image_processor(list(images), return_tensors="np")["pixel_values"]
    return np.round((values + 1) * 127.5).astype(np.uint8)


def scaled(pixels: NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy(pixels).float() / 127.5 - 1


# -- eyes


def read_frames(args: argparse.Namespace, training: TrainingVideos) -> dict[str, NDArray[Any]]:
    """Frames of the training videos and what is seen on them, cached in WORK/frames.npz."""
    cache = args.out / "frames.npz"
    if cache.exists():
        return dict(np.load(cache))
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(args.out / "start")
    pixels, seen, names, colours, acts = [], [], {}, {}, {}
    for release in args.kitchens:
        graph = SceneGraph(release)
        for video_id in graph.video_ids:
            path = graph.video_path(video_id)
            if file_sha256(path) not in training.videos:
                sys.exit(f"error: {path}: is in none of the chats. Remedy: name the kitchens that they are of")
            video = graph[video_id]
            kinds = {(a.object.id, a.type): a.value for a in video.attributes() if a.type in ("type", "color")}
            frames = list(range(args.seed % FRAME_STEP, video.frame_count, FRAME_STEP))
            size = (video.video.width, video.video.height) * 2
            with open_reader(path) as reader:
                images = [Image.fromarray(frame) for frame in reader.read(frames)]
            pixels.append(pixels_of(processor, images))
            for frame in frames:
                held = {(c.object.id, c.side) for c in video.hand_contacts(frame)}
                rows = []
                for instance in video.instances(frame):
                    thing = instance.object
                    name = f"{thing.category}/{kinds.get((thing.id, 'type'), '')}"
                    x, y, w, h = instance.bbox
                    box = np.divide((x, y, x + w, y + h), size)
                    colour = colours.setdefault(kinds.get((thing.id, "color"), ""), len(colours))
                    sides = [(thing.id, side) in held for side in ("left", "right")]
                    rows.append([names.setdefault(name, len(names)), colour, *sides, *box])
                act = next((a.name for a in video.activities(frame)), "")
                seen.append((rows, acts.setdefault(act, len(acts))))
        print(release, len(seen), flush=True)
    most = max(len(rows) for rows, _ in seen)
    things = np.full((len(seen), most, 8), -1, np.float32)
    for number, (rows, _) in enumerate(seen):
        things[number, : len(rows)] = rows
    content = {"pixels": np.concatenate(pixels), "things": things, "acts": np.array([act for _, act in seen])}
    content |= {"counts": np.array([len(names), len(colours), len(acts)])}
    np.savez(cache, **content)
    return content


class Sight(torch.nn.Module):
    """What a cell of the image says: which kinds of object cover it, their colours, hands on them, and their boxes."""

    def __init__(self, width: int, kinds: int, colours: int, acts: int) -> None:
        super().__init__()
        self.kinds, self.colours = kinds, colours
        self.cells = torch.nn.Linear(width, kinds * (1 + 2 + 4 + colours))
        self.act = torch.nn.Linear(width, acts)

    def loss(self, features: torch.Tensor, things: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
        """Of (batch, IMAGE_TOKENS, width) features, things as `read_frames` caches them."""
        told = self.cells(features[:, 1:]).unflatten(-1, (self.kinds, -1)).unflatten(1, (ROWS, COLUMNS))
        batch, thing = torch.nonzero(things[:, :, 0] >= 0, as_tuple=True)
        kind, colour, sides, box = (
            things[batch, thing, 0].long(),
            things[batch, thing, 1].long(),
            things[batch, thing, 2:4],
            things[batch, thing, 4:],
        )
        # The cell of the centre, and every cell whose own centre lies in the middle of the box.
        x, y = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
        columns, rows = (torch.arange(COLUMNS) + 0.5) / COLUMNS, (torch.arange(ROWS) + 0.5) / ROWS
        across = (columns - x[:, None]).abs() <= torch.clamp((box[:, 2] - box[:, 0]) / 2, min=0.5 / COLUMNS)[:, None]
        down = (rows - y[:, None]).abs() <= torch.clamp((box[:, 3] - box[:, 1]) / 2, min=0.5 / ROWS)[:, None]
        covered = down[:, :, None] & across[:, None, :]
        item, row, column = torch.nonzero(covered, as_tuple=True)
        present = torch.zeros(told.shape[:4])
        present[batch[item], row, column, kind[item]] = 1
        loss = functional.binary_cross_entropy_with_logits(told[..., 0], present) * self.kinds
        at = told[batch[item], row, column, kind[item]]
        # Small boxes must be as exact, in their own measure, as large ones.
        extent = torch.clamp(box[:, 2:] - box[:, :2], min=0.02).repeat(1, 2)[item]
        loss = loss + (functional.smooth_l1_loss(at[:, 3:7], box[item], reduction="none", beta=0.02) / extent).mean()
        loss = loss + 0.5 * functional.cross_entropy(at[:, 7:], colour[item])
        loss = loss + functional.binary_cross_entropy_with_logits(at[:, 1:3], sides[item])
        return loss + 0.3 * functional.cross_entropy(self.act(features[:, 0]), acts)


def train_eyes(args: argparse.Namespace, training: TrainingVideos) -> None:
    if (args.out / "eyes.pt").exists():
        return
    from transformers import AutoTokenizer

    model = make_model(AutoTokenizer.from_pretrained(args.out / "start"))
    frames = read_frames(args, training)
    sight = Sight(192, *map(int, frames["counts"]))
    parts = torch.nn.ModuleDict({"eyes": model.model.vision_model, "sight": sight})
    count = len(frames["pixels"])
    things, acts = torch.from_numpy(frames["things"]), torch.from_numpy(frames["acts"])

    def loss(step: int) -> torch.Tensor:
        chosen = np.random.default_rng([args.seed, step]).integers(count, size=args.eye_batch)
        features = parts["eyes"](scaled(frames["pixels"][chosen])).last_hidden_state
        return sight.loss(features, things[chosen], acts[chosen])

    learn(parts, loss, args.eye_steps, args.eye_rate, args.out / "eyes")
    torch.save(parts["eyes"].state_dict(), args.out / "eyes.pt")


# -- answers


def tokenizer_of(chats: Sequence[Path], out: Path) -> None:
    if (out / "start").exists():
        return
    prompts, answers = [], []
    for chat in read_chats(chats, ["prompt", "completion"]):
        prompts.append([part["text"] for turn in chat["prompt"] for part in turn["content"] if part["type"] == "text"])
        answers.append(with_label(prompts[-1], chat["completion"][0]["content"][0]["text"]))
    make_processor(make_tokenizer(prompts, answers)).save_pretrained(out / "start")


def read_chats(chats: Sequence[Path], columns: list[str]) -> Iterator[dict[str, Any]]:
    for path in chats:
        for group in pq.ParquetFile(path / PARQUET).iter_batches(64, columns=columns):
            yield from group.to_pylist()


def with_label(texts: Sequence[str], answer: str) -> str:
    """A letter is told after the label that it stands for, as the prompt of `activity` allows."""
    if (letter := ANSWER.search(answer)) and (labels := dict(CHOICE.findall(texts[-1]))):
        return f"{labels[letter[1]]}\n{answer}"
    return answer


def shuffled(texts: list[str], answer: str, rng: random.Random) -> tuple[list[str], str]:
    """The choices of a question in another order, so that letters mean nothing by themselves."""
    letter, choices = ANSWER.search(answer), CHOICE.findall(texts[-1])
    if not letter or not choices:
        return texts, answer
    labels = [label for _, label in choices]
    right = dict(choices)[letter[1]]
    rng.shuffle(labels)
    lines = iter(f"{chr(65 + number)}. {label}" for number, label in enumerate(labels))
    return [*texts[:-1], CHOICE.sub(lambda _: next(lines), texts[-1])], f"ANSWER: {chr(65 + labels.index(right))}"


class Chats:
    """All chats with their images, cached in WORK; `task` of each is that of its first words."""

    def __init__(self, args: argparse.Namespace, processor: Any) -> None:
        self.processor, self.out = processor, args.out
        self.weights: dict[str, float] = json.loads(args.weights)
        self.prompts: list[list[list[str | None]]] = []
        self.answers: list[str] = []
        self.images: list[list[int]] = []
        self.systems: list[str] = []
        cache = args.out / "chats.json"
        if cache.exists():
            self.prompts, self.answers, self.images, self.systems = json.loads(cache.read_text())
        else:
            self._read(args.chats)
            cache.write_text(json.dumps([self.prompts, self.answers, self.images, self.systems]))
        self.pixels = np.memmap(args.out / "images.u8", np.uint8, "r").reshape(-1, 3, HEIGHT, WIDTH)

    def _read(self, chats: Sequence[Path]) -> None:
        known: dict[str, int] = {}
        with (self.out / "images.u8").open("wb") as file:
            for chat in read_chats(chats, ["images", "prompt", "completion", "example_id"]):
                if not self.weights.get(chat["example_id"].split(":")[0], 1):
                    continue
                numbers = []
                for image in chat["images"]:
                    digest = hashlib.sha256(image["bytes"]).hexdigest()
                    if digest not in known:
                        known[digest] = len(known)
                        picture = Image.open(io.BytesIO(image["bytes"])).convert("RGB")
                        file.write(pixels_of(self.processor, [picture]).tobytes())
                    numbers.append(known[digest])
                self.images.append(numbers)
                turns = chat["prompt"]
                self.prompts.append([[p["text"] if p["type"] == "text" else None for p in t["content"]] for t in turns])
                self.answers.append(chat["completion"][0]["content"][0]["text"])
                self.systems.append(chat["example_id"].split(":")[0])

    def encoded(self, number: int, rng: random.Random) -> tuple[list[int], list[int]]:
        """Token ids of a prompt, and of its answer."""
        prompt, answer = self.prompts[number], self.answers[number]
        *before, last = prompt
        texts, answer = shuffled([part for part in last if part is not None], answer, rng)
        words = iter(texts)
        last = [None if part is None else next(words) for part in last]
        text = "".join("<user>" + "".join(IMAGE * IMAGE_TOKENS if p is None else p for p in t) for t in (*before, last))
        tokenizer = self.processor.tokenizer
        ids = tokenizer(text + "<assistant>", add_special_tokens=False)["input_ids"]
        told = tokenizer(with_label(texts, answer) + "<end>", add_special_tokens=False)["input_ids"]
        return ids, told


def batches(chats: Chats, args: argparse.Namespace, lengths: list[int]) -> list[list[int]]:
    """An epoch after the other of chats of like length, in the proportions of `--weights`."""
    weights = json.loads(args.weights)
    rng = random.Random(args.seed)
    by_task: dict[str, list[int]] = {}
    for number, task in enumerate(chats.systems):
        by_task.setdefault(task, []).append(number)
    names = sorted(by_task)
    drawn: list[list[int]] = []
    queues: dict[str, list[int]] = {name: [] for name in names}
    while len(drawn) < args.steps:
        block = []
        for name in rng.choices(names, [weights.get(name, 1) for name in names], k=args.batch * 16):
            if not queues[name]:
                queues[name] = rng.sample(by_task[name], len(by_task[name]))
            block.append(queues[name].pop())
        block.sort(key=lambda number: lengths[number])
        parts = [block[at : at + args.batch] for at in range(0, len(block), args.batch)]
        rng.shuffle(parts)
        drawn += parts
    return drawn[: args.steps]


def train_answers(args: argparse.Namespace, training: TrainingVideos) -> None:
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(args.out / "start")
    torch.manual_seed(args.seed)
    model = make_model(processor.tokenizer)
    model.model.vision_model.load_state_dict(torch.load(args.out / "eyes.pt", weights_only=True))
    chats = Chats(args, processor)
    known = [chats.encoded(number, random.Random(0)) for number in range(len(chats.answers))]
    lengths = [len(prompt) + len(answer) for prompt, answer in known]
    for task in sorted(set(chats.systems)):
        of_task = [n for n, name in enumerate(chats.systems) if name == task]
        mean = sum(lengths[n] for n in of_task) / len(of_task), sum(len(known[n][1]) for n in of_task) / len(of_task)
        print(f"{task}: {len(of_task)} chats, {mean[0]:.0f} tokens, {mean[1]:.0f} of the answer", flush=True)
    order = batches(chats, args, lengths)
    frozen = args.frozen_steps
    eyes, core = model.model.vision_model, model.model
    features = _features(model, chats, args.out / "features.f16") if frozen else None
    image = model.config.image_token_id

    def loss(step: int) -> torch.Tensor:
        eyes.requires_grad_(step >= frozen)
        rows = [chats.encoded(number, random.Random(f"{args.seed}:{step}:{number}")) for number in order[step]]
        longest = max(len(prompt) + len(answer) for prompt, answer in rows)
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        labels = torch.full((len(rows), longest), -100)
        for row, (prompt, answer) in enumerate(rows):
            ids[row, : len(prompt) + len(answer)] = torch.tensor([*prompt, *answer])
            labels[row, len(prompt) : len(prompt) + len(answer)] = torch.tensor(answer)
        shown = [picture for number in order[step] for picture in chats.images[number]]
        if step < frozen:
            seen = torch.from_numpy(features[shown]).float()
        else:
            different = sorted(set(shown))
            seen = eyes(scaled(chats.pixels[different])).last_hidden_state
            seen = seen[[different.index(picture) for picture in shown]]
        embedded = model.get_input_embeddings()(ids)
        embedded = embedded.masked_scatter((ids == image)[..., None], core.aligner(seen))
        # Padding stands on the right, where nothing before it sees it.
        hidden = core.language_model(inputs_embeds=embedded).last_hidden_state[:, :-1]
        told = labels[:, 1:] >= 0
        return functional.cross_entropy(model.lm_head(hidden[told]), labels[:, 1:][told], label_smoothing=0.0)

    def save(step: int) -> None:
        if step in (args.steps, args.early):
            folder = args.out / ("model" if step == args.steps else "early")
            save_model(model, processor, training, folder)

    model.train()
    learn(model, loss, args.steps, args.rate, args.out / "answers", on_save=save)


def _features(model: Any, chats: Chats, cache: Path) -> NDArray[np.float16]:
    """What the eyes, which are not trained at first, make of each image: (images, IMAGE_TOKENS, width)."""
    if not cache.exists():
        with torch.inference_mode(), cache.open("wb") as file:
            for at in range(0, len(chats.pixels), 64):
                seen = model.model.vision_model(scaled(chats.pixels[at : at + 64])).last_hidden_state
                file.write(seen.half().numpy().tobytes())
    return np.memmap(cache, np.float16, "r").reshape(len(chats.pixels), IMAGE_TOKENS, -1)


def save_model(model: Any, processor: Any, training: TrainingVideos, folder: Path) -> None:
    """The checkpoint in half precision, with the record of its videos."""
    half = make_model(processor.tokenizer).half()
    half.load_state_dict(model.state_dict())
    half.save_pretrained(folder)
    processor.save_pretrained(folder)
    training.write(folder)


# -- the loop


def learn(parts: Any, loss: Any, steps: int, rate: float, state: Path, on_save: Any = None) -> None:
    """AdamW with a warm-up and a cosine; goes on from `state` if it is there, and writes it every few minutes."""
    matrices = [p for p in parts.parameters() if p.ndim > 1]
    others = [p for p in parts.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
    first, history = 0, []
    checkpoint = state.with_suffix(".state.pt")
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        parts.load_state_dict(kept["parts"])
        optimizer.load_state_dict(kept["optimizer"])
        first, history = kept["step"], kept["history"]
    began = saved = time.monotonic()
    recent: list[float] = []
    for step in range(first, steps):
        warm = min(1.0, (step + 1) / 100)
        for group in optimizer.param_groups:
            group["lr"] = rate * warm * (0.02 + 0.98 * (1 + math.cos(math.pi * step / steps)) / 2)
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(parts.parameters(), 1.0)
        optimizer.step()
        recent.append(value.item())
        if (step + 1) % 50 == 0:
            history.append([step + 1, sum(recent) / len(recent)])
            spent = time.monotonic() - began
            print(f"{state.name} {step + 1}/{steps} loss {history[-1][1]:.4f} {spent:.0f} s cpu {time.process_time():.0f}", flush=True)
            recent = []
        if time.monotonic() - saved > 240 or step + 1 == steps:
            saved = time.monotonic()
            part = checkpoint.with_suffix(".part")
            torch.save({"parts": parts.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1, "history": history}, part)
            part.rename(checkpoint)
            state.with_suffix(".json").write_text(json.dumps(history))
        if on_save:
            on_save(step + 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kitchens", nargs="+", type=Path, required=True, help="releases of the training videos")
    parser.add_argument("--chats", nargs="+", type=Path, required=True, help="exports of them")
    parser.add_argument("--out", type=Path, required=True, help="working folder; holds the checkpoint in the end")
    parser.add_argument("--eye-steps", type=int, default=1500)
    parser.add_argument("--eye-batch", type=int, default=24)
    parser.add_argument("--eye-rate", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--frozen-steps", type=int, default=3000, help="of them, with the eyes as they are")
    parser.add_argument("--early", type=int, default=1000, help="the step that is kept as the smaller training")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--weights", default="{}", help="JSON: how often a task is drawn, by the start of its ids")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


if __name__ == "__main__":
    main()
