"""Change each request by aids or a view, and make this change part of the run's identity."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from barista_bench.aids.levels import PICTURES
from barista_bench.aids.pictures import draw_picture
from barista_bench.aids.task_aids import Aid, parse_aids, parse_views
from barista_bench.aids.texts import VERSION, AidBook, OwnBoxes, Parts
from barista_bench.aids.views import Viewed, paint
from barista_bench.benchmarks.kinds.boxes import ObjectBoxTask, answered_boxes
from barista_bench.core.boxes import as_xyxy
from barista_bench.core.example import Example, evidence_objects
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.task import Question
from barista_bench.data.dataset import ExampleSet
from barista_bench.data.loaded_example import LinkedMedia
from barista_bench.data.shared_frames import FrameStore
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.writing import write_whole
from barista_bench.media.lazy_frames import LazyFrames
from barista_bench.metrics.interaction_f1.scoring import box_iou
from barista_bench.models import Model, Request
from barista_bench.models.ablations import RequestChange, add_aids
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.earlier_run import answers_hash
from barista_bench.runs.described import AIDS_FILE
from barista_bench.runs.run_folder import OpenedTask
from barista_bench.runs.score.scoring import read_scored

NEEDS_VIDEO = "show other frames or parts of the video. Fix: build the dataset with --frames linked"
_FRAME_CACHE = 64 * 2**20
log = logging.getLogger(__name__)


def with_aids(model: Model, config: RunConfig, opened_tasks: Sequence[OpenedTask]) -> tuple[Model, list[OpenedTask]]:
    """Wrap the model so that its requests have `config.aid` or `config.view`, and return it with the tasks.

    Examples for which the aids or the view cannot be made are left out of the tasks.

    Raises:
        ConfigError: the aid or view is unknown, a task does not admit it, or the settings rule it out.
        DataError: the dataset has no graph, the aids cannot be made for any example, or the model's own answers are
            missing.
    """
    aids = parse_aids(config.aid)
    if not aids and not config.view:
        return model, list(opened_tasks)
    if aids and config.view:
        raise ConfigError("aid and view are both set. Fix: ask one run with the aid, and one in the view")
    changed = [
        _aided_task(opened, aids, model, config.graph)
        if aids
        else _viewed_task(opened, config.view, model, config.graph)
        for opened in opened_tasks
    ]
    has_pictures = bool(config.view) or any(aid.level in PICTURES for aid in aids)
    if has_pictures and config.cluster is not None:
        raise ConfigError(
            "a cluster's nodes decode only the question's own frames. Fix: leave cluster out, or pictures"
        )
    for opened in changed if any(aid.level in PICTURES for aid in aids) else ():
        if not opened.examples.is_linked:
            raise ConfigError(f"{opened.data}: holds pictures, and aids such as zoom {NEEDS_VIDEO}")
    lines = [line for opened in changed for line in opened.aid_lines]
    settings: dict[str, str | int] = {
        **({"aid": ",".join(f"{aid.level}:own" if aid.run else str(aid) for aid in aids)} if aids else {}),
        **({"view": config.view[0]} if config.view else {}),
        "aid_version": VERSION,
        "aid_hash": hashlib.sha256(b"\n".join(sorted(lines))).hexdigest(),
        **{f"own_{aid.level}": own_hash(aid.run) for aid in aids if aid.run},
    }
    return add_aids(model, settings), changed


def _aided_task(opened: OpenedTask, aids: Sequence[Aid], model: Model, graph: str | None) -> OpenedTask:
    book = opened.aids or AidBook.open(opened.task, opened.examples.examples, graph or opened.data, aids)
    for aid in aids:
        if aid.run:
            book.own_boxes = own_boxes(aid.run)
    found = {each.example_id: book.parts(each, aids, model.box_format) for each in _asked(opened)}
    parts = {name: each for name, each in found.items() if each is not None}
    tell = AidInserter(opened.examples, book, parts)
    lines = [msgspec.json.encode({"example_id": name, "parts": parts[name]}) for name in sorted(parts)]
    return _only(opened, parts, tell, lines, "the video lacks such facts, or the model was not asked them")


def _viewed_task(opened: OpenedTask, names: Sequence[str], model: Model, graph: str | None) -> OpenedTask:
    book = opened.aids or AidBook.open(opened.task, opened.examples.examples, graph or opened.data)
    views = parse_views(opened.task, names)
    if len(views) != 1:
        raise ConfigError(f"{len(views)} views in one run. Fix: name one view")
    all_views = {example.example_id: book.viewed(example, views[0]) for example in _asked(opened)}
    shown = {name: each for name, each in all_views.items() if each is not None}
    lines = [msgspec.json.encode(shown[name].data) for name in sorted(shown)]
    show = _Viewer(opened, book, shown, model)
    return _only(opened, shown, show, lines, "the view cannot be made of them")


def _asked(opened: OpenedTask) -> list[Example]:
    return [each for each in opened.examples.examples if opened.only is None or each.example_id in opened.only]


def _only(
    opened: OpenedTask, kept: Mapping[str, object], change: RequestChange, lines: Sequence[bytes], why: str
) -> OpenedTask:
    if not kept:
        raise DataError(f"{opened.data}: no example of {opened.task.name} can be asked so: {why}. Fix: name another")
    if lacking := len(_asked(opened)) - len(kept):
        log.warning("%s: %d examples are not asked: %s", opened.task.name, lacking, why)
    return replace(opened, only=frozenset(kept), change=change, aid_lines=tuple(lines))


def write_aids(opened: OpenedTask) -> None:
    """Write the aids of a run's examples into its folder."""
    if opened.aid_lines:
        write_whole(opened.folder / AIDS_FILE, b"\n".join(opened.aid_lines) + b"\n")


