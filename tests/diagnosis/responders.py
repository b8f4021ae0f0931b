"""Scripted noisy responders with planted faults, and the expected estimates of a diagnosis.

A responder reads the true graph through a noisy channel: at each level it errs with a known rate, which varies by
video. It uses an aid in a fraction `uptake` of the examples; a tired one errs more with each text before the question;
a credulous one takes inert text for facts of the question. The truth is the Monte Carlo of the same generator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations

import numpy as np

from barista_bench.core.example import Example
from barista_bench.diagnosis.conditions import PlannedExample
from barista_bench.diagnosis.estimates import (
    Estimates,
    PathScores,
    UnitMeans,
    belief_metric,
    estimates_of,
    game_metrics,
    path_metrics,
    shapley_value,
    uptake_metrics,
)
from barista_bench.diagnosis.records import ComparedMeans, Diagnosis, adjusted_p_values, levels_of, significant
from barista_bench.diagnosis.single_causes import single_causes

LEVELS = ("objects", "states", "relations")
_ORDERS = np.array(list(permutations(range(3))))
SETS = tuple(frozenset(told) for size in range(4) for told in combinations(LEVELS, size))


@dataclass(frozen=True)
class Responder:
    """Rates from 0 to 1.

    Args:
        faults: by level, and of `reasoning`, which no aid repairs.
        uptake: examples in which it uses an aid, right or false.
        tired: how often each text before the question makes an answer wrong.
        credulous: examples in which it takes inert text for facts of the question.
        both: a fault that only aids of the first two levels together repair.
        shared: the fraction of examples in which one fault strikes all levels at once.
        noise: the fraction of faults that are drawn again for every answer.
        flips: answers that are wrong, or right, independently of the rest.
    """

    faults: Mapping[str, float] = field(default_factory=dict)
    uptake: float = 1.0
    tired: float = 0.0
    credulous: float = 0.0
    both: float = 0.0
    shared: float = 0.0
    noise: float = 0.1
    flips: float = 0.0


SETTINGS = {
    "nothing planted": Responder({"reasoning": 0.2}),
    "objects .30": Responder({"objects": 0.3, "reasoning": 0.12}),
    "states .20": Responder({"states": 0.2, "reasoning": 0.12}),
    "mixture": Responder({"objects": 0.3, "states": 0.15, "relations": 0.1, "reasoning": 0.12}),
    "mixture, uptake .3": Responder({"objects": 0.3, "states": 0.15, "reasoning": 0.12}, uptake=0.3),
    "mixture, uptake .6": Responder({"objects": 0.3, "states": 0.15, "reasoning": 0.12}, uptake=0.6),
    "shared .15": Responder({"objects": 0.2, "reasoning": 0.12}, shared=0.15),
    "interaction .20": Responder({"objects": 0.1, "reasoning": 0.12}, both=0.2),
    "flips .10": Responder({"objects": 0.3, "reasoning": 0.12}, flips=0.1),
    "tired": Responder({"reasoning": 0.12}, tired=0.1),
    "tired, objects .30": Responder({"objects": 0.3, "reasoning": 0.12}, tired=0.1),
    "credulous": Responder({"reasoning": 0.12}, credulous=0.5),
    "credulous, objects .30": Responder({"objects": 0.3, "reasoning": 0.12}, credulous=0.5),
}


@dataclass(frozen=True)
class Study:
    """Scores (E,) of every set of levels, true and inert; whether the false aid of each level is followed.

    `again` are the scores of a second repetition, true and inert; `latent` says which faults each example has.
    """

    units: tuple[str, ...]
    true: Mapping[frozenset, np.ndarray]
    inert: Mapping[frozenset, np.ndarray]
    followed: Mapping[str, np.ndarray]
    kept: Mapping[str, np.ndarray]
    again: tuple[Mapping[frozenset, np.ndarray], Mapping[frozenset, np.ndarray]]
    latent: Mapping[str, np.ndarray]


def spread_over(rng: np.random.Generator, videos: int, per_video: int) -> np.ndarray:
    """How much harder the video of each example is, in log odds."""
    return rng.normal(0, 0.5, videos).repeat(per_video)


def _drawn(rate: float, spread: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which examples have a fault of this rate."""
    if rate <= 0:
        return np.zeros(len(spread), bool)
    odds = np.log(rate / (1 - rate)) + spread
    return rng.random(len(spread)) < 1 / (1 + np.exp(-odds))


