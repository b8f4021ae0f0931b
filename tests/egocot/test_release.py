"""The reader of the benchmark's annotation files: kept entries, omissions, and messages."""

from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.egocot.items import (
    GROUPS,
    SUBTASKS,
    DatedRelation,
    TimedBox,
    clock_text,
    group_called,
    subtask_called,
)
from barista_bench.benchmarks.egocot.release import EgocotRelease, open_release
from barista_bench.benchmarks.kinds.spans import read_seconds
from barista_bench.errors import DataError
from barista_bench.metrics.judge_score.egocot import EGOCOT_SIZES
from tests.egocot.made import record, write


def opened(root: Path, *records: dict[str, Any], name: str = "dev.json") -> EgocotRelease:
    write(root, name, list(records))
    return open_release(root)


def test_the_page_sample_and_the_quiz_items_load_without_a_problem(page_folder: Path) -> None:
    release = open_release(page_folder)
    assert not release.problems
    assert sorted(release.items) == ["ego_000000", "quiz_egp", "quiz_hgr", "quiz_pci", "quiz_str"]
    sample = release.items["ego_000000"]
    assert (sample.subtask.code, sample.answer, sample.split) == ("AOG", "B", "dev")
    assert sample.evidence.focused_boxes[0].box == [329, 317, 470, 511]
    relation = sample.evidence.relations[0]
    assert (relation.subject, relation.predicate, relation.object) == ("left hand", "near", "bottle")
    assert release.items["quiz_pci"].evidence.timestamps == [30.0, 30.25]
    assert {item.subtask.code for item in release.items.values()} == {"AOG", "HOA", "LVR", "LCOI", "PR"}


def test_an_item_has_its_times_in_seconds_and_its_boxes_as_corners(tmp_path: Path) -> None:
    item = opened(tmp_path, record()).items["q1"]
    assert item.evidence.timestamps == [2.0, 4.0]
    assert item.evidence.relations[0] == DatedRelation("left hand", "near", "tray", 2.0, 2.5)
    assert item.evidence.boxes[0] == TimedBox("4", 2.0, [10, 60, 50, 100])
    assert item.reasoning == ("At 00:02.00 the left hand is on the kettle.", "So it is the left hand.")


def test_steps_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    steps = {f"step{n}": f"number {n}" for n in (10, 2, 1)}
    assert opened(tmp_path, record(reasoning=steps)).items["q1"].reasoning == ("number 1", "number 2", "number 10")


@pytest.mark.parametrize("content", [[record()], {"samples": [record()]}, record()], ids=["list", "object", "record"])
def test_a_json_file_may_hold_a_list_an_object_with_a_list_or_one_record(tmp_path: Path, content: object) -> None:
    write(tmp_path, "annotations.json", content)
    assert list(open_release(tmp_path).items) == ["q1"]


def test_jsonl_and_a_single_file_as_the_release(tmp_path: Path) -> None:
    path = write(tmp_path, "all.jsonl", [record("q1"), record("q2")])
    release = open_release(path)
    assert list(release.items) == ["q1", "q2"]
    other = write(tmp_path, "b.json", [record("b"), record("a", media_id="a", source=None)])
    assert list(open_release(other).items) == ["a", "b"], "by medium, then by name"
    assert release.video_path("clip_1") == tmp_path / "media/clip_1.mp4"


def test_the_split_is_the_records_then_the_files_then_whether_an_answer_is_given(tmp_path: Path) -> None:
    write(tmp_path, "public_test.json", [record("t1"), record("t2", answer=None, reasoning=None)])
    write(tmp_path, "rest.json", [record("r1"), record("r2", answer=None), record("r3", split="test")])
    items = open_release(tmp_path).items
    assert {qid for qid in items if items[qid].split == "test"} == {"t1", "t2", "r2", "r3"}
    assert {qid for qid in items if items[qid].split == "dev"} == {"r1"}
    assert (items["t2"].answer, items["t2"].reasoning) == (None, ())


