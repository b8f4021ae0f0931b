"""From a request to the body of a chat completion call."""

from __future__ import annotations

from collections.abc import Sequence

from barista_bench.core.prompt import TextPart
from barista_bench.models.base import GenerationConfig, Request
from barista_bench.models.served.settings import Extra, ServedSettings, with_field

_SEED_BITS = 31  # what every server takes; gateways in JavaScript round anything above 53


def request_body(request: Request, config: GenerationConfig, settings: ServedSettings) -> Extra:
    """All fields of a call but `n` and `seed`. Encodes the images."""
    body: Extra = {
        "model": settings.name,
        "messages": messages(request, settings),
        settings.token_limit_field: config.max_new_tokens,
        **sampling_fields(config, settings),
    }
    if config.stop:
        body["stop"] = list(config.stop)
    if config.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": config.top_logprobs}
    if settings.structured_output and request.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(request.schema), "strict": True},
        }
    if config.thinking_budget is not None and settings.thinking_budget_field is not None:
        body = with_field(body, settings.thinking_budget_field, config.thinking_budget)
    return {name: value for name, value in body.items() if name not in settings.omit}


def sampling_fields(config: GenerationConfig, settings: ServedSettings) -> Extra:
    """Temperature, nucleus and the rest, over `extra_body`.

    What is not sent is the server's to choose: vLLM and SGLang take it from the checkpoint's generation settings, where
    some families put `top_k` 1. So top_p is always sent, and with `explicit_sampling` top_k and the penalty are too.
    """
    fields: Extra = {**settings.extra_body, "temperature": config.temperature}
    if config.temperature > 0 or config.top_p != 1.0:
        fields["top_p"] = config.top_p
    if config.top_k is not None or settings.explicit_sampling:
        fields["top_k"] = -1 if config.top_k is None else config.top_k
    if config.repetition_penalty != 1.0 or settings.explicit_sampling:
        fields["repetition_penalty"] = config.repetition_penalty
    return fields


def per_call(seeds: Sequence[int], settings: ServedSettings) -> Extra:
    """The fields that ask for one choice for each seed. Only the first seed can be told, and servers may ignore it."""
    fields: Extra = {} if "seed" in settings.omit else {"seed": seeds[0] % 2**_SEED_BITS}
    return {**fields, "n": len(seeds)} if len(seeds) > 1 else fields


def messages(request: Request, settings: ServedSettings) -> list[Extra]:
    """The conversation: a system message where there is one, and the user's turn; images become data URLs."""
    system = request.prompt.system
    start: list[Extra] = [{"role": "system", "content": system}] if system else []
    parts = _parts(request, settings)
    only_text = all(part["type"] == "text" for part in parts)
    # Some servers of text models take nothing but a string.
    content = "".join(str(part["text"]) for part in parts) if only_text else parts
    return [*start, {"role": "user", "content": content}]


def _parts(request: Request, settings: ServedSettings) -> list[Extra]:
    """Texts that touch are one part, because servers may trim parts, or put spaces between them."""
    parts: list[Extra] = []
    for part in request.prompt.parts:
        if isinstance(part, TextPart):
            if parts and parts[-1]["type"] == "text":
                parts[-1] = {"type": "text", "text": f"{parts[-1]['text']}{part.text}"}
            else:
                parts.append({"type": "text", "text": part.text})
            continue
        image: Extra = {"url": settings.images.data_url(request.images[part.index])}
        if settings.image_detail is not None:
            image["detail"] = settings.image_detail
        parts.append({"type": "image_url", "image_url": image})
    return parts
