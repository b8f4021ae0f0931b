"""Write questions that ask where a model sees the objects of an aid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from barista_bench.aids.facts import Fact
from barista_bench.aids.levels import LevelName
from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks import BENCHMARKS
from barista_bench.benchmarks.kinds.boxes import ObjectBoxTask
from barista_bench.core.example import Example


def upstream_task() -> type[ObjectBoxTask]:
    """Return the first task that can ask where given objects are."""
    tasks = (task for benchmark in BENCHMARKS.values() for task in benchmark.tasks)
    return next(task for task in tasks if issubclass(task, ObjectBoxTask))


def upstream_questions(book: AidBook, examples: Iterable[Example], level: LevelName) -> list[Example]:
    """Return one question per frame and name, for all objects in the aids of these examples."""
    groups: dict[tuple[str, int, str], dict[str, Fact]] = defaultdict(dict)
    owners: dict[tuple[str, int, str], Example] = {}
    for example in examples:
        for fact in book.needed(example, level):
            key = (example.video_id, fact.span[0], fact.names[0])
            groups[key][fact.about[0]] = fact
            owners.setdefault(key, example)
    task = upstream_task()
    return [
        task.object_question(
            name,
            {object_id: list(fact.box) for object_id, fact in facts.items() if fact.box is not None},
            frame,
            book.size(owners[video_id, frame, name]),
            owners[video_id, frame, name],
        )
        for (video_id, frame, name), facts in sorted(groups.items())
    ]
