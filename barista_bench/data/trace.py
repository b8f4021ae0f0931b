"""All tasks' examples about one frame, joined by the objects that they are about.

Every example says in `evidence.object_ids` which objects it is about, so that a failure in one task can be followed to
the questions of other tasks about the same objects. A clip or segment lies where its frames span it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barista_bench.benchmarks import get_task
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Example, ExplanationRow, Prediction, evidence_objects
from barista_bench.files.text_out import one_line, printable

WITHIN = 30
"""Frames to either side in which related examples are looked for: a second, mostly."""
_SHORT_ID = 8
_TRUTH_LINES = 12
_PIXELS = BoxFormat("xyxy", None)


@dataclass(frozen=True, slots=True)
class Traced:
    """An example, how many frames its span is away (0: it covers the frame), and the objects it shares."""

    example: Example
    distance: int
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What is asked about one frame: `here` are the examples that show it, `near` the related ones around it."""

    video_id: str
    frame: int
    within: int
    here: tuple[Traced, ...]
    near: tuple[Traced, ...]

    def objects(self) -> dict[str, tuple[str, ...]]:
        """Object id to the tasks that ask about it, those asked about by most tasks first."""
        tasks: dict[str, dict[str, None]] = {}
        for item in (*self.here, *self.near):
            for object_id in evidence_objects(item.example):
                tasks.setdefault(object_id, {})[item.example.task] = None
        return {k: tuple(v) for k, v in sorted(tasks.items(), key=lambda entry: (-len(entry[1]), entry[0]))}


def trace(
    examples_by_task: Mapping[str, Iterable[Example]], video_id: str, frame: int, *, within: int = WITHIN
) -> Trace:
    """Examples that show the frame, and those within some frames of it that share an object with any of these.

    Where no example shows the frame, all examples within the range are near. Tasks come in the order given, examples
    by their distance, then by their id.
    """
    of_video = {
        task: [example for example in examples if example.video_id == video_id]
        for task, examples in examples_by_task.items()
    }
    shown = {task: [e for e in found if _shows(e, frame)] for task, found in of_video.items()}
    asked = {item for found in shown.values() for example in found for item in evidence_objects(example)}
    anything = any(shown.values())
    here, near = list[Traced](), list[Traced]()
    for task, found in of_video.items():
        here += _ordered(Traced(e, 0, _shared(e, asked)) for e in shown[task])
        around = (
            Traced(e, distance, _shared(e, asked))
            for e in found
            if not _shows(e, frame) and (distance := _distance(e, frame)) <= within
        )
        near += _ordered(item for item in around if item.shared or not anything)
    return Trace(video_id, frame, within, tuple(here), tuple(near))


def _shows(example: Example, frame: int) -> bool:
    return any(reference.frame_index == frame for reference in example.frames)


def _distance(example: Example, frame: int) -> int:
    shown = [reference.frame_index for reference in example.frames]
    return max(min(shown) - frame, frame - max(shown), 0)


def _shared(example: Example, asked: set[str]) -> tuple[str, ...]:
    return tuple(item for item in dict.fromkeys(evidence_objects(example)) if item in asked)


def _ordered(items: Iterable[Traced]) -> list[Traced]:
    return sorted(items, key=lambda item: (item.distance, item.example.frames[0].frame_index, item.example.example_id))


def as_text(found: Trace) -> str:
    """For people: every example with its truth in words, then the objects and the tasks that ask about them."""
    if not found.here and not found.near:
        return (
            f"{printable(found.video_id)}, frame {found.frame}: "
            f"no example shows it, and none lies within {found.within} frames.\n"
        )
    tasks = {item.example.task for item in found.here}
    lines = [
        f"{found.video_id}, frame {found.frame}: {_many(len(found.here), 'example')} of {_many(len(tasks), 'task')}"
    ]
    for item in found.here:
        lines += ["", *_example_lines(item)]
    if found.near:
        why = "that share an object with these" if found.here else "as none shows this frame"
        lines += ["", f"Within {found.within} frames, {why}: {_many(len(found.near), 'example')}"]
        for item in found.near:
            lines += ["", *_example_lines(item)]
    objects = found.objects()
    if objects:
        names = _names(found)
        width = max(len(_label(item, names)) for item in objects)
        lines += ["", "Objects and the tasks that ask about them"]
        lines += [f"  {_label(item, names):{width}}  {', '.join(of)}" for item, of in objects.items()]
    return "\n".join(map(printable, lines)) + "\n"


def _example_lines(item: Traced) -> list[str]:
    example = item.example
    frames = [reference.frame_index for reference in example.frames]
    where = f"frame {frames[0]}" if len(frames) == 1 else f"frames {', '.join(map(str, frames))}"
    away = f", {item.distance} away" if item.distance else ""
    lines = [f"{example.task}: {one_line(example.label)} ({where}{away})", f"  {example.example_id}"]
    if item.shared:
        lines.append(f"  objects: {', '.join(entry[:_SHORT_ID] for entry in item.shared)}")
    rows = _truth(example)
    lines += [f"  - {one_line(row.text)}" for row in rows[:_TRUTH_LINES]]
    if len(rows) > _TRUTH_LINES:
        lines.append(f"  - and {len(rows) - _TRUTH_LINES} more")
    return lines


def _truth(example: Example) -> tuple[ExplanationRow, ...]:
    """The truth in the task's own words: why the right answer is right."""
    task = get_task(example.benchmark, example.task)
    parsed = task.parse(task.reference_answer(example, _PIXELS), example.inputs, _PIXELS)
    return task.explain(example, parsed if isinstance(parsed, Prediction) else None).rows


def _names(found: Trace) -> dict[str, str]:
    """Categories of objects, as far as any example's inputs name them."""
    names: dict[str, str] = {}
    for item in (*found.here, *found.near):
        listed = item.example.inputs.get("objects")
        for entry in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
            if isinstance(entry, Mapping) and "object_id" in entry and "category" in entry:
                names[str(entry["object_id"])] = str(entry["category"])
    return names


def _label(object_id: str, names: Mapping[str, str]) -> str:
    return f"{object_id[:_SHORT_ID]} {names[object_id]}" if object_id in names else object_id[:_SHORT_ID]


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
