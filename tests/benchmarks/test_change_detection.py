"""Changes within a clip, rule by rule, on keyframes 0, 4, ..., 20: windows 0..2 and 18..22."""

from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.change_detection import Change, detect_changes
from barista_bench.benchmarks.barista.clips import ClipArrays, clips
from barista_bench.benchmarks.barista.temporal_vqa import TemporalSampling
from barista_bench.core.options import Sampling
from barista_bench.scene_graph import SceneGraph, VideoGraph
from tests.releases import (
    BUTTON,
    CATEGORIES as OBJECTS,
    CUP,
    FRAMES,
    LEFT,
    MACHINE,
    RIGHT,
    document,
    relation,
    span,
    write_release,
)

SAMPLING = TemporalSampling(frames=6, spacing=4)
KEYFRAMES = (0, 4, 8, 12, 16, 20)


def graph(root: Path, content: dict[str, Any]) -> VideoGraph:
    return SceneGraph(write_release(root, content=content, video=False))["v1"]


def detected(root: Path, content: dict[str, Any]) -> dict[Any, list[Change]]:
    return detect_changes(ClipArrays(graph(root, content), KEYFRAMES))


def changes(root: Path, content: dict[str, Any], category: str) -> list[Change]:
    return detected(root, content).get(category, [])


def quiet() -> dict[str, Any]:
    """The small document with nothing that could change."""
    return {**document(), "attributes": [], "relations": [], "activities": []}


def activity(name: str, start: int, end: int, class_id: str | None = "a") -> dict[str, Any]:
    return {"image_range": span(start, end), "activity_class_id": class_id, "display_name": name}


def attribute(name: str, value: str, *ranges: tuple[int, int], kind: str = "state") -> dict[str, Any]:
    return {"object_id": name, "attribute_type": kind, "value": value, "image_ranges": [span(*item) for item in ranges]}


def under(*ranges: tuple[int, int]) -> dict[str, Any]:
    return relation(CUP, MACHINE, "position", "under", *ranges)


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
        (SAMPLING, [0, 24]),
        (TemporalSampling(frames=6, spacing=2), [0, 12, 24, 36]),
        (TemporalSampling(frames=6, spacing=2, frame_range=(1, 35)), [12, 24]),
        (TemporalSampling(frames=6, spacing=2, frame_range=(0, 34)), [0, 12]),
        (TemporalSampling(frames=6, spacing=24), [0]),
        (TemporalSampling(frames=3, spacing=13), [0]),  # 39 is the last frame: a clip of one keyframe
        (TemporalSampling(frames=6, spacing=40), []),
    ],
)
def test_clips_do_not_overlap_and_the_last_may_be_shorter(
    tmp_path: Path, sampling: Sampling, starts: list[int]
) -> None:
    kept = list(clips(graph(tmp_path, document()), sampling))
    assert [keyframes[0] for keyframes in kept] == starts
    for keyframes in kept:
        whole = range(keyframes[0], keyframes[0] + sampling.frames * sampling.spacing, sampling.spacing)
        assert keyframes == tuple(frame for frame in whole if frame < FRAMES)


def test_nothing_changes_in_a_quiet_clip(tmp_path: Path) -> None:
    assert detected(tmp_path, quiet()) == {}


