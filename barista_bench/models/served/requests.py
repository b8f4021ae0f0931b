"""Makes the requests to a server (images and bodies of calls), and estimates the tokens that a run would use."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from PIL import Image

from barista_bench.core.frame_times import FrameTimes, VideoClip, parts_with_clips
from barista_bench.core.prompt import ImagePart, TextPart
from barista_bench.models.base import GenerationConfig, Request
from barista_bench.models.served.settings import ServedSettings

Body = dict[str, object]

_JPEG_QUALITY = 75  # the quality that the released harness uses
_PNG = b"\x89PNG"
_JPEG = b"\xff\xd8\xff"
_SEED_BITS = 31  # every server takes 31 bits; gateways in JavaScript round numbers above 53 bits
_CHARACTERS_PER_TOKEN = 4  # a rule of thumb for English text
_TOKENS_PER_REQUEST = 10  # for roles and separators of the chat template
_TILE = 512  # pixels
_TOKENS_PER_TILE, _TOKENS_PER_IMAGE = 170, 85
_LONG_SIDE, _SHORT_SIDE = 2048, 768  # limits in pixels for an image before it is cut into tiles


def request_body(request: Request, config: GenerationConfig, model: str, settings: ServedSettings) -> Body:
    """Return all fields of a chat completion call except `n` and `seed`, with encoded images."""
    body: Body = {
        "model": model,
        "messages": _messages(request, settings),
        settings.token_limit_field: config.max_new_tokens,
        **_sampling_fields(config, settings),
    }
    if times := _clip_times(request, settings):
        # `num_frames` requests all frames; otherwise the server would take 32.
        body = _with_field(
            body, "media_io_kwargs.video", {**times.metadata(), "num_frames": -1, "do_sample_frames": False}
        )
    if config.stop:
        body["stop"] = list(config.stop)
    if config.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": config.top_logprobs}
    if settings.structured_output and request.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(request.schema), "strict": True},
        }
    if (reasoning := settings.reasoning_value) is not None:
        body = _with_field(body, settings.reasoning_field, reasoning)
    if config.thinking_budget is not None and settings.thinking_budget_field is not None:
        body = _with_field(body, settings.thinking_budget_field, config.thinking_budget)
    return {name: value for name, value in body.items() if name not in settings.omit}


def fields_per_call(seeds: Sequence[int], settings: ServedSettings) -> Body:
    """Return the fields that request one choice per seed. Only the first seed is sent, and servers may ignore it."""
    fields: Body = {} if "seed" in settings.omit else {"seed": seeds[0] % 2**_SEED_BITS}
    return {**fields, "n": len(seeds)} if len(seeds) > 1 else fields


def has_field(body: object, dotted: str) -> bool:
    """Return True if a body has this field; a dot in the name enters an object."""
    first, _, rest = dotted.partition(".")
    return isinstance(body, Mapping) and first in body and (not rest or has_field(body[first], rest))


def _with_field(body: Mapping[str, object], dotted: str, value: object) -> Body:
    """Return a copy of `body` with one more field; a dot enters an object (`chat_template_kwargs.thinking_budget`)."""
    first, _, rest = dotted.partition(".")
    inner = body.get(first)
    inner_body = inner if isinstance(inner, Mapping) else {}
    return {**body, first: _with_field(inner_body, rest, value) if rest else value}


def _sampling_fields(config: GenerationConfig, settings: ServedSettings) -> Body:
    """Return temperature, nucleus and other settings, merged with `extra_body`.

    A server chooses missing settings itself: vLLM and SGLang take them from the checkpoint's generation settings, and
    some architectures have `top_k` 1 there. So top_p is always sent, and `explicit_sampling` adds top_k and the
    penalty.
    """
    fields: Body = {**settings.extra_body, "temperature": config.temperature}
    if config.temperature > 0 or config.top_p != 1.0:
        fields["top_p"] = config.top_p
    if config.top_k is not None or settings.explicit_sampling:
        fields["top_k"] = -1 if config.top_k is None else config.top_k
    if config.repetition_penalty != 1.0 or settings.explicit_sampling:
        fields["repetition_penalty"] = config.repetition_penalty
    return fields


def _messages(request: Request, settings: ServedSettings) -> list[Body]:
    """Return the conversation: a system message, if one is set, and all turns; images become data URLs."""
    earlier: list[Body] = [{"role": role, "content": text} for role, text in request.prompt.text_turns]
    parts: list[Body] = []
    for part in _parts(request, settings):
        if isinstance(part, TextPart):
            parts.append({"type": "text", "text": part.text})
            continue
        if isinstance(part, VideoClip):
            parts.append({"type": "video_url", "video_url": {"url": _video_url(part, request, settings)}})
            continue
        file = request.files[part.index] if request.files else None
        image: Body = {"url": data_url(request.images[part.index], settings, file)}
        if settings.image_detail is not None:
            image["detail"] = settings.image_detail
        parts.append({"type": "image_url", "image_url": image})
    only_text = all(part["type"] == "text" for part in parts)
    # Some servers of text models accept only a string.
    content = "".join(str(part["text"]) for part in parts) if only_text else parts
    return [*earlier, {"role": "user", "content": content}]


def _parts(request: Request, settings: ServedSettings) -> Sequence[TextPart | ImagePart | VideoClip]:
    if settings.frames_as == "images":
        return request.prompt.joined_parts
    return parts_with_clips(request.prompt, request.times, settings.video_fps)


def _clip_times(request: Request, settings: ServedSettings) -> FrameTimes | None:
    """Return the frame times of a request's video; None without a video.

    A call can contain the times of only one video.

    Raises:
        ValueError: the request has several videos with different times.
    """
    times = {part.times for part in _parts(request, settings) if isinstance(part, VideoClip)}
    if len(times) > 1:
        raise ValueError(
            f"it has {len(times)} videos of different times, and a call tells a server the times of one. "
            "Fix: use frames_as=images"
        )
    return next(iter(times), None)


def _video_url(clip: VideoClip, request: Request, settings: ServedSettings) -> str:
    """Encode frames for vLLM's server: JPEG files separated by commas; stored JPEG files stay unchanged."""
    files = []
    for index in clip.images:
        file = request.files[index] if request.files else None
        stored_jpeg = file if file is not None and file.startswith(_JPEG) else None
        files.append(base64.b64encode(picture_file(request.images[index], settings, stored_jpeg)).decode("ascii"))
    return f"data:video/jpeg;base64,{','.join(files)}"