class _Frames:
    """Reads frames from the videos of a linked set."""

    def __init__(self, examples: ExampleSet) -> None:
        self._examples, self._store = examples, FrameStore(max_bytes=_FRAME_CACHE)
        self._index = {example.example_id: index for index, example in enumerate(examples.examples)}

    def of(self, example_id: str, frames: Sequence[int]) -> list[NDArray[np.uint8]]:
        """Return frames of the example's video. Raises DataError if the set is not linked to its video."""
        loaded = self._examples[self._index[example_id]]
        if not isinstance(loaded.media, LinkedMedia):
            raise DataError(
                f"{example_id}: the dataset holds pictures, and this view must draw on frames. "
                "Fix: build it with --frames linked"
            )
        lazy = loaded.media.lazy
        others = LazyFrames(lazy.video, frames, root=lazy.root, backend=lazy.backend)
        return LinkedMedia(others, loaded.media.sha256).frames(self._store, loaded.example.video_id)


class AidInserter:
    """Adds aids to a request or a chat: text and pictures before the question."""

    def __init__(self, examples: ExampleSet, book: AidBook, parts: Mapping[str, Parts]) -> None:
        self._parts, self._frames = parts, _Frames(examples)
        self._size = {each.example_id: book.size(each) for each in examples.examples if parts.get(each.example_id)}

    def tell(self, name: str, prompt: Prompt, images: int) -> tuple[Prompt, list[Image.Image], list[int]]:
        """Return an example's prompt with its aids, their pictures, and the frames of the pictures.

        Args:
            images: the number of images that the prompt shows without aids.
        """
        told: list[TextPart | ImagePart] = []
        pictures: list[Image.Image] = []
        shown = []
        for part in self._parts[name]:
            if isinstance(part, str):
                told.append(TextPart(part))
                continue
            (frame,) = self._frames.of(name, [part.frame])
            told.append(ImagePart(images + len(pictures)))
            pictures.append(draw_picture(part, frame, self._size[name]))
            shown.append(part.frame)
        return insert_parts(prompt, told), pictures, shown

    def __call__(self, request: Request) -> Request:
        prompt, pictures, shown = self.tell(request.request_id, request.prompt, len(request.images))
        files = (*request.files, *(None for _ in shown)) if request.files else ()
        times = request.times and replace(request.times, indices=(*request.times.indices, *shown))
        return replace(request, prompt=prompt, images=(*request.images, *pictures), files=files, times=times)


