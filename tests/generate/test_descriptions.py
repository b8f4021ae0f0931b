"""Things with the same name are told apart by actions, place and order, where the description fits only one."""

from pathlib import Path
from typing import Any

import pytest

from barista_bench.generate.candidates import Tally
from barista_bench.generate.descriptions import TOUCHES, Basis, name_object, unique_descriptions
from barista_bench.generate.egocot.family import EgocotFamily
from barista_bench.generate.family import family_class
from barista_bench.generate.scene import Scene
from barista_bench.generate.statements import Unique
from barista_bench.scene_graph.domain import load_domain
from tests.generate.graphs import graph_document, scene_of
from tests.releases import span

LEFT, RIGHT, MIDDLE = (20, 100, 40, 40), (240, 100, 40, 40), (130, 100, 40, 40)
KITCHEN = {"left": "left hand", "right": "right hand", "a": "lemon", "b": "lemon", "board": "tray", "knife": "spoon"}
YELLOW = [(name, "color", "yellow", (0, 100)) for name in "ab"]
HOLDS = "human_actions"


def lemons(root: Path, **content: Any) -> Scene:
    """Two lemons far from each other, `a` on the left; a hundred frames of ten a second."""
    objects = content.pop("objects", KITCHEN)
    boxes = {"a": LEFT, "b": RIGHT, "board": (90, 180, 60, 40)} | content.pop("boxes", {})
    attributes = [*YELLOW, *content.pop("attributes", ())]
    return scene_of(root, graph_document(objects, boxes=boxes, attributes=attributes, **content))


def told(scene: Scene, item: str, *frames: int) -> dict[Basis, str]:
    return {row.basis: row.text for row in unique_descriptions(scene, item, frames)}


def test_sides_distinguish_two_similar_things(tmp_path: Path) -> None:
    scene = lemons(tmp_path)
    assert [told(scene, item, 10, 60) for item in "ab"] == [
        {"side": "lemon on the left"},
        {"side": "lemon on the right"},
    ]
    assert not scene.is_unique(scene.things["a"], [10])


@pytest.mark.parametrize(
    ("boxes", "seen"),
    [({"b": (50, 100, 40, 40)}, {}), ({}, {"b": [(0, 50)]})],
    ids=["near each other", "one only, then"],
)
def test_sides_are_used_only_where_they_are_clear_on_all_frames(
    tmp_path: Path, boxes: dict[str, tuple[int, int, int, int]], seen: dict[str, list[tuple[int, int]]]
) -> None:
    assert "side" not in told(lemons(tmp_path, boxes=boxes, seen=seen), "a", 10, 60)


def test_a_thing_that_crosses_the_other_is_on_no_side(tmp_path: Path) -> None:
    content = graph_document({"a": "lemon", "b": "lemon"}, boxes={"a": LEFT, "b": MIDDLE})
    for row in content["annotations"]:
        if row["object_id"] == "a" and row["image_id"] >= 50:
            row["bbox"] = [250.0, 100.0, 40.0, 40.0]
    scene = scene_of(tmp_path, content)
    assert told(scene, "a", 10) == {"side": "lemon on the left"}
    assert told(scene, "a", 60) == {"side": "lemon on the right"}
    assert told(scene, "a", 10, 60) == {}


def test_three_are_leftmost_middle_and_rightmost(tmp_path: Path) -> None:
    attributes = [("c", "color", "yellow", (0, 100))]
    objects = {"a": "lemon", "b": "lemon", "c": "lemon"}
    scene = lemons(tmp_path, objects=objects, boxes={"c": MIDDLE}, attributes=attributes)
    sides = [told(scene, item, 10)["side"] for item in "acb"]
    assert sides == ["leftmost lemon", "middle lemon", "rightmost lemon"]


def test_a_hand_holds_one_thing_and_not_the_other(tmp_path: Path) -> None:
    scene = lemons(tmp_path, relations=[("left", HOLDS, "holds", "a", (20, 60))])
    assert told(scene, "a", 30, 50)["hand"] == "lemon in the left hand"
    assert "hand" not in told(scene, "a", 30, 70)
    assert "hand" not in told(scene, "b", 30)


def test_one_thing_is_cut_while_no_other_is_touched(tmp_path: Path) -> None:
    cutting: dict[str, Any] = {"activities": [("Cut lemon", (20, 60))]}
    touch = ("left", HOLDS, "touches", "a", (20, 60))
    scene = lemons(tmp_path / "one", relations=[touch], **cutting)
    assert next(iter(told(scene, "a", 30, 50).values())) == "lemon being cut"
    assert "action" not in told(scene, "b", 30)
    assert "action" not in told(scene, "a", 30, 70)
    both = lemons(tmp_path / "both", relations=[touch, ("right", HOLDS, "touches", "b", (50, 60))], **cutting)
    assert "action" not in told(both, "a", 30)