def states(before: str, after: str, at: int = 10, kind: str = "state") -> list[Any]:
    return [attribute(MACHINE, before, (0, at), kind=kind), attribute(MACHINE, after, (at, 40), kind=kind)]


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        (states("close", "open"), "opened"),
        (states("open", "close"), "closed"),
        (states("Open ", "CLOSE"), "closed"),
        (states("idle", "rinsing"), "started rinsing"),
        (states("rinsing", "idle"), "stopped rinsing"),
        (states("extracting", "idle"), "stopped extracting"),
        (states("extracting", "rinsing"), "stopped extracting"),
        (states("rinsing", "extracting"), "started extracting"),
        (states("extracting", " Extracting"), "started extracting"),  # two values as they are written
        (states("empty", "full"), ""),
        (states("idle", "open"), ""),
        (states("close", "open", kind="any type"), "opened"),
        ([attribute(MACHINE, "extracting", (10, 40))], ""),  # nothing is stated before
        ([attribute(MACHINE, "rinsing", (0, 10))], ""),
        ([*states("idle", "idle"), attribute(MACHINE, "extracting", (5, 15))], ""),  # only the windows are compared
        (states("idle", "rinsing", at=20), "started rinsing"),  # on 3 of 5 frames
        (states("idle", "rinsing", at=21), ""),  # on 2 of 5
        # Types are compared apart.
        ([attribute(MACHINE, "close", (0, 10), kind="x"), attribute(MACHINE, "open", (10, 40), kind="y")], ""),
        # Frames on which nothing is stated do not count.
        ([*states("idle", "idle", at=3), attribute(MACHINE, "rinsing", (20, 40), (20, 40))], ""),
        ([attribute(MACHINE, "idle", (0, 10)), attribute(MACHINE, "rinsing", (22, 23))], "started rinsing"),
        # Of two values that are stated as often the first counts, by frame and then by place in the file.
        ([attribute(MACHINE, "idle", (0, 3)), *states("open", "close")], ""),
        ([*states("open", "close"), attribute(MACHINE, "idle", (0, 3))], "closed"),
        (
            [attribute(MACHINE, "idle", (1, 3)), attribute(MACHINE, "open", (0, 2)), *states("x", "close", 3)[1:]],
            "closed",
        ),
        # An entry counts once on a frame, equal entries each.
        ([attribute(MACHINE, "idle", (0, 2), (0, 2)), *states("open", "close")], "closed"),
        ([*[attribute(MACHINE, "idle", (1, 3))] * 2, *states("open", "close")], ""),
    ],
)
def test_state_changes_compare_the_usual_values(tmp_path: Path, attributes: list[Any], kind: str) -> None:
    listed = changes(tmp_path, {**quiet(), "attributes": attributes}, "state_change")
    assert [change.kind for change in listed] == ([kind] if kind else [])
    for change in listed:
        assert (change.subject, change.object_ids) == ("coffee machine", [MACHINE])
        assert (change.start, change.end) == (0, 20)


def test_a_second_annotation_of_an_object_on_a_frame_states_its_attributes_again(tmp_path: Path) -> None:
    content = {**quiet(), "attributes": [attribute(MACHINE, "open", (0, 2)), attribute(MACHINE, "idle", (2, 3))]}
    content["attributes"].append(attribute(MACHINE, "close", (10, 40)))
    assert [c.kind for c in changes(tmp_path / "a", content, "state_change")] == ["closed"]
    again = [a for a in content["annotations"] if (a["object_id"], a["image_id"]) == (MACHINE, 2)]
    content["annotations"] += again * 2
    assert changes(tmp_path / "b", content, "state_change") == []


def test_the_rows_of_a_state_change_are_those_that_state_its_values(tmp_path: Path) -> None:
    attributes = [attribute(CUP, "white", (0, 40), kind="color"), *states("close", "open")]
    attributes += [attribute(MACHINE, "idle", (0, 1)), attribute(MACHINE, "open", (8, 12))]
    (change,) = changes(tmp_path, {**quiet(), "attributes": attributes}, "state_change")
    assert change.rows == [1, 2]


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ({0}, True),  # 2 frames of the first window are left
        ({0, 1}, False),
        ({18, 19, 21}, True),
        ({18, 19, 21, 22}, False),
        (set(range(3, 18)), True),
    ],
)
def test_changing_objects_are_persistent(tmp_path: Path, hidden: set[int], expected: bool) -> None:
    content = {**quiet(), "attributes": [attribute(CUP, "close", (0, 9)), attribute(CUP, "open", (9, 40))]}
    content["relations"] = [under((9, 40))]
    unbox(content, CUP, hidden)
    assert bool(changes(tmp_path, content, "state_change")) is expected
    assert bool(changes(tmp_path, content, "relation_change")) is expected


