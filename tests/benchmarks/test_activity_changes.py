"""Activities that end, start and go on from keyframe to keyframe."""

from __future__ import annotations

from pathlib import Path

from barista_bench.benchmarks.barista.change_detection import Change
from tests.benchmarks.clip_kit import activity, changes, quiet
from tests.releases import CUP, RIGHT, relation


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


def test_the_end_frame_of_an_activity_counts(tmp_path: Path) -> None:
    content = {**quiet(), "activities": [activity("Place cup", 0, 20), activity("Press button", 20, 40)]}
    listed = changes(tmp_path, content, "activity_progression")
    assert progression(listed) == [(0, "started", "Press button", 16, 20), (0, "continuing", "Place cup", 16, 20)]


def test_a_step_of_activities_that_repeats_itself_is_told_once(tmp_path: Path) -> None:
    content = {**quiet(), "activities": [activity("Stir milk", 4, 4), activity("Stir milk", 12, 12)]}
    listed = changes(tmp_path, content, "activity_progression")
    assert progression(listed) == [(0, "started", "Stir milk", 0, 4), (1, "ended", "Stir milk", 4, 8)]


def test_activities_that_only_go_on_are_no_change(tmp_path: Path) -> None:
    content = {**quiet(), "activities": [activity("Place cup", 0, 40)]}
    assert changes(tmp_path, content, "activity_progression") == []


def test_names_of_activities_are_read_without_identifiers_and_outer_blanks(tmp_path: Path) -> None:
    names = ("Stir milk", " Stir milk (#9492f2cd-333e-519b)", "Wipe  machine (quickly)", " (#0a)")
    content = {**quiet(), "activities": [activity(name, 6 * i, 6 * i + 5) for i, name in enumerate(names)]}
    listed = changes(tmp_path, content, "activity_progression")
    assert [(kind, subject) for _, kind, subject, _, _ in progression(listed)] == [
        ("ended", "Stir milk"),
        ("started", "Wipe  machine (quickly)"),
        ("ended", "Wipe  machine (quickly)"),
    ]
