"""What tokens cost."""

from __future__ import annotations


def token_cost(
    input_tokens: int, output_tokens: int, input_price: float | None, output_price: float | None
) -> float | None:
    """US dollars, to the sixth place; prices are of a million tokens. None unless both are given.

    >>> token_cost(1_000_000, 500_000, 2.0, 8.0), token_cost(1, 1, 2.0, None)
    (6.0, None)
    """
    if input_price is None or output_price is None:
        return None
    return round((input_tokens * input_price + output_tokens * output_price) / 1e6, 6)
