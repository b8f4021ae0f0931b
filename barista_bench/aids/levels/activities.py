"""Tell the activities of the person who films."""

from __future__ import annotations

from collections.abc import Iterator

from barista_bench.aids.facts import Fact, QuestionScene
from barista_bench.aids.level import Level


def _activities(scene: QuestionScene) -> Iterator[Fact]:
    for row in scene.video.activities:
        span = scene.common((row.span[0], row.span[1] + 1))
        if span and row.name:
            yield Fact((row.name,), (0,), span, (row.name,))


ACTIVITIES = Level(
    heading="Activities of the person who films:", given="true activities", fill="#be185d", facts=_activities
)
