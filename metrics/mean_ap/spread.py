"""How far the figures can be trusted: over the order of equal scores, and over the choice of videos.

Both reuse the matches of `evaluate_images`, which depend on no other image: only the aggregation is repeated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np

from .accumulate import STATISTICS, accumulate, select, statistics
from .inputs import IouType, RawImage
from .matching import Matches
from .scoring import Evaluated, Rounding, evaluate_images
from .values import Floats, Ints
from .weighted import weighted_statistics

# Recall does not depend on the order of the images.
_PRECISIONS = STATISTICS[:6]


def tie_spread(
    predictions: Sequence[RawImage | None],
    references: Sequence[RawImage],
    *,
    orders: int = 100,
    seed: int = 0,
    iou_type: IouType = "bbox",
    rounding: Rounding = "none",
) -> dict[str, Any]:
    """How much the average precisions owe to the order of the images: inputs as for `mean_ap`.

    COCO ranks predictions of equal score in the order of the images. Without confidences all scores are equal, and
    the order, which says nothing about the model, decides. Returned per precision (`map`, `map_50`, ...):

    * `canonical`: images in the order given, the published figure;
    * `min`, `mean`, `max` over `orders` random orders of the images drawn with `seed`, or over all orders where
      these are no more than `orders`; `min` and `max` take in the canonical order;
    * `lower`, `upper`: bounds that hold for every order, reached or not: wrong predictions before right ones of the
      same score, at each threshold for itself, and the other way round.

    And `orders`: how many were computed; `exhaustive`: whether these are all. Raises ValueError if orders < 1.

    >>> good = {"boxes": [[0, 0, 9, 9]]}
    >>> spread = tie_spread([{"boxes": [[50, 50, 59, 59]]}, good], [good, good])
    >>> {name: round(value, 3) for name, value in spread["map"].items()}
    {'canonical': 0.252, 'min': 0.252, 'mean': 0.379, 'max': 0.505, 'lower': 0.252, 'upper': 0.505}
    >>> spread["orders"], spread["exhaustive"]
    (2, True)
    """
    return spread_of(
        evaluate_images(predictions, references, iou_type=iou_type, rounding=rounding), orders=orders, seed=seed
    )


def spread_of(evaluated: Evaluated, *, orders: int = 100, seed: int = 0) -> dict[str, Any]:
    """`tie_spread` of images that are compared already."""
    if orders < 1:
        raise ValueError(f"orders is {orders}; give the number of orders of the images to try, 1 or more")
    matches = evaluated.matches
    # Images without predictions may stand anywhere.
    movable = np.flatnonzero(evaluated.n_predicted)
    exhaustive = len(movable) < 20 and factorial(len(movable)) <= orders
    sampled = _all_orders(movable) if exhaustive else _random_orders(movable, orders, seed)
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


def _all_orders(images: Ints) -> Iterator[Ints]:
    return (np.array(order, dtype=np.int64) for order in permutations(images.tolist()))


def _random_orders(images: Ints, count: int, seed: int) -> Iterator[Ints]:
    rng = np.random.default_rng(seed)
    return (rng.permutation(images) for _ in range(count))


def _precisions(matches: Matches, images: Ints | None = None, *, optimism: int = 0) -> Floats:
    figures = accumulate(matches, select(matches, images), optimism=optimism)
    return statistics(figures, single_precision=matches.single_precision)[: len(_PRECISIONS)]


def resample(clusters: Sequence[Hashable], n: int, seed: int = 0) -> Ints:
    """(n, n_images) how often each image is taken, in `n` draws of whole clusters with replacement.

    `clusters` names the cluster of each image, such as its video: images of a video resemble each other, and
    intervals that treat them as independent are too narrow. As many clusters are drawn as there are. Equal
    arguments give equal draws. Raises ValueError without images or with n < 1.

    >>> resample(["a", "b", "a"], 3, seed=1).tolist()
    [[1, 1, 1], [0, 2, 0], [2, 0, 2]]
    """
    if not len(clusters) or n < 1:
        raise ValueError(f"there are {len(clusters)} images and {n} resamples; give at least one of each")
    codes: dict[Hashable, int] = {}
    cluster = np.array([codes.setdefault(name, len(codes)) for name in clusters])
    draws = np.random.default_rng(seed).integers(len(codes), size=(n, len(codes)))
    drawn = np.array([np.bincount(draw, minlength=len(codes)) for draw in draws])
    return np.asarray(drawn[:, cluster])


def bootstrap_map(evaluated: Evaluated, clusters: Sequence[Hashable], *, n: int = 1000, seed: int = 0) -> Floats:
    """COCO's statistics of resampled images: (n, 12), columns named by STATISTICS, NaN where one has no reference.

    See `resample` for the draws. Each is what `mean_ap` gives for a list in which the images stand in their own order,
    each as often in a row as it was drawn, but for the rounding of sums (`weighted_statistics`). Raises ValueError
    unless there is one cluster per image.

    >>> good, bad = {"boxes": [[0, 0, 9, 9]]}, {"boxes": [[50, 50, 59, 59]]}
    >>> values = bootstrap_map(evaluate_images([good, good, bad], [good] * 3), ["a", "b", "c"], n=100)
    >>> values.shape, percentile_interval(values[:, 8])
    ((100, 12), (0.0, 1.0))
    """
    values = weighted_statistics(evaluated.matches, _weights(evaluated, clusters, n, seed))
    values[values < 0] = np.nan
    return values


def _weights(evaluated: Evaluated, clusters: Sequence[Hashable], n: int, seed: int) -> Ints:
    if len(clusters) != len(evaluated.failed):
        raise ValueError(
            f"there are {len(clusters)} clusters for {len(evaluated.failed)} images; "
            "give one per image, such as its video"
        )
    return resample(clusters, n, seed)


def percentile_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """The middle `level` of resampled values; NaN are left out, and the ends are NaN if there is nothing else.

    >>> percentile_interval(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; give a share between 0 and 1, such as 0.95")
    present = values[~np.isnan(values)]
    if not len(present):
        return float("nan"), float("nan")
    low, high = np.quantile(present, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
