"""EgoCoT-Bench's questions out of a scene graph: hands, states, places and steps, with evidence and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from barista_bench.generate.candidates import Candidate
from barista_bench.generate.drawing import Item
from barista_bench.generate.egocot_moments import WRONG, Moments, words_of
from barista_bench.generate.egocot_questions import QUESTIONS
from barista_bench.generate.egocot_reasoning import REASONING
from barista_bench.generate.family import Family
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain


class EgoCoTFamily(Family):
    name: ClassVar[str] = "egocot"
    subtasks: ClassVar[tuple[str, ...]] = (*QUESTIONS, *REASONING)

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.words = words_of(domain)

    def wrong_needed(self, candidate: Candidate) -> int:
        return WRONG

    def candidates(self, scene: Scene) -> Iterator[Candidate]:
        moments = Moments(scene, self.words)
        for ask in (*QUESTIONS.values(), *REASONING.values()):
            yield from ask(moments)

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        (out / "x").write_text("x")