def test_two_annotations_on_one_frame_make_an_object_persistent(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [under((9, 40))]}
    unbox(content, CUP, {0, 1})
    content["annotations"] += [a for a in content["annotations"] if (a["object_id"], a["image_id"]) == (CUP, 2)]
    assert [c.kind for c in changes(tmp_path, content, "relation_change")] == ["new"]


def test_an_object_on_no_keyframe_has_no_changes_but_can_be_a_target(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [under((10, 40))]}
    content["relations"] += [relation(MACHINE, CUP, "position", "on", (10, 40))]
    content["relations"] += [relation(LEFT, CUP, "human_actions", "holds", (6, 11))]
    unbox(content, CUP, set(KEYFRAMES))
    view = detected(tmp_path, content)
    assert [(c.subject, c.objects) for c in view["relation_change"]] == [("coffee machine", ["coffee cup"])]
    assert timeline(view["action_transition"], "left hand") == [(["coffee cup"], 8, 8), ([], 12, 20)]


def test_equal_changes_are_one_of_all_their_objects(tmp_path: Path) -> None:
    content = {**quiet(), "attributes": states("close", "open")}
    content["attributes"] += [{**item, "object_id": CUP} for item in content["attributes"]]
    content["relations"] = [relation(name, BUTTON, "position", "on", (10, 40)) for name in (MACHINE, CUP)]
    assert len(changes(tmp_path / "a", content, "state_change")) == 2
    content["object_id_to_category_id"][CUP] = content["object_id_to_category_id"][MACHINE]
    seen = detected(tmp_path / "b", content)
    (state,), (moved,) = seen["state_change"], seen["relation_change"]
    assert (state.object_ids, state.rows) == ([MACHINE, CUP], [0, 1, 2, 3])
    assert (moved.object_ids, moved.rows) == ([MACHINE, BUTTON, CUP], [0, 1])


def timeline(listed: list[Change], hand: str) -> list[tuple[list[str], int, int]]:
    return [(c.objects, c.start, c.end) for c in listed if c.subject == hand]


def test_hands_have_timelines_of_touched_objects(tmp_path: Path) -> None:
    # The left hand is seen on 0..19, the right one from 10 on.
    content = {**quiet(), "relations": [holds(LEFT, (0, 13)), holds(RIGHT, (0, 15))]}
    listed = changes(tmp_path, content, "action_transition")
    assert timeline(listed, "left hand") == [(["coffee cup"], 0, 12), ([], 16, 20)]
    assert timeline(listed, "right hand") == [(["coffee cup"], 8, 12), ([], 16, 20)]
    assert [(change.number, change.rows) for change in listed] == [(0, [0]), (0, []), (1, [1]), (1, [])]
    assert listed[0].object_ids == [LEFT, CUP]


def holds(hand: str, *ranges: tuple[int, int], target: str = CUP) -> dict[str, Any]:
    return relation(hand, target, "human_actions", "holds", *ranges)


