"""Show worked examples before each question: `run --shots N`.

Worked examples come from the split `train`, never from the video of the question, and are balanced by label. Every
engine receives the changed request. The number and the seed of worked examples are part of the model's identity. Their
content is part of each example's fingerprint.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.guarding import guard
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.loaded_example import Pictures
from barista_bench.data.shared_frames import FrameStore
from barista_bench.errors import ConfigError
from barista_bench.models import Model, Request
from barista_bench.models.ablations import shown_less, with_changed_requests
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.pictures import pictures_for
from barista_bench.runs.log.inputs import AskedInput, asks_in_steps, digest
from barista_bench.runs.run_folder import OpenedTask

TRAIN = "train"


@dataclass(frozen=True, slots=True)
class Shot:
    """A worked example: its question, pictures and right answer. `content` identifies all three."""

    prompt: Prompt
    pictures: Pictures
    answer: str
    content: str


Shots = Mapping[str, tuple[Shot, ...]]
"""Maps each example's id to its worked examples."""


def with_shots(model: Model, config: RunConfig, opened_tasks: Sequence[OpenedTask]) -> tuple[Model, Shots]:
    """Return a model that is shown worked examples before each question, and the worked examples.

    Raises:
        ConfigError: the run asks examples of the split train, there are too few worked examples, or a task or engine
            cannot show them.
        DataError: the split train or its pictures cannot be read.
    """
    if config.shots is None:
        return model, {}
    if config.cluster is not None or config.frames_as == "video":
        raise ConfigError("shots need images in the requests. Fix: leave cluster and frames_as=video out, or shots")
    shots: dict[str, tuple[Shot, ...]] = {}
    for opened in opened_tasks:
        shots |= _shots_of_task(model, config.shots, config.shots_seed, config, opened)
    settings = {"shots": config.shots, "shots_seed": config.shots_seed}
    return with_changed_requests(
        model, settings, lambda request: insert_shots(request, shots[request.request_id])
    ), shots


def fingerprinted(inputs: Sequence[AskedInput], examples: ExampleSet, shots: Shots) -> list[AskedInput]:
    """Return the inputs with fingerprints that cover the content of the worked examples."""
    if not shots:
        return list(inputs)
    return [
        replace(own, fingerprint=digest(own.fingerprint, *(shot.content for shot in shots[example.example_id])))
        for own, example in zip(inputs, examples.examples, strict=True)
    ]


def insert_shots(request: Request, shots: Sequence[Shot]) -> Request:
    """Return the request with worked examples before its question, images included."""
    parts: list[TextPart | ImagePart] = []
    images: list[Image.Image] = []
    files: list[bytes | None] = []
    for number, shot in enumerate(shots, start=1):
        parts += [TextPart(f"Example {number}:\n"), *_moved(shot.prompt, len(images))]
        parts.append(TextPart(f"\nRight answer:\n{shot.answer}\n\n"))
        images += shot.pictures.images
        files += shot.pictures.files or [None] * len(shot.pictures.images)
    parts += [TextPart("Now answer this question:\n"), *_moved(request.prompt, len(images))]
    own_files = request.files or (None,) * len(request.images)
    return replace(
        request,
        prompt=Prompt(request.prompt.system, tuple(parts)),
        images=(*images, *request.images),
        files=(*files, *own_files) if any(files) or request.files else (),
    )


def _moved(prompt: Prompt, count: int) -> Iterator[TextPart | ImagePart]:
    """Yield the parts of a prompt, with image numbers moved behind `count` other images."""
    yield from (ImagePart(part.index + count) if isinstance(part, ImagePart) else part for part in prompt.parts)


def _shots_of_task(model: Model, count: int, seed: int, config: RunConfig, opened: OpenedTask) -> Shots:
    task, name = opened.task, f"{opened.task.benchmark}/{opened.task.name}"
    if asks_in_steps(task):
        raise ConfigError(f"{name} asks in steps, which worked examples cannot show. Fix: leave shots or the task out")
    asked = opened.examples
    if asked.split == TRAIN or any(example.metadata.get("split") == TRAIN for example in asked.examples):
        raise ConfigError(f"{name}: examples of the split train are asked, which shots show. Fix: say --split test")
    train = open_examples(opened.data, task.benchmark, task.name, split=TRAIN, root=config.root)
    places = _balanced(task, train.examples, seed)
    own_hashes, train_hashes = asked.video_hashes(), train.video_hashes()
    made: dict[int, Shot] = {}
    shots: dict[str, tuple[Shot, ...]] = {}
    with FrameStore(max_bytes=0) as store:
        for example in asked.examples:
            own = {example.video_id, own_hashes[example.video_id]}
            others = (place for place in places if own.isdisjoint(_names(train.examples[place].video_id, train_hashes)))
            chosen = [place for place, _ in zip(others, range(count), strict=False)]
            if len(chosen) < count:
                what = f"has {len(chosen)} examples of other videos in the split train, fewer than {count}"
                raise ConfigError(f"{name}: {example.example_id} {what}. Fix: lower shots, or build a set with more")
            for place in chosen:
                if place not in made:
                    made[place] = _shot(model, task, train, place, store, config)
            shots[example.example_id] = tuple(made[place] for place in chosen)
    return shots


def _names(video_id: str, hashes: Mapping[str, str]) -> tuple[str, str]:
    return video_id, hashes[video_id]


def _balanced(task: Task, examples: Sequence[Example], seed: int) -> list[int]:
    """Return the positions of all examples with an answer, in a seeded order that takes one example per label in
    turn.
    """
    by_label: dict[str, list[int]] = defaultdict(list)
    for place, example in enumerate(examples):
        if task.has_answer(example):
            by_label[example.label].append(place)
    rng = random.Random(seed)  # noqa: S311  (reproducible choice, not secrets)
    labels = sorted(by_label)
    rng.shuffle(labels)
    for label in labels:
        rng.shuffle(by_label[label])
    longest = max(map(len, by_label.values()), default=0)
    return [by_label[label][turn] for turn in range(longest) for label in labels if turn < len(by_label[label])]


def _shot(model: Model, task: Task, train: ExampleSet, place: int, store: FrameStore, config: RunConfig) -> Shot:
    loaded, box_format = train[place], model.box_format
    prompt, answer = _texts(task, loaded.example, box_format)
    content = digest(prompt.as_text(), answer, loaded.media_digest)
    pictures = pictures_for(model, loaded, task, store)
    request = Request("", prompt, pictures.images, (), files=pictures.files)
    request = shown_less(request, config.frames, config.max_side)
    return Shot(request.prompt, Pictures(request.images, request.files), answer, content)


def _texts(task: Task, example: Example, box_format: BoxFormat) -> tuple[Prompt, str]:
    with guard(task, "prompt", example):
        prompt = task.prompt(example, box_format)
    with guard(task, "reference_answer", example):
        return prompt, task.reference_answer(example, box_format)
