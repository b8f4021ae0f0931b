"""Say what activity recognition allows as aids: places and objects.

It does not admit states, since a state such as "grinding" names the activity.
"""

from __future__ import annotations

from collections.abc import Sequence

from barista_bench.aids.facts import Fact, QuestionScene, sort_facts
from barista_bench.aids.false_facts import FalseFacts
from barista_bench.aids.levels import LevelName
from barista_bench.aids.task_aids import TaskAids
from barista_bench.benchmarks.barista.activity_choices import ActivityInputs
from barista_bench.core.example import content_seed


class ActivityAids(TaskAids):
    """False objects are those of another activity of the video."""

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
