"""Estimates of many studies at once, which is faster. They equal the package's (`test_estimates.py`)."""

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import betaincinv, ndtri, stdtr, stdtrit

from barista_bench.core.intervals import CONFIDENCE, DIFFERENCE, SCORE, Bounds
from barista_bench.diagnosis.estimates import (
    Estimate,
    Estimates,
    LevelEstimates,
    PathScores,
    estimate_of,
    gains_of_steps,
    game_metrics,
)
from barista_bench.diagnosis.records import ComparedMeans, Diagnosis, LevelDiagnosis
from tests.diagnosis.responders import (
    LEVELS,
    SETS,
    SETTINGS,
    Responder,
    Study,
    Viewer,
    diagnosis_of,
    path_scores,
    spread_over,
    study,
    view_scores,
)

NO_ERROR = 1e-9
_NONE = Estimate(value=None)


def batch_estimates(
    responder: Responder, rng: np.random.Generator, videos: int, per_video: int, count: int
) -> Iterator[tuple[Estimates, Estimates]]:
    """The estimates of `count` studies by `paths` and by `full`, from the same answers."""
    made = study(responder, rng, count * videos, per_video, repeated=False)
    paths = estimates_of_batch(made, path_columns(path_scores(made, rng)), count, videos)
    yield from zip(paths, estimates_of_batch(made, game_columns(made), count, videos), strict=True)


def path_columns(scores: PathScores) -> dict[str, np.ndarray]:
    """The value of each example; the means over examples are the metrics of `paths`."""
    columns = {"plain": scores.true[:, 0], "all": scores.true[:, -1], "text": scores.inert[:, -1] - scores.inert[:, 0]}
    for name, steps in (("gain", scores.true), ("inert", scores.inert)):
        gains = gains_of_steps(steps, scores.position)
        columns |= {f"{name} {level}": gains[:, place] for place, level in enumerate(LEVELS)}
    return columns


def game_columns(made: Study) -> dict[str, np.ndarray]:
    """The same for `full`: a Shapley value of means is the mean of the examples' Shapley values."""
    return game_metrics(LEVELS, made.true, made.inert)


def estimates_of_batch(made: Study, columns: Mapping[str, np.ndarray], count: int, videos: int) -> Iterator[Estimates]:
    """The estimates of each of `count` studies that were made at once, without `first` and `last`."""

    def rows(part: np.ndarray, whole: np.ndarray | float = 1.0) -> np.ndarray:
        return ratio_rows(part, np.broadcast_to(whole, part.shape), count, videos)

    plain, told, control = made.true[SETS[0]], made.true[SETS[-1]], made.inert[SETS[-1]]
    scores = {"plain": rows(columns["plain"]), "remainder": 1 - rows(columns["all"])}
    changes = {"text": rows(columns["text"]), "belief": rows(plain * (told - control), plain)}
    for level in LEVELS:
        gain, inert = (rows(columns[f"{name} {level}"]) for name in ("gain", "inert"))
        changes |= {f"gain {level}": gain, f"inert {level}": inert, f"share {level}": gain - inert}
        follows = made.followed[level]
        scores |= {f"uptake {level}": rows(follows), f"clear {level}": rows(follows, follows + made.kept[level])}
    found = {name: estimates_of_rows(values, SCORE) for name, values in scores.items()}
    found |= {name: estimates_of_rows(values, DIFFERENCE) for name, values in changes.items()}
    for place in range(count):
        one = {name: estimates[place] for name, estimates in found.items()}
        yield Estimates(
            **{name: one[name] for name in ("plain", "remainder", "text", "belief")},
            levels={
                level: LevelEstimates.model_construct(
                    first=_NONE,
                    last=_NONE,
                    **{name: one[f"{name} {level}"] for name in ("gain", "inert", "share", "uptake", "clear")},
                )
                for level in LEVELS
            },
        )


