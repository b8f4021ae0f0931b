"""HanDyVQA's questions: what hands do in a clip of some seconds, how, where, to what, and what changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from barista_bench.generate.candidates import Candidate, Choice
from barista_bench.generate.drawing import Item
from barista_bench.generate.family import Family
from barista_bench.generate.scene import Scene
from barista_bench.generate.statements import Changes, Seen
from barista_bench.scene_graph import SceneGraph


class HanDyVQAFamily(Family):
    name: ClassVar[str] = "handyvqa"
    subtasks: ClassVar[tuple[str, ...]] = ("state",)

    def wrong_needed(self, candidate: Candidate) -> int:
        return 4

    def candidates(self, scene: Scene) -> Iterator[Candidate]:
        for before, after in scene.changes:
            half = scene.frames(self.domain.lengths.clip / 2)
            start, end = max(0, after.start - half), min(scene.frame_count, after.start + half)
            thing = after.thing

            def say(a: str, b: str) -> Choice:
                text = f"It stays {a}." if a == b else f"From {a} to {b}."
                return Choice(text, Changes(thing.id, after.type, a, b, start, end))

            words = sorted(
                {
                    name
                    for dim in self.domain.attributes[after.type].dimensions
                    for e in dim
                    for name in ([e] if isinstance(e, str) else e[:1])
                }
            )
            pairs = [(after.value, before.value), (before.value, before.value), (after.value, after.value)]
            pairs += [(a, b) for a in words for b in words if (a, b) != (before.value, after.value)]
            yield Candidate(
                subtask="state",
                video_id=scene.video_id,
                question=f"How does the state of the {thing.name} change?",
                right=(say(before.value, after.value),),
                wrong=tuple(say(a, b) for a, b in dict.fromkeys(pairs)),
                given=tuple(Seen(thing.id, f) for f in (start, after.start, end - 1)),
                span=(start, end),
                frames=(after.start,),
                objects=(thing.id,),
            )

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        (out / "x").write_text("x")
