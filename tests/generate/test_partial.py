"""Graphs with partial annotations: the generator concludes nothing from the missing part."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from barista_bench.generate.statements import AllOf, Does, DoesNext, Located, Precedes, Touches
from barista_bench.scene_graph import LAYERS
from tests.generate.claims import held_against
from tests.generate.graphs import graph_document, scene_of
from tests.releases import span, write_release

SECTIONS = ("annotations", *LAYERS)
HANDS = {"left": "left hand", "right": "right hand"}


def with_a_third_withheld(kitchen: Path, out: Path, seed: int, *, says_so: bool = True) -> Path:
    """Kitchens without a random third of their records, except for whole sections, which are declared whole."""
    for path in sorted(kitchen.glob("*/coco_annotation.json")):
        content, rng = json.loads(path.read_text()), random.Random(f"{seed}/{path.parent.name}")
        whole = rng.sample(SECTIONS, rng.randint(0, 3))
        for section in SECTIONS:
            content[section] = [row for row in content[section] if section in whole or rng.random() > 1 / 3]
        every = [span(0, content["video_metadata"][0]["frame_count"])]
        if says_so:
            content["coverage"] = {
                "frames": every,
                "layers": {name: every for name in LAYERS if name in whole},
                "categories": {row["name"]: every for row in content["categories"] if "annotations" in whole},
            }
        write_release(out, path.parent.name, content, video=False)
    return out


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_claimed_of_a_third_withheld_that_the_whole_graph_denies(
    small_kitchen: Path, tmp_path: Path, seed: int
) -> None:
    held = held_against(with_a_third_withheld(small_kitchen, tmp_path, seed), small_kitchen)
    assert not held.denied
    assert not held.unproved
    assert min(held.counts[True], held.counts[False]) > 100


@pytest.mark.full
def test_a_graph_that_calls_itself_whole_and_is_not_claims_what_nothing_proves(
    small_kitchen: Path, tmp_path: Path
) -> None:
    assert held_against(with_a_third_withheld(small_kitchen, tmp_path, 0, says_so=False), small_kitchen).unproved


def document(**coverage: Any) -> dict[str, Any]:
    """A left hand that holds a cup from 20 to 40, and two actions; the caller passes the complete sections."""
    content = graph_document(
        {**HANDS, "cup": "coffee cup", "jar": "jar"},
        relations=[("left", "human_actions", "holds", "cup", (20, 40))],
        activities=[("Move cup", (0, 50)), ("Open jar", (50, 100))],
    )
    return {**content, "coverage": {"frames": [span(0, 100)], **coverage}}


def test_a_hand_touches_nothing_only_where_that_is_known(tmp_path: Path) -> None:
    known = scene_of(tmp_path / "known", document(hands={"left": [span(60, 80)]}))
    assert Touches("left", "cup", 30).truth(known) is True
    assert Touches("left", "jar", 30).truth(known) is None
    assert [Touches("left", "cup", frame).truth(known) for frame in (60, 70, 90)] == [None, False, None]
    assert Touches("right", "cup", 70).truth(known) is None
    assert Precedes(("cup", "jar"), 90).truth(known) is None
    every = scene_of(tmp_path / "every", document(layers={"relations": [span(0, 100)]}))
    assert [Touches(side, "cup", 70).truth(every) for side in ("left", "right")] == [False, False]
    assert Located("cup", "on", "jar", 70).truth(every) is False
    assert AllOf((Located("cup", "on", "jar", 70),)).truth(known) is None


def test_another_action_may_continue_beside_a_recorded_one(tmp_path: Path) -> None:
    some = scene_of(tmp_path / "some", document())
    every = scene_of(tmp_path / "every", document(layers={"activities": [span(0, 100)]}))
    statements = {Does("Move cup", 20): True, DoesNext("Open jar", 20): True, Does("Fill jar", 20): False}
    for statement, truth in statements.items():
        assert statement.truth(every) is truth
        assert statement.truth(some) is (True if statement == Does("Move cup", 20) else None)


def test_a_name_distinguishes_a_thing_where_all_of_its_category_is_marked(tmp_path: Path) -> None:
    scene = scene_of(tmp_path, document(categories={"coffee cup": [span(0, 50)]}))
    cup = scene.things["cup"]
    assert scene.is_unique(cup, [10, 20])
    assert not scene.is_unique(cup, [10, 60])
    assert not scene.is_unique(scene.things["jar"], [10])


def test_the_only_annotated_frame_needs_no_margin(tmp_path: Path) -> None:
    content = graph_document(
        {**HANDS, "cup": "coffee cup"},
        seen={name: [(30, 31)] for name in (*HANDS, "cup")},
        relations=[("left", "human_actions", "holds", "cup", (30, 31))],
    )
    content["coverage"] = {"frames": [span(30, 31)]}
    assert Touches("left", "cup", 30).truth(scene_of(tmp_path / "sparse", content)) is True
    del content["coverage"]
    assert Touches("left", "cup", 30).truth(scene_of(tmp_path / "dense", content)) is None