def insert_parts(prompt: Prompt, told: Sequence[TextPart | ImagePart]) -> Prompt:
    """Return the prompt with `told` inserted before its last text. The last text asks the question."""
    places = [place for place, part in enumerate(prompt.parts) if isinstance(part, TextPart)]
    place = places[-1] if places else len(prompt.parts)
    return replace(prompt, parts=(*prompt.parts[:place], *told, *prompt.parts[place:]))


class _Viewer:
    """Changes a request to a view."""

    def __init__(self, opened: OpenedTask, book: AidBook, shown: Mapping[str, Viewed], model: Model) -> None:
        self._shown, self._task, self._frames = shown, opened.task, _Frames(opened.examples)
        self._box_format = model.box_format
        self._size = {name: book.size(viewed.example) for name, viewed in shown.items()}

    def __call__(self, request: Request) -> Request:
        viewed, task = self._shown[request.request_id], self._task
        prompt, files = request.prompt, (None,) * len(request.files)
        if viewed.view in ("mirrored", "reversed"):
            prompt = task.prompt(viewed.example, self._box_format)
        return replace(
            request,
            prompt=prompt,
            images=self._images(viewed, request.images),
            files=files,
            inputs=task.request_inputs(viewed.example),
            choices=task.choices(viewed.example),
        )

    def _images(self, viewed: Viewed, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        task, example = self._task, viewed.example
        if viewed.view == "reversed":
            return tuple(images[::-1])
        if viewed.view == "mirrored":
            if type(task).images is Question.images:
                return tuple(map(ImageOps.mirror, images))
            frames = self._frames.of(example.example_id, [frame.frame_index for frame in example.frames])
            flipped = [np.ascontiguousarray(frame[:, ::-1]) for frame in frames]
            return task.displayed_images(example, task.images(example, flipped))
        size, keep = self._size[example.example_id], viewed.view == "only_evidence"
        return tuple(
            paint(image, viewed.areas[frame], size, keep=keep) if viewed.areas[frame] or keep else image
            for image, frame in zip(images, task.image_frames(example), strict=True)
        )


def own_boxes(run: str | Path) -> OwnBoxes:
    """Map (video, frame, object) to the box that the model answered in a run of an `ObjectBoxTask`.

    Only the first repetition counts. If a phrase means several objects, each answered box belongs to the nearest
    object. An object without a box was not seen.

    Raises:
        DataError: the folder is not a finished run of such a task.
    """
    scored = read_scored(run)
    if not isinstance(scored.task, ObjectBoxTask):
        raise DataError(f"{run}: is a run of {scored.task.name}. Fix: name a run of a task that asks where objects are")
    seen: OwnBoxes = {}
    for sample in scored.samples:
        if sample.record.repetition or not sample.record.is_finished:
            continue
        example, frame = sample.example, sample.example.frames[0].frame_index
        answered = answered_boxes(sample.prediction) if sample.prediction else []
        true, names = scored.task.true_boxes(example), evidence_objects(example)
        for name in names:
            seen.setdefault((example.video_id, frame, name))
        pairs = [(-box_iou(box, own), i, j) for i, box in enumerate(true) for j, own in enumerate(answered)]
        taken: set[int] = set()
        for _, i, j in sorted(pairs):
            if seen[example.video_id, frame, names[i]] is None and j not in taken:
                seen[example.video_id, frame, names[i]] = as_xyxy(answered[j])
                taken.add(j)
    return seen


def own_hash(run: str | Path) -> str:
    """Return the SHA-256 of a run's answers, in hex."""
    scored = read_scored(run)
    return answers_hash(scored.results.model.name, scored.samples)