def picture_file(image: Image.Image, settings: ServedSettings, file: bytes | None = None) -> bytes:
    """Return the file to send: `file`, unless the settings require another format or quality."""
    if file is not None and settings.image_format is None and settings.jpeg_quality is None:
        return file
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    buffer = io.BytesIO()
    if settings.image_format == "png":
        rgb.save(buffer, "PNG", compress_level=1)  # the level does not change the pixels
    else:
        rgb.save(buffer, "JPEG", quality=settings.jpeg_quality or _JPEG_QUALITY)
    return buffer.getvalue()


def data_url(image: Image.Image, settings: ServedSettings, file: bytes | None = None) -> str:
    """Return the image as `data:image/...;base64,...`; see `picture_file` for `file`."""
    content = picture_file(image, settings, file)
    kind = "png" if content.startswith(_PNG) else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


class RunCost(NamedTuple):
    """An estimate for the run of a served model; wherever its numbers appear, they are labelled as estimates.

    Each request is counted once, since `n` requests all samples together. A server without `n` counts the input tokens
    once per seed. The input is estimated by `estimated_input_tokens`. The estimated output is `max_new_tokens` for
    every sample.
    """

    input_tokens: int
    max_output_tokens: int


def estimate(requests: Iterable[Request], config: GenerationConfig, settings: ServedSettings) -> RunCost:
    """Estimate all requests, one at a time. Raises ValueError if a prompt does not place each image exactly once."""
    input_tokens = output_tokens = 0
    for request in requests:
        request.check_images()
        input_tokens += estimated_input_tokens(request)
        output_tokens += config.max_new_tokens * (len(request.seeds) if config.temperature > 0 else 1)
    return RunCost(input_tokens, output_tokens)


def estimated_input_tokens(request: Request) -> int:
    """Return the estimated tokens of a prompt: one token per 4 characters, and images by OpenAI's tiles.

    Other models count differently.
    """
    text_tokens = -(-len(request.prompt.as_text()) // _CHARACTERS_PER_TOKEN)
    return _TOKENS_PER_REQUEST + text_tokens + sum(estimated_image_tokens(image.size) for image in request.images)


def estimated_image_tokens(size: tuple[int, int]) -> int:
    """Return the tokens of one image of (width, height) pixels, by OpenAI's rule for GPT-4o at high detail.

    The image is first shrunk to fit into 2048 x 2048 pixels, then until its short side is at most 768. Each 512-pixel
    tile that the image touches counts 170 tokens, and the image itself 85. Other models count differently.

    >>> estimated_image_tokens((1920, 1080))
    1105
    """
    width, height = size
    factor = min(1.0, _LONG_SIDE / max(width, height), _SHORT_SIDE / min(width, height))
    tiles = [-(-max(1, round(side * factor)) // _TILE) for side in (width, height)]
    return _TOKENS_PER_IMAGE + _TOKENS_PER_TILE * tiles[0] * tiles[1]
