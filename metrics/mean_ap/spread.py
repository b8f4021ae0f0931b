"""How far the average precisions can be trusted, over the order of equal scores. Each image is matched once."""

from __future__ import annotations

from itertools import permutations
from math import factorial
from typing import Any

import numpy as np

from .accumulate import STATISTICS, accumulate, select, statistics
from .matching import Matches
from .scoring import Evaluated
from .values import Floats, Ints

# Recall does not depend on the order of the images.
_PRECISIONS = STATISTICS[:6]


def spread_of(evaluated: Evaluated, *, orders: int = 100, seed: int = 0) -> dict[str, Any]:
    """How much the average precisions owe to the order of the images.

    COCO ranks predictions of equal score in the order of the images. Without confidences all scores are equal, and
    the order, which says nothing about the model, decides. Returned per precision (`map`, `map_50`, ...):

    * `canonical`: images in the order given, the published figure;
    * `min`, `mean`, `max` over `orders` random orders of the images drawn with `seed`, or over all orders where
      these are no more than `orders`; `min` and `max` take in the canonical order;
    * `lower`, `upper`: bounds that hold for every order, reached or not: wrong predictions before right ones of the
      same score, at each threshold for itself, and the other way round.

    And `orders`: how many were computed; `exhaustive`: whether these are all. Raises ValueError if orders < 1.

    >>> from .scoring import evaluate_images
    >>> good = {"boxes": [[0, 0, 9, 9]]}
    >>> spread = spread_of(evaluate_images([{"boxes": [[50, 50, 59, 59]]}, good], [good, good]))
    >>> {name: round(value, 3) for name, value in spread["map"].items()}
    {'canonical': 0.252, 'min': 0.252, 'mean': 0.379, 'max': 0.505, 'lower': 0.252, 'upper': 0.505}
    >>> spread["orders"], spread["exhaustive"]
    (2, True)
    """
    if orders < 1:
        raise ValueError(f"orders is {orders}; give the number of orders of the images to try, 1 or more")
    matches = evaluated.matches
    # Images without predictions may stand anywhere.
    movable = np.flatnonzero(evaluated.n_predicted)
    exhaustive = len(movable) < 20 and factorial(len(movable)) <= orders
    rng = np.random.default_rng(seed)
    every = (np.array(order, dtype=np.int64) for order in permutations(movable.tolist()))
    sampled = every if exhaustive else (rng.permutation(movable) for _ in range(orders))
    rest = np.flatnonzero(evaluated.n_predicted == 0)
    values = np.array([_precisions(matches, np.concatenate([order, rest])) for order in sampled])
    canonical, lower, upper = _precisions(matches), _precisions(matches, optimism=-1), _precisions(matches, optimism=1)
    seen = np.vstack([values, canonical])
    low, high = seen.min(axis=0), seen.max(axis=0)
    # Clipped since the mean of equal numbers may be off in its last bit.
    columns = (canonical, low, values.mean(axis=0).clip(low, high), high, lower, upper)
    names = ("canonical", "min", "mean", "max", "lower", "upper")
    spread: dict[str, Any] = {
        statistic: {name: float(column[index]) for name, column in zip(names, columns, strict=True)}
        for index, statistic in enumerate(_PRECISIONS)
    }
    return spread | {"orders": len(values), "exhaustive": exhaustive}


def _precisions(matches: Matches, images: Ints | None = None, *, optimism: int = 0) -> Floats:
    figures = accumulate(matches, select(matches, images), optimism=optimism)
    return statistics(figures, single_precision=matches.single_precision)[: len(_PRECISIONS)]
