"""Train `--model kitchen` from scratch: first its vision tower on scene graphs, then the remaining parts on chats.

    python scripts/train_kitchen.py --kitchens KITCHEN ... --chats CHATS ... --out WORK
    python scripts/train_kitchen.py --start WORK/model --chats CHATS ... CHATS-true ... CHATS-inert ... --out AIDED

KITCHEN are releases made by `barista-bench mini --seed`. CHATS are made from these releases by
`export --format chat --box-format xyxy/100`. If the training is killed, repeat the command to continue. WORK/model is
the checkpoint, and WORK/early the checkpoint after `--early` steps.

The second command continues from a checkpoint, with chats of `export --aids true` and `--aids inert` too. The names of
their folders end in the kind of aid. `--weights` names their tasks `grounding-true` and so on.
"""

# ruff: noqa: S311  (samples are no secret)
from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from kitchen_loop import learn
from kitchen_model import (
    CHOICE,
    HEIGHT,
    IMAGE,
    IMAGE_TOKENS,
    LETTERS,
    WIDTH,
    add_aid_tokens,
    load_model,
    make_model,
    make_processor,
    make_tokenizer,
)
from kitchen_tower import features_of, pixels_of, train_tower
from PIL import Image
from torch.nn import functional
from transformers import AutoProcessor

from barista_bench.core.training_videos import TrainingVideos, join_without_leaks
from barista_bench.training.exporting import PARQUET

ANSWER = re.compile(r"ANSWER: ([A-Z])$")
BLIND = 0.06
"""Fraction of chats without their images in training, so that `text_only:kitchen` gets familiar questions."""
BLIND_WITH_AIDS = 0.3
"""The same fraction for chats with true aids, so that the model reads the facts."""
LONGEST = 1000
"""Maximum number of tokens of a chat. Longer chats, which have aids, are left out."""
LEFT_OUT = -100
"""Label of a token that is not learned."""
Encoded = list[tuple[Sequence[int], bool]]
"""Parts of a chat as token ids, each with a flag that tells whether it is learned."""


def main() -> None:
    args = _arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    sources = args.chats if args.start is None else [args.start, *args.chats]
    training = join_without_leaks({str(path): TrainingVideos.read(path) for path in sources})
    write_processor(args.chats, args.out, args.start)
    with torch.device(args.device):
        if args.start is None:
            train_tower(args.kitchens, args.out, training, steps=args.tower_steps, seed=args.seed)
        train_decoder(args, training)


def read_chats(chats: Sequence[Path], columns: list[str]) -> Iterator[dict[str, Any]]:
    """Yield each chat with its `task`, followed by the kind of its aids."""
    for path in chats:
        _, is_aided, aid = path.name.partition("-")
        for group in pq.ParquetFile(path / PARQUET).iter_batches(64, columns=columns):
            for chat in group.to_pylist():
                yield {**chat, "task": f"{chat['example_id'].split(':')[0]}{is_aided}{aid}"}


def write_processor(chats: Sequence[Path], out: Path, start: Path | None) -> None:
    """Write OUT/start, unless it exists: the processor, with a tokenizer made from the chats.

    If `start` is a checkpoint, its tokenizer is used, with tokens for aids.
    """
    if (out / "start").exists():
        return
    if start is not None:
        processor = AutoProcessor.from_pretrained(start)
        add_aid_tokens(processor.tokenizer)
        processor.save_pretrained(out / "start.part")
        (out / "start.part").rename(out / "start")
        return
    prompts: dict[str, list[list[str]]] = {}
    answers, labels = [], set()
    for chat in read_chats(chats, ["prompt", "completion", "example_id"]):
        texts = [part["text"] for turn in chat["prompt"] for part in turn["content"] if part["type"] == "text"]
        answer = chat["completion"][0]["content"][0]["text"]
        prompts.setdefault(chat["task"], []).append(texts)
        answers.append(as_taught(texts, answer))
        if ANSWER.search(answer):
            labels |= {label for _, label in CHOICE.findall(texts[-1])}
    make_processor(make_tokenizer(prompts, answers, labels)).save_pretrained(out / "start.part")
    (out / "start.part").rename(out / "start")


