"""Select a part of the examples of a set, in the set's order, or ask questions with choices in another order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.option_order import AS_BUILT, NAME, reordered
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.data.loaded_example import LoadedExample


class ChosenExamples(ExampleSet):
    """The examples of `whole` with these ids. The `content_hash` differs from the hash of the whole set."""

    def __init__(self, whole: ExampleSet, ids: Collection[str]) -> None:
        self.whole, self.is_linked, self.place = whole, whole.is_linked, whole.place
        wanted = frozenset(ids)
        self._places = [place for place, example in enumerate(whole.examples) if example.example_id in wanted]
        super().__init__([whole.examples[place] for place in self._places], whole.split)

    def __getitem__(self, index: int) -> LoadedExample:
        return self.whole[self._places[index]]

    def _media_times(self, index: int) -> FrameTimes | None:
        return self.whole._media_times(self._places[index])

    def video_hashes(self) -> dict[str, str]:
        own = {example.video_id for example in self.examples}
        return {name: sha256 for name, sha256 in self.whole.video_hashes().items() if name in own}


class ReorderedExamples(ExampleSet):
    """The examples of `whole` with choices in another order (`core/option_order.py`) and the same media."""

    def __init__(self, whole: ExampleSet, task: Task, order: object) -> None:
        self.whole, self.is_linked, self.place = whole, whole.is_linked, whole.place
        pairs = [
            (place, changed)
            for place, example in enumerate(whole.examples)
            for changed in reordered(task, example, order)
        ]
        self._places = [place for place, _ in pairs]
        super().__init__([changed for _, changed in pairs], whole.split)

    def __getitem__(self, index: int) -> LoadedExample:
        return replace(self.whole[self._places[index]], example=self.examples[index])

    def _media_times(self, index: int) -> FrameTimes | None:
        return self.whole._media_times(self._places[index])

    def video_hashes(self) -> dict[str, str]:
        return self.whole.video_hashes()


def reorder_choices(examples: ExampleSet, task: Task, options: Mapping[str, object]) -> ExampleSet:
    """Return the examples in the order of choices that the task's options name."""
    order = options.get(NAME, AS_BUILT)
    return examples if order == AS_BUILT else ReorderedExamples(examples, task, order)
