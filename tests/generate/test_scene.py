"""A graph in people's terms: names, visible things, uses by hands across gaps, and changes."""

from pathlib import Path
from typing import Any

import pytest

from barista_bench.errors import DataError
from tests.generate.graphs import graph_document, scene_of, table

OBJECTS = {"cup": "coffee cup", "right": "right hand", "left": "left hand", "pot": "pitcher"}
HOLDS = "human_actions"


def document(**content: Any) -> dict[str, Any]:
    return graph_document(OBJECTS, **content)


def test_a_name_is_the_kind_where_that_says_more_and_has_the_colour_where_it_is_shared(tmp_path: Path) -> None:
    things = {
        "a": ("container", "type", "tray", "tray"),
        "b": ("unknown", "type", "food", "food"),
        "c": ("button", "type", "power button", "power button"),
        "d": ("coffee cup", "type", "mug", "mug"),
        "e": ("unknown", "color", "red", None),
        "f": ("coffee cup", "color", "red", "red coffee cup"),
        "g": ("coffee cup", "color", "blue", "blue coffee cup"),
        "h": ("pitcher", "color", "red", "pitcher"),
    }
    attributes = [(name, kind, value, (0, 100)) for name, (_, kind, value, _) in things.items()]
    document = graph_document({name: row[0] for name, row in things.items()}, attributes=attributes)
    named = {key: thing.name for key, thing in scene_of(tmp_path, document).things.items()}
    assert named == {name: called for name, (*_, called) in things.items() if called}


def test_a_reference_is_unique_unless_another_visible_thing_could_be_meant(tmp_path: Path) -> None:
    objects = {"a": "button", "b": "button", "c": "pitcher"}
    attributes = [("b", "type", "power button", (0, 100))]
    relations = [("c", "position", "part of", "b", (0, 10))]
    content = graph_document(objects, attributes=attributes, relations=relations, seen={"b": [(0, 50)]})
    scene = scene_of(tmp_path, content)
    unique = [
        scene.is_unique(scene.things[name], [frame]) for name, frame in (("a", 10), ("a", 60), ("b", 10), ("c", 10))
    ]
    assert unique == [False, True, True, True]
    parts = [scene.is_part_of_other(*pair) for pair in (("c", "b"), ("b", "c"), ("c", "a"))]
    assert parts == [True, True, False]
    del content["video_metadata"][0]["fps"]
    with pytest.raises(DataError, match=r"has no fps\. Fix"):
        scene_of(tmp_path, content)


@pytest.mark.parametrize(
    ("frame", "expected"), [(10, True), (42, None), (48, False), (87, None), (60, False), (99, True)], ids=str
)
def test_an_object_without_annotations_for_long_is_out_of_view(
    tmp_path: Path, frame: int, expected: bool | None
) -> None:
    scene = scene_of(tmp_path, document(seen={"cup": [(0, 40), (90, 100)]}))
    assert scene.is_visible("cup", frame) is expected


def test_little_of_an_object_is_neither_seen_nor_absent(tmp_path: Path) -> None:
    content = document(frames=10)
    small = graph_document(OBJECTS, frames=10, boxes={"cup": (10, 10, 8, 8)})
    content["annotations"][0] = small["annotations"][0]
    scene = scene_of(tmp_path, content)
    assert [scene.is_visible("cup", frame) for frame in (0, 1)] == [None, True]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({}, [(10, 30), (50, 70)]),
        ({"right": [(0, 30), (50, 100)]}, [(10, 70)]),
        ({"cup": [(0, 30), (50, 100)]}, [(10, 70)]),
    ],
    ids=["the hand lets go in view", "the hand is out of the picture", "the thing is hidden"],
)
def test_a_use_continues_while_hand_or_thing_is_out_of_sight(
    tmp_path: Path, seen: dict[str, list[tuple[int, int]]], expected: list[tuple[int, int]]
) -> None:
    relations = [("right", HOLDS, "holds", "cup", (10, 30)), ("right", HOLDS, "holds", "cup", (50, 70))]
    scene = scene_of(tmp_path, document(relations=relations, seen=seen))
    assert [(use.start, use.end) for use in scene.uses] == expected


def test_a_short_gap_ends_no_use_and_other_contacts_continue_in_it(tmp_path: Path) -> None:
    relations = [("right", HOLDS, "touches", "cup", (10, 30)), ("right", HOLDS, "holds", "cup", (34, 70))]
    (use,) = scene_of(tmp_path, document(relations=relations)).uses
    assert (use.side, use.thing.id, use.start, use.end) == ("right", "cup", 10, 70)
    assert use.contacts == (("touches", 10, 30), ("holds", 34, 70))
    assert use.begins


def test_a_use_does_not_begin_or_end_where_the_video_or_the_hand_does(tmp_path: Path) -> None:
    relations = [("right", HOLDS, "holds", "cup", (0, 40)), ("left", HOLDS, "holds", "cup", (20, 60))]
    uses = scene_of(tmp_path, document(relations=relations, seen={"left": [(20, 60)]})).uses
    assert [(use.side, use.begins) for use in uses] == [("right", False), ("left", False)]


def test_only_values_that_exclude_each_other_change(tmp_path: Path) -> None:
    attributes = [
        ("cup", "state", "empty", (0, 40)),
        ("cup", "state", "being filled", (40, 60)),
        ("cup", "state", "full", (60, 70)),
        ("cup", "state", "filled", (70, 100)),
        ("pot", "state", "upright", (0, 50)),
        ("pot", "state", "tilted", (50, 60)),
        ("pot", "state", "pouring", (60, 100)),
    ]
    changes = scene_of(tmp_path, document(attributes=attributes)).changes
    assert [(before.value, after.value, after.start) for before, after in changes] == [
        ("empty", "being filled", 40),
        ("upright", "tilted", 50),
        ("being filled", "full", 60),
    ]


def test_a_value_continues_across_a_gap_in_which_the_thing_is_hidden(tmp_path: Path) -> None:
    attributes = [("cup", "state", "empty", (0, 30)), ("cup", "state", "empty", (60, 100))]
    scene = scene_of(tmp_path, document(attributes=attributes, seen={"cup": [(0, 30), (60, 100)]}))
    assert [(value.start, value.end) for value in scene.values] == [(0, 100)]


def test_a_thing_has_the_name_that_people_use(tmp_path: Path) -> None:
    scene = table(tmp_path, {"store": "box"}, attributes=[("store", "type", "capsule store", 0, 120)])
    assert scene.things["store"].name == "capsule box"


def test_a_contact_recorded_on_single_frames_lasts_over_short_gaps(tmp_path: Path) -> None:
    rows = [("right", HOLDS, "holds", "cup", (start, start + 1)) for start in (20, 25, 30, 50)]
    scene = scene_of(tmp_path, document(relations=rows))
    assert [use.contacts for use in scene.uses] == [(("holds", 20, 31),), (("holds", 50, 51),)]