def study(
    responder: Responder,
    rng: np.random.Generator,
    videos: int,
    per_video: int,
    spread: np.ndarray | None = None,
    *,
    repeated: bool = True,
) -> Study:
    """The answers of one responder to all conditions."""
    count = videos * per_video
    spread = spread_over(rng, videos, per_video) if spread is None else spread

    names = (*LEVELS, "reasoning", "both", "shared")
    rates = {**dict.fromkeys(names, 0.0), **responder.faults, "both": responder.both, "shared": responder.shared}
    latent = {name: _drawn(rates[name], spread, rng) for name in names}
    odds = {name: 1 / (1 + np.exp(-np.log(rate / (1 - rate)) - spread)) for name, rate in rates.items() if rate}
    uses = {level: rng.random(count) < responder.uptake for level in LEVELS}
    believes = rng.random(count) < responder.credulous

    def happens(rate: float) -> np.ndarray:
        return rng.random(count, np.float32) < rate if rate else np.zeros(count, bool)

    def answer(told: frozenset, variant: str) -> np.ndarray:
        faults = latent.copy()
        for name, chance in odds.items():
            (fresh,) = np.nonzero(happens(responder.noise))
            faults[name] = latent[name].copy()
            faults[name][fresh] = rng.random(len(fresh)) < chance[fresh]
        mended = {
            level: (uses[level] if level in told and variant == "true" else np.zeros(count, bool)) for level in LEVELS
        }
        wrong = faults["reasoning"] | (faults["both"] & ~(mended[LEVELS[0]] & mended[LEVELS[1]]))
        for level in LEVELS:
            wrong |= (faults[level] | faults["shared"]) & ~mended[level]
        wrong |= happens(1 - (1 - responder.tired) ** len(told))
        if variant == "inert" and told:
            wrong |= believes
        return np.where(happens(responder.flips), happens(0.5) if responder.flips else False, ~wrong).astype(float)

    def to_false(level: str) -> tuple[np.ndarray, np.ndarray]:
        others = latent["reasoning"] | latent["shared"] | latent["both"]
        for other in LEVELS:
            others |= latent[other] if other != level else False
        tired = happens(responder.tired)
        follows, sound = uses[level] | believes, ~others & ~tired
        return (follows & sound).astype(float), (~follows & sound & ~latent[level]).astype(float)

    units = tuple(np.arange(videos).astype("<U8").repeat(per_video).tolist())
    true = {told: answer(told, "true") for told in SETS}
    inert = {told: answer(told, "inert") if told else true[told] for told in SETS}
    false = {level: to_false(level) for level in LEVELS}
    followed, kept = ({level: pair[at] for level, pair in false.items()} for at in (0, 1))
    sets = SETS if repeated else ()
    true_again = {told: answer(told, "true") for told in sets}
    inert_again = {told: answer(told, "inert") if told else true_again[told] for told in sets}
    return Study(units, true, inert, followed, kept, (true_again, inert_again), latent)


@dataclass(frozen=True)
class Viewer:
    """The loss of a responder in views.

    Args:
        lost: right answers that each view makes wrong.
        graded: whether wrong answers score up to .5, as texts do.
    """

    lost: Mapping[str, float] = field(default_factory=dict)
    graded: bool = False


VIEWS = ("hide_evidence", "hide_elsewhere", "only_evidence", "mirrored", "mirrored, same answer")
VIEWERS = {
    "nothing planted": Viewer(),
    "looks at the evidence": Viewer({"hide_evidence": 0.5}),
    "answers from habit": Viewer({"mirrored": 0.8}),
    "confused by any change": Viewer(dict.fromkeys(VIEWS, 0.2)),
    "mixture": Viewer({"hide_evidence": 0.3, "hide_elsewhere": 0.05, "only_evidence": 0.1, "mirrored": 0.4}),
    "mixture, graded": Viewer({"hide_evidence": 0.3, "only_evidence": 0.1, "mirrored": 0.4}, graded=True),
}


