"""Changes within a clip, rule by rule (upstream.md 1.10), on keyframes 0, 4, ..., 20: windows 0..2 and 18..22."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Change, Clip, clips, detect_changes
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.task import Sampling
from tests.releases import BUTTON, CUP, LEFT, MACHINE, RIGHT, document, relation, span, write_release
from tests.releases import CATEGORIES as OBJECTS

SAMPLING = Sampling(frames=6, spacing=4)
CLIP = Clip(0, (0, 4, 8, 12, 16, 20))


def graph(root: Path, content: dict[str, Any]) -> VideoGraph:
    return SceneGraph(write_release(root, content=content, video=False))["v1"]


def changes(root: Path, content: dict[str, Any], category: str) -> list[Change]:
    return detect_changes(graph(root, content), CLIP).get(category, [])


def quiet() -> dict[str, Any]:
    """The small document with nothing that could change."""
    return {**document(), "attributes": [], "relations": [], "activities": []}


def attribute(name: str, value: str, *ranges: tuple[int, int], kind: str = "state") -> dict[str, Any]:
    return {
        "object_id": name,
        "attribute_type": kind,
        "value": value,
        "image_ranges": [span(*item) for item in ranges],
    }


def activity(name: str, start: int, end: int, class_id: str | None = "a") -> dict[str, Any]:
    return {"image_range": span(start, end), "activity_class_id": class_id, "display_name": name}


def unbox(content: dict[str, Any], name: str, frames: set[int]) -> None:
    content["annotations"] = [
        a for a in content["annotations"] if a["object_id"] != name or a["image_id"] not in frames
    ]


def rename(content: dict[str, Any], name: str, category: str) -> None:
    """Give one object another category; the small document has one category an object."""
    for item in content["categories"]:
        if item["name"] == OBJECTS[name]:
            item["name"] = category


@pytest.mark.parametrize(
    ("sampling", "starts"),
    [
        (SAMPLING, {0: 0}),  # a second clip would need frame 44 of 40
        (Sampling(frames=6, spacing=2), {0: 0, 1: 12, 2: 24}),
        (Sampling(frames=6, spacing=2, frame_range=(1, 35)), {1: 12, 2: 24}),
        (Sampling(frames=6, spacing=2, frame_range=(0, 34)), {0: 0, 1: 12}),
        (Sampling(frames=6, spacing=24), {}),
    ],
)
def test_clips_do_not_overlap_and_are_whole(tmp_path: Path, sampling: Sampling, starts: dict[int, int]) -> None:
    found = list(clips(graph(tmp_path, document()), sampling))
    assert {clip.index: clip.keyframes[0] for clip in found} == starts
    for clip in found:
        assert clip.keyframes == tuple(clip.keyframes[0] + sampling.spacing * i for i in range(6))


def test_nothing_changes_in_a_quiet_clip(tmp_path: Path) -> None:
    assert detect_changes(graph(tmp_path, quiet()), CLIP) == {}


@pytest.mark.parametrize(
    ("attributes", "kinds"),
    [
        ([attribute(MACHINE, "close", (0, 10)), attribute(MACHINE, "open", (10, 40))], ["opened"]),
        ([attribute(MACHINE, "open", (0, 10)), attribute(MACHINE, "close", (10, 40))], ["closed"]),
        ([attribute(MACHINE, "extracting", (10, 40))], ["started extracting"]),
        ([attribute(MACHINE, "rinsing", (0, 10))], ["stopped rinsing"]),
        ([attribute(MACHINE, "idle", (0, 10)), attribute(MACHINE, "rinsing", (10, 40))], ["started rinsing"]),
        (
            [attribute(MACHINE, "extracting", (0, 9)), attribute(MACHINE, "rinsing", (9, 40))],
            ["started rinsing", "stopped extracting"],
        ),
        ([attribute(MACHINE, "open", (10, 40))], []),  # nothing says that it was closed before
        ([attribute(MACHINE, "open", (0, 10))], []),
        ([attribute(MACHINE, "empty", (0, 10)), attribute(MACHINE, "full", (10, 40))], []),  # has no name
        ([attribute(MACHINE, "extracting", (0, 40))], []),
        ([attribute(MACHINE, "extracting", (5, 15))], []),  # only the windows are compared
        ([attribute(MACHINE, "extracting", (20, 40))], ["started extracting"]),  # 3 of 5 frames
        ([attribute(MACHINE, "extracting", (21, 40))], []),  # 2 of 5
        ([attribute(MACHINE, "extracting", (18, 20), (22, 40))], ["started extracting"]),
        # Types are compared apart.
        ([attribute(MACHINE, "close", (0, 10), kind="x"), attribute(MACHINE, "open", (10, 40), kind="y")], []),
        ([attribute(MACHINE, "close", (0, 10), kind="x"), attribute(MACHINE, "open", (10, 40), kind="x")], ["opened"]),
    ],
)
def test_state_changes_compare_the_usual_values(tmp_path: Path, attributes: list[Any], kinds: list[str]) -> None:
    found = changes(tmp_path, {**quiet(), "attributes": attributes}, "state_change")
    assert [change["kind"] for change in found] == kinds
    for change in found:
        assert (change["subject"], change["object_ids"]) == ("coffee machine", [MACHINE])
        assert (change["start"], change["end"]) == (0, 20)
        assert change["rows"] == list(range(len(attributes)))


@pytest.mark.parametrize(
    ("hidden", "found"),
    [
        ({0}, True),  # 2 frames of the first window are left
        ({0, 1}, False),
        ({18, 19, 20}, True),
        ({18, 19, 20, 21}, False),
        (set(range(3, 18)), True),
    ],
)
def test_changing_objects_are_persistent(tmp_path: Path, hidden: set[int], found: bool) -> None:
    content = {**quiet(), "attributes": [attribute(CUP, "close", (0, 9)), attribute(CUP, "open", (9, 40))]}
    content["relations"] = [relation(CUP, MACHINE, "position", "under", (9, 40))]
    unbox(content, CUP, hidden)
    assert bool(changes(tmp_path, content, "state_change")) is found
    assert bool(changes(tmp_path, content, "relation_change")) is found


def timeline(found: list[Change], hand: str) -> list[tuple[list[str], int, int]]:
    return [(c["objects"], c["start"], c["end"]) for c in found if c["subject"] == hand]


def test_hands_have_timelines_of_what_they_touch(tmp_path: Path) -> None:
    # Left is seen on 0..19 and holds throughout; right is seen from 10 and holds on 10..14.
    found = changes(tmp_path, document(), "action_transition")
    assert timeline(found, "left hand") == [(["coffee cup"], 0, 16), ([], 20, 20)]
    assert timeline(found, "right hand") == [([], 0, 8), (["coffee cup"], 12, 12), ([], 16, 20)]
    assert [change["rows"] for change in found] == [[2], [], [], [3], []]
    assert found[0]["object_ids"] == [LEFT, CUP]


def test_a_hand_that_touches_the_same_throughout_makes_no_transition(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [relation(LEFT, CUP, "human_actions", "holds", (0, 40))]}
    content["annotations"] += [{**a, "object_id": LEFT} for a in content["annotations"] if a["object_id"] == CUP]
    assert changes(tmp_path, content, "action_transition") == []


@pytest.mark.parametrize(
    ("relations", "expected"),
    [
        # More than half of the frames within 2 of a keyframe: 3 of 5, and 2 of the 3 at the video's start.
        ([relation(LEFT, CUP, "human_actions", "holds", (0, 2))], [(["coffee cup"], 0, 0), ([], 4, 20)]),
        ([relation(LEFT, CUP, "human_actions", "holds", (0, 1))], []),
        ([relation(LEFT, CUP, "human_actions", "holds", (6, 9))], [([], 0, 4), (["coffee cup"], 8, 8), ([], 12, 20)]),
        ([relation(LEFT, CUP, "human_actions", "holds", (6, 8))], []),
        # Categories make a set, whatever the verb.
        (
            [
                relation(LEFT, CUP, "human_actions", "holds", (0, 20)),
                relation(LEFT, BUTTON, "human_actions", "presses", (10, 20)),
            ],
            [(["coffee cup"], 0, 8), (["button", "coffee cup"], 12, 16), ([], 20, 20)],
        ),
        (
            [
                relation(LEFT, CUP, "human_actions", "holds", (0, 2)),
                relation(LEFT, CUP, "human_actions", "touches", (2, 40)),
            ],
            [(["coffee cup"], 0, 16), ([], 20, 20)],
        ),
        ([relation(LEFT, CUP, "position", "on", (0, 10))], []),  # no action
        ([relation(CUP, MACHINE, "human_actions", "holds", (0, 10))], []),  # no hand
    ],
)
def test_contact_is_what_most_frames_around_a_keyframe_show(
    tmp_path: Path, relations: list[Any], expected: list[Any]
) -> None:
    found = changes(tmp_path, {**quiet(), "relations": relations}, "action_transition")
    assert timeline(found, "left hand") == expected
    assert timeline(found, "right hand") == []


@pytest.mark.parametrize(
    ("relations", "expected"),
    [
        ([relation(CUP, MACHINE, "position", "under", (10, 40))], [("new", "under")]),
        ([relation(CUP, MACHINE, "position", "under", (0, 10))], [("lost", "under")]),
        ([relation(CUP, MACHINE, "position", "under", (0, 40))], []),
        ([relation(CUP, MACHINE, "position", "part of", (0, 10))], []),
        ([relation(CUP, MACHINE, "human_actions", "holds", (0, 10))], []),
        ([relation(CUP, MACHINE, "position", "under", (20, 40))], [("new", "under")]),  # 3 of 5
        ([relation(CUP, MACHINE, "position", "under", (21, 40))], []),  # 2 of 5
        ([relation(CUP, MACHINE, "position", "under", (18, 19), (20, 21), (22, 23))], [("new", "under")]),
        # Several records of one relation hold together.
        (
            [
                relation(CUP, MACHINE, "position", "under", (0, 20)),
                relation(CUP, MACHINE, "position", "under", (20, 40)),
            ],
            [],
        ),
        (
            [
                relation(CUP, MACHINE, "position", "under", (0, 10)),
                relation(CUP, MACHINE, "position", "on", (10, 40)),
            ],
            [("lost", "under"), ("new", "on")],
        ),
    ],
)
def test_relations_of_place_are_new_or_lost(tmp_path: Path, relations: list[Any], expected: list[Any]) -> None:
    found = changes(tmp_path, {**quiet(), "relations": relations}, "relation_change")
    assert [(change["kind"], change["value"]) for change in found] == expected
    for change in found:
        assert (change["subject"], change["objects"], change["object_ids"]) == (
            "coffee cup",
            ["coffee machine"],
            [CUP, MACHINE],
        )


def test_a_stable_relation_holds_on_half_of_the_frames_on_which_its_source_is_seen(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [relation(CUP, MACHINE, "position", "under", (21, 40))]}
    unbox(content, CUP, {18})
    assert [c["kind"] for c in changes(tmp_path, content, "relation_change")] == ["new"], "2 of 4 frames"


def test_unknown_objects_take_part_in_no_change(tmp_path: Path) -> None:
    content = {
        **quiet(),
        "attributes": [attribute(CUP, "close", (0, 9)), attribute(CUP, "open", (9, 40))],
        "relations": [
            relation(CUP, MACHINE, "position", "under", (10, 40)),
            relation(MACHINE, CUP, "position", "on", (10, 40)),
            relation(LEFT, CUP, "human_actions", "holds", (0, 10)),
        ],
    }
    assert set(detect_changes(graph(tmp_path / "a", content), CLIP)) == set(CATEGORIES) - {"activity_progression"}
    rename(content, CUP, "unknown")
    assert detect_changes(graph(tmp_path / "b", content), CLIP) == {}


def test_activities_progress_from_keyframe_to_keyframe(tmp_path: Path) -> None:
    content = quiet()
    content["relations"] = [relation(RIGHT, CUP, "human_actions", "holds", (10, 11))]
    content["activities"] = [
        activity("Grasp cup", 0, 7),
        activity("Place cup", 7, 15),
        activity("Brew coffee", 0, 40),
        activity("Hidden", 13, 15),
        activity("No class", 7, 40, None),
    ]
    found = changes(tmp_path, content, "activity_progression")
    assert [(c["kind"], c["subject"], c["start"], c["end"]) for c in found] == [
        ("ended", "Grasp cup", 4, 8),
        ("started", "Place cup", 4, 8),
        ("ended", "Place cup", 12, 16),
        ("continuing", "Brew coffee", 0, 20),
    ]
    assert [c["rows"] for c in found] == [[0], [1], [1], [2]]
    assert [c["object_ids"] for c in found] == [[], [], [], [CUP]], "what hands act on meanwhile"


def test_the_end_frame_of_an_activity_counts(tmp_path: Path) -> None:
    content = {**quiet(), "activities": [activity("Place cup", 0, 20), activity("Press button", 20, 40)]}
    found = changes(tmp_path, content, "activity_progression")
    assert [(c["kind"], c["subject"]) for c in found] == [("started", "Press button"), ("continuing", "Place cup")]


def test_activities_that_only_go_on_are_no_change(tmp_path: Path) -> None:
    content = {**quiet(), "activities": [activity("Place cup", 0, 40)]}
    assert changes(tmp_path, content, "activity_progression") == []


def test_segments_of_one_name_are_one_activity(tmp_path: Path) -> None:
    content = {**quiet(), "activities": [activity("Stir", 0, 9), activity("Stir", 9, 18), activity("Sip", 10, 40)]}
    found = changes(tmp_path, content, "activity_progression")
    assert [(c["kind"], c["subject"], c["rows"]) for c in found] == [("started", "Sip", [2]), ("ended", "Stir", [1])]
