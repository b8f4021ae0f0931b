"""How many answers a decision needs, and how often it is wrong: simulations of `run --until decided`.

    python perf/fewer_answers.py [RUNS ...] [--golden FOLDER] [--rounds 100]
    python perf/fewer_answers.py --reuse LINKED_DATASET    # the frames that a run decodes in each order

Populations: made right and wrong answers; pairs of complete runs in the folders RUNS, resampled by example; recorded
answers of the released code (FOLDER/answers), likewise. The true difference of each population is known. Answers arrive
in order, late and shuffled, from four processes of different speed, or fail (5%). Prints a Markdown table with three
numbers a cell: the fractions of answers that were counted and that were asked, and the fraction of wrong decisions.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from barista_bench.api import load_results
from barista_bench.core.statistics import MicroF1
from barista_bench.data.shared_frames import FrameStore
from barista_bench.runs.ask.runner import run
from barista_bench.runs.decide.contest import Contest, Goal, Rival
from barista_bench.runs.decide.opening import answer_bounds, score_terms
from barista_bench.runs.decide.order import BLOCK, AskingOrder
from barista_bench.runs.decide.stopping import Stopping, WatchedContest
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.runs.score.stopping import StoppedRun

ALPHA, FAILING, SPEEDS = 0.05, 0.05, (1.0, 0.9, 0.8, 0.6)
SIZES, RESAMPLED = (300, 1000), 600
"""Examples of a made population, and of one that is resampled."""
Floats = NDArray[np.float64]


class Population(NamedTuple):
    """(N, 2) terms of two models on the same examples, and of the worst and best answers of the first."""

    own: Floats
    other: Floats
    least: Floats
    most: Floats

    def resampled(self, rng: np.random.Generator) -> Population:
        index = rng.integers(0, len(self.own), RESAMPLED)
        return Population(*(each[index] for each in self))

    @property
    def scores(self) -> tuple[float, float]:
        own, other = (float(terms[:, 0].sum() / terms[:, 1].sum()) for terms in self[:2])
        return own, other


Row = tuple[str, Callable[[np.random.Generator], Population]]
"""The name of a population, and how to draw it."""


class Arriving(WatchedContest):
    """Answers that arrive in steps: (N,) the step at which each does, infinite for those that fail."""

    def __init__(self, population: Population, seed: int, arrives: Floats, fails: NDArray[np.bool_]) -> None:
        own, other, least, most = population
        target = population.scores[1]
        rival = Rival("other", target, other[:, 0] - target * other[:, 1])
        order = AskingOrder.of(str(seed), [str(index) for index in range(len(own))])
        super().__init__(Contest(Goal("decided"), order, least, most, metric="score", rival=rival), [""] * len(own))
        self.step = 0.0
        # In the order of asking.
        self._arrives, self._fails = np.empty_like(arrives), fails
        self._arrives[[unit[0] for unit in order.units]] = arrives
        self._own = own

    def read(self) -> None:
        for index in np.flatnonzero((self._arrives <= self.step) & ~self.is_asked).tolist():
            self.is_asked[index] = True
            if not self._fails[index]:
                self.contest.add(index, *self._own[index].tolist())

    def write(self, decision: StoppedRun) -> str:
        return ""


ARRIVALS: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "in order": lambda steps, rng: steps,
    # Up to three blocks late, so that later answers overtake earlier ones.
    "late, shuffled": lambda steps, rng: steps + rng.integers(0, 4, len(steps)),
    # Each example belongs to one of four processes, which ask their share of each block at different speeds.
    "four processes": lambda steps, rng: steps / rng.choice(SPEEDS, len(steps)),
    "5% fail": lambda steps, rng: steps,
}
"""The step at which each answer arrives, from its step in the order of asking."""


def simulate(population: Population, arrival: str, seed: int) -> tuple[float, float, bool]:
    """Return the fractions of examples that were counted and asked for a decision, and whether it is wrong."""
    rng, count = np.random.default_rng(seed), len(population.own)
    fails = rng.random(count) < FAILING if "fail" in arrival else np.zeros(count, dtype=bool)
    watched = Arriving(population, seed, ARRIVALS[arrival](np.arange(count) // BLOCK + 1.0, rng), fails)
    stopping = Stopping([watched], ALPHA)
    while not stopping.decided and not watched.is_asked.all():
        watched.step += 1
        stopping.look()
    if not stopping.decided:
        return 1.0, 1.0, False
    units = stopping.decided[0]
    up, down = watched.contest.log_wealths(watched.contest.target, units)
    own, other = population.scores
    return units / count, float(watched.is_asked.mean()), np.sign(up[-1] - down[-1]) != np.sign(round(own - other, 12))


def made(count: int, difference: float, correlation: float, rng: np.random.Generator) -> Population:
    """Two models that are right on exact fractions of the examples; `correlation` of their right answers."""
    shared = rng.normal(size=count)
    terms = []
    for rate in (0.6 + difference, 0.6):
        latent = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.normal(size=count)
        right = np.zeros(count)
        right[np.argsort(latent)[: round(rate * count)]] = 1
        terms.append(np.column_stack([right, np.ones(count)]))
    return Population(*terms, np.column_stack([np.zeros(count), np.ones(count)]), np.ones((count, 2)))


def tables(rows: Iterator[Row], rounds: int) -> None:
    for name, make in rows:
        cells = []
        for arrival in ARRIVALS:
            results, gaps = [], []
            for seed in range(rounds):
                population = make(np.random.default_rng(seed))
                results.append(simulate(population, arrival, seed))
                gaps.append(population.scores[0] - population.scores[1])
            counted, asked, wrong = np.mean(results, axis=0)
            cells.append(f"{counted:.2f} ({asked:.2f}), {wrong:.3f}")
        print(f"| {name} | {np.mean(gaps):+.3f} | {' | '.join(cells)} |", flush=True)


def made_rows() -> Iterator[Row]:
    for count, difference, correlation in product(SIZES, (0.0, 0.01, 0.05, 0.1, 0.2), (0.3, 0.8)):
        yield f"made, {count} examples, correlation {correlation}", partial(made, count, difference, correlation)


def run_terms(scored: ScoredRun) -> Floats:
    terms = np.zeros((len(scored.examples), 2))
    positions = {example.example_id: index for index, example in enumerate(scored.examples.examples)}
    group = next(iter(scored.counted.values()))
    index = [positions[sample.example.example_id] for sample in group.samples]
    terms[index] = score_terms(scored.task, group.resampled.statistics)
    return terms


def run_rows(folders: list[Path]) -> Iterator[Row]:
    by_task: dict[str, list[ScoredRun]] = defaultdict(list)
    for scored in load_results(folders).runs:
        if scored.task.decided_by is not None:
            by_task[scored.task.name].append(scored)
    for task, runs in by_task.items():
        for first, second in combinations(runs, 2):
            own, other = run_terms(first), run_terms(second)
            tokens = int(str(first.results.generation["max_new_tokens"]))
            least, most, _ = answer_bounds(first.task, first.examples, tokens)
            least[:, 1] = np.maximum(least[:, 1], own[:, 1].max())
            names = " and ".join(each.folder.parent.name for each in (first, second))
            metric = "micro F1" if isinstance(first.task.decided_by, MicroF1) else first.task.primary
            yield f"{task}, {metric}: {names}", Population(own, other, least, most).resampled


def golden_rows(folder: Path) -> Iterator[Row]:
    """Recorded answers: sets of one kind answer the same examples with different noise."""
    for file, terms_of in (("activity_mcq", _choice_terms), ("relation_extraction", _relation_terms)):
        sets: dict[str, dict[str, tuple[float, float, float]]] = defaultdict(dict)
        for line in (folder / "answers" / f"{file}.jsonl").read_text().splitlines():
            record = json.loads(line)
            sets[record["set"]][record["example_id"]] = terms_of(record.get("figures") or {})
        first_set = next(iter(sets.values()))
        alike = {name: answers for name, answers in sets.items() if answers.keys() == first_set.keys()}
        for one, two in list(combinations(alike, 2))[:: max(1, len(alike) * (len(alike) - 1) // 8)]:
            # An answer that the released code refused has no figures: it lists nothing.
            truths = {key: max(answers[key][2] for answers in alike.values()) for key in first_set}
            own, other = (
                np.array([(part, whole or truths[key]) for key, (part, whole, _) in sorted(alike[name].items())])
                for name in (one, two)
            )
            true = np.array([truths[key] for key in sorted(first_set)])
            if file == "activity_mcq":
                least, most = np.column_stack([0 * true, true]), np.column_stack([true, true])
            else:
                least, most = np.column_stack([0 * true, true + 16]), np.column_stack([2 * true, 2 * true])
                least[:, 1] = np.maximum(least[:, 1], own[:, 1].max())
            yield f"golden {file}: {one} and {two}", Population(own, other, least, most).resampled


def _choice_terms(metrics: dict[str, float]) -> tuple[float, float, float]:
    return float(metrics.get("is_correct") or 0), 1.0, 1.0


def _relation_terms(metrics: dict[str, float]) -> tuple[float, float, float]:
    hits, listed, true = (float(metrics.get(name) or 0) for name in ("tp", "pred_count", "gt_count"))
    return 2 * hits, listed + true, true


def measure_reuse(data: Path) -> None:
    """Print how many frames a complete run decodes in the order of videos, and in blocks by content hash."""
    decode = FrameStore._decode
    counts = Counter[str]()
    for order, settings in (("by video", {}), ("in blocks", {"until": "within=0.0001"})):

        def counted(self: FrameStore, lazy: object, stamp: object, keys: list[object], name: str = order) -> object:
            counts[name] += len(keys)
            return decode(self, lazy, stamp, keys)  # type: ignore[arg-type]

        FrameStore._decode = counted  # type: ignore[assignment, method-assign]
        with tempfile.TemporaryDirectory() as out:
            tasks = ("activity", "referring")
            session = run(data, out, task=tasks, model="chance", repetitions=1, **settings)
        print(f"{order}: {session.asked} answers, {counts[order]} frames, decode {session.seconds['decode']:.1f} s")
    FrameStore._decode = decode  # type: ignore[method-assign]


def main(
    runs: Annotated[list[Path] | None, typer.Argument()] = None,
    golden: Path | None = None,
    rounds: int = 100,
    reuse: Path | None = None,
) -> None:
    if reuse:
        measure_reuse(reuse)
        return
    print(f"| population | difference | {' | '.join(ARRIVALS)} |\n|---|--:|{'--:|' * len(ARRIVALS)}", flush=True)
    tables(made_rows(), rounds)
    if runs:
        tables(run_rows(runs), rounds)
    if golden:
        tables(golden_rows(golden), rounds)


if __name__ == "__main__":
    typer.run(main)
