"""Runs the same model with less to see, to learn how much of a score comes from the images.

    text_only         no images; the text stays word for word
    first_frame       the first image only
    shuffled_frames   all images, in another order

Include all three in every report. Even without images, a model can answer many questions: options, phrases,
vocabularies and the regular steps of a routine such as making coffee give answers away. The difference to `text_only`
shows what the images add. The difference to `first_frame` shows what further moments add, and the difference to
`shuffled_frames` shows what the order of events adds. Only the differences measure vision; a single score does not.

The effect of an ablation depends on the images of the task. For tasks with one frame (grounding, hand-object,
referring), `first_frame` and `shuffled_frames` change nothing. Relations shows two views of one moment, the frame and
then the same frame with numbered marks. There `first_frame` withholds the marks, so the numbers of the legend refer to
nothing. `shuffled_frames` swaps the two views. The text stays unchanged, even if it mentions withheld images.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.model_names import ABLATIONS, AIDED
from barista_bench.core.prompt import ImagePart, TextPart
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

RequestChange = Callable[[Request], Request]


def ablate(model: Model, ablation: str) -> Model:
    """Return the model with less to see. The result streams if `model` streams, and has the same batch size and window.

    Its identity is `<ablation>:<name>`, and its settings include `ablation`. Nested ablations are named in order.

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
    """Return the model under the name `aided:<name>`; `settings` describe the aids and are added to its own settings.

    The requests are changed before the model receives them.
    """
    kind = _StreamingAblation if isinstance(model, StreamingModel) else _Ablation
    return kind(model, AIDED, settings, lambda request: request)


def with_changed_requests(model: Model, settings: Mapping[str, str | int], change: RequestChange) -> Model:
    """Return the model with `change` applied to its requests; its name stays, and `settings` describe the change."""
    kind = _StreamingAblation if isinstance(model, StreamingModel) else _Ablation
    changed = kind(model, "", settings, change)
    changed.identity = replace(changed.identity, name=model.identity.name)
    return changed


def unwrap_ablations(model: Model) -> tuple[Model, RequestChange]:
    """Return the model inside its ablations, and the function that applies all of these ablations to a request."""
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
    """Keep at most `frames` images, evenly spread; no image is larger than `max_side` pixels."""
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
    """Shuffle all images; the request's id sets the order, so it is the same for every model, batch and run.

    The places in the prompt stay unchanged. The times that a video processor receives stay unchanged too: shuffled
    times would reveal the order. The new order differs from the old one, unless there are fewer than two images.
    """
    order = list(range(len(request.images)))
    if len(order) < 2:
        return request
    seed = hashlib.sha256(f"shuffled_frames\0{request.request_id}".encode()).digest()
    rng = random.Random(seed)  # noqa: S311  (reproducible order, not secrets)
    while order == sorted(order):
        rng.shuffle(order)
    return request.with_images(order)


_CHANGES: Mapping[str, RequestChange] = dict(zip(ABLATIONS, (text_only, first_frame, shuffled_frames), strict=True))


def _with_images(request: Request, indices: Sequence[int]) -> Request:
    """Return the request with only the images at `indices`, renumbered."""
    parts: list[TextPart | ImagePart] = []
    for part in request.prompt.parts:
        if isinstance(part, TextPart):
            parts.append(part)
        elif part.index in indices:
            parts.append(ImagePart(indices.index(part.index)))
    times = request.times and request.times.of_images(indices)
    return replace(request.with_images(indices), prompt=replace(request.prompt, parts=tuple(parts)), times=times)


_OPTIONAL_ATTRIBUTES = frozenset({"sends_files", "reads_text_alone", "versions", "batch_check"})
"""Attributes that only some models have, but that a runner asks every model for."""


class _Ablation:
    """A model that receives each request with a change."""

    def __init__(self, model: Model, kind: str, settings: Mapping[str, str | int], change: RequestChange) -> None:
        self.model = model
        self.box_format: BoxFormat = model.box_format
        inner = model.identity
        self.identity = ModelIdentity(f"{kind}:{inner.name}", inner.revision, {**inner.settings, **settings})
        self._change = change

    def change(self, request: Request) -> Request:
        """Return the request for the wrapped model."""
        request.check_images()  # checked first, since dropping images could hide that a caller has miscounted them
        return self._change(request)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (what only some models say)
        """Return an attribute of the wrapped model.

        Methods are not passed on: they would receive unchanged requests.
        """
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
        """Change each request when the model takes it. Each answer is returned with the original request."""
        originals: dict[str, Request] = {}

        def changed_requests() -> Iterator[Request]:
            for request in requests:
                originals[request.request_id] = request
                yield self.change(request)

        for answered in self.model.stream(changed_requests(), config):
            yield replace(answered, request=originals.pop(answered.request.request_id))
