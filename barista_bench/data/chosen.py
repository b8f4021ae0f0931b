"""Select a part of the examples of a set, in the set's order, or ask questions with choices in another order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from barista_bench.core.example import Example
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.option_order import AS_BUILT, NAME, reordered
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.data.loaded_example import LoadedExample


class ChosenExamples(ExampleSet):
    """Examples with the media of another set. Their `content_hash` differs from the hash of that set.

    Args:
        whole: the set with the media.
        chosen: pairs of the position of an example in `whole`, and the example to ask instead.
    """

    def __init__(self, whole: ExampleSet, chosen: Iterable[tuple[int, Example]]) -> None:
        self.whole, self.is_linked, self.place = whole, whole.is_linked, whole.place
        pairs = list(chosen)
        self._positions = [position for position, _ in pairs]
        super().__init__([example for _, example in pairs], whole.split)

    def __getitem__(self, index: int) -> LoadedExample:
        return replace(self.whole[self._positions[index]], example=self.examples[index])

    def media_times(self, index: int) -> FrameTimes | None:
        return self.whole.media_times(self._positions[index])

    def video_hashes(self) -> dict[str, str]:
        own = {example.video_id for example in self.examples}
        return {name: sha256 for name, sha256 in self.whole.video_hashes().items() if name in own}


def with_ids(whole: ExampleSet, ids: Collection[str]) -> ExampleSet:
    """Return the examples of `whole` with these ids."""
    wanted = frozenset(ids)
    return ChosenExamples(whole, [pair for pair in enumerate(whole.examples) if pair[1].example_id in wanted])


def reorder_choices(whole: ExampleSet, task: Task, options: Mapping[str, object]) -> ExampleSet:
    """Return the examples with choices in the order that the task's options name (`core/option_order.py`)."""
    if (order := options.get(NAME, AS_BUILT)) == AS_BUILT:
        return whole
    changed = (
        (position, example)
        for position, built in enumerate(whole.examples)
        for example in reordered(task, built, order)
    )
    return ChosenExamples(whole, changed)
