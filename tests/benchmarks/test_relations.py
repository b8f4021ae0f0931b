"""Relation extraction, rule by rule (docs/upstream/barista.md)."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from barista_bench.benchmarks.barista.relations import Relations, RelationsSampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, ParseError, Prediction, Scored
from barista_bench.core.options import Sampling
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.set_of_mark import Mark, draw_marks, mark_color
from tests.answering import derived
from tests.releases import BUTTON, CUP, LEFT, MACHINE, RIGHT, document, relation, segmentation, write_release

TASK = Relations()
BOXES = BoxFormat()
EVERY_FRAME, EVERY_FIFTH = RelationsSampling(frame_step=1), RelationsSampling(frame_step=5)


def derive(root: Path, sampling: Sampling = EVERY_FRAME) -> list[Example]:
    return derived(TASK, root, sampling)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    root = write_release(tmp_path_factory.mktemp("relations"), video=False)
    return derive(root)[12]


def test_frames_are_taken_at_the_stride_and_only_with_relations(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(CUP, MACHINE, "position", "under", (0, 12)), *content["relations"][3:]]
    root = write_release(tmp_path, content=content, video=False)
    items = derive(root, RelationsSampling(frame_step=5))
    # under on 0..11; right hand on cup stated on [5, 15) and [30, 40), boxed from 10.
    assert [e.frames[0].frame_index for e in items] == [0, 5, 10, 30, 35]
    assert [e.frames[0].frame_index for e in derive(root, RelationsSampling(frame_step=5, frame_range=(6, 32)))] == [
        10,
        30,
    ]


def test_objects_are_numbered_by_category_and_id_and_relations_use_the_numbers(example: Example) -> None:
    rows = [document()["annotations"][row] for row in example.evidence["instance_rows"]]
    assert [(o["mark"], o["category"], o["object_id"]) for o in example.inputs["objects"]] == [
        (number, category, row["object_id"])
        for number, (row, category) in enumerate(
            zip(rows, ("button", "coffee cup", "coffee machine", "left hand", "right hand"), strict=True), start=1
        )
    ]
    assert {row["image_id"] for row in rows} == {12}
    assert [tuple(r.values()) for r in example.target["relations"]] == [
        (1, 3, "position", "part of"),
        (2, 3, "position", "under"),
        (4, 2, "human_actions", "holds"),
        (5, 2, "human_actions", "holds"),
    ]
    assert example.evidence["relation_rows"] == [0, 1, 2, 3]


def test_every_annotation_has_a_number_and_rows_name_the_last_one_of_an_object(tmp_path: Path) -> None:
    """Sorted by category in lower case, then by id; a relation that is stated or holds twice is two rows."""
    content = document()
    content["categories"].append({"id": "c-unknown", "name": "Unknown"})
    content["object_id_to_category_id"] |= {LEFT: "c-unknown", "a-cup": "c-coffee cup"}
    content["annotations"] += [
        {"image_id": 12, "object_id": name, "bbox": [0, 0, number, 4]} for number, name in enumerate((CUP, "a-cup"))
    ]
    content["relations"] = [
        relation(LEFT, CUP, "any", "holds", (0, 20), (12, 90)),
        relation(CUP, LEFT, "any", "Held by", (0, 90)),
        relation(CUP, LEFT, "any", "Held by", (0, 90)),
        relation(CUP, CUP, "any", "is", (12, 13)),
    ]
    example = derive(write_release(tmp_path, content=content, video=False))[12]
    assert [(o["mark"], o["object_id"], o["bbox"][2]) for o in example.inputs["objects"]] == [
        (1, BUTTON, 4),
        (2, "a-cup", 1),
        (3, CUP, 20),
        (4, CUP, 0),
        (5, MACHINE, 40),
        (6, RIGHT, 12),
        (7, LEFT, 10),
    ]
    rows = [(r["source_id"], r["target_id"], r["value"]) for r in example.target["relations"]]
    assert rows == [*[(7, 4, "holds")] * 2, *[(4, 7, "Held by")] * 2, (4, 4, "is")]
    assert example.label == "5 relations"


def test_the_vocabulary_comes_from_all_videos_even_if_few_are_sampled(tmp_path: Path) -> None:
    other = document()
    other["relations"] = [relation(CUP, MACHINE, "position", "inside", (0, 1))]
    write_release(tmp_path, "a", video=False)
    write_release(tmp_path, "b", other, video=False)
    items = derive(tmp_path, RelationsSampling(videos=("a",)))
    assert {e.video_id for e in items} == {"a"}
    assert items[0].inputs["vocabulary"] == [
        {"relation_type": "human_actions", "values": ["holds"]},
        {"relation_type": "position", "values": ["inside", "part of", "under"]},
    ]


@pytest.mark.parametrize("seed", [42, None])
def test_shuffling_and_cutting_equal_the_released_freezer(seed: int | None) -> None:
    examples = [Example(str(i), "b", "t", "", (FrameRef("v", i),), {}, {}) for i in range(20)]
    expected = list(examples)
    if seed is not None:
        random.Random(seed).shuffle(expected)
    assert RelationsSampling(limit=7, seed=seed).sample(examples) == expected[:7]


@pytest.mark.parametrize(
    ("overrides", "what"), [({"step": 3}, "no 'step'"), ({"frame_step": 0}, "frame_step"), ({"limit": 0}, "limit")]
)
def test_a_wrong_sampling_is_refused(overrides: dict[str, int], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        TASK.sampling.with_overrides(overrides)


def test_the_images_are_the_frame_and_the_marked_frame(example: Example) -> None:
    frame = np.full((64, 96, 3), 100, np.uint8)
    raw, marked = TASK.images(example, [frame])
    assert np.array_equal(np.asarray(raw), frame)
    assert marked.size == raw.size
    assert not np.array_equal(np.asarray(marked), frame)
    assert np.array_equal(frame, np.full((64, 96, 3), 100, np.uint8)), "the frame itself stays clean"


def test_a_frame_of_another_size_is_resized_to_the_annotations_for_the_marks(example: Example) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (10, 12, 3), np.uint8)
    raw, marked = TASK.images(example, [frame])
    assert np.array_equal(np.asarray(raw), frame)
    resized = Image.fromarray(frame).resize((96, 64), Image.Resampling.BILINEAR)
    assert marked.tobytes() == TASK.images(example, [np.asarray(resized)])[1].tobytes()


@pytest.mark.parametrize(
    "mask",
    [{}, {"segmentation": {"counts": "0", "size": [64, 96]}}, {"segmentation": segmentation((0, 0, 0, 0))}],
    ids=["missing", "damaged", "empty"],
)
def test_an_object_without_a_mask_is_asked_about_but_cannot_be_drawn(tmp_path: Path, mask: dict[str, object]) -> None:
    content = document()
    content["annotations"] = [
        {key: value for key, value in entry.items() if key != "segmentation"} | mask
        if (entry["object_id"], entry["image_id"]) == (CUP, 12)
        else entry
        for entry in content["annotations"]
    ]
    example = derive(write_release(tmp_path, content=content, video=False))[12]
    with pytest.raises(DataError, match=r"relation_extraction:v1:12: mark 2 \(coffee cup\) .*Fix"):
        TASK.images(example, [np.zeros((64, 96, 3), np.uint8)])


def test_marks_are_painted_pixel_by_pixel_as_released() -> None:
    """Later marks over earlier ones, dark inside, an outline also at the rim, numbers at the whole masks' centres."""
    frame = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    parts = {1: np.s_[2:14, 2:14], 2: np.s_[0:46, 0:62], 3: np.s_[30:60, 40:80]}
    centres = {1: (8, 8), 2: (22, 30), 3: (44, 60)}  # row, column
    labels, marks = np.zeros((60, 80), int), []
    for number, part in parts.items():
        mask = np.zeros((60, 80), bool)
        mask[part] = True
        labels[part] = number
        marks.append(Mark(number, mask))
    drawn = draw_marks(frame, marks, (80, 60), mask_alpha=0.3, boundary_alpha=0.7, font_size=10)
    image = np.asarray(drawn).astype(int)
    written = np.zeros((60, 80), bool)
    for row, column in centres.values():
        window = np.s_[row - 8 : row + 9, column - 8 : column + 9]
        written[window] = True
        assert (image[window].min(axis=-1) > 240).any(), "a white number, also of a mark that is hidden"
    bordered = np.pad(labels, 1)
    for row, column in zip(*np.nonzero(~written), strict=True):
        label, wanted = labels[row, column], frame[row, column].astype(float)
        if label:
            beside = [bordered[row + 1 + y, column + 1 + x] for y, x in ((-1, 0), (1, 0), (0, -1), (0, 1))]
            shade = 1 if set(beside) != {label} else 1 - 0.7
            wanted = wanted * (1 - 0.3) + mark_color(label) * shade * 0.3
        assert np.abs(image[row, column] - wanted).max() <= (0.51 if label else 0), (row, column)


