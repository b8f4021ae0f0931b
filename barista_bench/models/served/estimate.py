"""What a run would send and cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barista_bench.core.prices import token_cost
from barista_bench.models.base import GenerationConfig, Request
from barista_bench.models.checks import check_images
from barista_bench.models.served.images import estimated_image_tokens
from barista_bench.models.served.settings import ServedSettings

_CHARACTERS_PER_TOKEN = 4  # of English text; the usual rule of thumb
_TOKENS_PER_REQUEST = 10  # roles and separators of the chat template


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests, images and their bytes are counted; tokens and cost are estimates, and say so wherever they are shown.

    Args:
        requests: prompts, each sent once with `n` for its samples. Servers without `n` are sent each as many times as
            it has seeds, and take its input tokens as often.
        images: over all requests.
        image_bytes: of the encoded images, before base64, which adds a third.
        input_tokens: 4 characters a token, and images by OpenAI's tiles (`estimated_image_tokens`).
        max_output_tokens: if every sample used all of `max_new_tokens`.
        cost: USD at the most, by these tokens; None where no prices were given.
    """

    requests: int
    images: int
    image_bytes: int
    input_tokens: int
    max_output_tokens: int
    cost: float | None


def estimate(requests: Iterable[Request], config: GenerationConfig, settings: ServedSettings) -> Estimate:
    """Go through all requests, one at a time, encoding their images as they would be sent.

    Raises:
        ValueError: a prompt does not place its images exactly once.
    """
    count = images = image_bytes = input_tokens = output_tokens = 0
    for request in requests:
        check_images(request)
        count += 1
        images += len(request.images)
        image_bytes += sum(len(settings.images.encode(image)) for image in request.images)
        input_tokens += _input_tokens(request, settings)
        output_tokens += config.max_new_tokens * (len(request.seeds) if config.temperature > 0 else 1)
    spent = cost(settings, input_tokens, output_tokens)
    return Estimate(count, images, image_bytes, input_tokens, output_tokens, spent)


def cost(settings: ServedSettings, input_tokens: int, output_tokens: int) -> float | None:
    """USD for so many tokens; None where no prices were given."""
    return token_cost(input_tokens, output_tokens, settings.price_input, settings.price_output)


def _input_tokens(request: Request, settings: ServedSettings) -> int:
    sizes = [settings.images.sent_size(image.size) for image in request.images]
    text = -(-len(request.prompt.as_text()) // _CHARACTERS_PER_TOKEN)
    return _TOKENS_PER_REQUEST + text + sum(map(estimated_image_tokens, sizes))
