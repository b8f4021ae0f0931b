"""The released `task_data` of each BARISTA task as our `inputs` and `target` (upstream.md 1.3 and 1.5 to 1.10).

Documented are: grounding's fields; the interactions of hand_object; referring's `question`; `{question, answer,
category}` of visual QA; the keys of a relation. For the others the names that a reader would expect are accepted.
Boxes are frozen as xyxy on the grid of 0..1000, so that there are no pixel boxes: the paper's protocol, which scores
against those, refuses such examples. What only annotations could tell (activities, device, ...) stays empty, so that a
file has one identity wherever it is read; `evidence` is empty for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.referring import Referring
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.benchmarks.barista.released_objects import grounding, hand_object, referring
from barista_bench.benchmarks.barista.released_semantics import activity, relations, temporal_vqa
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.benchmarks.released import ReleasedExample, ReleaseRoot
from barista_bench.task import Example, Task

_READERS: dict[type[Task], Callable[[ReleasedExample, ReleaseRoot], Example]] = {
    Grounding: grounding,
    HandObject: hand_object,
    Referring: referring,
    Activity: activity,
    Relations: relations,
    TemporalVQA: temporal_vqa,
}


def import_example(task: type[Task], line: ReleasedExample, root: ReleaseRoot) -> Example:
    """One released line as an example of ours.

    Raises:
        DataError: `task_data` lacks something that the task needs, and the release below `root` does not have it
            either; names the field, the keys found and the keys wanted.
    """
    return _READERS[task](line, root)