def view_scores(
    viewer: Viewer, rng: np.random.Generator, videos: int, per_video: int
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Whether each example has the view, its plain score and its score in the view, each (E,).

    The evidence of one example in five cannot be hidden. Half of the references change in a mirror.
    """
    hard, sees = spread_over(rng, videos, per_video), spread_over(rng, videos, per_video)
    count = len(hard)
    latent = _drawn(0.3, hard, rng)

    def scores(lost: float) -> np.ndarray:
        wrong = np.where(rng.random(count) < 0.1, _drawn(0.3, hard, rng), latent) | _drawn(lost, sees, rng)
        return np.where(wrong, rng.random(count) / 2 * viewer.graded, 1.0)

    plain, hidden, changes = scores(0), rng.random(count) < 0.8, rng.random(count) < 0.5
    has = dict(zip(VIEWS, (hidden, hidden, np.ones(count, bool), changes, ~changes), strict=True))
    return {view: (has[view], plain, scores(viewer.lost.get(view, 0))) for view in VIEWS}


PAIRS = {
    "mixture, twice": ("mixture", "mixture"),
    "objects .30, nothing planted": ("objects .30", "nothing planted"),
    "objects .30, states .20": ("objects .30", "states .20"),
    "mixture, uptake .6 and .3": ("mixture, uptake .6", "mixture, uptake .3"),
    "shared .15, interaction .20": ("shared .15", "interaction .20"),
    "tired, nothing planted": ("tired", "nothing planted"),
    "credulous, mixture": ("credulous", "mixture"),
}


def truth(responder: Responder, examples: int = 400_000) -> dict[str, float]:
    """The estimands, by Monte Carlo."""
    made = study(responder, np.random.default_rng(999_999), examples // 10, 10, repeated=False)
    true, inert = ({told: scores.mean() for told, scores in game.items()} for game in (made.true, made.inert))
    values = {"plain": true[SETS[0]], "remainder": 1 - true[SETS[-1]], "text": inert[SETS[-1]] - inert[SETS[0]]}
    for level in LEVELS:
        gain, control = (float(np.squeeze(shapley_value(level, LEVELS, game.__getitem__))) for game in (true, inert))
        values |= {
            f"gain {level}": gain,
            f"share {level}": gain - control,
            f"uptake {level}": made.followed[level].mean(),
        }
    return values


def metrics_of(made: Study, design: str, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    """The values of a study by one design: `paths` looks at one order of the levels an example."""
    if design == "paths":
        return path_metrics(path_scores(made, rng))
    means = UnitMeans(made.units)
    games = ({told: means.mean(scores) for told, scores in game.items()} for game in (made.true, made.inert))
    return game_metrics(LEVELS, *games)


def path_scores(made: Study, rng: np.random.Generator) -> PathScores:
    """The scores along one of the six orders for each example, dealt out in turn within a video."""
    videos = len(set(made.units))
    dealt = rng.permuted(np.tile(np.arange(6), (videos, 1)), axis=1)
    orders = _ORDERS[dealt[:, np.arange(len(made.units) // videos) % 6].ravel()]

    def along(game: Mapping[frozenset, np.ndarray]) -> np.ndarray:
        table = np.stack([game[told] for told in SETS], axis=1)
        code = np.array([SETS.index(frozenset(LEVELS[i] for i in range(3) if bits >> i & 1)) for bits in range(8)])
        bits = np.cumsum(np.pad(1 << orders, ((0, 0), (1, 0))), axis=1)
        return np.take_along_axis(table, code[bits], axis=1)

    return PathScores(made.units, LEVELS, np.argsort(orders, axis=1), along(made.true), along(made.inert))


def estimated(made: Study, design: str, rng: np.random.Generator) -> Estimates:
    """The estimates of a study by one design."""
    everything = SETS[-1]
    belief = belief_metric(made.units, made.true[SETS[0]], made.true[everything], made.inert[everything])
    uptakes = {level: uptake_metrics(made.units, made.followed[level], made.kept[level]) for level in LEVELS}
    return estimates_of(LEVELS, metrics_of(made, design, rng), belief, uptakes)


def levels_named(estimates: Estimates) -> set[str]:
    """The levels that a report of this diagnosis names as causes."""
    levels = levels_of(estimates, dict.fromkeys(LEVELS, np.nan), dict.fromkeys(LEVELS, 0), dict.fromkeys(LEVELS, ()))
    return significant(*adjusted_p_values([diagnosis_of(levels=levels)]))


def views_named(views: list[ComparedMeans]) -> set[str]:
    """The names of the views that a report says change the score clearly."""
    return significant(*adjusted_p_values([diagnosis_of(levels={}, views=views)]))


def diagnosis_of(**values: object) -> Diagnosis:
    """A diagnosis with only these values."""
    empty = {"task": "", "model": "", "examples": 0, "views": [], "own": [], "causes": {}, "video_ids": []}
    return Diagnosis.model_construct(**{**empty, **values})


def as_values(estimates: Estimates) -> dict[str, object]:
    """The estimates by the names of `truth`."""
    values = {name: getattr(estimates, name) for name in ("plain", "remainder", "text")}
    for level, each in estimates.levels.items():
        values |= {f"gain {level}": each.gain, f"share {level}": each.share, f"uptake {level}": each.uptake}
    return values


def single_cause_pairs(made: Study) -> tuple[float | None, list[tuple[frozenset, frozenset]]]:
    """The false rate of single causes, and for each labelled example a named set and the levels that are at fault."""
    planned = [PlannedExample(replace(_EXAMPLE, example_id=str(at)), LEVELS, ()) for at in range(len(made.units))]

    def scores(each: PlannedExample, condition: tuple) -> list[float]:
        at, told = int(each.example.example_id), frozenset(aid.level for aid in condition)
        variant = int(any(aid.variant == "inert" for aid in condition))
        return [float(game[told][at]) for game in ((made.true, made.inert)[variant], made.again[variant])]

    found = single_causes(planned, "full", 2, scores)
    faults = [frozenset(level for level in LEVELS if made.latent[level][at]) for at in range(len(made.units))]
    pairs = [(frozenset(s), faults[int(name)]) for name, sets in found.by_example.items() for s in sets]
    return found.false_rate, pairs


_EXAMPLE = Example("", "", "", "", (), {}, {})