def test_one_thing_is_on_the_board_and_the_other_apart_from_it(tmp_path: Path) -> None:
    places = [("a", "position", "on", "board", (0, 100))]
    scene = lemons(tmp_path / "apart", relations=places, boxes={"a": (100, 170, 40, 40)})
    assert told(scene, "a", 10)["place"] == "lemon on the tray"
    near = lemons(tmp_path / "near", relations=places, boxes={"a": (100, 170, 40, 40), "b": (150, 180, 40, 40)})
    assert "place" not in told(near, "a", 10)


def test_the_order_of_touches_and_of_coming_into_view(tmp_path: Path) -> None:
    touches = [("left", HOLDS, "holds", "a", (20, 40)), ("right", HOLDS, "holds", "b", (50, 60))]
    scene = lemons(tmp_path / "touched", relations=touches)
    ordered = [told(scene, item, 10).get("touch order") for item in "ab"]
    assert ordered == [f"lemon that the person touches {which}" for which in ("first", "second")]
    later = lemons(tmp_path / "later", seen={"b": [(40, 100)]})
    assert told(later, "b", 60)["appearance"] == "lemon that comes into view later"
    assert told(later, "a", 60)["appearance"] == "lemon that is in view from the start"


def test_nothing_tells_apart_what_may_not_all_be_annotated(tmp_path: Path) -> None:
    content = graph_document({"a": "lemon", "b": "lemon"}, boxes={"a": LEFT, "b": RIGHT})
    assert told(scene_of(tmp_path / "all", content), "a", 10)
    content["coverage"] = {"frames": [span(0, 100)], "categories": ["left hand"]}
    assert told(scene_of(tmp_path / "some", content), "a", 10) == {}


def test_the_asked_fact_tells_no_things_apart(tmp_path: Path) -> None:
    scene = lemons(tmp_path, relations=[("left", HOLDS, "holds", "a", (20, 60))])
    thing = scene.things["a"]
    assert name_object(scene, thing, [30]).name == "lemon in the left hand"
    called = name_object(scene, thing, [30], TOUCHES)
    assert (called.name, called.noun, called) == ("lemon on the left", "lemon", thing)
    assert Unique("a", (30,), called.description).truth(scene) is True
    assert Unique("a", (30,)).truth(scene) is False
    assert Unique("b", (30,), called.description).truth(scene) is False


def test_questions_about_one_of_two_similar_things_contain_its_description(tmp_path: Path) -> None:
    relations = [("left", HOLDS, "holds", "a", (10, 50)), ("right", HOLDS, "holds", "b", (55, 95))]
    scene = lemons(tmp_path, relations=relations, activities=[("Pick lemon", (10, 30))])
    decided = list(EgocotFamily(load_domain()).decide_all(scene, Tally()))
    texts = {candidate.question for candidate in decided} | {choice.text for c in decided for choice in c.right}
    assert any("on the left" in text for text in texts)
    for candidate in decided:
        names = [thing for thing in ("lemon being", "lemon in the", "lemon that") if thing in candidate.question]
        if candidate.subtask in ("AOG", "HOA", "HGC"):
            assert "in the left hand" not in candidate.right_text
            assert "that the person touches" not in candidate.right_text
        if candidate.subtask == "LVR" and "lemon" in candidate.question:
            assert names
            assert "on the" not in candidate.question.replace("in the", "")


@pytest.mark.parametrize("name", ["handyvqa", "tog_bench"])
def test_other_families_tell_them_apart_too(tmp_path: Path, name: str) -> None:
    relations = [("left", HOLDS, "holds", "a", (10, 50)), ("right", HOLDS, "holds", "b", (55, 95))]
    objects = {**KITCHEN, "a": "milk carton", "b": "milk carton"}
    scene = lemons(tmp_path, objects=objects, relations=relations)
    texts = [c.question + c.right_text for c in family_class(name)(load_domain()).decide_all(scene, Tally())]
    assert any("on the left" in text or "touches first" in text for text in texts), texts


def test_a_colour_is_used_only_where_it_distinguishes(tmp_path: Path) -> None:
    objects = {"a": "lemon", "b": "lemon", "c": "lemon"}
    scene = lemons(tmp_path / "green", objects=objects, attributes=[("c", "color", "green", (0, 100))])
    assert [thing.name for thing in scene.things.values()] == ["yellow lemon", "yellow lemon", "green lemon"]
    assert {thing.name for thing in lemons(tmp_path / "alike").things.values()} == {"lemon", "tray", "spoon"}