@pytest.mark.parametrize(
    ("relations", "expected"),
    [
        # What most frames within 2 of a keyframe show: 3 of 5, and 2 of the 3 at the video's start.
        ([holds(LEFT, (0, 2))], [(["coffee cup"], 0, 0), ([], 4, 20)]),
        ([holds(LEFT, (0, 1))], []),
        ([holds(LEFT, (6, 9))], [(["coffee cup"], 8, 8), ([], 12, 20)]),  # idle until then, which is not a step
        ([holds(LEFT, (6, 8))], []),
        # Equally frequent: the first one counts. Keyframe 20 sees the left hand on 18 and 19.
        ([holds(LEFT, (0, 19))], []),
        ([holds(LEFT, (0, 18))], [(["coffee cup"], 0, 16), ([], 20, 20)]),
        ([holds(LEFT, (0, 40))], []),  # the same throughout
        ([holds(LEFT, (0, 7), (14, 40))], [(["coffee cup"], 0, 4), ([], 8, 12), (["coffee cup"], 16, 20)]),
        # Categories make a set, with any verbs.
        (
            [holds(LEFT, (0, 40)), relation(LEFT, BUTTON, "human_actions", "presses", (10, 40))],
            [(["coffee cup"], 0, 8), (["button", "coffee cup"], 12, 20)],
        ),
        ([holds(LEFT, (0, 2)), relation(LEFT, CUP, "human_actions", "touches", (2, 40))], []),
        ([relation(LEFT, CUP, "position", "on", (0, 10))], []),  # no action
        ([relation(CUP, MACHINE, "human_actions", "holds", (0, 10))], []),  # no hand
    ],
)
def test_contact_is_what_most_frames_around_a_keyframe_show(
    tmp_path: Path, relations: list[Any], expected: list[Any]
) -> None:
    listed = changes(tmp_path, {**quiet(), "relations": relations}, "action_transition")
    assert timeline(listed, "left hand") == expected
    assert timeline(listed, "right hand") == []


def test_only_hands_that_are_called_so_have_timelines(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [holds(LEFT, (0, 10))]}
    rename(content, LEFT, "Left Hand")
    assert changes(tmp_path, content, "action_transition") == []


def test_two_hands_of_a_category_have_one_timeline(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [holds(LEFT, (0, 10)), holds(RIGHT, (10, 40), target=BUTTON)]}
    rename(content, RIGHT, "left hand")
    listed = changes(tmp_path, content, "action_transition")
    assert timeline(listed, "left hand") == [(["coffee cup"], 0, 8), (["button"], 12, 20)]


@pytest.mark.parametrize(
    ("relations", "expected"),
    [
        ([under((10, 40))], [("new", "under")]),
        ([under((0, 10))], [("lost", "under")]),
        ([under((0, 40))], []),
        ([relation(CUP, MACHINE, "position", "part of", (0, 10))], []),
        ([relation(CUP, MACHINE, "position", "Part of", (0, 10))], [("lost", "Part of")]),
        ([relation(CUP, MACHINE, "human_actions", "holds", (0, 10))], []),
        ([under((20, 40))], [("new", "under")]),  # 3 of 5
        ([under((21, 40))], []),  # 2 of 5
        ([under((18, 19), (20, 21), (22, 23))], [("new", "under")]),
        ([under((21, 40), (21, 40))], []),  # a frame counts once
        # Several records of one relation hold together.
        ([under((0, 20)), under((20, 40))], []),
        ([under((0, 10)), relation(CUP, MACHINE, "position", "on", (10, 40))], [("new", "on"), ("lost", "under")]),
    ],
)
def test_relations_of_place_are_new_or_lost(tmp_path: Path, relations: list[Any], expected: list[Any]) -> None:
    listed = changes(tmp_path, {**quiet(), "relations": relations}, "relation_change")
    assert [(change.kind, change.value) for change in listed] == expected
    for change in listed:
        assert (change.subject, change.objects, change.object_ids) == ("coffee cup", ["coffee machine"], [CUP, MACHINE])
        assert change.number == 0, "all that one object gains and loses is one change"


def test_the_target_of_a_changed_relation_need_not_be_persistent(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [relation(CUP, LEFT, "position", "on", (0, 40))]}
    listed = changes(tmp_path, content, "relation_change")
    assert [(c.kind, c.objects) for c in listed] == [("lost", ["left hand"])], "the hand is gone from frame 20 on"


def test_a_stable_relation_holds_on_half_of_the_frames_on_which_its_source_is_seen(tmp_path: Path) -> None:
    content = {**quiet(), "relations": [under((21, 40))]}
    unbox(content, CUP, {18})
    assert [c.kind for c in changes(tmp_path, content, "relation_change")] == ["new"], "2 of 4 frames"


