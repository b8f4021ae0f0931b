"""Phrase grounding: which questions are asked of a frame, rule by rule (the released build's rules)."""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.benchmarks.barista.grounding import GroundingSampling
from barista_bench.core.example import Example
from barista_bench.core.options import Sampling
from tests.answering import on_frame
from tests.benchmarks.grounding_kit import Content, color, derive, derived, phrases
from tests.releases import BUTTON, CUP, FRAMES, LEFT, MACHINE, RIGHT, WIDTH, document, relation, span, write_release


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("grounding"), video=False)


@pytest.fixture(scope="module")
def example(root: Path) -> Example:
    return on_frame(derive(root), 12)["coffee cup"]


def test_one_phrase_a_category_where_there_is_something_to_say(root: Path) -> None:
    # On frame 25: no left hand; the right hand holds the cup on [5, 15) and [30, 40) only. The machine has no colour,
    # and phrases name its parts and the things under it only from the other side.
    assert phrases(on_frame(derive(root), 25)) == {
        "button": "button part of coffee machine",
        "coffee cup": "white coffee cup under coffee machine",
    }
    assert list(on_frame(derive(root), 12)) == ["button", "coffee cup", "left hand", "right hand"]
    assert on_frame(derive(root), 12)["left hand"].inputs["phrase"] == "left hand holding coffee cup"


@pytest.mark.parametrize(
    ("sampling", "frames"),
    [
        (GroundingSampling(), range(40)),
        (GroundingSampling(in_activities=True), range(30)),
        (GroundingSampling(with_relations=True), range(20, 40)),
        (GroundingSampling(in_activities=True, with_relations=True), range(20, 30)),
        # The fraction refers to the frames after the filters: ten frames here.
        (GroundingSampling(in_activities=True, with_relations=True, fraction=0.3), [20, 24, 29]),
        (GroundingSampling(in_activities=True, with_relations=True, fraction=0.25), [20, 29]),
        (GroundingSampling(in_activities=True, with_relations=True, fraction=0.1), [24]),
        (GroundingSampling(in_activities=True, with_relations=True, fraction=0.01), [24]),
        (GroundingSampling(fraction=0.1), [0, 13, 26, 39]),
        (GroundingSampling(fraction=0.5, frame_range=(10, 18), frame_step=2), [10, 16]),
    ],
)
def test_frames_are_filtered_and_then_thinned(tmp_path: Path, sampling: Sampling, frames: list[int]) -> None:
    """Activities are half-open and need a class; a relation may have any value."""
    content = document() | {"relations": [relation(BUTTON, MACHINE, "position", "near", (20, 90))]}
    content["activities"] = [
        {"image_range": span(-5, 30), "activity_class_id": "a", "display_name": "Place cup"},
        {"image_range": span(25, 40), "activity_class_id": None, "display_name": "Press button"},
    ]
    assert [e.frames[0].frame_index for e in derived(tmp_path, content, sampling)] == list(frames)


def test_a_relation_needs_both_ends_boxed(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(LEFT, CUP, "human_actions", "holds", (0, 40))]
    frames = {e.frames[0].frame_index for e in derived(tmp_path, content, GroundingSampling(with_relations=True))}
    assert frames == set(range(20)), "the left hand is seen on frames 0 to 19"


def test_small_objects_are_left_out(root: Path) -> None:
    # The button is 4 x 4 pixels, the left hand 10 x 16.
    assert "button" not in on_frame(derive(root, GroundingSampling(min_area=16.5)), 12)
    assert "button" in on_frame(derive(root, GroundingSampling(min_area=16)), 12)
    assert set(on_frame(derive(root, GroundingSampling(min_area=161)), 12)) == {"coffee cup", "right hand"}


@pytest.mark.parametrize(("name", "named"), [("unknown", False), ("Unknown", True)])
def test_unknown_objects_are_not_asked_for_and_are_named_only_in_another_case(
    tmp_path: Path, name: str, named: bool
) -> None:
    content = document()
    content["categories"].append({"id": "c-unknown", "name": name})
    content["object_id_to_category_id"][MACHINE] = "c-unknown"
    content["attributes"].append(color(MACHINE, "red"))
    cup = {"coffee cup": "white coffee cup" + (" under Unknown" if named else "")}
    button = {"button": "button part of Unknown"} if named else {}
    assert phrases(on_frame(derived(tmp_path, content), 25)) == button | cup


