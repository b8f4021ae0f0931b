"""The same model with less to see: how much of a score is due to the images, and how much to the question.

    text_only         no images; the text stays word for word
    first_frame       the first image only
    shuffled_frames   all images, in another order

Include them in every report. A model without images can answer a good part of a benchmark from multiple-choice options,
phrases, vocabularies and the regularity of a routine such as making coffee. The difference to `text_only` is due to
seeing, the difference to `first_frame` to seeing more than one moment, and the difference to `shuffled_frames` to the
order of events. Only the differences measure vision; a single score does not.

The meaning depends on a task's images. For tasks with one frame (grounding, hand-object, referring), `first_frame` and
`shuffled_frames` change nothing. Relations shows two views of one moment, the frame and then the same frame with
numbered marks. There `first_frame` withholds the marks, so that the numbers of the legend refer to nothing, and
`shuffled_frames` swaps the views. The text stays unchanged, even if it mentions withheld images.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.model_names import ABLATIONS, AIDED
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.errors import ConfigError
from barista_bench.models.base import (
    AnsweredRequest,
    Completion,
    Failure,
    GenerationConfig,
    Model,
    ModelIdentity,
    Request,
    StreamingModel,
)

Change = Callable[[Request], Request]


def ablate(model: Model, ablation: str) -> Model:
    """Return the model with less to see. It streams if `model` does, and shares its batch size and window.

    Its identity is `<ablation>:<name>`, with `ablation` among the settings. Nested ablations are named in order.

    Raises:
        ConfigError: there is no such ablation.
    """
    if ablation not in ABLATIONS:
        raise ConfigError(f"no ablation {ablation!r}. Fix: use one of {', '.join(ABLATIONS)}")
    earlier = model.identity.settings.get("ablation")
    settings = {"ablation": f"{ablation}, {earlier}" if earlier else ablation}
    kind = _StreamingAblation if isinstance(model, StreamingModel) else _Ablation
    return kind(model, ablation, settings, _CHANGES[ablation])


def add_aids(model: Model, settings: Mapping[str, str | int]) -> Model:
    """Return the model under the name `aided:<name>`, with `settings` among its own. They say what its requests tell.

    The requests are changed before the model receives them.
    """
    kind = _StreamingAblation if isinstance(model, StreamingModel) else _Ablation
    return kind(model, AIDED, settings, lambda request: request)


def with_changed_requests(model: Model, settings: Mapping[str, str | int], change: Change) -> Model:
    """Return the model whose requests are changed first; its name stays, and `settings` say how."""
    kind = _StreamingAblation if isinstance(model, StreamingModel) else _Ablation
    changed = kind(model, "", settings, change)
    changed.identity = replace(changed.identity, name=model.identity.name)
    return changed


def unwrap_ablations(model: Model) -> tuple[Model, Change]:
    """Return the model inside its ablations, and the function that they apply to a request first."""
    if not isinstance(model, _Ablation):
        return model, lambda request: request
    inner, inner_change = unwrap_ablations(model.model)
    return inner, lambda request: inner_change(model.change(request))


def text_only(request: Request) -> Request:
    """Remove the images of a request, and their places in the prompt."""
    return _with_images(request, [])


def first_frame(request: Request) -> Request:
    """Keep only the image that the prompt places first."""
    placed = [part.index for part in request.prompt.parts if isinstance(part, ImagePart)]
    return _with_images(request, placed[:1])


def shown_less(request: Request, frames: int | None, max_side: int | None) -> Request:
    """Keep at most `frames` of the images, evenly spread, none larger than `max_side` pixels."""
    placed = [part.index for part in request.prompt.parts if isinstance(part, ImagePart)]
    if frames is not None and len(placed) > frames:
        request = _with_images(request, [placed[number * len(placed) // frames] for number in range(frames)])
    if max_side is None:
        return request
    images, files = list(request.images), list(request.files)
    for place, image in enumerate(images):
        if max(image.size) > max_side:
            images[place] = image.copy()
            images[place].thumbnail((max_side, max_side))
            files[place : place + 1] = [None] if files else []
    return replace(request, images=tuple(images), files=tuple(files))


def shuffled_frames(request: Request) -> Request:
    """Shuffle all images by the request's id: the order is the same for every model, batch and run.

    The places in the prompt stay unchanged. So do the times that a processor of videos receives, which would reveal the
    order. The new order differs from the old one, unless there are fewer than two images.
    """
    order = list(range(len(request.images)))
    if len(order) < 2:
        return request
    seed = hashlib.sha256(f"shuffled_frames\0{request.request_id}".encode()).digest()
    rng = random.Random(seed)  # noqa: S311  (reproducible order, not secrets)
    while order == sorted(order):
        rng.shuffle(order)
    return request.with_images(order)


_CHANGES: Mapping[str, Change] = dict(zip(ABLATIONS, (text_only, first_frame, shuffled_frames), strict=True))


def _with_images(request: Request, indices: Sequence[int]) -> Request:
    """Return the request with only these images, renumbered."""
    parts: list[TextPart | ImagePart] = []
    for part in request.prompt.parts:
        if isinstance(part, TextPart):
            parts.append(part)
        elif part.index in indices:
            parts.append(ImagePart(indices.index(part.index)))
    times = request.times and request.times.of_images(indices)
    return replace(request.with_images(indices), prompt=Prompt(request.prompt.system, tuple(parts)), times=times)


_OPTIONAL_ATTRIBUTES = frozenset({"sends_files", "reads_text_alone", "versions", "batch_check"})
"""Attributes that only some models have, and a runner asks for."""


class _Ablation:
    """A model whose requests are changed first."""

    def __init__(self, model: Model, kind: str, settings: Mapping[str, str | int], change: Change) -> None:
        self.model = model
        self.box_format: BoxFormat = model.box_format
        inner = model.identity
        self.identity = ModelIdentity(f"{kind}:{inner.name}", inner.revision, {**inner.settings, **settings})
        self._change = change

    def change(self, request: Request) -> Request:
        """Return the request for the wrapped model."""
        request.check_images()  # dropping images must not hide that a caller miscounted them
        return self._change(request)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (what only some models say)
        """Return an attribute of the wrapped model, but no method: methods would receive unchanged requests."""
        if name not in _OPTIONAL_ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)

    @property
    def batch_size(self) -> int:
        """The wrapped model's batch size, which may shrink while running."""
        return self.model.batch_size

    @batch_size.setter
    def batch_size(self, size: int) -> None:
        self.model.batch_size = size

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        return self.model.generate([self.change(request) for request in requests], config)


class _StreamingAblation(_Ablation):
    model: StreamingModel

    @property
    def window(self) -> int:
        """The wrapped model's window."""
        return self.model.window

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[AnsweredRequest]:
        """Change each request when the model takes it. Each answer comes with the original request."""
        originals: dict[str, Request] = {}

        def changed_requests() -> Iterator[Request]:
            for request in requests:
                originals[request.request_id] = request
                yield self.change(request)

        for answered in self.model.stream(changed_requests(), config):
            yield replace(answered, request=originals.pop(answered.request.request_id))
