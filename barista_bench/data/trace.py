"""Find all tasks' examples about one frame, and join the examples by their objects.

Every example lists its objects in `evidence.object_ids`. So you can follow a failure in one task to other tasks'
questions about the same objects. A clip or segment covers the span of its frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.display import ExplanationRow
from barista_bench.core.example import Example, Prediction, evidence_objects
from barista_bench.files.text_out import make_printable, one_line

NEAR_FRAMES = 30
"""Number of frames on either side that are searched for related examples: usually about a second."""
_SHORT_ID = 8
_REFERENCE_LINES = 12
_PIXELS = BoxFormat("xyxy", None)


@dataclass(frozen=True, slots=True)
class TracedExample:
    """An example, the distance of its span from the frame in frames (0 if the span covers it), and the shared
    objects.
    """

    example: Example
    distance: int
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """The questions about one frame. `here` has the examples that show the frame, `near` the related examples around
    it.
    """

    video_id: str
    frame: int
    within: int
    here: tuple[TracedExample, ...]
    near: tuple[TracedExample, ...]

    def objects(self) -> dict[str, tuple[str, ...]]:
        """Return the tasks about each object, by object id. Objects with most tasks come first."""
        tasks: dict[str, dict[str, None]] = {}
        for traced in (*self.here, *self.near):
            for object_id in evidence_objects(traced.example):
                tasks.setdefault(object_id, {})[traced.example.task] = None
        return {k: tuple(v) for k, v in sorted(tasks.items(), key=lambda entry: (-len(entry[1]), entry[0]))}


def trace(
    examples_by_task: Mapping[str, Iterable[Example]], video_id: str, frame: int, *, within: int = NEAR_FRAMES
) -> Trace:
    """Return examples that show the frame, and nearby examples that share an object with these.

    Nearby means at most `within` frames away. If no example shows the frame, all nearby examples are returned. Tasks
    are in the given order. Examples are sorted by distance, then by id.
    """
    by_task = [[e for e in examples if e.video_id == video_id] for examples in examples_by_task.values()]
    showing = [[e for e in examples if any(f.frame_index == frame for f in e.frames)] for examples in by_task]
    object_ids = {object_id for examples in showing for e in examples for object_id in evidence_objects(e)}
    here, near = list[TracedExample](), list[TracedExample]()
    for task_here, examples in zip(showing, by_task, strict=True):
        here += sorted((_trace_example(e, 0, object_ids) for e in task_here), key=_sort_key)
        others = [_trace_example(e, _frame_distance(e, frame), object_ids) for e in examples if e not in task_here]
        near += sorted((t for t in others if t.distance <= within and (t.shared or not any(showing))), key=_sort_key)
    return Trace(video_id, frame, within, tuple(here), tuple(near))


def _trace_example(example: Example, distance: int, object_ids: set[str]) -> TracedExample:
    shared = (object_id for object_id in dict.fromkeys(evidence_objects(example)) if object_id in object_ids)
    return TracedExample(example, distance, tuple(shared))


def _frame_distance(example: Example, frame: int) -> int:
    frames = [reference.frame_index for reference in example.frames]
    return max(min(frames) - frame, frame - max(frames), 0)


def _sort_key(traced: TracedExample) -> tuple[int, int, str]:
    return traced.distance, traced.example.frames[0].frame_index, traced.example.example_id


def as_text(trace: Trace) -> str:
    """Format the trace for people: first examples with references in words, then objects with tasks."""
    where = f"{make_printable(trace.video_id)}, frame {trace.frame}: "
    if not trace.here and not trace.near:
        return f"{where}no example shows it, and none lies within {trace.within} frames.\n"
    tasks = {traced.example.task for traced in trace.here}
    lines = [f"{where}{_count_text(len(trace.here), 'example')} of {_count_text(len(tasks), 'task')}"]
    for traced in trace.here:
        lines += ["", *_example_lines(traced)]
    if trace.near:
        why = "that share an object with these" if trace.here else "as none shows this frame"
        lines += ["", f"Within {trace.within} frames, {why}: {_count_text(len(trace.near), 'example')}"]
        for traced in trace.near:
            lines += ["", *_example_lines(traced)]
    if objects := trace.objects():
        categories = _categories(trace)
        labels = {name: f"{name[:_SHORT_ID]} {categories.get(name, '')}".rstrip() for name in objects}
        width = max(map(len, labels.values()))
        lines += ["", "Objects and the tasks that ask about them"]
        lines += [f"  {labels[object_id]:{width}}  {', '.join(names)}" for object_id, names in objects.items()]
    return "\n".join(map(make_printable, lines)) + "\n"


def _example_lines(traced: TracedExample) -> list[str]:
    example = traced.example
    frames = [reference.frame_index for reference in example.frames]
    where = f"frame {frames[0]}" if len(frames) == 1 else f"frames {', '.join(map(str, frames))}"
    away = f", {traced.distance} away" if traced.distance else ""
    lines = [f"{example.task}: {one_line(example.label)} ({where}{away})", f"  {example.example_id}"]
    if traced.shared:
        lines.append(f"  objects: {', '.join(object_id[:_SHORT_ID] for object_id in traced.shared)}")
    rows = explained_reference(example)
    lines += [f"  - {one_line(row.text)}" for row in rows[:_REFERENCE_LINES]]
    if len(rows) > _REFERENCE_LINES:
        lines.append(f"  - and {len(rows) - _REFERENCE_LINES} more")
    return lines


def explained_reference(example: Example) -> tuple[ExplanationRow, ...]:
    """Explain, in the task's words, why the reference is right."""
    task = get_task(example.benchmark, example.task)
    parsed = task.parse(task.reference_answer(example, _PIXELS), example.inputs, _PIXELS)
    return task.explain(example, parsed if isinstance(parsed, Prediction) else None).rows


def _categories(trace: Trace) -> dict[str, str]:
    """Return the categories of objects by id, if the inputs of any example name the categories."""
    categories: dict[str, str] = {}
    for traced in (*trace.here, *trace.near):
        objects = traced.example.inputs.get("objects")
        for entry in objects if isinstance(objects, Sequence) and not isinstance(objects, str) else ():
            if isinstance(entry, Mapping) and "object_id" in entry and "category" in entry:
                categories[str(entry["object_id"])] = str(entry["category"])
    return categories


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