def test_an_example_has_its_boxes_and_the_rows_of_the_file(example: Example) -> None:
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


WORDS = {"under": ("under", None), "holds": ("holding", "held by"), "contains": ("containing", "inside")}
"""Some values of relations, for their source and for their target."""


class Stated(NamedTuple):
    """A relation in a description of one of its ends."""

    value: str
    other: str
    words: str | None


@st.composite
def _scenes(draw: st.DrawFn) -> Content:
    """Colours and relations of any kind on any ranges, also repeated; unknown, hidden and twice annotated objects."""
    names, ranges = (CUP, LEFT, RIGHT, BUTTON, MACHINE), st.tuples(st.integers(-3, 38), st.integers(1, 40))
    values = st.sampled_from((*WORDS, "near"))
    content = document()
    content["categories"][1]["name"] = draw(st.sampled_from(("coffee cup", "unknown", "button")))
    content["relations"] = [
        relation(*pair, "position", value, *spans)
        for pair, value, spans in draw(
            st.lists(st.tuples(st.tuples(*[st.sampled_from(names)] * 2), values, st.lists(ranges, max_size=2)))
        )
    ]
    content["attributes"] = [
        color(name, value, *frames)
        for name, value, frames in draw(
            st.lists(st.tuples(st.sampled_from(names), st.sampled_from(("red", "skin", "cup")), ranges), max_size=6)
        )
    ]
    twice = draw(st.sets(st.integers(0, len(content["annotations"]) - 1), max_size=20))
    content["annotations"] += [{**content["annotations"][row], "bbox": [9.0, 9.0, 5.0, 5.0]} for row in twice]
    return content


def _by_hand(content: Content, rng: random.Random) -> Iterator[tuple[int, str, int]]:
    """(frame, phrase, number of true boxes) of one video, read off its file frame by frame."""
    names = {category["id"]: category["name"] for category in content["categories"]}
    category = {item: names[code] for item, code in content["object_id_to_category_id"].items()}
    for frame in range(FRAMES):
        seen = [a["object_id"] for a in content["annotations"] if a["image_id"] == frame]
        stated: dict[str, list[Stated]] = defaultdict(list)
        for entry in content["relations"]:
            source, target, value = entry["source_object_id"], entry["target_object_id"], entry["value"]
            for _ in range(_times(entry, frame) if value in WORDS and {source, target} <= set(seen) else 0):
                for item, other, words in zip((source, target), (target, source), WORDS[value], strict=True):
                    if words and category[other] != "unknown":
                        stated[item].append(Stated(value, category[other], words))
        colors: dict[str, set[str]] = defaultdict(set)
        for entry in content["attributes"]:
            if _times(entry, frame) and entry["value"] != "skin" and entry["value"] not in category[entry["object_id"]]:
                colors[entry["object_id"]].add(entry["value"])
        for name in sorted({category[item] for item in seen} - {"unknown"}):
            group = [item for item in seen if category[item] == name]
            drawn = [rng.choice(stated[item]) if stated[item] else None for item in group]
            best = max(range(len(group)), key=lambda i: (drawn[i] is not None, len(colors[group[i]])))
            shown, drawn_state = colors[group[best]], drawn[best]
            reference = [
                item
                for item in group
                if colors[item] == shown
                and (not drawn_state or any(state[:2] == drawn_state[:2] for state in stated[item]))
            ]
            if shown or drawn_state:
                words = [*sorted(shown), name, *([f"{drawn_state.words} {drawn_state.other}"] if drawn_state else [])]
                yield frame, " ".join(words), len(reference)


def _times(entry: Content, frame: int) -> int:
    """How many ranges of an entry hold on a frame."""
    return sum(r["image_id_start"] <= frame < r["image_id_end"] for r in entry["image_ranges"])


@settings(max_examples=15)
@given(videos=st.lists(_scenes(), min_size=1, max_size=2))
def test_examples_are_those_read_off_the_files_frame_by_frame(
    videos: list[Content], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root, rng = tmp_path_factory.mktemp("scene"), random.Random(3)
    for number, content in enumerate(videos):
        write_release(root, f"v{number}", content, video=False)
    expected = [item for content in videos for item in _by_hand(content, rng)]
    items = derive(root, GroundingSampling(sampling_seed=3))
    assert [(e.frames[0].frame_index, e.inputs["phrase"], e.metadata["objects"]) for e in items] == expected