def as_taught(texts: Sequence[str], answer: str) -> str:
    """Return an answer in the form that is easiest to learn and that the prompt allows.

    A letter comes after its label, and relations are in the order of the legend.
    """
    if (letter := ANSWER.search(answer)) and (labels := dict(CHOICE.findall(texts[-1]))):
        return f"{labels[letter[1]]}\n{answer}"
    if answer.startswith('[{"source_id"'):
        return json.dumps(sorted(json.loads(answer), key=itemgetter("source_id", "target_id", "value")))
    return answer


def shuffle_choices(texts: list[str], answer: str, rng: random.Random) -> tuple[list[str], str]:
    """Shuffle the choices of a question, so that a letter has no meaning of its own."""
    letter, choices = ANSWER.search(answer), CHOICE.findall(texts[-1])
    if not letter or not choices:
        return texts, answer
    labels = [label for _, label in choices]
    reference = dict(choices)[letter[1]]
    rng.shuffle(labels)
    lines = iter(f"{chr(65 + number)}. {label}" for number, label in enumerate(labels))
    return [*texts[:-1], CHOICE.sub(lambda _: next(lines), texts[-1])], f"ANSWER: {chr(65 + labels.index(reference))}"


class Chats:
    """All chats, cached in OUT, with their texts and the numbers of their images in `pixels`."""

    def __init__(self, chats: Sequence[Path], out: Path) -> None:
        self.processor = AutoProcessor.from_pretrained(out / "start")
        self.tasks: list[str] = []
        self.prompts: list[list[list[str | None]]] = []
        self.answers: list[str] = []
        self.images: list[list[int]] = []
        kept = out / "chats.json"
        if not kept.exists():
            self._read(chats, out)
            kept.write_text(json.dumps([self.tasks, self.prompts, self.answers, self.images]))
        self.tasks, self.prompts, self.answers, self.images = json.loads(kept.read_text(encoding="utf-8"))
        self.pixels = np.memmap(out / "images.u8", np.uint8, "r").reshape(-1, 3, HEIGHT, WIDTH)
        self.with_choices = [number for number, answer in enumerate(self.answers) if ANSWER.search(answer)]
        questions = (self.prompts[number][-1][-1] for number in self.with_choices)
        self.labels = sorted({label for text in questions if text for _, label in CHOICE.findall(text)})
        self._ids_of_short = cache(self._ids_of)

    def _read(self, chats: Sequence[Path], out: Path) -> None:
        known: dict[str, int] = {}
        with (out / "images.u8").open("wb") as file:
            for chat in read_chats(chats, ["images", "prompt", "completion", "example_id"]):
                numbers = []
                for image in chat["images"]:
                    digest = hashlib.sha256(image["bytes"]).hexdigest()
                    if digest not in known:
                        known[digest] = len(known)
                        picture = Image.open(io.BytesIO(image["bytes"])).convert("RGB")
                        file.write(pixels_of([picture]).tobytes())
                    numbers.append(known[digest])
                self.images.append(numbers)
                turns = chat["prompt"]
                self.prompts.append([[p["text"] if p["type"] == "text" else None for p in t["content"]] for t in turns])
                self.answers.append(chat["completion"][0]["content"][0]["text"])
                self.tasks.append(chat["task"])

    def encode_chat(self, number: int, rng: random.Random) -> tuple[Encoded, list[int]]:
        """Return a chat with its choices in a random order, and its images. `BLIND` of the chats get no images."""
        *before, last = self.prompts[number]
        texts, answer = shuffle_choices([part for part in last if part is not None], self.answers[number], rng)
        words, image = iter(texts), IMAGE * IMAGE_TOKENS
        blind = BLIND_WITH_AIDS if self.tasks[number].endswith("-true") else BLIND
        images = [] if rng.random() < blind else self.images[number]
        if not images:
            image = ""
        last = [None if part is None else next(words) for part in last]
        text = "".join("<user>" + "".join(image if p is None else p for p in turn) for turn in (*before, last))
        learned = f"{as_taught(texts, answer)}<end>"
        return [(self._ids_of(f"{text}<assistant>"), False), (self._ids_of(learned), True)], images

    def drill(self, rng: random.Random) -> Encoded:
        """Return a question with any choices and no images, and half of its labels with the letters to answer.

        A usual chat teaches only one letter. From this, a model of this size does not learn to look up letters. With
        more than half of the labels, it would learn which letters are left over.
        """
        *before, last = self.prompts[rng.choice(self.with_choices)]
        texts = [part for part in last if part is not None]
        labels = rng.sample(self.labels, rng.randint(2, min(len(LETTERS), len(self.labels))))
        letters = dict(zip(labels, LETTERS, strict=False))
        texts[-1] = CHOICE.split(texts[-1])[0] + "\n".join(f"{letter}. {label}" for label, letter in letters.items())
        turns: list[Sequence[str | None]] = [*before, texts]
        encoded: Encoded = [(self._ids_of("".join(f"<user>{''.join(filter(None, turn))}" for turn in turns)), False)]
        for label in rng.sample(labels, len(labels) // 2):
            encoded += [(self._ids_of_short(f"<assistant>{label}\nANSWER: "), False)]
            encoded += [(self._ids_of_short(letters[label]), True), (self._ids_of_short("<end>"), False)]
        return encoded

    def _ids_of(self, text: str) -> list[int]:
        ids: list[int] = self.processor.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def batches(chats: Chats, lengths: Sequence[int], args: argparse.Namespace) -> list[list[int]]:
    """Yield batches of chats with similar lengths. Tasks have the proportions of `--weights`.

    All chats of a task are used before one is repeated."""
    weights = json.loads(args.weights)
    rng = random.Random(args.seed)
    by_task: dict[str, list[int]] = {}
    for number, task in enumerate(chats.tasks):
        if lengths[number] <= LONGEST:
            by_task.setdefault(task, []).append(number)
    names = sorted(by_task)
    sampled: list[list[int]] = []
    queues: dict[str, list[int]] = {name: [] for name in names}
    while len(sampled) < args.steps:
        block = []
        for name in rng.choices(names, [weights.get(name, 1) for name in names], k=args.batch * 16):
            if not queues[name]:
                queues[name] = rng.sample(by_task[name], len(by_task[name]))
            block.append(queues[name].pop())
        block.sort(key=lambda number: lengths[number])
        parts = [block[start : start + args.batch] for start in range(0, len(block), args.batch)]
        rng.shuffle(parts)
        sampled += parts
    return sampled[: args.steps]


def train_decoder(args: argparse.Namespace, training: TrainingVideos) -> None:
    """Train the aligner and the language model on the chats, with the trained tower's features of the images."""
    chats = Chats(args.chats, args.out)
    torch.manual_seed(args.seed)
    tokenizer = chats.processor.tokenizer
    model = make_model(tokenizer) if args.start is None else load_model(args.start, tokenizer)
    tower, core = model.model.vision_model, model.model
    if args.start is None:
        tower.load_state_dict(torch.load(args.out / "tower.pt", weights_only=True, map_location=args.device))
    tower.requires_grad_(False)
    encoded = (chats.encode_chat(number, random.Random(0))[0] for number in range(len(chats.tasks)))
    lengths = [sum(len(ids) for ids, _ in parts) for parts in encoded]
    for task in sorted(set(chats.tasks)):
        of_task = [number for number, name in enumerate(chats.tasks) if name == task]
        longest = max(lengths[number] for number in of_task)
        mean = sum(lengths[number] for number in of_task) / len(of_task)
        print(f"{task}: {len(of_task)} chats of {mean:.0f} tokens, at most {longest}", flush=True)
    order = batches(chats, lengths, args)
    features = features_of(tower, chats.pixels, args.out / "features.f16")
    image = model.config.image_token_id

    def loss(step: int) -> torch.Tensor:
        rng = random.Random(f"{args.seed}:{step}")
        rows = [chats.encode_chat(number, rng) for number in order[step]]
        pictures = [picture for _, images in rows for picture in images]
        return sum_of_losses([parts for parts, _ in rows], [chats.drill(rng) for _ in range(args.drill)], pictures)

    def first_loss(step: int) -> torch.Tensor:
        rng = random.Random(f"{args.seed}:drill:{step}")
        return sum_of_losses([], [chats.drill(rng) for _ in range(2 * args.drill)], [])

    def sum_of_losses(of_chats: list[Encoded], drills: list[Encoded], pictures: list[int]) -> torch.Tensor:
        ids, labels = pad([*of_chats, *drills])
        embedded = model.get_input_embeddings()(ids)
        if pictures:
            aligned = core.aligner(torch.tensor(features[pictures]).float())
            embedded = embedded.masked_scatter((ids == image)[..., None], aligned)
        # Padding is on the right, where no token before it sees it.
        with torch.autocast(args.device, torch.bfloat16, enabled=args.device == "cuda"):
            hidden = core.language_model(inputs_embeds=embedded).last_hidden_state[:, :-1]
        learned, count = labels[:, 1:] != LEFT_OUT, len(of_chats)
        parts = [part for part in (slice(count), slice(count, None)) if hidden[part].numel()]
        logits = (model.lm_head(hidden[part][learned[part]].float()) for part in parts)
        targets = (labels[part, 1:][learned[part]] for part in parts)
        return torch.stack(list(map(functional.cross_entropy, logits, targets))).sum()

    def save(step: int) -> None:
        if step in (args.steps, args.early):
            save_model(model, chats.processor, training, args.out / ("model" if step == args.steps else "early"))

    model.train()
    if args.start is None:
        learn(model, first_loss, steps=args.drill_steps, rate=args.rate, state=args.out / "drill_state")
    learn(model, loss, steps=args.steps, rate=args.rate, state=args.out / "decoder_state", after_step=save)


def pad(rows: Sequence[Encoded]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the token ids (rows, longest), and the same ids with LEFT_OUT for tokens that are not learned."""
    longest = max(sum(len(ids) for ids, _ in parts) for parts in rows)
    ids = np.zeros((len(rows), longest), np.int64)
    labels = np.full((len(rows), longest), LEFT_OUT)
    for row, parts in enumerate(rows):
        start = 0
        for tokens, learned in parts:
            ids[row, start : start + len(tokens)] = tokens
            if learned:
                labels[row, start : start + len(tokens)] = tokens
            start += len(tokens)
    return torch.tensor(ids), torch.tensor(labels)


def save_model(model: Any, processor: Any, training: TrainingVideos, folder: Path) -> None:  # noqa: ANN401
    """Write the checkpoint with the record of its videos.

    It is stored in half precision, and loaded in a type that is fast on CPUs.
    """
    half = make_model(processor.tokenizer).half()
    half.load_state_dict(model.state_dict())
    half.save_pretrained(folder)
    half.config.dtype = "float32"
    half.config.save_pretrained(folder)
    processor.save_pretrained(folder)
    training.write(folder)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kitchens", nargs="+", type=Path, default=[], help="releases of the training videos")
    parser.add_argument("--start", type=Path, help="checkpoint to continue from; then no kitchens are needed")
    parser.add_argument("--chats", nargs="+", type=Path, required=True, help="exports of them")
    parser.add_argument("--out", type=Path, required=True, help="working folder; holds the checkpoint in the end")
    parser.add_argument("--tower-steps", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=6000, help="of aligner and language model")
    parser.add_argument("--early", type=int, default=600, help="the step that is kept as the smaller training")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--drill-steps", type=int, default=500, help="of drills alone, before the chats")
    parser.add_argument("--drill", type=int, default=8, help="drills a step beside the chats; alone, twice as many")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--weights", default="{}", help="JSON: how often a task is sampled, by the start of its ids")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


if __name__ == "__main__":
    main()
