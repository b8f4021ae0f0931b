"""Temporal visual question answering: selection, pairs, their files, answers and scores."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Change
from barista_bench.benchmarks.barista.qa_templates import (
    FEWEST_WORDS,
    changes_to_tell,
    describe_change,
    read_pairs,
    write_pair,
)
from barista_bench.benchmarks.barista.released_sets import released_record
from barista_bench.benchmarks.barista.temporal_vqa import TemporalSampling, TemporalVQA
from barista_bench.benchmarks.lexical import is_said
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Prediction, SkippedExample
from barista_bench.core.options import Sampling
from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import domain_vocabulary
from tests.answering import answer_all, derived
from tests.conftest import Compared
from tests.graph_examples import graph_examples
from tests.judging.changes import change
from tests.releases import eventful, write_release

TASK = TemporalVQA()
BOXES = BoxFormat()
SHORT = TemporalSampling(frames=6, spacing=4)
KEYFRAMES = [0, 4, 8, 12, 16, 20]


def derive(root: Path, sampling: Sampling = SHORT, task: TemporalVQA = TASK) -> list[Example]:
    return derived(task, root, sampling)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("temporal"), content=eventful(), video=False)


@pytest.fixture(scope="module")
def examples(root: Path) -> list[Example]:
    return derive(root)


def test_each_category_with_changes_gives_one_pair_a_clip_in_order_of_names(examples: list[Example]) -> None:
    assert [e.label for e in examples] == sorted(CATEGORIES)
    for index, e in enumerate(examples):
        assert e.example_id == f"visual_qa:v1:clip_0:frames_0_20:qa_{index}:{e.label}"
        assert [frame.frame_index for frame in e.frames] == e.metadata["original_frame_indices"] == KEYFRAMES
        assert (e.metadata["writer"], e.metadata["clip_index"], e.metadata["qa_index"]) == ("template", 0, index)


@pytest.mark.parametrize(("most", "shown"), [(None, KEYFRAMES), (3, [0, 8, 20]), (2, [0, 20]), (1, [12])])
def test_frames_are_thinned_evenly(root: Path, most: int | None, shown: list[int]) -> None:
    for example in derive(root, replace(SHORT, max_frames=most)):
        assert [frame.frame_index for frame in example.frames] == shown
        assert example.metadata["original_frame_indices"] == KEYFRAMES
        assert example.inputs["n_frames"] == len(shown)
        assert f":clip_0:frames_{shown[0]}_{shown[-1]}:" in example.example_id


def test_answers_from_templates_follow_the_graph(examples: list[Example]) -> None:
    assert [e.target["answer"] for e in examples] == [
        "Following the frames of this clip one after the other in their given order, "
        "the left hand first touches the coffee cup, then nothing; "
        "the right hand first touches the coffee cup, then nothing.",
        "Following the frames of this clip one after the other in their given order, "
        '"place cup" ends, then "press button" begins.',
        "Comparing the first frames of this clip with the last ones that it shows, "
        "the coffee cup is now under the coffee machine.",
        "Comparing the first frames of this clip with the last ones that it shows, "
        "the coffee machine started extracting.",
    ]


def test_questions_do_not_give_the_answer_away(examples: list[Example]) -> None:
    assert "left hand and the right hand touch" in examples[0].inputs["question"]
    for e in examples:
        question = str(e.inputs["question"])
        for word in ("machine", "cup", "extracting", "under", "place cup", "button"):
            assert word not in question
        assert TASK.score(e, Prediction({"answer": question}))["lexical_f1"] == 0.0


@pytest.mark.parametrize(
    ("seeds", "seed"), [({"seed": 7}, 7), ({"seed": 7, "sampling_seed": 3}, 3), ({"seed": None}, 0)]
)
def test_each_category_is_capped_by_one_generator_over_all_videos(
    tmp_path: Path, seeds: dict[str, int | None], seed: int
) -> None:
    for number in range(6):
        content = eventful()
        if number == 0:  # the categories are drawn in the order in which videos have them
            content["attributes"] = []
        write_release(tmp_path, f"v{number}", content, video=False)
    drawn = derive(tmp_path, replace(SHORT, per_class=2, **seeds))
    generator, chosen = random.Random(seed), []
    for category in ("action_transition", "relation_change", "activity_progression", "state_change"):
        videos = [f"v{number}" for number in range(category == "state_change", 6)]
        generator.shuffle(videos)
        chosen += [(video, category) for video in videos[:2]]
    assert [(e.video_id, e.label) for e in drawn] == sorted(chosen)
    for video_id in {e.video_id for e in drawn}:
        numbers = [e.metadata["qa_index"] for e in drawn if e.video_id == video_id]
        assert numbers == list(range(len(numbers))), "pairs are counted after the draw"


LONG = "The coffee machine, which stood idle at first, is extracting coffee into the white cup at the end of it."


def cache(folder: Path, *records: Any, video: str = "v1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    (folder / f"{video}_qa_pairs.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def clip(*pairs: dict[str, Any], index: int = 0, frames: Any = KEYFRAMES) -> dict[str, Any]:
    return {"clip_index": index, "frame_indices": frames, "qa_pairs": list(pairs)}


def pair(answer: Any = LONG, category: Any = "state_change", question: Any = "What changes?") -> dict[str, Any]:
    return {"question": question, "answer": answer, "category": category}


def from_file(folder: Path) -> Sampling:
    return replace(SHORT, pairs=str(folder))


def test_written_pairs_replace_the_templates_unchanged(tmp_path: Path, root: Path) -> None:
    """Neither drawn nor sorted nor measured again, with any caps."""
    pairs = pair("Short.", "relation_change"), pair(), pair(), pair("the the", "")
    folder = cache(tmp_path, clip(*pairs, index=3), "", clip(pair(), frames=[5, 9, 99]))
    items = derive(root, replace(from_file(folder), per_class=1))
    names = [f"clip_3:frames_0_20:qa_{index}" for index in range(4)]
    suffixes = (":relation_change", ":state_change", ":state_change", "")
    ids = [f"{name}{suffix}" for name, suffix in zip(names, suffixes, strict=True)]
    assert [e.example_id for e in items] == [
        f"visual_qa:v1:{name}" for name in (*ids, "clip_0:frames_5_9:qa_0:state_change")
    ]
    assert [e.target["answer"] for e in items] == ["Short.", LONG, LONG, "the the", LONG]
    assert [e.metadata["clip_index"] for e in items] == [3, 3, 3, 3, 0]
    assert [e.metadata["original_frame_indices"] for e in items] == [*[KEYFRAMES] * 4, [5, 9]]
    assert {e.metadata["writer"] for e in items} == {"cached"}


def test_written_pairs_have_the_graphs_changes_of_their_category_as_evidence(tmp_path: Path, root: Path) -> None:
    pairs = (pair(category=category) for category in ("state_change", "relation_change", "colour_change", None))
    items = derive(root, from_file(cache(tmp_path, clip(*pairs), clip(pair(), frames=[14, 18]))))
    assert [[change["kind"] for change in e.evidence["changes"]] for e in items] == [
        ["started extracting"],
        ["new"],
        [],
        [],
        [],
    ]
    assert [e.label for e in items] == ["state_change", "relation_change", "colour_change", "", "state_change"]


def test_pairs_without_question_or_answer_keep_their_number(tmp_path: Path, root: Path) -> None:
    pairs = pair(question=""), pair(answer=" "), {"category": "state_change"}, pair(question=None), pair()
    items = list(graph_examples(TASK, SceneGraph(root), from_file(cache(tmp_path, clip(*pairs)))))
    skipped = [item for item in items if isinstance(item, SkippedExample)]
    assert [item.text for item in skipped] == [f"clip 0: pair {index}: lacks question or answer" for index in range(4)]
    assert [e.metadata["qa_index"] for e in items if isinstance(e, Example)] == [4]


def test_written_clips_equal_the_video_and_the_sampled_range(tmp_path: Path, root: Path) -> None:
    folder = cache(tmp_path, clip(pair(), frames=[40, 41], index=40), clip(pair(), frames=[4, 8]), clip(pair()))
    (skipped,) = [i for i in graph_examples(TASK, SceneGraph(root), from_file(folder)) if isinstance(i, SkippedExample)]
    assert skipped.text == "clip 40: its frames are not in the video"
    items = derive(root, replace(from_file(folder), frame_range=(4, 20)))
    assert [[frame.frame_index for frame in e.frames] for e in items] == [[4, 8]]


def test_videos_without_a_file_of_pairs_have_no_examples(tmp_path: Path, root: Path) -> None:
    assert derive(root, from_file(cache(tmp_path, clip(pair()), video="other"))) == []


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
        clip(pair(), frames=[0] * 1025),
        {**clip(), "qa_pairs": {}},
        clip(pair(category=["state_change"])),
        clip(pair(answer=3)),
        clip(pair(question="\ud800")),
        {**clip(), "qa_pairs": [3]},
        "[" * 100_000,
    ],
)
def test_broken_cache_lines_are_named(tmp_path: Path, record: Any) -> None:
    with pytest.raises(DataError, match=r"v1_qa_pairs.jsonl: line 2: .*Fix"):
        read_pairs(cache(tmp_path, clip(index=7), record), "v1")


def test_a_folder_of_pairs_holds_some_file(tmp_path: Path, root: Path) -> None:
    with pytest.raises(DataError, match="no file"):
        derive(root, from_file(tmp_path / "absent"))


def test_frozen_lines_equal_the_released_code(golden: Path, real_release: Path, compared: Compared) -> None:
    count = 0
    for folder in sorted(golden.glob("vqa/*")):
        config, name = json.loads((folder / "config.json").read_text()), folder.name
        root = golden / "tricky" / name.removeprefix("tricky_") if name.startswith("tricky") else real_release
        videos = (config["video_id"],) if config["video_id"] else None
        asked = {
            "limit": config["limit"],
            "seed": config["shuffle_seed"],
            "max_frames": config["max_frames_per_example"],
        }
        sampling = TemporalSampling(**asked, videos=videos, pairs=str(folder / "qa_pairs"))
        frozen = [json.dumps(released_record(e), sort_keys=True) for e in sampling.sample(derive(root, sampling))]
        assert frozen == (golden / "frozen" / name / "visual_qa.jsonl").read_text().splitlines(), name
        count += len(frozen)
    assert count > 100
    compared("temporal_vqa", "frozen lines made of annotations, every byte", count)


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


def test_an_answer_of_several_lines_is_the_oracles_too(tmp_path: Path, root: Path) -> None:
    items = derive(root, from_file(cache(tmp_path, clip(pair(LONG.replace(", ", ",\n"))))))
    assert answer_all(TASK, items, lambda e: TASK.reference_answer(e, BOXES))["lexical_f1"] == 1.0


def test_an_explanation_goes_through_the_changes(examples: list[Example]) -> None:
    said = TASK.parse("Answer: the right hand holds the coffee cup, then a spoon", {}, BOXES)
    assert isinstance(said, Prediction)
    rows = [(row.kind, row.text) for row in TASK.explain(examples[0], said).rows]
    assert rows == [
        ("miss", "the left hand touches the coffee cup"),
        ("miss", "the left hand touches nothing"),
        ("miss", "the right hand touches the coffee cup"),
        ("miss", "the right hand touches nothing"),
        ("wrong", "not in the reference: hold"),
        ("wrong", "not in the reference: spoon"),
    ]


names = st.sampled_from(sorted(domain_vocabulary()))
changes = st.builds(
    Change,
    **{
        "category": st.just(""),
        "number": st.just(0),
        "kind": st.just(""),
        "subject": names,
        "value": st.sampled_from(["on", "contains", "attached to"]),
        "objects": st.lists(names, min_size=1, max_size=2),
        "object_ids": st.just([]),
        "rows": st.just([]),
        "start": st.just(0),
        "end": st.just(120),
    },
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
    for item in drawn:
        item.category = category
        item.kind = data.draw(st.sampled_from(KINDS[category]))
    if category == "action_transition":
        drawn = [msgspec.structs.replace(c, subject="left hand") for c in (*drawn, drawn[0])]
    if category == "activity_progression":
        drawn = [msgspec.structs.replace(c, subject="Stir") for c in drawn]
    pair = write_pair(category, drawn)
    assert len(pair["answer"].split()) >= FEWEST_WORDS
    assert pair["category"] == category
    for item in changes_to_tell(drawn):
        assert is_said(describe_change(item), pair["answer"])


def test_changes_with_equal_texts_are_listed_once() -> None:
    put = change("relation_change", "new", "lid", "jar", value="on")
    moved = [
        msgspec.structs.replace(put, number=1),
        change("relation_change", "lost", "lid", "tray", value="on", number=1),
    ]
    answer = write_pair("relation_change", [put, *moved])["answer"]
    assert answer.endswith("the lid is now on the jar and the lid is no longer on the tray.")


def test_activities_that_begin_or_end_are_not_said_to_continue() -> None:
    steps = [
        ("started", "Stir"),
        ("continuing", "Brew"),
        ("continuing", "Hum"),
        ("ended", "Hum"),
        ("continuing", "Brew"),
    ]
    steps_to_tell = changes_to_tell([change("activity_progression", *step) for step in steps])
    assert [(c.kind, c.subject) for c in steps_to_tell] == [
        ("started", "Stir"),
        ("ended", "Hum"),
        ("continuing", "Brew"),
    ]
