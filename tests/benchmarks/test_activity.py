"""Activity recognition, rule by rule (upstream.md 1.8)."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.choices import write_scores
from barista_bench.errors import DataError
from barista_bench.prompt import BoxFormat, ImagePart, TextPart
from barista_bench.scene_graph import SceneGraph
from barista_bench.task import Example, FrameRef, ParseError, Prediction, Sampling, SkippedExample
from tests.benchmarks.answering import answer_all
from tests.releases import CUP, document, span, write_release

TASK = Activity()
BOXES = BoxFormat()
ALL = Sampling(seed=42, frames=4, choices=25, per_class=None)
SNAPSHOT = Path(__file__).parent / "snapshots/activity.txt"

VERBS = ("Open", "Close", "Place", "Remove", "Press")
NOUNS = ("bottle", "lid", "door", "drawer", "coffee cup", "tap")
CLASSES = {f"{verb} {noun}".lower().replace(" ", "-"): f"{verb} {noun}" for verb in VERBS for noun in NOUNS}
"""Class id to display name: 30 classes, 6 of each verb."""


def activity(start: int, end: int, class_id: str | None = "open-lid", name: str | None = None) -> dict:
    name = CLASSES[class_id or "open-lid"] if name is None else name
    return {"image_range": span(start, end), "activity_class_id": class_id, "display_name": name}


def release(root: Path, *activities: dict, video_id: str = "v1", preparation: str = "capsule") -> Path:
    content = document(preparation)
    content["activities"] = list(activities)
    return write_release(root, video_id, content, video=False)


def vocabulary_video(root: Path) -> Path:
    """A video that names all 30 classes, in segments too short to be asked about."""
    return release(root, *(activity(k, k + 1, class_id) for k, class_id in enumerate(CLASSES)), video_id="names")


def derive(root: Path, sampling: Sampling = ALL) -> list[Example | SkippedExample]:
    return list(TASK.examples(SceneGraph(root), sampling))


def ranges(root: Path, sampling: Sampling = ALL) -> list[tuple[str, int, int]]:
    """(video, start, end) of the examples."""
    found = [e for e in derive(root, sampling) if isinstance(e, Example)]
    return [(e.video_id, e.metadata["segment_start"], e.metadata["segment_end"]) for e in found]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments in `v1`, two in `v2`, of classes with all distractors there are."""
    root = vocabulary_video(tmp_path_factory.mktemp("activity"))
    release(root, activity(0, 10, "place-coffee-cup"), activity(10, 20, "press-tap"), activity(25, 40, "open-lid"))
    return release(root, activity(2, 9, "open-lid"), activity(20, 31, "close-door"), video_id="v2", preparation="pods")


@pytest.fixture(scope="module")
def examples(root: Path) -> list[Example]:
    return [e for e in derive(root) if isinstance(e, Example)]


def test_published_sampling_is_the_default() -> None:
    assert TASK.sampling == Sampling(limit=500, seed=42, frames=4, choices=25, per_class=20)
    assert TASK.same_verb == 4


def test_segments_come_by_video_and_start(root: Path) -> None:
    assert ranges(root) == [("v1", 0, 10), ("v1", 10, 20), ("v1", 25, 40), ("v2", 2, 9), ("v2", 20, 31)]


def test_frames_are_spread_evenly_and_the_end_frame_counts(examples: list[Example]) -> None:
    # 11 frames 0..10, 11 frames 10..20, 15 frames 25..39 (there is no frame 40), 8 frames 2..9.
    assert [[f.frame_index for f in e.frames] for e in examples[:4]] == [
        [0, 3, 6, 10],
        [10, 13, 16, 20],
        [25, 29, 34, 39],
        [2, 4, 6, 9],
    ]


def test_fewer_frames_than_shown_are_dropped(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 2), activity(5, 8), activity(37, 40), activity(20, 30))
    # 3 frames with the end; 4; 3, since there is no frame 40; 11.
    assert ranges(tmp_path) == [("v1", 5, 8), ("v1", 20, 30)]
    assert ranges(tmp_path, replace(ALL, frames=11)) == [("v1", 20, 30)]


