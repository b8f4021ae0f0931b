"""Say what the tasks about clips allow as aids: activity and temporal_vqa.

Temporal questions are written again from changed facts, or for a mirrored or reversed clip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import ClassVar, Final

import msgspec
import numpy as np

from barista_bench.aids.facts import Fact, FalseFacts, QuestionScene, exchange_names, object_names, sort_facts
from barista_bench.aids.levels import LEVELS, LevelName, relation_fact
from barista_bench.aids.task_aids import FactRules, TaskAids
from barista_bench.aids.views import swap_sides
from barista_bench.benchmarks.barista.activity_choices import ActivityInputs
from barista_bench.benchmarks.barista.change_detection import PART_OF, POSITION, Category, Change
from barista_bench.benchmarks.barista.clips import MIN_ANNOTATIONS
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.core.example import Example, content_seed
from barista_bench.scene_graph.coverage import frame_ranges
from barista_bench.scene_graph.video_graph import HAND_RELATION, HANDS, UNNAMED, WINDOW

_NEEDED: Final[dict[str, tuple[LevelName, ...]]] = {
    "state_change": ("moment", "zoom", "marks", "objects", "states"),
    "action_transition": ("moment", "zoom", "marks", "objects", "relations"),
    "relation_change": ("moment", "zoom", "marks", "objects", "relations"),
    "activity_progression": ("moment", "activities"),
}
"""Maps each kind of change to the levels on which a question about this change depends."""
_NOTHING = ""
"""Step in which a hand touches nothing."""
_REVERSED_KINDS = {"opened": "closed", "new": "lost", "ended": "started"}
_REVERSED_KINDS |= {after: before for before, after in _REVERSED_KINDS.items()}


class ActivityAids(TaskAids):
    """Places and objects. States are not admitted, since a state such as "grinding" names the activity."""

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Return the facts of another activity of the video, shifted in time to the question's frames."""
        if level != "objects":
            return None
        example = scene.example
        choices = {choice.text: choice for choice in ActivityInputs.of(example).choices}
        segments = [row for row in scene.video.activities if row.name in choices and row.name != example.label]
        for row in sorted(segments, key=lambda row: content_seed("false", example.example_id, row.name, row.span[0])):
            last = min(row.span[1], scene.video.frame_count - 1)
            frames = tuple(
                row.span[0] + round(index * (last - row.span[0]) / max(1, len(scene.frames) - 1))
                for index in range(len(scene.frames))
            )
            facts = sort_facts(self.facts(level, scene._replace(frames=frames)))
            shift = scene.frames[0] - frames[0]
            moved = [fact._replace(span=(fact.span[0] + shift, fact.span[1] + shift)) for fact in facts]
            if moved and {fact.words() for fact in moved} != {fact.words() for fact in needed}:
                choice = choices[row.name]
                return FalseFacts(moved, {}, {"choice_id": choice.choice_id, "class_id": choice.class_id})
        return None


def _persistent_states(scene: QuestionScene) -> Iterator[Fact]:
    return (fact for fact in LEVELS["states"].facts(scene) if _is_persistent(scene, fact.about[0]))


def _changing_relations(scene: QuestionScene) -> Iterator[Fact]:
    return _contacts(scene) if _category(scene.example) == "action_transition" else _positions(scene)


class TemporalAids(TaskAids):
    """The facts from which the changes of a clip are detected. Only questions from a template are written again."""

    own_facts: ClassVar[FactRules] = {"states": _persistent_states, "relations": _changing_relations}

    def needed_levels(self, example: Example) -> tuple[LevelName, ...]:
        return tuple(level for level in self.admitted if level in _NEEDED.get(_category(example), ()))

    def false(self, level: LevelName, scene: QuestionScene, needed: Sequence[Fact]) -> FalseFacts | None:
        """Exchange names in the answer with other names of the video."""
        example = scene.example
        if example.metadata.get("writer") != "template":
            return None
        changes = _changes(example)
        said = {name for change in changes for name in (change.subject, *change.objects)}
        said = {name for name in said if name.lower() not in HANDS and name != UNNAMED}
        activities = {row.name for row in scene.video.activities if row.name}
        renamed = exchange_names(example, said, activities if level == "activities" else object_names(scene))
        if not renamed or not any(name in renamed for fact in needed for name in fact.names):
            return None
        others = [
            msgspec.structs.replace(
                change,
                subject=renamed.get(change.subject, change.subject),
                objects=sorted(renamed.get(name, name) for name in change.objects),
            )
            for change in changes
        ]
        category: Category = example.target["category"]  # type: ignore[assignment]
        answer = write_pair(category, others)["answer"]
        is_other = answer != example.target["answer"]
        return FalseFacts(needed, renamed, {**example.target, "answer": answer}) if is_other else None

    def mirrored(self, example: Example, size: tuple[int, int]) -> Example | None:
        swapped = [_swapped(change) for change in _changes(example)]
        order = list(HANDS)
        swapped.sort(key=lambda change: order.index(change.subject) if change.subject in order else 0)
        return _asked_again(example, swapped)

    def reversed(self, scene: QuestionScene) -> Example | None:
        example = scene.example
        if _category(example) == "action_transition":
            return _asked_again(example, _reversed_contacts(scene))
        return _asked_again(example, _REVERSALS[_category(example)](_changes(example)))


def _category(example: Example) -> str:
    return str(example.target.get("category"))


def _positions(scene: QuestionScene) -> Iterator[Fact]:
    for row in scene.video.relations:
        if row.kind == POSITION and row.value != PART_OF and _is_persistent(scene, row.source_id):
            yield from (relation_fact(row, span) for span in scene.spans_in_view(row))


def _is_persistent(scene: QuestionScene, object_id: str) -> bool:
    ends = [(frame - WINDOW, frame + WINDOW + 1) for frame in (scene.frames[0], scene.frames[-1])]
    counts = [sum(high - low for low, high in scene.video.seen(end, object_id)) for end in ends]
    return min(counts) >= MIN_ANNOTATIONS


def _contacts(scene: QuestionScene) -> Iterator[Fact]:
    """Yield the objects that hands touch, and the times at which a visible hand touches nothing."""
    hands = {row.object_id: row.category for frame in range(*scene.span) for row in scene.boxes(frame)}
    for hand_id, hand in hands.items():
        if hand.lower() not in HANDS:
            continue
        contacts = [row for row in scene.video.relations if row.source_id == hand_id and row.kind == HAND_RELATION]
        busy: set[int] = set()
        for row in contacts:
            for span in scene.spans_in_view(row):
                busy.update(range(*span))
                yield relation_fact(row, span)
        for low, high in scene.video.seen(scene.span, hand_id):
            for span in frame_ranges(np.array([frame for frame in range(low, high) if frame not in busy])):
                yield Fact((hand,), (0, " touches nothing at all"), span, (hand_id, "nothing", str(span)))


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
        change, subject=swap_sides(change.subject), objects=sorted(map(swap_sides, change.objects))
    )


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