def ratio_rows(part: np.ndarray, whole: np.ndarray, count: int, videos: int) -> np.ndarray:
    """Ratios (N, 1 + 2V) of sums by the rows of `interval_weights`, for N studies on V videos each."""
    sums = (values.reshape(count, videos, -1).sum(axis=2) for values in (part, whole))
    above, below = (
        np.concatenate([total, total - each, each], axis=1)
        for each in sums
        for total in [each.sum(axis=1, keepdims=True)]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return above / below


def estimates_of_rows(values: np.ndarray, bounds: Bounds) -> list[Estimate]:
    """`estimate_of` of each row of (N, 1 + 2V) values."""
    least, greatest = bounds
    videos, point, span = values.shape[1] // 2, values[:, 0], greatest - least
    others, has = values[:, 1 : 1 + videos], ~np.isnan(values[:, 1 + videos :])
    units = has.sum(axis=1, keepdims=True)
    means = np.where(has, others, 0).sum(axis=1, keepdims=True) / units
    errors = np.sqrt((units[:, 0] - 1) / units[:, 0] * (np.where(has, others - means, 0) ** 2).sum(axis=1))
    plain = ~np.isnan(values[:, : 1 + videos]).any(axis=1) & (units[:, 0] > 1) & (errors > NO_ERROR * span)
    fraction, error, free = np.clip((point - least) / span, 0, 1)[plain], errors[plain] / span, units[plain, 0] - 1
    tail = (1 - CONFIDENCE) / 2
    trials = fraction * (1 - fraction) / error**2 * (ndtri(1 - tail) / stdtrit(free, (1 + CONFIDENCE) / 2)) ** 2
    hits, misses = trials * fraction, trials * (1 - fraction)
    low = np.where(hits > 0, betaincinv(np.maximum(hits, NO_ERROR), misses + 1, tail), 0)
    high = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, NO_ERROR), 1 - tail), 1)
    ps = 2 * stdtr(free, -np.abs(point[plain]) / errors[plain])
    points = point[plain]
    ends = np.minimum(least + span * low, points), np.maximum(least + span * high, points)
    vectorised = (
        Estimate.model_construct(value=v, low=a, high=b, p=p) for v, a, b, p in zip(points, *ends, ps, strict=True)
    )
    return [next(vectorised) if known else estimate_of(row, bounds) for known, row in zip(plain, values, strict=True)]


def view_studies(
    viewer: Viewer, rng: np.random.Generator, videos: int, per_video: int, count: int
) -> Iterator[list[ComparedMeans]]:
    """The compared views of `count` studies, with only their changes."""
    made = view_scores(viewer, rng, count * videos, per_video)
    rows = {view: ratio_rows(has * (after - before), has, count, videos) for view, (has, before, after) in made.items()}
    changes = {view: estimates_of_rows(values, DIFFERENCE) for view, values in rows.items()}
    for place in range(count):
        yield [ComparedMeans.model_construct(name=view, change=each[place]) for view, each in changes.items()]


def pair_studies(
    names: tuple[str, str], rng: np.random.Generator, videos: int, per_video: int, count: int
) -> Iterator[list[Diagnosis]]:
    """What `compared_shares` reads of the diagnoses of two responders on the same videos, for `count` studies."""
    spread, shares = spread_over(rng, count * videos, per_video), []
    for name in names:
        made = study(SETTINGS[name], rng, count * videos, per_video, spread, repeated=False)
        columns = path_columns(path_scores(made, rng))
        of_levels = {level: columns[f"gain {level}"] - columns[f"inert {level}"] for level in LEVELS}
        ones = np.ones(len(made.units))
        shares.append({level: ratio_rows(values, ones, count, videos) for level, values in of_levels.items()})
    for place in range(count):
        yield [
            diagnosis_of(
                model=name,
                levels={level: LevelDiagnosis.model_construct(by_video=of[level][place]) for level in LEVELS},
            )
            for name, of in zip(names, shares, strict=True)
        ]