@pytest.mark.parametrize(
    ("changes", "key", "what"),
    [
        ({"sub_category_en": "Cooking"}, "sub_category_en", "is not a subtask"),
        ({"answer": "E"}, "answer", "not one of the choices"),
        ({"answer": "left hand"}, "answer", "'left hand'"),
        ({"answer": None, "split": "dev"}, "answer", "missing in the split dev"),
        ({"choices": {"A": "one"}}, "choices", "of length >= 2"),
        ({"choices": ["one", "two"]}, "choices", "got `array`"),
        ({"choices": {"A": "one", "bb": "two"}}, "choices", "matching regex"),
        ({"media_id": "../secret"}, "media_id", "cannot be the name of a file"),
        ({"media_id": "a/b"}, "media_id", "cannot be the name of a file"),
        ({"qid": "a b"}, "qid", "matching regex"),
        ({"question": " "}, "question", "of length >= 1"),
        ({"question": "\ud800"}, "question", "text that is not UTF-8"),
        ({"evidence": []}, "evidence", "got `array`"),
        ({"reasoning": {"step1": 3}}, "reasoning[0]", "got `int`"),
    ],
)
def test_a_bad_record_costs_itself_and_names_its_key(
    tmp_path: Path, changes: dict[str, Any], key: str, what: str
) -> None:
    release = opened(tmp_path, record("good"), record(**{"qid": "bad", **changes}))
    assert list(release.items) == ["good"]
    (problem,) = [problem for problem in release.problems if problem.severity == "error"]
    assert problem.file == "dev.json"
    assert problem.key == f"[1].{key}"
    assert what in problem.what
    assert "Fix: " in str(problem)


OPEN = {"subject_name": "drawer", "predicate": "is", "object_name": "open", "time": ["00:01.00", "00:02.00"]}
OPEN |= {"holds": True, "text": "the drawer is open"}


@pytest.mark.parametrize(
    ("part", "row", "key"),
    [
        ("relations", {"subject_name": "hand", "predicate": "near", "object_name": "x", "time": ["soon"]}, "time"),
        ("relations", {"subject_name": "hand", "predicate": "", "object_name": "x", "time": []}, "predicate"),
        ("relations", {"subject_name": "a", "predicate": "near", "object_name": "b", "time": ["2", "1"]}, "time"),
        ("bboxes", {"distinct_id": 1, "time": "00:01.00", "bbox": [5, 5, 5, 9]}, "bbox"),
        ("bboxes", {"distinct_id": 1, "time": "00:01.00", "bbox": [1, 2, 3]}, "bbox"),
        ("focused_bboxes", {"distinct_id": True, "time": "00:01.00", "bbox": [1, 2, 3, 4]}, "distinct_id"),
        ("target_objects", {"distinct_id": 1, "label": 2}, "label"),
        ("graph", OPEN | {"predicate": "sings"}, "predicate"),
        ("graph", OPEN | {"time": []}, "time"),
        ("graph", OPEN | {"holds": 1}, "holds"),
        ("graph", OPEN | {"text": ""}, "text"),
        ("focus_times", 10**400, ""),
    ],
)
def test_a_bad_row_of_evidence_costs_that_row(tmp_path: Path, part: str, row: dict[str, Any], key: str) -> None:
    content = record()
    content["evidence"]["graph"] = [OPEN]
    rows = len(content["evidence"][part])
    content["evidence"][part].append(row)
    release = opened(tmp_path, content)
    (problem,) = release.problems
    assert (problem.severity, problem.key) == ("warning", f"[0].evidence.{part}[{rows}]{key and '.'}{key}")
    kept = {"bboxes": "boxes", "focused_bboxes": "focused_boxes", "target_objects": "objects", "graph": "graph_facts"}
    assert len(getattr(release.items["q1"].evidence, kept.get(part, part))) == rows


def test_fields_outside_the_schema_are_named_once_with_their_count(tmp_path: Path) -> None:
    release = opened(tmp_path, record("q1", reviewer="x"), record("q2", reviewer="y"))
    (problem,) = release.problems
    assert (problem.severity, problem.key) == ("warning", "reviewer")
    assert "2 records" in problem.what