def test_segments_that_share_time_are_dropped_and_neighbours_are_not(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 10), activity(10, 20), activity(19, 25), activity(26, 38), activity(28, 33))
    assert ranges(tmp_path) == [("v1", 0, 10)]


def test_two_records_of_one_segment_drop_each_other(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 10), activity(0, 10))
    assert ranges(tmp_path) == []


def test_a_segment_without_a_class_is_skipped_and_in_no_ones_way(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 10), activity(5, 15, None))
    first, second = derive(tmp_path)
    assert isinstance(first, SkippedExample)
    assert (first.frame, first.reason) == (FrameRef("v1", 5), "activities[1] has no class")
    assert isinstance(second, Example)


def test_a_label_of_one_word_is_skipped_but_takes_its_time(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 10), activity(5, 15, "wait", "Wait"), activity(20, 30))
    skipped, example = derive(tmp_path)
    assert isinstance(skipped, SkippedExample)
    assert "'Wait'" in skipped.reason
    assert isinstance(example, Example)
    assert example.metadata["segment_start"] == 20
    assert "wait" not in {c["class_id"] for c in replace_choices(example, tmp_path)}


def replace_choices(example: Example, root: Path) -> list[dict]:
    """The choices of the same segment with room for every class."""
    found = derive(root, replace(ALL, choices=100))
    (same,) = [e for e in found if isinstance(e, Example) and e.example_id == example.example_id]
    return same.inputs["choices"]


def test_choices_are_distinct_lettered_and_hold_the_truth_and_its_verb(examples: list[Example]) -> None:
    for example in examples:
        choices = example.inputs["choices"]
        assert [c["choice_id"] for c in choices] == list("ABCDEFGHIJKLMNOPQRSTUVWXY")
        assert len({c["class_id"] for c in choices}) == 25
        truth = next(c for c in choices if c["choice_id"] == example.target["choice_id"])
        assert truth["class_id"] == example.target["class_id"]
        assert truth["text"] == example.label == CLASSES[truth["class_id"]]
        alike = [c for c in choices if c["verb"] == truth["verb"] and c is not truth]
        assert len(alike) >= 4
        assert len(alike) == example.metadata["same_verb_distractors"]


def test_all_same_verb_classes_are_taken_where_there_are_fewer_than_four(tmp_path: Path) -> None:
    root = release(
        tmp_path,
        activity(0, 10, "open-lid"),
        *(activity(30 + k, 31 + k, c) for k, c in enumerate(("open-tap", "open-door", "press-tap", "close-lid"))),
    )
    (example,) = derive(root, replace(ALL, choices=4))
    assert isinstance(example, Example)
    assert {"open-lid", "open-tap", "open-door"} < {c["class_id"] for c in example.inputs["choices"]}


def test_truth_stands_at_every_letter_in_the_long_run(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    for index in range(60):
        release(tmp_path, activity(0, 10), activity(12, 22), activity(24, 34), video_id=f"v{index}")
    letters = Counter(e.target["choice_id"] for e in derive(tmp_path))
    assert len(letters) == 25
    assert max(letters.values()) < 20


def test_choices_depend_on_seed_video_and_segment_alone(tmp_path: Path, examples: list[Example]) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(30, 35, "press-lid"), activity(0, 10, "place-coffee-cup"))
    again = next(e for e in derive(tmp_path) if isinstance(e, Example))
    assert again.inputs == examples[0].inputs
    other = next(e for e in derive(tmp_path, replace(ALL, seed=1)) if isinstance(e, Example))
    assert other.inputs != again.inputs


def test_fewer_than_four_choices_make_no_question(tmp_path: Path) -> None:
    root = release(tmp_path, activity(0, 10, "open-lid"), activity(11, 20, "press-tap"), activity(21, 30, "close-lid"))
    found = derive(root)
    assert [type(e) for e in found] == [SkippedExample] * 3
    assert "3 choices" in found[0].reason
    release(root, activity(0, 1, "open-tap"), video_id="v2")
    assert [len(e.inputs["choices"]) for e in derive(root)] == [4, 4, 4]


