"""A search for answers that look at no image and still earn a reward (`barista_bench.rewards.task_reward`).

    python perf/cheating_answers.py WORK [--examples 240] [--task BENCHMARK/TASK]

Makes two kitchens and questions of the sibling benchmarks in WORK: 64 short videos, and 48 longer ones for HanDyVQA,
whose clips of five seconds are few in short videos. Prints one row a task: the mean reward over the set of `oracle`,
`chance` and `prior`, and of the best cheat. A question of HanDyVQA with options is asked once for each rotation of
them, so that no letter is right by luck. A cheat sees the prompt, the references of other videos, and nothing of its
own reference. The space that is searched, for every task:

* repeat: the prior, a random answer, or their JSON entries, 2, 5 or 20 times;
* everything: all labels of the choices, in one line or one each; each letter always; all choices' texts; every relation
  of all objects; the 1 to 200 most frequent entries of other videos' references (JSON), or their texts joined;
* boxes: n x n boxes on a grid, n from 1 to 24, each half a cell, a cell or twice a cell, or the grids of several n
  together, in the form of another reference;
* echo: the prompt, each of its lines, the question's columns as JSON;
* another: references of examples of other videos: any, and all of them; 64 of them, each as the answer to everything;
* joined: each of these texts, except the grids and the 64, in front of the prior's answer, and behind it; for EgoCoT
  these are rationales.

`nearest` is no cheat but knowledge of the data: the reference of the question of another video that shares the most
words. A model can learn as much without its images; `text_only:` measures that.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import typer

from barista_bench.benchmarks import BENCHMARKS, task_class
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.generate.generator import generate
from barista_bench.mini.kitchen import write_kitchen
from barista_bench.rewards import TaskReward, task_reward
from barista_bench.training.reward_rows import RowReference, read_reference, why_untrainable, write_reference
from barista_bench.training.task_rewards import floors_of

GRID = BoxFormat()
KITCHENS: Mapping[str, Mapping[str, Any]] = {
    "kitchen": {"videos": 64, "seconds": (8.0, 12.0), "seed": 5},
    "long": {"videos": 48, "seconds": (20.0, 26.0), "seed": 6, "fps": 15},
}
GENERATED = {"handyvqa": "long", "tog_bench": "kitchen", "egocot": "kitchen"}
"""The kitchen of each sibling benchmark."""
MARGIN = 0.02
"""What a cheat may earn above the prior."""
TURNED = " turned "
"""Stands between the id of a question and the number of its rotation."""
SAMPLING: Mapping[str, Mapping[str, object]] = {
    "grounding": {"min_area": 20.0, "fraction": 0.2},
    "hand_object": {"fraction": 0.2},
    "referring": {"frame_step": 10},
    "relations": {"frame_step": 20},
    "temporal_vqa": {"spacing": 8},
}
"""Sampling that suits short videos."""
Answer = Callable[[int], str]
"""Returns the answer to the example of an index."""


class Cheats:
    """The answers of the search, for one task."""

    def __init__(self, task: Task, examples: Sequence[Example]) -> None:
        self.task, self.examples = task, examples
        self.references = [task.reference_answer(example, GRID) for example in examples]
        self.others = [[i for i, other in enumerate(examples) if other.video_id != e.video_id] for e in examples]
        ids = list(map(_question_id, examples))
        self.first = list(map(ids.index, ids))
        """The first rotation of each question: blind answers must not differ between rotations."""
        self._words = [frozenset("\n".join(self._prompt_lines(i)).split()) for i in range(len(examples))]
        self._priors = [
            task.prior_answer(example, [examples[j] for j in others], GRID)
            for example, others in zip(examples, self.others, strict=True)
        ]
        self._frequent: dict[str, list[Any]] = {}

    def prior(self, index: int) -> str:
        return self._priors[index]

    def chance(self, index: int) -> str:
        example = self.examples[index]
        return self.task.random_answer(example, random.Random(_question_id(example)), GRID)

    def all(self) -> Iterator[tuple[str, Answer]]:
        """Yield each cheat by its name."""
        plain = list(self._plain())
        yield from plain
        yield from self._grid_cheats()
        for place in range(64):
            yield f"reference {place} of 64 for all", lambda i, n=place: self._constant(i, n)
        for name, answer in plain:
            yield f"{name}, then prior", lambda i, answer=answer: f"{answer(i)}\n{self.prior(i)}"
            yield f"prior, then {name}", lambda i, answer=answer: f"{self.prior(i)}\n{answer(i)}"

    def _plain(self) -> Iterator[tuple[str, Answer]]:
        for text in ("", "[]", "{}", "I cannot see it."):
            yield f"constant {text!r}", lambda _, text=text: text
        for count in (2, 5, 20):
            for name, answer in (("prior", self.prior), ("chance", self.chance)):
                yield f"{name} x {count}", lambda i, n=count, a=answer: "\n".join([a(i)] * n)
                yield f"entries of {name} x {count}", lambda i, n=count, a=answer: _repeated(a(i), n)
        yield from self._everything()
        yield "echo of the prompt", lambda i: "\n".join(self._prompt_lines(i))
        for line in range(20):
            yield f"line {line} of the prompt", lambda i, n=line: "".join(self._prompt_lines(i)[n : n + 1])
        yield "echo of the columns", lambda i: json.dumps(self.examples[i].inputs)
        for step in range(4):
            yield f"reference of another, {step}", lambda i, n=step: self._other(i, n)

    def nearest(self) -> Iterator[tuple[str, Answer]]:
        """Yield references of the questions of other videos that share the most words: knowledge, not a cheat."""
        for place in range(4):
            yield f"nearest question {place}", lambda i, n=place: self._similar(i, n)

    def _grid_cheats(self) -> Iterator[tuple[str, Answer]]:
        for size, scale in product((*range(1, 9), 12, 16, 24), (0.5, 1, 2)):
            yield f"grid {size} x {size}, cells x {scale}", lambda i, n=size, s=scale: self._grids(i, (n,), s)
        for largest, scale in product((2, 3, 4, 6, 8, 12), (1, 2)):
            sizes = tuple(range(1, largest + 1))
            yield f"grids 1 to {largest}, cells x {scale}", lambda i, n=sizes, s=scale: self._grids(i, n, s)

    def _everything(self) -> Iterator[tuple[str, Answer]]:
        texts = [self.task.choices(example) for example in self.examples]
        if any(texts):
            yield "all letters, one line", lambda i: "ANSWER: " + ", ".join(texts[i])
            yield "all letters, a line each", lambda i: "\n".join(f"ANSWER: {label}" for label in texts[i])
            yield "all choices", lambda i: "\n".join(f"{label}. {text}" for label, text in texts[i].items())
            for n in range(max(map(len, texts))):
                yield f"choice {n}", lambda i, n=n: "ANSWER: " + "".join(list(texts[i])[n : n + 1])
                yield f"text of choice {n}", lambda i, n=n: "".join(list(texts[i].values())[n : n + 1])
        if self.task.name == "relations":
            yield "every relation", lambda i: _every_relation(self.examples[i])
        for count in (1, 2, 3, 5, 10, 20, 50, 100, 200):
            yield f"{count} most frequent entries", lambda i, n=count: self._most_frequent(i, n)
        yield "all other references", lambda i: "\n".join(dict.fromkeys(self.references[j] for j in self.others[i]))

    def _prompt_lines(self, index: int) -> list[str]:
        messages = self.task.prompt(self.examples[index], GRID).messages()
        parts = [part.get("text") or "" for turn in messages for part in turn["content"]]
        return [line for line in "\n".join(parts).splitlines() if line.strip()]

    def _other(self, index: int, step: int) -> str:
        others = self.others[index]
        return self.references[others[(self.first[index] * 7 + step) % len(others)]]

    def _constant(self, index: int, place: int) -> str:
        """Return the same reference for all examples, except those of its video."""
        others = self.others[index]
        return self.references[others[place * len(others) // 64]]

    def _similar(self, index: int, place: int) -> str:
        own = self._words[index]
        others = sorted(self.others[index], key=lambda j: (-len(own & self._words[j]) / len(own | self._words[j]), j))
        return self.references[others[min(place, len(others) - 1)]]

    def _most_frequent(self, index: int, count: int) -> str:
        """Return the most frequent entries of the references of other videos, in the form of such a reference."""
        video = self.examples[index].video_id
        if video not in self._frequent:
            others = [self.references[j] for j in self.others[index]]
            counts = Counter(json.dumps(entry) for text in others for entry in _entries(_json(text)))
            self._frequent[video] = [json.loads(text) for text, _ in counts.most_common(200)]
        return _with_entries(self.references[self.others[index][0]], self._frequent[video][:count])

    def _grids(self, index: int, sizes: Sequence[int], scale: float) -> str:
        form = self.references[self.others[index][0]]
        entries = _entries(_json(form))
        boxes = []
        for size in sizes:
            cell, half = 1000 / size, 1000 / size * scale / 2
            centres = [((x + 0.5) * cell, (y + 0.5) * cell) for x, y in product(range(size), repeat=2)]
            corners = [(x - half, y - half, x + half, y + half) for x, y in centres]
            boxes += [[round(min(1000, max(0, value))) for value in corner] for corner in corners]
        return _with_entries(form, [_with_box(entries[0], box) for box in boxes]) if entries else json.dumps(boxes)


def _json(text: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(text)
    except ValueError:
        return None


def _entries(content: Any) -> list[Any]:  # noqa: ANN401
    """Return the entries of an answer: those of the list, or of the longest list of an object."""
    if isinstance(content, dict):
        content = max((value for value in content.values() if isinstance(value, list)), key=len, default=[])
    return content if isinstance(content, list) else []


def _with_entries(form: str, entries: list[Any]) -> str:
    content = _json(form)
    if isinstance(content, dict):
        own = _entries(content)
        return json.dumps({name: entries if value is own else value for name, value in content.items()})
    return json.dumps(entries)


def _with_box(entry: Any, box: list[int]) -> Any:  # noqa: ANN401
    if isinstance(entry, list):
        is_box = len(entry) == 4 and all(isinstance(value, int | float) for value in entry)
        return box if is_box else [_with_box(value, box) for value in entry]
    return {name: _with_box(value, box) for name, value in entry.items()} if isinstance(entry, dict) else entry


def _repeated(text: str, count: int) -> str:
    return _with_entries(text, _entries(_json(text)) * count)


def _every_relation(example: Example) -> str:
    inputs: Any = example.inputs
    marks = [item["mark"] for item in inputs["objects"]]
    relations = [
        {"source_id": source, "target_id": target, "relation_type": entry["relation_type"], "value": value}
        for source, target in product(marks, repeat=2)
        if source != target
        for entry in inputs["vocabulary"]
        for value in entry["values"]
    ]
    return json.dumps(relations)


def _rotations(example: Example) -> Iterator[Example]:
    """Yield a question of HanDyVQA once for each rotation of its options, and any other example as it is."""
    inputs: Any = example.inputs
    target: Any = example.target
    options = inputs.get("options", ()) if "correct" in target else ()
    yield example
    for shift in range(1, len(options)):
        yield replace(
            example,
            example_id=f"{example.example_id}{TURNED}{shift}",
            inputs={**inputs, "options": [*options[shift:], *options[:shift]]},
            target={**target, "correct": sorted((right - shift) % len(options) for right in target["correct"])},
        )


def _question_id(example: Example) -> str:
    return example.example_id.partition(TURNED)[0]


def mean_reward(reward: TaskReward, answer: Answer, references: Mapping[int, RowReference]) -> float:
    parts = reward.parts([answer(index) for index in references], list(references.values()))
    return sum(reward.total(each) for each in parts if each) / len(parts)


def search(work: Path, benchmark: str, name: str, limit: int) -> tuple[str, bool]:
    """Return the row of a task, and whether the best cheat stays below the prior plus the margin.

    The cheat is chosen on every second video, and all means of the row are over the other videos: the best of hundreds
    of guesses is lucky where it was chosen.
    """
    data, kind = work / "data" / benchmark / name, task_class(benchmark, name)
    if not data.exists():
        made = work / f"{GENERATED.get(benchmark)}_siblings" / benchmark
        source = made if benchmark in GENERATED else work / "kitchen"
        settings = {"sampling": {"limit": limit, **SAMPLING.get(name, {})}, "cache": False, "progress": False}
        build(source, data, benchmark=benchmark, configs=(name,), **settings)
    options = {"matcher": "exact"} if "matcher" in kind.options else {}
    task, reward = kind(options=options), task_reward(name, benchmark=benchmark, options=options)
    known = [e for e in open_examples(data, benchmark, name, split="all").examples if task.has_answer(e)]
    examples = [rotated for example in known for rotated in _rotations(example)]
    rows = zip(examples, floors_of(task, examples), strict=True)
    references = [read_reference(write_reference(example, task, GRID, floor)) for example, floor in rows]
    videos = sorted({example.video_id for example in examples})
    searched, measured = (
        {i: references[i] for i, example in enumerate(examples) if example.video_id in videos[first::2]}
        for first in (0, 1)
    )
    cheats = Cheats(task, examples)
    found, near = (
        {cheat: mean_reward(reward, answer, searched) for cheat, answer in space}
        for space in (cheats.all(), cheats.nearest())
    )
    cheat, nearest = (max(means, key=lambda name: means[name]) for means in (found, near))
    answers = {
        "oracle": lambda i: cheats.references[i],
        "chance": cheats.chance,
        "prior": cheats.prior,
        "nearest": dict(cheats.nearest())[nearest],
        "best": dict(cheats.all())[cheat],
    }
    means = {each: mean_reward(reward, answer, measured) for each, answer in answers.items()}
    columns = [f"{benchmark}/{name}", len(measured), len(found), *(f"{mean:.3f}" for mean in means.values()), cheat]
    return f"| {' | '.join(map(str, columns))} |", means["best"] < means["prior"] + MARGIN


def main(work: Path, examples: int = 240, task: str = "") -> None:
    for name, settings in KITCHENS.items():
        kitchen, siblings = work / name, work / f"{name}_siblings"
        if not kitchen.exists():
            write_kitchen(kitchen, width=192, height=108, num_proc=1, **settings)
        if not siblings.exists():
            families = [family for family, source in GENERATED.items() if source == name]
            generate(kitchen, siblings, families, per_subtask=120)
    print("| task | examples | cheats | oracle | chance | prior | nearest | best cheat | which |")
    print("|---|---|---|---|---|---|---|---|---|")
    failed = []
    for benchmark in ("barista", "extended", *GENERATED):
        for kind in BENCHMARKS[benchmark].tasks:
            name = f"{benchmark}/{kind.name}"
            if why_untrainable(kind()) or task not in ("", name):
                continue
            row, is_safe = search(work, benchmark, kind.name, examples)
            print(row, flush=True)
            failed += [] if is_safe else [name]
    print(f"above prior + {MARGIN}: {', '.join(failed) or 'none'}")


if __name__ == "__main__":
    typer.run(main)
