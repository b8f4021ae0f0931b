"""The same model with less to see: what of a score is owed to the images, and what to the question alone.

    text_only         no image at all; the text is left word for word as it is
    first_frame       the first image only
    shuffled_frames   all images, in another order

Why they belong in every report: multiple-choice options, phrases, vocabularies and the regularity of a routine such as
making coffee answer a good part of a benchmark for a model that sees nothing. The distance between a model and itself
under `text_only` is what it owes to seeing; between it and `first_frame`, to seeing more than one moment; between it
and `shuffled_frames`, to the order of events. Only the distances speak of vision, never a score alone.

What they mean depends on what a task's images are. Where they are frames in order (activity, temporal VQA), all three
ask what they seem to ask. Where there is one frame (grounding, hand-object, referring), `first_frame` and
`shuffled_frames` change nothing. Relations shows two views of one moment, the frame and then the same frame with
numbered marks: there `first_frame` withholds the marks, so that the numbers of the legend can be tied to nothing but
guesses, and `shuffled_frames` swaps the views. A text that speaks of images which are withheld is part of the
ablation: it asks the same question.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from barista_bench.core.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.errors import ConfigError
from barista_bench.models.base import (
    Answered,
    Completion,
    Failure,
    GenerationConfig,
    Model,
    ModelIdentity,
    Request,
    StreamingModel,
)

Change = Callable[[Request], Request]


def ablated(model: Model, ablation: str) -> Model:
    """`model`, shown less. Streams if `model` does; shares its batch size and window.

    Its identity is `<ablation>:<name>`, with `ablation` among the settings. Ablations of ablations are named in order.

    Raises:
        ConfigError: there is no such ablation.
    """
    if ablation not in ABLATIONS:
        raise ConfigError(f"no ablation {ablation!r}. Remedy: use one of {', '.join(ABLATIONS)}")
    kind = _StreamingAblation if isinstance(model, StreamingModel) else _Ablation
    return kind(model, ablation)  # type: ignore[arg-type]  # the kind was chosen by the model


def unwrapped(model: Model) -> tuple[Model, Change]:
    """The model behind its ablations, and what they make of a request before it gets there."""
    if not isinstance(model, _Ablation):
        return model, lambda request: request
    inner, then = unwrapped(model.model)
    return inner, lambda request: then(_changed(request, model._change))


def text_only(request: Request) -> Request:
    """Without images, and without their places in the prompt."""
    return _showing(request, [])


def first_frame(request: Request) -> Request:
    """Only the image that the prompt places first."""
    return _showing(request, _shown(request)[:1])


def shuffled_frames(request: Request) -> Request:
    """All images in another order, drawn by the request's id: the same for every model, batch and run.

    The places in the prompt stay where they are. It is never the old order, unless there are fewer than two images.
    """
    order = list(range(len(request.images)))
    if len(order) < 2:
        return request
    seed = hashlib.sha256(f"shuffled_frames\0{request.request_id}".encode()).digest()
    rng = random.Random(seed)  # noqa: S311  (reproducible order, not secrets)
    while order == sorted(order):
        rng.shuffle(order)
    return replace(request, images=tuple(request.images[index] for index in order))


ABLATIONS: Mapping[str, Change] = {
    "text_only": text_only,
    "first_frame": first_frame,
    "shuffled_frames": shuffled_frames,
}
"""Name to what becomes of a request."""


def _shown(request: Request) -> list[int]:
    """Indices of the images as the prompt places them, one after the other."""
    return [part.index for part in request.prompt.parts if isinstance(part, ImagePart)]


def _showing(request: Request, kept: Sequence[int]) -> Request:
    """The request with these images alone, numbered anew."""
    parts: list[TextPart | ImagePart] = []
    for part in request.prompt.parts:
        if isinstance(part, TextPart):
            parts.append(part)
        elif part.index in kept:
            parts.append(ImagePart(kept.index(part.index)))
    images = tuple(request.images[index] for index in kept)
    return replace(request, prompt=Prompt(request.prompt.system, tuple(parts)), images=images)


def _changed(request: Request, change: Change) -> Request:
    request.check_images()  # dropping images must not hide that a caller miscounted them
    return change(request)


class _Ablation:
    """A model behind a change of its requests."""

    def __init__(self, model: Model, ablation: str) -> None:
        self.model = model
        self.box_format: BoxFormat = model.box_format
        inner = model.identity
        earlier = inner.settings.get("ablation")
        named = f"{ablation}, {earlier}" if earlier else ablation
        self.identity = ModelIdentity(f"{ablation}:{inner.name}", inner.revision, {**inner.settings, "ablation": named})
        self._change = ABLATIONS[ablation]

    @property
    def batch_size(self) -> int:
        """The wrapped model's, which may shrink while running."""
        return self.model.batch_size

    @batch_size.setter
    def batch_size(self, size: int) -> None:
        self.model.batch_size = size

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        return self.model.generate([_changed(request, self._change) for request in requests], config)


class _StreamingAblation(_Ablation):
    model: StreamingModel

    def __init__(self, model: StreamingModel, ablation: str) -> None:
        super().__init__(model, ablation)

    @property
    def window(self) -> int:
        """The wrapped model's."""
        return self.model.window

    @window.setter
    def window(self, size: int) -> None:
        self.model.window = size

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
        """Requests are changed one by one as the model takes them; each answer comes with the request as it was."""
        asked: dict[str, Request] = {}

        def changed() -> Iterator[Request]:
            for request in requests:
                asked[request.request_id] = request
                yield _changed(request, self._change)

        for answered in self.model.stream(changed(), config):
            yield replace(answered, request=asked.pop(answered.request.request_id))