def test_a_wrong_group_and_a_strange_source_are_warnings(tmp_path: Path) -> None:
    release = opened(tmp_path, record(big_category_en="Predictive & Causal Inference", source="videos/clip_1.mp4"))
    assert {(problem.severity, problem.key) for problem in release.problems} == {
        ("warning", "[0].big_category_en"),
        ("warning", "[0].source"),
    }
    assert release.items["q1"].subtask.group == "EGP"


def test_no_question_at_all_is_an_error_that_names_the_first_problem(tmp_path: Path) -> None:
    write(tmp_path, "dev.json", [record(answer="Z")])
    with pytest.raises(DataError, match=r"holds no EgoCoT-Bench question .*first problem: .*not one of the choices"):
        open_release(tmp_path)
    with pytest.raises(DataError, match="holds no EgoCoT-Bench question"):
        open_release(write(tmp_path / "other", "media_manifest.json", []).parent)
    with pytest.raises(DataError, match=r"no \.json or \.jsonl file"):
        open_release(write(tmp_path / "another", "submission.json", []).parent)
    with pytest.raises(DataError, match="no such file or folder"):
        open_release(tmp_path / "absent")


def test_missing_media_name_the_licences_and_the_recipe_of_the_manifest(tmp_path: Path) -> None:
    entry = {"media_id": "clip_1", "dataset": "Ego4D", "uid": "abc", "start": "01:00.00", "end": 75.5}
    entry |= {"fps": 4, "width": 910, "height": 512}
    write(tmp_path, "media_manifest.jsonl", [entry, {"media_id": "clip_2"}, entry])
    release = opened(tmp_path, record(), record("q2", media_id="clip_9", source=None))
    assert release.manifest["clip_1"].recipe == (
        *("ffmpeg", "-ss", "60", "-to", "75.5", "-i", "SOURCE.mp4"),
        *("-vf", "fps=4,scale=910:512", "-an", "media/clip_1.mp4"),
    )
    assert "it is from Ego4D" in release.absence_text("clip_1")
    assert "ffmpeg -ss 60" in release.absence_text("clip_1")
    assert "EPIC-KITCHENS" in release.absence_text("clip_9")
    assert [problem.key for problem in release.problems] == ["line 2", "line 3.media_id"]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"media_id": "../x"}, "media_id: '../x' cannot be the name"),
        ({"uid": None, "url": None}, "both uid and url"),
        ({"url": "file:///etc/passwd"}, "https"),
        ({"end": 1, "start": 2}, "end is not after start"),
        ({"fps": 0}, "fps: Expected `float` > 0"),
        ({"width": 1.5}, "width: Expected `int | null`, got `float`"),
        ({"start": "noon"}, "start: 'noon' is no time"),
    ],
)
def test_a_bad_manifest_entry_is_left_out_and_named(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    write(tmp_path, "manifest.json", [{"media_id": "m", "dataset": "d", "uid": "u", **changes}])
    release = opened(tmp_path, record())
    assert not release.manifest
    assert what in str(release.problems[0])


def test_a_recipe_cannot_smuggle_in_a_second_command(tmp_path: Path) -> None:
    write(tmp_path, "manifest.json", [{"media_id": "m; rm -rf x", "dataset": "d", "uid": "u"}])
    assert opened(tmp_path, record()).absence_text("m; rm -rf x").endswith("'media/m; rm -rf x.mp4'")


def test_the_taxonomy_has_four_groups_of_three_and_the_sizes_of_the_benchmark() -> None:
    assert [sum(s.group == group for s in SUBTASKS) for group in GROUPS] == [3, 3, 3, 3]
    assert sum(EGOCOT_SIZES[s.group][s.code] for s in SUBTASKS) == 3172
    assert subtask_called("location  VISIBILITY/retrospection") is subtask_called("LVR")
    assert group_called("High-level Grounded Reasoning") == "HGR"
    assert group_called("Predictive and Causal Inference") == "PCI"
    assert subtask_called("") is None


def test_times_are_written_as_they_are_read() -> None:
    assert [read_seconds(clock_text(quarter / 4)) for quarter in range(4000)] == [
        quarter / 4 for quarter in range(4000)
    ]
