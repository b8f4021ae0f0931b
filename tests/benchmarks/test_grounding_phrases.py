"""Phrase grounding: the content of a phrase about an object, and the objects that fit it."""

import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from barista_bench.benchmarks.barista.grounding import GroundingSampling
from barista_bench.core.options import Sampling
from tests.answering import on_frame
from tests.benchmarks.grounding_kit import CUP2, CUP3, color, derive, derived, phrases, scene
from tests.releases import BUTTON, CUP, LEFT, MACHINE, document, relation, write_release


@pytest.mark.parametrize(
    ("value", "of_source", "of_target"),
    [
        ("under", "under", None),
        ("on", "on", None),
        ("attached to", "attached to", None),
        ("part of", "part of", None),
        ("inside", "inside", "containing"),
        ("contains", "containing", "inside"),
        ("pulls", "pulling", "pulled by"),
        ("pushes", "pushing", "pushed by"),
        ("presses", "pressing", "pressed by"),
        ("holds", "holding", "held by"),
        ("touches", "touching", "touched by"),
        ("turns", "turning", "turned by"),
        (" Part \n OF ", "part of", None),
        ("looks at", None, None),
    ],
)
def test_words_of_both_directions(tmp_path: Path, value: str, of_source: str | None, of_target: str | None) -> None:
    content = document() | {"attributes": [], "relations": [relation(BUTTON, MACHINE, "position", value, (0, 1))]}
    source = {"button": f"button {of_source} coffee machine"} if of_source else {}
    target = {"coffee machine": f"coffee machine {of_target} button"} if of_target else {}
    assert phrases(on_frame(derived(tmp_path, content), 0)) == source | target


def test_colours_are_sorted_and_those_that_say_nothing_left_out(tmp_path: Path) -> None:
    content = scene(
        attributes=[
            color(CUP, "white"),
            color(CUP, "white"),
            color(CUP, "Black", 0, 20),
            color(CUP, "Coffee"),
            color(LEFT, "skin"),
            {**color(CUP, "hot"), "attribute_type": "state"},
            {**color(CUP, "hot"), "attribute_type": "Color"},
        ],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    items = derived(tmp_path, content)
    assert [on_frame(items, f)["coffee cup"].inputs["phrase"] for f in (19, 20)] == [
        "Black white coffee cup",
        "white coffee cup",
    ]
    assert "left hand" not in on_frame(items, 12), "neither colour nor relation: no example"


def test_a_relation_outweighs_colours_then_colours_count_then_the_first_wins(tmp_path: Path) -> None:
    colors = [color(CUP, "white"), color(CUP, "black"), color(CUP2, "red"), color(CUP3, "blue")]
    on = [relation(cup, MACHINE, "position", "on", (0, 40)) for cup in (CUP2, CUP3)]
    described = []
    for name, content in (
        ("a", scene(attributes=colors, relations=on)),
        ("b", scene(attributes=[*colors, color(CUP3, "grey")], relations=on)),
        ("c", scene(attributes=colors, relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))])),
    ):
        items = derived(tmp_path / name, content)
        described.append(on_frame(items, 12)["coffee cup"].inputs["phrase"])
    assert described == [
        "red coffee cup on coffee machine",
        "blue grey coffee cup on coffee machine",
        "black white coffee cup",
    ]


def test_all_objects_that_fit_are_the_truth(tmp_path: Path) -> None:
    """Same set of colours, and a relation of the same value with the same category in either direction."""
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red"), color(CUP3, "red"), color(CUP3, "blue", 30, 40)],
        relations=[
            relation(CUP, MACHINE, "position", "touches", (0, 40)),
            relation(MACHINE, CUP2, "position", "touches", (0, 20)),
            relation(CUP3, MACHINE, "position", "touches", (25, 35)),
            relation(CUP2, BUTTON, "position", "touches", (20, 40)),
        ],
    )
    items = derived(tmp_path, content)
    cups = {f: on_frame(items, f)["coffee cup"] for f in (12, 22, 27, 32)}
    assert {f: e.evidence["object_ids"] for f, e in cups.items() if f != 32} == {
        12: [CUP, CUP2],
        22: [CUP],
        27: [CUP, CUP3],
    }
    assert cups[12].inputs["phrase"] == "red coffee cup touching coffee machine"
    assert cups[12].evidence["relation_rows"] == [0, 1]
    assert cups[12].evidence["attribute_rows"] == [0, 1]
    # With another colour the third cup is the richest, and no other fits.
    assert cups[32].inputs["phrase"] == "blue red coffee cup touching coffee machine"
    assert cups[32].evidence["object_ids"] == [CUP3]


def test_without_a_relation_only_the_colours_decide(tmp_path: Path) -> None:
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red"), color(CUP3, "skin")],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    cup = on_frame(derived(tmp_path, content), 3)["coffee cup"]
    assert cup.inputs["phrase"] == "red coffee cup"
    assert cup.evidence["object_ids"] == [CUP, CUP2]
    assert (cup.metadata["relation"], cup.metadata["objects"]) == ("", 2)


@pytest.mark.parametrize(
    ("sampling", "seed"),
    [(GroundingSampling(sampling_seed=7), 7), (GroundingSampling(seed=5), 5), (GroundingSampling(seed=None), 0)],
)
def test_one_generator_draws_the_relations_of_all_videos(tmp_path: Path, sampling: Sampling, seed: int) -> None:
    """Every object with a relation draws, also one without a description or with only one; repeated ones weigh more."""
    relations = [
        relation(CUP, MACHINE, "position", "under", (0, 40), (0, 40)),
        relation(CUP, MACHINE, "position", "under", (0, 40)),
        relation(CUP, MACHINE, "position", "on", (0, 40)),
        relation(CUP2, BUTTON, "position", "on", (0, 40)),
    ]
    content = scene(attributes=[color(CUP, "red")], relations=relations)
    for name in ("a", "b"):
        write_release(tmp_path, name, content, video=False)
    rng, expected = random.Random(seed), []
    for video, frame in product("ab", range(4)):
        value = rng.choice(["under", "under", "under", "on"])
        rng.choice(["on"])
        expected.append((video, frame, f"red coffee cup {value} coffee machine"))
    items = derive(tmp_path, replace(sampling, frame_range=(0, 4)))
    assert [(e.video_id, e.frames[0].frame_index, e.inputs["phrase"]) for e in items] == expected
    assert items[0].evidence["relation_rows"] in ([0, 1], [2]), "a record counts once, whatever its ranges"


def test_a_second_annotation_of_an_object_is_a_second_box(tmp_path: Path) -> None:
    content = document()
    content["annotations"].append({"image_id": 25, "object_id": CUP, "bbox": [-5.0, 0.0, 9.6, 0.2]})
    items = derived(tmp_path, content)
    assert on_frame(items, 25)["coffee cup"].target["ground_truth_boxes"] == [[521, 469, 729, 781], [0, 0, 48, 3]]
    assert len(on_frame(items, 24)["coffee cup"].target["ground_truth_boxes"]) == 1