def test_neighbouring_marks_have_distant_colours() -> None:
    colors = np.array([mark_color(n) for n in range(1, 25)], dtype=float)
    assert np.abs(np.diff(colors, axis=0)).max(axis=1).min() > 80


def test_an_explanation_names_hits_misses_and_wrong_answers(example: Example) -> None:
    wrong = {"source_id": 9, "target_id": 2, "relation_type": "position", "value": "on"}
    answer = [*example.target["relations"][:2], wrong]
    explanation = TASK.explain(example, Prediction({"relations": answer}))
    assert [row.kind for row in explanation.rows] == ["hit", "hit", "miss", "miss", "wrong"]
    assert explanation.rows[0].text == "1 button → part of → 3 coffee machine (position)"
    assert "9 (no such mark)" in explanation.rows[-1].text
    assert {row.kind for row in TASK.explain(example, None).rows} == {"miss"}


ONE = {"source_id": 1, "target_id": 2, "relation_type": "position", "value": "on"}
TEXT = json.dumps(ONE)
INFINITE = json.dumps([ONE, {**ONE, "source_id": float("inf")}])


@pytest.mark.parametrize(
    ("answer", "relations", "dropped"),
    [
        *((text.replace("*", f"[{TEXT}]"), [ONE], 0) for text in ("*", "  \n*\n ", "```json\n*\n```", "so [*]")),
        (f"Sure!\n```\n[{TEXT}]\n``` I hope this helps", [ONE], 0),
        *((text.replace("*", f"[{TEXT}]"), [ONE], 0) for text in ("They are *.", "See [1] and [2, 3]: *")),
        *((text, [], 0) for text in ("[]", "See [1]. There are none: []", "so [[]]")),
        (f"[{TEXT}, {{}}, 3, null]", [ONE], 3),
        ("[3, 4]", [], 2),
        (f"[{TEXT}, {TEXT}]", [ONE, ONE], 0),
        ('[{"source_id": "1", "target_id": 2.0, "relation_type": "position", "value": "on"}]', [ONE], 0),
        *(
            (f'[{{"source_id": {said}, "target_id": 2, "relation_type": "position", "value": "on"}}]', [ONE], 0)
            for said in ("true", "1.5", '" 1 "', '"+1"', '"0_1"', '"١"')
        ),
        *(
            (f'[{{"source_id": {said}, "target_id": 2, "relation_type": "position", "value": "on"}}]', [], 1)
            for said in ('"1.0"', '"ID 1"', "[1]", "null", "NaN")
        ),
        (
            '[{"source_id": 1, "target_id": 2, "relation_type": 5, "value": ["on"]}]',
            [{**ONE, "relation_type": "5", "value": "['on']"}],
            0,
        ),
        ("[[]]", [], 1),
        ('[{"source_id": 1, "target_id": 2, "relation_type": "position", "value": null}]', [], 1),
        (f"first [{TEXT}] then [{TEXT}, {TEXT}]", [ONE], 0),
        # Half a character is spelled out, so that it can be written down.
        (json.dumps([{**ONE, "value": "o\ud83dn"}]), [{**ONE, "value": "o\\ud83dn"}], 0),
    ],
)
def test_answers_are_read_as_released(answer: str, relations: list[dict], dropped: int) -> None:
    assert TASK.parse(answer, {}, BOXES) == Prediction({"relations": relations}, dropped)