def test_a_class_is_called_by_its_first_name_and_by_its_id_if_that_is_taken(tmp_path: Path) -> None:
    root = release(tmp_path, activity(0, 10, "a", "Open lid"), activity(11, 20, "b", "Open lid"))
    release(root, activity(0, 10, "a", "Open the lid"), activity(11, 20, "c", "Shut lid"), video_id="v2")
    release(root, activity(0, 10, "d", "Lift cup"), video_id="v3")
    texts = {c["class_id"]: c["text"] for c in derive(root)[0].inputs["choices"]}
    assert texts == {"a": "Open lid (a)", "b": "Open lid (b)", "c": "Shut lid", "d": "Lift cup"}


def test_a_class_is_capped_round_robin_over_the_videos(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 5), activity(6, 11), activity(12, 17), video_id="a")
    release(tmp_path, activity(0, 5), activity(6, 11, "press-tap"), video_id="b")
    release(tmp_path, activity(0, 5), activity(6, 11), video_id="c")
    assert ranges(tmp_path, replace(ALL, per_class=4)) == [
        ("a", 0, 5),
        ("a", 6, 11),
        ("b", 0, 5),
        ("b", 6, 11),
        ("c", 0, 5),
    ]
    assert len(ranges(tmp_path, replace(ALL, per_class=5))) == 6
    assert [r[0] for r in ranges(tmp_path, replace(ALL, per_class=1))] == ["a", "b"]


def test_sampling_selects_videos_preparations_and_frames_but_keeps_the_vocabulary(root: Path) -> None:
    assert ranges(root, replace(ALL, videos=("v2",))) == [("v2", 2, 9), ("v2", 20, 31)]
    assert ranges(root, replace(ALL, preparations=("pods",))) == [("v2", 2, 9), ("v2", 20, 31)]
    assert ranges(root, replace(ALL, frame_range=(10, 32))) == [("v1", 10, 20), ("v2", 20, 31)]
    assert ranges(root, replace(ALL, frame_range=(10, 31))) == [("v1", 10, 20)]
    (example,) = derive(root, replace(ALL, videos=("v2",), frame_range=(0, 12)))
    assert len(example.inputs["choices"]) == 25
    with pytest.raises(DataError, match="no video 'v9'"):
        derive(root, replace(ALL, videos=("v9",)))


def test_ids_and_evidence_lead_back_to_the_file(examples: list[Example]) -> None:
    assert examples[2].example_id == "activity_mcq:v1:segment_25_40:class_open-lid:idx_2"
    # On frames 25 to 39 the right hand holds the cup from frame 30 on (relation 3); before 20 the left one does.
    assert examples[2].evidence == {"object_ids": [CUP], "activity_row": 2, "relation_rows": [3]}
    assert examples[0].evidence["relation_rows"] == [2, 3]
    assert examples[2].metadata["segment_seconds"] == 0.5


def test_the_prompt_shows_all_frames_first_and_then_the_choices(examples: list[Example]) -> None:
    prompt = TASK.prompt(examples[0], BOXES)
    assert prompt.parts[:4] == tuple(map(ImagePart, range(4)))
    text = prompt.parts[4]
    assert isinstance(text, TextPart)
    first = examples[0].inputs["choices"][0]
    assert f"\nA. {first['text']}\nB. " in text.text
    assert "{" not in text.text
    blind = replace(examples[0], target={}, evidence={}, metadata={}, label="")
    assert TASK.prompt(blind, BOXES) == prompt


def test_the_rendered_prompt_is_the_one_on_file(examples: list[Example]) -> None:
    formats = (BoxFormat("xyxy", 1000), BoxFormat("yxyx", 1))
    rendered = "\n\n".join(f"=== {f} ===\n{TASK.prompt(examples[0], f).as_text()}" for f in formats) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(rendered, encoding="utf-8")
    assert rendered == SNAPSHOT.read_text(encoding="utf-8")


def test_the_images_are_the_frames(examples: list[Example]) -> None:
    frames = [np.full((8, 6, 3), level, np.uint8) for level in (0, 50, 100, 150)]
    assert [np.asarray(image).mean() for image in TASK.images(examples[0], frames)] == [0, 50, 100, 150]


