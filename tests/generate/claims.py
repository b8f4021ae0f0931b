"""Everything that the families would claim of a graph, held against the raw file of another, fuller one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from barista_bench.generate.family import FAMILIES, family_class
from barista_bench.generate.scene import Scene
from barista_bench.generate.statements import Statement
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain
from tests.generate.raw_proof import proved
from tests.generate.raw_video import RawVideo


def claims_of(scene: Scene) -> Iterator[tuple[Statement, bool]]:
    """Statements of all candidates that the graph proves or excludes; of the given statements, the proved ones."""
    for name in FAMILIES:
        for candidate in family_class(name)(scene.domain).candidates(scene):
            choices = [choice.statement for choice in (*candidate.right, *candidate.distractors)]
            for statement in dict.fromkeys((*choices, *candidate.given)):
                truth = statement.truth(scene)
                if truth is True or (truth is False and statement in choices):
                    yield statement, truth


class Held(NamedTuple):
    """Claims by their text, claims whose opposite is proved, and claims of which neither is proved."""

    counts: Counter[bool]
    denied: list[str]
    unproved: list[str]


def held_against(partial: Path, full: Path) -> Held:
    """The claims of one root of graphs against the raw files of another."""
    held = Held(Counter(), [], [])
    for video in SceneGraph(partial):
        raw = RawVideo(full / video.video_id / "coco_annotation.json")
        for statement, truth in claims_of(Scene(video, load_domain())):
            said = msgspec.to_builtins(statement)
            named = {item.id for item in video.objects if f'"{item.id}"' in json.dumps(said)}
            if named <= raw.category.keys():  # a guessed identity may be another in the full graph
                held.counts[truth] += 1
                proof = proved(raw, said)
                if proof is not truth:
                    (held.unproved if proof is None else held.denied).append(f"{video.video_id}: {statement}: {truth}")
    return held
