"""Our `run` beside lmms-eval and vLLM: the same questions of the same checkpoint, on the same cores.

    python perf/peers/compare.py [--quick]        from the repository's root, where the extra `run` is installed
        --quick: 8 prompts, once: whether answers are equal, not how fast; --peer NAME: only this one

Makes the peers' environments with pip on first use (8 GB below `build/peers/`), a Qwen2.5-VL of 17 M parameters with
random weights, and prompts of a mini kitchen. Each side is a process that starts, asks and ends. It is run for a few
prompts and for many, one side after the other, and all of that several times. What the further prompts take is the
steady state; what the few take beyond their share of that is start-up. Ratios are peer over ours within one repeat.
Prints a table in Markdown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import typer
from environments import BUILD, interpreter
from questions import SCENARIOS, Scenario, export, make_data, make_model
from sides import OURS, PEERS, Answers, Cost, Job, ask

WORK = BUILD / "work"


@dataclass(frozen=True, slots=True)
class Repeat:
    """The cost of one side's two processes in one repeat, their numbers of answers, and the answers of the second."""

    few: Cost
    many: Cost
    counts: tuple[int, int]
    answers: Answers

    def compute_metrics(self) -> dict[str, float]:
        """Seconds before the first answer, seconds an answer from then on, and MiB."""
        further = self.counts[1] - self.counts[0]
        wall, cpu = (self.many.wall - self.few.wall) / further, (self.many.cpu - self.few.cpu) / further
        return {
            "start-up, CPU": self.few.cpu - self.counts[0] * cpu,
            "steady, wall": wall,
            "steady, CPU": cpu,
            "all, wall": self.many.wall,
            "all, CPU": self.many.cpu,
            "memory": self.many.peak_mib,
        }


Repeats = dict[str, list[Repeat]]
"""What was measured of one scenario, by side; those of one number belong together."""


def main(quick: bool = False, peer: str = "") -> None:
    peers = [name for name in PEERS if peer in ("", name)]
    for name in peers:
        interpreter(name)
    print("\n".join(table({scenario: measure(scenario, peers, quick) for scenario in SCENARIOS})))


def measure(scenario: Scenario, peers: Sequence[str], quick: bool) -> Repeats:
    """All repeats of one scenario, the sides in turn."""
    few, many = (4, 8) if quick else (8, 48)
    counts = -(-few // scenario.repetitions), -(-many // scenario.repetitions)
    sides, data = (OURS, *peers), make_data(WORK, many)
    job = partial(
        Job,
        data=data,
        task=scenario.task,
        prompts=export(data, scenario.task, many, WORK / f"{scenario.task}-{many}.parquet"),
        model=make_model(WORK / "model"),
        repetitions=scenario.repetitions,
        temperature=scenario.temperature,
        batch=4,
        new_tokens=32,
    )
    repeats: Repeats = {side: [] for side in sides}
    for number in range(1 if quick else 5):
        first = number % len(sides)  # or one side would always come after the same other one
        for side in (*sides[first:], *sides[:first]):
            jobs = [job(out=WORK / "out" / side, count=count) for count in counts]
            (cost_of_few, _), (cost_of_many, answers) = (ask(side, j) for j in jobs)
            in_all = counts[0] * scenario.repetitions, counts[1] * scenario.repetitions
            repeats[side].append(Repeat(cost_of_few, cost_of_many, in_all, answers))
            cpu = f"{cost_of_few.cpu:.1f} and {cost_of_many.cpu:.1f} CPU seconds"
            print(f"{scenario.name}, repeat {number + 1}, {side}: {cpu}", file=sys.stderr)
    return repeats


def equal_answers(ours: Answers, theirs: Answers) -> tuple[int, int]:
    """How many prompts have the same answers, of how many.

    Spaces at the ends are no part of an answer of ours, and vLLM leaves out a character that the last token cuts.
    """
    if ours.keys() != theirs.keys():
        raise SystemExit(f"not the same prompts were answered: {len(ours)} and {len(theirs)}")
    same = sum(list(map(_strip, ours[key])) == list(map(_strip, theirs[key])) for key in ours)
    return same, len(ours)


def _strip(text: str) -> str:
    return text.strip().rstrip("\ufffd").strip()


def table(measured: Mapping[Scenario, Repeats]) -> Iterator[str]:
    """Lines of Markdown: a row for each scenario and peer, median (least to largest) of the repeats' ratios."""
    names = list(Repeat(Cost(1, 1, 1), Cost(2, 2, 2), (1, 2), {}).compute_metrics())
    yield f"| asked | peer | {' | '.join(names)} | equal answers |"
    yield "|:--|:--|" + "--:|" * (len(names) + 1)
    for scenario, sides in measured.items():
        ours = sides[OURS]
        for peer, theirs in sides.items():
            if peer == OURS:
                continue
            pairs = [[each.compute_metrics() for each in pair] for pair in zip(ours, theirs, strict=True)]
            ratios = [[their[name] / our[name] for our, their in pairs] for name in names]
            same, count = equal_answers(ours[0].answers, theirs[0].answers)
            equal = f"{same} of {count}" if scenario.repetitions == 1 else "drawn otherwise"
            yield f"| {scenario.name} | {peer} | {' | '.join(map(_spread, ratios))} | {equal} |"


def _spread(ratios: Sequence[float]) -> str:
    middle = f"{median(ratios):.2f}"
    return middle if len(ratios) == 1 else f"{middle} ({min(ratios):.2f} to {max(ratios):.2f})"


if __name__ == "__main__":
    typer.run(main)
