"""The reference of referring, line by line, and its sentence (docs/upstream/barista.md)."""

from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.referring import ReferringSampling
from barista_bench.core.example import Example
from tests.benchmarks.referring_kit import add_object, derive, derive_from, of_object
from tests.releases import BUTTON, CUP, LEFT, MACHINE, document, relation, span, write_release


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    root = write_release(tmp_path_factory.mktemp("referring"), video=False)
    return of_object(derive(root), CUP)


def test_the_reference_is_structured_as_released(example: Example) -> None:
    assert example.target["reference"] == (
        "Object: coffee cup\n"
        "Attributes: color=white\n"
        "Relations: coffee cup under coffee machine, left hand holds coffee cup, right hand holds coffee cup\n"
        "Related objects:\n"
        "  coffee machine: type=capsule; button part of coffee machine"
    ), "relations to the described object are not told again, and the hands have nothing else"
    assert example.target["sentence"] == (
        "A white coffee cup that is under a coffee machine, that the left hand holds and that the right hand holds."
    )


@pytest.mark.parametrize(
    ("attributes", "relations", "lines"),
    [
        # A record counts once, with any ranges; two records twice.
        (
            [("color", "red", (0, 40)), ("color", "red", (0, 40)), ("state", "full", (0, 20), (9, 40))],
            [(CUP, MACHINE, "on")],
            ["Attributes: color=red, color=red, state=full", "Relations: coffee cup on coffee machine"],
        ),
        # Keys are values as written.
        (
            [("color", "red", (0, 40))],
            [(CUP, MACHINE, "on"), (CUP, MACHINE, "On"), (CUP, MACHINE, "on"), (MACHINE, CUP, "on")],
            [
                "Attributes: color=red",
                "Relations: coffee cup on 2x coffee machine, coffee cup On coffee machine, "
                "coffee machine on coffee cup",
            ],
        ),
        # An object's own relations leave out its parts; the relations of related objects keep them.
        (
            [("color", "red", (0, 40))],
            [
                (BUTTON, CUP, " Part Of"),
                (CUP, MACHINE, "under"),
                (BUTTON, MACHINE, "attached to"),
                (BUTTON, MACHINE, "attached to"),
                (LEFT, MACHINE, "touches"),
                (CUP, MACHINE, "near"),
            ],
            [
                "Attributes: color=red",
                "Relations: coffee cup under coffee machine, coffee cup near coffee machine",
                "Related objects:",
                "  coffee machine: 2x button attached to coffee machine, left hand touches coffee machine",
            ],
        ),
        # Related to itself: once, as a source, and its own context.
        (
            [("color", "red", (0, 40))],
            [(CUP, CUP, "touches"), (CUP, BUTTON, "on")],
            [
                "Attributes: color=red",
                "Relations: coffee cup touches coffee cup, coffee cup on button",
                "Related objects:",
                "  coffee cup: color=red; coffee cup on button",
            ],
        ),
        ([("color", "red", (0, 40))], [(BUTTON, CUP, "attached to")], ["Attributes: color=red"]),
    ],
    ids=["repeated attributes", "keys", "parts", "itself", "no relation left"],
)
def test_the_reference_lists_attributes_and_relations_line_by_line(
    tmp_path: Path, attributes: list[Any], relations: list[tuple[str, str, str]], lines: list[str]
) -> None:
    content = document()
    content["attributes"] = [
        {"object_id": CUP, "attribute_type": kind, "value": value, "image_ranges": [span(*frames) for frames in ranges]}
        for kind, value, *ranges in attributes
    ]
    content["relations"] = [relation(source, target, "any", value, (0, 40)) for source, target, value in relations]
    cup = of_object(derive_from(tmp_path, content), CUP)
    assert str(cup.target["reference"]).splitlines()[1:] == lines
    stated = [(r["target_object_id"], r["value"], r["is_source"]) for r in cup.target["relations"]]
    ends = [
        (target, value, True) if source == CUP else (source, value, False)
        for source, target, value in relations
        if CUP in (source, target)
    ]
    assert stated == ends, "none is left out here"


def test_equal_relations_are_counted_and_lose_their_context(tmp_path: Path) -> None:
    content = document()
    for name in ("o-cap-1", "o-cap-2"):
        add_object(content, name, "capsule", (12, 20, 6, 6), color="red")
    content["relations"] = [
        relation(MACHINE, "o-cap-1", "position", "contains", (0, 20), (10, 40)),
        relation(MACHINE, "o-cap-2", "position", "contains", (0, 40)),
        relation(MACHINE, "o-cap-2", "position", "contains", (5, 40)),
        relation("o-cap-1", MACHINE, "position", "inside", (0, 40)),
        relation("o-cap-2", MACHINE, "position", "inside", (0, 40)),
        relation(CUP, MACHINE, "position", "under", (0, 40)),
    ]
    machine = of_object(derive_from(tmp_path, content), MACHINE)
    assert machine.target["reference"].splitlines()[2:] == [
        "Relations: coffee machine contains 4x capsule, 2x capsule inside coffee machine, "
        "coffee cup under coffee machine",
        "Related objects:",
        "  coffee cup: color=white",
    ]
    assert machine.target["sentence"] == (
        "A capsule coffee machine that contains 2 capsules and that a coffee cup is under."
    ), "a relation and its converse are said once"
    assert machine.evidence["relation_rows"] == [0, 1, 2, 3, 4, 5]


def test_attributes_hold_on_their_frames_only(tmp_path: Path) -> None:
    items = derive_from(tmp_path, document(), ReferringSampling(frame_step=10))
    lines = {e.frames[0].frame_index: e.target["reference"].splitlines()[1] for e in items if e.label != "coffee cup"}
    assert lines[10] == lines[30] == "Attributes: type=capsule"
    assert lines[20] == "Attributes: type=capsule, state=extracting"


def test_the_sentence_omits_the_colour_skin(tmp_path: Path) -> None:
    content = document()
    content["attributes"].append(
        {"object_id": LEFT, "attribute_type": "color", "value": "skin", "image_ranges": [span(0, 40)]}
    )
    hand = of_object(derive_from(tmp_path, content), LEFT)
    assert hand.target["reference"].startswith("Object: left hand\nAttributes: color=skin\n")
    assert hand.target["sentence"] == "The left hand that holds a coffee cup."
