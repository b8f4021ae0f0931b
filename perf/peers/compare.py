"""Our `run` beside lmms-eval and vLLM: the same questions of the same checkpoint, on the same cores.

    python perf/peers/compare.py [--quick]        from the repository's root, where the extra `run` is installed

Makes the peers' environments with pip on first use (8 GB below `build/peers/`), a Qwen2.5-VL of 17 M parameters with
random weights, and prompts of a mini kitchen. Each side is a process that starts, asks and ends. It is run for a few
prompts and for many, one side after the other, and all of that several times. What the further prompts take is the
steady state; what the few take beyond their share of that is start-up. Ratios are peer over ours within one repeat.
Prints a table in Markdown, and writes all that was measured as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

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
            "start-up, wall": self.few.wall - self.counts[0] * wall,
            "start-up, CPU": self.few.cpu - self.counts[0] * cpu,
            "steady, wall": wall,
            "steady, CPU": cpu,
            "all, wall": self.many.wall,
            "all, CPU": self.many.cpu,
            "memory": self.many.peak_mib,
        }


Repeats = dict[str, list[Repeat]]
"""What was measured of one scenario, by side; those of one number belong together."""


def main() -> None:
    """Measure, write the JSON and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="8 prompts, once: whether answers are equal, not how fast")
    parser.add_argument("--repeats", type=int, help="default: 5, with --quick 1")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--cores", default="0,1", help="to which every side is bound, as `taskset -c` takes them")
    parser.add_argument("--threads", type=int, default=1, help="OMP_NUM_THREADS of every side")
    parser.add_argument("--out", type=Path, default=BUILD / "results.json")
    options = parser.parse_args()
    options.repeats = options.repeats or (1 if options.quick else 5)
    for peer in options.peers:
        interpreter(peer)
    measured = {scenario: measure(scenario, options) for scenario in SCENARIOS}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    written = {scenario.name: _as_json(sides) for scenario, sides in measured.items()}
    options.out.write_text(json.dumps(written, indent=1))
    print("\n".join(table(measured)))


def measure(scenario: Scenario, options: argparse.Namespace) -> Repeats:
    """All repeats of one scenario, the sides in turn."""
    few, many = (4, 8) if options.quick else (8, 48)
    counts = -(-few // scenario.repetitions), -(-many // scenario.repetitions)
    sides, data = (OURS, *options.peers), make_data(WORK, many)
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
    for number in range(options.repeats):
        first = number % len(sides)  # or one side would always come after the same other one
        for side in (*sides[first:], *sides[:first]):
            jobs = [job(out=WORK / "out" / side, count=count) for count in counts]
            (cost_of_few, _), (cost_of_many, answers) = (ask(side, j, options.cores, options.threads) for j in jobs)
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


def _as_json(sides: Repeats) -> Mapping[str, object]:
    return {
        side: [
            {"few": asdict(each.few), "many": asdict(each.many), "answers": each.counts, **each.compute_metrics()}
            for each in repeats
        ]
        for side, repeats in sides.items()
    }


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
    main()