FOUR = {"choices": [{"choice_id": c, "class_id": c, "text": f"Do {c}", "verb": "do"} for c in "ABCD"]}


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("ANSWER: B", "B"),
        ("answer: b", "B"),
        ("Final answer: C.", "C"),
        ("The hand turns it.\nANSWER: D\n", "D"),
        ("ANSWER: A\nno, wait\nANSWER: B", "B"),
        ("ANSWER: A\nANSWER: Z", "A"),
        ("ANSWER: C\nANSWER:", "C"),
        ("**ANSWER:** B", "B"),
        ("ANSWER: (B)", "B"),
        ("ANSWER: <B>", "B"),
        ("ANSWER:\n\nB", "B"),
        ("ANSWER: CHOICE_B", "B"),
        ("ANSWER: <CHOICE_ID> B", "B"),
        ("ANSWER: <CHOICE_ID_B>", "B"),
        ("ANSWER: B. Do B", "B"),
        ("I choose <CHOICE_ID_A>, or rather <CHOICE_ID_C>", "C"),
        ("<choice_id_d> and <CHOICE_ID_Z>", "D"),
        ("ANSWER: none\n<CHOICE_ID_A>", "A"),
        ("ANSWER: <CHOICE_ID>", None),
        ("ANSWER: the B", None),
        ("ANSWER: BB", None),
        ("ANSWER: Do B", None),
        ("MYANSWER: B", None),
        ("B", None),
        ("(B)", None),
        ("ANSWER B", None),
        ("", None),
    ],
)
def test_answers_are_read_as_released(answer: str, choice: str | None) -> None:
    parsed = TASK.parse(answer, FOUR, BOXES)
    assert (parsed.value["choice_id"] if isinstance(parsed, Prediction) else None) == choice


@given(st.text(max_size=300) | st.text(alphabet="ANSWERanswer: <CHOICE_ID>BZ\n", max_size=300))
def test_the_parser_never_raises(text: str) -> None:
    parsed = TASK.parse(text, FOUR, BOXES)
    assert isinstance(parsed, ParseError) or parsed.value["choice_id"] in "ABCD"


@pytest.mark.parametrize("text", ["answer:" * 200_000, "<CHOICE_ID_Z>" * 100_000, "answer: CHOICE_" * 90_000])
def test_hostile_answers_cost_little(text: str) -> None:
    assert isinstance(TASK.parse(text, FOUR, BOXES), ParseError)


@given(st.text(max_size=100), st.sampled_from("ABCD"))
def test_a_rationale_before_the_last_line_changes_nothing(rationale: str, choice: str) -> None:
    parsed = TASK.parse(f"{rationale}\nANSWER: {choice}", FOUR, BOXES)
    assert isinstance(parsed, Prediction)
    assert parsed.value["choice_id"] == choice


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    """150 examples over all classes."""
    root = vocabulary_video(tmp_path_factory.mktemp("many"))
    ids = list(CLASSES)
    for index in range(50):
        parts = [activity(12 * k, 12 * k + 10, ids[(3 * index + k) % len(ids)]) for k in range(3)]
        release(root, *parts, video_id=f"v{index}")
    return [e for e in derive(root) if isinstance(e, Example)]


def test_the_oracle_scores_the_maximum(many: list[Example]) -> None:
    assert answer_all(TASK, many, lambda e: TASK.reference_answer(e, BOXES))["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("answer", "ceiling"),
    [
        (lambda e: "", 0.0),
        (lambda e: "I cannot tell.", 0.0),
        (lambda e: "ANSWER: A", 0.12),
        (lambda e: "\n".join(f"ANSWER: {c['choice_id']}" for c in e.inputs["choices"]), 0.12),
        (lambda e: TASK.random_answer(e, random.Random(e.example_id), BOXES), 0.12),
    ],
    ids=["empty", "prose", "always A", "all letters", "chance"],
)
def test_blind_answers_stay_near_chance(many: list[Example], answer: object, ceiling: float) -> None:
    assert answer_all(TASK, many, answer)["accuracy"] <= ceiling


