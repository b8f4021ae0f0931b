"""ViSTa's sets about effects: changes of state, joints, similar objects that change places, and two environments."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from barista_bench.benchmarks.vista.matching import RealWorld, VirtualHome
from barista_bench.benchmarks.vista.release import VistaRelease, open_release
from barista_bench.core.example import Example
from barista_bench.errors import DataError
from barista_bench.generate.candidates import Item, Tally
from barista_bench.generate.generator import generate
from barista_bench.generate.vista.clips import Sequences, foundation_candidates
from barista_bench.generate.vista.effects import effect_candidates
from barista_bench.generate.vista.family import FOUNDATION, VistaFamily
from barista_bench.generate.vista.release import RENDERED_FILE
from barista_bench.generate.vista.statements import LeftmostAtEnd, Unjoined
from barista_bench.media.encoding import encode_video
from barista_bench.mini.kitchen import VideoPlan, plan_kitchen, write_video
from barista_bench.scene_graph.domain import load_domain
from tests.conftest import MadeOnce
from tests.generate.graphs import annotation_file, scene_of, table
from tests.generate.test_proof import differing, faults, lines_of

KITCHEN = VideoPlan(index=1, seed=1, width=320, height=180, seconds=(6, 6), fps=15, order="shuffle")
"""Two white cups. The left one is put to the right of the other, which then moves to the left."""


@pytest.fixture(scope="module")
def shuffled(made_once: MadeOnce) -> Path:
    def make(out: Path) -> None:
        out.mkdir()
        write_video(KITCHEN, out)

    return made_once("mini/shuffled", make)


def cup_boxes(kitchen: Path, frame: int) -> dict[str, tuple[float, float]]:
    """The left and right edges of the cups in the picture, by object, from the annotation file."""
    document = json.loads((kitchen / KITCHEN.video_id / "coco_annotation.json").read_bytes())
    (cup,) = [row["id"] for row in document["categories"] if row["name"] == "coffee cup"]
    cups = {item for item, category in document["object_id_to_category_id"].items() if category == cup}
    rows = [row for row in document["annotations"] if row["image_id"] == frame and row["object_id"] in cups]
    return {row["object_id"]: (row["bbox"][0], row["bbox"][0] + row["bbox"][2]) for row in rows}


def test_two_equal_cups_that_change_places_are_a_tracking_set_that_boxes_prove(shuffled: Path, tmp_path: Path) -> None:
    generate(shuffled, tmp_path / "out", ["vista"], per_subtask=9)
    items = [row for row in lines_of(tmp_path / "out/vista.items.jsonl") if row["subtask"] == "object_tracking"]
    stays = {"The coffee cup that was leftmost at first is no longer the leftmost": False}
    for item in items:
        start, end = item["span"]
        first, last = (min(boxes := cup_boxes(shuffled, frame), key=boxes.__getitem__) for frame in (start, end - 1))
        (right,) = item["correct"]
        stays[item["choices"][right]["text"]] = first == last
        assert ("still" in item["choices"][right]["text"]) is (first == last)
    assert set(stays.values()) == {True, False}
    assert not list(faults(shuffled, tmp_path / "out", ("vista",)))
    assert not list(differing(tmp_path / "out", ("vista",)))
    (tracking,) = [each for each in open_release(tmp_path / "out/vista").sets.values() if each.type == "tracking"]
    assert len(tracking.videos) == len(items) == 2


@pytest.mark.parametrize(
    ("last_x", "third", "stays"),
    [
        (10, False, True),  # the left cup is still left of the other
        (200, False, False),  # it has passed the other
        (110, False, None),  # side by side: no box is clearly left
        (200, True, None),  # a third cup comes into the picture
    ],
)
def test_the_leftmost_is_decided_by_boxes_of_all_objects_of_the_kind(
    tmp_path: Path, last_x: int, *, third: bool, stays: bool | None
) -> None:
    def box_of(name: str, frame: int) -> tuple[int, int, int, int] | None:
        if name == "c":
            return (250, 100, 40, 40) if third and frame > 10 else None
        return (100, 100, 40, 40) if name == "b" else (10 if frame < 15 else last_x, 100, 40, 40)

    scene = scene_of(tmp_path, annotation_file(dict.fromkeys("abc", "coffee cup"), box_of, (320, 240), 30, 10.0))
    for is_said in (True, False):
        truth = LeftmostAtEnd(("a", "b"), "coffee cup", 0, 30, is_said).truth(scene)
        assert truth is (None if stays is None else stays is is_said)


@pytest.mark.full
def test_a_kitchen_with_effects_gives_sets_about_them(tmp_path: Path) -> None:
    (tmp_path / "kitchen").mkdir()
    for plan in plan_kitchen(videos=1, width=320, height=180, fps=10, effects=True)[1:]:
        write_video(plan, tmp_path / "kitchen")
    generate(tmp_path / "kitchen", tmp_path / "out", ["vista"], per_subtask=9)
    subtasks = {row["subtask"] for row in lines_of(tmp_path / "out/vista.items.jsonl")}
    assert {"clean", "heat", "object_tracking"} <= subtasks
    assert not list(faults(tmp_path / "kitchen", tmp_path / "out", ("vista",)))


THINGS = {"right": "right hand", "cup": "coffee cup", "lid": "lid", "jar": "jar"}


def sets_of(root: Path, things: Mapping[str, str] = THINGS, **said: object) -> dict[str, list[Item]]:
    family = VistaFamily(load_domain())
    scene = table(root, things, **said)  # type: ignore[arg-type]
    items = family.sample_items(list(family.decide_all(scene, Tally())), 100, 0)
    for item in items:
        truths = [choice.statement.truth(scene) for choice in item.choices]
        assert truths == [at in item.correct for at in range(len(truths))]
    subtasks = dict.fromkeys(item.candidate.subtask for item in items)
    return {subtask: [item for item in items if item.candidate.subtask == subtask] for subtask in subtasks}


def test_a_cup_that_is_washed_and_used_again_is_a_set_of_cleaning(tmp_path: Path) -> None:
    values = [("cup", "state", "dirty", 0, 40), ("cup", "state", "clean", 40, 80), ("cup", "state", "dirty", 80, 120)]
    texts = [item.candidate.right_text for item in sets_of(tmp_path, attributes=values)["clean"]]
    assert texts == [
        "At first, the coffee cup is clean, and at the end it is dirty.",
        "At first, the coffee cup is dirty, and at the end it is clean.",
    ]


def test_a_glass_that_cools_down_and_a_thing_that_is_sliced_are_sets(tmp_path: Path) -> None:
    values = [("glass", "state", value, 40 * at, 40 * at + 40) for at, value in enumerate(("hot", "cold", "hot"))]
    sets = sets_of(tmp_path / "glass", {"right": "right hand", "glass": "glass"}, attributes=values)
    assert [item.candidate.right_text for item in sets["cool"]] == [
        "At first, the glass is cold, and at the end it is hot.",
        "At first, the glass is hot, and at the end it is cold.",
    ]
    words = VistaFamily(load_domain()).words
    words = msgspec.structs.replace(words, changes={"slice": {"jar": {"whole": "whole", "broken": "in pieces"}}})
    values = [("jar", "state", "whole", 0, 60), ("jar", "state", "broken", 60, 120)]
    asked = list(foundation_candidates(table(tmp_path, THINGS, attributes=values), [], words))
    assert {row.slots["state"] for row in asked if row.subtask == "sliced_v_whole"} == {"whole", "in pieces"}


def test_a_change_that_happens_is_asked_beside_an_action_that_leaves_the_state(tmp_path: Path) -> None:
    domain = msgspec.structs.replace(load_domain())
    words = VistaFamily(domain).words
    words = msgspec.structs.replace(words, changes={"heat": {"jar": {"cold": "cold", "hot": "hot"}}})
    acts = [("Shake jar", 0, 20), ("Place jar", 60, 80)]
    contacts = [("right", "holds", "jar", 2, 18), ("right", "holds", "jar", 62, 78)]
    values = [("jar", "state", "cold", 0, 40), ("jar", "state", "hot", 40, 120)]
    scene = table(tmp_path, THINGS, attributes=values, activities=acts, contacts=contacts)
    asked = list(effect_candidates(scene, Sequences(scene, 30).clips, words))
    changes = {(row.slots["before"], row.slots["after"]) for row in asked if row.subtask == "heat"}
    assert changes == {("cold", "hot"), ("cold", "still cold"), ("hot", "still hot")}


def test_a_lid_that_is_put_on_a_jar_and_taken_off_is_a_set_of_interaction(tmp_path: Path) -> None:
    acts = [("Attach lid", 0, 20), ("Remove lid", 40, 60)]
    contacts = [("right", "holds", "lid", 2, 18), ("right", "holds", "lid", 42, 58)]
    places = [("lid", "attached to", "jar", 15, 45)]
    items = sets_of(tmp_path, activities=acts, contacts=contacts, places=places)["object_interaction"]
    assert [item.candidate.right_text for item in items] == [
        "In the end, the lid is attached to the jar.",
        "In the end, the lid is not attached to the jar.",
    ]
    scene = table(tmp_path / "again", THINGS, places=places)
    assert [Unjoined("lid", "attached to", "jar", frame).truth(scene) for frame in (30, 100)] == [False, True]


def test_a_clip_of_an_action_is_asked_about_once(tmp_path: Path) -> None:
    """By its action, by the place where it ends, or by what it joins."""
    acts = [("Insert lid", 0, 20), ("Remove lid", 40, 60), ("Insert cup", 70, 90)]
    contacts = [("right", "holds", "lid", 2, 18), ("right", "holds", "lid", 42, 58), ("right", "holds", "cup", 72, 88)]
    scene = table(tmp_path, THINGS, activities=acts, contacts=contacts, places=[("lid", "attached to", "jar", 15, 45)])
    family = VistaFamily(load_domain())
    asked = Counter(c.span for c in family.decide_all(scene, Tally()) if c.subtask in FOUNDATION)
    assert max(asked.values()) > 1
    used = Counter(c.span for c in family.collect_candidates(scene, Tally(), 99, 0) if c.subtask in FOUNDATION)
    assert used.keys() == asked.keys()
    assert set(used.values()) == {1}


def test_a_place_that_the_domain_does_not_know_is_no_set(tmp_path: Path) -> None:
    things = {"right": "right hand", "cup": "coffee cup", "lid": "lid"}
    places, activities = [("lid", "orbits", "cup", 0, 90)], [("Open lid", 10, 50)]
    scene = table(tmp_path, things, contacts=[("right", "holds", "lid", 10, 50)], places=places, activities=activities)
    asked = {candidate.subtask for candidate in VistaFamily(load_domain()).candidates(scene)}
    assert asked
    assert "object_interaction" not in asked


def test_a_rendered_version_of_the_same_graph_is_a_second_environment(shuffled: Path, tmp_path: Path) -> None:
    kitchen, (video,) = tmp_path / "kitchen", [KITCHEN.video_id]
    shutil.copytree(shuffled, kitchen)
    rendered = kitchen / video / RENDERED_FILE
    shutil.copy(kitchen / video / "video.mp4", rendered)
    generate(kitchen, tmp_path / "out", ["vista"], per_subtask=9)
    release = open_release(tmp_path / "out/vista")
    assert isinstance(release, VistaRelease)
    assert list(release.problems) == []
    rows = [list(task().examples(release, task.sampling)) for task in (RealWorld, VirtualHome)]
    asked = [[row for row in each if isinstance(row, Example)] for each in rows]
    assert [len(each) for each in asked] == [len(rows[0])] * 2
    for filmed, drawn in zip(*asked, strict=True):
        assert filmed.video_id.removeprefix("real_life/") == drawn.video_id.removeprefix("alfred/")
        assert (filmed.evidence["graph"], filmed.target) == (drawn.evidence["graph"], drawn.target)
        assert filmed.evidence["graph"]
    encode_video(rendered, [np.zeros((32, 32, 3), np.uint8)], size=(32, 32), fps=15)
    with pytest.raises(DataError, match=r"rendered\.mp4.*Fix"):
        generate(kitchen, tmp_path / "again", ["vista"], per_subtask=9)
