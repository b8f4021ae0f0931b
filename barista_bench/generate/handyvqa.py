"""HanDyVQA's questions: what hands do in a clip of five seconds, how, where, to what, and what changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from barista_bench.benchmarks.handyvqa.record_files import CATEGORIES, MCQ_CATEGORIES, RVOS_CATEGORIES
from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.generate.balance import draw_balanced
from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.drawing import Item, draw, with_choices
from barista_bench.generate.family import Family, refusal, section
from barista_bench.generate.handyvqa_questions import ABOUT, HanDyVQAWords, Questions
from barista_bench.generate.handyvqa_release import write_release
from barista_bench.generate.naming import COLOUR
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain

OPTIONS = 5
"""Of a question; more where there are so many right ones that fewer than `LEAST_WRONG` would be wrong."""
LEAST_WRONG = 2


class HanDyVQAFamily(Family):
    """All eight categories of the benchmark, over clips of the source's videos."""

    name: ClassVar[str] = "handyvqa"
    subtasks: ClassVar[tuple[str, ...]] = CATEGORIES
    choice_subtasks: ClassVar[tuple[str, ...]] = MCQ_CATEGORIES

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.domain_words = section(domain, self.name, HanDyVQAWords)
        for key, known, said in (
            ("grip", domain.contacts, (self.domain_words.grip,)),
            ("where", domain.places, self.domain_words.where),
            ("state", domain.attributes, (self.domain_words.state,)),
        ):
            if unknown := sorted(set(said) - set(known)):
                raise refusal(domain, f"families.{self.name}.{key}: {unknown[0]!r} is described nowhere in the file")
        if domain.lengths.clip != 2 * HALF_WINDOW_S:
            clip = f"{domain.lengths.clip:g} s, and a clip of this benchmark has {2 * HALF_WINDOW_S:g} s"
            raise refusal(domain, f"lengths.clip is {clip}")
        self._colours = frozenset(domain.attributes[COLOUR].values) if COLOUR in domain.attributes else frozenset()

    def wrong_needed(self, candidate: QuestionCandidate) -> int:
        """None where masks are asked for: no model is shown the options then."""
        return 0 if candidate.subtask in RVOS_CATEGORIES else _usual_wrong(candidate)

    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        questions = Questions(scene, self.domain_words)
        kinds: tuple[Callable[[], Iterator[QuestionCandidate]], ...] = (
            questions.actions,
            questions.processes,
            questions.locations,
            questions.states,
            questions.parts,
            questions.objects,
        )
        for ask in kinds:
            yield from ask()

    def drawn(self, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        items: list[Item] = []
        for subtask in self.subtasks:
            offered = [candidate for candidate in candidates if candidate.subtask == subtask]
            if subtask in RVOS_CATEGORIES:
                items += with_choices(draw(offered, size, seed), subtask, _known_wrong, seed)
            else:
                drawn = draw_balanced(offered, size, seed, self.wrong_needed, self.words)
                items += with_choices(drawn, subtask, self.wrong_needed, seed)
        return items

    def words(self, candidate: QuestionCandidate, choice: Choice) -> tuple[str, ...]:
        """A choice's words, its text as one, and that with what the question names; but for colours, which tell things
        of one video apart."""
        words, named = (
            [word for word in re.findall(r"\w+", text.lower()) if word not in self._colours]
            for text in (choice.text, candidate.extra.get(ABOUT, ""))
        )
        return tuple(dict.fromkeys((*words, " ".join(words), " ".join([*named, "?", *words]))))

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        write_release(items, source, out)


def _usual_wrong(candidate: QuestionCandidate) -> int:
    return max(LEAST_WRONG, OPTIONS - len(candidate.right))


def _known_wrong(candidate: QuestionCandidate) -> int:
    """As many as usual, or as the graph excludes where these are fewer."""
    return min(_usual_wrong(candidate), len(candidate.wrong))
