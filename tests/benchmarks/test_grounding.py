"""Phrase grounding: which questions are asked of a frame, rule by rule (upstream.md 1.5)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from barista_bench.benchmarks.barista.frame_index import even_places
from barista_bench.benchmarks.barista.phrases import AS_SOURCE, AS_TARGET, Link, Seen, is_color, subject_of
from barista_bench.builders.rows import from_row, row_features, to_row
from barista_bench.prompt import BoxFormat, ImagePart, TextPart
from barista_bench.scene_graph import SceneGraph, SceneObject, VideoGraph
from barista_bench.task import Example, Sampling, SkippedExample, content_seed
from tests.benchmarks.grounding_kit import (
    CUP2,
    CUP3,
    EVERY_FRAME,
    GRID,
    TASK,
    Content,
    color,
    derive,
    derived,
    on_frame,
    scene,
)
from tests.releases import BUTTON, CUP, HEIGHT, LEFT, MACHINE, RIGHT, WIDTH, document, relation, span, write_release

SNAPSHOT = Path(__file__).parent / "snapshots" / "grounding.txt"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("grounding"), video=False)


@pytest.fixture(scope="module")
def example(root: Path) -> Example:
    return on_frame(derive(root), 12)["coffee cup"]


def test_published_sampling_is_the_default() -> None:
    assert TASK.sampling == Sampling(limit=1000, seed=42, fraction=0.1, min_area=100)
    assert (TASK.name, TASK.upstream_name, TASK.primary, TASK.sample_score) == (
        "grounding",
        "grounding",
        "map",
        "mean_best_iou",
    )


def test_one_phrase_a_category_where_there_is_something_to_say(root: Path) -> None:
    found = on_frame(derive(root), 25)
    # On frame 25: no left hand; the right hand holds the cup on [5, 15) and [30, 40) only. The machine has no colour,
    # and what is part of it or under it is told from the other side only.
    assert {name: e.inputs["phrase"] for name, e in found.items()} == {
        "button": "button that is part of the coffee machine",
        "coffee cup": "white coffee cup under the coffee machine",
    }
    assert list(on_frame(derive(root), 12)) == ["button", "coffee cup", "left hand", "right hand"]
    assert on_frame(derive(root), 12)["left hand"].inputs["phrase"] == "left hand holding the coffee cup"


def test_frames_lie_in_an_activity_and_carry_a_relation(tmp_path: Path) -> None:
    content = document()
    content["activities"] = [
        {"image_range": span(3, 6), "activity_class_id": "a", "display_name": "Place cup"},
        {"image_range": span(10, 20), "activity_class_id": None, "display_name": "Press button"},
        {"image_range": span(30, 40), "activity_class_id": "b", "display_name": "Press button"},
    ]
    content["relations"] = [relation(CUP, MACHINE, "position", "under", (5, 12), (35, 38))]
    assert [e.frames[0].frame_index for e in derived(tmp_path, content)] == [5, 35, 36, 37]


def test_a_relation_needs_both_ends_boxed(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(LEFT, CUP, "human_actions", "holds", (0, 40))]
    frames = {e.frames[0].frame_index for e in derived(tmp_path, content)}
    assert frames == set(range(20)), "the left hand is seen on frames 0 to 19"


def test_the_fraction_is_taken_evenly_from_each_video(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_release(tmp_path, name, video=False)
    found = derive(tmp_path, Sampling(fraction=0.1))
    frames = sorted({(e.video_id, e.frames[0].frame_index) for e in found})
    assert frames == [(v, f) for v in "ab" for f in (0, 13, 26, 39)]
    assert {e.frames[0].frame_index for e in derive(tmp_path, Sampling(fraction=0.01))} == {20}
    cut = Sampling(fraction=0.5, frame_range=(10, 18), frame_step=2)
    assert {e.frames[0].frame_index for e in derive(tmp_path, cut)} == {10, 16}


@given(st.integers(1, 500), st.data())
def test_even_places_are_different_and_reach_both_ends(length: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, length))
    places = even_places(length, count)
    assert len(set(places)) == count
    assert 0 <= places[0] <= places[-1] < length
    assert count == 1 or (places[0], places[-1]) == (0, length - 1)


def test_small_objects_are_left_out(root: Path) -> None:
    # The button is 4 x 4 pixels, the left hand 10 x 16.
    assert "button" not in on_frame(derive(root, Sampling(min_area=16.5)), 12)
    assert "button" in on_frame(derive(root, Sampling(min_area=16)), 12)
    assert set(on_frame(derive(root, Sampling(min_area=161)), 12)) == {"coffee cup", "right hand"}


def test_unknown_objects_are_neither_asked_for_nor_named(tmp_path: Path) -> None:
    content = document()
    content["categories"].append({"id": "c-unknown", "name": "unknown"})
    content["object_id_to_category_id"][MACHINE] = "c-unknown"
    content["attributes"].append(color(MACHINE, "red"))
    found = on_frame(derived(tmp_path, content), 25)
    assert {name: e.inputs["phrase"] for name, e in found.items()} == {"coffee cup": "white coffee cup"}


@pytest.mark.parametrize(
    ("value", "of_source", "of_target"),
    [
        ("under", "under the jar", None),
        ("on", "on the jar", None),
        ("attached to", "attached to the jar", None),
        ("part of", "that is part of the jar", None),
        ("inside", "inside the jar", "containing the jar"),
        ("contains", "containing the jar", "inside the jar"),
        ("pulls", "pulling the jar", "pulled by the jar"),
        ("pushes", "pushing the jar", "pushed by the jar"),
        ("presses", "pressing the jar", "pressed by the jar"),
        ("holds", "holding the jar", "held by the jar"),
        ("touches", "touching the jar", "touched by the jar"),
        ("turns", "turning the jar", "turned by the jar"),
        ("looks at", None, None),
    ],
)
def test_words_of_both_directions(value: str, of_source: str | None, of_target: str | None) -> None:
    jar = SceneObject("j", "jar")
    assert Link(value, jar, True, 0).words == of_source
    assert Link(value, jar, False, 0).words == of_target
    assert Link(value, SceneObject("u", "unknown"), True, 0).words is None
    assert len(AS_SOURCE) == 12
    assert AS_TARGET.keys() < AS_SOURCE.keys()


def test_colours_are_sorted_and_those_that_say_nothing_left_out(tmp_path: Path) -> None:
    content = scene(
        attributes=[
            color(CUP, "white"),
            color(CUP, "black", 0, 20),
            color(CUP, "coffee"),
            color(LEFT, "skin"),
            {**color(CUP, "hot"), "attribute_type": "state"},
        ],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    found = derived(tmp_path, content)
    assert [on_frame(found, f)["coffee cup"].inputs["phrase"] for f in (19, 20)] == [
        "black white coffee cup",
        "white coffee cup",
    ]
    assert "left hand" not in on_frame(found, 12), "neither colour nor relation: no example"


def test_a_relation_outweighs_colours_then_colours_count_then_the_first_wins(tmp_path: Path) -> None:
    colors = [color(CUP, "white"), color(CUP, "black"), color(CUP2, "red"), color(CUP3, "blue")]
    on = [relation(cup, MACHINE, "position", "on", (0, 40)) for cup in (CUP2, CUP3)]
    described = []
    for name, content in (
        ("a", scene(attributes=colors, relations=on)),
        ("b", scene(attributes=[*colors, color(CUP3, "grey")], relations=on)),
        ("c", scene(attributes=colors, relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))])),
    ):
        found = derived(tmp_path / name, content)
        described.append(on_frame(found, 12)["coffee cup"].inputs["phrase"])
    assert described == [
        "red coffee cup on the coffee machine",
        "blue grey coffee cup on the coffee machine",
        "black white coffee cup",
    ]


def test_all_objects_that_fit_are_the_truth(tmp_path: Path) -> None:
    """Same set of colours, and a relation of the same value with the same category in either direction."""
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red"), color(CUP3, "red"), color(CUP3, "blue", 30, 40)],
        relations=[
            relation(CUP, MACHINE, "position", "on", (0, 40)),
            relation(MACHINE, CUP2, "position", "on", (0, 20)),
            relation(CUP3, MACHINE, "position", "on", (25, 35)),
            relation(CUP2, BUTTON, "position", "on", (20, 40)),
        ],
    )
    found = derived(tmp_path, content)
    cups = {f: on_frame(found, f)["coffee cup"] for f in (12, 22, 27, 32)}
    assert {f: e.evidence["object_ids"] for f, e in cups.items() if f != 32} == {
        12: [CUP, CUP2],
        22: [CUP],
        27: [CUP, CUP3],
    }
    assert cups[12].inputs["phrase"] == "red coffee cup on the coffee machine"
    assert cups[12].evidence["relation_rows"] == [0, 1]
    assert cups[12].evidence["attribute_rows"] == [0, 1]
    # With another colour the third cup is the richest, and no other fits.
    assert cups[32].inputs["phrase"] == "blue red coffee cup on the coffee machine"
    assert cups[32].evidence["object_ids"] == [CUP3]


def test_without_a_relation_the_colours_alone_decide(tmp_path: Path) -> None:
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red"), color(CUP3, "skin")],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    found = on_frame(derived(tmp_path, content), 3)["coffee cup"]
    assert found.inputs["phrase"] == "red coffee cup"
    assert found.evidence["object_ids"] == [CUP, CUP2]
    assert (found.metadata["relation"], found.metadata["objects"]) == ("", 2)


def test_the_relation_is_drawn_by_content_alone(tmp_path: Path) -> None:
    turned = document()
    turned["relations"] = turned["relations"][::-1]
    some = derived(tmp_path / "a", document())
    other = derived(tmp_path / "b", turned, Sampling(min_area=0, seed=7))
    phrases = [[e.inputs["phrase"] for e in found if e.label == "coffee cup"] for found in (some, other)]
    assert phrases[0] == phrases[1]
    both = {on_frame(some, f)["coffee cup"].inputs["phrase"] for f in range(20)}
    assert {"white coffee cup under the coffee machine", "white coffee cup held by the left hand"} <= both


def test_a_record_with_overlapping_ranges_counts_once(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(CUP, MACHINE, "position", "under", (0, 20), (10, 40))]
    found = on_frame(derived(tmp_path, content), 15)["coffee cup"]
    assert found.evidence["relation_rows"] == [0]


def test_an_example_is_whole(example: Example) -> None:
    assert example.example_id == "grounding:v1:12:coffee cup"
    assert (example.label, example.metadata["category"], example.metadata["colors"]) == (
        "coffee cup",
        "coffee cup",
        ["white"],
    )
    assert example.inputs["frame_width"] == WIDTH
    # The cup is [50, 30, 20, 20] in a frame of 96 x 64.
    assert example.target == {
        "boxes": [[50.0, 30.0, 70.0, 50.0]],
        "ground_truth_boxes": [[521, 469, 729, 781]],
        "bbox_format": "xyxy",
        "bbox_scale": 1000,
    }
    rows = [document()["annotations"][row] for row in example.evidence["instance_rows"]]
    assert [(a["object_id"], a["image_id"]) for a in rows] == [(CUP, 12)]
    assert example.evidence["object_ids"] == [CUP]
    assert example.evidence["related_object_id"] in (MACHINE, LEFT, RIGHT)
    assert example.metadata["activities"] == ["Place cup"]


def test_metadata_change_with_the_segment(root: Path) -> None:
    activities = [e.metadata["activities"] for e in derive(root) if e.label == "button"]
    assert activities == [["Place cup"]] * 20 + [["Press button"]] * 20


def test_a_box_without_area_on_the_grid_is_skipped(tmp_path: Path) -> None:
    content = document()
    content["annotations"] = [
        {**a, "bbox": [95.98, 10.0, 0.01, 40.0]} if a["object_id"] == CUP and a["image_id"] == 3 else a
        for a in content["annotations"]
    ]
    graph = SceneGraph(write_release(tmp_path, content=content, video=False))
    skipped = [e for e in TASK.examples(graph, EVERY_FRAME) if isinstance(e, SkippedExample)]
    assert [(s.frame.frame_index, s.reason) for s in skipped] == [(3, "a box of coffee cup has no area on the grid")]


def test_a_video_without_relations_or_activities_gives_nothing(tmp_path: Path) -> None:
    empty: Content = {"relations": [], "attributes": []}
    assert derived(tmp_path / "a", document() | empty) == []
    assert derived(tmp_path / "b", document() | {"activities": []}) == []


def test_the_prompt_says_format_and_phrase_and_nothing_of_the_target(example: Example) -> None:
    prompt = TASK.prompt(example, BoxFormat("yxyx", 1000))
    assert prompt.parts[0] == ImagePart(0)
    assert isinstance(prompt.parts[1], TextPart)
    assert f'"{example.inputs["phrase"]}"' in prompt.parts[1].text
    assert '{"bboxes": [[y_min, x_min, y_max, x_max], ...]}' in prompt.system
    assert "integers from 0 to 1000" in prompt.system
    blind = replace(example, target={}, evidence={}, metadata={}, label="")
    assert TASK.prompt(blind, GRID) == TASK.prompt(example, GRID)


def test_the_rendered_prompt_is_the_one_on_file(example: Example) -> None:
    fixed = replace(example, inputs={**example.inputs, "phrase": "white coffee cup held by the left hand"})
    formats = (BoxFormat("yxyx", 1000), BoxFormat("xyxy", None))
    rendered = "\n\n".join(f"=== {f} ===\n{TASK.prompt(fixed, f).as_text()}" for f in formats) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(rendered, encoding="utf-8")
    assert rendered == SNAPSHOT.read_text(encoding="utf-8")


def test_the_image_is_the_frame(example: Example) -> None:
    frame = np.full((HEIGHT, WIDTH, 3), 7, np.uint8)
    (image,) = TASK.images(example, [frame])
    assert np.array_equal(np.asarray(image), frame)


def test_examples_survive_a_dataset(root: Path) -> None:
    examples = derive(root, TASK.sampling)
    rows = [{**to_row(e, i, "0" * 64), "images": []} for i, e in enumerate(examples)]
    stored = Dataset.from_list(rows, features=row_features(TASK, "frozen"))
    assert [from_row(row) for row in stored] == examples


def test_the_same_release_gives_the_same_examples(root: Path) -> None:
    assert derive(root, TASK.sampling) == derive(root, TASK.sampling)


@st.composite
def _scenes(draw: st.DrawFn) -> Content:
    """Colours and relations of any kind, unknown and hidden ends among them, on any ranges; some boxes without area."""
    names, ranges = (CUP, LEFT, RIGHT, BUTTON, MACHINE), st.tuples(st.integers(0, 30), st.integers(1, 9))
    values = st.sampled_from(("under", "part of", "holds", "fits", "contains"))
    content = document()
    content["categories"][1]["name"] = draw(st.sampled_from(("coffee cup", "unknown", "button")))
    content["relations"] = [
        relation(*pair, "position", value, (start, start + length))
        for pair, value, (start, length) in draw(
            st.lists(st.tuples(st.permutations(names).map(lambda p: p[:2]), values, ranges), max_size=5)
        )
    ]
    content["attributes"] = [
        color(name, value, start, start + length)
        for name, value, (start, length) in draw(
            st.lists(st.tuples(st.sampled_from(names), st.sampled_from(("red", "skin", "cup")), ranges), max_size=4)
        )
    ]
    for place in draw(st.sets(st.integers(0, len(content["annotations"]) - 1), max_size=20)):
        content["annotations"][place]["bbox"] = [10.0, 10.0, 0.01, 5.0]
    return content


def _by_hand(video: VideoGraph, frame: int) -> dict[str, list[str] | None]:
    """Category to the objects meant, or None where one has no area; asked of the graph frame by frame."""
    if not any(s.class_id and s.start <= frame < s.end for s in video.activities()) or not video.relations(frame):
        return {}
    numbers = {item.id: number for number, item in enumerate(video.objects)}
    groups: dict[str, list[Seen]] = {}
    for instance in video.instances(frame):
        item = instance.object
        links = [Link(r.value, r.target, True, r.row) for r in video.relations(frame) if r.source is item]
        links += [Link(r.value, r.source, False, r.row) for r in video.relations(frame) if r.target is item]
        stated = [a for a in video.attributes(frame) if a.object is item and a.type == "color"]
        colors = {a.value: a.row for a in reversed(stated) if is_color(a.value, item.category)}
        if item.category != "unknown":
            groups.setdefault(item.category, []).append(Seen(item, numbers[item.id], colors, links))
    found: dict[str, list[str] | None] = {}
    flat = {i.object.id for i in video.instances(frame) if i.bbox[2] < 0.1}
    for category, group in sorted(groups.items()):
        subject = subject_of(group)
        if subject is not None:
            count = len(subject.links)
            seed = content_seed("grounding", video.video_id, frame, subject.described.object.id)
            meant = [seen.object.id for seen in subject.phrase(seed % count if count > 1 else 0).truth]
            found[category] = None if flat & set(meant) else meant
    return found


@settings(max_examples=60, deadline=None)
@given(content=_scenes())
def test_candidates_and_skips_are_those_that_asking_frame_by_frame_finds(
    content: Content, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = write_release(tmp_path_factory.mktemp("scene"), content=content, video=False)
    graph = SceneGraph(root)
    video = graph["v1"]
    by_hand = {frame: _by_hand(video, frame) for frame in range(video.frame_count)}
    every = [(f, category, meant) for f, found in by_hand.items() for category, meant in found.items()]
    found = list(TASK.examples(graph, EVERY_FRAME))
    examples = [(e.frames[0].frame_index, e.label, e.evidence["object_ids"]) for e in found if isinstance(e, Example)]
    assert examples == [item for item in every if item[2] is not None]
    skipped = [item.frame.frame_index for item in found if isinstance(item, SkippedExample)]
    assert skipped == [frame for frame, _, meant in every if meant is None]
