"""Transform an example together with its clip: mirrored, or played backwards. The question is derived again.

A question about changes is written again from the transformed changes. Questions of other tasks keep their structure:
boxes and masks are mirrored, and the words for left and right are exchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from barista_bench.aids.facts import QuestionScene
from barista_bench.benchmarks.barista.change_detection import Category, Change
from barista_bench.benchmarks.barista.clips import WINDOW
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.benchmarks.kinds.box_answers import reference_scale
from barista_bench.core.example import Example
from barista_bench.scene_graph import Rle, decode_mask
from barista_bench.scene_graph.masks import encode_mask, run_problems
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS

_SIDE = re.compile(r"\b(left|right)(?= (?:hands?|of|side)\b)|^(left|right)$", re.IGNORECASE)
_OTHER_SIDE = {"left": "right", "right": "left", "Left": "Right", "Right": "Left"}
_PIXELS, _ON_GRID = {"box", "boxes", "hand_pixels", "object_pixels"}, {"ground_truth_boxes", "hand_boxes", "object_box"}
_CORNER_AND_SIZE = {"bbox", "bbox_xywh"}
_NOTHING = ""
"""Step in which a hand touches nothing."""
_REVERSED_KINDS = {"opened": "closed", "new": "lost", "ended": "started"}
_REVERSED_KINDS |= {after: before for before, after in _REVERSED_KINDS.items()}


def mirrored(example: Example, size: tuple[int, int]) -> Example | None:
    """Return the example for the mirrored clip. `size` is the (width, height) of its frames in pixels."""
    if example.task == "temporal_vqa":
        swapped = [_swapped(change) for change in _changes(example)]
        order = list(HANDS)
        swapped.sort(key=lambda change: order.index(change.subject) if change.subject in order else 0)
        return _asked_again(example, swapped)
    scale = reference_scale(example.target) if "bbox_scale" in example.target else 0
    inputs, target = (_mirrored("", fields, size[0], scale) for fields in (example.inputs, example.target))
    return replace(example, label=_swap_sides(example.label), inputs=inputs, target=target)


def reversed_clip(scene: QuestionScene) -> Example | None:
    """Return the example for the reversed clip, or None if it is not about a clip or no question is left."""
    example = scene.example
    if example.task != "temporal_vqa":
        return example if len(example.frames) > 1 else None
    if example.target["category"] == "action_transition":
        return _asked_again(example, _reversed_contacts(scene))
    return _asked_again(example, _REVERSALS[str(example.target["category"])](_changes(example)))


def _changes(example: Example) -> list[Change]:
    return [msgspec.convert(change, Change) for change in example.evidence["changes"]]  # type: ignore[union-attr]


def _asked_again(example: Example, changes: list[Change]) -> Example | None:
    """Return the example about these changes. Return None without a change, or if no template wrote the question."""
    if example.metadata.get("writer") != "template" or not changes:
        return None
    category: Category = example.target["category"]  # type: ignore[assignment]
    pair = write_pair(category, changes)
    return replace(
        example,
        inputs={**example.inputs, "question": pair["question"]},
        target={**example.target, "answer": pair["answer"]},
        evidence={**example.evidence, "changes": [change.write() for change in changes]},
    )


def _swapped(change: Change) -> Change:
    return msgspec.structs.replace(
        change, subject=_swap_sides(change.subject), objects=sorted(map(_swap_sides, change.objects))
    )


def _swap_sides(text: str) -> str:
    """Exchange left and right where these words name sides of hands and places.

    >>> _swap_sides("held by left hand"), _swap_sides("what is left")
    ('held by right hand', 'what is left')
    """
    return _SIDE.sub(lambda match: _OTHER_SIDE[match[0]], text)


def _mirrored(name: str, value: Any, width: int, scale: int) -> Any:  # noqa: ANN401  (JSON)
    if isinstance(value, str):
        return value if name.endswith(("_id", "_ids")) else _swap_sides(value)
    if isinstance(value, dict):
        if name == "segmentation":
            return _mirrored_mask(value)
        return {key: _mirrored(key, each, width, scale) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) == 4 and all(isinstance(each, int | float) for each in value):
        if name in _CORNER_AND_SIZE:
            return [width - value[0] - value[2], *value[1:]]
        side = width if name in _PIXELS else scale if name in _ON_GRID else None
        return value if side is None else [side - value[2], value[1], side - value[0], value[3]]
    return [_mirrored(name, each, width, scale) for each in value]


def _mirrored_mask(segmentation: dict[str, Any]) -> dict[str, Any]:
    """Mirror a mask. A mask that cannot be drawn stays unchanged, and the drawing code reports it."""
    height, width = segmentation["size"]
    if not segmentation["counts"] or run_problems([segmentation["counts"]], height * width)[0]:
        return segmentation
    mask = decode_mask(Rle(segmentation["counts"], (height, width)))
    return {"size": [height, width], "counts": encode_mask(np.ascontiguousarray(mask[:, ::-1])).counts}


def _reversed_states(changes: list[Change]) -> list[Change]:
    return [msgspec.structs.replace(change, kind=_reversed_state(change.kind)) for change in changes]


def _reversed_state(kind: str) -> str:
    """Return the name of the opposite change of a state.

    >>> [_reversed_state(kind) for kind in ("opened", "started rinsing", "went from full to empty")]
    ['closed', 'stopped rinsing', 'went from empty to full']
    """
    verb, _, rest = kind.partition(" ")
    if verb in ("started", "stopped"):
        return f"{'stopped' if verb == 'started' else 'started'} {rest}"
    if kind.startswith("went from "):
        before, _, after = kind.removeprefix("went from ").partition(" to ")
        return f"went from {after} to {before}"
    return _REVERSED_KINDS[kind]


def _reversed_places(changes: list[Change]) -> list[Change]:
    others = [msgspec.structs.replace(change, kind=_REVERSED_KINDS[change.kind]) for change in changes]
    return sorted(others, key=lambda change: (change.number, change.kind == "lost", change.value, change.objects))


def _reversed_contacts(scene: QuestionScene) -> list[Change]:
    """Return the reversed timelines of both hands.

    The timelines come from the graph, since the clip's changes leave out the time before a hand's first contact.
    """
    changes = []
    for number, hand in enumerate(HANDS):
        steps = [step for keyframe in reversed(scene.frames) if (step := _usual_contact(scene, hand, keyframe))]
        timeline = [step for step, _ in groupby(steps)]
        if timeline and timeline[0] == (_NOTHING,):
            del timeline[0]
        for touched in timeline if len(timeline) > 1 else ():
            objects = [name for name in touched if name != _NOTHING]
            start, end = scene.frames[0], scene.frames[-1]
            changes.append(Change("action_transition", "contact", hand, "", number, objects, [], [], start, end))
    return changes


def _usual_contact(scene: QuestionScene, hand: str, keyframe: int) -> tuple[str, ...]:
    """Return the objects that a hand touches most often around a keyframe. Empty if the hand is not in view."""
    video, counts = scene.video, Counter[tuple[str, ...]]()
    for frame in reversed(range(max(0, keyframe - WINDOW), keyframe + WINDOW + 1)):
        boxed = {row.object_id: row.category for row in video.boxes.get(frame, ())}
        if hand not in boxed.values():
            continue
        touched = {
            row.target
            for row in video.relations
            if row.kind == HAND_RELATION
            and row.span[0] <= frame < row.span[1]
            and boxed.get(row.source_id) == hand
            and row.target_id in boxed
        }
        counts[tuple(sorted(touched)) or (_NOTHING,)] += 1
    return counts.most_common(1)[0][0] if counts else ()


def _reversed_activities(changes: list[Change]) -> list[Change]:
    others = []
    for number in sorted({change.number for change in changes}, reverse=True):
        own = [change for change in changes if change.number == number]
        turned = [msgspec.structs.replace(change, kind=_REVERSED_KINDS.get(change.kind, change.kind)) for change in own]
        others += sorted(turned, key=lambda change: ("ended", "started", "continuing").index(change.kind))
    return others


_REVERSALS: dict[str, Callable[[list[Change]], list[Change]]] = {
    "state_change": _reversed_states,
    "relation_change": _reversed_places,
    "activity_progression": _reversed_activities,
}