def test_figures_are_defined_and_say_how_many_they_rest_on(many: list[Example]) -> None:
    for answer in (lambda e: TASK.reference_answer(e, BOXES), lambda e: "", lambda e: "ANSWER: A"):
        figures = answer_all(TASK, many, answer)
        assert "null" not in json.dumps(figures)
        assert sum(group["support"] for group in figures["per_class"].values()) == len(many)
        assert set(figures["per_verb"]) == {verb.lower() for verb in VERBS}
        assert figures["chance_level"] == pytest.approx(0.04)


def test_the_answer_does_not_show_in_the_shape_of_the_question(many: list[Example]) -> None:
    """The verb with the most choices is no shortcut: it would be, if only the truth's verb were drawn for."""

    def richest_verb(example: Example) -> str:
        verbs = Counter(c["verb"] for c in example.inputs["choices"])
        verb = verbs.most_common(1)[0][0]
        return f"ANSWER: {next(c['choice_id'] for c in example.inputs['choices'] if c['verb'] == verb)}"

    assert answer_all(TASK, many, richest_verb)["accuracy"] <= 0.15


def test_per_example_scores(examples: list[Example]) -> None:
    right = Prediction({"choice_id": examples[0].target["choice_id"]})
    wrong = Prediction({"choice_id": "A" if examples[0].target["choice_id"] != "A" else "B"})
    assert [TASK.score(examples[0], p)["accuracy"] for p in (right, wrong, None)] == [1.0, 0.0, 0.0]


def test_an_explanation_says_what_was_chosen_and_what_is_true(examples: list[Example]) -> None:
    example = examples[0]
    truth = example.target["choice_id"]
    assert [r.verdict for r in TASK.explain(example, Prediction({"choice_id": truth})).rows] == ["hit"]
    assert [r.verdict for r in TASK.explain(example, None).rows] == ["miss"]
    alike = next(c for c in example.inputs["choices"] if c["verb"] == "place" and c["choice_id"] != truth)
    rows = TASK.explain(example, Prediction({"choice_id": alike["choice_id"]})).rows
    assert [r.verdict for r in rows] == ["miss", "wrong"]
    assert rows[0].text == f"{truth}: Place coffee cup"
    assert rows[1].text.endswith("(same verb, another object)")


def test_rows_of_datasets_give_the_examples_back(examples: list[Example]) -> None:
    import datasets

    from barista_bench.builders.rows import from_row, link, row_features, to_row

    rows = [{**to_row(e, k, "0" * 64), "frames": link(e)} for k, e in enumerate(examples)]
    table = datasets.Dataset.from_list(rows, features=row_features(TASK, "linked"))
    assert [from_row(row) for row in table] == examples
    assert json.dumps([e.inputs for e in examples])


def test_the_order_of_the_folders_does_not_matter(root: Path, tmp_path: Path, examples: list[Example]) -> None:
    for video_id in ("v2", "names", "v1"):
        folder = tmp_path / video_id
        folder.mkdir()
        (folder / "coco_annotation.json").write_bytes((root / video_id / "coco_annotation.json").read_bytes())
    assert derive(tmp_path) == examples


def test_real_clips_give_questions_that_the_oracle_answers(real_release: Path) -> None:
    found = [e for e in TASK.examples(SceneGraph(real_release), TASK.sampling) if isinstance(e, Example)]
    if found:
        assert answer_all(TASK, found, lambda e: TASK.reference_answer(e, BOXES))["accuracy"] == 1.0


def test_scores_of_the_choices_are_an_answer_too(root: Path) -> None:
    example = derive(root)[0]
    assert isinstance(example, Example)
    choices = Activity().choices(example)
    assert list(choices) == [choice["choice_id"] for choice in example.inputs["choices"]]  # type: ignore[index, union-attr]
    scores = dict.fromkeys(choices, 0.1) | {"B": 0.2}
    assert Activity().parse(write_scores(scores), example.inputs, BoxFormat()) == Prediction({"choice_id": "B"})
    assert isinstance(Activity().parse(write_scores({"A": 1.0}), example.inputs, BoxFormat()), ParseError)
