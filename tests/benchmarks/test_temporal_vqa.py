"""Temporal visual question answering: pairs, their files, answers and scores (upstream.md 1.10)."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Change
from barista_bench.benchmarks.barista.free_text import domain_vocabulary
from barista_bench.benchmarks.barista.lexical import is_said
from barista_bench.benchmarks.barista.qa_templates import (
    FEWEST_WORDS,
    describe_change,
    load_qa_pairs,
    write_pair,
)
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.builders.rows import from_row, row_features, to_row
from barista_bench.errors import DataError
from barista_bench.prompt import BoxFormat, ImagePart
from barista_bench.scene_graph import SceneGraph
from barista_bench.task import Example, ParseError, Prediction, Sampling, Scored, SkippedExample
from tests.releases import CUP, LEFT, MACHINE, RIGHT, document, relation, span, write_release

TASK = TemporalVQA()
BOXES = BoxFormat()
SHORT = Sampling(frames=6, spacing=4)
KEYFRAMES = [0, 4, 8, 12, 16, 20]
SNAPSHOT = Path(__file__).parent / "snapshots" / "temporal_vqa.txt"


def eventful() -> dict[str, Any]:
    """The small document with a change of each category between frames 0 and 20."""
    content = document()
    content["relations"][1] = relation(CUP, MACHINE, "position", "under", (9, 40))
    content["attributes"][2]["image_ranges"] = [span(10, 30)]
    content["activities"][0]["image_range"] = span(0, 18)
    return content


def derive(root: Path, sampling: Sampling = SHORT, task: TemporalVQA = TASK) -> list[Example]:
    return [e for e in task.examples(SceneGraph(root), sampling) if isinstance(e, Example)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("temporal"), content=eventful(), video=False)


@pytest.fixture(scope="module")
def examples(root: Path) -> list[Example]:
    return derive(root)


def test_published_sampling_is_the_default() -> None:
    assert TASK.sampling == Sampling(limit=300, seed=42, frames=6, spacing=24, per_class=100)
    assert (TASK.upstream_name, TASK.sampling_uses) == ("visual_qa", {"frames", "spacing", "per_class", "pairs"})


def test_each_category_with_changes_gives_one_pair_a_clip(examples: list[Example]) -> None:
    assert [e.example_id for e in examples] == [f"visual_qa:v1:clip_0:{category}" for category in CATEGORIES]
    assert [e.label for e in examples] == list(CATEGORIES)
    for e in examples:
        assert [frame.frame_index for frame in e.frames] == KEYFRAMES
        assert (e.metadata["writer"], e.metadata["clip_index"]) == ("template", 0)


def test_templates_say_what_the_graph_says(examples: list[Example]) -> None:
    assert [e.target["answer"] for e in examples] == [
        "Comparing the first frames of this clip with the last ones that it shows, "
        "the coffee machine started extracting.",
        "Following the frames of this clip one after the other in their given order, "
        "the left hand first touches the coffee cup, then nothing; "
        "the right hand first touches nothing, then the coffee cup, then nothing.",
        "Comparing the first frames of this clip with the last ones that it shows, "
        "the coffee cup is now under the coffee machine.",
        "Following the frames of this clip one after the other in their given order, "
        '"place cup" ends, then "press button" begins.',
    ]


def test_questions_do_not_give_the_answer_away(examples: list[Example]) -> None:
    assert "left hand and the right hand touch" in examples[1].inputs["question"]
    for e in examples:
        question = str(e.inputs["question"])
        for word in ("machine", "cup", "extracting", "under", "place cup", "button"):
            assert word not in question
        assert TASK.score(e, Prediction({"answer": question}))["lexical_f1"] == 0.0


def test_evidence_leads_back_to_the_file(examples: list[Example]) -> None:
    state, action, place, progress = (e.evidence for e in examples)
    assert (state["object_ids"], state["attribute_rows"]) == ([MACHINE], [2])
    assert (action["object_ids"], action["relation_rows"]) == ([LEFT, CUP, RIGHT], [2, 3])
    assert (place["object_ids"], place["relation_rows"]) == ([CUP, MACHINE], [1])
    assert (progress["activity_rows"], progress["relation_rows"]) == ([0, 1], [])
    assert [len(e.evidence["changes"]) for e in examples] == [1, 5, 1, 2]


def test_each_category_is_capped_by_the_seed(tmp_path: Path) -> None:
    for number in range(6):
        write_release(tmp_path, f"v{number}", eventful(), video=False)
    capped = derive(tmp_path, replace(SHORT, per_class=2))
    expected = set()
    for category in CATEGORIES:
        ids = [f"visual_qa:v{number}:clip_0:{category}" for number in range(6)]
        random.Random(f"42:{category}").shuffle(ids)
        expected |= set(ids[:2])
    assert {e.example_id for e in capped} == expected
    assert [e.video_id for e in capped] == sorted(e.video_id for e in capped)


names = st.sampled_from(sorted(domain_vocabulary()))
changes = st.fixed_dictionaries(
    {
        "category": st.just(""),
        "kind": st.just(""),
        "subject": names,
        "value": st.sampled_from(["on", "contains", "attached to"]),
        "objects": st.lists(names, min_size=1, max_size=2),
        "object_ids": st.just([]),
        "rows": st.just([]),
        "start": st.just(0),
        "end": st.just(120),
    }
)
KINDS = {
    "state_change": ["opened", "closed", "started rinsing", "stopped extracting"],
    "action_transition": ["contact"],
    "relation_change": ["new", "lost"],
    "activity_progression": ["started", "ended", "continuing"],
}


@given(st.sampled_from(CATEGORIES), st.lists(changes, min_size=1, max_size=6), st.data())
def test_template_answers_are_long_enough_and_cover_every_change(
    category: str, drawn: list[Change], data: st.DataObject
) -> None:
    for change in drawn:
        change["category"] = category
        change["kind"] = data.draw(st.sampled_from(KINDS[category]))
    if category == "action_transition":
        drawn = [{**c, "subject": "left hand"} for c in (*drawn, drawn[0])]
    if category == "activity_progression":
        drawn = [{**c, "subject": "Stir"} for c in drawn]
    pair = write_pair(category, drawn)
    assert len(pair["answer"].split()) >= FEWEST_WORDS
    assert pair["category"] == category
    for change in drawn:
        text = describe_change(change)
        plural = text.replace(" was ", " were ")
        assert is_said(text, pair["answer"]) or is_said(plural, pair["answer"])


def test_equal_changes_are_counted(tmp_path: Path) -> None:
    lid: Change = {
        "category": "state_change",
        "kind": "opened",
        "subject": "lid",
        "value": "",
        "objects": [],
        "object_ids": [],
        "rows": [],
        "start": 0,
        "end": 120,
    }
    assert "2 lids were opened." in write_pair("state_change", [lid, dict(lid)])["answer"]
    place: Change = {**lid, "category": "relation_change", "kind": "new", "value": "on", "objects": ["jar"]}
    assert "the lid is now on the jar (2 of them)." in write_pair("relation_change", [place, dict(place)])["answer"]


LONG = "The coffee machine, which stood idle at first, is extracting coffee into the white cup at the end of it."


def cache(folder: Path, *records: Any, video: str = "v1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (folder / f"{video}_qa_pairs.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def clip(*pairs: dict[str, str], index: int = 0, frames: Any = KEYFRAMES) -> dict[str, Any]:
    return {"clip_index": index, "frame_indices": frames, "qa_pairs": list(pairs)}


def pair(answer: str = LONG, category: str = "state_change", question: str = "What changes?") -> dict[str, str]:
    return {"question": question, "answer": answer, "category": category}


def test_cached_pairs_replace_the_templates(tmp_path: Path, root: Path) -> None:
    pairs = load_qa_pairs(cache(tmp_path, clip(pair(category="relation_change"), pair()), ""))
    found = derive(root, task=TemporalVQA(pairs=pairs))
    assert [(e.label, e.inputs["question"], e.target["answer"]) for e in found] == [
        ("state_change", "What changes?", LONG),
        ("relation_change", "What changes?", LONG),
    ]
    assert {e.metadata["writer"] for e in found} == {"cached"}
    assert found[0].evidence["changes"][0]["kind"] == "started extracting"


def test_clips_without_cached_pairs_have_no_examples(tmp_path: Path, root: Path) -> None:
    pairs = load_qa_pairs(cache(tmp_path, clip(pair()), video="other"))
    assert list(TemporalVQA(pairs=pairs).examples(SceneGraph(root), SHORT)) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (clip(pair(), frames=[0, 24]), "other frames"),
        (clip(pair(" ".join(["word"] * 15))), "15 words"),
        (clip(pair(" ".join(["the"] * 20))), "nothing that could be compared"),
    ],
)
def test_unusable_cached_pairs_are_skipped_and_say_why(tmp_path: Path, root: Path, record: Any, reason: str) -> None:
    pairs = load_qa_pairs(cache(tmp_path, record))
    (skipped,) = TemporalVQA(pairs=pairs).examples(SceneGraph(root), SHORT)
    assert isinstance(skipped, SkippedExample)
    assert reason in skipped.reason
    assert skipped.frame.frame_index == 0


def test_an_answer_of_sixteen_words_is_kept(tmp_path: Path, root: Path) -> None:
    pairs = load_qa_pairs(cache(tmp_path, clip(pair(" ".join(["word"] * 16)))))
    assert len(derive(root, task=TemporalVQA(pairs=pairs))) == 1


def test_a_cached_pair_without_evidence_is_skipped(tmp_path: Path) -> None:
    content = {**eventful(), "attributes": []}
    release = write_release(tmp_path / "release", content=content, video=False)
    pairs = load_qa_pairs(cache(tmp_path / "pairs", clip(pair())))
    (skipped,) = TemporalVQA(pairs=pairs).examples(SceneGraph(release), SHORT)
    assert isinstance(skipped, SkippedExample)
    assert "state_change, of which the graph has none" in skipped.reason


@pytest.mark.parametrize(
    "record",
    [
        "no json",
        "[]",
        "{}",
        clip(pair(), index=-1),
        clip(pair(), index=True),
        clip(pair(), frames="0"),
        clip(pair(), frames=[0, 1.5]),
        {**clip(), "qa_pairs": {}},
        clip(pair(), pair()),
        clip(pair(category="colour_change")),
        clip(pair(category=[])),
        clip(pair(answer=" ")),
        clip(pair(question=None)),
        {**clip(), "qa_pairs": [3]},
        "[" * 100_000,
    ],
)
def test_broken_cache_lines_are_named(tmp_path: Path, record: Any) -> None:
    with pytest.raises(DataError, match=r"v1_qa_pairs.jsonl: line 2: .*Remedy"):
        load_qa_pairs(cache(tmp_path, clip(index=7), record))


def test_a_clip_is_cached_once_and_a_folder_holds_some_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="given twice"):
        load_qa_pairs(cache(tmp_path, clip(pair()), clip(pair())))
    with pytest.raises(DataError, match="no file"):
        load_qa_pairs(tmp_path / "absent")


def test_the_prompt_shows_the_frames_and_then_the_question(examples: list[Example]) -> None:
    prompt = TASK.prompt(examples[0], BOXES)
    assert prompt.parts[:-1] == tuple(ImagePart(index) for index in range(6))
    assert prompt.parts[-1].text == examples[0].inputs["question"]
    assert "6 frames" in prompt.system
    assert "{" not in prompt.as_text()
    blind = replace(examples[0], target={}, evidence={}, metadata={}, label="")
    assert TASK.prompt(blind, BoxFormat("yxyx", 1)) == prompt


def test_rendered_prompts_are_kept(examples: list[Example]) -> None:
    formats = (BoxFormat("xyxy", 1000), BoxFormat("yxyx", 1000))
    text = "\n----\n".join(TASK.prompt(e, boxes).as_text() for boxes in formats for e in examples) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == text, "set UPDATE_SNAPSHOTS=1 and raise the versions if meant"


def test_the_images_are_the_frames_in_order(examples: list[Example]) -> None:
    frames = [np.full((4, 6, 3), value, np.uint8) for value in range(6)]
    assert [int(np.asarray(image)[0, 0, 0]) for image in TASK.images(examples[0], frames)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("Answer: the lid was opened", "the lid was opened"),
        ("The lid was opened.", "The lid was opened."),
        ("I look.\n  ANSWER : the lid\nmore", "the lid"),
        ("Answer: a\nAnswer: b", "b"),
        ("Answer:\nthe lid", "the lid"),
        ("Final answer: the lid", "Final answer: the lid"),
        ("", ""),
    ],
)
def test_answers_are_read_as_released(answer: str, read: str) -> None:
    assert TASK.parse(answer, {}, BOXES) == Prediction({"answer": read})


@settings(max_examples=200)
@given(st.text() | st.text(alphabet="answer: \n\r\t`").map(lambda t: f"Answer:{t}"))
def test_an_answer_is_never_a_parse_failure(text: str) -> None:
    assert not isinstance(TASK.parse(text, {}, BOXES), ParseError)


def answer_all(examples: list[Example], answer: Any) -> dict[str, Any]:
    return TASK.aggregate([Scored(e, TASK.parse(answer(e), e.inputs, BOXES)) for e in examples])


def test_the_oracle_scores_the_maximum(examples: list[Example]) -> None:
    result = answer_all(examples, lambda e: TASK.reference_answer(e, BOXES))
    assert (result["lexical_f1"], result["coverage"], result["n"]) == (1.0, 1.0, 4)
    assert {name: figures["support"] for name, figures in result["per_category"].items()} == dict.fromkeys(
        CATEGORIES, 1
    )
    for e in examples:
        parsed = TASK.parse(TASK.reference_answer(e, BOXES), e.inputs, BOXES)
        assert {row.verdict for row in TASK.explain(e, parsed).rows} == {"hit"}


def test_an_answer_of_several_lines_is_the_oracles_too(tmp_path: Path, root: Path) -> None:
    pairs = load_qa_pairs(cache(tmp_path, clip(pair(LONG.replace(", ", ",\n")))))
    found = derive(root, task=TemporalVQA(pairs=pairs))
    assert answer_all(found, lambda e: TASK.reference_answer(e, BOXES))["lexical_f1"] == 1.0


@pytest.mark.parametrize(
    ("answer", "ceiling"),
    [
        (lambda e: "", 0.0),
        (lambda e: "I cannot see any change between the frames.", 0.02),
        (lambda e: "The lid was opened and the right hand touches the milk carton.", 0.35),
        (lambda e: str(e.inputs["question"]), 0.0),
        (lambda e: " ".join(domain_vocabulary()), 0.2),
        (lambda e: TASK.random_answer(e, random.Random(e.example_id), BOXES), 0.25),
    ],
    ids=["empty", "prose", "constant", "question", "all categories", "chance"],
)
def test_blind_answers_stay_low(examples: list[Example], answer: Any, ceiling: float) -> None:
    assert answer_all(examples, answer)["lexical_f1"] <= ceiling


def test_an_empty_answer_scores_nothing_and_is_counted(examples: list[Example]) -> None:
    zero = dict.fromkeys(("lexical_f1", "lexical_precision", "lexical_recall"), 0.0)
    assert TASK.score(examples[0], Prediction({"answer": ""})) == TASK.score(examples[0], None) == zero
    result = TASK.aggregate([Scored(examples[0], None), Scored(examples[0], Prediction({"answer": ""}))])
    assert (result["lexical_f1"], result["n"], result["n_failed"]) == (0.0, 2, 1)


def test_an_explanation_goes_through_the_changes(examples: list[Example]) -> None:
    said = TASK.parse("Answer: the right hand holds the coffee cup, then a spoon", {}, BOXES)
    assert isinstance(said, Prediction)
    rows = [(row.verdict, row.text) for row in TASK.explain(examples[1], said).rows]
    assert rows == [
        ("miss", "the left hand touches the coffee cup"),
        ("miss", "the left hand touches nothing"),
        ("miss", "the right hand touches nothing"),
        ("miss", "the right hand touches the coffee cup"),
        ("wrong", "not in the reference: hold"),
        ("wrong", "not in the reference: spoon"),
    ]


def test_chance_depends_on_the_seed_alone(examples: list[Example]) -> None:
    first, again, other = (TASK.random_answer(examples[0], random.Random(seed), BOXES) for seed in (1, 1, 2))
    assert first == again != other


def test_examples_survive_datasets(examples: list[Example]) -> None:
    rows = [
        {**to_row(e, i, "x"), "frames": {"video": "v1/video.mp4", "indices": KEYFRAMES}} for i, e in enumerate(examples)
    ]
    loaded = Dataset.from_list(rows, features=row_features(TASK, "linked"))
    assert [from_row(row) for row in loaded] == examples


def test_real_clips_have_examples_that_the_oracle_answers(real_release: Path) -> None:
    found = derive(real_release, TASK.sampling)
    assert len(found) > 5
    assert all(len(str(e.target["answer"]).split()) >= FEWEST_WORDS for e in found)
    assert answer_all(found, lambda e: TASK.reference_answer(e, BOXES))["lexical_f1"] == 1.0
    assert answer_all(found, lambda e: TASK.random_answer(e, random.Random(e.example_id), BOXES))["lexical_f1"] < 0.25