def test_the_papers_protocol_drops_fractional_numbers_and_fields_without_text() -> None:
    entries = [{**ONE, "source_id": 1.5}, {**ONE, "target_id": True}, {**ONE, "value": 5}, ONE]
    parsed = Relations(options={"protocol": "paper"}).parse(json.dumps(entries), {}, BOXES)
    assert parsed == Prediction({"relations": [ONE]}, dropped=3)


def test_truths_of_unread_answers_count_in_the_pooled_metrics_and_not_by_type() -> None:
    asked = Example("e", "barista", "relations", "", (FrameRef("v", 0),), {"objects": []}, {"relations": [ONE]})
    samples = [Scored(asked, Prediction({"relations": [ONE]})), Scored(asked, None)]
    both = [task.aggregate(samples) for task in (TASK, Relations(options={"protocol": "paper"}))]
    assert [metrics["micro_recall"] for metrics in both] == [0.5, 0.5]
    assert [metrics["per_relation_type"]["position"]["recall"] for metrics in both] == [1.0, 0.5]
    for task, metrics in zip((TASK, Relations(options={"protocol": "paper"})), both, strict=True):
        drawn = task.statistics(samples).compute_metrics(np.ones((1, 2)))
        assert {name: values[0] for name, values in drawn.items()} == pytest.approx(
            {name: metrics[name] for name in drawn}
        )


@pytest.mark.parametrize(
    "answer", ["", "no relations", TEXT, f"[{TEXT}", "see [1]", "[" * 100_000, "{}", "null", INFINITE]
)
def test_an_answer_without_an_array_is_a_parse_error(answer: str) -> None:
    assert isinstance(TASK.parse(answer, {}, BOXES), ParseError)