@pytest.mark.parametrize(("name", "counts"), [("unknown", True), ("Unknown", False)])
def test_unknown_objects_have_no_changes_but_can_be_touched(tmp_path: Path, name: str, counts: bool) -> None:
    content = {
        **quiet(),
        "attributes": [attribute(CUP, "close", (0, 9)), attribute(CUP, "open", (9, 40))],
        "relations": [under((10, 40)), relation(MACHINE, CUP, "position", "on", (10, 40)), holds(LEFT, (0, 10))],
    }
    rename(content, CUP, name)
    by_kind = detected(tmp_path, content)
    assert timeline(by_kind["action_transition"], "left hand") == [([name], 0, 8), ([], 12, 20)]
    assert bool(by_kind.get("state_change")) is not counts
    assert {c.subject for c in by_kind["relation_change"]} == {"coffee machine", *([] if counts else [name])}


def progression(listed: list[Change]) -> list[tuple[int, str, str, int, int]]:
    return [(c.number, c.kind, c.subject, c.start, c.end) for c in listed]


def test_activities_progress_from_keyframe_to_keyframe(tmp_path: Path) -> None:
    content = quiet()
    content["relations"] = [relation(RIGHT, CUP, "human_actions", "holds", (10, 11))]
    content["activities"] = [
        activity("Grasp cup", 0, 7),
        activity("Place cup", 7, 15),
        activity("Brew coffee", 0, 40),
        activity("Hidden act", 13, 15),
        activity("No class", 7, 40, None),
    ]
    listed = changes(tmp_path, content, "activity_progression")
    assert progression(listed) == [
        (0, "ended", "Grasp cup", 4, 8),
        (0, "started", "Place cup", 4, 8),
        (0, "continuing", "Brew coffee", 4, 8),
        (1, "ended", "Place cup", 12, 16),
        (1, "continuing", "Brew coffee", 12, 16),
    ]
    assert [c.rows for c in listed] == [[0], [1], [2], [1], [2]]
    assert [c.object_ids for c in listed] == [[CUP], [CUP], [CUP], [CUP], [CUP]], "what hands act on meanwhile"


@pytest.mark.parametrize(
    ("activities", "expected"),
    [
        # The end frame counts.
        (
            [("Place cup", 0, 20), ("Press button", 20, 40)],
            [(0, "started", "Press button", 16, 20), (0, "continuing", "Place cup", 16, 20)],
        ),
        # A repeated step is listed once.
        (
            [("Stir milk", 4, 4), ("Stir milk", 12, 12)],
            [(0, "started", "Stir milk", 0, 4), (1, "ended", "Stir milk", 4, 8)],
        ),
        # A continuation without another event is no change.
        ([("Place cup", 0, 40)], []),
    ],
)
def test_the_list_names_a_step_where_it_begins_or_ends(
    tmp_path: Path, activities: list[tuple[str, int, int]], expected: list[tuple[int, str, str, int, int]]
) -> None:
    content = {**quiet(), "activities": [activity(*listed) for listed in activities]}
    assert progression(changes(tmp_path, content, "activity_progression")) == expected


def test_names_of_activities_are_read_without_identifiers_and_outer_blanks(tmp_path: Path) -> None:
    names = ("Stir milk", " Stir milk (#9492f2cd-333e-519b)", "Wipe  machine (quickly)", " (#0a)")
    content = {**quiet(), "activities": [activity(name, 6 * i, 6 * i + 5) for i, name in enumerate(names)]}
    listed = changes(tmp_path, content, "activity_progression")
    assert [(kind, subject) for _, kind, subject, _, _ in progression(listed)] == [
        ("ended", "Stir milk"),
        ("started", "Wipe  machine (quickly)"),
        ("ended", "Wipe  machine (quickly)"),
    ]
